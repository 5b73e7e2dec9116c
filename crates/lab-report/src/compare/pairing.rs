//! Which cells of two runs can be compared, and what became of the others.
//!
//! ```text
//!  first \ second   number          was to have one, has none    not in the campaign
//!  number           a pair          lost, and why                only in the first
//!  none             left out, and why (where either was measured)
//!  not there        only in the second
//! ```

use super::mean_log;
use crate::analysis::{Analysis, Cell, Standing, State};
use crate::stats::{ByRepetition, average_baselines};
use braid_lab::metric::Metric;
use braid_lab::store::Results;

/// A number that both have.
pub(super) struct Pair {
    pub(super) subject: String,
    pub(super) workload: String,
    pub(super) metric: Metric,
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
    /// The logarithm of the second over the first, each of them in percent of the baseline of its run
    /// where that is so.
    pub(super) change: f64,
    /// Its standard error by the repetitions; `None` where a side has one.
    pub(super) error: Option<f64>,
    pub(super) against_baseline: bool,
    pub(super) is_baseline: bool,
    pub(super) suspect: bool,
}

/// Which cells can be compared.
#[derive(Default)]
pub(super) struct Pairing {
    pub(super) pairs: Vec<Pair>,
    pub(super) lost: Vec<(String, String)>,
    pub(super) only_first: Vec<String>,
    pub(super) only_second: Vec<String>,
    pub(super) left_out: Vec<(String, String)>,
}

/// What a run has of a cell.
enum Has<'a> {
    /// A number that may be compared.
    Number(&'a Cell),
    /// None, though it was to be measured: how that is said, and the reason.
    Nothing(&'a Cell, &'static str, Option<String>),
    /// No such cell.
    NoCell,
}

impl<'a> Has<'a> {
    fn of(cell: Option<&'a Cell>) -> Self {
        let Some(cell) = cell else { return Self::NoCell };
        let nothing = |how, why: Option<&String>| Self::Nothing(cell, how, why.cloned());
        match &cell.state {
            State::NotPlanned => Self::NoCell,
            State::NotYet => nothing("not measured yet", None),
            State::Failed(why) => nothing("failed", Some(why)),
            State::Impossible(why) => nothing("impossible", Some(why)),
            State::Unsettled(why) => nothing("not settled", Some(why)),
            State::Measured if cell.standing == Standing::Invalid => {
                let reason = cell.findings.iter().find(|f| f.standing == Standing::Invalid);
                nothing("invalid", reason.map(|finding| &finding.why))
            }
            State::Measured if cell.main().is_none() => nothing("without a number", None),
            State::Measured => Self::Number(cell),
        }
    }
}

/// "failed in the second run: it crashed".
fn say(how: &str, which: &str, why: Option<String>) -> String {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("{how} in the {which} run{why}")
}

impl Pairing {
    pub(super) fn of(
        (first, of_first): (&Results, &Analysis),
        (second, of_second): (&Results, &Analysis),
    ) -> Self {
        let mut pairing = Self::default();
        for cell in &of_first.cells {
            let subject = &first.subjects[cell.subject].name;
            let workload = &of_first.workloads[cell.workload].label;
            let other = find((second, of_second), subject, workload);
            let sides = other.map(|other| (Side::of(of_first, cell), Side::of(of_second, other)));
            pairing.add(subject, workload, Has::of(Some(cell)), Has::of(other), sides);
        }
        for cell in &of_second.cells {
            let subject = &second.subjects[cell.subject].name;
            let workload = &of_second.workloads[cell.workload].label;
            // A cell that the first run has as well has been added above.
            if find((first, of_first), subject, workload).is_none() {
                pairing.add(subject, workload, Has::NoCell, Has::of(Some(cell)), None);
            }
        }
        pairing
    }

