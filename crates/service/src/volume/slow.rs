//! Which members are slower than their siblings: a judge of counters.
//!
//! ```text
//!             4 times the siblings' median, twice in a row
//!   as usual ─────────────────────────────────────────────▶ slow
//!      ▲      less than twice it, twice in a row              │
//!      └──────────────────────────────────────────────────────┘
//!             or too few requests to be judged for 5 minutes: it is tried again
//! ```
//!
//! Reads and writes are judged apart, by their mean over a window. No member is judged by few requests, by
//! requests of another size than the siblings', nor by less than a millisecond: what memory and caches do
//! says nothing of a medium.
//!
//! Invariant: pure; time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::control::MemberIo;

/// Factor by which the requests of a slow member take longer than those of its siblings.
const FACTOR: f64 = 4.0;
/// Below which it is slow no more.
const BACK: f64 = 2.0;
/// Time by which they must take longer, in µs.
const LEAST_US: f64 = 1000.0;
/// Requests in a window by which a member can be judged.
const REQUESTS: u64 = 20;
/// Judgements in a row that change an opinion.
const IN_A_ROW: u32 = 2;
/// Time for which the judgement of a member with too few requests is kept.
const KEPT: Duration = Duration::from_secs(300);

/// Requests to a member in a window.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Which member: one of its own for each.
    pub(super) id: u64,
    /// The difference of two [`MemberIo`].
    pub(super) counted: MemberIo,
}

/// Returns the difference of `later` to `earlier`, as far as members are judged by it.
pub(super) fn between(earlier: &MemberIo, later: &MemberIo) -> MemberIo {
    MemberIo {
        read_bytes: later.read_bytes.saturating_sub(earlier.read_bytes),
        written_bytes: later.written_bytes.saturating_sub(earlier.written_bytes),
        reads: later.reads.since(&earlier.reads),
        writes: later.writes.since(&earlier.writes),
        ..MemberIo::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Reads,
    Writes,
}

/// Judgements of members.
#[derive(Debug, Default)]
pub(super) struct Judge {
    opinions: BTreeMap<(u64, Kind), Opinion>,
}

#[derive(Debug, Default)]
struct Opinion {
    /// Why it is slow, if it is.
    slow: Option<String>,
    /// Judgements in a row that say the opposite.
    against: u32,
    /// When it was judged last.
    judged: Duration,
}

/// Mean time and mean size of requests.
#[derive(Clone, Copy)]
struct Mean {
    us: f64,
    bytes: f64,
}

impl Judge {
    /// Judges the members of `array` by what they did in a window that ends at `now`.
    pub(super) fn judge(&mut self, now: Duration, array: &str, members: &[Sample]) {
        for kind in [Kind::Reads, Kind::Writes] {
            for member in members {
                let others = members.iter().filter(|one| one.id != member.id);
                let others: Vec<Mean> = others.filter_map(|one| mean(kind, one)).collect();
                let verdict = mean(kind, member).and_then(|own| compare(own, &others));
                self.opinion(now, (member.id, kind), verdict, array);
            }
        }
    }

    /// `verdict` is what a request took, and what one of the siblings does, in µs.
    fn opinion(
        &mut self,
        now: Duration,
        of: (u64, Kind),
        verdict: Option<(f64, f64)>,
        array: &str,
    ) {
        let opinion = self.opinions.entry(of).or_default();
        let Some((own, usual)) = verdict else {
            if now.saturating_sub(opinion.judged) >= KEPT {
                *opinion = Opinion { judged: now, ..Opinion::default() };
            }
            return;
        };
        opinion.judged = now;
        let is_outlier = match &opinion.slow {
            None => own >= FACTOR * usual && own - usual >= LEAST_US,
            Some(_) => own >= BACK * usual && own - usual >= LEAST_US / 2.0,
        };
        if is_outlier == opinion.slow.is_some() {
            opinion.against = 0;
        } else {
            opinion.against += 1;
            if opinion.against < IN_A_ROW {
                return;
            }
            opinion.against = 0;
        }
        let what = match of.1 {
            Kind::Reads => "reads",
            Kind::Writes => "writes",
        };
        opinion.slow = is_outlier.then(|| {
            format!(
                "{what} take {} in the mean; the other members of {array} take {}",
                in_words(own),
                in_words(usual)
            )
        });
    }

    /// Why a member is slow, if it is.
    pub(super) fn why(&self, id: u64) -> Option<String> {
        let of = |kind| self.opinions.get(&(id, kind))?.slow.clone();
        let both: Vec<String> = [Kind::Reads, Kind::Writes].into_iter().filter_map(of).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }

    /// Returns true if its reads are slow.
    pub(super) fn is_slow_to_read(&self, id: u64) -> bool {
        self.opinions.get(&(id, Kind::Reads)).is_some_and(|one| one.slow.is_some())
    }

    /// Forgets the members that are not among `ids`.
    pub(super) fn keep(&mut self, ids: &[u64]) {
        self.opinions.retain(|(id, _), _| ids.contains(id));
    }
}

fn mean(kind: Kind, member: &Sample) -> Option<Mean> {
    let (times, bytes) = match kind {
        Kind::Reads => (&member.counted.reads, member.counted.read_bytes),
        Kind::Writes => (&member.counted.writes, member.counted.written_bytes),
    };
    let count = times.count;
    (count >= REQUESTS).then(|| Mean {
        us: times.sum_us as f64 / count as f64,
        bytes: bytes as f64 / count as f64,
    })
}

/// Returns the time of a request, and its median for the other members, in µs; none if they cannot be
/// compared.
fn compare(own: Mean, others: &[Mean]) -> Option<(f64, f64)> {
    let bytes = median(others.iter().map(|one| one.bytes).collect())?;
    let usual = median(others.iter().map(|one| one.us).collect())?;
    // Large requests take longer on any medium. Small ones do not: a member that is slow with them is slow.
    (own.bytes <= 2.0 * bytes).then_some((own.us, usual))
}

fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    let above = *of.get(of.len() / 2)?;
    let below = *of.get((of.len() - 1) / 2)?;
    Some(f64::midpoint(below, above))
}

