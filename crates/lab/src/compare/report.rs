//! A comparison in words and tables, for every renderer, and as JSON.

use super::{
    CellChange, Change, Comparison, RANGES_FROM, RANGES_THRESHOLDS, Rule, times_the_range,
};
use crate::error::LabError;
use crate::report::model::{Block, Cell, Column, Report, Row, Section, Table, Tone};
use crate::report::render::render_terminal;
use crate::report::units::{Scale, digits, quantity, span};

impl Comparison {
    /// As JSON with an `output_version`.
    ///
    /// # Errors
    ///
    /// When a number cannot be written, which is a mistake in this program.
    pub fn render_json(&self) -> Result<String, LabError> {
        serde_json::to_string_pretty(self).map_err(|error| LabError::Serialise {
            what: "the comparison",
            reason: error.to_string(),
        })
    }

    /// As text for the terminal.
    pub fn render_text(&self, colour: bool) -> String {
        render_terminal(&self.to_report(), colour, "--json")
    }

    /// As a report, for the other renderers.
    pub fn to_report(&self) -> Report {
        let mut blocks = vec![Block::Table(self.table())];
        blocks.extend(self.missing().map(Block::Table));
        Report {
            title: format!("{} against {}", self.second, self.first),
            subtitle: format!("{} numbers compared", self.cells.len()),
            answer: self.answer(),
            sections: vec![Section {
                id: "changes".to_owned(),
                title: "What changed".to_owned(),
                lead: String::new(),
                blocks,
            }],
            notes: self.notes(),
            ..Report::default()
        }
    }

    fn answer(&self) -> Vec<String> {
        let mut said = Vec::new();
        if !self.environment.is_empty() {
            said.push(format!(
                "The two runs were made on differing systems ({}): a change may come from that \
                 alone.",
                self.environment.join("; ")
            ));
        }
        said.extend(self.what_is_lost());
        let worse = self.count(Change::Regression);
        let threshold = digits(self.threshold_percent);
        said.push(match (self.cells.len(), worse) {
            (0, _) => "The two runs have no number in common that may be compared.".to_owned(),
            (_, 0) if self.lost.is_empty() => format!(
                "No regression: nothing became worse by more than {threshold} % and beyond chance."
            ),
            (all, 0) => format!(
                "Of the {all} that both runs have nothing became worse by more than {threshold} % \
                 and beyond chance."
            ),
            (all, 1) => format!("1 of {all} numbers became worse: {}.", self.worst()),
            (all, many) => {
                format!("{many} of {all} numbers became worse, most of all {}.", self.worst())
            }
        });
        match self.count(Change::Improvement) {
            0 => {}
            1 => said.push("1 number became better.".to_owned()),
            many => said.push(format!("{many} numbers became better.")),
        }
        match self.count(Change::TooFew) {
            0 => {}
            few => said.push(format!(
                "Of {few} nothing can be said: it takes at least {RANGES_FROM} repetitions on \
                 both sides."
            )),
        }
        said
    }

    fn what_is_lost(&self) -> Option<String> {
        let (cell, why) = self.lost.first()?;
        Some(match self.lost.len() {
            1 => format!("1 number is there no more: {cell}, {why}."),
            many => format!("{many} numbers are there no more: {cell}, {why}; and so on below."),
        })
    }

    /// The first cell is the worst.
    fn worst(&self) -> String {
        self.cells.first().map_or_else(String::new, |cell| {
            format!(
                "{}, {}, from {} to {}",
                cell.subject,
                cell.workload,
                quantity(cell.which, cell.first),
                quantity(cell.which, cell.second)
            )
        })
    }

    fn table(&self) -> Table {
        let heads = [
            ("subject", false),
            ("workload", false),
            ("number", false),
            ("first", true),
            ("second", true),
            ("second [% of first]", true),
            ("verdict", false),
            ("adjusted p", true),
        ];
        let column = |(heading, numeric): (&str, bool)| Column { heading: heading.into(), numeric };
        Table {
            id: "changes-table".to_owned(),
            title: "Numbers that both runs have".to_owned(),
            note: "The worst first.".to_owned(),
            columns: heads.map(column).to_vec(),
            rows: self.cells.iter().map(row).collect(),
        }
    }

