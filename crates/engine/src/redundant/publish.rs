//! Superblocks and the bitmap's pages, to the members.
//!
//! ```text
//!   bitmap's first page (it counts events, too) ──▶ flush ──▶ logs ──▶ superblocks, durable
//! ```
//!
//! The flush is what makes a "clean" true: the data of all members is durable before any
//! superblock says that they agree.
//!
//! Invariants
//! * One writing at a time; what is asked for meanwhile is in the next one.
//! * [`Inner::fence`] returns when every change that was required before it is on the members
//!   that are left, or the array is broken.
//! * Before anybody relies on a member's absence, the others are two events ahead of it: kernels
//!   before 6.8 take a member that is one behind for as good as the others.
//! * Whoever takes a role, or has been filled, has a superblock that says so before those of the
//!   others do: who has which role is read from the freshest, how far it was filled from its own.
//! * No two members come to be two events apart that were one apart when the array was started:
//!   a crash then, the second in a row, would leave good ones out.
//! * A log forgets what superblocks do not make up for: a flush counts for it only when they say
//!   who is out, and its heads say of the resync what was done before the flush began.
//! * An array without superblocks has the same order of events; there is nothing to write.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Flags, Io, Payload, Span};
use braid_md::{Features, Resync, Role, Superblock, Timestamp};

use super::member::{Member, MemberState};
use super::{Inner, METADATA_POOL};
use crate::join_all;
use crate::signal::Signal;

/// What an area of metadata is written in, in bytes.
const PAGE: usize = 4096;

/// Members that failed, and why.
type Failures = Vec<(Rc<Member>, String)>;

/// What is to be recorded, and how far that is done.
pub(super) struct Publisher {
    /// The array's part of the superblocks; none for an array without.
    pub(super) array: RefCell<Option<Superblock>>,
    /// How many changes were required, and how many of them are on the members.
    required: Cell<u64>,
    done: Cell<u64>,
    /// Somebody is missing: the next superblocks are to be written twice.
    twice: Cell<bool>,
    busy: Cell<bool>,
    /// When the superblocks before the latest were written.
    before: Cell<Timestamp>,
    /// The events for which these times are: those of superblocks that are tried again stay.
    timed: Cell<u64>,
    /// How far the array was in sync when superblocks were last made, and when they were last
    /// stored.
    prepared: Cell<Resync>,
    recorded: Cell<Resync>,
    changed: Signal,
}

impl Publisher {
    pub(super) fn new(array: Option<Superblock>) -> Publisher {
        Publisher {
            array: RefCell::new(array),
            required: Cell::new(0),
            done: Cell::new(0),
            twice: Cell::new(false),
            busy: Cell::new(false),
            before: Cell::default(),
            timed: Cell::new(0),
            prepared: Cell::new(Resync::From(0)),
            recorded: Cell::new(Resync::From(0)),
            changed: Signal::default(),
        }
    }

    /// The state changed: what is answered from now on depends on its being recorded.
    pub(super) fn require(&self) {
        self.required.set(self.required.get() + 1);
    }

    /// A member is missing: the next superblocks are to be two events ahead of it.
    pub(super) fn be_twice(&self) {
        self.twice.set(true);
    }

    /// Whether everything is recorded.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.done.get() == self.required.get()
    }

    /// Waits for the turn to write metadata.
    pub(in crate::redundant) async fn turn(self: &Publisher) -> Turn<'_> {
        self.changed.until(|| !self.busy.get()).await;
        self.busy.set(true);
        Turn { publisher: self }
    }

    /// When the superblocks are written, and when those before them were.
    pub(super) fn times(&self) -> (Timestamp, Timestamp) {
        let updated = self.array.borrow().as_ref().map_or(Timestamp::default(), |one| one.updated);
        (updated, self.before.get())
    }

    /// How far superblocks that are stored count on the array's being in sync.
    pub(super) fn recorded(&self) -> Resync {
        self.recorded.get()
    }

    /// Up to where, in bytes, the array was in sync before the last flush began, if it is in sync
    /// as far as `resync` says now.
    pub(super) fn synced(&self, resync: Resync) -> u64 {
        let bytes = |resync| match resync {
            Resync::Clean => u64::MAX,
            Resync::From(from) => from,
        };
        bytes(self.prepared.get()).min(bytes(resync))
    }

    pub(super) fn events(&self) -> u64 {
        self.array.borrow().as_ref().map_or(0, |array| array.events)
    }
}

