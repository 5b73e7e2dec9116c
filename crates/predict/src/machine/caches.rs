//! Caches of a machine: what they begin, what they hold from one run to the next, and flushes, which may be theirs.

use super::{Event, Machine, Node, UnderWay, What};
use crate::cached::{Begun, Cached, ORIGIN};
use crate::layout::Unit;
use crate::rounds::Owner;

/// The owner of the flush that ends a run.
const FLUSH: u64 = u64::MAX - 1;

impl Machine {
    /// Returns whether a cache takes writes that its origin gets later.
    pub fn writes_behind(&mut self) -> bool {
        let is_behind = |node: &mut Node| match &mut node.what {
            What::Cached(cached, _) => cached.rounds().is_some(),
            What::Device(_) | What::Joined(..) => false,
        };
        self.nodes.iter_mut().any(is_behind)
    }

    /// Has its caches hold what those of `before`, a machine of the same parts that has done a run, hold.
    pub(crate) fn hold_as(&mut self, before: Machine) {
        self.runs = before.runs + 1;
        let caches = |node: Node| match node.what {
            What::Cached(cached, _) => Some(cached),
            What::Device(_) | What::Joined(..) => None,
        };
        let mut held = before.nodes.into_iter().filter_map(caches);
        for node in &mut self.nodes {
            if let What::Cached(cached, _) = &mut node.what
                && let Some(before) = held.next()
            {
                cached.hold_as(*before);
            }
        }
    }

    /// The seed of a run's draws: what a run before asked for is held, and the next asks for other places.
    pub(crate) fn seed(&self) -> u64 {
        0x0c10_5ed0 + self.runs
    }

    /// Has all that was asked be on the media.
    pub(crate) fn flush(&mut self) {
        *self.left.entry(FLUSH).or_default() += 1;
        self.ask_flush(self.nodes.len() - 1, Owner::Request(FLUSH));
        self.unplug();
        let mut happened = Vec::new();
        while self.left.contains_key(&FLUSH) && self.next(&mut happened) {}
    }

    /// Flushes a node, which counts as one byte of `owner`.
    fn ask_flush(&mut self, node: usize, owner: Owner) {
        let below: Vec<usize> = match &mut self.nodes[node].what {
            What::Device(member) => {
                let Owner::Unit(owner) = owner else { panic!("a device is asked by units") };
                return self.members[*member].queue.push_flush(owner);
            }
            What::Joined(_, below) => below.iter().flatten().copied().collect(),
            What::Cached(cached, below) => match cached.rounds() {
                Some((rounds, _)) => {
                    rounds.flush(owner);
                    return self.go_on(node);
                }
                None => vec![below[ORIGIN]],
            },
        };
        self.flush_all(node, owner, &below);
    }

    fn flush_all(&mut self, node: usize, owner: Owner, below: &[usize]) {
        self.next_unit += 1;
        let (number, waits) = (self.next_unit, below.len() as u64);
        let unit = Unit { bytes: 1, ..Unit::default() };
        self.units.insert(number, UnderWay { owner, node, write: true, waits, unit, asked: None });
        for one in below {
            self.ask_flush(*one, Owner::Unit(number));
        }
    }

    pub(super) fn cached(&mut self, node: usize) -> &mut Cached {
        match &mut self.nodes[node].what {
            What::Cached(cached, _) => cached,
            What::Device(_) | What::Joined(..) => panic!("node {node} is a cache"),
        }
    }

    /// Begins whatever a cache lets begin.
    pub(super) fn go_on(&mut self, node: usize) {
        let now_ns = self.now_ns;
        while let Some(begun) = self.cached(node).next(now_ns) {
            match begun {
                Begun::Unit(owner, write, unit, asked) => {
                    self.begin(node, owner, write, unit, asked)
                }
                Begun::Run(run, unit) => {
                    self.begin(node, Owner::Run(node, (run.start, run.end)), true, unit, None);
                }
                Begun::Flush => {
                    let What::Cached(_, below) = &self.nodes[node].what else { return };
                    let origin = below[ORIGIN];
                    self.flush_all(node, Owner::Round(node), &[origin]);
                }
                Begun::LookAt(at_ns) => self.at(at_ns, Event::Look(node)),
            }
        }
    }
}
