//! Arrays that survive the loss of members: raid1 and raid10 by copies, raid4, raid5 and raid6 by parity.
//!
//! ```text
//!   read  ──▶ where the data is ── failed? ──▶ from the others, and it is rewritten
//!   write ──▶ superblocks say "active" ──▶ bits on the members ──▶ the members ──▶ answer
//!                                                                     │ one failed
//!                         superblocks of the others say so, before ◀──┘ the answer
//! ```
//!
//! ```text
//!                    Redundant ── Inner { core, keeping }
//!      requests ──▶ read, write │ control, grow, bitmap ◀── operators
//!                               ▼
//!        keeping:  copies | parity ── stripe ── log: partial | records
//!                               ▼
//!        core:  roster  publish  superblocks  bits  flush  agreement  gate
//!        lane:  intent  ranges
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `core` | the parts that all arrays share, and the named transitions by which they change |
//! | `roster/` | the members and their roles |
//! | `publish/`, `superblocks` | writing superblocks to the members, in order; their contents |
//! | `flush/` | flushing the members, and the proofs that a log needs to forget |
//! | `metadata` | writing metadata on many members at once |
//! | `bits`, `intent` | the write-intent bitmap: its pages; in memory |
//! | `bad` | md's bad-block logs, kept up to date |
//! | `array_id` | the identity that an array's proofs carry |
//! | `agreement`, `gate` | where members agree; whether superblocks say "active", and whether the array is stopped |
//! | `lane` | the state of stripes: open or not, locks, bits; and the messages that change it |
//! | `keeping` | a way of keeping data, as a trait |
//! | `copies/`, `parity/` | its two implementations |
//! | `stripe/` | rows of a stripe in memory, writes cut into units (pure) |
//! | `log/` | a log that closes the write hole, as a trait; its two implementations |
//! | `read`, `write` | the steps around every failed read, and around every change of data |
//! | `behind` | writes that write-mostly members carry out after the answer |
//! | `job`, `scrub`, `sync`, `compare`, `pass`, `work`, `throttle` | resync, recovery, scrub: state, choice, execution, rate |
//! | `upkeep` | the array's own tasks: marking it clean, clearing bits |
//! | `control`, `grow`, `bitmap`, `status` | orders of an operator; the array's status |
//! | `ranges`, `found` | locks, findings of a scrub |
//! | `shards/`, `shown` | the array on other shards: views of the members, reads, writes by leases; the home shard's part |
//! | `balance`, `fan` | the choice of a copy to read; payloads of reads from several members |
//!
//! The order of durable steps is enforced by values: a write goes to members only under a [`write::Guard`], and
//! its result is a [`write::Finished`]; a log's record needs [`publish::CountedOn`], an entry of partial parity
//! [`publish::RecordedFrontier`], and a log forgets only by a [`flush::Durable`]; only [`core::Core::promote`]
//! makes a member in sync.
//!
//! There are two coordinates: bytes of the array, for clients; and *sync bytes*, for passes, the chunks of the
//! bitmap, and locks. For copies both are the same; with parity, a sync byte is a row of the stripe: the byte
//! at that offset of every member's data ([`layout`]).
//!
//! Invariants
//! * A write completes when every member in sync has it, or will have it before the next flush completes ([`behind`]). A
//!   member that lacks it is first made faulty by the superblocks of the others ([`core::Core::fence`]).
//! * Data is written only while the superblocks say "active" and the bits of its chunks are set.
//! * Copying and recomputing a stripe happen under a lock that keeps writes out ([`ranges`]).
//! * A member without which data would be unreadable is never taken out: its errors are errors of the request.
//! * A request that its caller drops still completes ([`crate::background`]).
//!
//! Such an array lives on one thread, so nothing here is locked. Other shards read and write healthy arrays by themselves
//! ([`shards`]).
//!
//! Source: Linux `drivers/md/{md.c,raid1.c,raid10.c,raid5.c,md-bitmap.c}` for the format of members.