pub(in crate::redundant) struct Turn<'a> {
    publisher: &'a Publisher,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.publisher.busy.set(false);
        self.publisher.changed.notify();
    }
}

impl Inner {
    /// Records the state as it is now.
    pub(super) async fn publish(self: &Rc<Self>) {
        self.publisher.require();
        self.fence().await;
    }

    /// Returns when all that was required up to now is recorded.
    pub(super) async fn fence(self: &Rc<Self>) {
        let required = self.publisher.required.get();
        while self.publisher.done.get() < required && !self.broken.get() {
            let _turn = self.publisher.turn().await;
            if self.publisher.done.get() < required && !self.broken.get() {
                self.write_superblocks().await;
            }
        }
    }

    /// Writes until all members that are left have it.
    async fn write_superblocks(self: &Rc<Self>) {
        loop {
            let required = self.publisher.required.get();
            if self.publisher.array.borrow().is_none() || self.read_only {
                self.publisher.done.set(required);
                self.refuse_to_forget();
                break;
            }
            let twice = self.publisher.twice.replace(false);
            let mut failed = self.write_superblocks_once(!twice).await;
            if failed.is_empty() && twice {
                failed = self.write_superblocks_once(true).await;
            }
            if failed.is_empty() {
                self.publisher.done.set(required);
                break;
            }
            for (member, why) in failed {
                if !self.fail(&member, &why) {
                    self.note(format!("{}: {why}: nothing is written any more", member.label));
                    self.broken.set(true);
                    self.publisher.changed.notify();
                    return;
                }
            }
        }
        self.reopen();
    }

    /// Without superblocks nothing tells the next who brings the array up that a member was taken
    /// out and holds old data. So nothing is written any more: what both had is what both have.
    /// Memory is gone by then, and need not be told.
    fn refuse_to_forget(&self) {
        let members = self.members.borrow();
        let faulty = members.iter().find(|member| {
            member.state.get() == MemberState::Faulty && !member.dev.limits().volatile
        });
        if let Some(member) = faulty.filter(|_| !self.read_only && !self.broken.get()) {
            self.broken.set(true);
            self.note(format!(
                "{} failed, and without superblocks that would be forgotten: nothing is written \
                 any more",
                member.label
            ));
        }
    }

    /// Answers the members that failed. What one step found out is in the superblocks before the
    /// next is taken: no superblock counts on a member that could not be flushed. `is_known` if
    /// those on the members say already who is out.
    async fn write_superblocks_once(self: &Rc<Self>, is_known: bool) -> Failures {
        let failed = self.catch_up().await;
        if !failed.is_empty() {
            return failed;
        }
        let superblocks = self.next_superblocks();
        let counted_on = self.written_members();
        let failed = self.store_events().await;
        if !failed.is_empty() {
            return failed;
        }
        let members: Vec<Rc<Member>> =
            superblocks.iter().map(|(member, _)| Rc::clone(member)).collect();
        let written = self.data.log().map(|log| log.written());
        let failed = flush_all(&members).await;
        if !failed.is_empty() {
            return failed;
        }
        // Of who failed since the superblocks were made they do not say that it is out.
        let written = written.filter(|_| is_known && !self.publisher.twice.get());
        let failed = self.store_logs(written, counted_on).await;
        if !failed.is_empty() {
            return failed;
        }
        let failed = self.announce(&superblocks).await;
        if !failed.is_empty() {
            return failed;
        }
        // Counted only now: a member that misses two events by no fault of its own is left out.
        if let Some(array) = &mut *self.publisher.array.borrow_mut() {
            array.events += 1;
        }
        let prepared = self.publisher.prepared.get();
        let failed = self.write_to(superblocks).await;
        if failed.is_empty() {
            self.publisher.recorded.set(prepared);
        }
        failed
    }

