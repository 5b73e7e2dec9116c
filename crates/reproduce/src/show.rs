//! Judgements as tables in Markdown, whose columns also stand below each other.

use std::fmt::Write;

use braid_predict::off::{ENOUGH, Evidence, Scores};
use braid_shell::shown;

use crate::judge::{Decision, Judged, JudgedClaim, JudgedRow, Judgement};
use crate::off::of_ratios;
use crate::study::Unit;

/// Says how far off all files are together, in two lines.
pub fn answer(judged: &[Judged]) -> String {
    let summaries = judged.iter().filter_map(|one| one.model.predictions());
    let rows: usize = summaries.clone().map(|one| one.scored).sum();
    let missing: usize = judged.iter().map(|one| one.model.missing()).sum();
    let mean = summaries.map(|one| one.mean * one.scored as f64).sum::<f64>() / rows as f64;
    let held = judged.iter().map(|one| one.model.held());
    let (held, published) = held.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let off = match rows {
        0 => "No row to be predicted has a value of the model".to_owned(),
        rows => format!(
            "{rows} predicted rows are off by {mean:.3} in the mean (a factor of {:.2})",
            mean.exp()
        ),
    };
    let missing = match missing {
        0 => String::new(),
        missing => format!("; for {missing} more the model has no value"),
    };
    let not_judged: usize = judged.iter().map(|one| one.model.not_judged.len()).sum();
    let not_judged = match not_judged {
        0 => String::new(),
        count => format!("; claims not judged: {count}"),
    };
    format!("{off}{missing}.\n{held} of {published} published claims hold{not_judged}.")
}

/// Returns the table of all files, what predictions are off by where that is given, and for each file its rows and
/// claims.
pub fn tables(judged: &[Judged], evidence: &[Evidence]) -> String {
    let mut text = files(judged).to_string();
    if !evidence.is_empty() {
        let _ = write!(text, "\n{}", off_by(evidence));
        let Scores { rows, within } = of_ratios(judged.iter().flat_map(|one| &one.model.ratios));
        let _ = writeln!(
            text,
            "\nThe ratio of two arrays over the same members: {rows} pairs of held-out rows, {} within a factor of {:.2}.",
            if rows < ENOUGH { "all" } else { "nine of ten" },
            within.exp()
        );
    }
    for one in judged {
        let model = &one.model;
        let (study, title) = (shown(&model.study), shown(&model.title));
        let _ = write!(text, "\n### {study}\n\n{title}\n\n{}", rows(&model.rows));
        if !model.claims.is_empty() {
            let _ = write!(text, "\n{}", claims(&model.claims));
        }
        text += &left_out(model);
    }
    text
}

fn files(judged: &[Judged]) -> Table {
    let heads =
        "series|#rows|#mean|#median|#worst|#null: average|#null: striping|#claims".split('|');
    Table::new(
        heads,
        judged.iter().map(|one| {
            let predicted = one.model.predictions();
            let (held, published) = one.model.held();
            let scored = predicted.map_or(0, |summary| summary.scored);
            let mut cells = vec![
                one.model.study.clone(),
                format!("{scored} of {}", scored + one.model.missing()),
                score(predicted.map(|summary| summary.mean)),
                score(predicted.map(|summary| summary.median)),
                score(one.model.worst().map(|(_, score)| score)),
            ];
            cells.extend(
                one.null.iter().map(|(_, summary)| score(summary.map(|summary| summary.mean))),
            );
            cells.push(format!("{held} of {published}"));
            cells
        }),
    )
}

fn off_by(evidence: &[Evidence]) -> Table {
    let heads = "devices|#held out|#in view|#off by|because".split('|');
    Table::new(
        heads,
        evidence.iter().map(|one| {
            let said = one.off_by();
            vec![
                one.family.name().to_owned(),
                one.held_out.rows.to_string(),
                one.in_view.rows.to_string(),
                said.as_ref().map_or("—".to_owned(), |said| format!("{} %", said.percent())),
                said.map_or("no figure was published".to_owned(), |said| said.grounds),
            ]
        }),
    )
}

