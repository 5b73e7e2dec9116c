//! The files of a report, each whole or absent.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::chart::{Frame, Palette, render_svg};
use super::{TidyRow, render_html, render_markdown, write_csv, write_xlsx};
use crate::report::model::Report;
use braid_lab::LabError;

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

impl Default for Formats {
    fn default() -> Self {
        Self::ALL
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The page, if it was asked for.
    pub html: Option<PathBuf>,
    /// Every file: the page first, pictures last.
    pub files: Vec<PathBuf>,
}

impl Written {
    /// The folder that all of them are in; `None` of nothing.
    pub fn folder(&self) -> Option<&Path> {
        let is_picture = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "svg");
        let document = self.files.iter().find(|path| !is_picture(path));
        let charts = || self.files.first().and_then(|picture| picture.parent());
        document.map(PathBuf::as_path).or_else(charts).and_then(Path::parent)
    }
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
    let mut files = write_documents(report, data, samples, dir, formats)?;
    let html = if formats.html { files.first().cloned() } else { None };
    files.extend(write_pictures(report, dir, formats)?);
    Ok(Written { html, files })
}

fn write_documents(
    report: &Report,
    data: &serde_json::Value,
    samples: &[TidyRow],
    dir: &Path,
    formats: &Formats,
) -> Result<Vec<PathBuf>, LabError> {
    let mut files = Files { dir, written: Vec::new() };
    if formats.html {
        files.write("report.html", render_html(report)?.as_bytes())?;
    }
    if formats.markdown {
        files.write("report.md", render_markdown(report).as_bytes())?;
    }
    if formats.json {
        files.write("report.json", format!("{data:#}\n").as_bytes())?;
    }
    if formats.csv {
        let path = dir.join("samples.csv");
        files.fill("samples.csv", |out| {
            write_csv(samples, out).map_err(LabError::file("write", &path))
        })?;
    }
    if formats.xlsx {
        files.fill("report.xlsx", |out| write_xlsx(report, samples, out))?;
    }
    Ok(files.written)
}

fn write_pictures(
    report: &Report,
    dir: &Path,
    formats: &Formats,
) -> Result<Vec<PathBuf>, LabError> {
    let mut files = Files { dir, written: Vec::new() };
    if !formats.svg {
        return Ok(files.written);
    }
    let charts = dir.join("charts");
    fs::create_dir_all(&charts).map_err(LabError::file("create", &charts))?;
    let palette = Palette::of(report);
    for chart in report.charts() {
        check_name(&chart.id)?;
        let svg = render_svg(chart, &palette, Frame::Alone);
        files.write(&format!("charts/{}.svg", chart.id), svg.as_bytes())?;
    }
    Ok(files.written)
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

struct Files<'a> {
    dir: &'a Path,
    written: Vec<PathBuf>,
}

impl Files<'_> {
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        let path = self.dir.join(name);
        self.fill(name, |out| out.write_all(bytes).map_err(LabError::file("write", &path)))
    }

    fn fill(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let path = self.dir.join(name);
        write_whole(&path, fill)?;
        self.written.push(path);
        Ok(())
    }
}

/// Fills a file beside its place and moves it there, so that it is whole or absent: the twin of
/// `store::write_whole` for what is not a text in memory.
fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    let file = File::create(&draft).map_err(LabError::file("create", &draft))?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let filled = fill(&mut out).and_then(|()| out.flush().map_err(LabError::file("write", &draft)));
    if let Err(error) = filled {
        // The error that counts is the first one; a draft that stays is overwritten next time.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    fs::rename(&draft, path).map_err(LabError::file("write", path))
}
