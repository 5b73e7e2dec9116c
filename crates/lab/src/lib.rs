//! The laboratory: measures storage layouts against each other. `braid-lab-report` interprets the numbers and
//! judges whether they can be believed.
//!
//! A campaign goes one way, and every arrow is a file or a table that can be inspected:
//!
//! ```text
//! campaign.toml ──> matrix ──> schedule ──> runner ───────────> raw/ + results.sqlite ──> braid-lab-report
//! (campaign)       (matrix)    (matrix)     (runner, subjects,          (store)
//!                                            tool, evidence)
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
//! let tally = braid_lab::run(&campaign, &options)?;
//! println!("{} trials", tally.measured);
//! # Ok::<(), braid_lab::LabError>(())
//! ```
//!
//! Invariants:
//!
//! * The laboratory drives processes (fio, `braid up`) and never links the engine, so a bare
//!   disk, kernel md or another program is measured by the same path.
//! * A trial's samples are on disk before the next trial starts; any stage reruns without the
//!   earlier ones.
//! * Nothing that exists is overwritten unless the caller named it to be destroyed ([`safety`]).
//! * The same campaign file and seed give the same trials in the same order.
//!
//! Deliberately absent: command-line parsing (the binary does it), and any judgement of a number: no
//! statistics, no verdict, no report.

/// Shadows the standard macro, which panics if standard error is closed: `braid lab run … 2>&1 | head -1` must
/// not end a run with its volumes up. Tests keep the standard one, whose output is captured.
#[cfg(not(test))]
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod array;
pub mod campaign;
pub mod command;
pub mod environment;
pub mod error;
pub mod evidence;
pub mod facts;
pub mod matrix;
pub mod metric;
pub mod nbd;
pub mod plan;
pub mod prediction;
pub mod preset;
mod progress;
pub mod runner;
pub mod safety;
pub mod settings;
pub mod source;
pub mod store;
pub mod story;
pub mod subjects;
pub mod tool;
pub mod world;

mod api;

pub use api::{
    default_folder, fit_budget, held_campaign, plan, predict, predicted_folder, presets, run,
};
pub use braid_stack::ByteSize;
pub use campaign::{Campaign, Job, Source, Subject, SubjectDecl};
pub use error::LabError;
pub use plan::{Budget, Fitted, Plan};
pub use prediction::{Asked, Oracle, Predicted};
pub use preset::{Preset, quick_campaign};
pub use world::{StopFlag, SystemWorld, World};

use std::path::PathBuf;

/// Options of a run; the [`Campaign`] says what is measured.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// The program that serves `stack = ...` subjects (`braid up STACK`).
    pub braid_binary: PathBuf,
    /// Folder for `results.sqlite`, `campaign.toml`, `raw/` and `report.html`; created if missing.
    pub results_dir: PathBuf,
    /// Files, block devices and NBD URIs that may be overwritten. A campaign that would write to another
    /// existing path is refused.
    pub destroy: Vec<PathBuf>,
    /// Suppresses the progress on standard error.
    pub quiet: bool,
    /// Set by a signal handler (or a test) to stop after the trial that is running.
    pub stop: StopFlag,
}

impl LabOptions {
    /// Returns options with this process's executable as the server, nothing to destroy, and progress shown.
    ///
    /// # Errors
    ///
    /// The path of the running executable is unknown.
    pub fn new(results_dir: impl Into<PathBuf>) -> Result<Self, LabError> {
        let own = std::env::current_exe();
        let error = |error: std::io::Error| {
            let reason = format!("{error}; give the braid binary's path explicitly");
            LabError::step("find this program's own path", reason)
        };
        Ok(Self {
            braid_binary: own.map_err(error)?,
            results_dir: results_dir.into(),
            destroy: Vec::new(),
            quiet: false,
            stop: StopFlag::default(),
        })
    }
}
