//! Conclusions from the curve of a cache: numbers and sentences. Pure.
//!
//! A difference is reported only if it exceeds the error of the sample (two standard errors of both
//! ends) and [`MATTERS`]. The time that 1,000 reads wait for the origin is their number of misses
//! times the mean latency of the origin.

use braid_stack::ByteSize;

use braid_service::control::{CacheCurve, CacheStatus, CurvePoint};

/// Hits of a thousand reads: a smaller difference is none.
const MATTERS: f64 = 10.0;

/// A cache and what it would be.
pub(super) struct Advice<'a> {
    pub(super) curve: &'a CacheCurve,
    /// There were enough reads.
    pub(super) is_sound: bool,
    /// The most important first.
    pub(super) answer: Vec<String>,
}

/// Comparison of a policy at a size with the current cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    Better,
    Worse,
    /// No difference that matters and can be told.
    Alike,
}

impl<'a> Advice<'a> {
    pub(super) fn of(curve: &'a CacheCurve) -> Advice<'a> {
        let mut advice = Advice { curve, is_sound: false, answer: Vec::new() };
        let block = curve.cache.block_bytes.max(1);
        // The cache has been filled, and what came then was seen as well.
        let enough = 2 * curve.cache.size_bytes / block;
        advice.is_sound = advice.now().is_some() && curve.block_reads >= enough;
        advice.answer = match advice.now() {
            None => vec![format!(
                "A cache of {:#} is too small for advice: its miniatures must find room in the 1.5 % of its \
                 size that is for more than data. 8 MiB are enough.",
                ByteSize(curve.cache.size_bytes)
            )],
            Some(_) if !advice.is_sound => vec![format!(
                "Too few reads for advice: {} of blocks by now, and it takes {enough}, twice what the cache \
                 holds.",
                curve.block_reads
            )],
            Some(now) => [advice.of_more(now), advice.of_policies(now), advice.of_less(now)].into(),
        };
        if let Some(why) = curve.cache.aside.why() {
            advice.answer.insert(0, format!("It steps aside: {why}."));
        }
        advice
    }

    pub(super) fn cache(&self) -> &'a CacheStatus {
        &self.curve.cache
    }

    /// The point of the cache as it is.
    pub(super) fn now(&self) -> Option<&'a CurvePoint> {
        let is_now = |one: &&CurvePoint| {
            one.size_bytes == self.cache().size_bytes && one.policy == self.cache().policy
        };
        self.curve.points.iter().find(is_now)
    }

    /// Those of the policy that it has, from the smallest size to the largest.
    pub(super) fn own(&self) -> impl DoubleEndedIterator<Item = &'a CurvePoint> {
        let policy = self.cache().policy.as_str();
        self.curve.points.iter().filter(move |one| one.policy == policy)
    }

    /// Milliseconds that a thousand reads wait for the origin; none before it was asked.
    pub(super) fn wait_ms(&self, point: &CurvePoint) -> Option<f64> {
        let origin = self.cache().origin_read_us?;
        Some(point.miss_ppm as f64 / 1e6 * origin as f64)
    }

    /// Milliseconds of a thousand reads that `point` would save beside the cache as it is; below 0 if it
    /// would cost them.
    pub(super) fn saved_ms(&self, point: &CurvePoint) -> Option<f64> {
        Some(self.wait_ms(self.now()?)? - self.wait_ms(point)?)
    }

    pub(super) fn beside(&self, point: &CurvePoint) -> Beside {
        let Some(now) = self.now() else { return Beside::Alike };
        let gain = (point.hit_percent() - now.hit_percent()) * 10.0;
        let error = point.error_percent().hypot(now.error_percent()) * 10.0;
        match gain.abs() >= MATTERS.max(error) {
            true if gain > 0.0 => Beside::Better,
            true => Beside::Worse,
            false => Beside::Alike,
        }
    }

    /// The smallest larger size that has half of what the largest would gain, or more.
    fn of_more(&self, now: &CurvePoint) -> String {
        let larger = || self.own().filter(|one| one.size_bytes > now.size_bytes);
        let Some(most) = larger().next_back() else {
            return "All of the origin fits into it: more memory would hold nothing.".to_owned();
        };
        let half = now.miss_ppm.saturating_sub(most.miss_ppm) / 2;
        let is_worth = |one: &&CurvePoint| {
            one.miss_ppm + half <= now.miss_ppm && self.beside(one) == Beside::Better
        };
        match larger().find(is_worth) {
            Some(best) => format!(
                "{:#} more memory, {:#}, would {}.",
                ByteSize(best.size_bytes - now.size_bytes),
                ByteSize(best.size_bytes),
                self.change(now, best)
            ),
            None => format!(
                "More memory would save nothing that can be told: {:.1} % of reads hit, with {:#} {:.1} %.",
                now.hit_percent(),
                ByteSize(most.size_bytes),
                most.hit_percent()
            ),
        }
    }

    /// The best policy at the size that it has.
    fn of_policies(&self, now: &CurvePoint) -> String {
        let others = self.curve.points.iter().filter(|one| one.size_bytes == now.size_bytes);
        let best = others.min_by_key(|one| one.miss_ppm);
        match best.filter(|one| self.beside(one) == Beside::Better) {
            Some(best) => {
                format!("{} at the size that it has would {}.", best.policy, self.change(now, best))
            }
            None => format!("No policy is better than {} at this size.", now.policy),
        }
    }

    /// The smallest size that is as good, or what half of it would lose.
    fn of_less(&self, now: &CurvePoint) -> String {
        let smaller = || self.own().filter(|one| one.size_bytes < now.size_bytes);
        if let Some(enough) = smaller().find(|one| self.beside(one) != Beside::Worse) {
            let size = ByteSize(enough.size_bytes);
            return format!("{size:#} would do: {:.1} % of reads hit.", enough.hit_percent());
        }
        let half = smaller().find(|one| one.size_bytes * 2 >= now.size_bytes);
        half.map_or(String::new(), |half| {
            format!("{:#} would {}.", ByteSize(half.size_bytes), self.change(now, half))
        })
    }

    /// "save 120 ms of the 300 ms …: 71.0 % of reads would hit instead of 63.1 %".
    fn change(&self, now: &CurvePoint, other: &CurvePoint) -> String {
        let hits = format!(
            "{:.1} % of reads hit instead of {:.1} %",
            other.hit_percent(),
            now.hit_percent()
        );
        match (self.saved_ms(other), self.wait_ms(now)) {
            (Some(saved), Some(wait)) if saved >= 0.0 => format!(
                "save {} of the {} that 1,000 reads wait for the origin: {hits}",
                time(saved),
                time(wait)
            ),
            (Some(saved), Some(wait)) => format!(
                "cost {} beside the {} that 1,000 reads wait for the origin: {hits}",
                time(-saved),
                time(wait)
            ),
            _ => format!("have {hits}"),
        }
    }
}

