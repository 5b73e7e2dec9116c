//! Comparing members: a resync makes them agree, a scrub reports whether they do.
//!
//! Windows end in any order. Their findings count when the frontier has passed them, so the findings of a scrub
//! that pauses or is interrupted are those below its frontier ([`super::scrub`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::found::Found;
use super::holes::MOST as MOST_OF_HOLE;
use super::keeping::Inner;
use super::kind::JobKind;
use super::layout::{OfSync, SyncByte, SyncSpan};
use super::pass::{End, Step, Walk};
use super::scrub::ScrubPlace;
use super::sync::fitting;
use crate::background::Later;

/// Wait before the next attempt of a resync that could not make members agree.
const AGAIN: Duration = Duration::from_secs(60);

impl Inner {
    /// Compares the members and, except for a check, makes them agree.
    pub(super) async fn compare(self: &Rc<Self>, kind: JobKind) {
        let core = &self.core;
        let is_resync = kind == JobKind::Resync;
        let comparing = Comparing {
            inner: Rc::clone(self),
            kind,
            total: SyncByte::new(core.layout.borrow().sync_size()),
            // A bitmap names the chunks that can differ; a scrub compares all.
            by_bitmap: is_resync && core.lane.has_bitmap(),
            is_stuck: Rc::default(),
            ahead: Rc::default(),
        };
        core.work.find_nothing();
        let order = core.work.order().filter(|_| !is_resync);
        let from = match order.as_ref().and_then(|order| order.from.as_ref()) {
            _ if is_resync => core.agreement.begin_pass(comparing.total),
            Some(place) if place.is_of(kind, comparing.total) => {
                core.work.find(place.found.clone().into());
                SyncByte::new(place.done)
            }
            _ => SyncByte::START,
        };
        let usual = core.work.speed();
        let own = order.and_then(|order| order.speed);
        own.into_iter().for_each(|speed| core.work.set_speed(speed));
        let end = self.pass(&comparing, from).await;
        // A limit that was set meanwhile stays.
        if own == Some(core.work.speed()) {
            core.work.set_speed(usual);
        }
        if end == End::Interrupted && !is_resync {
            self.scrub_is_interrupted(&comparing);
        }
        let is_stuck = comparing.is_stuck.get();
        let is_done = end == End::Done && comparing.is_as_large();
        let outcome = match end {
            End::Failed(why) => Err(why),
            _ if is_done && is_resync && is_stuck => {
                Err("not all members could be made to agree".to_owned())
            }
            _ => Ok(is_done),
        };
        if is_done {
            if is_resync {
                self.finish_resync(is_stuck);
            } else {
                let found = core.work.found();
                core.work.finish_request(kind, core.clock.unix_time());
                core.note(found.summary(kind));
            }
            // A stopped array has no next job.
            let _ = core.publish().await;
        }
        self.end_pass(outcome);
    }

    /// Pauses a scrub whose time is over. A scrub that is interrupted for another reason and is still wanted
    /// starts anew if the array has changed.
    fn scrub_is_interrupted(&self, comparing: &Comparing) {
        let core = &self.core;
        let is_same = comparing.is_as_large() && self.members_are_settled();
        let is_over = core.work.requested(core.clock.unix_time()).is_none();
        let is_its = core.work.order().is_some_and(|order| order.kind == comparing.kind);
        if !is_same {
            core.work.begin_anew();
        } else if is_its && core.work.is_held() {
            core.work.keep_place();
        } else if is_over
            && is_its
            && let Some(place) = core.work.pause(core.clock.unix_time())
        {
            let ScrubPlace { kind, done, total, .. } = place;
            core.note(format!("{kind} pauses at {done} of {total} bytes: its time is over"));
        }
    }

    fn finish_resync(self: &Rc<Self>, is_stuck: bool) {
        let core = &self.core;
        if core.agreement.end_pass() {
            core.note("the copies agree: resync done".to_owned());
            self.forget_needs();
        } else if is_stuck {
            core.note(format!(
                "the resync could not make all members agree; it is tried again in {} s",
                AGAIN.as_secs()
            ));
            core.work.put_off(core.clock.now() + AGAIN);
        }
    }
}

