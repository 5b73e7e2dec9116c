//! Rounds of a cache in write-back mode over the dirty blocks, begun and cut as the cache does it.
//!
//! ```text
//!   writes wait, half is dirty, too old, idle ──▶ round: [ runs of a part ──▶ flush of the origin ]… ──▶ its flushes are answered
//! ```
//!
//! Which blocks are dirty, how long a run is, and how much is drained before a flush are the cache's own
//! ([`braid_cache::Shadow`]). Deliberately absent: a log, and a rate that draining is held to.

use std::ops::Range;

use braid_block::Span;
use braid_cache::Shadow;

/// The owner of bytes that move: a request of the load, a unit above, or a round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    Request(u64),
    Unit(u64),
    /// A cache in write-back mode, which drains these blocks, from the first to before the last.
    Run(usize, (u64, u64)),
    /// A cache in write-back mode, which flushes its origin.
    Round(usize),
}

/// The state of write-back mode. Times are in nanoseconds.
pub(crate) struct Rounds {
    age_ns: u64,
    /// Since when something is dirty that the round under way, or the next one, drains.
    since_ns: Option<u64>,
    /// The same of what the round under way need not drain.
    since_next_ns: Option<u64>,
    /// A write has come since the last look.
    is_busy: bool,
    /// The number of the last round that is wanted, and of the last that has begun.
    wanted: u64,
    begun: u64,
    round: Option<Round>,
    /// Writes that wait for room, with what is left of each to be held.
    waiting: Vec<(Owner, Span, Span)>,
    /// Flushes, each with the round that it waits for.
    flushes: Vec<(Owner, u64)>,
    /// The next look, and whether a round begins then if no write came.
    look: Option<(u64, bool)>,
}

struct Round {
    /// The block from which on runs are looked for, and how many blocks are left of the part.
    next: u64,
    left: u64,
    /// Runs on their way, and those that the origin has answered.
    under_way: usize,
    answered: Vec<Range<u64>>,
    /// Runs are begun when a part begins and when a run is answered: before the writes that wait are held.
    is_due: bool,
    is_flushing: bool,
}

impl Round {
    fn start(&mut self, shadow: &mut Shadow) -> Option<Step> {
        if !self.is_due {
            return None;
        }
        let run = shadow.dirty_run(self.next).filter(|_| self.left > 0);
        if let Some(run) = run.filter(|_| self.under_way < Shadow::AT_ONCE) {
            self.next = run.end;
            self.left = self.left.saturating_sub(run.end - run.start);
            self.under_way += 1;
            return Some(Step::Drain(run.clone(), shadow.drain(run)));
        }
        self.is_due = false;
        if self.under_way > 0 {
            return None;
        }
        self.is_flushing = true;
        Some(Step::Flush)
    }
}

/// The next step of the rounds.
pub(crate) enum Step {
    /// A write is held: it is copied to memory.
    Hold(Owner, Span),
    /// A run is written to the origin.
    Drain(Range<u64>, Vec<Span>),
    /// The origin is flushed.
    Flush,
    /// [`Rounds::look`] is called at a time.
    LookAt(u64),
}

impl Rounds {
    pub(crate) fn new(age_ns: u64) -> Rounds {
        Rounds {
            age_ns,
            since_ns: None,
            since_next_ns: None,
            is_busy: false,
            wanted: 0,
            begun: 0,
            round: None,
            waiting: Vec::new(),
            flushes: Vec::new(),
            look: None,
        }
    }

    /// A write comes, which waits until there is room for all of it.
    pub(crate) fn write(&mut self, owner: Owner, span: Span) {
        self.is_busy = true;
        self.waiting.push((owner, span, span));
    }

    /// A flush comes: what is dirty now is drained.
    pub(crate) fn flush(&mut self, owner: Owner) {
        self.want();
        self.flushes.push((owner, self.wanted));
    }

    fn want(&mut self) {
        self.wanted = self.begun + 1;
    }

