//! The report for the terminal, on one screen: the question, the answer, a table with one row for each subject,
//! at most three lines of doubts, and the place of the full report.
//!
//! ```text
//! quick: Which layout is fastest?
//! 48 of 48 trials · 2026-11-23 10:12 UTC · bench, Linux 6.1
//!
//! Take stripe: 1.90 times single in sequential reads (1.88 to 1.93).
//!
//! subject   sequential reads      random reads
//! ────────────────────────────────────────────
//! single           22.1 MiB/s            640 1/s
//! stripe    ▲ 1.90 1.88 to 1.93   ≈ 1.01 0.98 to 1.04
//!
//! ⚠ the tool used 1.00 of the 1 core that its processes can use (3 numbers)
//! everything: results/report.html
//! ```
//!
//! Invariants: no line is wider than the terminal, since sentences and cells are broken at spaces; the report
//! says when a part is left out, and names its place.

use comfy_table::{
    Attribute, Cell as Shown, CellAlignment, Color, ContentArrangement, LineStyle, Table as Grid,
    TableStyle,
};

use super::text::{printable, shorten, sign, wrap};
use crate::report::model::{Cell, Report, Section, Table, Tone, TrustBox, TrustReason};

/// A line under the header and none between rows.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
/// The space between two columns.
const GAP: usize = 3;
/// The greatest length of a cell's text.
const LONGEST: usize = 60;
/// Characters in a line, if the terminal is wider or does not report its width: longer lines are hard to read.
const WIDEST: usize = 120;
/// The length of a line on a terminal that is narrower than this.
const NARROWEST: usize = 60;
/// The greatest number of rows that a table shows.
const MOST_ROWS: usize = 16;
/// The number of lines for doubts.
const MOST_DOUBTS: usize = 3;

/// The report as text, as wide as the terminal; with terminal colours if `colour`. Its last line names the
/// place of the full report: `whole`, a file or a command.
pub fn render_terminal(report: &Report, colour: bool, whole: &str) -> String {
    render_within(report, colour, screen_width(), whole)
}

fn screen_width() -> usize {
    // `None` if the output is no terminal.
    Grid::new().width().map_or(WIDEST, usize::from).clamp(NARROWEST, WIDEST)
}

/// The same report in lines of `width` characters.
fn render_within(report: &Report, colour: bool, width: usize, whole: &str) -> String {
    let mut out = Out::new(colour, width, whole);
    match report.question.as_str() {
        "" => out.bold(&report.title),
        question => out.bold(&format!("{}: {question}", report.title)),
    }
    out.sentence("", &report.subtitle);
    out.line("");
    for (place, sentence) in report.answer.iter().enumerate() {
        match place {
            0 => out.bold(sentence),
            _ => out.sentence("", sentence),
        }
    }
    out.table(&report.table);
    out.doubts(&report.trust);
    // A comparison of two runs has its lists here; for a report, the sections are in the files.
    let listed = report.sections.iter().filter(|section| section.id == NOT_COMPARED);
    listed.flat_map(Section::tables).for_each(|table| out.table(table));
    out.sentence("", &format!("everything: {whole}"));
    out.text
}

/// The section that is shown on a terminal.
const NOT_COMPARED: &str = "not-compared";

struct Out<'a> {
    text: String,
    colour: bool,
    width: usize,
    whole: &'a str,
}

impl<'a> Out<'a> {
    fn new(colour: bool, width: usize, whole: &'a str) -> Self {
        Self { text: String::new(), colour, width, whole }
    }

    fn line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// A text after a sign, with its further lines aligned under its first word; an empty text prints nothing.
    fn sentence(&mut self, sign: &str, text: &str) {
        if !text.is_empty() {
            let text = format!("{sign}{}", printable(text));
            wrap(&text, self.width, sign.chars().count()).iter().for_each(|line| self.line(line));
        }
    }

    /// A line that tells that a part was left out, and where it is.
    fn left_out(&mut self, count: usize, what: &str) {
        let plural = if count == 1 { "" } else { "s" };
        if count > 0 {
            self.sentence("… ", &format!("{count} more {what}{plural}: {}", self.whole));
        }
    }

    fn bold(&mut self, text: &str) {
        for line in wrap(&printable(text), self.width, 0) {
            match self.colour && !line.is_empty() {
                true => self.line(&format!("\x1b[1m{line}\x1b[0m")),
                false => self.line(&line),
            }
        }
    }