fn in_words(us: f64) -> String {
    match us {
        short if short < 1000.0 => format!("{short:.0} µs"),
        middle if middle < 9_950.0 => format!("{:.1} ms", middle / 1000.0),
        long if long < 999_500.0 => format!("{:.0} ms", long / 1000.0),
        seconds => format!("{:.1} s", seconds / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads of 4 KiB.
    fn reads(id: u64, count: u64, us: u64) -> Sample {
        let mut counted = MemberIo::default();
        (counted.reads.count, counted.reads.sum_us) = (count, count * us);
        counted.read_bytes = count * 4096;
        Sample { id, counted }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn slow(judge: &Judge, ids: std::ops::Range<u64>) -> Vec<u64> {
        ids.filter(|id| judge.is_slow_to_read(*id)).collect()
    }

    #[test]
    fn an_outlier_is_told_with_figures_and_forgotten_when_it_is_as_the_others() {
        let mut judge = Judge::default();
        let bad = [reads(0, 50, 9_100), reads(1, 30, 84_000), reads(2, 50, 8_900)];
        judge.judge(at(0), "md0", &bad);
        assert_eq!(judge.why(1), None, "one window is no habit");
        judge.judge(at(5), "md0", &bad);
        let why = "reads take 84 ms in the mean; the other members of md0 take 9.0 ms";
        assert_eq!(judge.why(1).as_deref(), Some(why));
        assert_eq!(slow(&judge, 0..3), [1]);
        // Between the two limits it stays.
        let better = [reads(0, 50, 9_000), reads(1, 30, 27_000), reads(2, 50, 9_000)];
        (2..6).for_each(|step| judge.judge(at(step * 5), "md0", &better));
        assert_eq!(slow(&judge, 0..3), [1]);
        let well = [reads(0, 50, 9_000), reads(1, 30, 9_000), reads(2, 50, 9_000)];
        (6..8).for_each(|step| judge.judge(at(step * 5), "md0", &well));
        assert_eq!(slow(&judge, 0..3), [0_u64; 0]);
    }

    #[test]
    fn only_four_times_as_long_is_slow_and_only_twice_in_a_row() {
        let usual = 9_000;
        let pair = |us| [reads(0, 50, usual), reads(1, 50, us)];
        let judged = |windows: &[u64]| {
            let mut judge = Judge::default();
            let step = |(step, us): (u64, &u64)| judge.judge(at(step * 5), "md0", &pair(*us));
            (0..).zip(windows).for_each(step);
            slow(&judge, 0..2)
        };
        assert_eq!(judged(&[usual * 4; 2]), [1]);
        assert_eq!(judged(&[usual * 4 - 100; 9]), [0_u64; 0]);
        // One that is slow now and then is not slow, and one that is quick once not quick.
        let (bad, well) = (usual * 9, usual);
        assert_eq!(judged(&[bad, well, bad, well, bad]), [0_u64; 0]);
        assert_eq!(judged(&[bad, bad, well, bad, well]), [1]);
        assert_eq!(judged(&[bad, bad, well, well]), [0_u64; 0]);
        assert_eq!(judged(&[bad, bad, usual * 2 - 100, usual * 2 - 100]), [0_u64; 0]);
    }

    #[test]
    fn who_is_not_asked_any_more_is_tried_again_after_a_while() {
        let mut judge = Judge::default();
        let bad = [reads(0, 50, 2_000), reads(1, 50, 50_000)];
        (0..2).for_each(|step| judge.judge(at(step), "md0", &bad));
        let avoided = [reads(0, 100, 2_000), reads(1, 0, 0)];
        judge.judge(at(1) + KEPT - at(1), "md0", &avoided);
        assert_eq!(slow(&judge, 0..2), [1]);
        judge.judge(at(1) + KEPT, "md0", &avoided);
        assert_eq!(slow(&judge, 0..2), [0_u64; 0]);
        assert_eq!(judge.why(1), None);
    }

    #[test]
    fn nobody_is_judged_by_few_requests_nor_large_ones_nor_microseconds() {
        let few = [reads(0, 50, 2_000), reads(1, REQUESTS - 1, 50_000)];
        let alone = [reads(0, REQUESTS - 1, 2_000), reads(1, 50, 50_000)];
        let mut large = [reads(0, 50, 2_000), reads(1, 50, 50_000)];
        large[1].counted.read_bytes = 50 * (1 << 20);
        let quick = [reads(0, 50, 10), reads(1, 50, 1_000)];
        for members in [&few[..], &alone, &large, &quick] {
            let mut judge = Judge::default();
            (0..5).for_each(|step| judge.judge(at(step), "md0", members));
            assert_eq!(slow(&judge, 0..2), [0_u64; 0], "{members:?}");
        }
    }

    #[test]
    fn writes_are_judged_apart() {
        let writes = |id, us: u64| {
            let Sample { counted, .. } = reads(id, 40, us);
            let MemberIo { reads: writes, read_bytes: written_bytes, .. } = counted;
            Sample { id, counted: MemberIo { writes, written_bytes, ..MemberIo::default() } }
        };
        let mut judge = Judge::default();
        let members = [writes(0, 1_000), writes(1, 12_000)];
        (0..2).for_each(|step| judge.judge(at(step), "md0", &members));
        assert!(judge.why(1).is_some_and(|why| why.starts_with("writes take 12 ms")));
        assert!(!judge.is_slow_to_read(1), "its reads are as they were");
        judge.keep(&[0]);
        assert_eq!(judge.why(1), None);
    }

    proptest! {
        #[test]
        fn members_that_are_much_alike_are_never_slow(
            base in 1u64..100_000,
            spread in proptest::collection::vec(100u64..199, 2..8),
        ) {
            let mut judge = Judge::default();
            let mut members = Vec::new();
            for (id, percent) in (0..).zip(&spread) {
                members.push(reads(id, 50, base * percent / 100));
            }
            (0..4).for_each(|step| judge.judge(at(step), "md0", &members));
            prop_assert!(slow(&judge, 0..8).is_empty());
        }

        /// However many there are, and wherever it stands.
        #[test]
        fn one_that_takes_many_times_as_long_is_found_and_nobody_else(
            count in 2usize..9, which in any::<proptest::sample::Index>(), us in 300u64..50_000,
        ) {
            let bad = which.index(count) as u64;
            let time = |id| if id == bad { us * 5 } else { us };
            let members: Vec<Sample> =
                (0..count as u64).map(|id| reads(id, 50, time(id))).collect();
            let mut judge = Judge::default();
            (0..2).for_each(|step| judge.judge(at(step), "md0", &members));
            prop_assert_eq!(slow(&judge, 0..9), [bad]);
        }

        #[test]
        fn a_window_is_what_came_in_it(
            before in proptest::collection::vec(0u64..1000, 32),
            more in proptest::collection::vec(0u64..1000, 32),
        ) {
            let mut earlier = MemberIo::default();
            earlier.reads.buckets = before;
            let mut later = earlier.clone();
            later.reads.buckets.iter_mut().zip(&more).for_each(|(count, more)| *count += more);
            later.reads.sum_us += 17;
            let counted = between(&earlier, &later);
            prop_assert_eq!(&counted.reads.buckets[..], &more[..]);
            prop_assert_eq!(counted.reads.sum_us, 17);
        }
    }
}
