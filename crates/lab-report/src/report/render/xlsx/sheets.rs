//! The sheets without charts: summary, tables, samples.

use std::ops::Range;

use rust_xlsxwriter::{Format, Url, Worksheet, XlsxError};

use super::looks::{Looks, of_cell};
use super::paper::set_page;
use super::{cell_lines, cell_text, clip};
use crate::report::model::{Cell, Report, Table};
use crate::report::render::tidy::{FIXED, TidyRow, dimension_names};

/// Rows of samples on one sheet: what a sheet holds, less its header.
const SAMPLES_A_SHEET: usize = 1_048_575;
/// Samples that are printed.
const SAMPLES_ON_PAPER: usize = 30;
/// Widths of columns in characters.
const NARROW: usize = 9;
const WIDE: usize = 60;
/// Of a column whose texts have lines, such as commands.
const OF_LINES: usize = 110;

/// Widths of the columns of the summary.
const SUMMARY: [u32; 3] = [34, 90, 60];
/// Height of a line, and of the highest row, in points.
const LINE: f64 = 15.0;
const HIGHEST: f64 = 409.0;

/// Lines that a text takes in a column of this width.
fn lines_of(text: &str, width: u32) -> usize {
    // Less than there is room for: letters are not all as wide as a digit.
    let width = (width as usize * 9 / 10).max(1);
    text.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum()
}

fn height_of(lines: usize) -> f64 {
    (lines.max(1) as f64 * LINE).min(HIGHEST)
}

/// A sheet that is written row by row.
struct Rows<'a> {
    sheet: Worksheet,
    row: u32,
    looks: &'a Looks,
}

impl Rows<'_> {
    fn text(&mut self, column: u16, text: &str, look: &Format) -> Result<(), XlsxError> {
        self.sheet.write_string_with_format(self.row, column, cell_text(text), look)?;
        Ok(())
    }

    fn line(&mut self, text: &str, look: &Format) -> Result<(), XlsxError> {
        if !text.is_empty() {
            self.text(0, text, look)?;
            self.row += 1;
        }
        Ok(())
    }

    /// A text over all columns of the summary, in as many lines as it needs.
    fn paragraph(&mut self, text: &str, look: &Format) -> Result<(), XlsxError> {
        let text = cell_text(text);
        if text.is_empty() {
            return Ok(());
        }
        let last = SUMMARY.len() as u16 - 1;
        self.sheet.merge_range(self.row, 0, self.row, last, &text, look)?;
        let lines = lines_of(&text, SUMMARY.iter().sum());
        self.sheet.set_row_height(self.row, height_of(lines))?;
        self.row += 1;
        Ok(())
    }

    fn heading(&mut self, text: &str) -> Result<(), XlsxError> {
        self.row += 1;
        self.line(text, &self.looks.bold)
    }
}

