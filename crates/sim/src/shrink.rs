//! A scenario that fails, made as small as it goes: parts are taken away for as long as it fails.
//!
//! ```text
//!   lives ─▶ connections ─▶ requests, acts, probes (halves, quarters, … one by one) ─▶ simpler ones
//!      ▲                                                                                   │
//!      └───────────────────────── again, until nothing more can go ◀───────────────────────┘
//! ```
//!
//! Taking something away moves everything that was drawn after it, so each candidate is tried with
//! a few orders of events. What is left fails in the same words, numbers apart ([`kind`]).

use crate::campaign::run_scenario;
use crate::front::Front;
use crate::scenario::{End, Life, Scenario, Start};
use crate::timeline::Timeline;

/// The number of orders of events that are tried with a candidate.
const TRIES: u64 = 6;

/// Makes scenarios smaller.
pub struct Shrinker<'a> {
    /// Tells whether a scenario fails.
    fails: &'a dyn Fn(&Scenario) -> bool,
    left: usize,
}

/// The smallest that was found, of as many as `most` candidates, of a scenario that fails with
/// `what`.
pub fn shrink(scenario: &Scenario, what: &str, most: usize) -> Scenario {
    let kind_of_all = kind(what);
    let fails = |candidate: &Scenario| {
        let result = run_scenario(candidate, &Timeline::default());
        result.is_err_and(|what| kind(&what) == kind_of_all)
    };
    Shrinker::new(&fails, most).shrink(scenario)
}

/// The kind of a failure: the start of its text without numbers, time and lost members.
fn kind(what: &str) -> Vec<&str> {
    let what = what.split_once("a crash here").map_or(what, |(_, after)| after);
    let what = what
        .split_once("disks [")
        .and_then(|(_, after)| after.split_once("]: "))
        .map_or(what, |(_, after)| after);
    let is_word = |word: &&str| word.chars().all(|c| c.is_alphabetic());
    what.split([' ', ':', ';', ','])
        .filter(is_word)
        .filter(|word| !word.is_empty())
        .take(7)
        .collect()
}

/// The number of parts of a scenario.
pub fn size(scenario: &Scenario) -> usize {
    let of_life = |life: &Life| {
        let requests: usize = life.connections.iter().map(|one| 1 + one.requests.len()).sum();
        let again: u32 = life.probes.iter().map(|probe| probe.again).sum();
        1 + requests + life.acts.len() + life.probes.len() + (again + life.aftershocks) as usize
    };
    scenario.lives.iter().map(of_life).sum::<usize>() + usize::from(scenario.start != Start::Clean)
}

