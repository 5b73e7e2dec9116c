//! Faults, on top of a device whose data remains intact: a target selects the requests, and a fault says how
//! they fail or hang.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Errno, Io, Op, Span};

/// The conditions that select requests; a request must meet all that are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Requests of this kind.
    pub op: Option<Op>,
    /// The device's request of this number, counted from 0.
    pub index: Option<u64>,
    /// Requests from this number on.
    pub since: u64,
    /// Requests that overlap this range (so never a flush).
    pub span: Option<Span>,
}

/// The effect of a fault on a request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It fails. Any part of a modifying request may have been carried out.
    Error(Errno),
    /// It does not complete before this time, in nanoseconds; `u64::MAX`: never.
    NotBefore(u64),
    /// It completes at this time, in nanoseconds; `u64::MAX`: never. A modifying request takes effect at its
    /// usual time, or only at this one.
    Hang(u64),
}

/// The faults of a device. It is cheap to clone; all clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Rc<RefCell<Vec<Rule>>>,
    /// The ranges that cannot be read until they are written.
    latent: Rc<RefCell<Vec<Span>>>,
}

#[derive(Debug)]
struct Rule {
    target: Target,
    fault: Fault,
    /// The number of requests that the rule still applies to.
    left: Cell<u64>,
}

impl Rule {
    /// True if the rule applies to this request, which is then counted.
    fn befalls(&self, index: u64, io: &Io) -> bool {
        let left = self.left.get();
        let befalls = left > 0 && self.target.is_hit_by(index, io);
        self.left.set(left - u64::from(befalls && left < u64::MAX));
        befalls
    }
}

impl Target {
    /// All requests.
    pub const ALL: Target = Target { op: None, index: None, since: 0, span: None };

    /// All requests of a kind.
    pub const fn op(op: Op) -> Target {
        Target { op: Some(op), ..Target::ALL }
    }

    /// Only the request with this number.
    pub const fn index(index: u64) -> Target {
        Target { index: Some(index), ..Target::ALL }
    }

    /// All requests from this number on.
    pub const fn since(index: u64) -> Target {
        Target { since: index, ..Target::ALL }
    }

    /// Only those of these requests that overlap `span`.
    #[must_use]
    pub const fn touching(self, span: Span) -> Target {
        Target { span: Some(span), ..self }
    }

    fn is_hit_by(&self, index: u64, io: &Io) -> bool {
        self.op.is_none_or(|op| op == io.op)
            && index >= self.since
            && self.index.is_none_or(|wanted| wanted == index)
            && self.span.is_none_or(|span| span.overlaps(io.span))
    }
}

impl Faults {
    /// From now on, `fault` applies to the requests that `target` selects.
    pub fn add(&self, target: Target, fault: Fault) {
        self.add_some(target, fault, u64::MAX);
    }

    /// `fault` applies to the next `count` requests that `target` selects.
    pub fn add_some(&self, target: Target, fault: Fault, count: u64) {
        self.rules.borrow_mut().push(Rule { target, fault, left: Cell::new(count) });
    }

    /// From now on, no request fails, except reads of unreadable ranges.
    pub fn clear_rules(&self) {
        self.rules.borrow_mut().clear();
    }

    /// True if some future requests will fail, or may fail.
    pub fn is_armed(&self) -> bool {
        let is_error = |rule: &Rule| matches!(rule.fault, Fault::Error(_)) && rule.left.get() > 0;
        self.rules.borrow().iter().any(is_error)
    }

    /// The unreadable ranges.
    pub fn latent(&self) -> Vec<Span> {
        self.latent.borrow().clone()
    }

    /// From now on, no request fails.
    pub fn clear(&self) {
        self.rules.borrow_mut().clear();
        self.latent.borrow_mut().clear();
    }

    /// From now on, `span` is unreadable until it is written.
    pub fn add_latent(&self, span: Span) {
        self.latent.borrow_mut().push(span);
    }

