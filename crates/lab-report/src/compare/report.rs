//! A comparison in words and tables, for every renderer, and as JSON.

use super::{CellChange, Change, Comparison};
use crate::report::model::{
    Block, Cell, Column, Report, Row, Section, Table, Tone, TrustBox, TrustReason,
};
use crate::report::render::render_terminal;
use crate::report::units::{Scale, digits, quantity, span};
use braid_lab::LabError;

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
        let missing = self.missing().map(|table| Section {
            id: "not-compared".to_owned(),
            title: "Not compared".to_owned(),
            lead: String::new(),
            is_detail: false,
            blocks: vec![Block::Table(table)],
        });
        let reasons = self.doubts().into_iter().map(|why| TrustReason {
            tone: Tone::Plain,
            rule: String::new(),
            why,
            action: String::new(),
            cells: Vec::new(),
        });
        Report {
            title: format!("{} against {}", self.name(1), self.name(0)),
            subtitle: format!("{} numbers compared", self.cells.len()),
            answer: self.answer(),
            table: self.table(),
            sections: missing.into_iter().collect(),
            trust: TrustBox { reasons: reasons.collect(), ..TrustBox::default() },
            ..Report::default()
        }
    }

    /// What a side is called, with where its numbers come from if that is no measurement.
    fn name(&self, side: usize) -> String {
        let name = [&self.first, &self.second][side];
        if self.predicted[side] { format!("{name} (predicted)") } else { name.clone() }
    }

    /// Whether one side was predicted and the other measured: nothing changed between them then.
    fn is_mixed(&self) -> bool {
        self.predicted[0] != self.predicted[1]
    }

    /// How far a prediction and a measurement are apart.
    fn answer_of_a_prediction(&self) -> Vec<String> {
        let [first, second] = self.predicted.map(word);
        let percent = digits(self.model_error_percent.unwrap_or_default());
        let mut said = vec![format!(
            "The first was {first} and the second {second} ({}): up to {percent} % apart is what models are \
             off by, on the grounds that the report of the prediction names.",
            self.environment.join("; "),
        )];
        let is_beyond =
            |cell: &&CellChange| matches!(cell.change, Change::Regression | Change::Improvement);
        let beyond: Vec<&CellChange> = self.cells.iter().filter(is_beyond).collect();
        let apart = |cell: &CellChange| (cell.percent / 100.0).ln().abs();
        let furthest = beyond.iter().max_by(|a, b| apart(a).total_cmp(&apart(b)));
        let all = self.cells.len();
        said.push(match furthest {
            None if all == 0 => "They have no number in common that may be compared.".to_owned(),
            None => format!("All {all} numbers are within that."),
            Some(cell) => format!(
                "Further apart: {} of {all} numbers, most of all {}.",
                beyond.len(),
                in_words(cell)
            ),
        });
        said
    }

    fn answer(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.is_mixed() {
            return self.answer_of_a_prediction();
        }
        if !self.environment.is_empty() {
            said.push(format!(
                "The two runs were made on differing systems ({}): a change may come from that \
                 alone.",
                self.environment.join("; ")
            ));
        }
        said.extend(self.lost.first().map(|(cell, why)| match self.lost.len() {
            1 => format!("No longer there: {cell}, {why}."),
            many => format!("No longer there: {many} numbers, such as {cell}, {why}."),
        }));
        let threshold = digits(self.threshold_percent);
        let worst = || self.cells.first().map_or_else(String::new, in_words);
        said.push(match (self.cells.len(), self.count(Change::Regression)) {
            (0, _) => "The two runs have no number in common that may be compared.".to_owned(),
            (_, 0) if self.lost.is_empty() => format!(
                "No regression: nothing became worse by more than {threshold} % and beyond chance."
            ),
            (all, 0) => format!(
                "Of the {all} that both runs have nothing became worse by more than {threshold} % \
                 and beyond chance."
            ),
            (all, worse) => format!("Worse: {worse} of {all} numbers, most of all {}.", worst()),
        });
        let better = self.count(Change::Improvement);
        said.extend(
            (better > 0).then(|| format!("Better: {better} of {} numbers.", self.cells.len())),
        );
        let few = self.count(Change::TooFew);
        said.extend((few > 0).then(|| {
            format!(
                "Of {few} nothing can be said: it takes at least two repetitions on both sides."
            )
        }));
        said
    }

    fn table(&self) -> Table {
        let column = |heading: &str, numeric| Column { heading: heading.to_owned(), numeric };
        let words = ["subject", "workload", "number"].map(|heading| column(heading, false));
        let heading = |side: usize| match (["first", "second"][side], self.predicted) {
            (name, [false, false]) => name.to_owned(),
            (name, predicted) => format!("{name}, {}", word(predicted[side])),
        };
        let numbers = [heading(0), heading(1), "change [%]".to_owned()];
        let numbers = numbers.map(|heading| Column { heading, numeric: true });
        Table {
            id: "changes-table".to_owned(),
            title: String::new(),
            note: match self.is_mixed() {
                true => "The worst first. A change is the second in percent of the first, with the 95 % \
                         interval.",
                false => "The worst first. A change is the second in percent of the first, both in percent of \
                   the baseline of their own run where there is one, with the 95 % interval.",
            }
            .replace("95 % interval", self.interval()),
            columns: words.into_iter().chain(numbers).chain([column("verdict", false)]).collect(),
            rows: self.cells.iter().map(|cell| row(cell, self.predicted)).collect(),
        }
    }

    fn missing(&self) -> Option<Table> {
        let all: Vec<_> = self.lost.iter().chain(&self.not_compared).collect();
        let column = |heading: &str| Column { heading: heading.to_owned(), numeric: false };
        (!all.is_empty()).then(|| Table {
            id: "not-compared".to_owned(),
            title: "Not compared".to_owned(),
            note: String::new(),
            columns: vec![column("cell"), column("why")],
            rows: all.into_iter().map(|(cell, why)| line(vec![words(cell), words(why)])).collect(),
        })
    }

    fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if let Some(moved) = self.baseline_percent.filter(|moved| (moved - 100.0).abs() > 3.0) {
            doubts.push(format!(
                "the baseline itself is at {} % of what it was: the machine, or its device, is another",
                digits(moved)
            ));
        }
        if self.model_error_percent.is_some() {
            doubts.extend(self.settings_in_words());
            return doubts;
        }
        doubts.push(format!(
            "a change is named that is beyond {} % with all {} numbers counted, and a drift of {} % \
             from run to run reckoned in",
            digits(self.threshold_percent),
            self.cells.len(),
            digits(self.drift_percent)
        ));
        doubts.extend(self.settings_in_words());
        doubts
    }

    fn settings_in_words(&self) -> Option<String> {
        let differ = || format!("the campaigns differ in: {}", self.settings.join("; "));
        (!self.settings.is_empty()).then(differ)
    }

    /// What an interval is made of.
    fn interval(&self) -> &'static str {
        match self.model_error_percent {
            Some(_) => "range of what models are off by",
            None => "95 % interval",
        }
    }
}

