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

use super::text::{printable, shorten, sign, wrap};
use crate::report::model::{Cell, Column, Report, Section, Table, Tone, TrustBox, TrustReason};

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
    // An error where the output is no terminal.
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map_or(WIDEST, |size| size.ws_col.into()).clamp(NARROWEST, WIDEST)
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
        // What is smaller elsewhere stands under its number where there is no room beside it.
        let beside = grid(table, ' ');
        let has_room = line_width(&widest(&beside, &['\n'])) < self.width;
        let grid = if has_room { beside } else { grid(table, '\n') };
        let widths = fit(&grid, self.width);
        for (place, cells) in grid.iter().enumerate() {
            self.row(cells, &widths, &table.columns);
            if place == 0 {
                self.line(&"─".repeat(line_width(&widths)));
            }
        }
        self.left_out(table.rows.len().saturating_sub(MOST_ROWS), "row");
        self.sentence("", &table.note);
    }

    /// A row of a table, in as many lines as its highest cell takes.
    fn row(&mut self, cells: &[Shown], widths: &[usize], columns: &[Column]) {
        let broken = cells.iter().zip(widths).map(|((text, _), width)| broken(text, *width));
        let broken: Vec<Vec<String>> = broken.collect();
        for at in 0..broken.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for (column, lines) in broken.iter().enumerate() {
                let text = lines.get(at).map_or("", String::as_str);
                let space = " ".repeat(widths[column] - text.chars().count());
                let text = match look(cells[column].1) {
                    look if self.colour && !look.is_empty() => format!("\x1b[{look}m{text}\x1b[0m"),
                    _ => text.to_owned(),
                };
                match columns[column].numeric {
                    true => line += &format!(" {space}{text}  "),
                    false => line += &format!(" {text}{space}  "),
                }
            }
            self.line(&line);
        }
    }
}

/// A cell's text, perhaps of several lines, and its tone.
type Shown = (String, Tone);

/// The headings of a table and its first rows.
fn grid(table: &Table, between: char) -> Vec<Vec<Shown>> {
    let headings = table.columns.iter().map(|column| (shown_text(&column.heading), Tone::Plain));
    let rows = table.rows.iter().take(MOST_ROWS).map(|row| {
        row.cells.iter().map(|cell| (text_of(cell, between), cell.tone)).collect::<Vec<Shown>>()
    });
    std::iter::once(headings.collect()).chain(rows).collect()
}

/// Letters of the longest part of each column's cells between separators.
fn widest(grid: &[Vec<Shown>], separators: &[char]) -> Vec<usize> {
    let of = |column: usize| {
        let parts = grid.iter().flat_map(|row| row[column].0.split(separators));
        parts.map(|part| part.chars().count()).max().unwrap_or(0)
    };
    (0..grid[0].len()).map(of).collect()
}

/// The widths of columns in lines of at most `most` characters: the widest one gives way first, and columns
/// that can be broken at a space before those that cannot.
fn fit(grid: &[Vec<Shown>], most: usize) -> Vec<usize> {
    let (mut widths, words) = (widest(grid, &['\n']), widest(grid, &['\n', ' ']));
    while line_width(&widths) > most {
        let wide = (0..widths.len()).filter(|column| widths[*column] > 1);
        let key = |column: &usize| (widths[*column] > words[*column], widths[*column]);
        let Some(column) = wide.max_by_key(key) else { break };
        widths[column] -= 1;
    }
    widths
}

fn line_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len() - 1
}

/// The lines of a cell; a word that is longer than a line is cut.
fn broken(text: &str, width: usize) -> Vec<String> {
    let lines = text.split('\n').flat_map(|line| wrap(line, width, 0));
    let cut = lines.flat_map(|line| {
        let letters: Vec<char> = line.chars().collect();
        let pieces = letters.chunks(width.max(1)).map(|piece| piece.iter().collect());
        pieces.collect::<Vec<String>>()
    });
    cut.collect()
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

/// Attributes of a terminal for a tone (ECMA-48, SGR).
fn look(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Baseline | Tone::Same | Tone::Missing => "2",
        Tone::Better => "1;32",
        Tone::Worse => "1;31",
        Tone::Suspect => "33",
        Tone::Invalid => "9;31",
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
    fn columns_stand_below_each_other() {
        let columns = ["subject", "reads [x]", "a word that has no room"];
        let text = shown(&columns, &[&["single", "1.00", "x"], &["stripe", "12.00", "y"]], 30);
        let expected = concat!(
            " subject      reads   a word\n",
            "                [x]   that\n",
            "                      has no\n",
            "                      room\n",
            "──────────────────────────────\n",
            " single        1.00   x\n",
            " stripe       12.00   y\n",
        );
        assert_eq!(text.trim_start_matches('\n'), expected);
    }

    #[test]
    fn a_word_without_room_is_cut() {
        assert_eq!(broken("one incomprehensible\n2", 6), ["one", "incomp", "rehens", "ible", "2"]);
        assert_eq!(broken("", 6), [""; 0]);
        let long = "x".repeat(50);
        let text = shown(&["a", "b", "c"], &[&[&long, &long, "1"]], 60);
        assert_eq!(text.matches('x').count(), 100, "{text}");
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