mod admit;
mod agreement;
mod array_id;
mod bad;
mod balance;
mod behind;
mod bitmap;
mod bits;
mod compare;
mod control;
mod copies;
mod core;
mod fan;
mod flush;
mod found;
mod gate;
mod grow;
mod history;
mod holes;
mod intent;
mod job;
mod keeping;
mod kind;
mod lane;
mod layout;
mod leftovers;
mod log;
mod metadata;
#[cfg(test)]
mod misuse;
mod parity;
mod pass;
mod publish;
mod ranges;
mod read;
mod retest;
mod roster;
mod scrub;
mod shards;
mod shown;
mod status;
mod stripe;
mod superblocks;
mod sync;
mod throttle;
mod upkeep;
mod work;
mod write;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Io, Limits, Op, Span};
use braid_md::{Resync, Superblock};
use braid_mem::Pool;

use crate::clock::Clock;
use crate::{Device, Extents, Pending};

use self::core::{Core, Follower, Notes};
use agreement::Agreement;
use array_id::ArrayId;
use copies::Copies;
use flush::Flushes;
use gate::Gate;
use keeping::{Inner, Keeping};
use lane::Lane;
use log::Log;
use parity::Parity;
use publish::Publisher;
use roster::Roster;
use shards::Branches;
use work::Work;

pub use bitmap::BitmapKind;
pub use control::{BY_ORDER, ControlError};
pub use found::{Mismatch, MismatchMember};
pub use history::{JobRecord, JobState};
pub use intent::StartingBitmap;
pub use job::{JobStatus, LastScrub};
pub use keeping::CacheStatus;
pub use kind::JobKind;
pub use layout::Layout;
pub use log::{Consistency, LogCost, LogSetup, RestartError};
pub use parity::STRIPE_CACHE;
pub use retest::Retested;
pub use roster::{MemberState, NewMember, REPLACED_BY};
pub use scrub::{ScrubFound, ScrubOrder, ScrubPlace};
pub use shards::{Branch, BranchId, Cause, Home, View};
pub use status::{BitmapStatus, MemberStatus, Status};
pub use throttle::Speed;

/// Memory for superblocks and the bitmap's pages, and for passes. It is the array's own, so requests that wait
/// for metadata cannot have used it up.
const METADATA_POOL: usize = 1 << 20;

/// The parts of an array.
pub struct Setup {
    /// The place of data and redundancy.
    pub layout: Layout,
    /// The members that are there, spares included.
    pub members: Vec<NewMember>,
    /// The superblock of the freshest member, whose array part is used; none for an array without superblocks.
    pub array: Option<Superblock>,
    /// The write-intent bitmap.
    pub bitmap: Option<StartingBitmap>,
    /// The extent to which the copies agree.
    pub resync: Resync,
    /// The log that closes the write hole; only with parity.
    pub log: Option<LogSetup>,
    /// Memory for stripes in flight, in bytes; only with parity. At least twice the memory of the largest unit.
    pub stripe_cache: usize,
    /// Nothing may be written, not even superblocks.
    pub read_only: bool,
    /// The clock.
    pub clock: Rc<dyn Clock>,
    /// Limits of passes over the array.
    pub speed: Speed,
}

/// An array that survives the loss of members. Cheap to clone; all clones are the same array.
#[derive(Clone)]
pub struct Redundant {
    inner: Rc<Inner>,
}

