//! Requests that are followed from an export to its members, to see where the time of the slowest went.
//!
//! ```text
//!   export    ├──────────────── a request ────────────────┤
//!   member a      ├── part ──┤
//!   member b            ├─────── part ───────┤
//! ```
//!
//! A request is the thread's current one while it is started and while it is polled. What members are asked for
//! meanwhile is a part of it.
//!
//! Invariants
//! * While nothing is followed, a request costs one look at a flag.
//! * Memory is bounded: of the requests that were answered the slowest [`MOST`] are kept, of each the first [`PARTS`]
//!   parts.
//!
//! Deliberately absent: what an array does by itself, in passes and while it tidies its metadata, is a part of no
//! request. A write that another one carries out with its own has no parts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use braid_block::{Op, Span};

/// Requests that are kept.
const MOST: usize = 16;
/// Parts that are kept of a request.
const PARTS: usize = 64;

/// A request that was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The operation.
    pub op: Op,
    /// Bytes of the volume; none for a flush.
    pub span: Span,
    /// Time from the begin to the answer, or to the end of following.
    pub took: Duration,
    /// False for a request that had no answer yet when following ended.
    pub is_answered: bool,
    /// Operations of members on behalf of the request, in the order of their begin.
    pub parts: Vec<Part>,
    /// More parts than are kept.
    pub more_parts: u64,
}

/// An operation of a member on behalf of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The member's label.
    pub member: Arc<str>,
    /// The operation.
    pub op: Op,
    /// Bytes of the member; none for a flush.
    pub span: Span,
    /// When it was asked for, from the begin of the request on.
    pub after: Duration,
    /// Time from then to the answer, or to the end of following.
    pub took: Duration,
}

/// The result of following requests for some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests that were answered.
    pub requests: u64,
    /// The slowest of them and of those that have no answer, the slowest first.
    pub slowest: Vec<Followed>,
}

/// Follows the requests of a thread.
#[derive(Default)]
pub struct Follow {
    is_on: Cell<bool>,
    current: Cell<Option<u64>>,
    next: Cell<u64>,
    open: RefCell<BTreeMap<u64, Open>>,
    seen: RefCell<Seen>,
}

struct Open {
    began: Duration,
    /// With `took` of the parts that are not answered as zero.
    followed: Followed,
    /// By part: whether it is answered.
    answered: Vec<bool>,
}

/// A request, or a part of one, that is being followed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    Request(u64),
    Part(u64, usize),
}

/// Whose requests are followed.
pub(crate) enum Whose {
    Export,
    Member(Arc<str>),
}

thread_local! {
    static OF_THREAD: Rc<Follow> = Rc::default();
}

impl Follow {
    /// Returns the one of this thread.
    pub fn of_thread() -> Rc<Follow> {
        OF_THREAD.with(Rc::clone)
    }

    /// Follows the requests that begin from now on.
    pub fn start(&self) {
        self.open.borrow_mut().clear();
        self.seen.take();
        self.is_on.set(true);
    }

    /// Ends it at `now`, on the clock of the devices.
    pub fn stop(&self, now: Duration) -> Seen {
        self.is_on.set(false);
        for (_, open) in std::mem::take(&mut *self.open.borrow_mut()) {
            self.keep(open.ended(now, false));
        }
        self.seen.take()
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// A request begins, or a part of the current one.
    #[cold]
    pub(crate) fn begin(&self, whose: &Whose, op: Op, span: Span, now: Duration) -> Option<Mark> {
        match whose {
            Whose::Export => {
                let number = self.next.replace(self.next.get() + 1);
                let followed = Followed {
                    op,
                    span,
                    took: Duration::ZERO,
                    is_answered: false,
                    parts: Vec::new(),
                    more_parts: 0,
                };
                let open = Open { began: now, followed, answered: Vec::new() };
                self.open.borrow_mut().insert(number, open);
                Some(Mark::Request(number))
            }
            Whose::Member(label) => {
                let number = self.current.get()?;
                let mut all = self.open.borrow_mut();
                let Open { began, followed, answered } = all.get_mut(&number)?;
                if followed.parts.len() == PARTS {
                    followed.more_parts += 1;
                    return None;
                }
                let after = now.saturating_sub(*began);
                let (member, took) = (Arc::clone(label), Duration::ZERO);
                followed.parts.push(Part { member, op, span, after, took });
                answered.push(false);
                Some(Mark::Part(number, followed.parts.len() - 1))
            }
        }
    }

    /// Runs `work` on behalf of the request of `mark`; of a part, as it is.
    #[inline]
    pub(crate) fn within<T>(&self, mark: Option<Mark>, work: impl FnOnce() -> T) -> T {
        let Some(Mark::Request(number)) = mark else { return work() };
        let before = self.current.replace(Some(number));
        let result = work();
        self.current.set(before);
        result
    }

    /// The request, or the part, was answered.
    pub(crate) fn end(&self, mark: Mark, now: Duration) {
        match mark {
            Mark::Request(number) => {
                let Some(open) = self.open.borrow_mut().remove(&number) else { return };
                self.seen.borrow_mut().requests += 1;
                self.keep(open.ended(now, true));
            }
            Mark::Part(number, index) => {
                let mut all = self.open.borrow_mut();
                let Some(open) = all.get_mut(&number) else { return };
                open.answer(index, now);
            }
        }
    }

    fn keep(&self, followed: Followed) {
        let slowest = &mut self.seen.borrow_mut().slowest;
        let place = slowest.partition_point(|one| one.took >= followed.took);
        slowest.insert(place, followed);
        slowest.truncate(MOST);
    }
}

impl Open {
    fn answer(&mut self, index: usize, now: Duration) {
        let part = &mut self.followed.parts[index];
        part.took = now.saturating_sub(self.began + part.after);
        self.answered[index] = true;
    }

