//! Decides by measurement whether caching makes reads faster. If it does not, the cache steps aside: it inserts no
//! more clean data, and misses bypass it. Pure: `now` is an argument.
//!
//! ```text
//!   serving ── two losses in succession ──▶ aside ── after a pause ──▶ trying ── a gain ──▶ serving
//!                                             ▲                          │
//!                                             └── no gain; pause doubled ┘
//! ```
//!
//! A share `h` of all reads hits and takes `hit`. The others take `origin` and, if inserted,
//! `insertion`. Without the cache all reads would take `origin`, so the cache gains `h (origin −
//! hit) − (1 − h) insertion` per read. The state changes only if the gain or loss exceeds
//! [`CLEARLY`] of `origin`.
//!
//! While trying, only a sample of the blocks is cached, chosen by hash, and only reads of the
//! sample count. The sample has more space than its share, so the trial may succeed and the whole
//! cache lose again. The next pause is then longer.
//!
//! Invariants
//! * At least [`Rules::interval`] passes between two changes.
//! * The cache does not step aside while it gains, nor before two windows of as many reads as it
//!   has slots.

use std::time::Duration;

use crate::directory::hash;

/// Gain or loss that changes the state, as a fraction of the origin's latency.
const CLEARLY: f64 = 0.05;
/// One block in this many is cached during a trial.
const SAMPLE: u64 = 16;
/// The longest pause, in multiples of [`Rules::pause`].
const LONGEST: u32 = 16;

/// Thresholds for stepping aside and for trying again.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Minimum time between two changes.
    pub interval: Duration,
    /// Time until the first trial; doubled after each trial that fails.
    pub pause: Duration,
    /// Minimum number of reads in a window. A window has as many reads as the cache has slots, if
    /// that is more.
    pub reads: u64,
}

impl Default for Rules {
    fn default() -> Rules {
        let (interval, pause) = (Duration::from_secs(5), Duration::from_secs(60));
        Rules { interval, pause, reads: 4096 }
    }
}

/// State of the decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// The cache inserts what is read.
    #[default]
    Serving,
    /// The cache inserts nothing.
    Aside,
    /// The cache inserts a sample of the blocks, to measure the gain.
    Trying,
}

/// Mean values of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Share of reads that hit, 0 to 1.
    pub hits: f64,
    /// Latency of a hit.
    pub hit: Duration,
    /// Latency of a read from the origin.
    pub origin: Duration,
    /// Additional time to insert the data of a miss.
    pub insertion: Duration,
}

impl Figures {
    /// Returns the mean gain of the cache per read, in seconds; negative for a loss.
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

/// State, its duration, and the figures behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AsideStatus {
    /// The state.
    pub standing: Standing,
    /// Time since the last change of state.
    pub since: Duration,
    /// Figures of the last complete window, if any.
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

/// Measurements since the start of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    hits: u64,
    misses: u64,
    hit: Mean,
    origin: Mean,
    insertion: Mean,
}

/// The decision and its measurements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aside {
    rules: Rules,
    standing: Standing,
    changed: Duration,
    /// Trials since the whole cache last gained.
    failed_trials: u32,
    /// Consecutive windows with a loss.
    lost: u32,
    window: Window,
    figures: Option<Figures>,
}

/// Returns whether `block` belongs to the sample of a trial.
fn is_sampled(block: u64) -> bool {
    // Uses other bits than the directory and the sample of the curve.
    hash(block).rotate_left(23).is_multiple_of(SAMPLE)
}

impl Aside {
    pub(crate) fn new(rules: Rules, now: Duration) -> Aside {
        Aside { rules, changed: now, ..Aside::default() }
    }

    /// Returns whether clean data of `block` may be inserted.
    #[inline]
    pub(crate) fn admits(&self, block: u64) -> bool {
        match self.standing {
            Standing::Serving => true,
            Standing::Aside => false,
            Standing::Trying => is_sampled(block),
        }
    }

    /// Counts a hit; `block` is the first block of the read.
    #[inline]
    pub(crate) fn hit(&mut self, block: u64) {
        self.window.hits += u64::from(self.counts(block));
    }

    /// Adds the latency of a hit.
    pub(crate) fn add_hit_time(&mut self, took: Duration) {
        self.window.hit.add(took);
    }

    #[inline]
    fn counts(&self, block: u64) -> bool {
        self.standing != Standing::Trying || is_sampled(block)
    }

    /// Counts a miss whose first block is `block`, with the latency of the origin and, if the data
    /// were inserted, the additional time. The cache has `slots` slots.
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
                let times = 2u32.saturating_pow(self.failed_trials).min(LONGEST);
                if rested >= self.rules.interval.max(self.rules.pause.saturating_mul(times)) {
                    self.change(Standing::Trying, now);
                }
            }
            _ if !is_full => {}
            Standing::Serving => {
                let figures = self.take_figures();
                self.lost = if figures.loses() { self.lost + 1 } else { 0 };
                if figures.wins() {
                    self.failed_trials = 0;
                }
                if self.lost >= 2 && rested >= self.rules.interval {
                    self.change(Standing::Aside, now);
                }
            }
            // The first window filled the sample.
            Standing::Trying if self.lost == 0 => {
                self.take_figures();
                self.lost = 1;
            }
            Standing::Trying if rested < self.rules.interval => {}
            Standing::Trying => {
                let wins = self.take_figures().wins();
                // Reset when the whole cache gains, too.
                self.failed_trials = self.failed_trials.saturating_add(1);
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
        self.reset();
    }

    /// Discards the measurements, because the cache has changed.
    pub(crate) fn reset(&mut self) {
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

    /// A world with one read per 100 µs, of which `percent` hit. Blocks that are not admitted never
    /// hit.
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
            let is_cached = self.aside.admits(block);
            if is_cached && dice.percent(percent) {
                self.aside.hit(block);
                if dice.percent(20) {
                    self.aside.add_hit_time(micros(hit));
                }
            } else {
                let insertion = is_cached.then(|| micros(insertion));
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
            // Any figures are possible, as long as a window shows 5 % and the noise.
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
