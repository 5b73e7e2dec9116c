//! What can be believed, and why the rest cannot.

use super::{Context, cells};
use crate::analysis::{Cell, Standing, State};
use crate::report::model::{Tone, TrustBox, TrustReason};

/// What to do about trials that failed.
fn what_to_do(context: &Context<'_>, cell: &Cell) -> &'static str {
    // A tool that was not there, or not begun, has said nothing.
    let has_run = |index: &usize| context.results.trials[*index].duration_s > 0.0;
    match cell.trials.iter().any(has_run) {
        true => {
            "read the raw output of the trial, then run the campaign again into the same \
             directory: only what is missing is measured"
        }
        false => {
            "mend that, then run the campaign again into the same directory: only what is missing \
             is measured"
        }
    }
}

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
            State::Failed(_) => ("failed", what_to_do(context, cell)),
            State::Unsettled(_) => (
                "not-settled",
                "measure more rounds, into a new directory; until then nothing says what it keeps up",
            ),
            State::Impossible(_) => {
                ("impossible", "change the campaign, or leave this combination out")
            }
            _ => continue,
        };
        let why = match &cell.state {
            State::Failed(reason) | State::Impossible(reason) | State::Unsettled(reason) => {
                reason.clone()
            }
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
    for finding in &context.analysis.campaign {
        trust.reasons.push(TrustReason {
            tone: match finding.standing {
                Standing::Invalid => Tone::Invalid,
                Standing::Suspect => Tone::Suspect,
                Standing::Ok => Tone::Plain,
            },
            rule: finding.rule.to_owned(),
            why: finding.why.clone(),
            action: finding.action.clone(),
            cells: Vec::new(),
        });
    }
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

/// One reason for all cells that share it. Numbers differ from cell to cell; the first cell's
/// stand for all. Two failures are one reason only when they differ in nothing else.
fn add(reasons: &mut Vec<TrustReason>, reason: TrustReason, cell: String) {
    let shape = (reason.tone == Tone::Missing).then(|| without_numbers(&reason.why));
    let same = |other: &&mut TrustReason| {
        let other_why = other.why.strip_prefix(EXAMPLE).map_or(other.why.as_str(), |example| {
            example.strip_prefix(other.cells[0].as_str()).map_or(example, |why| &why[2..])
        });
        let same_words = shape.as_ref().is_none_or(|shape| *shape == without_numbers(other_why));
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
        add(&mut reasons, reason("it needs 24 MiB and has 16 MiB; take less"), "a: x".to_owned());
        add(&mut reasons, reason("it needs 1.5 GiB and has 16 MiB; take less"), "b: y".to_owned());
        add(&mut reasons, reason("it needs 1.5 GiB and has 16 MiB; take less"), "c: 7".to_owned());
        add(&mut reasons, reason("the kernel has no ext3"), "a: z".to_owned());
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
