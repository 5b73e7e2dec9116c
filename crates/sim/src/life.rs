//! The events in a life: connections, acts and operators, until every request is answered.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use braid_engine::Dev;
use braid_engine::redundant::{MemberState, MemberStatus};
use braid_export_nbd::Export;
use braid_md::Resync;
use braid_mem::Buf;

use crate::SimDisk;
use crate::brief::brief;
use crate::decay::check_decay;
use crate::found::Trouble;
use crate::load::Clients;
use crate::pipe::Pipe;
use crate::rest::{STEP_NS, check_at_rest, read_all};
use crate::scenario::{Act, End, Life};
use crate::stage::Stage;
use crate::verify::pool;

/// Memory that a connection receives into, in bytes.
const INBOX: usize = 16 << 10;
/// The longest time of a life beyond its acts, in steps of [`STEP_NS`].
const PATIENCE: u64 = 60_000;
/// The time that a life continues without requests before its end.
const LINGER: u64 = 120;

/// The actors of a life.
pub(crate) struct Acting {
    pub stage: Stage,
    pub trouble: Trouble,
    /// True if superblocks must record the findings at once.
    pub is_changed: bool,
    pub life: Life,
    pub is_last: bool,
    /// The number of acts so far.
    pub placed: Rc<Cell<u64>>,
}

/// Counts down to 0, and wakes the waiting task.
#[derive(Clone, Default)]
struct Left {
    count: Rc<Cell<usize>>,
    waiting: Rc<RefCell<Option<Waker>>>,
}

impl Left {
    fn one_more(&self) {
        self.count.set(self.count.get() + 1);
    }

