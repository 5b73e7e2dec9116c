//! Two shards and one member that fails: every order of the view's arrival, of its acknowledgement, and of a read on the
//! other shard.
//!
//! ```text
//!   home    write ── fails on member 0 ── view ─╮         ╭─▶ seen ── answered
//!   other          read?          read?         ╰─▶ taken ╯    read: the write
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
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

/// Memory of one value, which may refuse writes.
#[derive(Clone, Default)]
struct Disk {
    value: Rc<Cell<u8>>,
    is_broken: Rc<Cell<bool>>,
}

impl Device for Disk {
    fn limits(&self) -> Limits {
        Limits { volatile: true, ..Limits::new(SIZE, 512) }
    }

    fn start(&self, mut io: Io) -> Pending {
        let result = match io.op {
            Op::Write if self.is_broken.get() => Err(Errno::IO),
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

/// Writes while member 0 fails, with `steps` in this order. Returns what is wrong.
fn run(steps: &[Step]) -> Result<(), String> {
    let mut world = World::new();
    world.disks[0].is_broken.set(true);
    let mut buf = world.pool.get(512).unwrap();
    buf.fill(1);
    let mut write = Dev::new(world.array.clone()).start(Io::write(0, buf, Flags::NONE));
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
