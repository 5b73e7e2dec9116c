//! The report for the terminal: answer, what can be believed, tables. Charts, and the table of
//! everything, stay in the files.
//!
//! Invariants:
//!
//! * nothing is wider than the terminal but a column that alone is: sentences are broken at spaces,
//!   and a table that is too wide becomes several, one under the other ([`table`]);
//! * a table or a chart is not longer than a screen; where it is, that is said, and where the rest
//!   can be found.

mod table;

use comfy_table::{
    Cell as Shown, CellAlignment, ContentArrangement, LineStyle, Table as Grid, TableStyle,
};

use super::markdown::{numbers, sign};
use super::text::{printable, shorten, wrap};
use crate::report::model::{
    BarSeries, Block, Datum, Gap, Plot, Report, Section, Spread, Tone, TrustBox,
};

/// A line under the header and none between rows.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
/// Longest text of a cell.
const LONGEST: usize = 60;
/// Characters of a line, where the terminal does not say how many it has or has more: longer
/// lines are not read well.
const WIDEST: usize = 120;
/// A terminal narrower than this gets lines of this length all the same.
const NARROWEST: usize = 60;
/// Rows of a table, and bars of a chart, that are shown of more.
const MOST_ROWS: usize = 20;
/// Cells of a bar.
const BAR: usize = 24;
/// Reasons to doubt that are told; the files have all.
const MOST_REASONS: usize = 8;
/// Tables and charts that are shown of a section.
const MOST_BLOCKS: usize = 6;
/// The section that is for looking up.
const LOOK_UP: &str = "details";

/// The report as text, as wide as the terminal; with terminal colours if `colour`. What is too long
/// for it ends with where all of it is: `whole`, a file or a command.
pub fn render_terminal(report: &Report, colour: bool, whole: &str) -> String {
    // `None` where the output is no terminal.
    let width = Grid::new().width().map_or(WIDEST, usize::from);
    render_within(report, colour, width.clamp(NARROWEST, WIDEST), whole)
}

/// The same in lines of `width` characters.
fn render_within(report: &Report, colour: bool, width: usize, whole: &str) -> String {
    let mut out = Out { text: String::new(), colour, width, whole };
    out.bold(&report.title);
    for text in [&report.question, &report.subtitle] {
        if !text.is_empty() {
            out.sentence("", text);
        }
    }
    if !report.answer.is_empty() {
        out.line("");
    }
    for (place, sentence) in report.answer.iter().enumerate() {
        match place {
            0 => out.bold(sentence),
            _ => out.sentence("", sentence),
        }
    }
    out.trust(&report.trust);
    for section in &report.sections {
        out.section(section);
    }
    if !report.notes.is_empty() {
        out.line("");
    }
    for note in &report.notes {
        out.sentence("- ", note);
    }
    out.text
}

struct Out<'a> {
    text: String,
    colour: bool,
    width: usize,
    whole: &'a str,
}

impl Out<'_> {
    fn line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// A text after a sign, its further lines under its first word.
    fn sentence(&mut self, sign: &str, text: &str) {
        for line in wrap(&format!("{sign}{}", printable(text)), self.width, sign.chars().count()) {
            self.line(&line);
        }
    }

    /// That something was left out, and where it is.
    fn left_out(&mut self, count: usize, what: &str) {
        let plural = if count == 1 { "" } else { "s" };
        let what = what.replace(" or ", &format!("{plural} or "));
        self.sentence("… ", &format!("{count} more {what}{plural}: {}", self.whole));
    }

    fn bold(&mut self, text: &str) {
        for line in wrap(&printable(text), self.width, 0) {
            match self.colour && !line.is_empty() {
                true => self.line(&format!("\x1b[1m{line}\x1b[0m")),
                false => self.line(&line),
            }
        }
    }

    fn section(&mut self, section: &Section) {
        let has_text = |block: &&Block| match block {
            Block::Table(table) => !table.columns.is_empty() && !table.rows.is_empty(),
            Block::Chart(chart) => matches!(chart.plot, Plot::Bars { .. }),
        };
        let blocks: Vec<&Block> = section.blocks.iter().filter(has_text).collect();
        if blocks.is_empty() || section.id == LOOK_UP {
            return;
        }
        self.line("");
        self.bold(&section.title);
        for block in blocks.iter().take(MOST_BLOCKS) {
            match block {
                Block::Table(table) => self.table(table),
                Block::Chart(chart) => {
                    if let Plot::Bars { axis, categories, series, .. } = &chart.plot {
                        let unit = if axis.unit.is_empty() { &axis.label } else { &axis.unit };
                        self.line("");
                        self.sentence("", &format!("{} [{unit}]", chart.title));
                        self.bars(categories, series);
                    }
                }
            }
        }
        match blocks.len().saturating_sub(MOST_BLOCKS) {
            0 => {}
            more => {
                self.line("");
                self.left_out(more, "table or chart");
            }
        }
    }

    /// Nothing of what has no numbers of its own, such as a comparison of two runs.
    fn trust(&mut self, trust: &TrustBox) {
        let numbers_of_all = trust.ok + trust.suspect + trust.invalid + trust.missing;
        if numbers_of_all == 0 && trust.reasons.is_empty() {
            return;
        }
        self.line("");
        self.sentence(
            "",
            &format!(
                "{} numbers can be believed, {} are suspect, {} invalid, {} missing",
                trust.ok, trust.suspect, trust.invalid, trust.missing
            ),
        );
        for reason in trust.reasons.iter().take(MOST_REASONS) {
            let concerned = match reason.cells.as_slice() {
                [] => String::new(),
                [only] => format!(" ({})", shorten(only, LONGEST)),
                cells => format!(" ({})", numbers(cells.len())),
            };
            let sign = if sign(reason.tone).is_empty() { "- " } else { sign(reason.tone) };
            self.sentence(sign, &format!("{}{concerned}", reason.why));
            if !reason.action.is_empty() {
                self.sentence("  → ", &reason.action);
            }
        }
        match trust.reasons.len().saturating_sub(MOST_REASONS) {
            0 => {}
            1 => self.line("- and one more reason, in the files"),
            more => self.line(&format!("- and {more} more reasons, in the files")),
        }
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new();
        grid.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
        if self.colour {
            grid.enforce_styling();
        } else {
            grid.force_no_tty();
        }
        grid
    }

    /// Bars of blocks: whole cells and an eighth of one at the end.
    fn bars(&mut self, categories: &[String], series: &[BarSeries]) {
        let values = series.iter().flat_map(|series| &series.values).filter_map(Datum::value);
        let highest =
            values.map(|spread| spread.value).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let mut grid = self.grid();
        let shown = (MOST_ROWS / series.len().max(1)).max(1);
        for (category, name) in categories.iter().take(shown).enumerate() {
            for (index, one) in series.iter().enumerate() {
                let (bar, value) = match one.values.get(category).unwrap_or(&NOT_MEASURED) {
                    Datum::Value(spread) => (bar(spread, highest), value_of(spread)),
                    Datum::Gap(gap) => (gap.words().to_owned(), "—".to_owned()),
                };
                let head = if index == 0 { shorten(name, LONGEST) } else { "".into() };
                grid.add_row([
                    Shown::new(printable(&head)),
                    Shown::new(printable(&shorten(&one.name, 30))),
                    Shown::new(bar),
                    Shown::new(value).set_alignment(CellAlignment::Right),
                ]);
            }
        }
        if !grid.is_empty() {
            self.line(&grid.trim_fmt());
        }
        match categories.len().saturating_sub(shown) {
            0 => {}
            more => self.left_out(more, "group"),
        }
    }
}