/// Milliseconds, as people read them.
pub(super) fn time(ms: f64) -> String {
    match ms.abs() {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of 16 MiB whose reads of the origin take 10 ms, with s3-fifo's hits in percent at 8, 16, 32
    /// and 64 MiB, and of LRU always 50.
    fn curve(hits: [u64; 4], block_reads: u64) -> CacheCurve {
        let cache = serde_json::json!({
            "cache": "cache(size=16M, a)", "mode": "write-through", "policy": "s3-fifo",
            "block_bytes": 4096, "size_bytes": 16 << 20, "used_bytes": 0, "index_bytes": 0,
            "reads": 0, "writes": 0, "cache_hits": 0, "replacement": 0, "write_replacement": 0,
            "read_invalidates": 0, "write_invalidates": 0, "uncached_reads": 0,
            "uncached_writes": 0, "disk_reads": 0, "disk_writes": 0, "cache_reads": 0,
            "cache_writes": 0, "bytes_read": 0, "bytes_from_ram": 0, "bytes_from_origin": 0,
            "bytes_written": 0, "origin_read_us": 10_000,
        });
        let point = |policy: &str, size: u64, hits: u64| CurvePoint {
            policy: policy.to_owned(),
            size_bytes: size << 20,
            miss_ppm: (100 - hits) * 10_000,
            error_ppm: 2_000,
            filled: true,
            sampled_reads: 1000,
        };
        let points = [8, 16, 32, 64].iter().zip(hits);
        let points = points
            .flat_map(|(size, hits)| [point("s3-fifo", *size, hits), point("lru", *size, 50)]);
        CacheCurve {
            cache: serde_json::from_value(cache).expect("a status"),
            block_reads,
            points: points.collect(),
        }
    }

    fn answer(hits: [u64; 4]) -> [String; 3] {
        let curve = curve(hits, 1 << 20);
        Advice::of(&curve).answer.try_into().expect("three sentences")
    }

    #[test]
    fn the_first_sentence_says_what_more_memory_is_worth() {
        let [more, policy, less] = answer([40, 60, 80, 90]);
        assert_eq!(
            more,
            "16 MiB more memory, 32 MiB, would save 2000 ms of the 4000 ms that 1,000 reads wait for the \
             origin: 80.0 % of reads hit instead of 60.0 %."
        );
        assert_eq!(policy, "No policy is better than s3-fifo at this size.");
        assert!(less.starts_with("8 MiB would cost 2000 ms beside the 4000 ms"), "{less}");
        // The knee is further up; another policy is better; less is as good.
        let [more, policy, less] = answer([30, 30, 30, 90]);
        assert!(more.starts_with("48 MiB more memory, 64 MiB, would save 6000 ms"), "{more}");
        assert!(policy.starts_with("lru at the size that it has would save 2000 ms"), "{policy}");
        assert_eq!(less, "8 MiB would do: 30.0 % of reads hit.");
        let [more, ..] = answer([60; 4]);
        assert!(more.starts_with("More memory would save nothing that can be told"), "{more}");
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let few = curve([40, 60, 80, 90], 8191);
        let advice = Advice::of(&few);
        assert!(!advice.is_sound);
        assert!(
            advice.answer[0].starts_with("Too few reads for advice: 8191 "),
            "{:?}",
            advice.answer
        );
        let mut none = curve([0; 4], 1 << 20);
        none.points.clear();
        assert!(Advice::of(&none).answer[0].contains("too small for advice"));
        let mut vague = curve([40, 60, 80, 90], 1 << 20);
        vague.points.iter_mut().for_each(|point| point.error_ppm = 150_000);
        let advice = Advice::of(&vague);
        assert!(advice.curve.points.iter().all(|one| advice.beside(one) == Beside::Alike));
        assert!(advice.answer[0].contains("nothing that can be told"), "{:?}", advice.answer);
    }
}