    fn one_less(&self) {
        self.count.set(self.count.get() - 1);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    async fn none(&self) {
        poll_fn(|cx| {
            if self.count.get() == 0 {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Acting {
    pub(crate) async fn run(self) {
        let Acting { stage, trouble, .. } = &self;
        let handle = stage.handle.clone();
        if let Err(why) = stage.array.restart().await {
            if !stage.past.torn.is_any() {
                trouble.tell(&handle, format!("it is not restarted: {why}"));
            }
            return handle.halt();
        }
        stage.remember(&stage.array.status());
        handle.spawn("array", stage.array.run());
        // Before the first request is served: a read must not change its result when an absent member returns.
        if self.is_changed {
            let recorded = stage.array.record().await;
            if let (Err(why), false) = (recorded, stage.past.torn.is_any()) {
                trouble.tell(&handle, format!("the members are not recorded: {why}"));
            }
        }
        let dev = stage.dev.clone();
        let export = match Export::new(dev.clone(), pool(), "", Duration::from_secs(3600)) {
            Ok(export) => export,
            Err(why) => return trouble.tell(&handle, format!("no export: {why}")),
        };
        let (left, sessions) = (Left::default(), Left::default());
        self.connect(&export, &left, &sessions);
        self.operate(&left);
        self.guard();
        left.none().await;
        stage.tell_world("everybody is answered");
        if self.is_last {
            let checked = self.judge(&dev).await;
            trouble.note(&handle, checked);
        }
        if self.life.end != End::Rest {
            for _ in 0..LINGER {
                handle.sleep(STEP_NS).await;
            }
            return handle.halt();
        }
        export.stop().raise();
        sessions.none().await;
        stage.shards.come_to_rest(&handle).await;
        let flushed = stage.flush(&dev).await;
        trouble.note(&handle, flushed);
        stage.array.shut_down().await;
        let checked = self.check_down();
        trouble.note(&handle, checked);
    }

    /// Nothing may take for ever.
    fn guard(&self) {
        let (stage, trouble) = (self.stage.clone(), self.trouble.clone());
        let acts_ns = self.life.acts.last().map_or(0, |act| act.at_ns);
        let steps = PATIENCE + acts_ns / STEP_NS;
        stage.handle.clone().spawn("guard", async move {
            for _ in 0..steps / 20 {
                stage.handle.sleep(20 * STEP_NS).await;
            }
            let state = brief(&stage.array);
            trouble.tell(&stage.handle, format!("the life does not end: {state}"));
        });
    }

    /// Has clients come.
    fn connect(&self, export: &Export, left: &Left, sessions: &Left) {
        let excused = self.stage.clone();
        let clients = Clients {
            handle: self.stage.handle.clone(),
            oracle: Rc::clone(&self.stage.oracle),
            excuse: Rc::new(move |op, span| excused.may_fail(op, span)),
            timeline: self.stage.timeline.clone(),
        };
        for (index, plan) in self.life.connections.iter().enumerate() {
            let (clients, export, plan) = (clients.clone(), export.clone(), plan.clone());
            let (handle, trouble) = (self.stage.handle.clone(), self.trouble.clone());
            let (left, sessions) = (left.clone(), sessions.clone());
            left.one_more();
            self.stage.handle.spawn(format!("client {index}"), async move {
                handle.sleep(plan.at_ns).await;
                let (theirs, ours) = Pipe::pair(&handle);
                let (leaves, told, of) = (plan.leaves, trouble.clone(), handle.clone());
                let over = sessions.clone();
                sessions.one_more();
                handle.spawn(format!("session {index}"), async move {
                    // Production has a pool for inboxes alone, with room for each connection.
                    let end = match Buf::apart(INBOX) {
                        Ok(inbox) => export.serve(ours.clone(), inbox).await,
                        Err(why) => return told.tell(&of, format!("no inbox: {why}")),
                    };
                    ours.close();
                    if end.is_protocol_error() && !leaves {
                        told.tell(&of, format!("session {index}: {end}"));
                    }
                    over.one_less();
                });
                let result = clients.work(format!("client {index}"), theirs, plan).await;
                trouble.note(&handle, result);
                left.one_less();
            });
        }
    }

    /// Has acts happen at their times.
    fn operate(&self, left: &Left) {
        let (stage, left, placed) = (self.stage.clone(), left.clone(), Rc::clone(&self.placed));
        let acts: Vec<Act> = self.life.acts.clone();
        left.one_more();
        self.stage.handle.spawn("operator", async move {
            for Act { at_ns, what } in acts {
                let now_ns = stage.handle.now();
                stage.handle.sleep(at_ns.saturating_sub(now_ns)).await;
                if stage.act(what).await {
                    placed.set(placed.get() + 1);
                }
            }
            left.one_less();
        });
    }

    /// Gives the array what it is missing, waits until it is whole, and compares everything.
    async fn judge(&self, dev: &Dev) -> Result<(), String> {
        let Acting { stage, .. } = self;
        let gave_up = stage.past.torn.is_any();
        for _ in 0..PATIENCE / 10 {
            let status = stage.array.status();
            // A pass that is due may not have begun: members may answer in the call.
            let is_filled = |one: &MemberStatus| !matches!(one.state, MemberState::Recovering(_));
            let is_whole = status.in_sync.iter().all(|one| *one)
                && status.members.iter().all(is_filled)
                && status.job.is_none();
            let is_quiet = !status.active && status.resync == Resync::Clean;
            if is_whole && is_quiet && status.bitmap.is_none_or(|bitmap| bitmap.set == 0) {
                break;
            }
            if gave_up && status.broken {
                return Ok(());
            }
            let waits = |state| !matches!(state, MemberState::Faulty | MemberState::InSync);
            let has_spare = status.members.iter().any(|one| waits(one.state));
            if status.in_sync.contains(&false) && !has_spare {
                match stage.add_blank(None).await {
                    Ok(()) => {}
                    // Operators have used them up.
                    Err(why) if stage.shelf.borrow().blank.is_empty() => {
                        stage.tell_world(&why);
                        if is_quiet && status.job.is_none() {
                            break;
                        }
                    }
                    Err(why) => return Err(format!("a blank disk is not taken in: {why}")),
                }
            }
            stage.handle.sleep(STEP_NS).await;
        }
        let contents = match read_all(dev).await {
            Ok(contents) => contents,
            Err(_) if gave_up => return Ok(()),
            Err(why) => return Err(why),
        };
        {
            let mut oracle = stage.oracle.borrow_mut();
            let span = braid_block::Span::new(0, contents.len() as u64);
            let read = oracle.begin_read(span);
            oracle.end_read(read, Some(&contents)).map_err(|why| format!("at the end {why}"))?;
        }
        if gave_up {
            return Ok(());
        }
        let (disks, mut dice) = (stage.disks.borrow().clone(), stage.dice.borrow().clone());
        check_at_rest(&stage.spec, &stage.array, &disks, &contents, &mut dice, async {}).await?;
        check_decay(&stage.spec, &stage.array, &disks, &contents, &mut dice).await
    }

    /// Checks that nothing is left over when the volume is down.
    fn check_down(&self) -> Result<(), String> {
        let status = self.stage.array.status();
        if status.broken {
            return match self.stage.past.torn.is_any() {
                true => Ok(()),
                false => Err(format!("broken: {}", brief(&self.stage.array))),
            };
        }
        if status.active {
            return Err(format!("down, and not clean: {}", brief(&self.stage.array)));
        }
        let mut left = self.stage.array.leftovers();
        let lent = pool().total_bytes() - pool().free_bytes();
        if lent > 0 {
            left.push(format!("{lent} bytes of memory for requests"));
        }
        // What a disk works on that has not answered is kept for it.
        let is_asked = self.stage.disks.borrow().iter().any(SimDisk::is_asked);
        if is_asked || self.stage.opened.is_asked() {
            left.retain(|one| !one.contains(" bytes of "));
        }
        match left {
            left if left.is_empty() => Ok(()),
            left => Err(format!("left over when the volume is down: {}", left.join(", "))),
        }
    }
}

impl Stage {
    fn tell_world(&self, what: &str) {
        self.timeline.note(&self.handle, "world", || what.to_owned());
    }
}
