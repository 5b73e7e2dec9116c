//! Whether holding what is read makes reads faster, by what is measured; where it does not, the cache steps
//! aside: nothing clean is held any more that is not, and reads go past it. Pure: `now` is an argument.
//!
//! ```text
//!   serving ── it lost in two windows in succession ──▶ aside ── after a pause ──▶ trying ── it wins ──▶ serving
//!                                                         ▲                           │
//!                                                         └── else; twice the pause ──┘
//! ```
//!
//! Of all reads a share `h` hits and takes `hit`, and the others take `origin` and, to be held, `insertion`;
//! without the cache all of them would take `origin`. So it gains `h (origin − hit) − (1 − h) insertion` a
//! read. It wins, or loses, if that is more than [`CLEARLY`] of `origin`; between the two nothing changes.
//!
//! While it tries only a sample of the blocks is held, by their hash, and only reads of these count. They have
//! more room than their share, so that it may win there and lose again as a whole: then the next pause is
//! longer.
//!
//! Invariants
//! * Between two changes lies [`Rules::interval`] at least.
//! * It does not step aside while it wins, nor before as many reads as it has slots were seen twice.

use std::time::Duration;

use crate::directory::hash;

/// Of what the origin takes for a read, what has to be gained or lost for anything to change.
const CLEARLY: f64 = 0.05;
/// While it tries, one block in so many is held.
const SAMPLE: u64 = 16;
/// The longest pause, in pauses.
const LONGEST: u32 = 16;

/// What it takes for the cache to step aside, and to try again.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Between two changes, at least.
    pub interval: Duration,
    /// How long it is aside before it tries, the first time; twice as long each time that it does not win.
    pub pause: Duration,
    /// Reads of a window, at least; as many as there are slots, if those are more.
    pub reads: u64,
}

impl Default for Rules {
    fn default() -> Rules {
        let (interval, pause) = (Duration::from_secs(5), Duration::from_secs(60));
        Rules { interval, pause, reads: 4096 }
    }
}

/// What the cache does with what is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It holds it.
    #[default]
    Serving,
    /// It does not.
    Aside,
    /// It holds a sample of the blocks, to see whether that would win.
    Trying,
}

/// What was measured in a window, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Of all reads, the share that hit: 0 to 1.
    pub hits: f64,
    /// What a hit takes.
    pub hit: Duration,
    /// What the origin takes for a read.
    pub origin: Duration,
    /// What it takes beside that to hold what it answered.
    pub insertion: Duration,
}

impl Figures {
    /// What a read gains by the cache, in the mean and in seconds: less than nothing if it loses.
    pub fn gain(&self) -> f64 {
        let saved = self.origin.as_secs_f64() - self.hit.as_secs_f64();
        self.hits * saved - (1.0 - self.hits) * self.insertion.as_secs_f64()
    }

    fn threshold(&self) -> f64 {
        CLEARLY * self.origin.as_secs_f64()
    }

    fn wins(&self) -> bool {
        self.gain() > self.threshold()
    }

    fn loses(&self) -> bool {
        self.gain() < -self.threshold()
    }
}

/// How it stands, since when, and by which figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AsideStatus {
    /// What it does.
    pub standing: Standing,
    /// For how long.
    pub since: Duration,
    /// The last window that was judged; none yet.
    pub figures: Option<Figures>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: Duration,
    count: u32,
}

impl Mean {
    fn add(&mut self, one: Duration) {
        self.sum = self.sum.saturating_add(one);
        self.count = self.count.saturating_add(1);
    }

    fn value(&self) -> Duration {
        self.sum.checked_div(self.count).unwrap_or_default()
    }
}

/// What was seen since a window began.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    hits: u64,
    misses: u64,
    hit: Mean,
    origin: Mean,
    insertion: Mean,
}

/// The decision, and what it is made by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aside {
    rules: Rules,
    standing: Standing,
    changed: Duration,
    /// Times that it tried in succession, and did not win.
    in_vain: u32,
    /// Windows in succession in which it lost.
    lost: u32,
    window: Window,
    figures: Option<Figures>,
}

/// Whether `block` is of the sample that is held while the cache tries.
fn is_sampled(block: u64) -> bool {
    // Not the bits that places in the directory and the curve's sample are made of.
    hash(block).rotate_left(23).is_multiple_of(SAMPLE)
}