    /// Has members in sync that are an event behind, as a crash left them, say what the others do.
    async fn catch_up(&self) -> Failures {
        let behind = {
            let array = self.publisher.array.borrow();
            let array = array.as_ref().expect("asked only where there are superblocks");
            let members = self.members.borrow();
            let next = |member: &Rc<Member>| {
                let own = member.superblock.borrow();
                let own = own.as_ref().filter(|own| own.events < array.events)?;
                Some((Rc::clone(member), superblock_of(member, array, own)))
            };
            members.iter().filter(|member| member.is_in_sync()).filter_map(next).collect()
        };
        self.write_to(behind).await
    }

    /// Has the log follow: whoever is new gets an empty one, and the heads count events. What was
    /// in place when the flush before began is durable: the first `written` units. `counted_on` are
    /// those that the superblocks to come count on, whatever became of them since.
    async fn store_logs(
        self: &Rc<Self>,
        written: Option<u64>,
        counted_on: Vec<Rc<Member>>,
    ) -> Failures {
        let Some(log) = self.data.log() else { return Failures::new() };
        written.into_iter().for_each(|written| log.is_flushed(written));
        let failed = self.store_empty_partial().await;
        if !failed.is_empty() {
            return failed;
        }
        let mut members = self.written_members();
        let is_there = |one: &Rc<Member>| members.iter().any(|member| Rc::ptr_eq(one, member));
        let others: Vec<_> = counted_on.into_iter().filter(|one| !is_there(one)).collect();
        members.extend(others);
        self.store_heads(self.publisher.events() + 1, members).await
    }

    /// Stores the bitmap's first page, which counts events, and all of it if somebody is new.
    async fn store_events(self: &Rc<Self>) -> Failures {
        let pages = match &mut *self.intent.borrow_mut() {
            Some(intent) => intent.pages_to_publish(),
            None => return Failures::new(),
        };
        let failed = self.store_pages(&pages).await;
        if let Some(intent) = &mut *self.intent.borrow_mut()
            && !failed.is_empty()
        {
            intent.welcome();
        }
        failed
    }

    /// Has who takes a role, or was filled, say so itself before anybody else counts on it: one
    /// after the other, since they would count on each other.
    async fn announce(&self, superblocks: &[(Rc<Member>, Superblock)]) -> Failures {
        let mut changed: Vec<_> =
            superblocks.iter().filter(|(member, next)| member.is_changed_by(next)).collect();
        // A replacement that is done first: its table has no place for the one it replaces.
        changed.sort_by_key(|(member, _)| !member.is_in_sync());
        for (index, (member, next)) in changed.iter().enumerate() {
            let mut next = next.clone();
            for (later, _) in &changed[index + 1..] {
                let role = later.superblock.borrow().as_ref().map(Superblock::role);
                next.roles[later.number as usize] = role.unwrap_or(Role::Spare);
            }
            let failed = self.write_to(vec![(Rc::clone(member), next)]).await;
            if !failed.is_empty() {
                return failed;
            }
        }
        Failures::new()
    }

    /// Writes `superblocks`, all at once.
    async fn write_to(&self, superblocks: Vec<(Rc<Member>, Superblock)>) -> Failures {
        let area = |(member, superblock): &(Rc<Member>, Superblock)| {
            (Rc::clone(member), superblock.super_offset, superblock.encode())
        };
        let failed =
            self.store_metadata("superblock", superblocks.iter().map(area).collect()).await;
        for (member, superblock) in superblocks {
            if !failed.iter().any(|(one, _)| Rc::ptr_eq(one, &member)) {
                *member.superblock.borrow_mut() = Some(superblock);
            }
        }
        failed
    }