impl Redundant {
    /// Joins the members.
    ///
    /// The array answers requests at once; [`Redundant::run`] must be polled beside them.
    ///
    /// # Errors
    /// There is no memory for metadata and passes.
    ///
    /// # Panics
    /// If the setup contradicts itself: a role is out of range or taken twice, or a bitmap does not cover the
    /// array.
    pub fn new(setup: Setup) -> std::io::Result<Redundant> {
        let size = setup.layout.sync_size();
        if let Some(covered) = setup.bitmap.as_ref().map(|start| start.bitmap.header.sync_size) {
            assert!(covered >= size, "a bitmap of {covered} bytes for an array of {size}");
        }
        let limits = limits_of(&setup);
        let (id, count) = (ArrayId::next(), setup.layout.members());
        let log = match &setup.layout {
            Layout::Copies(_) => None,
            Layout::Parity(_) => setup.log.map(|log| log::new(id, log, count)),
        };
        let keeping: Box<dyn Keeping> = match &setup.layout {
            Layout::Copies(geometry) => Box::new(Rc::new(Copies::new(Arc::clone(geometry)))),
            Layout::Parity(geometry) => {
                let parity = Parity::new(geometry.clone(), setup.stripe_cache, log.clone())?;
                Box::new(Rc::new(parity))
            }
        };
        let floor = match &setup.layout {
            Layout::Copies(_) => work::FLOOR_OF_COPIES,
            Layout::Parity(_) => parity::MOST_ZEROES as usize,
        };
        let has_partial_log = log.as_ref().is_some_and(|log| log.consistency() == Consistency::Ppl);
        let core = Core {
            id,
            roster: Roster::new(id, count, setup.members),
            gate: Gate::default(),
            lane: Lane::new(setup.bitmap),
            agreement: Agreement::new(setup.resync),
            publisher: Publisher::new(setup.array),
            flushes: Flushes::default(),
            behind: Rc::default(),
            branches: Branches::default(),
            follower: log.map(|log: Rc<dyn Log>| log as Rc<dyn Follower>),
            has_partial_log,
            background: Rc::default(),
            work: Work::new(setup.speed, floor)?,
            clock: setup.clock,
            limits,
            read_only: setup.read_only,
            metadata_pool: Pool::new(METADATA_POOL)?,
            layout: RefCell::new(setup.layout),
            notes: Notes::default(),
        };
        core.reconsider();
        if core.gate.is_degraded() || core.names_others() {
            // A missing member may be an event ahead, by superblocks that a crash interrupted.
            core.publisher.leave_behind(core.publisher.events() + 1);
        }
        Ok(Redundant { inner: Rc::new(Inner { core: Rc::new(core), keeping }) })
    }

    /// Repairs the effects of a crash, by the log. To be awaited before the first request. Writes only if a
    /// repair is needed.
    ///
    /// The metadata that assembly read may be in members' caches only, if a process was killed. It is flushed
    /// before the repair relies on it: otherwise a power cut could remove a record of which a half is in place.
    ///
    /// # Errors
    /// [`RestartError`]: the array must not be used.
    pub async fn restart(&self) -> Result<(), RestartError> {
        let Inner { core, keeping } = &*self.inner;
        if !core.read_only {
            let why = "a flush of the last members failed".to_owned();
            let _flushed = core.flush().await.map_err(|_| RestartError::Write { why })?;
        }
        if let Some(note) = keeping.restart(&self.inner).await? {
            core.note(note);
            let why = "the superblocks could not be written".to_owned();
            core.publish().await.map(|_published| ()).map_err(|_| RestartError::Write { why })?;
        }
        Ok(())
    }
}

fn limits_of(setup: &Setup) -> Limits {
    let members = setup.members.iter().map(|member| *member.dev.limits());
    let combined = Limits::combine(members);
    let stripe = u32::try_from(setup.layout.stripe()).unwrap_or(0);
    let has_parity = matches!(setup.layout, Layout::Parity(_));
    Limits {
        discard: if has_parity { combined.unmaps_zeroes } else { combined.discard },
        size: setup.layout.size(),
        optimal_io: if stripe == 0 { combined.optimal_io } else { stripe },
        read_only: setup.read_only,
        // A write may wait for a pass, for bits, or for another write.
        immediate: false,
        ..combined
    }
}

impl Device for Redundant {
    fn limits(&self) -> Limits {
        self.inner.core.limits
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        match io.op {
            Op::Read => self.inner.start_read(io),
            Op::Flush => self.inner.core.start_flush(io),
            Op::Write | Op::Discard | Op::WriteZeroes => self.inner.keeping.write(&self.inner, io),
        }
    }

    fn extents(&self, span: Span) -> Extents {
        self.inner.keeping.extents(&self.inner, span)
    }
}
