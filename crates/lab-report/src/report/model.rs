//! The content of a report, before any renderer: sentences, tables, charts. Pure data.
//!
//! ```text
//! analysis ──> Report ──> terminal, HTML, Markdown, XLSX
//!                │
//!                └─ Chart ──> SVG
//! ```
//!
//! Invariants:
//!
//! * texts are plain: each renderer escapes for its own format, so hostile names of devices end here as words;
//! * every number of a chart is finite; a number that may not be used is no point of a chart, and a doubtful
//!   one is marked wherever it is drawn;
//! * `id`s are unique in a report, made of `a-z`, `0-9` and `-`, and at most 31 characters long: they
//!   name files, sheets and anchors.
//!
//! Deliberately absent: colours, sizes, fonts. A [`Tone`] gives the meaning of a cell.

use serde::Serialize;

/// The whole report of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The campaign's name.
    pub title: String,
    /// The question of the campaign.
    pub question: String,
    /// One line with the time, the progress and the system.
    pub subtitle: String,
    /// The answer in one to three sentences, the most important first.
    pub answer: Vec<String>,
    /// The answer as a picture.
    pub picture: Option<Chart>,
    /// The answer as a table: a row for each subject, or for each level of the factor.
    pub table: Table,
    /// The trust in the numbers.
    pub trust: TrustBox,
    /// Groups of tables and charts, in order.
    pub sections: Vec<Section>,
}

/// The share of numbers that can be believed, and why the others cannot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TrustBox {
    /// Numbers that nothing speaks against.
    pub ok: usize,
    /// Numbers that something speaks against.
    pub suspect: usize,
    /// Numbers that are not shown as results.
    pub invalid: usize,
    /// Cells that could not be measured at all.
    pub missing: usize,
    /// True if the numbers were predicted, and none was measured.
    pub is_predicted: bool,
    /// One for each reason, the gravest first.
    pub reasons: Vec<TrustReason>,
}

/// A reason to doubt, or to keep in mind, and whom it concerns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrustReason {
    /// The severity: [`Tone::Invalid`], [`Tone::Suspect`], [`Tone::Missing`], or [`Tone::Plain`] for a remark
    /// that lowers no verdict.
    pub tone: Tone,
    /// The rule's name.
    pub rule: String,
    /// The observation, with numbers.
    pub why: String,
    /// The advice.
    pub action: String,
    /// The concerned cells: "subject: workload", complete; none if it concerns all.
    pub cells: Vec<String>,
}

/// A group of tables and charts under a heading.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Unique in the report.
    pub id: String,
    /// The heading.
    pub title: String,
    /// An introduction in a sentence or two; may be empty.
    pub lead: String,
    /// True if it is for reference: folded until the reader opens it, and in the larger files only.
    pub is_detail: bool,
    /// Tables and charts, in order.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Block {
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
}

/// A table; each row has as many cells as there are columns.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// Unique in the report.
    pub id: String,
    /// The subject of the table.
    pub title: String,
    /// An explanation; may be empty.
    pub note: String,
    /// The columns, first to last.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Its heading, with the unit.
    pub heading: String,
    /// True if it contains numbers, which are aligned to the right.
    pub numeric: bool,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// True if it sums up the rows above.
    pub total: bool,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// The main text.
    pub text: String,
    /// A smaller text, under or beside it: an interval, a reason. May be empty.
    pub detail: String,
    /// The number behind the text, in the column's unit, for spreadsheets.
    pub number: Option<f64>,
    /// The ends of its interval or range, in the same unit.
    pub ends: Option<(f64, f64)>,
    /// Its meaning.
    pub tone: Tone,
}

/// The meaning of a cell or a sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// No particular meaning.
    #[default]
    Plain,
    /// The baseline of the comparison.
    Baseline,
    /// Better than the baseline, with proof.
    Better,
    /// Worse than the baseline, with proof.
    Worse,
    /// Not distinguishable from the baseline.
    Same,
    /// Something speaks against the number.
    Suspect,
    /// The number is not to be used.
    Invalid,
    /// There is no number.
    Missing,
}

/// A chart: bars, lines or marks over the same data.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Chart {
    /// Unique in the report.
    pub id: String,
    /// The subject of the chart.
    pub title: String,
    /// An explanation in a sentence; may be empty.
    pub note: String,
    /// The form of its points.
    pub shape: Shape,
    /// The axis of places; for bars the ticks are the groups, at 0, 1, 2 and so on.
    pub x: Axis,
    /// The axis of values.
    pub y: Axis,
    /// At most eight series can be distinguished.
    pub series: Vec<Series>,
    /// A value with a line across everything, such as that of the baseline.
    pub mark: Option<f64>,
    /// Moments on the x axis that have a name.
    pub events: Vec<Event>,
}

/// The form of a point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// A bar, in the group at its place.
    #[default]
    Bars,
    /// A mark, joined to the next of its series.
    Lines,
    /// A mark alone.
    Marks,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Axis {
    /// Its meaning, without the unit.
    pub label: String,
    /// The unit; may be empty.
    pub unit: String,
    /// True if equal factors are equal lengths. Values are then above 0.
    pub log: bool,
    /// Values that get a tick with this text, instead of ticks chosen by the renderer.
    pub ticks: Vec<(f64, String)>,
}

/// Points that belong together in a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Left to right; a bar that is not there has no point.
    pub points: Vec<Point>,
}

/// A value at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Point {
    /// Its place.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// Lower and upper end of its interval.
    pub interval: Option<(f64, f64)>,
    /// True if there is a reason to doubt it.
    pub suspect: bool,
}

/// A moment with a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The place on the x axis.
    pub x: f64,
    /// The event in words.
    pub label: String,
}

impl Report {
    /// Every chart, in order.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.picture.iter().chain(self.sections.iter().flat_map(Section::charts))
    }

    /// The answer's table and those of the sections, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        let table = (!self.table.columns.is_empty()).then_some(&self.table);
        table.into_iter().chain(self.sections.iter().flat_map(Section::tables))
    }
}

impl TrustBox {
    /// The number of numbers of each kind, in a sentence.
    pub fn sentence(&self) -> String {
        let Self { ok, suspect, invalid, missing, .. } = self;
        if self.is_predicted {
            return format!("{ok} numbers predicted and none measured, {missing} not predicted.");
        }
        format!(
            "{ok} numbers nothing speaks against, {suspect} suspect, {invalid} invalid, {missing} not \
             measured."
        )
    }

    /// The reasons that belong beside the answer: what cannot be measured is for looking up.
    pub fn doubts(&self) -> impl Iterator<Item = &TrustReason> {
        self.reasons.iter().filter(|one| one.tone != Tone::Missing || one.rule == "failed")
    }
}

impl Section {
    /// Its charts, in order.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            Block::Table(_) => None,
        })
    }

    /// Its tables, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            Block::Chart(_) => None,
        })
    }
}

impl Chart {
    /// Every point of every series.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }
}

impl Point {
    /// The value and the ends of its interval.
    pub fn reach(&self) -> [f64; 3] {
        let (low, high) = self.interval.unwrap_or((self.y, self.y));
        [self.y, low, high]
    }
}
