//! Orders to a running volume as a whole: lock, erase, resize, save, restore.
//!
//! ```text
//!   control thread                                   every shard
//!   checks ──▶ begin ──lock──▶ no more writes of clients are let in; those under way are answered
//!                │  ◀─ quiet ─
//!                ▼
//!   works: on the RAM disk itself, or through the first shard's device, piece by piece
//!                │
//!                └──unlock──▶ unless it was locked before          exchange ──▶ a device of another size
//! ```
//!
//! Invariants
//! * One order at a time.
//! * While content is read as a whole, or changed as a whole, no client writes.
//! * An order by which clients would lose data is refused, with their names, unless it says `force`.
//!
//! Deliberately absent: writes of arrays' own (resync, scrub), which go on in a locked volume: they
//! change nothing that a client sees.

mod content;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_device::{Ram, RamError};
use braid_mem::Pages;
use braid_member::available_memory;
use braid_stack::{ByteSize, Node};
use braid_uring::Remote;

use super::all_shards::AllShards;
use super::exports::{self, Change, Exports};
use super::long_orders::LongOrders;
use super::media::Media;
use super::promises;
use super::spec::Spec;
use super::to_shard::Orders;
use crate::control::{Answer, ErrorCode, WholeOrder};
use crate::failure::Failure;
use crate::why::Why;

/// Time that clients that have ended may take to be gone, and the interval between two looks.
const LEAVING: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_millis(20);

/// The whole of a volume, as orders change it.
pub(super) struct Live {
    spec: Spec,
    media: Arc<Media>,
    shards: AllShards,
    /// As it came up.
    limits: Limits,
    exports: Arc<Exports>,
    locked: AtomicBool,
    is_to_end: AtomicBool,
    /// Orders that take long, also those for caches.
    pub(super) long_orders: LongOrders,
    /// Held by the order that is being carried out.
    one: Mutex<()>,
}

/// No client writes while this is there; then as before.
pub(super) struct Quiet<'a> {
    live: &'a Live,
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        if !self.live.is_locked() {
            self.live.shards.set_locked(false);
        }
    }
}

impl Live {
    pub(super) fn new(
        spec: &Spec,
        media: &Arc<Media>,
        exports: &Arc<Exports>,
        remotes: Vec<Remote>,
        limits: Limits,
    ) -> Live {
        let live = Live {
            spec: spec.clone(),
            media: Arc::clone(media),
            shards: AllShards::new(remotes),
            limits,
            exports: Arc::clone(exports),
            locked: AtomicBool::new(false),
            is_to_end: AtomicBool::new(false),
            long_orders: LongOrders::default(),
            one: Mutex::new(()),
        };
        // A RAM disk is not opened read-only: only the lock keeps writes out.
        if spec.read_only && !limits.read_only {
            live.locked.store(true, Ordering::Relaxed);
            live.shards.set_locked(true);
        }
        live
    }