    fn add(
        &mut self,
        subject: &str,
        workload: &str,
        first: Has<'_>,
        second: Has<'_>,
        sides: Option<(Side, Side)>,
    ) {
        let name = format!("{subject}: {workload}");
        let was_measured = |cell: &Cell| cell.main().is_some();
        match (first, second) {
            (Has::Number(first), Has::Number(second)) => {
                if let Some(sides) = sides {
                    self.add_pair(subject, workload, (first, second), sides);
                }
            }
            (Has::Number(_), Has::Nothing(_, how, why)) => {
                self.lost.push((name, say(how, "second", why)));
            }
            (Has::Number(_), Has::NoCell) => self.only_first.push(name),
            (Has::NoCell, Has::Number(_)) => self.only_second.push(name),
            (Has::Nothing(_, how, why), Has::Number(_)) => {
                self.left_out.push((name, say(how, "first", why)));
            }
            (Has::Nothing(cell, how, why), _) if was_measured(cell) => {
                self.left_out.push((name, say(how, "first", why)));
            }
            (_, Has::Nothing(cell, how, why)) if was_measured(cell) => {
                self.left_out.push((name, say(how, "second", why)));
            }
            _ => {}
        }
    }

    fn add_pair(
        &mut self,
        subject: &str,
        workload: &str,
        (first, second): (&Cell, &Cell),
        (a, b): (Side, Side),
    ) {
        let name = || format!("{subject}: {workload}");
        let no_ratio = |which| {
            let why = "it has a number that is not above 0".to_owned();
            say("without a ratio", which, Some(why))
        };
        let (Some(of_a), Some(of_b)) = (mean_log(&a.values), mean_log(&b.values)) else {
            match mean_log(&a.values) {
                Some(_) => self.lost.push((name(), no_ratio("second"))),
                None => self.left_out.push((name(), no_ratio("first"))),
            }
            return;
        };
        // In percent of the baseline only where both runs can be.
        let relative = a.relative.as_deref().zip(b.relative.as_deref());
        let relative = relative.and_then(|(a, b)| Some((mean_log(a)?, mean_log(b)?)));
        let ((mean_a, error_a), (mean_b, error_b)) = relative.unwrap_or((of_a, of_b));
        self.pairs.push(Pair {
            subject: subject.to_owned(),
            workload: workload.to_owned(),
            metric: first.headline,
            change: mean_b - mean_a,
            error: error_a.zip(error_b).map(|(a, b)| a.hypot(b)),
            against_baseline: relative.is_some(),
            is_baseline: a.is_baseline && b.is_baseline,
            first: a.values,
            second: b.values,
            suspect: first.standing.max(second.standing) == Standing::Suspect,
        });
    }
}

/// What one run has of a cell.
struct Side {
    values: Vec<f64>,
    /// By the baseline of the same repetition; `None` of a baseline itself and without one.
    relative: Option<Vec<f64>>,
    is_baseline: bool,
}

impl Side {
    fn of(analysis: &Analysis, cell: &Cell) -> Self {
        let of = |cell: &Cell| -> ByRepetition {
            cell.values.get(&cell.headline).cloned().unwrap_or_default()
        };
        let own = of(cell);
        let is_baseline = analysis.is_baseline(cell.subject);
        let baselines = analysis.baselines.iter().map(|one| analysis.cell(cell.workload, *one));
        let baselines: Option<Vec<ByRepetition>> =
            baselines.map(|cell| cell.is_usable().then(|| of(cell))).collect();
        let average = baselines
            .filter(|all| !all.is_empty() && !is_baseline)
            .map(|all| average_baselines(&all.iter().collect::<Vec<&ByRepetition>>()));
        let relative: Option<Vec<f64>> = average.map(|average| {
            let both = own.iter().filter_map(|(rep, value)| Some(value / average.get(rep)?));
            both.collect()
        });
        Self {
            values: own.values().copied().collect(),
            relative: relative.filter(|values| !values.is_empty()),
            is_baseline,
        }
    }
}

fn find<'a>(
    (results, analysis): (&Results, &'a Analysis),
    subject: &str,
    workload: &str,
) -> Option<&'a Cell> {
    let work = analysis.workloads.iter().position(|work| work.label == workload)?;
    let subject = results.subjects.iter().position(|other| other.name == subject)?;
    Some(analysis.cell(work, subject))
}
