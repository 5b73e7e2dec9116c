//! A comparison in words and tables, for every renderer, and as JSON.

use super::{CellChange, Change, Comparison};
use crate::report::build::{cells, section};
use crate::report::model::{Block, Cell, Report, Row, Table, Tone, TrustBox, TrustReason};
use crate::report::render::render_terminal;
use crate::report::units::{Scale, digits, quantity, span, title};
use braid_lab::LabError;
use braid_lab::environment::error_size;

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
        let missing = self.missing().map(Block::Table).into_iter().collect();
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
            sections: section("not-compared", "Not compared", String::new(), false, missing),
            trust: TrustBox { reasons: reasons.collect(), ..TrustBox::default() },
            ..Report::default()
        }
    }

    /// The name of a side, with the source of its numbers if that is no measurement.
    fn name(&self, side: usize) -> String {
        let name = [&self.first, &self.second][side];
        if self.predicted[side] { format!("{name} (predicted)") } else { name.clone() }
    }

    /// True if one side was predicted and the other measured: then nothing changed between them.
    fn is_mixed(&self) -> bool {
        self.predicted[0] != self.predicted[1]
    }

    /// The distance of a prediction and a measurement.
    fn answer_of_a_prediction(&self) -> Vec<String> {
        let [first, second] = self.predicted.map(word);
        let size = error_size(self.model_error_percent.unwrap_or_default() / 100.0);
        let mut said = vec![format!(
            "The first was {first} and the second {second} ({}): up to {size} apart is what models are \
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
        let heading = |side: usize| match (["first", "second"][side], self.predicted) {
            (name, [false, false]) => name.to_owned(),
            (name, predicted) => format!("{name}, {}", word(predicted[side])),
        };
        let mut columns = ["subject", "workload", "number"].map(cells::column).to_vec();
        columns.extend([heading(0), heading(1), "change [%]".to_owned()].map(cells::numbers));
        columns.push(cells::column("verdict"));
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
            columns,
            rows: self.cells.iter().map(|cell| row(cell, self.predicted)).collect(),
        }
    }

    fn missing(&self) -> Option<Table> {
        let all: Vec<_> = self.lost.iter().chain(&self.not_compared).collect();
        let line = |(cell, why): &(String, String)| [cell, why].map(cells::words).to_vec();
        (!all.is_empty()).then(|| Table {
            id: "not-compared".to_owned(),
            title: "Not compared".to_owned(),
            columns: ["cell", "why"].map(cells::column).to_vec(),
            rows: all.into_iter().map(line).map(cells::row).collect(),
            ..Table::default()
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

    /// The words for an interval.
    fn interval(&self) -> &'static str {
        match self.model_error_percent {
            Some(_) => "range of what models are off by",
            None => "95 % interval",
        }
    }
}

/// The source of numbers, in a word.
fn word(is_predicted: bool) -> &'static str {
    if is_predicted { "predicted" } else { "measured" }
}

/// A number that changed.
fn in_words(cell: &CellChange) -> String {
    let [first, second] = [cell.first, cell.second].map(|value| quantity(cell.which, value));
    format!("{}, {}, from {first} to {second}", cell.subject, cell.workload)
}

fn row(cell: &CellChange, predicted: [bool; 2]) -> Row {
    let scale = Scale::of(cell.which, cell.first.max(cell.second));
    let number = |value: f64, repetitions: usize, is_predicted: bool| Cell {
        detail: match repetitions {
            _ if is_predicted => "predicted".to_owned(),
            1 => "1 repetition".to_owned(),
            many => format!("{many} repetitions"),
        },
        ..cells::number(scale.with_unit(value), scale.apply(value))
    };
    let is_mixed = predicted[0] != predicted[1];
    let (said, tone) = match cell.change {
        Change::Regression if is_mixed => ("beyond the models' error", Tone::Worse),
        Change::Improvement if is_mixed => ("beyond the models' error", Tone::Better),
        Change::Same if is_mixed => ("within the models' error", Tone::Same),
        Change::Regression => ("worse", Tone::Worse),
        Change::Improvement => ("better", Tone::Better),
        Change::Same => ("no difference shown", Tone::Same),
        Change::TooFew => ("too few repetitions", Tone::Missing),
    };
    let doubt = if cell.suspect { "a number is doubtful" } else { "" };
    let verdict = Cell { tone, ..cells::words_with(said, doubt) };
    let percent = Cell {
        detail: match cell.change {
            Change::TooFew => String::new(),
            _ => span(&digits(cell.interval.0), &digits(cell.interval.1)),
        },
        ends: Some(cell.interval),
        tone,
        ..cells::number(digits(cell.percent), cell.percent)
    };
    cells::row(vec![
        cells::words(&cell.subject),
        cells::words(&cell.workload),
        cells::words(title(cell.which)),
        number(cell.first, cell.repetitions.0, predicted[0]),
        number(cell.second, cell.repetitions.1, predicted[1]),
        percent,
        verdict,
    ])
}