/// How numbers came about.
fn word(is_predicted: bool) -> &'static str {
    if is_predicted { "predicted" } else { "measured" }
}

/// A number that changed.
fn in_words(cell: &CellChange) -> String {
    let [first, second] = [cell.first, cell.second].map(|value| quantity(cell.which, value));
    format!("{}, {}, from {first} to {second}", cell.subject, cell.workload)
}

fn words(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

fn line(cells: Vec<Cell>) -> Row {
    Row { cells, total: false }
}

fn row(cell: &CellChange, predicted: [bool; 2]) -> Row {
    let scale = Scale::of(cell.which, cell.first.max(cell.second));
    let number = |value: f64, repetitions: usize, is_predicted: bool| Cell {
        text: scale.with_unit(value),
        detail: match repetitions {
            _ if is_predicted => "predicted".to_owned(),
            1 => "1 repetition".to_owned(),
            many => format!("{many} repetitions"),
        },
        number: Some(scale.apply(value)),
        ..Cell::default()
    };
    let (said, tone) = match cell.change {
        Change::Regression if predicted[0] != predicted[1] => {
            ("beyond the models' error", Tone::Worse)
        }
        Change::Improvement if predicted[0] != predicted[1] => {
            ("beyond the models' error", Tone::Better)
        }
        Change::Same if predicted[0] != predicted[1] => ("within the models' error", Tone::Same),
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
        detail: match cell.change {
            Change::TooFew => String::new(),
            _ => span(&digits(cell.interval.0), &digits(cell.interval.1)),
        },
        number: Some(cell.percent),
        ends: Some(cell.interval),
        tone,
    };
    line(vec![
        words(cell.subject.clone()),
        words(cell.workload.clone()),
        words(crate::report::units::title(cell.which)),
        number(cell.first, cell.repetitions.0, predicted[0]),
        number(cell.second, cell.repetitions.1, predicted[1]),
        percent,
        verdict,
    ])
}