    /// The gravest doubts, in three lines in total.
    fn doubts(&mut self, trust: &TrustBox) {
        self.line("");
        let reasons: Vec<&TrustReason> = trust.doubts().collect();
        let shown = reasons.len().clamp(1, MOST_DOUBTS);
        for (place, reason) in reasons.iter().take(MOST_DOUBTS).enumerate() {
            // The first doubts get the lines that remain.
            let most = MOST_DOUBTS / shown + usize::from(place < MOST_DOUBTS % shown);
            self.doubt(reason, most);
        }
        self.left_out(reasons.len().saturating_sub(MOST_DOUBTS), "doubt");
    }

    /// A doubt in at most `most` lines, followed by the cells it concerns; the last words are left out if the
    /// lines do not suffice.
    fn doubt(&mut self, reason: &TrustReason, most: usize) {
        let concerned = match reason.cells.as_slice() {
            [] => String::new(),
            [only] => format!(" ({})", shorten(only, self.width / 3)),
            cells => format!(" ({} numbers)", cells.len()),
        };
        let sign = if sign(reason.tone).is_empty() { "- " } else { sign(reason.tone) };
        let mut words: Vec<&str> = reason.why.split_whitespace().collect();
        let mut rest = "";
        loop {
            let text =
                printable(&format!("{sign}{}{rest}{concerned}", words.join(" "))).into_owned();
            let lines = wrap(&text, self.width, sign.chars().count());
            if lines.len() <= most || words.pop().is_none() {
                return lines.iter().for_each(|line| self.line(line));
            }
            rest = " …";
        }
    }

    fn table(&mut self, table: &Table) {
        if table.columns.is_empty() || table.rows.is_empty() {
            return;
        }
        self.line("");
        self.sentence("", &table.title);
        // The detail of a number (small print in other reports) stands below it if there is no room beside it.
        let widths = (0..table.columns.len()).map(|column| width_of(table, column) + GAP);
        let between = if widths.sum::<usize>() > self.width { '\n' } else { ' ' };
        let mut grid = Grid::new();
        grid.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        if self.colour {
            grid.enforce_styling();
        } else {
            grid.force_no_tty();
        }
        grid.set_header(table.columns.iter().map(|column| shown_text(&column.heading)));
        for row in table.rows.iter().take(MOST_ROWS) {
            let cells = row.cells.iter();
            grid.add_row(cells.map(|cell| look(text_of(cell, between), cell.tone)));
        }
        for (shown, _) in grid.column_iter_mut().zip(&table.columns).filter(|(_, c)| c.numeric) {
            shown.set_cell_alignment(CellAlignment::Right);
        }
        grid.trim_fmt().lines().for_each(|line| self.line(line));
        self.left_out(table.rows.len().saturating_sub(MOST_ROWS), "row");
        self.sentence("", &table.note);
    }
}

