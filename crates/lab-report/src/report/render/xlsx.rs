//! The report as a workbook: a summary, a sheet for each section with its tables and native charts,
//! all samples, and the numbers behind the charts.
//!
//! Invariants: numbers are numbers; a text is a text, also one that begins with `=`: nothing is
//! written as a formula, and names of series and axes are references to cells, because the file
//! format takes a text there for a formula as well. The ids of sections are the names of sheets.

mod charts;
mod looks;
mod sheets;
mod text;

use rust_xlsxwriter::{DocProperties, Workbook, Worksheet, XlsxError};

use self::charts::Charts;
use self::looks::Looks;
use super::chart::Palette;
use super::tidy::TidyRow;
use crate::report::model::{Block, Report};
use braid_lab::LabError;

/// The bytes of the workbook.
///
/// # Errors
///
/// When the report holds more than a workbook can (65 000 columns).
pub fn write_xlsx(report: &Report, samples: &[TidyRow]) -> Result<Vec<u8>, LabError> {
    write(report, samples)
        .map_err(|error| LabError::Serialise { what: "the workbook", reason: error.to_string() })
}

fn write(report: &Report, samples: &[TidyRow]) -> Result<Vec<u8>, XlsxError> {
    let looks = Looks::new();
    let mut charts = Charts::new(Palette::of(report), &looks)?;
    let mut sheets: Vec<(Worksheet, &str)> = Vec::new();
    let table = (!report.table.columns.is_empty()).then(|| Block::Table(report.table.clone()));
    let picture = report.picture.clone().map(Block::Chart);
    let answer: Vec<Block> = table.into_iter().chain(picture).collect();
    let sections =
        report.sections.iter().map(|one| (one.id.as_str(), one.title.as_str(), &one.blocks));
    for (id, title, blocks) in std::iter::once(("answer", "The answer", &answer)).chain(sections) {
        if !blocks.is_empty() {
            let mut sheet = sheets::section(blocks, &mut charts, &looks)?;
            sheet.set_name(id)?;
            sheets.push((sheet, title));
        }
    }
    for (number, part) in (1..).zip(sheets::parts(samples)) {
        let mut sheet = sheets::samples(samples, part, &looks)?;
        sheet.set_name(if number == 1 {
            "samples".to_owned()
        } else {
            format!("samples {number}")
        })?;
        sheets.push((sheet, "Every sample"));
    }
    sheets.extend(charts.finish().map(|sheet| (sheet, "The numbers behind the charts")));
    let mut workbook = Workbook::new();
    workbook.set_properties(&DocProperties::new().set_title(text::clip(&report.title, 255)));
    workbook.push_worksheet(sheets::summary(report, &sheets, &looks)?);
    for (mut sheet, _) in sheets {
        sheet.set_landscape().set_print_fit_to_pages(1, 0);
        workbook.push_worksheet(sheet);
    }
    workbook.save_to_buffer()
}
