//! The report for the terminal: answer, what can be believed, tables. Charts, and the table of
//! everything, stay in the files.
//!
//! Invariant: nothing is wider than the terminal but a column that alone is: sentences are broken
//! at spaces, and a table that is too wide becomes several, one under the other, each with the
//! first column.

use comfy_table::{
    Attribute, Cell as Shown, CellAlignment, Color, ContentArrangement, LineStyle, Table as Grid,
    TableStyle,
};

use super::markdown::{numbers, sign};
use super::text::{printable, shorten, wrap};
use crate::report::model::{
    Block, Cell, Column, Datum, Plot, Report, Row, Section, Spread, Table, Tone, TrustBox,
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
/// What stands between two columns.
const GAP: usize = 3;
/// Cells of a bar.
const BAR: usize = 24;
/// Reasons to doubt that are told; the files have all.
const MOST_REASONS: usize = 8;
/// The section that is for looking up.
const LOOK_UP: &str = "details";

/// The report as text, as wide as the terminal; with terminal colours if `colour`.
pub fn render_terminal(report: &Report, colour: bool) -> String {
    // `None` where the output is no terminal.
    let width = Grid::new().width().map_or(WIDEST, usize::from);
    render_within(report, colour, width.clamp(NARROWEST, WIDEST))
}

/// The same in lines of `width` characters.
pub(super) fn render_within(report: &Report, colour: bool, width: usize) -> String {
    let mut out = Out { text: String::new(), colour, width };
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

struct Out {
    text: String,
    colour: bool,
    width: usize,
}

impl Out {
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

    fn bold(&mut self, text: &str) {
        for line in wrap(&printable(text), self.width, 0) {
            match self.colour && !line.is_empty() {
                true => self.line(&format!("\x1b[1m{line}\x1b[0m")),
                false => self.line(&line),
            }
        }
    }

    fn section(&mut self, section: &Section) {
        let has_text = section.blocks.iter().any(|block| match block {
            Block::Table(table) => !table.columns.is_empty() && !table.rows.is_empty(),
            Block::Chart(chart) => matches!(chart.plot, Plot::Bars { .. }),
        });
        if !has_text || section.id == LOOK_UP {
            return;
        }
        self.line("");
        self.bold(&section.title);
        for block in &section.blocks {
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

    fn table(&mut self, table: &Table) {
        if table.columns.is_empty() || table.rows.is_empty() {
            return;
        }
        self.line("");
        if !table.title.is_empty() {
            self.sentence("", &table.title);
        }
        let full = self.lay_out(&table.columns, &table.rows, true);
        if full.lines().all(|line| line.chars().count() <= self.width) {
            self.line(&full);
        } else {
            for (place, (columns, rows)) in pieces(table, self.width).into_iter().enumerate() {
                if place > 0 {
                    self.line("");
                }
                self.line(&self.lay_out(&columns, &rows, false));
            }
        }
        if !table.note.is_empty() {
            self.sentence("", &table.note);
        }
    }

    /// The table, with what stands smaller beside numbers or without.
    fn lay_out(&self, columns: &[Column], rows: &[Row], details: bool) -> String {
        let mut grid = self.grid();
        grid.set_header(columns.iter().map(|column| printable(&column.heading).into_owned()));
        for (index, column) in columns.iter().enumerate() {
            if let Some(shown) = grid.column_mut(index).filter(|_| column.numeric) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        for row in rows {
            grid.add_row(row.cells.iter().map(|cell| {
                let shown = show_cell(cell, details || cell.text.is_empty());
                if row.total { shown.add_attribute(Attribute::Bold) } else { shown }
            }));
        }
        grid.trim_fmt()
    }

    /// Bars of blocks: whole cells and an eighth of one at the end.
    fn bars(&mut self, categories: &[String], series: &[crate::report::model::BarSeries]) {
        let values = series.iter().flat_map(|series| &series.values).filter_map(Datum::value);
        let highest =
            values.map(|spread| spread.value).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let mut grid = self.grid();
        for (category, name) in categories.iter().enumerate() {
            for (index, one) in series.iter().enumerate() {
                let value = one.values.get(category).and_then(Datum::value);
                let head = if index == 0 { shorten(name, LONGEST) } else { "".into() };
                grid.add_row([
                    Shown::new(printable(&head)),
                    Shown::new(printable(&shorten(&one.name, 30))),
                    Shown::new(value.map_or_else(String::new, |spread| bar(spread, highest))),
                    Shown::new(value.map_or_else(
                        || "—".to_owned(),
                        |spread| super::chart::value_text(spread.value),
                    ))
                    .set_alignment(CellAlignment::Right),
                ]);
            }
        }
        if !grid.is_empty() {
            self.line(&grid.trim_fmt());
        }
    }
}

/// Tables of at most `width` characters with the first column each, as few as there can be in
/// this order. A value and its percent, which share the name before their units, stay together.
fn pieces(table: &Table, width: usize) -> Vec<(Vec<Column>, Vec<Row>)> {
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            let texts = table.rows.iter().map(|row| shown_text(&row.cells[column], false));
            let longest = texts.map(|text| text.chars().count()).max().unwrap_or(0);
            longest.max(table.columns[column].heading.chars().count()) + GAP
        })
        .collect();
    let stem = |column: usize| {
        let heading = &table.columns[column].heading;
        heading.rsplit_once(" [").map_or(heading.as_str(), |(name, _)| name)
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for column in 1..table.columns.len() {
        match groups.last_mut() {
            Some(group) if stem(group[0]) == stem(column) => group.push(column),
            _ => groups.push(vec![column]),
        }
    }
    let mut parts: Vec<Vec<usize>> = vec![vec![0]];
    let mut used = widths[0];
    for group in groups {
        let wanted: usize = group.iter().map(|column| widths[*column]).sum();
        match parts.last_mut() {
            Some(part) if part.len() == 1 || used + wanted <= width => {
                part.extend(group);
                used += wanted;
            }
            _ => {
                parts.push([vec![0], group].concat());
                used = widths[0] + wanted;
            }
        }
    }
    let part = |columns: Vec<usize>| {
        let heads = columns.iter().map(|column| table.columns[*column].clone()).collect();
        let rows = table.rows.iter().map(|row| Row {
            cells: columns.iter().map(|column| row.cells[*column].clone()).collect(),
            total: row.total,
        });
        (heads, rows.collect())
    };
    parts.into_iter().map(part).collect()
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

fn shown_text(cell: &Cell, detail: bool) -> String {
    let mut text = format!("{}{}", sign(cell.tone), printable(&shorten(&cell.text, LONGEST)));
    if (detail || cell.text.is_empty()) && !cell.detail.is_empty() {
        text += &format!(" {}", printable(&shorten(&cell.detail, LONGEST)));
    }
    text
}

fn show_cell(cell: &Cell, detail: bool) -> Shown {
    let shown = Shown::new(shown_text(cell, detail));
    match cell.tone {
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

    fn table(columns: &[&str], rows: &[&[&str]]) -> Table {
        let column = |heading: &&str| Column { heading: (*heading).to_owned(), numeric: true };
        let cell = |text: &&str| Cell { text: (*text).to_owned(), ..Cell::default() };
        let row = |cells: &&[&str]| Row { cells: cells.iter().map(cell).collect(), total: false };
        Table {
            columns: columns.iter().map(column).collect(),
            rows: rows.iter().map(row).collect(),
            ..Table::default()
        }
    }

    fn headings(table: &Table, width: usize) -> Vec<Vec<String>> {
        let heads = |(columns, rows): (Vec<Column>, Vec<Row>)| {
            assert!(rows.iter().all(|row| row.cells.len() == columns.len()));
            columns.into_iter().map(|column| column.heading).collect()
        };
        pieces(table, width).into_iter().map(heads).collect()
    }

    #[test]
    fn wide_tables_are_several() {
        let wide = table(
            &["test", "a [s]", "a [%]", "b [s]", "b [%]"],
            &[&["write 1M", "1.00", "100", "2.00", "200"]],
        );
        assert_eq!(headings(&wide, 120), [["test", "a [s]", "a [%]", "b [s]", "b [%]"]]);
        // 11 for the first column and 8 for each other: a value and its percent stay together.
        assert_eq!(headings(&wide, 42), [["test", "a [s]", "a [%]"], ["test", "b [s]", "b [%]"]]);
        assert_eq!(headings(&wide, 1).len(), 2, "at least a group each");
        assert_eq!(headings(&table(&["alone"], &[]), 3), [["alone"]]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut out = Out { text: String::new(), colour: false, width: 60 };
        let heads: Vec<String> = (0..12).map(|n| format!("subject {n} [MiB/s]")).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let cells = vec!["1234"; 12];
        out.table(&table(&heads, &[&cells, &cells]));
        out.sentence("- ", &"many words ".repeat(40));
        assert!(out.text.lines().count() > 12);
        for line in out.text.lines() {
            assert!(line.chars().count() <= 60, "{line:?}");
        }
        assert!(heads.iter().all(|head| out.text.contains(head)), "{}", out.text);
    }

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
        let mut out = Out { text: String::new(), colour: false, width: 80 };
        out.trust(&trust);
        assert!(out.text.contains("⚠ reason 7 of them (2 numbers)"), "{}", out.text);
        assert!(!out.text.contains("reason 8"), "{}", out.text);
        assert!(out.text.contains("and 3 more reasons, in the files"), "{}", out.text);
    }
}
