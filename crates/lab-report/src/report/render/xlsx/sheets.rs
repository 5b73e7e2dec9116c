//! The sheets: summary, sections, samples.

use std::ops::Range;

use rust_xlsxwriter::{Url, Worksheet, XlsxError};

use super::charts::Charts;
use super::looks::{Looks, of_cell};
use super::text::{cell_lines, cell_text, clip};
use crate::report::model::{Block, Cell, Report, Table};
use crate::report::render::tidy::{FIXED, TidyRow, dimension_names};

/// Rows of samples on one sheet: what a sheet holds, less its header.
const SAMPLES_A_SHEET: usize = 1_048_575;
/// Rows under a chart, at 20 pixels each.
const CHART_ROWS: u32 = 20;
/// The widest column of a table, in pixels.
const WIDEST: u32 = 600;
/// Letters in the first column.
const FIRST: u32 = 44;

/// The first sheet: answer, what can be believed, and where everything is.
pub(super) fn summary(
    report: &Report,
    sheets: &[(Worksheet, &str)],
    looks: &Looks,
) -> Result<Worksheet, XlsxError> {
    let mut sheet = Worksheet::new();
    sheet.set_name("summary")?.set_landscape().set_print_fit_to_pages(1, 0);
    sheet.set_column_width(0, 24)?.set_column_width(1, 110)?;
    sheet.write_string_with_format(0, 0, cell_text(&report.title), &looks.title)?;
    let mut rows = vec![("", report.question.clone()), ("", report.subtitle.clone())];
    rows.extend(report.answer.iter().map(|sentence| ("answer", sentence.clone())));
    rows.push(("numbers", report.trust.sentence()));
    rows.extend(report.trust.reasons.iter().map(|reason| {
        let action = if reason.action.is_empty() { "" } else { " → " };
        (reason.rule.as_str(), format!("{}{action}{}", reason.why, reason.action))
    }));
    let mut row = 1;
    for (name, text) in rows.into_iter().filter(|(_, text)| !text.is_empty()) {
        sheet.write_string_with_format(row, 0, cell_text(name), &looks.bold)?;
        sheet.write_string_with_format(row, 1, cell_text(&text), &looks.wrapped)?;
        row += 1;
    }
    for (row, (other, title)) in (row + 1..).zip(sheets) {
        let link = Url::new(format!("internal:'{}'!A1", other.name())).set_text(other.name());
        sheet.write_url(row, 0, link)?;
        sheet.write_string(row, 1, cell_text(title))?;
    }
    Ok(sheet)
}

/// Tables and charts, one under the other.
pub(super) fn section(
    blocks: &[Block],
    charts: &mut Charts<'_>,
    looks: &Looks,
) -> Result<Worksheet, XlsxError> {
    let mut sheet = Worksheet::new();
    let mut row = 0;
    for block in blocks {
        let (title, note) = match block {
            Block::Table(table) => (&table.title, &table.note),
            Block::Chart(chart) => (&chart.title, &chart.note),
        };
        for (text, look) in [(title, &looks.bold), (note, &looks.soft)] {
            if !text.is_empty() {
                sheet.write_string_with_format(row, 0, cell_text(text), look)?;
                row += 1;
            }
        }
        row = match block {
            Block::Table(table) => write_table(&mut sheet, row, table, looks)?,
            Block::Chart(chart) => match charts.draw(chart)? {
                Some(drawing) => {
                    sheet.insert_chart(row, 0, &drawing)?;
                    row + CHART_ROWS
                }
                None => row,
            },
        } + 1;
    }
    sheet.set_autofit_max_width(WIDEST).autofit();
    // Titles and notes stand in the first, over the others.
    sheet.set_column_width(0, FIRST)?;
    Ok(sheet)
}

/// A table from this row on; says which row is the next. The ends of intervals stand as numbers in
/// columns of their own right of the numbers that they belong to, and so do reasons, as words.
fn write_table(
    sheet: &mut Worksheet,
    header: u32,
    table: &Table,
    looks: &Looks,
) -> Result<u32, XlsxError> {
    let mut place: u16 = 0;
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
        place += 1;
        if cells.iter().any(|(_, cell, _)| cell.ends.is_some()) {
            sheet.write_string_with_format(header, place, "low", &looks.head_number)?;
            sheet.write_string_with_format(header, place + 1, "high", &looks.head_number)?;
            for (row, (low, high)) in
                cells.iter().filter_map(|(row, one, _)| Some((row, one.ends?)))
            {
                for (place, end) in [(place, low), (place + 1, high)] {
                    if end.is_finite() {
                        sheet.write_number(*row, place, end)?;
                    }
                }
            }
            place += 2;
        }
        let words =
            || cells.iter().filter(|(_, cell, _)| cell.ends.is_none() && !cell.detail.is_empty());
        for (row, cell, _) in words() {
            sheet.write_string_with_format(*row, place, cell_text(&cell.detail), &looks.soft)?;
        }
        if words().next().is_some() {
            sheet.write_string_with_format(header, place, "", &looks.head)?;
            place += 1;
        }
    }
    Ok((header + 1..).zip(&table.rows).last().map_or(header, |(row, _)| row) + 1)
}

/// Which samples go on which sheet.
pub(super) fn parts(samples: &[TidyRow]) -> impl Iterator<Item = Range<usize>> {
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
    let mut last = 0;
    for (column, head) in (0..).zip(names.iter().copied().chain(FIXED)) {
        sheet.write_string_with_format(0, column, cell_text(head), &looks.head)?;
        sheet.set_column_width(column, 18)?;
        last = column;
    }
    for (row, sample) in (1..).zip(&all[part]) {
        for (column, name) in (0..).zip(&names) {
            sheet.write_string(row, column, cell_text(sample.dimension(name)))?;
        }
        // The last of the columns that every row has is `last`.
        let fixed = last + 1 - 6;
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
    sheet.set_repeat_rows(0, 0)?;
    Ok(sheet)
}
