//! Two shards and one member that fails: every order of the view's arrival, of its acknowledgement, and of a read on the
//! other shard.
//!
//! ```text
//!   home    write ── fails on member 0 ── view ─╮         ╭─▶ seen ── answered
//!   other          read?          read?         ╰─▶ taken ╯    read: the write
//! ```
//!
//! Two shards that write the same place: every order in which members store the writes that they were asked for.
//!
//! ```text
//!   home    write 1 ──▶ member 0, member 1
//!   other   write 2 ──▶ member 0, member 1        both store the same one last
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use braid_array::Role;
use braid_array::geometry::Raid1;
use braid_block::{Errno, Flags, Io, Limits, Op};
use braid_engine::canary::{Canary, plant};
use braid_engine::redundant::{
    Branch, BranchId, Cause, Home, Layout, NewMember, Redundant, STRIPE_CACHE, Setup, Speed, View,
};
use braid_engine::{Dev, Device, Pending};
use braid_md::Resync;
use braid_mem::Pool;
use braid_sim::found::StoppedClock;

const SIZE: u64 = 4096;

#[derive(Clone, Copy, Debug)]
enum Step {
    ViewArrives,
    HomeHears,
    Read,
}

/// Memory of one value, which may refuse writes, or store them later.
#[derive(Clone, Default)]
struct Disk {
    value: Rc<Cell<u8>>,
    is_broken: Rc<Cell<bool>>,
    is_late: Rc<Cell<bool>>,
    /// Writes that are not stored yet.
    asked: Rc<RefCell<Vec<Asked>>>,
}

type Asked = (u8, Rc<Cell<bool>>);

impl Disk {
    /// Stores one of the writes that it was asked for: the first or the last one.
    fn store(&self, is_first: bool) {
        let mut asked = self.asked.borrow_mut();
        let next =
            if is_first { (!asked.is_empty()).then(|| asked.remove(0)) } else { asked.pop() };
        if let Some((value, is_stored)) = next {
            self.value.set(value);
            is_stored.set(true);
        }
    }
}

impl Device for Disk {
    fn limits(&self) -> Limits {
        Limits { volatile: true, ..Limits::new(SIZE, 512) }
    }

    fn start(&self, mut io: Io) -> Pending {
        let result = match io.op {
            Op::Write if self.is_broken.get() => Err(Errno::IO),
            Op::Write if self.is_late.get() => {
                let is_stored = Rc::<Cell<bool>>::default();
                self.asked.borrow_mut().push((io.payload.to_vec()[0], Rc::clone(&is_stored)));
                let mut io = Some(io);
                return Pending::task(poll_fn(move |_| match is_stored.get() {
                    true => {
                        Poll::Ready(io.take().expect("polled until it is ready").complete(Ok(())))
                    }
                    false => Poll::Pending,
                }));
            }
            Op::Write => {
                self.value.set(io.payload.to_vec()[0]);
                Ok(())
            }
            Op::Read => {
                io.payload.bufs_mut().iter_mut().for_each(|buf| buf.fill(self.value.get()));
                Ok(())
            }
            _ => Ok(()),
        };
        Pending::ready(io.complete(result))
    }
}

/// A way home that takes no time.
struct AtOnce(Redundant);

impl Home for AtOnce {
    fn start(&self, io: Io, cause: Cause) -> Pending {
        self.0.start_at_home(io, cause)
    }

    fn left(&self) {
        self.0.other_left();
    }
}

fn setup(disks: &[Disk]) -> Setup {
    let member = |(number, disk): (u16, &Disk)| {
        NewMember::unrecorded(number.to_string(), Dev::new(disk.clone()), Role::new(number))
    };
    Setup {
        layout: Layout::Copies(Arc::new(Raid1::new(SIZE, disks.len()).unwrap())),
        members: (0..).zip(disks).map(member).collect(),
        array: None,
        bitmap: None,
        resync: Resync::Clean,
        log: None,
        stripe_cache: STRIPE_CACHE,
        read_only: false,
        clock: Rc::new(StoppedClock),
        speed: Speed::default(),
    }
}

type Views = Rc<RefCell<VecDeque<(BranchId, Arc<View>)>>>;

/// An array of two members, and a branch on another shard that has its first view.
struct World {
    disks: [Disk; 2],
    array: Redundant,
    branch: Dev,
    taker: Branch,
    views: Views,
    taken: VecDeque<(BranchId, u64)>,
    pool: Pool,
}

impl World {
    fn new() -> World {
        let disks = <[Disk; 2]>::default();
        let array = Redundant::new(setup(&disks)).unwrap();
        let views = Views::default();
        let sent = Rc::clone(&views);
        array.add_branch(move |branch, view| sent.borrow_mut().push_back((branch, view)));
        let taker = Branch::new(setup(&disks), Box::new(AtOnce(array.clone()))).unwrap();
        let (branch, pool) = (Dev::new(taker.clone()), Pool::new(1 << 16).unwrap());
        let mut world = World { disks, array, branch, taker, views, taken: VecDeque::new(), pool };
        world.view_arrives();
        world.home_hears();
        world
    }

    fn view_arrives(&mut self) {
        if let Some((branch, view)) = self.views.borrow_mut().pop_front() {
            self.taker.take(branch, &view);
            self.taken.push_back((branch, view.number()));
        }
    }