/// The first sheet: answer, what can be believed, and where everything is.
pub(super) fn summary(
    report: &Report,
    sheets: &[(Worksheet, String)],
    looks: &Looks,
) -> Result<Worksheet, XlsxError> {
    let mut rows = Rows { sheet: Worksheet::new(), row: 0, looks };
    for (column, width) in (0..).zip(SUMMARY) {
        rows.sheet.set_column_width(column, width)?;
    }
    rows.line(&report.title, &looks.title)?;
    rows.paragraph(&report.question, &looks.wrapped)?;
    rows.paragraph(&report.subtitle, &looks.soft)?;
    rows.row += 1;
    for sentence in &report.answer {
        rows.paragraph(sentence, &looks.bold_wrapped)?;
    }
    rows.heading("What can be believed")?;
    let trust = &report.trust;
    for (what, count) in [
        ("Nothing against them", trust.ok),
        ("Suspect", trust.suspect),
        ("Invalid", trust.invalid),
        ("Not measured", trust.missing),
    ] {
        rows.text(0, what, &looks.plain)?;
        rows.sheet.write_number(rows.row, 1, count as f64)?;
        rows.row += 1;
    }
    for reason in &trust.reasons {
        rows.text(0, &reason.rule, &looks.bold)?;
        rows.text(1, &format!("{}. {}", reason.why, reason.action), &looks.wrapped)?;
        // All of them stand in the cell; seen are the first.
        rows.text(2, &reason.cells.join("; "), &looks.wrapped)?;
        rows.sheet.set_row_height(rows.row, 3.0 * LINE)?;
        rows.row += 1;
    }
    rows.heading("Sheets")?;
    for (sheet, title) in sheets {
        let link = Url::new(format!("internal:'{}'!A1", sheet.name())).set_text(sheet.name());
        rows.sheet.write_url(rows.row, 0, link)?;
        rows.text(1, title, &looks.plain)?;
        rows.row += 1;
    }
    rows.heading("Where it was measured")?;
    for (name, value) in &report.environment {
        rows.text(0, name, &looks.soft)?;
        rows.text(1, value, &looks.wrapped)?;
        rows.row += 1;
    }
    rows.heading("Again")?;
    for line in &report.again {
        rows.line(line, &looks.command)?;
    }
    set_page(&mut rows.sheet, rows.row, SUMMARY.len())?;
    Ok(rows.sheet)
}

/// A table: its title, its header, its rows. The ends of intervals stand as numbers in columns of their
/// own right of the numbers that they belong to, and so do reasons, as words.
pub(super) fn table(table: &Table, looks: &Looks) -> Result<Worksheet, XlsxError> {
    let mut sheet = Worksheet::new();
    sheet.write_string_with_format(0, 0, cell_text(&table.title), &looks.bold)?;
    if !table.note.is_empty() {
        sheet.write_string_with_format(1, 0, cell_text(&table.note), &looks.soft)?;
    }
    let header = 2;
    let mut place = 0;
    for (index, column) in table.columns.iter().enumerate() {
        let rows = (header + 1..).zip(&table.rows);
        let cells: Vec<(u32, &Cell, bool)> =
            rows.filter_map(|(at, row)| Some((at, row.cells.get(index)?, row.total))).collect();
        let look = if column.numeric { &looks.head_number } else { &looks.head };
        sheet.write_string_with_format(header, place, cell_text(&column.heading), look)?;
        for (row, cell, total) in &cells {
            let look = of_cell(cell, column.numeric, *total);
            match cell.number.filter(|number| number.is_finite()) {
                Some(number) => sheet.write_number_with_format(*row, place, number, &look)?,
                None => {
                    sheet.write_string_with_format(*row, place, cell_lines(&cell.text), &look)?
                }
            };
        }
        let texts = cells.iter().map(|(_, cell, _)| cell.text.as_str());
        sheet.set_column_width(place, width_of(&column.heading, texts))?;
        place += 1;
        if cells.iter().any(|(_, cell, _)| cell.ends.is_some()) {
            sheet.write_string_with_format(header, place, "low", &looks.head_number)?;
            sheet.write_string_with_format(header, place + 1, "high", &looks.head_number)?;
            for (row, cell, _) in &cells {
                let ends =
                    cell.ends.map_or(vec![], |(low, high)| vec![(place, low), (place + 1, high)]);
                for (place, end) in ends.into_iter().filter(|(_, end)| end.is_finite()) {
                    sheet.write_number(*row, place, end)?;
                }
            }
            place += 2;
        }
        let words =
            |cell: &Cell| if cell.ends.is_none() { cell_text(&cell.detail) } else { String::new() };
        let words: Vec<(u32, String)> =
            cells.iter().map(|(row, cell, _)| (*row, words(cell))).collect();
        if words.iter().any(|(_, text)| !text.is_empty()) {
            sheet.write_string_with_format(header, place, "", &looks.head)?;
            for (row, text) in words.iter().filter(|(_, text)| !text.is_empty()) {
                sheet.write_string_with_format(*row, place, text, &looks.soft)?;
            }
            sheet.set_column_width(
                place,
                width_of("", words.iter().map(|(_, text)| text.as_str())),
            )?;
            place += 1;
        }
    }
    // Not every program makes a row as high as its lines.
    for (row, cells) in (header + 1..).zip(&table.rows) {
        let broken = cells.cells.iter().filter(|cell| cell.text.contains('\n'));
        if let Some(lines) = broken.map(|cell| lines_of(&cell.text, OF_LINES as u32)).max() {
            sheet.set_row_height(row, height_of(lines))?;
        }
    }
    sheet.set_freeze_panes(header + 1, 1)?;
    sheet.set_repeat_rows(header, header)?;
    let rows = header + 1 + table.rows.len() as u32;
    set_page(&mut sheet, rows, usize::from(place))?;
    Ok(sheet)
}

