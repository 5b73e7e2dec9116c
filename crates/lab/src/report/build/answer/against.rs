//! What the subjects are against the baseline: each by its counts, and the leader by kind of work.
//!
//! Invariants: a subject is compared over the workloads that it and the baseline have, so that one
//! missing number does not take a kind of work with it; the worst of several kinds is only called
//! slower when that is proven with all kinds counted, for the worst of many looks worse than it is.

use super::{FEW, best_number_of, enumerate, factor, interval};
use crate::analysis::{
    ALPHA, Kind, Outlook, find_kinds, outlook, pooled_baseline, pooled_speed, speeds, test_for,
};
use crate::metric::Better;
use crate::report::build::Context;
use crate::report::units::{digits, kind_of_interval};
use crate::stats::{
    BaselinePercent, Better as Direction, ByRepetition, IntervalKind, Standing,
    compare_with_baseline, find_winner,
};

/// More subjects than this are counted instead of named.
const MOST_NAMED: usize = 2 * FEW;

/// A subject's speed at one kind of workload against the baseline's.
struct Gain {
    kind: Kind,
    /// How many of the kind's workloads both have.
    shared: usize,
    speed: ByRepetition,
    baseline: ByRepetition,
    ratio: BaselinePercent,
    outlook: Outlook,
}

impl Gain {
    fn percent(&self) -> f64 {
        self.ratio.paired.median
    }

    /// "cp-read", or "cp-read (1 of its 2 workloads)".
    fn name(&self) -> String {
        match self.kind.workloads.len() {
            all if self.shared < all => {
                format!("{} ({} of its {all} workloads)", self.kind.name, self.shared)
            }
            _ => self.kind.name.clone(),
        }
    }

    /// Whether the subject is proven to be slower, where so many kinds are looked at.
    fn is_proven_slower(&self, kinds: usize) -> bool {
        let sides = [&self.baseline, &self.speed];
        let test = test_for(self.ratio.pairs);
        let contest = find_winner(&sides, Direction::Higher, test, ALPHA / kinds.max(1) as f64);
        contest.is_ok_and(|contest| contest.standing == Standing::Winner(0))
    }
}

fn gains_of(context: &Context<'_>, subject: usize) -> Vec<Gain> {
    let analysis = context.analysis;
    if analysis.baselines.is_empty() || analysis.baselines == [subject] {
        return Vec::new();
    }
    let has_both = |work: &usize| {
        speeds(analysis.cell(*work, subject)).is_some()
            && !pooled_baseline(analysis, &[*work]).is_empty()
    };
    let gain = |kind: Kind| {
        let shared: Vec<usize> = kind.workloads.iter().copied().filter(has_both).collect();
        let baseline = pooled_baseline(analysis, &shared);
        let speed = pooled_speed(analysis, subject, &shared);
        let ratio = compare_with_baseline(&speed, &[&baseline]).ok()?;
        let outlook = outlook(Better::Higher, ratio.verdict);
        Some(Gain { kind, shared: shared.len(), speed, baseline, ratio, outlook })
    };
    find_kinds(analysis).into_iter().filter_map(gain).collect()
}

/// ": 3.1 times the single stick in sequential reads (95 % 3.0 to 3.2), but random writes gain
/// nothing"; without a baseline its best number.
pub(super) fn merits(context: &Context<'_>, subject: usize) -> String {
    let gains = gains_of(context, subject);
    let Some(baseline) = context.baseline_name().filter(|_| !gains.is_empty()) else {
        return best_number_of(context, subject);
    };
    let best = gains.iter().max_by(|a, b| a.percent().total_cmp(&b.percent()));
    let worst = gains.iter().min_by(|a, b| a.percent().total_cmp(&b.percent()));
    let (Some(best), Some(worst)) = (best, worst) else { return String::new() };
    let times = |gain: &Gain| factor(gain.percent() / 100.0);
    if best.ratio.paired.kind == IntervalKind::Range(1) {
        let mut text = format!(": {} as fast as {baseline} in {}", times(best), best.name());
        if worst.kind != best.kind {
            text += &format!(" and {} in {}", times(worst), worst.name());
        }
        return text + ", in one repetition";
    }
    let mut text = match best.outlook {
        Outlook::Better => format!(
            ": {} as fast as {baseline} in {}{}",
            times(best),
            best.name(),
            interval(&best.ratio.paired, |percent| digits(percent / 100.0))
        ),
        _ => format!(": no kind of work gains anything over {baseline} that can be told apart"),
    };
    if worst.kind != best.kind {
        let least =
            || format!("{} %{}", digits(worst.percent()), interval(&worst.ratio.paired, digits));
        text += &match worst.outlook {
            Outlook::Better => format!(", and still {} as fast in {}", times(worst), worst.name()),
            Outlook::Same if best.outlook == Outlook::Better => {
                format!(", but {} gain nothing that can be told apart", worst.name())
            }
            Outlook::Same => String::new(),
            Outlook::Worse if worst.is_proven_slower(gains.len()) => {
                format!(", but slower in {}: {}", worst.name(), least())
            }
            Outlook::Worse => format!("; the least is {} with {}", worst.name(), least()),
        };
    }
    text
}