    /// Stores bytes at offsets of members, many at once; `what` is for the message.
    pub(super) async fn store_metadata(
        &self,
        what: &str,
        areas: Vec<(Rc<Member>, u64, Vec<u8>)>,
    ) -> Failures {
        let mut failed = Failures::new();
        // No more at once than there is memory for.
        for areas in areas.chunks(METADATA_POOL / PAGE / 2) {
            let mut started = Vec::with_capacity(areas.len());
            for (member, offset, bytes) in areas {
                let payload = self.metadata(member, bytes).await;
                started.push(member.dev.start(Io::write(*offset, payload, Flags::FUA)));
            }
            for ((member, ..), done) in areas.iter().zip(join_all(started).await) {
                if let Err(errno) = done.result {
                    let why = format!("its {what} could not be written: {errno}");
                    failed.push((Rc::clone(member), why));
                }
            }
        }
        failed
    }

    /// What the superblock of each known member says next, with one more event.
    fn next_superblocks(&self) -> Vec<(Rc<Member>, Superblock)> {
        let members = self.members.borrow();
        let now = self.clock.unix_time();
        let mut array = self.publisher.array.borrow_mut();
        let array = array.as_mut().expect("asked only where there are superblocks");
        let events = array.events + 1;
        if self.publisher.timed.replace(events) != events {
            self.publisher.before.set(array.updated);
            array.updated = Timestamp { seconds: now.as_secs(), micros: now.subsec_micros() };
        }
        self.publisher.prepared.set(self.resync.get());
        array.resync = match (self.active.get(), self.resync.get()) {
            // What lies below is in sync but for what the log says of it.
            (true, Resync::From(from)) if from > 0 && self.data.has_partial() => Resync::From(from),
            (true, _) => Resync::From(0),
            (false, resync) => resync,
        };
        array.raid_disks = self.slots.borrow().len() as u32;
        for role in &mut array.roles {
            *role = if matches!(role, Role::Journal) { Role::Journal } else { Role::Spare };
        }
        for member in members.iter() {
            let number = member.number as usize;
            if array.roles.len() <= number {
                array.roles.resize(number + 1, Role::Spare);
            }
            array.roles[number] = member.md_role(array.version);
        }
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            let header = &mut intent.bitmap_mut().header;
            header.events = events;
            header.events_cleared = header.events_cleared.min(events);
        }
        let known = members.iter().filter(|member| member.is_known());
        known
            .filter_map(|member| {
                let own = member.superblock.borrow();
                let next = Superblock { events, ..superblock_of(member, array, own.as_ref()?) };
                Some((Rc::clone(member), next))
            })
            .collect()
    }

    /// `bytes` in memory of the array's own, filled up with zeroes to whole blocks of `member`.
    async fn metadata(&self, member: &Member, bytes: &[u8]) -> Payload {
        let block = member.dev.limits().logical_block as usize;
        let mut buf = self.metadata_pool.get_wait(bytes.len().next_multiple_of(block)).await;
        buf[..bytes.len()].copy_from_slice(bytes);
        buf[bytes.len()..].fill(0);
        buf.into()
    }

    /// Has the bits of `span` on the members.
    pub(super) async fn store_bits(self: &Rc<Self>, span: Span) {
        let is_there = || {
            let intent = self.intent.borrow();
            intent.as_ref().is_none_or(|intent| intent.is_on_members(span))
        };
        while !is_there() && !self.broken.get() {
            let turn = self.publisher.turn().await;
            if !is_there() {
                self.store_changed_pages().await;
            }
            drop(turn);
        }
    }

    /// Clears the bits that nobody needs, once the data that they stood for is durable.
    pub(super) async fn sweep_bits(self: &Rc<Self>) {
        let _turn = self.publisher.turn().await;
        let members = self.written_members();
        let flushes = members.iter().map(|member| member.dev.start(Io::flush()));
        let flushed = join_all(flushes.collect()).await;
        if flushed.iter().any(|one| one.result.is_err()) || self.degraded.get() {
            return; // Left to whoever comes upon the failure; the bits stay.
        }
        let events = self.publisher.events();
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            if !intent.sweep() {
                return;
            }
            intent.bitmap_mut().header.events_cleared = events;
        }
        self.store_changed_pages().await;
    }

    async fn store_changed_pages(self: &Rc<Self>) {
        let (pages, set) = match &mut *self.intent.borrow_mut() {
            Some(intent) => {
                let pages = intent.take_changed();
                let set: Vec<usize> = pages.iter().flat_map(|page| intent.set_in(*page)).collect();
                (pages, set)
            }
            None => return,
        };
        for (member, why) in self.store_pages(&pages).await {
            if !self.fail(&member, &why) {
                self.note(format!("{}: {why}: nothing is written any more", member.label));
                self.broken.set(true);
                return;
            }
        }
        if let Some(intent) = &mut *self.intent.borrow_mut() {
            intent.stored(set);
        }
    }

    /// Writes pages of the bitmap to every member that is written; answers those that failed.
    async fn store_pages(self: &Rc<Self>, pages: &[usize]) -> Failures {
        let mut failed = Failures::new();
        for page in pages {
            let bytes = match &*self.intent.borrow() {
                Some(intent) => {
                    let bitmap = intent.bitmap();
                    // Something else may follow behind the last page.
                    bitmap.page(*page as u64)[..bitmap.page_len(*page as u64)].to_vec()
                }
                None => return failed,
            };
            let area = |member: Rc<Member>| {
                let area = bitmap_area(&member)?;
                Some((member, area + (*page * PAGE) as u64, bytes.clone()))
            };
            let areas = self.written_members().into_iter().filter_map(area).collect();
            failed.extend(self.store_metadata("bitmap", areas).await);
        }
        failed
    }
}

