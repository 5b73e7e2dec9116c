//! The trusted numbers, and the reasons why the others are not.

use super::{Context, cells};
use crate::analysis::{Cell, Finding, Standing, State};
use crate::report::model::{Tone, TrustBox, TrustReason};
use braid_lab::prediction::NOT_PREDICTED;

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
        let doubted = cell.findings.iter().filter(|finding| finding.standing != Standing::Ok);
        let reasons = doubted.map(of_finding).chain(of_state(cell));
        let name = format!("{}: {}", context.subject(cell.subject), context.label(cell.workload));
        reasons.for_each(|reason| add(&mut trust.reasons, reason, &name));
    }
    trust.reasons.extend(context.analysis.campaign.iter().map(of_finding));
    // The gravest first, and of these what concerns most.
    trust.reasons.sort_by_key(|reason| {
        let grave = match reason.tone {
            Tone::Invalid => 0,
            Tone::Suspect => 1,
            Tone::Missing if reason.rule == "failed" => 2,
            Tone::Missing => 3,
            _ => 4,
        };
        let concerned = if reason.cells.is_empty() { usize::MAX } else { reason.cells.len() };
        (grave, std::cmp::Reverse(concerned))
    });
    trust
}

fn of_finding(finding: &Finding) -> TrustReason {
    TrustReason {
        tone: cells::tone_of(finding.standing, Tone::Plain),
        rule: finding.rule.to_owned(),
        why: finding.why.clone(),
        action: finding.action.clone(),
        cells: Vec::new(),
    }
}

/// Why a cell has no number, where that is not for want of time.
fn of_state(cell: &Cell) -> Option<TrustReason> {
    let (why, rule, action) = match &cell.state {
        State::Failed(why) => (
            why,
            "failed",
            "mend that (the trial's raw output says more), then run the campaign again into the same \
             directory: only what is missing is measured",
        ),
        State::Unsettled(why) => (
            why,
            "not-settled",
            "measure more rounds, into a new directory; until then nothing says what it keeps up",
        ),
        State::Impossible(why) if why.starts_with(NOT_PREDICTED) => {
            (why, "not-predicted", "measure it: `braid lab run`")
        }
        State::Impossible(why) => {
            (why, "impossible", "change the campaign, or leave this combination out")
        }
        State::Measured | State::NotYet | State::NotPlanned => return None,
    };
    Some(TrustReason {
        tone: Tone::Missing,
        rule: rule.to_owned(),
        why: why.clone(),
        action: action.to_owned(),
        cells: Vec::new(),
    })
}

/// One reason for all cells that share it: numbers differ from cell to cell, and the first cell's
/// stand for all. Two failures are one reason only when they differ in nothing else.
fn add(reasons: &mut Vec<TrustReason>, reason: TrustReason, cell: &str) {
    let same = |other: &&mut TrustReason| {
        other.rule == reason.rule
            && other.tone == reason.tone
            && (reason.tone != Tone::Missing
                || without_numbers(&other.why).ends_with(&without_numbers(&reason.why)))
    };
    match reasons.iter_mut().find(same) {
        Some(found) => {
            if !found.why.ends_with(&reason.why) && !found.why.starts_with(EXAMPLE) {
                found.why = format!("{EXAMPLE}{}: {}", found.cells[0], found.why);
            }
            found.cells.push(cell.to_owned());
        }
        None => reasons.push(TrustReason { cells: vec![cell.to_owned()], ..reason }),
    }
}

/// Begins a reason whose numbers are those of one of several cells.
const EXAMPLE: &str = "For example ";

/// The words of a text with every number, and the unit of a size behind it, made alike.
fn without_numbers(text: &str) -> String {
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', ';', '.', ')']);
        let is_unit = ["bytes", "KiB", "MiB", "GiB", "TiB", "s", "ms"].contains(&unit);
        match words.last() {
            Some(&"#") if is_unit => {}
            _ => words.push(if is_number(word) { "#" } else { word }),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(why: &str) -> TrustReason {
        TrustReason {
            tone: Tone::Missing,
            rule: "impossible".to_owned(),
            why: why.to_owned(),
            action: String::new(),
            cells: Vec::new(),
        }
    }

    #[test]
    fn reasons_that_differ_in_numbers_are_one() {
        let mut reasons = Vec::new();
        add(&mut reasons, reason("it needs 24 MiB and has 16 MiB; take less"), "a: x");
        add(&mut reasons, reason("it needs 1.5 GiB and has 16 MiB; take less"), "b: y");
        add(&mut reasons, reason("it needs 1.5 GiB and has 16 MiB; take less"), "c: 7");
        add(&mut reasons, reason("the kernel has no ext3"), "a: z");
        assert_eq!(reasons.len(), 2, "{reasons:?}");
        assert_eq!(reasons[0].why, "For example a: x: it needs 24 MiB and has 16 MiB; take less");
        assert_eq!(reasons[0].cells, ["a: x", "b: y", "c: 7"]);
        assert_eq!(reasons[1].why, "the kernel has no ext3");
    }

    #[test]
    fn other_words_are_other_reasons() {
        assert_ne!(without_numbers("sda is gone"), without_numbers("sdb is gone"));
        assert_eq!(without_numbers("took 3 s of 9 s."), without_numbers("took 14 ms of 2.5 s."));
    }
}
