//! Shards beside the one that the array lives on, which read and write the members by themselves.
//!
//! ```text
//!   a client's request ── drawn ─┬─▶ the array
//!                                ├─▶ Branch 0 ──▶ its disks, or Inbox ╌╌▶ the array
//!                                └─▶ Branch 1 ──▶ ...     ◀╌╌ Inbox ╌╌ views
//! ```
//!
//! All run on one thread and one clock. Messages between two shards keep their order and take a while that is drawn, so
//! that reads, writes and views meet in any order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use braid_block::{Completion, Io, Limits, Op, Span};
use braid_engine::assembled::Assembled;
use braid_engine::redundant::{Branch, Cause, Home, Redundant};
use braid_engine::{Dev, Device, Extents, Pending, Signal};
use braid_nbd::protocol::ReplyStyle;

use crate::found::{Frame, build_branch, build_nested};
use crate::scenario::{Act, Connection, End, Life, Probe, Request, Way, What};
use crate::spec::Spec;
use crate::{Handle, Rng};

/// The longest time that a message takes, in nanoseconds: usually, and to a shard that is busy with something else.
const LATE_NS: u64 = 300_000;
const VERY_LATE_NS: u64 = 3_000_000;

/// The most shards beside the first.
const MOST: u64 = 3;

/// Blocks at the start of the array that are written while a member fails writes, and read.
const PLACES: u64 = 8;

/// Blocks that the other writes are spread over.
const MANY: u64 = 200;

/// Gives `life` other shards; and in most cases clients that write, and read at once what they wrote, while
/// * a member fails writes: the news of it must reach the other shards before;
/// * or a member keeps a write for a while, until after a member is filled, or the array is quiet: that must wait for it.
pub(crate) fn some(rng: &mut Rng, spec: &Spec, life: &mut Life) {
    life.shards = rng.within(1..=MOST) as usize;
    let disk = rng.index(spec.members);
    let at_ns = match rng.below(8) {
        0..3 => fails_writes(rng, disk, life),
        3..7 => keeps_a_write(rng, disk, life),
        _ => return,
    };
    life.acts.sort_by_key(|act| act.at_ns);
    for _ in 0..rng.within(1..=2) {
        let comes_ns = at_ns.saturating_sub(rng.below(300_000));
        life.connections.push(reader(rng, comes_ns));
    }
}

/// Returns when.
fn fails_writes(rng: &mut Rng, disk: usize, life: &mut Life) -> u64 {
    let at_ns = rng.below(3_000_000);
    let (disk, block, blocks) = (Some(disk), 0, 2 * PLACES);
    let what = What::Full { disk, block, blocks, for_ns: 4_000_000 };
    life.acts.push(Act { at_ns, what });
    at_ns
}

/// Nothing else happens: other shards write to whole arrays only. Returns when.
fn keeps_a_write(rng: &mut Rng, disk: usize, life: &mut Life) -> u64 {
    // The first write has superblocks written, which takes a while.
    let at_ns = 5_000_000 + rng.below(3_000_000);
    // Longer than most members are filled, and than an array is to be quiet.
    let (op, count, for_ns) = (Some(Op::Write), 1, Some(900_000_000));
    life.acts = vec![Act { at_ns, what: What::Hang { disk, op, count, for_ns } }];
    if rng.percent(60) {
        let what = What::Replace { pick: rng.next_u64() };
        life.acts.push(Act { at_ns: at_ns + 100_000 + rng.below(300_000), what });
    }
    let comes_ns = at_ns - 5_000_000 + rng.below(1_000_000);
    life.connections = vec![writer(rng, comes_ns)];
    life.end = End::Rest;
    let late = |rng: &mut Rng| Probe {
        event: rng.within(60..=500),
        way: [Way::All, Way::Nothing, Way::Blocks, Way::Mixed][rng.index(4)],
        loses: rng.percent(30),
        again: 0,
        dice: rng.next_u64(),
    };
    life.probes.extend((0..4).map(|_| late(rng)));
    at_ns
}

