//! The laboratory: measure storage layouts against each other and say what can be believed.
//!
//! A campaign goes one way, and every arrow is a file or a table that can be looked at:
//!
//! ```text
//! campaign.toml ──> matrix ──> schedule ──> runner ───────────> raw/ + results.sqlite
//! (campaign)       (matrix)    (matrix)     (runner, subjects,          (store)
//!                                            tool, evidence)               │
//!      terminal, HTML, XLSX, Markdown, CSV, JSON, SVG  <── analysis <─┘
//!                        (report)                      (analysis, stats, trust)
//! ```
//!
//! ```no_run
//! use braid_lab::{LabOptions, StopFlag, quick_campaign};
//!
//! let subjects = [("stripe".to_owned(), "raid0(chunk=64K, ./a.img, ./b.img)".to_owned())];
//! let campaign = quick_campaign("./a.img", &subjects)?;
//! let options = LabOptions {
//!     destroy: vec!["./a.img".into(), "./b.img".into()],
//!     stop: StopFlag::on_signals()?,
//!     ..LabOptions::new("results")?
//! };
//! print!("{}", braid_lab::plan::render_plan(&braid_lab::plan(&campaign, &options)?));
//! let summary = braid_lab::run(&campaign, &options)?;
//! println!("{}", summary.text);
//! # Ok::<(), braid_lab::LabError>(())
//! ```
//!
//! Invariants:
//!
//! * The laboratory drives processes (fio, `braid serve`) and never links the engine, so a bare
//!   disk, kernel md or another program is measured by the same path.
//! * A trial's samples are on disk before the next trial starts; any stage reruns without the
//!   earlier ones.
//! * Nothing that exists is written to unless the caller named it to be destroyed ([`safety`]).
//! * The same campaign file and seed give the same trials in the same order.
//!
//! Deliberately absent: command-line parsing (the binary does it), and any averaging of percentiles.

/// Shadows the standard macro, which panics when nobody reads: `braid lab run … 2>&1 | head -1`
/// must not end a run with its volumes up. Tests keep the standard one, whose words are captured.
#[cfg(not(test))]
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub mod analysis;
mod array;
pub mod campaign;
pub mod command;
pub mod compare;
pub mod environment;
pub mod error;
pub mod evidence;
pub mod facts;
#[cfg(test)]
mod fixture;
pub mod listing;
pub mod matrix;
pub mod metric;
pub mod nbd;
pub mod plan;
pub mod preset;
mod progress;
pub mod report;
pub mod runner;
pub mod safety;
pub mod settings;
mod source;
pub mod stats;
pub mod store;
pub mod story;
pub mod subjects;
pub mod tool;
pub mod trust;
mod words;
pub mod world;

mod api;

pub use api::{
    Summary, compare, default_folder, fit_budget, held_campaign, plan, presets, report, run, run_in,
};
pub use braid_stack::ByteSize;
pub use campaign::{Campaign, Job, Source, Subject, SubjectDecl};
pub use error::LabError;
pub use listing::{Shown, list, show};
pub use plan::{Budget, Fitted, Plan};
pub use preset::{Preset, quick_campaign};
pub use world::{StopFlag, SystemWorld, World};

use std::path::PathBuf;

use report::render::Formats;

/// How a campaign is carried out; what is measured is in the [`Campaign`].
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// The program that serves `stack = ...` subjects (`braid serve STACK --nbd unix:SOCKET`).
    pub braid_binary: PathBuf,
    /// Further arguments for every `braid serve`, appended after the socket.
    pub serve_args: Vec<String>,
    /// Where `results.sqlite`, `campaign.toml`, `raw/` and `report.html` go; created if missing.
    pub results_dir: PathBuf,
    /// Files, block devices and NBD URIs whose content may be overwritten. A campaign that
    /// writes to anything else that exists is refused.
    pub destroy: Vec<PathBuf>,
    /// No progress on standard error.
    pub quiet: bool,
    /// The reports that are written.
    pub formats: Formats,
    /// Whether the text in [`Summary`] may carry terminal colours.
    pub colour: bool,
    /// Set by a signal handler (or a test) to stop after the trial that is running.
    pub stop: StopFlag,
}

impl LabOptions {
    /// Options with this process's own executable as the server, nothing to destroy, progress
    /// shown and no colour.
    ///
    /// # Errors
    ///
    /// When the path of the running executable cannot be found out.
    pub fn new(results_dir: impl Into<PathBuf>) -> Result<Self, LabError> {
        let braid_binary =
            std::env::current_exe().map_err(|source| LabError::OwnExecutable { source })?;
        Ok(Self {
            braid_binary,
            serve_args: Vec::new(),
            results_dir: results_dir.into(),
            destroy: Vec::new(),
            quiet: false,
            formats: Formats::ALL,
            colour: false,
            stop: StopFlag::default(),
        })
    }
}