impl<'a> Shrinker<'a> {
    /// One that asks `fails`, at most `most` times.
    pub fn new(fails: &'a dyn Fn(&Scenario) -> bool, most: usize) -> Shrinker<'a> {
        Shrinker { fails, left: most }
    }

    /// Takes parts away until nothing more can go.
    pub fn shrink(&mut self, scenario: &Scenario) -> Scenario {
        let mut best = scenario.clone();
        loop {
            let before = size(&best);
            self.lives(&mut best);
            for life in 0..best.lives.len() {
                self.parts(&mut best, life, |life| &mut life.connections);
                for connection in 0..best.lives[life].connections.len() {
                    self.parts(&mut best, life, |life| &mut life.connections[connection].requests);
                }
                self.parts(&mut best, life, |life| &mut life.acts);
                self.parts(&mut best, life, |life| &mut life.probes);
                self.simpler(&mut best, life);
            }
            if size(&best) >= before || self.left == 0 {
                return best;
            }
        }
    }

    /// Keeps `candidate` if it fails, with one order of events or another.
    fn keep(&mut self, best: &mut Scenario, candidate: Scenario) -> bool {
        for attempt in 0..TRIES {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            let mut tried = candidate.clone();
            if attempt > 0 {
                for life in &mut tried.lives {
                    life.schedule = life.schedule.wrapping_add(attempt.wrapping_mul(0x9e37));
                }
            }
            if (self.fails)(&tried) {
                *best = tried;
                return true;
            }
        }
        false
    }

    fn lives(&mut self, best: &mut Scenario) {
        let mut index = 0;
        while index < best.lives.len() {
            let mut candidate = best.clone();
            candidate.lives.remove(index);
            if !self.keep(best, candidate) {
                index += 1;
            }
        }
        if best.start != Start::Clean {
            let candidate = Scenario { start: Start::Clean, ..best.clone() };
            self.keep(best, candidate);
        }
    }

    /// Takes runs of a list away: first long ones.
    fn parts<T: Clone>(
        &mut self,
        best: &mut Scenario,
        life: usize,
        list: impl Fn(&mut Life) -> &mut Vec<T>,
    ) {
        let mut run = list(&mut best.lives[life]).len();
        while run > 0 {
            let mut from = 0;
            while from < list(&mut best.lives[life]).len() {
                let mut candidate = best.clone();
                let parts = list(&mut candidate.lives[life]);
                let end = (from + run).min(parts.len());
                parts.drain(from..end);
                if !self.keep(best, candidate) {
                    from += run;
                }
            }
            run /= 2;
        }
    }

    /// Single values that can be simpler.
    fn simpler(&mut self, best: &mut Scenario, life: usize) {
        let mut attempt = |change: &dyn Fn(&mut Life)| {
            let mut candidate = best.clone();
            change(&mut candidate.lives[life]);
            self.keep(best, candidate);
        };
        attempt(&|life| life.end = End::Rest);
        attempt(&|life| life.front = Front::default());
        attempt(&|life| life.shards = 0);
        attempt(&|life| life.aftershocks = 0);
        attempt(&|life| life.aftershocks /= 2);
        attempt(&|life| life.connections.iter_mut().for_each(|one| one.depth = 1));
        attempt(&|life| life.connections.iter_mut().for_each(|one| one.leaves = false));
        attempt(&|life| {
            let requests = life.connections.iter_mut().flat_map(|one| &mut one.requests);
            requests.for_each(|one| one.pause_ns = 0);
        });
        attempt(&|life| life.probes.iter_mut().for_each(|one| one.again = 0));
        attempt(&|life| life.probes.iter_mut().for_each(|one| one.loses = false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::What;

    /// Seeds whose scenarios have a life in which an operator adds a disk and a client flushes.
    fn fails(scenario: &Scenario) -> bool {
        scenario.lives.iter().any(|life| {
            let flushes = life.connections.iter().flat_map(|one| &one.requests);
            let mut flushes = flushes.filter(|one| one.op == braid_block::Op::Flush);
            life.acts.iter().any(|act| act.what == What::Add) && flushes.next().is_some()
        })
    }

    #[test]
    fn what_does_not_matter_is_taken_away() {
        let found = (0..2000).map(Scenario::of).find(fails);
        let scenario = found.expect("a seed with both");
        let small = Shrinker::new(&fails, 10_000).shrink(&scenario);
        assert!(fails(&small), "it still fails");
        // A life, a connection, a request and an act.
        assert_eq!(size(&small), 4, "{small:#?}");
        assert_eq!(small.start, Start::Clean);
    }

    #[test]
    fn numbers_and_losses_do_not_make_another_kind() {
        let differ = "superblocks say Clean, and copies or parity differ at 2048 (42 such blocks)";
        let with = format!("life 3: a crash here, without disks [1, 2]: {differ}");
        assert_eq!(kind(&with), kind(&format!("life 1: a crash here: {differ}")));
        assert_ne!(kind(&with), kind("life 1: the last flush failed: Input/output error"));
    }

    #[test]
    fn no_more_is_asked_than_allowed() {
        let asked = std::cell::Cell::new(0);
        let count = |_: &Scenario| {
            asked.set(asked.get() + 1);
            true
        };
        Shrinker::new(&count, 17).shrink(&Scenario::of(1));
        assert!(asked.get() <= 17);
    }
}