/// A comparison of members, over the sync bytes.
struct Comparing {
    inner: Rc<Inner>,
    kind: JobKind,
    /// End of the array when the comparison began.
    total: SyncByte,
    by_bitmap: bool,
    /// True if members could not be made to agree somewhere.
    is_stuck: Rc<Cell<bool>>,
    /// Findings of windows that are done before those below them, by their first byte.
    ahead: Rc<RefCell<BTreeMap<SyncByte, Found>>>,
}

impl Comparing {
    /// Returns the length of a hole at `offset`, as far as a resync is to go over it. A scrub reads holes, too.
    fn hole_at(&self, offset: SyncByte) -> Option<u64> {
        let left = SyncSpan::new(offset, (self.total - offset).min(MOST_OF_HOLE));
        let needed = match self.by_bitmap {
            true => self.inner.core.lane.stretch(left, left.len),
            false => Some((left.len, true)),
        };
        let (len, _) =
            needed.filter(|(_, is_needed)| *is_needed && self.kind == JobKind::Resync)?;
        Some(self.inner.hole_at(SyncSpan::new(offset, len))).filter(|len| *len > 0)
    }

    /// Returns true if the array has the same size as when the comparison began.
    fn is_as_large(&self) -> bool {
        self.inner.core.layout.borrow().sync_size() == self.total.get()
    }
}

impl Walk<OfSync> for Comparing {
    fn kind(&self) -> JobKind {
        self.kind
    }

    fn member(&self) -> Option<String> {
        None
    }

    fn total(&self) -> SyncByte {
        self.total
    }

    /// Filling a member comes first: it restores redundancy.
    fn is_wanted(&self) -> bool {
        let Inner { core, .. } = &*self.inner;
        let wanted = match self.kind {
            JobKind::Resync => self.inner.needs_resync(),
            kind => core.work.requested(core.clock.unix_time()) == Some(kind),
        };
        wanted && self.is_as_large() && self.inner.members_are_settled()
    }

    fn next(&self, offset: SyncByte, most: u64) -> (u64, Step) {
        if let Some(len) = self.hole_at(offset) {
            return (len, Step::Hole);
        }
        let piece = self.inner.keeping.piece_to_compare(offset);
        let piece = SyncSpan::new(offset, piece.len.min(self.total - offset));
        let most = most.min(fitting(self.inner.keeping.compared()));
        let (len, place) = self.inner.stretch(piece, most, self.by_bitmap);
        (len, if place.is_some() { Step::Read } else { Step::Skip })
    }

    fn work(&self, part: SyncSpan) -> Later<'static, Result<(), String>> {
        let (inner, kind) = (Rc::clone(&self.inner), self.kind);
        let (is_stuck, ahead) = (Rc::clone(&self.is_stuck), Rc::clone(&self.ahead));
        Box::pin(async move {
            let found = match kind {
                JobKind::Resync => inner.resync(part).await,
                _ => inner.keeping.compare(&inner, part, kind).await,
            };
            if kind == JobKind::Resync
                && let Some(place) = found.unsettled
            {
                // If superblocks said "clean" and only bits were left, members do not differ.
                if !inner.core.agreement.is_clean() {
                    inner.core.agreement.differ_from(place);
                }
                is_stuck.set(true);
            }
            ahead.borrow_mut().insert(part.offset, found);
            Ok(())
        })
    }

    fn reached(&self, frontier: SyncByte) {
        let mut ahead = self.ahead.borrow_mut();
        while let Some(window) = ahead.first_entry().filter(|window| *window.key() < frontier) {
            self.inner.core.work.find(window.remove());
        }
        if self.kind == JobKind::Resync {
            self.inner.core.agreement.reached(frontier);
        }
    }
}
