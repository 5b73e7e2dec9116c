//! Which cells of two runs can be compared, and what became of the others.
//!
//! ```text
//!  first \ second   number          was to have one, has none    not in the campaign
//!  number           a pair          lost, and why                only in the first
//!  none             not compared, and why (where either was measured)
//!  not there        only in the second
//! ```

use std::collections::BTreeMap;

use crate::analysis::{Analysis, Cell, Standing, State, speeds};
use crate::stats::{BothRuns, ByRepetition, mean};
use braid_lab::store::Results;

/// A number that both have.
pub(super) struct Pair<'a> {
    pub(super) subject: &'a str,
    pub(super) workload: &'a str,
    pub(super) first: &'a Cell,
    pub(super) second: &'a Cell,
    /// The logarithms of both by repetition, each in percent of the baseline of its run where that is so.
    pub(super) logarithms: BothRuns,
    pub(super) against_baseline: bool,
    pub(super) is_baseline: bool,
}

impl Pair<'_> {
    /// The logarithm of the second over the first.
    pub(super) fn change(&self) -> f64 {
        mean(&self.logarithms[1]) - mean(&self.logarithms[0])
    }
}

/// Which cells can be compared.
#[derive(Default)]
pub(super) struct Pairing<'a> {
    pub(super) pairs: Vec<Pair<'a>>,
    pub(super) lost: Vec<(String, String)>,
    pub(super) not_compared: Vec<(String, String)>,
}

impl<'a> Pairing<'a> {
    pub(super) fn of(runs: [(&'a Results, &'a Analysis); 2]) -> Self {
        let mut cells: BTreeMap<(&str, &str), [Option<&Cell>; 2]> = BTreeMap::new();
        for (side, (results, analysis)) in runs.into_iter().enumerate() {
            for cell in analysis.cells.iter().filter(|cell| cell.state != State::NotPlanned) {
                let subject = results.subjects[cell.subject].name.as_str();
                let workload = analysis.workloads[cell.workload].label.as_str();
                cells.entry((subject, workload)).or_default()[side] = Some(cell);
            }
        }
        let mut pairing = Self::default();
        let second_is_predicted = runs[1].1.log_error.is_some();
        for ((subject, workload), [a, b]) in cells {
            let name = format!("{subject}: {workload}");
            let is_measured = |cell: &Cell| cell.state == State::Measured;
            let was_measured = [a, b].into_iter().flatten().any(is_measured);
            let only = |which| (name.clone(), format!("only in the {which} run"));
            let without = |which, cell| {
                let (how, why) = without_number(cell)?;
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                Some((name.clone(), format!("{how} in the {which} run{why}")))
            };
            let of_a = a.and_then(|cell| without("first", cell));
            let of_b = b.and_then(|cell| without("second", cell));
            match (a, of_a, b, of_b) {
                (Some(first), None, Some(second), None) => {
                    let sides = [(runs[0].1, first), (runs[1].1, second)];
                    pairing.pairs.push(pair(subject, workload, sides));
                }
                (Some(_), None, None, _) => pairing.not_compared.push(only("first")),
                (None, _, Some(_), None) => pairing.not_compared.push(only("second")),
                // A number that a prediction lacks was not lost.
                (Some(_), None, _, Some(why)) if second_is_predicted => {
                    pairing.not_compared.push(why);
                }
                (Some(_), None, _, Some(lost)) => pairing.lost.push(lost),
                (_, Some(why), ..) | (.., Some(why)) if was_measured => {
                    pairing.not_compared.push(why);
                }
                _ => {}
            }
        }
        pairing
    }
}

/// The words for a cell without a number that may be compared, and the reason; `None` for a cell with one.
fn without_number(cell: &Cell) -> Option<(&'static str, Option<&String>)> {
    Some(match &cell.state {
        State::NotPlanned | State::NotYet => ("not measured yet", None),
        State::Failed(why) => ("failed", Some(why)),
        State::Impossible(why) => ("impossible", Some(why)),
        State::Unsettled(why) => ("not settled", Some(why)),
        State::Measured if cell.standing == Standing::Invalid => {
            let reason = cell.findings.iter().find(|f| f.standing == Standing::Invalid);
            ("invalid", reason.map(|finding| &finding.why))
        }
        State::Measured if speeds(cell).is_none() => ("without a number above 0", None),
        State::Measured => return None,
    })
}

fn pair<'a>(subject: &'a str, workload: &'a str, sides: [(&Analysis, &'a Cell); 2]) -> Pair<'a> {
    let [of_first, of_second] = sides.map(|(analysis, cell)| against_baseline(analysis, cell));
    // In percent of the baseline only where both runs can be, and are of one kind: a prediction has no
    // machine and no hour that its baseline would share.
    let [first, second] = sides.map(|(analysis, _)| analysis.log_error.is_some());
    let relative =
        of_first.zip(of_second).filter(|_| first == second).map(|(first, second)| [first, second]);
    let own = |(_, cell): (&Analysis, &Cell)| -> Vec<f64> {
        let values = cell.values.get(&cell.headline).into_iter().flat_map(ByRepetition::values);
        values.map(|value| value.ln()).collect()
    };
    Pair {
        subject,
        workload,
        first: sides[0].1,
        second: sides[1].1,
        against_baseline: relative.is_some(),
        logarithms: relative.unwrap_or_else(|| sides.map(own)),
        is_baseline: sides.iter().all(|(analysis, cell)| analysis.is_baseline(cell.subject)),
    }
}

/// The logarithms of a cell's number by the baseline of the same repetition; `None` of a baseline itself,
/// and without one.
fn against_baseline(analysis: &Analysis, cell: &Cell) -> Option<Vec<f64>> {
    let baseline = analysis.baseline(cell.workload, cell.headline);
    let baseline = baseline.filter(|_| !analysis.is_baseline(cell.subject))?;
    let own = cell.values.get(&cell.headline)?;
    let both =
        own.iter().filter_map(|(repetition, value)| Some((value, baseline.get(repetition)?)));
    let found: Vec<f64> = both.map(|(value, baseline)| (value / baseline).ln()).collect();
    (!found.is_empty() && found.iter().all(|one| one.is_finite())).then_some(found)
}
