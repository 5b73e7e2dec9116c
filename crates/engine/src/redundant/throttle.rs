//! The rate limit of passes over the array.
//!
//! ```text
//!   no active client           max
//!   clients, no target         min, as in md
//!   clients, and a target      an adaptive rate: more while the 99th percentile of their
//!                              latency stays well below the target, half as soon as it is not
//! ```
//!
//! Pure: time and measurements are arguments.

use std::time::Duration;

/// Number of latencies that give a 99th percentile, and the longest wait for them.
const ENOUGH: usize = 200;
const PATIENCE: Duration = Duration::from_secs(2);
/// Time after its last request for which a client counts as active.
const ABOUT: Duration = Duration::from_millis(200);
/// Initial rate of a pass with a target, in bytes a second, if `min` is less.
const START: u64 = 4 << 20;
/// Largest number of latencies that are kept for a decision.
const MOST_LATENCIES: usize = 1 << 12;
/// Lag that a pass may catch up on at once.
const BURST: Duration = Duration::from_millis(100);

/// Limits of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// At least this many bytes a second, whatever clients do.
    pub min: u64,
    /// At most this many bytes a second; none for as fast as it goes.
    pub max: Option<u64>,
    /// Target for the 99th percentile of clients' latencies.
    pub latency: Option<Duration>,
}

impl Default for Speed {
    fn default() -> Speed {
        Speed { min: 10 << 20, max: None, latency: None }
    }
}

/// The state of the rate limit.
pub(super) struct Throttle {
    speed: Speed,
    /// The time at which the bytes so far are paid for.
    paid_at: Duration,
    /// The rate that the target allows, in bytes a second.
    rate: u64,
    judged_at: Duration,
    /// Latencies since `judged_at`.
    latencies: Vec<Duration>,
    last_request: Option<Duration>,
}

impl Throttle {
    pub(super) fn new(speed: Speed) -> Throttle {
        Throttle {
            speed,
            paid_at: Duration::ZERO,
            rate: speed.min.max(START),
            judged_at: Duration::ZERO,
            latencies: Vec::new(),
            last_request: None,
        }
    }

    pub(super) fn set(&mut self, speed: Speed) {
        self.speed = speed;
        self.rate = self.rate.max(speed.min);
        // A debt from another rate is forgiven.
        self.paid_at = Duration::ZERO;
    }

    pub(super) fn speed(&self) -> Speed {
        self.speed
    }

    /// Records a client's request that took `latency` and completed at `now`.
    pub(super) fn record(&mut self, now: Duration, latency: Duration) {
        self.last_request = Some(now);
        if self.speed.latency.is_some() && self.latencies.len() < MOST_LATENCIES {
            self.latencies.push(latency);
        }
    }

    /// Returns true if clients are active.
    pub(super) fn is_shared(&self, now: Duration) -> bool {
        self.last_request.is_some_and(|last| now.saturating_sub(last) < ABOUT)
    }

    /// Returns the wait at `now` before another `len` bytes.
    pub(super) fn wait(&mut self, now: Duration, len: u64) -> Duration {
        self.judge(now);
        let max = self.speed.max.unwrap_or(u64::MAX);
        let rate = match (self.is_shared(now), self.speed.latency) {
            (false, _) => max,
            (true, None) => self.speed.min.min(max),
            (true, Some(_)) => self.rate.min(max),
        };
        if rate == u64::MAX {
            return Duration::ZERO;
        }
        let start = self.paid_at.max(now.saturating_sub(BURST));
        let cost = Duration::from_secs_f64(len as f64 / rate.max(1) as f64);
        self.paid_at = start + cost;
        start.saturating_sub(now)
    }

    /// Returns true if the pass is slower than its limit: more windows at once do no harm.
    pub(super) fn is_behind(&self, now: Duration) -> bool {
        self.paid_at + BURST < now
    }

    /// Adapts the rate: down as soon as one latency in a hundred is too high, up after enough acceptable ones,
    /// and only if the rate is what limits the pass.
    fn judge(&mut self, now: Duration) {
        let Some(target) = self.speed.latency else { return };
        let count = self.latencies.len();
        let slow = self.latencies.iter().filter(|latency| **latency > target * 3 / 4).count();
        let is_seen = count >= ENOUGH || now.saturating_sub(self.judged_at) >= PATIENCE;
        let is_too_fast = slow > count.max(ENOUGH) / 100;
        if is_too_fast {
            self.rate = (self.rate / 2).max(self.speed.min);
        } else if is_seen && !self.is_behind(now) {
            let max = self.speed.max.unwrap_or(u64::MAX);
            self.rate = (self.rate + self.rate / 4).min(max);
        }
        if is_too_fast || is_seen {
            self.judged_at = now;
            self.latencies.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn alone_it_goes_at_the_maximum() {
        let mut throttle = Throttle::new(Speed { max: Some(100 << 20), ..Speed::default() });
        let mut now = Duration::from_secs(10);
        let start = now;
        for _ in 0..1000 {
            now += throttle.wait(now, 1 << 20);
        }
        let rate = 1000.0 / (now - start).as_secs_f64();
        assert!((95.0..=115.0).contains(&rate), "{rate} MiB/s");
        assert_eq!(Throttle::new(Speed::default()).wait(now, 1 << 20), Duration::ZERO);
    }

    #[test]
    fn beside_clients_it_goes_at_the_minimum() {
        let mut throttle = Throttle::new(Speed::default());
        let mut now = Duration::from_secs(10);
        let start = now;
        for _ in 0..200 {
            throttle.record(now, MS);
            now += throttle.wait(now, 1 << 20);
        }
        let rate = 200.0 / (now - start).as_secs_f64();
        assert!((9.5..=10.6).contains(&rate), "{rate} MiB/s");
    }

    #[test]
    fn a_target_is_felt_out() {
        // The clients' latency is a millisecond for each 10 MiB/s of the pass.
        let speed = Speed { min: 1 << 20, max: None, latency: Some(5 * MS) };
        let mut throttle = Throttle::new(speed);
        let mut now = Duration::ZERO;
        let mut rates = Vec::new();
        for round in 0..20_000 {
            let latency = MS.mul_f64(throttle.rate as f64 / (10 << 20) as f64);
            throttle.record(now, latency);
            now += throttle.wait(now, 64 << 10).max(MS);
            if round > 10_000 {
                assert!(latency <= 5 * MS, "{latency:?}");
                rates.push(throttle.rate);
            }
        }
        assert!(rates.iter().max() > Some(&(20 << 20)), "{:?}", rates.iter().max());
    }
}