impl Aside {
    pub(crate) fn new(rules: Rules, now: Duration) -> Aside {
        Aside { rules, changed: now, ..Aside::default() }
    }

    /// Whether `block` may be held if it is not, as far as it is clean.
    #[inline]
    pub(crate) fn admits(&self, block: u64) -> bool {
        match self.standing {
            Standing::Serving => true,
            Standing::Aside => false,
            Standing::Trying => is_sampled(block),
        }
    }

    /// A read, of `block` first, was a hit.
    #[inline]
    pub(crate) fn hit(&mut self, block: u64) {
        self.window.hits += u64::from(self.counts(block));
    }

    /// A hit took so long.
    pub(crate) fn hit_took(&mut self, took: Duration) {
        self.window.hit.add(took);
    }

    #[inline]
    fn counts(&self, block: u64) -> bool {
        self.standing != Standing::Trying || is_sampled(block)
    }

    /// A read, of `block` first, took the origin so long, and, if it is held now, `insertion` beside. The
    /// cache has `slots` slots.
    pub(crate) fn missed(
        &mut self,
        block: u64,
        origin: Duration,
        insertion: Option<Duration>,
        slots: u32,
        now: Duration,
    ) {
        self.window.misses += u64::from(self.counts(block));
        self.window.origin.add(origin);
        if let Some(insertion) = insertion {
            self.window.insertion.add(insertion);
        }
        self.judge(slots.into(), now);
    }

    fn judge(&mut self, slots: u64, now: Duration) {
        let rested = now.saturating_sub(self.changed);
        let share = if self.standing == Standing::Trying { SAMPLE } else { 1 };
        let is_full = self.window.hits + self.window.misses >= self.rules.reads.max(slots) / share;
        match self.standing {
            Standing::Aside => {
                let times = 2u32.saturating_pow(self.in_vain).min(LONGEST);
                if rested >= self.rules.interval.max(self.rules.pause.saturating_mul(times)) {
                    self.change(Standing::Trying, now);
                }
            }
            _ if !is_full => {}
            Standing::Serving => {
                let figures = self.take_figures();
                self.lost = if figures.loses() { self.lost + 1 } else { 0 };
                if figures.wins() {
                    self.in_vain = 0;
                }
                if self.lost >= 2 && rested >= self.rules.interval {
                    self.change(Standing::Aside, now);
                }
            }
            // Its first window filled what there is of the sample.
            Standing::Trying if self.lost == 0 => {
                self.take_figures();
                self.lost = 1;
            }
            Standing::Trying if rested < self.rules.interval => {}
            Standing::Trying => {
                let wins = self.take_figures().wins();
                // Back to nothing when it wins as a whole, too.
                self.in_vain = self.in_vain.saturating_add(1);
                self.change(if wins { Standing::Serving } else { Standing::Aside }, now);
            }
        }
    }

    fn take_figures(&mut self) -> Figures {
        let Window { hits, misses, hit, origin, insertion } = std::mem::take(&mut self.window);
        let figures = Figures {
            hits: hits as f64 / (hits + misses).max(1) as f64,
            hit: hit.value(),
            origin: origin.value(),
            insertion: insertion.value(),
        };
        self.figures = Some(figures);
        figures
    }

    fn change(&mut self, standing: Standing, now: Duration) {
        self.standing = standing;
        self.changed = now;
        self.start_over();
    }

    /// What was seen does not count any more: the cache is another one.
    pub(crate) fn start_over(&mut self) {
        self.lost = 0;
        self.window = Window::default();
    }

    pub(crate) fn status(&self, now: Duration) -> AsideStatus {
        let since = now.saturating_sub(self.changed);
        AsideStatus { standing: self.standing, since, figures: self.figures }
    }
}

#[cfg(test)]
mod tests {
    use braid_seed::Rng;

    use super::*;

    const SLOTS: u32 = 64;
    const RULES: Rules =
        Rules { interval: Duration::from_millis(50), pause: Duration::from_millis(200), reads: 32 };

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// One read each 100 µs, of `percent` of which hit. What is not admitted never hits.
    struct World {
        aside: Aside,
        now: Duration,
        changes: Vec<(Duration, Standing)>,
    }

    impl World {
        fn new() -> World {
            World {
                aside: Aside::new(RULES, Duration::ZERO),
                now: Duration::ZERO,
                changes: Vec::new(),
            }
        }