/// The number of characters in the widest cell of a column.
fn width_of(table: &Table, column: usize) -> usize {
    let cells = table.rows.iter().map(|row| text_of(&row.cells[column], ' '));
    let texts = cells.chain([shown_text(&table.columns[column].heading)]);
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

fn shown_text(text: &str) -> String {
    printable(&shorten(text, LONGEST)).into_owned()
}

fn text_of(cell: &Cell, between: char) -> String {
    let text = format!("{}{}", sign(cell.tone), shown_text(&cell.text));
    match cell.detail.as_str() {
        "" => text,
        detail => format!("{text}{between}{}", shown_text(detail)),
    }
}

fn look(text: String, tone: Tone) -> Shown {
    let shown = Shown::new(text);
    match tone {
        Tone::Plain => shown,
        Tone::Baseline | Tone::Same | Tone::Missing => shown.add_attribute(Attribute::Dim),
        Tone::Better => shown.fg(Color::Green).add_attribute(Attribute::Bold),
        Tone::Worse => shown.fg(Color::Red).add_attribute(Attribute::Bold),
        Tone::Suspect => shown.fg(Color::Yellow),
        Tone::Invalid => shown.fg(Color::Red).add_attribute(Attribute::CrossedOut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{Column, Row};

    fn reason(rule: &str, why: &str, cells: usize) -> TrustReason {
        TrustReason {
            tone: if rule == "rule" { Tone::Suspect } else { Tone::Missing },
            rule: rule.to_owned(),
            why: why.to_owned(),
            action: String::new(),
            cells: (0..cells).map(|n| format!("{n}: x")).collect(),
        }
    }

    fn doubts(reasons: Vec<TrustReason>) -> Vec<String> {
        let mut out = Out::new(false, 60, "report.html");
        out.doubts(&TrustBox { reasons, ..TrustBox::default() });
        out.text.trim().lines().map(str::to_owned).collect()
    }

    #[test]
    fn three_lines_of_doubt_at_most() {
        let many = (0..5).map(|n| reason("rule", &format!("reason {n} of them"), 2)).collect();
        let many = doubts(many);
        assert_eq!(many[2..], ["⚠ reason 2 of them (2 numbers)", "… 2 more doubts: report.html"]);
        // One column takes the lines that the others leave.
        let long = || reason("rule", &vec!["word"; 100].join(" "), 2);
        let alone = doubts(vec![long()]);
        assert_eq!(alone.len(), 3, "{alone:?}");
        assert!(alone[2].ends_with("word … (2 numbers)"), "{alone:?}");
        let three = doubts(vec![long(), reason("rule", "word", 2), long()]);
        assert_eq!((three.len(), three[1].as_str()), (3, "⚠ word (2 numbers)"));
        assert!(doubts(vec![long(), long()])[1].ends_with("word … (2 numbers)"));
    }

    #[test]
    fn what_is_impossible_is_left_to_the_files() {
        let told = doubts(vec![reason("failed", "gone", 1), reason("impossible", "never", 1)]);
        assert_eq!(told, ["gone (0: x)"].map(|text| format!("- {text}")));
    }

    /// A column with a unit contains numbers; a cell is `text / detail`.
    fn shown(columns: &[&str], rows: &[&[&str]], width: usize) -> String {
        let column = |heading: &&str| Column {
            heading: (*heading).to_owned(),
            numeric: heading.contains('['),
        };
        let cell = |text: &&str| {
            let (text, detail) = text.split_once(" / ").unwrap_or((text, ""));
            Cell { text: text.to_owned(), detail: detail.to_owned(), ..Cell::default() }
        };
        let row = |cells: &&[&str]| Row { cells: cells.iter().map(cell).collect(), total: false };
        let mut out = Out::new(false, width, "report.html");
        out.table(&Table {
            columns: columns.iter().map(column).collect(),
            rows: rows.iter().map(row).collect(),
            ..Table::default()
        });
        for line in out.text.lines() {
            assert!(line.chars().count() <= width, "{line:?} of {}", out.text);
        }
        out.text
    }

    #[test]
    fn an_interval_is_under_its_value_before_it_is_broken() {
        let rows: &[&[&str]] = &[&["stripe", "1.59 / 1.53 to 1.66", "1.87 / 1.81 to 1.94"]];
        let columns = ["subject", "sequential reads [x]", "random reads [x]"];
        assert!(shown(&columns, rows, 80).contains("1.59 1.53 to 1.66"));
        let narrow = shown(&columns, rows, 46);
        assert!(!narrow.contains("1.59 1.53"), "{narrow}");
        assert!(narrow.contains("1.53 to 1.66") && narrow.contains("1.81 to 1.94"), "{narrow}");
    }

    #[test]
    fn a_wide_table_is_broken_at_spaces() {
        let heads: Vec<String> = (0..6).map(|n| format!("sequential reads {n} [x]")).collect();
        let columns: Vec<&str> =
            std::iter::once("subject").chain(heads.iter().map(String::as_str)).collect();
        let row = ["a raid5 of six disks", "1.59 / 1.53 to 1.66"];
        let cells: Vec<&str> = row.into_iter().chain(["1.87 / 1.81 to 1.94"; 5]).collect();
        let text = shown(&columns, &[&cells], 120);
        assert!(text.contains("1.53 to 1.66") && text.contains("sequential"), "{text}");
        assert_eq!(text.matches("1.81 to 1.94").count(), 5, "{text}");
    }

    #[test]
    fn long_tables_end_with_where_the_rest_is() {
        let names: Vec<String> = (0..30).map(|row| format!("row {row}")).collect();
        let rows: Vec<[&str; 2]> = names.iter().map(|name| [name.as_str(), "1.0"]).collect();
        let rows: Vec<&[&str]> = rows.iter().map(|row| row.as_slice()).collect();
        let text = shown(&["test", "a [s]"], &rows, 60);
        assert!(text.contains("row 15") && !text.contains("row 16"), "{text}");
        assert!(text.contains("… 14 more rows: report.html"), "{text}");
        assert!(!shown(&["test", "a [s]"], &rows[..16], 60).contains("more row"));
    }
}