/// How a subject's workloads compare with the baseline's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counts {
    faster: usize,
    slower: usize,
    compared: usize,
}

impl Counts {
    fn of(context: &Context<'_>, subject: usize) -> Self {
        let analysis = context.analysis;
        let outlooks = || {
            let works = 0..analysis.workloads.len();
            works.filter_map(|work| analysis.cell(work, subject).outlook())
        };
        let count = |wanted| outlooks().filter(|outlook| *outlook == wanted).count();
        Self {
            faster: count(Outlook::Better),
            slower: count(Outlook::Worse),
            compared: outlooks().count(),
        }
    }

    /// "faster in 1 and slower in 3 of 7".
    fn words(self, workloads: &str) -> String {
        let Self { faster, slower, compared } = self;
        let of = |count: usize| match count {
            all if all == compared && all > 1 => format!("all {all}{workloads}"),
            some => format!("{some} of {compared}{workloads}"),
        };
        match (faster, slower) {
            (0, 0) => format!("like it in {}, as far as can be told", of(compared)),
            (_, 0) => format!("faster in {}", of(faster)),
            (0, _) => format!("slower in {}", of(slower)),
            _ => format!("faster in {faster} and slower in {slower} of {compared}{workloads}"),
        }
    }
}

/// "Against single, raid1 and raid5 are slower in 6 of 7 workloads; raid0 is faster in 1 of 7.",
/// and how much of that chance would do. `None` when nothing can be told apart, and where the
/// sentence on the leader says it all.
pub(super) fn against_baseline(context: &Context<'_>) -> Option<String> {
    let baseline = context.baseline_name()?;
    let analysis = context.analysis;
    let counted: Vec<(usize, Counts)> = (0..analysis.subjects)
        .filter(|subject| !analysis.is_baseline(*subject))
        .map(|subject| (subject, Counts::of(context, subject)))
        .filter(|(_, counts)| counts.compared > 0)
        .collect();
    let stands_out = |(_, counts): &&(usize, Counts)| counts.faster + counts.slower > 0;
    let said_already = matches!(counted.as_slice(), [(_, counts)] if counts.compared < 3);
    if said_already || !counted.iter().any(|one| stands_out(&one)) {
        return None;
    }
    let said = if counted.len() <= MOST_NAMED {
        one_by_one(context, &counted)
    } else {
        let count = |is: &dyn Fn(&Counts) -> bool| counted.iter().filter(|(_, c)| is(c)).count();
        format!(
            "of {} subjects {} are faster in some workloads and slower in none, {} slower in some \
             and faster in none, {} both",
            counted.len(),
            count(&|counts| counts.faster > 0 && counts.slower == 0),
            count(&|counts| counts.slower > 0 && counts.faster == 0),
            count(&|counts| counts.slower > 0 && counts.faster > 0)
        )
    };
    Some(format!("Against {baseline}, {said}.{}", what_chance_does(context)))
}

/// Subjects with the same counts together, those that stand out most first.
fn one_by_one(context: &Context<'_>, counted: &[(usize, Counts)]) -> String {
    let mut groups: Vec<(Counts, Vec<&str>)> = Vec::new();
    for (subject, counts) in counted {
        let name = context.subject(*subject);
        match groups.iter_mut().find(|(other, _)| other == counts) {
            Some((_, names)) => names.push(name),
            None => groups.push((*counts, vec![name])),
        }
    }
    groups.sort_by_key(|(counts, _)| std::cmp::Reverse(counts.faster.max(counts.slower)));
    let parts = groups.iter().enumerate().map(|(place, (counts, names))| {
        let be = if names.len() == 1 { "is" } else { "are" };
        let workloads = match (place, counts.compared) {
            (0, 1) => " workload",
            (0, _) => " workloads",
            _ => "",
        };
        format!("{} {be} {}", enumerate(names), counts.words(workloads))
    });
    parts.collect::<Vec<String>>().join("; ")
}

/// How many equal workloads would be counted as well: each is looked at by its own interval.
fn what_chance_does(context: &Context<'_>) -> String {
    let ratios = context.analysis.cells.iter().filter_map(|cell| cell.ratio.as_ref());
    let widest = ratios.map(|ratio| ratio.paired.kind).min_by_key(|kind| match kind {
        IntervalKind::Range(repetitions) => *repetitions,
        IntervalKind::Bootstrap95 | IntervalKind::OrderStatistics95 => usize::MAX,
    });
    match widest {
        Some(kind @ IntervalKind::Range(repetitions)) => format!(
            " Each workload is looked at by itself, by the {}: of equal ones about {} % would \
             count as well.",
            kind_of_interval(kind),
            digits_of_chance(repetitions)
        ),
        _ => " Each workload is looked at by itself, by its 95 % interval.".to_owned(),
    }
}

/// How often the range of so many repetitions lies beside the true median, in percent.
fn digits_of_chance(repetitions: usize) -> String {
    let power = i32::try_from(repetitions).unwrap_or(i32::MAX);
    format!("{:.0}", 200.0 * 0.5_f64.powi(power))
}