    fn ended(mut self, now: Duration, is_answered: bool) -> Followed {
        for index in 0..self.answered.len() {
            if !self.answered[index] {
                self.answer(index, now);
            }
        }
        Followed { took: now.saturating_sub(self.began), is_answered, ..self.followed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn member(name: &str) -> Whose {
        Whose::Member(name.into())
    }

    #[test]
    fn parts_belong_to_the_current_request() {
        let follow = Follow::default();
        let span = Span::new(0, 4096);
        follow.start();
        let request = follow.begin(&Whose::Export, Op::Write, span, 10 * MS);
        let (a, b) = follow.within(request, || {
            let a = follow.begin(&member("a"), Op::Write, span, 12 * MS).expect("a part");
            (a, follow.begin(&member("b"), Op::Write, span, 14 * MS).expect("a part"))
        });
        assert!(follow.begin(&member("a"), Op::Read, span, 15 * MS).is_none(), "none is current");
        follow.end(a, 16 * MS);
        follow.end(b, 20 * MS);
        follow.end(request.expect("it is followed"), 25 * MS);
        let hanging = follow.begin(&Whose::Export, Op::Flush, Span::new(0, 0), 30 * MS);
        follow.within(hanging, || follow.begin(&member("b"), Op::Flush, Span::new(0, 0), 31 * MS));
        let Seen { requests, slowest } = follow.stop(130 * MS);
        assert_eq!(requests, 1);
        let [hanging, written] = &slowest[..] else { panic!("{slowest:?}") };
        assert_eq!((hanging.took, hanging.is_answered), (100 * MS, false));
        assert_eq!((hanging.parts[0].after, hanging.parts[0].took), (MS, 99 * MS));
        assert_eq!((written.took, written.is_answered), (15 * MS, true));
        let parts = written.parts.iter().map(|one| (&*one.member, one.after, one.took));
        assert_eq!(parts.collect::<Vec<_>>(), [("a", 2 * MS, 4 * MS), ("b", 4 * MS, 6 * MS)]);
        // Late answers of what was followed once are nothing.
        follow.start();
        follow.end(b, 200 * MS);
        assert_eq!(follow.stop(200 * MS), Seen::default());
    }

    #[test]
    fn the_slowest_are_kept_and_memory_is_bounded() {
        let follow = Follow::default();
        follow.start();
        for ms in 0..100u32 {
            let mark = follow.begin(&Whose::Export, Op::Read, Span::new(0, 512), Duration::ZERO);
            follow.within(mark, || {
                for _ in 0..=PARTS {
                    let _ = follow.begin(&member("a"), Op::Read, Span::new(0, 512), Duration::ZERO);
                }
            });
            follow.end(mark.expect("it is followed"), MS * (ms * 37 % 100));
        }
        let Seen { requests, slowest } = follow.stop(Duration::ZERO);
        let took: Vec<u128> = slowest.iter().map(|one| one.took.as_millis()).collect();
        assert_eq!((requests, took), (100, (84..100).rev().collect()));
        assert!(slowest.iter().all(|one| (one.parts.len(), one.more_parts) == (PARTS, 1)));
    }
}
