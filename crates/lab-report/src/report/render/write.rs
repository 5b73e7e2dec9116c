//! The files of a report, each whole or absent.

use std::fs;
use std::path::{Path, PathBuf};

use super::chart::{Palette, render_svg};
use super::{TidyRow, render_html, render_markdown, write_csv, write_xlsx};
use crate::report::model::Report;
use braid_lab::LabError;
use braid_lab::store::write_whole;

/// Which files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// `report.html`.
    pub html: bool,
    /// `report.md`, whose charts are the files of `svg`.
    pub markdown: bool,
    /// `report.json`.
    pub json: bool,
    /// `samples.csv`.
    pub csv: bool,
    /// `report.xlsx`.
    pub xlsx: bool,
    /// `charts/ID.svg`.
    pub svg: bool,
}

impl Formats {
    /// Everything.
    pub const ALL: Self =
        Self { html: true, markdown: true, json: true, csv: true, xlsx: true, svg: true };
    /// Nothing; to choose from.
    pub const NONE: Self =
        Self { html: false, markdown: false, json: false, csv: false, xlsx: false, svg: false };
}

/// The files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The folder that contains all of them.
    pub folder: PathBuf,
    /// The page, if it was asked for.
    pub html: Option<PathBuf>,
    /// Every file, pictures last.
    pub files: Vec<PathBuf>,
}

/// Writes the report and its samples into a directory, which is made if it is not there. Files of
/// an earlier report with the same names are replaced, each at once; others stay.
///
/// # Errors
///
/// When a file cannot be written.
pub fn write_report(
    report: &Report,
    data: &serde_json::Value,
    samples: &[TidyRow],
    dir: &Path,
    formats: &Formats,
) -> Result<Written, LabError> {
    fs::create_dir_all(dir).map_err(LabError::file("create", dir))?;
    let mut written = Written { folder: dir.to_owned(), html: None, files: Vec::new() };
    if formats.html {
        written.html = Some(dir.join("report.html"));
        written.put("report.html", render_html(report)?.as_bytes())?;
    }
    if formats.markdown {
        written.put("report.md", render_markdown(report)?.as_bytes())?;
    }
    if formats.json {
        written.put("report.json", format!("{data:#}\n").as_bytes())?;
    }
    if formats.csv {
        let mut table = Vec::new();
        write_csv(samples, &mut table).map_err(LabError::file("write", dir))?;
        written.put("samples.csv", &table)?;
    }
    if formats.xlsx {
        written.put("report.xlsx", &write_xlsx(report, samples)?)?;
    }
    if formats.svg {
        let charts = dir.join("charts");
        fs::create_dir_all(&charts).map_err(LabError::file("create", &charts))?;
        let palette = Palette::of(report);
        for chart in report.charts() {
            check_name(&chart.id)?;
            let svg = render_svg(chart, &palette);
            written.put(&format!("charts/{}.svg", chart.id), svg.as_bytes())?;
        }
    }
    Ok(written)
}

/// An `id` names a file, so it may not be a way out of the directory.
fn check_name(id: &str) -> Result<(), LabError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !id.is_empty() && id.chars().all(fits) {
        return Ok(());
    }
    let reason = format!("its id {id:?} cannot name a file; use a-z, 0-9 and -");
    Err(LabError::Serialise { what: "a chart", reason })
}

impl Written {
    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        let path = self.folder.join(name);
        write_whole(&path, bytes)?;
        self.files.push(path);
        Ok(())
    }
}
