//! The files of a report, each whole or absent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

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
    /// Every file, in the order of [`Formats`].
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
    let mut files = Files { dir, written: Written { html: None, files: Vec::new() } };
    if formats.html {
        let page = render_html(report)?;
        files.write("report.html", |out| out.write_all(page.as_bytes()))?;
        files.written.html = files.written.files.last().cloned();
    }
    if formats.markdown {
        files.write("report.md", |out| out.write_all(render_markdown(report).as_bytes()))?;
    }
    if formats.json {
        let json = render_json(report)?;
        files.write("report.json", |out| out.write_all(json.as_bytes()))?;
    }
    if formats.csv {
        files.write("samples.csv", |out| write_csv(samples, out))?;
    }
    if formats.xlsx {
        files.write_with("report.xlsx", |out| write_xlsx(report, samples, out))?;
    }
    if formats.svg || formats.png {
        let charts = dir.join("charts");
        fs::create_dir_all(&charts).map_err(LabError::file("create", &charts))?;
        let palette = Palette::of(report);
        for chart in report.charts() {
            let svg = render_svg(chart, &palette, Frame::Alone)?;
            if formats.svg {
                let name = format!("charts/{}.svg", chart.id);
                files.write(&name, |out| out.write_all(svg.as_bytes()))?;
            }
            if formats.png {
                let png = render_png(&svg)?;
                files.write(&format!("charts/{}.png", chart.id), |out| out.write_all(&png))?;
            }
        }
    }
    Ok(files.written)
}

struct Files<'a> {
    dir: &'a Path,
    written: Written,
}

impl Files<'_> {
    fn write(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), LabError> {
        let path = self.dir.join(name);
        let fill = |out: &mut BufWriter<File>| fill(out).map_err(LabError::file("write", &path));
        self.write_with(name, fill)
    }

    fn write_with(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let path = self.dir.join(name);
        write_whole(&path, fill)?;
        self.written.files.push(path);
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