    /// True if a read of `span` overlaps an unreadable range.
    pub fn is_latent(&self, span: Span) -> bool {
        self.latent.borrow().iter().any(|bad| bad.overlaps(span))
    }

    /// `span` was written, so it is readable again.
    pub fn heal(&self, span: Span) {
        let mut latent = self.latent.borrow_mut();
        let mut left = Vec::with_capacity(latent.len());
        for bad in latent.drain(..) {
            let before = (bad.offset, bad.end().min(span.offset));
            let behind = (bad.offset.max(span.end()), bad.end());
            let rests = [before, behind].into_iter().filter(|(start, end)| start < end);
            left.extend(rests.map(|(start, end)| Span::new(start, end - start)));
        }
        *latent = left;
    }

    /// The error of request number `index`: that of the first rule that applies to it.
    pub fn error_for(&self, index: u64, io: &Io) -> Option<Errno> {
        self.rules.borrow().iter().find_map(|rule| match rule.fault {
            Fault::Error(errno) if rule.befalls(index, io) => Some(errno),
            _ => None,
        })
    }

    /// The time until which request number `index` hangs, in nanoseconds.
    pub fn hangs_until(&self, index: u64, io: &Io) -> Option<u64> {
        self.rules.borrow().iter().find_map(|rule| match rule.fault {
            Fault::Hang(time_ns) if rule.befalls(index, io) => Some(time_ns),
            _ => None,
        })
    }

    /// True if some future requests hang beyond `now_ns`.
    pub fn hang(&self, now_ns: u64) -> bool {
        let hangs = |rule: &Rule| matches!(rule.fault, Fault::Hang(end) if end > now_ns);
        self.rules.borrow().iter().any(|rule| hangs(rule) && rule.left.get() > 0)
    }

    /// The time before which request number `index` does not complete, in nanoseconds.
    pub fn not_before(&self, index: u64, io: &Io) -> u64 {
        let rules = self.rules.borrow();
        let times = rules.iter().filter_map(|rule| match rule.fault {
            Fault::NotBefore(time_ns) if rule.befalls(index, io) => Some(time_ns),
            _ => None,
        });
        times.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_block::Flags;

    #[test]
    fn what_is_written_can_be_read_again() {
        let faults = Faults::default();
        faults.add_latent(Span::new(1000, 500));
        assert!(faults.is_latent(Span::new(0, 1001)) && !faults.is_latent(Span::new(0, 1000)));
        faults.heal(Span::new(1100, 100));
        assert!(faults.is_latent(Span::new(1000, 100)) && faults.is_latent(Span::new(1200, 300)));
        assert!(!faults.is_latent(Span::new(1100, 100)));
        faults.heal(Span::new(0, 4096));
        assert!(!faults.is_latent(Span::new(0, 4096)));
    }

    #[test]
    fn some_requests_are_befallen_and_no_more() {
        let faults = Faults::default();
        faults.add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 2);
        let read = Io::write_zeroes(Span::new(0, 512), Flags::NONE);
        assert_eq!(faults.error_for(0, &read), None);
        let hits = (0..4).filter(|index| faults.error_for(*index, &Io::flush()).is_some());
        assert_eq!(hits.count(), 2);
        assert!(!faults.is_armed());
    }

    #[test]
    fn a_target_needs_all_its_conditions() {
        let faults = Faults::default();
        let zeroes = |offset| Io::write_zeroes(Span::new(offset, 512), Flags::NONE);
        let target = Target::op(Op::WriteZeroes).touching(Span::new(1000, 100));
        faults.add(target, Fault::Error(Errno::IO));
        faults.add(Target::index(3), Fault::Error(Errno::NOSPC));
        assert_eq!(faults.error_for(0, &zeroes(512)), Some(Errno::IO));
        assert_eq!(faults.error_for(0, &zeroes(1100)), None);
        assert_eq!(faults.error_for(3, &Io::flush()), Some(Errno::NOSPC));
        assert_eq!(faults.error_for(2, &Io::flush()), None);
        faults.clear();
        assert_eq!(faults.error_for(3, &Io::flush()), None);
    }
}
