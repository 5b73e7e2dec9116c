//! The report as a workbook: a summary, a sheet for each table, the charts of each section as
//! native charts over their data, and all samples.
//!
//! Invariants: numbers are numbers; a text is a text, also one that begins with `=`: nothing is
//! written as a formula, and names of series and axes are references to cells, because the file
//! format takes a text there for a formula as well.

mod charts;
mod looks;
mod names;
mod paper;
mod sheets;

use std::io::Write;

use rust_xlsxwriter::{DocProperties, Workbook, Worksheet, XlsxError};

use self::looks::Looks;
use self::names::SheetNames;
use super::chart::Palette;
use super::text::{printable, printable_lines};
use super::tidy::TidyRow;
use crate::report::model::{Block, Chart, Report, Table};
use braid_lab::LabError;

/// Most characters of a cell, in the format's own count.
const LONGEST: usize = 32_767;

/// Writes the workbook.
///
/// # Errors
///
/// When `out` cannot be written, or the report holds more than a workbook can (65 000 columns).
pub fn write_xlsx(
    report: &Report,
    samples: &[TidyRow],
    out: &mut (impl Write + Send),
) -> Result<(), LabError> {
    write(report, samples, out)
        .map_err(|error| LabError::Serialise { what: "the workbook", reason: error.to_string() })
}

fn write(
    report: &Report,
    samples: &[TidyRow],
    out: &mut (impl Write + Send),
) -> Result<(), XlsxError> {
    let looks = Looks::new();
    let palette = Palette::of(report);
    let mut names = SheetNames::default();
    let summary = names.take("summary");
    // What comes after the summary, which lists it and therefore is made last.
    let mut sheets: Vec<(Worksheet, String)> = Vec::new();
    let mut add = |mut sheet: Worksheet, name: String, title: &str| -> Result<(), XlsxError> {
        sheet.set_name(&name)?;
        sheets.push((sheet, title.to_owned()));
        Ok(())
    };
    if !report.table.columns.is_empty() {
        add(sheets::table(&report.table, &looks)?, names.take("answer"), "The answer as a table")?;
    }
    if let Some(picture) = &report.picture {
        let name = names.take("answer charts");
        let sheet = charts::sheet(&[picture], &name, &palette, &looks)?;
        add(sheet, name, "The answer as a picture")?;
    }
    for section in &report.sections {
        let charts: Vec<&Chart> = section.blocks.iter().filter_map(chart_of).collect();
        for table in section.blocks.iter().filter_map(table_of) {
            let sheet = sheets::table(table, &looks)?;
            let title = format!("{}: {}", section.title, table.title);
            add(sheet, names.take(&table.id), &title)?;
        }
        if !charts.is_empty() {
            let name = names.take(&format!("{} charts", section.id));
            let sheet = charts::sheet(&charts, &name, &palette, &looks)?;
            add(sheet, name, &format!("{}: charts", section.title))?;
        }
    }
    for (table, name) in [(&report.subjects, "subjects"), (&report.commands, "commands")] {
        if !table.columns.is_empty() {
            add(sheets::table(table, &looks)?, names.take(name), &table.title)?;
        }
    }
    for (index, part) in sheets::sample_parts(samples).enumerate() {
        let title = if index == 0 { "Every sample" } else { "Further samples" };
        add(sheets::samples(samples, part, &looks)?, names.take("samples"), title)?;
    }
    let mut workbook = Workbook::new();
    workbook.set_properties(&DocProperties::new().set_title(clip(&report.title, 255)));
    let mut first = sheets::summary(report, &sheets, &looks)?;
    first.set_name(summary)?;
    workbook.push_worksheet(first);
    for (sheet, _) in sheets {
        workbook.push_worksheet(sheet);
    }
    workbook.save_to_writer(out)
}

fn table_of(block: &Block) -> Option<&Table> {
    match block {
        Block::Table(table) => Some(table),
        Block::Chart(_) => None,
    }
}

fn chart_of(block: &Block) -> Option<&Chart> {
    match block {
        Block::Chart(chart) => Some(chart),
        Block::Table(_) => None,
    }
}

/// A text on one line that a cell can hold.
fn cell_text(text: &str) -> String {
    clip(text, LONGEST)
}

/// The lines of a text that a cell can hold; it shows them if its look wraps.
fn cell_lines(text: &str) -> String {
    cut(&printable_lines(text), LONGEST)
}

fn clip(text: &str, longest: usize) -> String {
    cut(&printable(text), longest)
}

/// The first units of UTF-16, in which the format counts.
fn cut(text: &str, longest: usize) -> String {
    let mut length = 0;
    let fits = |c: &char| {
        length += c.len_utf16();
        length <= longest
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_32767_units_of_utf_16() {
        assert_eq!(cell_text(&"a".repeat(40_000)).len(), LONGEST);
        assert_eq!(cell_text(&"💾".repeat(20_000)).chars().count(), LONGEST / 2);
        assert_eq!(cell_text("a\u{0}b"), "a\u{fffd}b");
        assert_eq!((cell_text("a\nb"), cell_lines("a\r\nb")), ("a b".into(), "a\nb".into()));
    }
}
