//! The report for the terminal: answer, what can be believed, tables. Charts stay in the files.

use comfy_table::{
    Attribute, Cell as Shown, CellAlignment, Color, ContentArrangement, LineStyle, Table as Grid,
    TableStyle,
};

use super::text::{printable, shorten};
use crate::report::model::{Block, Cell, Plot, Report, Spread, Table, Tone, TrustBox};

/// A line under the header and none between rows.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
/// Longest text of a cell.
const LONGEST: usize = 60;
/// A table that would be wider leaves intervals and reasons to the files.
const WIDEST: usize = 120;
/// Cells of a bar.
const BAR: usize = 24;

/// The report as text; with terminal colours if `colour`.
pub fn render_terminal(report: &Report, colour: bool) -> String {
    let mut out = Out { text: String::new(), colour };
    out.line(&out.bold(&printable(&report.title)));
    for text in [&report.question, &report.subtitle] {
        if !text.is_empty() {
            out.line(&printable(text));
        }
    }
    if !report.answer.is_empty() {
        out.line("");
    }
    for sentence in &report.answer {
        out.line(&out.bold(&printable(sentence)));
    }
    out.trust(&report.trust);
    for section in &report.sections {
        let tables = section.blocks.iter().any(|block| match block {
            Block::Table(table) => !table.columns.is_empty(),
            Block::Chart(chart) => matches!(chart.plot, Plot::Bars { .. }),
        });
        if !tables {
            continue;
        }
        out.heading(&section.title);
        for block in &section.blocks {
            match block {
                Block::Table(table) => out.table(table),
                Block::Chart(chart) => {
                    if let Plot::Bars { axis, categories, series, .. } = &chart.plot {
                        let unit = if axis.unit.is_empty() { &axis.label } else { &axis.unit };
                        out.line("");
                        out.line(&format!("{} ({})", printable(&chart.title), printable(unit)));
                        out.bars(categories, series);
                    }
                }
            }
        }
    }
    if !report.notes.is_empty() {
        out.line("");
    }
    for note in &report.notes {
        out.line(&format!("- {}", printable(note)));
    }
    out.text
}

struct Out {
    text: String,
    colour: bool,
}

impl Out {
    fn line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn heading(&mut self, text: &str) {
        let text = self.bold(&printable(text));
        self.line("");
        self.line(&text);
    }

    fn trust(&mut self, trust: &TrustBox) {
        self.line("");
        self.line(&format!(
            "{} numbers can be believed, {} are suspect, {} invalid, {} missing",
            trust.ok, trust.suspect, trust.invalid, trust.missing
        ));
        for reason in &trust.reasons {
            let sign = super::markdown::sign(reason.tone);
            let concerned = match reason.cells.as_slice() {
                [] => String::new(),
                [only] => format!(" ({})", printable(&shorten(only, LONGEST))),
                cells => format!(" ({} cells)", cells.len()),
            };
            let sign = if sign.is_empty() { "- " } else { sign };
            self.line(&format!("{sign}{}{concerned}", printable(&reason.why)));
            if !reason.action.is_empty() {
                self.line(&format!("    {}", printable(&reason.action)));
            }
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
        if table.columns.is_empty() {
            return;
        }
        self.line("");
        if !table.title.is_empty() {
            self.line(&printable(&table.title));
        }
        let full = self.lay_out(table, true);
        let wide = full.lines().any(|line| line.chars().count() > WIDEST);
        self.line(&if wide { self.lay_out(table, false) } else { full });
        if !table.note.is_empty() {
            self.line(&printable(&table.note));
        }
    }

    /// The table, with what stands smaller beside numbers or without.
    fn lay_out(&self, table: &Table, details: bool) -> String {
        let mut grid = self.grid();
        grid.set_header(table.columns.iter().map(|column| printable(&column.heading).into_owned()));
        for (index, column) in table.columns.iter().enumerate() {
            if let Some(shown) = grid.column_mut(index).filter(|_| column.numeric) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        for row in &table.rows {
            grid.add_row(row.cells.iter().map(|cell| {
                let shown = show_cell(cell, details || cell.text.is_empty());
                if row.total { shown.add_attribute(Attribute::Bold) } else { shown }
            }));
        }
        grid.trim_fmt()
    }

    /// Bars of blocks: whole cells and an eighth of one at the end.
    fn bars(&mut self, categories: &[String], series: &[crate::report::model::BarSeries]) {
        let values = series.iter().flat_map(|series| &series.values).flatten();
        let highest =
            values.map(|spread| spread.value).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let mut grid = self.grid();
        for (category, name) in categories.iter().enumerate() {
            for (index, one) in series.iter().enumerate() {
                let value = one.values.get(category).and_then(Option::as_ref);
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

fn bar(spread: &Spread, highest: f64) -> String {
    let eighths = (spread.value / highest * (BAR * 8) as f64).round();
    // Not finite when there is nothing above zero.
    let eighths =
        if eighths.is_finite() { eighths.clamp(0.0, (BAR * 8) as f64) as usize } else { 0 };
    let mut text = "█".repeat(eighths / 8);
    text += ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    text
}

fn show_cell(cell: &Cell, detail: bool) -> Shown {
    let mut text =
        format!("{}{}", super::markdown::sign(cell.tone), printable(&shorten(&cell.text, LONGEST)));
    if detail && !cell.detail.is_empty() {
        text += &format!(" {}", printable(&shorten(&cell.detail, LONGEST)));
    }
    let shown = Shown::new(text);
    match cell.tone {
        Tone::Plain => shown,
        Tone::Baseline | Tone::Same | Tone::Missing => shown.add_attribute(Attribute::Dim),
        Tone::Better => shown.fg(Color::Green).add_attribute(Attribute::Bold),
        Tone::Worse => shown.fg(Color::Red).add_attribute(Attribute::Bold),
        Tone::Suspect => shown.fg(Color::Yellow),
        Tone::Invalid => shown.fg(Color::Red).add_attribute(Attribute::CrossedOut),
    }
}