    fn missing(&self) -> Option<Table> {
        let only = |cells: &[String], which: &str| -> Vec<(String, String)> {
            cells.iter().map(|cell| (cell.clone(), format!("only in the {which} run"))).collect()
        };
        let mut all = self.lost.clone();
        all.extend(self.left_out.iter().cloned());
        all.extend(only(&self.only_first, "first"));
        all.extend(only(&self.only_second, "second"));
        let column = |heading: &str| Column { heading: heading.to_owned(), numeric: false };
        (!all.is_empty()).then(|| Table {
            id: "not-compared".to_owned(),
            title: "Not compared".to_owned(),
            note: String::new(),
            columns: vec![column("cell"), column("why")],
            rows: all.into_iter().map(|(cell, why)| line(vec![words(cell), words(why)])).collect(),
        })
    }

    fn notes(&self) -> Vec<String> {
        let threshold = digits(self.threshold_percent);
        let mut notes = vec![format!(
            "A number counts as changed when its median differs by more than {threshold} %, the \
             interval of the ratio does not hold 100 %, and a Mann-Whitney test with all {} \
             comparisons counted (Holm) is within {} %.",
            self.cells.len(),
            digits(self.alpha * 100.0)
        )];
        let few = self.cells.iter().filter(|cell| cell.rule == Rule::Ranges);
        if let Some(cell) = few.clone().next() {
            notes.push(format!(
                "For {} of them that test can decide nothing: with {} and {} repetitions the \
                 smallest adjusted p-value is {} %. Instead they count as changed when there are \
                 at least {RANGES_FROM} repetitions on both sides, the medians differ by more than \
                 {} %, and the gap between the ranges is more than {} times the wider of them.",
                few.count(),
                cell.repetitions.0,
                cell.repetitions.1,
                digits(cell.smallest_adjusted_p * 100.0),
                digits(RANGES_THRESHOLDS * self.threshold_percent),
                digits(times_the_range(self.cells.len()))
            ));
        }
        if !self.settings.is_empty() {
            notes.push(format!("The campaigns differ in: {}.", self.settings.join("; ")));
        }
        notes
    }
}

fn words(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

fn line(cells: Vec<Cell>) -> Row {
    Row { cells, total: false }
}

fn row(cell: &CellChange) -> Row {
    let scale = Scale::of(cell.which, cell.first.max(cell.second));
    let number = |value: f64, repetitions: usize| Cell {
        text: scale.with_unit(value),
        detail: match repetitions {
            1 => "1 repetition".to_owned(),
            many => format!("{many} repetitions"),
        },
        number: Some(scale.apply(value)),
        ..Cell::default()
    };
    let (said, tone) = match cell.change {
        Change::Regression => ("worse", Tone::Worse),
        Change::Improvement => ("better", Tone::Better),
        Change::Same => ("no difference shown", Tone::Same),
        Change::TooFew => ("too few repetitions", Tone::Missing),
    };
    let verdict = Cell {
        text: said.to_owned(),
        detail: if cell.suspect { "a number is doubtful".to_owned() } else { String::new() },
        tone,
        ..Cell::default()
    };
    let percent = Cell {
        text: digits(cell.percent),
        detail: span(&digits(cell.interval.0), &digits(cell.interval.1)),
        number: Some(cell.percent),
        tone,
        strength: if matches!(tone, Tone::Worse | Tone::Better) { 1.0 } else { 0.0 },
    };
    let p = match cell.rule {
        Rule::Test => Cell {
            text: format!("{:.4}", cell.adjusted_p),
            number: Some(cell.adjusted_p),
            ..Cell::default()
        },
        Rule::Ranges => Cell { detail: "by ranges".to_owned(), ..words("—") },
    };
    line(vec![
        words(cell.subject.clone()),
        words(cell.workload.clone()),
        words(crate::report::units::title(cell.which)),
        number(cell.first, cell.repetitions.0),
        number(cell.second, cell.repetitions.1),
        percent,
        verdict,
        p,
    ])
}