        fn read(&mut self, dice: &mut Rng, percent: u64, hit: u64, origin: u64, insertion: u64) {
            self.now += micros(100);
            let (block, before) = (dice.next_u64(), self.aside.standing);
            let is_held = self.aside.admits(block);
            if is_held && dice.percent(percent) {
                self.aside.hit(block);
                if dice.percent(20) {
                    self.aside.hit_took(micros(hit));
                }
            } else {
                let insertion = is_held.then(|| micros(insertion));
                self.aside.missed(block, micros(origin), insertion, SLOTS, self.now);
            }
            if self.aside.standing != before {
                self.changes.push((self.now, self.aside.standing));
            }
        }
    }

    #[test]
    fn changes_keep_their_distance_whatever_is_measured() {
        for seed in 0..100 {
            let (mut dice, mut world) = (Rng::new(seed), World::new());
            let mut of = [50, 1, 5, 1];
            for _ in 0..20_000 {
                if dice.percent(1) {
                    of = [dice.below(101), dice.below(20), dice.below(20), dice.below(20)];
                }
                let [percent, hit, origin, insertion] = of;
                world.read(&mut dice, percent, hit, origin, insertion);
            }
            let times = [Duration::ZERO].into_iter().chain(world.changes.iter().map(|(at, _)| *at));
            let times: Vec<Duration> = times.collect();
            let is_apart = |pair: &[Duration]| pair[1] - pair[0] >= RULES.interval;
            assert!(times.windows(2).all(is_apart), "seed {seed}: {:?}", world.changes);
            let is_way = |pair: &[(Duration, Standing)]| {
                pair[1].1 != Standing::Serving || pair[0].1 == Standing::Trying
            };
            assert!(world.changes.windows(2).all(is_way), "seed {seed}: {:?}", world.changes);
        }
    }

    #[test]
    fn it_stays_while_it_wins_clearly() {
        for seed in 0..200 {
            let (mut dice, mut world) = (Rng::new(seed), World::new());
            // However the figures are made up, as long as a window shows 5 % and what chance may take of it.
            let (mut percent, mut hit, mut origin, mut insertion) = (50, 1, 100, 1);
            for _ in 0..10_000 {
                if dice.percent(1) {
                    (percent, hit) = (dice.within(20..=100), dice.below(20));
                    origin = hit + dice.within(50..=500);
                    insertion = dice.below(origin / 20 + 1);
                }
                world.read(&mut dice, percent, hit, origin, insertion);
            }
            assert_eq!(world.changes, [], "seed {seed}");
        }
    }

    #[test]
    fn it_steps_aside_where_it_loses_tries_and_comes_back_where_it_would_win() {
        for seed in 0..100 {
            let (mut dice, mut world) = (Rng::new(seed), World::new());
            for _ in 0..100_000 {
                world.read(&mut dice, 2, 1, 4, 2);
            }
            let many =
                |world: &World, one| world.changes.iter().filter(|(_, to)| *to == one).count();
            assert_eq!(
                world.changes.first().map(|(_, to)| *to),
                Some(Standing::Aside),
                "seed {seed}"
            );
            assert_eq!(many(&world, Standing::Serving), 0, "seed {seed}");
            // In ten seconds: each pause is twice the last, up to sixteen times the first.
            let tried = many(&world, Standing::Trying);
            assert!((4..=7).contains(&tried), "seed {seed}: tried {tried} times");
            for _ in 0..100_000 {
                world.read(&mut dice, 70, 1, 4, 2);
            }
            assert_eq!(world.aside.standing, Standing::Serving, "seed {seed}");
            assert_eq!(many(&world, Standing::Serving), 1, "seed {seed}");
        }
    }

    /// An origin as fast as memory: hits gain nothing, and what misses costs.
    #[test]
    fn an_origin_as_fast_as_memory_is_asked_itself() {
        let (mut dice, mut world) = (Rng::new(1), World::new());
        for _ in 0..10_000 {
            world.read(&mut dice, 60, 2, 2, 1);
        }
        assert_eq!(world.aside.status(world.now).standing, Standing::Aside);
        let figures = world.aside.status(world.now).figures.expect("what it was judged by");
        assert!(figures.gain() < 0.0, "{figures:?}");
    }
}