const NOT_MEASURED: Datum<Spread> = Datum::Gap(Gap::NotMeasured);

fn value_of(spread: &Spread) -> String {
    let sign = if spread.suspect { sign(Tone::Suspect) } else { "" };
    format!("{sign}{}", super::chart::value_text(spread.value))
}

fn bar(spread: &Spread, highest: f64) -> String {
    let eighths = (spread.value / highest * (BAR * 8) as f64).round();
    // Not finite when there is nothing above zero.
    let eighths =
        if eighths.is_finite() { eighths.clamp(0.0, (BAR * 8) as f64) as usize } else { 0 };
    let mut text = "█".repeat(eighths / 8);
    text += ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{Cell, Column, Row, Table};
    #[test]
    fn many_reasons_are_folded() {
        let reason = |n: usize| crate::report::model::TrustReason {
            tone: Tone::Suspect,
            rule: "rule".to_owned(),
            why: format!("reason {n} of them"),
            action: String::new(),
            cells: vec!["a".to_owned(), "b".to_owned()],
        };
        let trust = TrustBox { reasons: (0..11).map(reason).collect(), ..TrustBox::default() };
        let mut out = Out { text: String::new(), colour: false, width: 80, whole: "" };
        out.trust(&trust);
        assert!(out.text.contains("⚠ reason 7 of them (2 numbers)"), "{}", out.text);
        assert!(!out.text.contains("reason 8"), "{}", out.text);
        assert!(out.text.contains("and 3 more reasons, in the files"), "{}", out.text);
    }

    #[test]
    fn a_section_is_not_longer_than_six_tables() {
        let column = |heading: &str| Column { heading: heading.to_owned(), numeric: false };
        let table = |n: usize| Table {
            title: format!("table {n}"),
            columns: vec![column("test")],
            rows: vec![Row { cells: vec![Cell::default()], total: false }],
            ..Table::default()
        };
        let section = |count| Section {
            id: "numbers".to_owned(),
            title: "Numbers".to_owned(),
            lead: String::new(),
            blocks: (0..count).map(table).map(Block::Table).collect(),
        };
        let shown = |count| {
            let mut out =
                Out { text: String::new(), colour: false, width: 80, whole: "report.html" };
            out.section(&section(count));
            out.text
        };
        assert!(shown(6).contains("table 5") && !shown(6).contains('…'));
        assert!(!shown(8).contains("table 6"), "{}", shown(8));
        assert!(shown(8).ends_with("… 2 more tables or charts: report.html\n"), "{}", shown(8));
    }

    #[test]
    fn bars_say_whose_they_are_and_what_is_wrong_with_them() {
        let spread = |value: f64, suspect: bool| {
            Datum::Value(Spread { value, low: value, high: value, points: vec![], suspect })
        };
        let series = [
            BarSeries { name: "single".to_owned(), values: vec![spread(100.0, false); 15] },
            BarSeries {
                name: "stripe".to_owned(),
                values: vec![spread(200.0, true), Datum::Gap(Gap::Invalid)],
            },
        ];
        let categories: Vec<String> = (0..15).map(|n| format!("test {n}")).collect();
        let mut out = Out { text: String::new(), colour: false, width: 80, whole: "report.html" };
        out.bars(&categories, &series);
        let lines: Vec<&str> = out.text.lines().map(str::trim).collect();
        let ends = |line: &str, end: &str| {
            lines[..4].iter().any(|l| l.starts_with(line) && l.ends_with(end))
        };
        assert!(ends("test 0   single", "100"), "{}", out.text);
        assert!(ends("stripe", "█   ⚠ 200") && ends("stripe   invalid", "—"), "{}", out.text);
        assert_eq!(lines.len(), 21, "{}", out.text);
        assert_eq!(lines[20], "… 5 more groups: report.html");
    }
}
