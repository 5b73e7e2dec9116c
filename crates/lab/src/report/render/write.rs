//! The files of a report, each whole or absent.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use super::chart::{Frame, Palette, render_svg};
use super::{
    TidyRow, render_html, render_json, render_markdown, render_png, write_csv, write_xlsx,
};
use crate::error::LabError;
use crate::report::model::Report;

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
    /// `charts/ID.png`: most of the time that a report takes, and needs a font on the system.
    pub png: bool,
}

impl Formats {
    /// Everything.
    pub const ALL: Self = Self {
        html: true,
        markdown: true,
        json: true,
        csv: true,
        xlsx: true,
        svg: true,
        png: true,
    };
    /// Nothing; to choose from.
    pub const NONE: Self = Self {
        html: false,
        markdown: false,
        json: false,
        csv: false,
        xlsx: false,
        svg: false,
        png: false,
    };
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

/// Writes the report and its samples into a directory, which is made if it is not there. Files of
/// an earlier report with the same names are replaced, each at once; others stay.
///
/// # Errors
///
/// When a file cannot be written, or a PNG is asked for and the system has no font.
pub fn write_report(
    report: &Report,
    samples: &[TidyRow],
    dir: &Path,
    formats: &Formats,
) -> Result<Written, LabError> {
    fs::create_dir_all(dir).map_err(LabError::file("create", dir))?;
    // Pictures take as long as all other files together.
    let (documents, pictures) = thread::scope(|scope| {
        let pictures = scope.spawn(|| write_pictures(report, dir, formats));
        let documents = write_documents(report, samples, dir, formats);
        (documents, pictures.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    let mut files = documents?;
    let html = if formats.html { files.first().cloned() } else { None };
    files.extend(pictures?);
    Ok(Written { html, files })
}

fn write_documents(
    report: &Report,
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
        files.write("report.json", render_json(report)?.as_bytes())?;
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
    if !formats.svg && !formats.png {
        return Ok(files.written);
    }
    let charts = dir.join("charts");
    fs::create_dir_all(&charts).map_err(LabError::file("create", &charts))?;
    let palette = Palette::of(report);
    for chart in report.charts() {
        check_name(&chart.id)?;
        let svg = render_svg(chart, &palette, Frame::Alone)?;
        if formats.svg {
            files.write(&format!("charts/{}.svg", chart.id), svg.as_bytes())?;
        }
        if formats.png {
            files.write(&format!("charts/{}.png", chart.id), &render_png(&svg)?)?;
        }
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