/// A client that writes a block, and reads it when that is answered.
fn reader(rng: &mut Rng, at_ns: u64) -> Connection {
    let mut requests = Vec::new();
    for _ in 0..rng.within(6..=12) {
        let write = write(rng, 200_000, PLACES);
        let read = Request { pause_ns: 0, op: Op::Read, ..write };
        requests.extend([write, read, read]);
    }
    Connection { at_ns, style: ReplyStyle::Simple, depth: 1, requests, leaves: false }
}

/// A client that has several writes on their way, most of which are the last ones of their places.
fn writer(rng: &mut Rng, at_ns: u64) -> Connection {
    let requests = (0..rng.within(40..=80)).map(|_| write(rng, 300_000, MANY)).collect();
    Connection { at_ns, style: ReplyStyle::Simple, depth: 4, requests, leaves: false }
}

fn write(rng: &mut Rng, pause_ns: u64, places: u64) -> Request {
    Request {
        pause_ns: rng.below(pause_ns),
        op: Op::Write,
        block: rng.below(places),
        blocks: 1,
        fua: false,
        data: rng.next_u64(),
    }
}

type Message = Box<dyn FnOnce()>;

/// The messages to a shard, carried out in order.
#[derive(Clone, Default)]
struct Inbox {
    messages: Rc<RefCell<VecDeque<Message>>>,
    filled: Rc<Signal>,
}

impl Inbox {
    fn new(handle: &Handle, seed: u64) -> Inbox {
        let inbox = Inbox::default();
        let (this, sleeper, mut rng) = (inbox.clone(), handle.clone(), Rng::new(seed));
        let late_ns = if rng.percent(30) { VERY_LATE_NS } else { LATE_NS };
        handle.spawn("messages to a shard", async move {
            loop {
                this.filled.until(|| !this.messages.borrow().is_empty()).await;
                if rng.percent(60) {
                    sleeper.sleep(rng.below(late_ns)).await;
                }
                let message = this.messages.borrow_mut().pop_front();
                message.into_iter().for_each(|message| message());
            }
        });
        inbox
    }

    fn put(&self, message: impl FnOnce() + 'static) {
        self.messages.borrow_mut().push_back(Box::new(message));
        self.filled.notify();
    }
}

/// The array, until the life is over: then nothing of it is held by its own parts.
type Engine = Rc<RefCell<Option<Redundant>>>;

/// The way from a shard to the array.
struct ToArray {
    handle: Handle,
    engine: Engine,
    /// To the first shard, and back.
    there: Inbox,
    back: Inbox,
    crossing: Rc<Crossing>,
}

/// Referenced by each request that crosses, beside its owner and the ways.
struct Crossing;

impl Home for ToArray {
    fn start(&self, io: Io, cause: Cause) -> Pending {
        let answer: Rc<Cell<Option<Completion>>> = Rc::default();
        let answered = Rc::<Signal>::default();
        let (handle, engine, back) = (self.handle.clone(), self.engine.clone(), self.back.clone());
        let crossing = Rc::clone(&self.crossing);
        let (to, told) = (Rc::clone(&answer), Rc::clone(&answered));
        self.there.put(move || {
            let Some(array) = engine.borrow().clone() else { return };
            let pending = array.start_at_home(io, cause);
            handle.spawn("a request of another shard", async move {
                let completion = pending.await;
                back.put(move || {
                    to.set(Some(completion));
                    told.notify();
                    drop(crossing);
                });
            });
        });
        Pending::task(async move {
            let mut taken = None;
            answered
                .until(|| {
                    taken = answer.take();
                    taken.is_some()
                })
                .await;
            taken.expect("waited for")
        })
    }

    fn left(&self) {
        let engine = self.engine.clone();
        self.there.put(move || engine.borrow().iter().for_each(Redundant::other_left));
    }
}

/// The other shards of a life.
#[derive(Clone)]
pub(crate) struct Shards {
    all: Rc<All>,
}

/// A shard beside the first, and the messages to the first and to itself.
struct Other {
    branch: Branch,
    there: Inbox,
    back: Inbox,
}

struct All {
    others: Vec<Other>,
    engine: Engine,
    crossing: Rc<Crossing>,
}

impl Drop for All {
    /// Messages that a crash keeps from their shard hold the ways back, and these hold others.
    fn drop(&mut self) {
        self.engine.take();
        for Other { branch, there, back } in &self.others {
            branch.abandon();
            drop((there.messages.take(), back.messages.take()));
        }
    }
}

