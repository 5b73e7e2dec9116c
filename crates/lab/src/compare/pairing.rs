//! Which cells of two runs can be compared, and what became of the others.
//!
//! ```text
//!  first \ second   number          was to have one, has none    not in the campaign
//!  number           a pair          lost, and why                only in the first
//!  none             left out, and why (where either was measured)
//!  not there        only in the second
//! ```

use crate::analysis::{Analysis, Cell, Standing, State};
use crate::metric::Metric;
use crate::stats::{RunComparison, compare_runs as compare_samples};
use crate::store::Results;

/// A number that both have.
pub(super) struct Pair {
    pub(super) subject: String,
    pub(super) workload: String,
    pub(super) metric: Metric,
    pub(super) run: RunComparison,
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
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
            pairing.add(subject, workload, Has::of(Some(cell)), Has::of(other));
        }
        for cell in &of_second.cells {
            let subject = &second.subjects[cell.subject].name;
            let workload = &of_second.workloads[cell.workload].label;
            // A cell that the first run has as well has been added above.
            if find((first, of_first), subject, workload).is_none() {
                pairing.add(subject, workload, Has::NoCell, Has::of(Some(cell)));
            }
        }
        pairing
    }

    fn add(&mut self, subject: &str, workload: &str, first: Has<'_>, second: Has<'_>) {
        let name = format!("{subject}: {workload}");
        let was_measured = |cell: &Cell| cell.main().is_some();
        match (first, second) {
            (Has::Number(first), Has::Number(second)) => {
                self.add_pair(subject, workload, first, second);
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

    fn add_pair(&mut self, subject: &str, workload: &str, first: &Cell, second: &Cell) {
        let metric = first.headline;
        let numbers = |cell: &Cell| -> Vec<f64> {
            cell.values.get(&metric).map_or_else(Vec::new, |v| v.values().copied().collect())
        };
        let (a, b) = (numbers(first), numbers(second));
        let name = || format!("{subject}: {workload}");
        match compare_samples(&a, &b) {
            Ok(run) => self.pairs.push(Pair {
                subject: subject.to_owned(),
                workload: workload.to_owned(),
                metric,
                run,
                first: a,
                second: b,
                suspect: first.standing.max(second.standing) == Standing::Suspect,
            }),
            // What can be compared with itself is in order, so the other one is not.
            Err(error) if compare_samples(&a, &a).is_ok() => {
                let why = Some(error.to_string());
                self.lost.push((name(), say("without a ratio", "second", why)));
            }
            Err(error) => {
                let why = Some(error.to_string());
                self.left_out.push((name(), say("without a ratio", "first", why)));
            }
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
