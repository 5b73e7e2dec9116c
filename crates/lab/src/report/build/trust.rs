//! What can be believed, and why the rest cannot.

use super::{Context, cells};
use crate::analysis::{Standing, State};
use crate::report::model::{Tone, TrustBox, TrustReason};

/// The box.
pub(super) fn trust_box(context: &Context<'_>) -> TrustBox {
    let mut trust = TrustBox::default();
    for cell in &context.analysis.cells {
        match (&cell.state, cell.standing) {
            (State::NotPlanned, _) => {}
            (State::Measured, Standing::Ok) => trust.ok += 1,
            (State::Measured, Standing::Suspect) => trust.suspect += 1,
            (State::Measured, Standing::Invalid) => trust.invalid += 1,
            _ => trust.missing += 1,
        }
        let name = format!("{}: {}", context.subject(cell.subject), context.label(cell.workload));
        for finding in &cell.findings {
            let tone = match finding.standing {
                Standing::Invalid => Tone::Invalid,
                Standing::Suspect => Tone::Suspect,
                Standing::Ok => continue,
            };
            let reason = TrustReason {
                tone,
                rule: finding.rule.to_owned(),
                why: finding.why.clone(),
                action: finding.action.clone(),
                cells: Vec::new(),
            };
            add(&mut trust.reasons, reason, name.clone());
        }
        let (rule, action) = match cell.state {
            State::Failed(_) => (
                "failed",
                "read the raw output of the trial, then run the campaign again into the same directory: only what is missing is measured",
            ),
            State::Impossible(_) => {
                ("impossible", "change the campaign, or leave this combination out")
            }
            _ => continue,
        };
        let why = match &cell.state {
            State::Failed(reason) | State::Impossible(reason) => reason.clone(),
            _ => cells::why_missing(cell),
        };
        let reason = TrustReason {
            tone: Tone::Missing,
            rule: rule.to_owned(),
            why,
            action: action.to_owned(),
            cells: Vec::new(),
        };
        add(&mut trust.reasons, reason, name);
    }
    trust.reasons.sort_by_key(|reason| match reason.tone {
        Tone::Invalid => 0,
        Tone::Suspect => 1,
        _ => 2,
    });
    trust
}

/// One reason for all cells that share it. Numbers differ from cell to cell; the first cell's
/// stand for all.
fn add(reasons: &mut Vec<TrustReason>, reason: TrustReason, cell: String) {
    let same = |other: &&mut TrustReason| {
        let same_words = other.why == reason.why || reason.tone != Tone::Missing;
        other.rule == reason.rule && other.tone == reason.tone && same_words
    };
    match reasons.iter_mut().find(same) {
        Some(found) => {
            if found.why != reason.why && !found.why.starts_with(EXAMPLE) {
                found.why = format!("{EXAMPLE}{}: {}", found.cells[0], found.why);
            }
            found.cells.push(cell);
        }
        None => reasons.push(TrustReason { cells: vec![cell], ..reason }),
    }
}

/// Begins a reason whose numbers are those of one of several cells.
const EXAMPLE: &str = "For example ";