fn width_of<'a>(heading: &str, texts: impl Iterator<Item = &'a str>) -> f64 {
    // The longest word of a heading, which is wrapped.
    let word = heading.split(' ').map(|word| word.chars().count()).max().unwrap_or(0) + 2;
    let mut widest = WIDE;
    let lines = texts.flat_map(|text| {
        if text.contains('\n') {
            widest = OF_LINES;
        }
        text.lines()
    });
    let longest = lines.map(|line| line.chars().count() + 2).max().unwrap_or(0);
    word.max(longest).clamp(NARROW, widest) as f64
}

/// Which rows go on which sheet.
pub(super) fn sample_parts(samples: &[TidyRow]) -> impl Iterator<Item = Range<usize>> {
    let count = samples.len();
    let starts = (0..count.max(1)).step_by(SAMPLES_A_SHEET);
    starts.map(move |start| start..(start + SAMPLES_A_SHEET).min(count))
}

/// The samples, one a row, every condition in a column of its own.
pub(super) fn samples(
    all: &[TidyRow],
    part: Range<usize>,
    looks: &Looks,
) -> Result<Worksheet, XlsxError> {
    let mut sheet = Worksheet::new();
    let names = dimension_names(all);
    let heads = names.iter().copied().chain(FIXED);
    for (column, head) in (0..).zip(heads) {
        sheet.write_string_with_format(0, column, cell_text(head), &looks.head)?;
        let wide = matches!(head, "value" | "metric" | "test" | "workload" | "subject");
        sheet.set_column_width(column, if wide { 22 } else { 12 })?;
    }
    let fixed = u16::try_from(names.len()).map_err(|_| XlsxError::RowColumnLimitError)?;
    let last = fixed + FIXED.len() as u16 - 1;
    for (row, sample) in (1..).zip(&all[part.clone()]) {
        for (place, name) in names.iter().enumerate() {
            let value = sample.dimension(name, place);
            if !value.is_empty() {
                sheet.write_string(row, place as u16, cell_text(value))?;
            }
        }
        sheet.write_string(row, fixed, cell_text(&sample.metric))?;
        if sample.value.is_finite() {
            sheet.write_number(row, fixed + 1, sample.value)?;
        }
        sheet.write_string(row, fixed + 2, cell_text(&sample.unit))?;
        sheet.write_number(row, fixed + 3, f64::from(sample.trial))?;
        sheet.write_number(row, fixed + 4, f64::from(sample.repetition))?;
        sheet.write_string(row, fixed + 5, clip(&sample.verdict, 255))?;
    }
    sheet.set_freeze_panes(1, 0)?;
    if !part.is_empty() {
        sheet.autofilter(0, 0, part.len() as u32, last)?;
    }
    sheet.set_repeat_rows(0, 0)?;
    // Thousands of samples are for programs: paper gets what they look like.
    let shown = part.len().min(SAMPLES_ON_PAPER);
    set_page(&mut sheet, shown as u32 + 1, usize::from(last) + 1)?;
    sheet.set_footer(format!("&CThe first {shown} of {} samples", part.len()));
    Ok(sheet)
}
