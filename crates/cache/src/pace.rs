//! Rate limiter: a token bucket that stores the time at which the consumed bytes are paid for (the
//! generic cell rate algorithm, ITU-T I.371). Pure: `now` is an argument.
//!
//! Invariant: in any period, the consumption is at most that of the rate, plus [`BURST`], plus the
//! last consumption begun in it.

use std::time::Duration;

/// Unused rate of this duration may be consumed at once.
const BURST: Duration = Duration::from_secs(1);

/// A rate limit and its consumption.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Bytes per second; `None` for no limit.
    rate: Option<u64>,
    paid_until: Duration,
}

impl Pace {
    /// Creates an unused limit of `rate` bytes per second; `None` for no limit.
    pub(crate) fn new(rate: Option<u64>) -> Pace {
        Pace { rate, paid_until: Duration::ZERO }
    }

    /// Returns the limit in bytes per second.
    pub(crate) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Returns the time until the next consumption is permitted.
    pub(crate) fn wait(&self, now: Duration) -> Duration {
        match self.rate {
            Some(_) => self.paid_until.saturating_sub(now),
            None => Duration::ZERO,
        }
    }

    /// Consumes `bytes`, permitted or not. Early consumption delays later ones.
    pub(crate) fn take(&mut self, bytes: u64, now: Duration) {
        let Some(rate) = self.rate else { return };
        let start = self.paid_until.max(now.saturating_sub(BURST));
        let seconds = bytes as f64 / rate.max(1) as f64;
        self.paid_until =
            start.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
}

#[cfg(test)]
mod tests {
    use braid_seed::Rng;

    use super::*;

    /// For consumers that respect the limit, every period has at most the rate.
    #[test]
    fn a_rate_is_kept_in_every_stretch_and_used_up() {
        for seed in 0..200 {
            let mut dice = Rng::new(seed);
            let (rate, most) = (dice.within(1000..=10_000_000), dice.within(512..=1 << 20));
            let mut pace = Pace::new(Some(rate));
            let mut now = Duration::from_secs(dice.below(100));
            let mut taken: Vec<(Duration, u64)> = Vec::new();
            for _ in 0..60 {
                if dice.percent(20) {
                    now += Duration::from_millis(dice.below(400));
                }
                now += pace.wait(now);
                assert_eq!(pace.wait(now), Duration::ZERO, "a consumer that waited may continue");
                let bytes = dice.within(1..=most);
                pace.take(bytes, now);
                taken.push((now, bytes));
            }
            for (from, (start, _)) in taken.iter().enumerate() {
                let mut sum = 0;
                for (at, bytes) in &taken[from..] {
                    let may = (*at - *start + BURST).as_secs_f64() * rate as f64;
                    assert!(sum as f64 <= may + 1.0, "seed {seed}: {sum} of {may} by then");
                    sum += bytes;
                }
            }
            // The full rate is available: a consumer that never pauses is not late.
            let all: u64 = taken.iter().map(|(_, bytes)| bytes).sum();
            let waits = pace.wait(now).as_secs_f64() * rate as f64;
            assert!(waits <= all as f64, "{waits} of {all}");
        }
        let mut free = Pace::new(None);
        free.take(u64::MAX, Duration::ZERO);
        assert_eq!(free.wait(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn what_is_taken_all_the_time_is_the_rate() {
        let mut pace = Pace::new(Some(1 << 20));
        let (mut now, mut sum) = (Duration::from_secs(5), 0);
        while now < Duration::from_secs(15) {
            pace.take(64 << 10, now);
            sum += 64 << 10;
            now += pace.wait(now);
        }
        let rate = sum as f64 / 10.0 / f64::from(1 << 20);
        assert!((1.09..1.12).contains(&rate), "{rate}: a burst in ten seconds");
        pace.take(100 << 20, now);
        assert!(pace.wait(now) > Duration::from_secs(99), "it is paid for");
    }
}
