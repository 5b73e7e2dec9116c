//! What a report says, before any renderer: sentences, tables, charts. Pure data.
//!
//! ```text
//! analysis ──> Report ──> terminal, HTML, Markdown, XLSX, JSON
//!                │
//!                └─ Chart ──> SVG
//! ```
//!
//! Invariants:
//!
//! * texts are plain: each renderer escapes for its own format, so hostile names of devices end
//!   here as words;
//! * every number of a chart is finite; a place without a number that may be used says why it is
//!   empty, and a number that something speaks against says so wherever it is drawn;
//! * `id`s are unique in a report and made of `a-z`, `0-9` and `-`: they name files, sheets and
//!   anchors.
//!
//! Deliberately absent: colours, sizes, fonts. A [`Tone`] says what a cell means.

use serde::Serialize;

/// Everything that is said of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The campaign's name.
    pub title: String,
    /// What it was to find out.
    pub question: String,
    /// When, how much of it is done, on which system: one line.
    pub subtitle: String,
    /// The answer in one to three sentences, the most important first.
    pub answer: Vec<String>,
    /// The answer as a picture.
    pub picture: Option<Chart>,
    /// The answer as a table: a row for each subject, or for each level of what was varied.
    pub table: Table,
    /// What can be believed.
    pub trust: TrustBox,
    /// Groups of tables and charts, in order.
    pub sections: Vec<Section>,
    /// What was measured, with its members and how it was served.
    pub subjects: Table,
    /// Where it was measured, and how: name and value.
    pub environment: Vec<(String, String)>,
    /// The exact commands.
    pub commands: Table,
    /// How to run it again: a command line each.
    pub again: Vec<String>,
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
    /// One for each reason, the gravest first.
    pub reasons: Vec<TrustReason>,
}

/// A reason to doubt, or to keep in mind, and whom it concerns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrustReason {
    /// How grave it is: [`Tone::Invalid`], [`Tone::Suspect`], [`Tone::Missing`], or [`Tone::Plain`]
    /// of what lowers nothing.
    pub tone: Tone,
    /// The rule's name.
    pub rule: String,
    /// What was seen, with numbers.
    pub why: String,
    /// What to do about it.
    pub action: String,
    /// Which cells: "subject: workload", complete; none where it concerns all.
    pub cells: Vec<String>,
}

/// A group of tables and charts under a heading.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Unique in the report.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What is seen here, in a sentence or two; may be empty.
    pub lead: String,
    /// Whether it is for looking up, and folded until somebody asks.
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
    /// What it shows.
    pub title: String,
    /// How to read it; may be empty.
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
    /// Whether it holds numbers, which stand to the right.
    pub numeric: bool,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// Whether it sums up the rows above.
    pub total: bool,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cell {
    /// What is read.
    pub text: String,
    /// Smaller, under or beside it: an interval, a reason. Empty for nothing.
    pub detail: String,
    /// The number behind the text, in the column's unit, for spreadsheets.
    pub number: Option<f64>,
    /// The ends of its interval or range, in the same unit.
    pub ends: Option<(f64, f64)>,
    /// What it means.
    pub tone: Tone,
    /// How strong the tone is, 0 to 1: the colour of a percent table.
    pub strength: f64,
}

/// What a cell or a sentence means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// What the others are compared with.
    Baseline,
    /// Better than the baseline, and that can be told apart.
    Better,
    /// Worse than the baseline, and that can be told apart.
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

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Unique in the report.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it, in a sentence; may be empty.
    pub note: String,
    /// What is drawn.
    pub plot: Plot,
}

/// What a chart draws.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "plot", rename_all = "snake_case")]
pub enum Plot {
    /// Bars with intervals: a group for each category, a bar for each series.
    Bars {
        /// What the length means, with its unit.
        axis: Axis,
        /// The groups.
        categories: Vec<String>,
        /// One value for each category in each series.
        series: Vec<BarSeries>,
        /// A line across all bars, such as 100 % for the baseline.
        mark: Option<f64>,
    },
    /// Points joined by lines, with intervals where they have them.
    Lines {
        /// Across.
        x: Axis,
        /// Up.
        y: Axis,
        /// The lines.
        series: Vec<LineSeries>,
        /// Moments on the x axis that have a name.
        events: Vec<Event>,
    },
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What it means, without the unit.
    pub label: String,
    /// The unit; may be empty.
    pub unit: String,
    /// Whether equal factors are equal lengths. Values are then above 0.
    pub log: bool,
    /// Values that get a tick with this text, instead of ticks chosen by the renderer.
    pub ticks: Vec<(f64, String)>,
}

/// One series of bars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// One for each category.
    pub values: Vec<Datum<Spread>>,
}

/// A place of a chart: what is drawn there, or why it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Datum<T> {
    /// A value.
    Value(T),
    /// None that may be drawn.
    Gap(Gap),
}

impl<T> Datum<T> {
    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Gap(_) => None,
        }
    }
}

/// Why a place of a chart is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It was measured, and the number is not to be used.
    Invalid,
    /// What it would be compared with has no number that may be used.
    NoBaseline,
    /// Its rounds have not settled.
    Unsettled,
    /// There are too few requests for this percentile.
    Unsupported,
    /// It was tried in vain.
    Failed,
    /// It cannot be done.
    Impossible,
    /// It is planned and was not begun.
    NotMeasured,
    /// It was measured, and the tool does not give this number.
    NotGiven,
    /// The campaign does not have it.
    NotPlanned,
}

impl Gap {
    /// In words, for a place in a chart.
    pub fn words(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NoBaseline => "the baseline has no number",
            Self::Unsettled => "not settled",
            Self::Unsupported => "too few requests",
            Self::Failed => "failed",
            Self::Impossible => "impossible",
            Self::NotMeasured => "not measured",
            Self::NotGiven => "the tool does not say",
            Self::NotPlanned => "not in the campaign",
        }
    }
}

/// A value with its interval and the values behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// The middle.
    pub value: f64,
    /// Lower end of the interval; equal to `value` where there is none.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The repetitions, drawn as small points; may be empty.
    pub points: Vec<f64>,
    /// Whether something speaks against it.
    pub suspect: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LineSeries {
    /// Its name in the legend.
    pub name: String,
    /// Left to right.
    pub points: Vec<Point>,
    /// Whether the value holds until the next point (a distribution) instead of sloping to it.
    pub steps: bool,
}

/// A point of a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Lower and upper end of its interval.
    pub interval: Option<(f64, f64)>,
    /// Whether something speaks against it.
    pub suspect: bool,
}

/// A moment that has a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Where on the x axis.
    pub x: f64,
    /// What happened.
    pub label: String,
}

impl Report {
    /// Every chart, in order.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.picture.iter().chain(self.blocks().filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            Block::Table(_) => None,
        }))
    }

    /// The answer's table and those of the sections, in order.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        let table = (!self.table.columns.is_empty()).then_some(&self.table);
        table.into_iter().chain(self.blocks().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            Block::Chart(_) => None,
        }))
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.sections.iter().flat_map(|section| &section.blocks)
    }
}