    pub(crate) fn step(&mut self, shadow: &mut Shadow, now_ns: u64) -> Option<Step> {
        if self.round.is_none() && self.wanted > self.begun {
            self.begin(shadow);
        }
        if let Some(step) = self.round.as_mut().and_then(|round| round.start(shadow)) {
            return Some(step);
        }
        if let Some((owner, span)) = self.held(shadow, now_ns) {
            return Some(Step::Hold(owner, span));
        }
        if self.round.is_some() {
            return None;
        }
        if !self.is_time(shadow, now_ns) {
            return self.wait(now_ns).map(Step::LookAt);
        }
        self.begin(shadow);
        self.round.as_mut().and_then(|round| round.start(shadow))
    }

    /// A write for all of which there is room by now. One for which there is none has a round wanted.
    fn held(&mut self, shadow: &mut Shadow, now_ns: u64) -> Option<(Owner, Span)> {
        let mut index = 0;
        while let Some((owner, span, rest)) = self.waiting.get_mut(index) {
            match shadow.hold(*rest) {
                None => {
                    let held = (*owner, *span);
                    self.waiting.remove(index);
                    self.note_dirty(now_ns);
                    return Some(held);
                }
                Some(left) => *rest = left,
            }
            index += 1;
        }
        if !self.waiting.is_empty() {
            self.want();
        }
        None
    }

    fn note_dirty(&mut self, now_ns: u64) {
        self.since_ns.get_or_insert(now_ns);
        if self.round.is_some() {
            self.since_next_ns.get_or_insert(now_ns);
        }
    }

    fn until_old_ns(&self, now_ns: u64) -> u64 {
        let dirty_ns = self.since_ns.map_or(0, |since_ns| now_ns - since_ns);
        self.age_ns.saturating_sub(dirty_ns)
    }

    fn is_time(&self, shadow: &Shadow, now_ns: u64) -> bool {
        let is_old = || self.until_old_ns(now_ns) == 0;
        self.wanted > self.begun || (self.since_ns.is_some() && (shadow.is_pressed() || is_old()))
    }

    fn begin(&mut self, shadow: &Shadow) {
        self.begun += 1;
        (self.since_next_ns, self.look) = (None, None);
        self.round = Some(Round {
            next: 0,
            left: shadow.part_blocks(),
            under_way: 0,
            answered: Vec::new(),
            is_due: true,
            is_flushing: false,
        });
    }

    /// When the next look is, if that has to be said.
    fn wait(&mut self, now_ns: u64) -> Option<u64> {
        if self.since_ns.is_none() || self.look.is_some() {
            return None;
        }
        self.is_busy = false;
        let (idle_ns, old_ns) = (Shadow::IDLE.as_nanos() as u64, self.until_old_ns(now_ns));
        let at_ns = now_ns + idle_ns.min(old_ns);
        self.look = Some((at_ns, idle_ns <= old_ns));
        Some(at_ns)
    }

    /// A time that was asked for has come: where no write came since, a round begins.
    pub(crate) fn look(&mut self, now_ns: u64) {
        let Some((_, is_idle)) = self.look.take_if(|(at_ns, _)| *at_ns <= now_ns) else { return };
        if is_idle && !self.is_busy {
            self.want();
        }
    }

    /// The origin has taken a run.
    pub(crate) fn drained(&mut self, run: Range<u64>) {
        let round = self.round.as_mut().expect("a run is of a round");
        round.under_way -= 1;
        round.is_due = true;
        round.answered.push(run);
    }

    /// The origin is flushed. Returns the flushes that are answered by that, if the round is over.
    pub(crate) fn flushed(&mut self, shadow: &mut Shadow) -> Vec<Owner> {
        let round = self.round.as_mut().expect("a flush of the origin is of a round");
        round.answered.drain(..).for_each(|run| shadow.drained(run));
        (round.is_flushing, round.is_due, round.left) = (false, true, shadow.part_blocks());
        if shadow.dirty_run(round.next).is_some() {
            return Vec::new();
        }
        (self.round, self.since_ns) = (None, self.since_next_ns.take());
        let begun = self.begun;
        let is_over = |(_, round): &mut (Owner, u64)| *round <= begun;
        self.flushes.extract_if(.., is_over).map(|(owner, _)| owner).collect()
    }
}