    fn home_hears(&mut self) {
        if let Some((branch, number)) = self.taken.pop_front() {
            self.array.has_seen(branch, Some(number));
        }
    }

    fn read(&self) -> u8 {
        let mut read = self.branch.start(Io::read(0, self.pool.get(512).unwrap()));
        let Poll::Ready(done) = poll(&mut read) else { panic!("a read that waits") };
        done.result.expect("a read");
        done.payload.to_vec()[0]
    }
}

fn poll(pending: &mut Pending) -> Poll<braid_block::Completion> {
    Pin::new(pending).poll(&mut Context::from_waker(Waker::noop()))
}

fn write_of(pool: &Pool, value: u8) -> Io {
    let mut buf = pool.get(512).unwrap();
    buf.fill(value);
    Io::write(0, buf, Flags::NONE)
}

/// Writes while member 0 fails, with `steps` in this order. Returns what is wrong.
fn run(steps: &[Step]) -> Result<(), String> {
    let mut world = World::new();
    world.disks[0].is_broken.set(true);
    let mut write = Dev::new(world.array.clone()).start(write_of(&world.pool, 1));
    let mut is_answered = false;
    let all = [Step::ViewArrives, Step::HomeHears].repeat(4);
    for step in steps.iter().chain(&all) {
        // The answer comes at the earliest moment.
        if !is_answered && let Poll::Ready(done) = poll(&mut write) {
            done.result.map_err(|error| format!("a write: {error}"))?;
            is_answered = true;
        }
        match step {
            Step::ViewArrives => world.view_arrives(),
            Step::HomeHears => world.home_hears(),
            Step::Read => {
                let read = world.read();
                if is_answered && read != 1 {
                    return Err(format!("{step:?} of {steps:?}: {read} after the answer"));
                }
            }
        }
    }
    match (is_answered, world.read()) {
        (true, 1) => Ok(()),
        found => Err(format!("at the end of {steps:?}: {found:?}")),
    }
}

/// Returns the first fault in all orders of `count` steps.
fn any_order(count: u32) -> Result<(), String> {
    const STEPS: [Step; 3] = [Step::ViewArrives, Step::HomeHears, Step::Read];
    for number in 0..3usize.pow(count) {
        let step = |at| STEPS[number / 3usize.pow(at) % 3];
        run(&(0..count).map(step).collect::<Vec<Step>>())?;
    }
    Ok(())
}

#[test]
fn no_read_on_another_shard_misses_a_write_that_was_answered() {
    any_order(5).unwrap();
}

#[test]
fn without_the_wait_for_other_shards_a_read_misses_it() {
    plant(Some(Canary::ShardsNotWaitedFor));
    let found = any_order(3);
    plant(None);
    assert!(found.expect_err("a fault").contains("after the answer"));
}

/// Both shards write the same block, the first of them `is_home_first`; members store what they were asked for in the order
/// of `steps`: of which member, and the first or the last of what it has.
fn write_twice(is_home_first: bool, steps: &[(usize, bool)]) -> Result<(), String> {
    let world = World::new();
    let home = Dev::new(world.array.clone());
    // From the first write on the array is active, and the other shard may write.
    let Poll::Ready(_) = poll(&mut home.start(write_of(&world.pool, 9))) else {
        panic!("a write that waits")
    };
    world.disks.iter().for_each(|disk| disk.is_late.set(true));
    let start = |is_home: bool| match is_home {
        true => home.start(write_of(&world.pool, 1)),
        false => world.branch.start(write_of(&world.pool, 2)),
    };
    let mut writes = [is_home_first, !is_home_first].map(|is_home| (start(is_home), false));
    let mut poll_all = || {
        for (write, is_over) in &mut writes {
            *is_over = *is_over || poll(write).is_ready();
        }
        writes.iter().all(|(_, is_over)| *is_over)
    };
    for (member, is_first) in steps {
        world.disks[*member].store(*is_first);
        poll_all();
    }
    for _ in 0..4 {
        world.disks.iter().for_each(|disk| disk.store(true));
        poll_all();
    }
    let values = world.disks.each_ref().map(|disk| disk.value.get());
    match (poll_all(), values) {
        (true, [1, 1] | [2, 2]) => Ok(()),
        found => Err(format!("home first: {is_home_first}, {steps:?}: {found:?}")),
    }
}

/// Returns the first fault in all orders of four steps.
fn write_twice_in_any_order() -> Result<(), String> {
    const STEPS: [(usize, bool); 4] = [(0, true), (0, false), (1, true), (1, false)];
    for number in 0..2 * 4usize.pow(4) {
        let steps: Vec<_> = (0..4).map(|at| STEPS[number / 4usize.pow(at) % 4]).collect();
        write_twice(number >= 4usize.pow(4), &steps)?;
    }
    Ok(())
}

#[test]
fn two_shards_that_write_a_block_do_so_one_after_the_other() {
    write_twice_in_any_order().unwrap();
}

#[test]
fn without_leases_members_store_different_writes_last() {
    plant(Some(Canary::BlocksNotLeased));
    let found = write_twice_in_any_order();
    plant(None);
    assert!(found.expect_err("a fault").contains("(true, ["));
}