impl Shards {
    /// Makes the array that `assembled` describes, with the front and the shards of `life`. Returns also the device of
    /// its clients.
    pub(crate) fn build(
        assembled: &Assembled,
        frame: &Frame<'_>,
        life: &Life,
        open: &dyn Fn(usize) -> Dev,
    ) -> (Redundant, Dev, Shards) {
        let (array, dev) = build_nested(assembled, frame, life.front, open);
        let shards = Shards::start(&array, assembled, frame, life.shards, open);
        let dev = shards.before(dev, life.schedule ^ 0x5a4d);
        (array, dev, shards)
    }

    /// Starts `count` shards beside the one of `array`, which `assembled` describes.
    fn start(
        array: &Redundant,
        assembled: &Assembled,
        frame: &Frame<'_>,
        count: usize,
        open: &dyn Fn(usize) -> Dev,
    ) -> Shards {
        let (handle, engine) = (frame.handle, Engine::new(RefCell::new(Some(array.clone()))));
        let crossing = Rc::new(Crossing);
        let seed = |index: usize| frame.nonce ^ (0x5a4d_0000 + index as u64);
        let others = (0..count).map(|index| {
            let (there, back) =
                (Inbox::new(handle, seed(2 * index)), Inbox::new(handle, seed(2 * index + 1)));
            let (first, other) = (there.clone(), back.clone());
            let home = ToArray {
                handle: handle.clone(),
                engine: engine.clone(),
                there: there.clone(),
                back: back.clone(),
                crossing: Rc::clone(&crossing),
            };
            let branch = build_branch(assembled, frame, Box::new(home), open);
            handle.spawn("a branch", branch.run());
            let (taking, engine) = (branch.clone(), engine.clone());
            array.add_branch(move |id, view| {
                let (branch, first, engine) = (taking.clone(), first.clone(), engine.clone());
                other.put(move || {
                    branch.take(id, &view);
                    first.put(move || {
                        let engine = engine.borrow();
                        engine.iter().for_each(|one| one.has_seen(id, Some(view.number())));
                    });
                });
            });
            Other { branch, there, back }
        });
        let others = others.collect();
        Shards { all: Rc::new(All { others, engine, crossing }) }
    }

    /// Waits until no request crosses: the first shard ends last.
    pub(crate) async fn come_to_rest(&self, handle: &Handle) {
        let is_busy = || {
            Rc::strong_count(&self.all.crossing) > 1 + self.all.others.len()
                || !self.all.others.iter().all(|one| one.branch.is_idle())
        };
        while is_busy() {
            handle.sleep(LATE_NS).await;
        }
    }

    /// Has the shards open `dev`, a member that `array` has taken in as `label`.
    pub(crate) fn open(&self, array: &Redundant, label: &str, dev: &Dev) {
        let Some(serial) = array.serial(label) else { return };
        for Other { branch, back, .. } in &self.all.others {
            let (branch, dev) = (branch.clone(), dev.clone());
            back.put(move || branch.open(serial, dev));
        }
    }

    /// Returns the device of clients that come to any shard; `dev` is that of the first.
    fn before(&self, dev: Dev, seed: u64) -> Dev {
        let devs: Vec<Dev> =
            self.all.others.iter().map(|one| Dev::new(one.branch.clone())).collect();
        match devs.is_empty() {
            true => dev,
            false => Dev::new(AnyShard { first: dev, devs, rng: RefCell::new(Rng::new(seed)) }),
        }
    }
}

/// The volume on a shard that is drawn for each request.
struct AnyShard {
    first: Dev,
    devs: Vec<Dev>,
    rng: RefCell<Rng>,
}

impl Device for AnyShard {
    fn limits(&self) -> Limits {
        Limits { immediate: false, ..*self.first.limits() }
    }

    fn start(&self, io: Io) -> Pending {
        let index = self.rng.borrow_mut().index(self.devs.len() + 1);
        self.devs.get(index).unwrap_or(&self.first).start(io)
    }

    fn extents(&self, span: Span) -> Extents {
        let index = self.rng.borrow_mut().index(self.devs.len() + 1);
        self.devs.get(index).unwrap_or(&self.first).extents(span)
    }
}