    pub(super) fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed)
    }

    /// Returns the present limits of the volume.
    pub(super) fn media(&self) -> &Media {
        &self.media
    }

    pub(super) fn limits(&self) -> Limits {
        match self.media.ram() {
            Some(ram) => Limits { size: ram.size(), ..self.limits },
            None => self.limits,
        }
    }

    /// The file that the content is kept in between two lives.
    pub(super) fn image(&self) -> Option<&Path> {
        match &self.spec.stack.node {
            Node::Ram(ram) => ram.image.as_deref().map(Path::new),
            _ => None,
        }
    }

    /// Carries out an order. Each checks first, begins, and then changes something.
    pub(super) fn carry_out(&self, order: &WholeOrder, orders: &Orders) -> Answer {
        let _one = self.try_hold()?;
        match order {
            WholeOrder::Lock { force } => self.lock(*force, orders),
            WholeOrder::Unlock => self.unlock(orders),
            WholeOrder::Erase { force } => self.erase(*force, orders),
            WholeOrder::Resize { bytes } => self.resize(*bytes, orders),
            WholeOrder::Save { file, force } => self.save(file, *force, orders),
            WholeOrder::Restore { file, force } => self.restore(file, *force, orders),
        }
    }

    fn lock(&self, force: bool, orders: &Orders) -> Answer {
        let name = &self.spec.name;
        if self.is_locked() {
            return Ok(format!("{name} is locked already"));
        }
        let holders = self.exports.holders()?;
        if !holders.is_empty() && !force {
            return Err(Why::UsedWhileLocked { volume: name.clone(), users: holders }.into());
        }
        orders.begin()?;
        self.tell_clients(true)?;
        if let Err(why) = self.lock_shards() {
            self.tell_clients(false)?;
            return Err(why);
        }
        Ok(format!("{name} is locked: it cannot be written to"))
    }

    /// Notes that this process may keep completed writes from now on, which end with it.
    ///
    /// # Errors
    /// The note cannot be written.
    pub(super) fn keep_inside(&self) -> io::Result<()> {
        exports::keep_inside(&self.spec)
    }

    /// Has those refuse writes, or let them through, that the exports can tell: the block layer.
    fn tell_clients(&self, read_only: bool) -> Result<(), Failure> {
        let told = self.exports.follow(Change::ReadOnly(read_only));
        told.map(drop)
            .map_err(|error| Failure::failed(format!("the kernel could not be told: {error}")))
    }

    fn lock_shards(&self) -> Result<(), Failure> {
        let _quiet = self.quiet()?;
        self.shards.flush().map_err(|error| {
            Failure::failed(format!("what was written last could not be made durable: {error}"))
        })?;
        self.shards.hold_passes().map_err(|error| {
            self.shards.let_passes_go_on();
            Failure::failed(format!("its resync, recovery or scrub could not be stopped: {error}"))
        })?;
        self.locked.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn unlock(&self, orders: &Orders) -> Answer {
        let name = &self.spec.name;
        if self.spec.read_only {
            return Err(Why::UpReadOnly { volume: name.clone() }.into());
        }
        if !self.is_locked() {
            return Ok(format!("{name} is not locked"));
        }
        orders.begin()?;
        self.locked.store(false, Ordering::Relaxed);
        self.shards.set_locked(false);
        self.shards.let_passes_go_on();
        self.tell_clients(false)?;
        Ok(format!(
            "{name} is unlocked: it can be written to; NBD clients that came meanwhile connect again"
        ))
    }

    fn resize(&self, bytes: u64, orders: &Orders) -> Answer {
        let name = &self.spec.name;
        let (Some(ram), Node::Ram(told)) = (self.media.ram(), &self.spec.stack.node) else {
            return Err(Why::NotResizable { volume: name.clone() }.into());
        };
        let (old, wish) = (ram.size(), ByteSize(bytes));
        if bytes == old {
            return Ok(format!("{name} has {wish:#} already"));
        }
        self.refuse_locked()?;
        if bytes > old && !told.overcommit {
            promises::check(wish, &format!("{wish:#} for {name}"), promises::of_others(name))
                .map_err(|error| error.failure())?;
        }
        if told.preallocate && !told.huge && available_memory() < bytes.saturating_sub(old) {
            return Err(Why::NotFree { volume: name.clone(), bytes }.into());
        }
        // A client that knows the old size may send requests beyond the new end.
        let no_users = || if bytes < old { self.refuse_users(None, false) } else { Ok(()) };
        no_users()?;
        self.check_size(ram, bytes).map_err(|error| self.not_resized(ram, wish, &error))?;
        orders.begin()?;
        let quiet = if bytes < old { Some(self.quiet()?) } else { None };
        no_users()?;
        ram.resize(bytes).map_err(|error| self.not_resized(ram, wish, &error))?;
        if let Some(leaf) = self.media.ram_leaf() {
            self.shards.exchange(leaf).map_err(broken)?;
        }
        drop(quiet);
        let text = format!("{name} has {wish:#} now");
        let told = self.exports.follow(Change::Size(bytes)).map_err(|error| {
            Failure::failed(format!("{text}, but its device does not have that size yet: {error}"))
                .next("`losetup --set-capacity` on it")
        })?;
        Ok(std::iter::once(text).chain(told).collect::<Vec<_>>().join(": "))
    }

    /// Checks what the RAM disk checks when it is resized: it does so again when no client writes.
    fn check_size(&self, ram: &Ram, bytes: u64) -> Result<(), RamError> {
        let logical_block = ram.options().logical_block;
        if bytes == 0 || !bytes.is_multiple_of(logical_block.into()) {
            return Err(RamError::Size { size: bytes, logical_block });
        }
        if bytes > ram.most() {
            return Err(RamError::Map(io::ErrorKind::OutOfMemory.into()));
        }
        let end = self.shards.data_end(bytes, ram.size()).map_err(RamError::Map)?;
        end.map_or(Ok(()), |end| Err(RamError::Data { end }))
    }

    fn not_resized(&self, ram: &Ram, wish: ByteSize, error: &RamError) -> Failure {
        let (volume, bytes) = (self.spec.name.clone(), wish.bytes());
        let why = match error {
            RamError::Data { end } => Why::DataBehindEnd { volume, bytes, data_end: *end },
            RamError::Size { logical_block, .. } => {
                Why::NoMultiple { volume, bytes, block_bytes: u64::from(*logical_block) }
            }
            _ if bytes > ram.most() => Why::AboveMost { volume, bytes, most_bytes: ram.most() },
            error => {
                let next = match (error, ram.options().pages) {
                    (RamError::Lock(_), _) => "`prlimit --memlock=unlimited --pid` of its process",
                    (_, Pages::Pool) => "`sysctl vm.nr_hugepages=COUNT` makes the pool larger",
                    _ => "a smaller size",
                };
                let why = format!("{volume} is not resized to {wish:#}: {error}");
                return Failure::failed(why).next(next).code(ErrorCode::NoMemory);
            }
        };
        why.into()
    }

    /// Lets no other order begin.
    ///
    /// # Errors
    /// One is being carried out.
    pub(super) fn try_hold(&self) -> Result<MutexGuard<'_, ()>, Failure> {
        match self.one.try_lock() {
            Ok(one) => Ok(one),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(self.busy()),
        }
    }

    /// The refusal of an order while another is being carried out.
    pub(super) fn busy(&self) -> Failure {
        Why::AnotherOrder { volume: self.spec.name.clone() }.into()
    }

    /// Waits for the order that is being carried out, which ends soon if it has changed nothing yet, and
    /// lets none begin.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        self.is_to_end.store(true, Ordering::Relaxed);
        let held = self.one.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_to_end.store(false, Ordering::Relaxed);
        held
    }

    /// Returns true if the volume waits for the order that is being carried out, in order to end.
    pub(super) fn is_to_end(&self) -> bool {
        self.is_to_end.load(Ordering::Relaxed)
    }

    fn refuse_locked(&self) -> Result<(), Failure> {
        match self.is_locked() {
            false => Ok(()),
            true => Err(Why::Locked { volume: self.spec.name.clone() }.into()),
        }
    }

    /// `order` is what may be forced, if it may be.
    fn refuse_users(&self, order: Option<&'static str>, force: bool) -> Result<(), Failure> {
        let (volume, users) = (self.spec.name.clone(), self.users()?);
        if users.is_empty() || force {
            return Ok(());
        }
        Err(match order {
            Some(order) => Why::UsedUnlessForced { volume, users, order },
            None => Why::Used { volume, users },
        }
        .into())
    }

    /// Returns the users that could write, or see writes. Users that have just ended are waited for, and so are
    /// programs that look at every new device.
    fn users(&self) -> Result<Vec<String>, Failure> {
        let deadline = Instant::now() + LEAVING;
        loop {
            let users = self.exports.users()?;
            if users.is_empty() || Instant::now() >= deadline {
                return Ok(users);
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Lets no more writes of clients in, and waits until those under way are answered.
    fn quiet(&self) -> Result<Quiet<'_>, Failure> {
        let quiet = Quiet { live: self };
        self.shards.lock_and_wait().map_err(broken)?;
        Ok(quiet)
    }
}

/// The shards, or a file, could not do their part.
fn broken(error: io::Error) -> Failure {
    Failure::failed(error).next("`braid status` says how the volume is")
}