/// Makes what was written to `members` durable; answers those that failed.
async fn flush_all(members: &[Rc<Member>]) -> Failures {
    let started = members.iter().map(|member| member.dev.start(Io::flush())).collect();
    let done = members.iter().zip(join_all(started).await);
    done.filter_map(|(member, done)| {
        let errno = done.result.err()?;
        Some((Rc::clone(member), format!("a flush failed: {errno}")))
    })
    .collect()
}

/// Where the bitmap lies on `member`, in bytes.
fn bitmap_area(member: &Member) -> Option<u64> {
    let superblock = member.superblock.borrow();
    let superblock = superblock.as_ref()?;
    superblock.super_offset.checked_add_signed(superblock.bitmap_offset?)
}

/// The array's part, with what is `member`'s own.
fn superblock_of(member: &Member, array: &Superblock, own: &Superblock) -> Superblock {
    let mut features = array
        .features
        .without(Features::RECOVERY_OFFSET)
        .without(Features::REPLACEMENT)
        .without(Features::RECOVERY_BITMAP)
        .without(Features::BAD_BLOCKS);
    if own.features.contains(Features::BAD_BLOCKS) {
        features = features.union(Features::BAD_BLOCKS);
    }
    let mut recovery_offset = None;
    if let MemberState::Recovering(done) = member.state.get() {
        features = features.union(Features::RECOVERY_OFFSET);
        recovery_offset = Some(done);
        if member.by_bitmap.get() {
            features = features.union(Features::RECOVERY_BITMAP);
        }
    }
    if member.replacement.get() {
        features = features.union(Features::REPLACEMENT);
    }
    Superblock {
        features,
        recovery_offset,
        version: own.version,
        super_offset: own.super_offset,
        data_offset: own.data_offset,
        data_size: own.data_size,
        device_uuid: own.device_uuid,
        device_number: member.number,
        corrected_reads: member.corrected.get(),
        write_mostly: own.write_mostly,
        fail_fast: own.fail_fast,
        bad_block_log: own.bad_block_log,
        bitmap_offset: own.bitmap_offset,
        ppl: own.ppl,
        raw: own.raw.clone(),
        ..array.clone()
    }
}