fn rows(rows: &[JudgedRow]) -> Table {
    Table::new(
        "row|role|#published|#model|score".split('|'),
        rows.iter().map(|row| {
            let (model, score) = match &row.model {
                Ok(model) => (quantity(*model, row.unit), score(row.score)),
                Err(why) => ("—".to_owned(), why.to_string()),
            };
            vec![
                row.id.clone(),
                if row.held_out { "held out" } else { row.role.text() }.to_owned(),
                quantity(row.published, row.unit),
                model,
                score,
            ]
        }),
    )
}

fn claims(claims: &[JudgedClaim]) -> Table {
    Table::new(
        "claim|in print|in the model|compared".split('|'),
        claims.iter().map(|claim| {
            let (in_model, seen) = match &claim.in_model {
                Decision::Holds(seen) => ("holds", format!("`{seen}`")),
                Decision::Fails(seen) => ("fails", format!("`{seen}`")),
                Decision::Undecided(why) => ("undecided", why.to_string()),
            };
            let in_print = if claim.is_published() { "holds" } else { "fails" };
            let taken = match claim.taken.as_slice() {
                [] => String::new(),
                taken => format!(", with the published value of {}", taken.join(", ")),
            };
            vec![claim.id.clone(), in_print.to_owned(), in_model.to_owned(), seen + &taken]
        }),
    )
}

/// The claims that have no function, and what else is not judged; nothing where that is nothing.
fn left_out(model: &Judgement) -> String {
    let mut text = String::new();
    if !model.not_judged.is_empty() {
        let count = model.not_judged.len();
        let _ = writeln!(text, "\nClaims not judged, for which there is no function: {count}.\n");
        for claim in &model.not_judged {
            let _ = writeln!(text, "* {}: `{}`", shown(&claim.id), shown(&claim.predicate));
        }
    }
    if !model.passed_over.is_empty() {
        let _ = writeln!(text, "\n{} passed over:\n", model.passed_over.len());
        for (id, why) in &model.passed_over {
            let _ = writeln!(text, "* {}: {}", shown(id), shown(why));
        }
    }
    text
}

fn score(value: Option<f64>) -> String {
    value.map_or_else(|| "—".to_owned(), |value| format!("{value:.3}"))
}

/// Four digits in the unit, or in millions of it.
fn quantity(value: f64, unit: Unit) -> String {
    let (value, prefix) = match unit {
        Unit::BytesPerSecond if value >= 1e6 => (value / 1e6, "M"),
        _ => (value, ""),
    };
    let digits = (3.0 - value.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{value:.digits$} {prefix}{}", unit.text())
}

/// A table of Markdown.
pub struct Table {
    /// Headings, and whether the cells below are numbers.
    heads: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table; headings with `#` are of numbers.
    pub fn new<'h>(
        heads: impl Iterator<Item = &'h str>,
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let head = |head: &str| (head.trim_start_matches('#').to_owned(), head.starts_with('#'));
        let cell = |cell: String| shown(&cell).replace('|', "\\|");
        let rows = rows.map(|row| row.into_iter().map(cell).collect());
        Self { heads: heads.map(head).collect(), rows: rows.collect() }
    }
}

impl std::fmt::Display for Table {
    /// Every column but the last is as wide as its widest cell.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |text: &String| text.chars().count();
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(count);
            cells.chain([count(&self.heads[at].0), 3]).max().unwrap_or(3)
        };
        let last = self.heads.len().saturating_sub(1);
        let widths: Vec<usize> = (0..last).map(width).chain([0]).collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            write!(f, "|")?;
            for ((cell, (_, is_number)), width) in cells.zip(&self.heads).zip(&widths) {
                match is_number {
                    true => write!(f, " {cell:>width$} |")?,
                    false => write!(f, " {cell:<width$} |")?,
                }
            }
            writeln!(f)
        };
        line(&mut self.heads.iter().map(|(head, _)| head.as_str()))?;
        let rule = |((_, is_number), width): (&(String, bool), &usize)| match is_number {
            true => format!("{:->1$}", ":", (*width).max(3)),
            false => "-".repeat((*width).max(3)),
        };
        let rules: Vec<String> = self.heads.iter().zip(&widths).map(rule).collect();
        line(&mut rules.iter().map(String::as_str))?;
        self.rows.iter().try_for_each(|row| line(&mut row.iter().map(String::as_str)))
    }
}
