//! The calls that the command line makes.

use std::path::{Path, PathBuf};

use crate::LabOptions;
use crate::analysis::analyse;
use crate::campaign::Campaign;
use crate::error::LabError;
use crate::plan::{Plan, plan_campaign};
use crate::preset::{PRESETS, Preset};
use crate::report::{render_csv, render_html, render_json, render_table};
use crate::runner::{Tally, run_campaign};
use crate::store::{Store, write_whole};
use crate::world::{SystemWorld, World};

/// What a run or a report leaves.
#[derive(Debug, Clone)]
pub struct Summary {
    /// How the run ended; `None` for a report alone.
    pub tally: Option<Tally>,
    /// The table for the terminal, with the notes and warnings under it.
    pub table: String,
    /// The page; open it in a browser.
    pub html: PathBuf,
    /// The same for programs, with an `output_version`.
    pub json: PathBuf,
    /// Every sample, one line each.
    pub csv: PathBuf,
}

/// The ready-made campaigns.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// What a campaign would do. Writes nothing; [`crate::plan::render_plan`] makes it text.
///
/// # Errors
///
/// When the campaign does not make sense.
pub fn plan(campaign: &Campaign) -> Result<Plan, LabError> {
    crate::campaign::check_campaign(campaign)?;
    Ok(plan_campaign(campaign))
}

/// Runs a campaign, or what is missing of it, and reports.
///
/// # Errors
///
/// As [`crate::runner::run_campaign`]. When every trial was stopped before its end there is no
/// error: the summary's table says that there is nothing yet.
pub fn run(campaign: &Campaign, options: &LabOptions) -> Result<Summary, LabError> {
    run_in(&mut SystemWorld::new(), campaign, options)
}

/// [`run`] in another world, for tests.
///
/// # Errors
///
/// As [`run`].
pub fn run_in(
    world: &mut dyn World,
    campaign: &Campaign,
    options: &LabOptions,
) -> Result<Summary, LabError> {
    crate::campaign::check_campaign(campaign)?;
    let tally = run_campaign(campaign, options, world)?;
    let mut summary = report(&options.results_dir, options.colour)?;
    summary.tally = Some(tally);
    Ok(summary)
}

/// Renders the results in a directory again.
///
/// # Errors
///
/// When the directory holds no results, or the page cannot be written.
pub fn report(results_dir: &Path, colour: bool) -> Result<Summary, LabError> {
    let store = Store::open(results_dir)?;
    let trials = store.trials()?;
    let analysis = analyse(&store.campaign()?, &trials, &store.sessions()?, &store.subjects()?);
    let html = results_dir.join("report.html");
    write_whole(&html, &render_html(&analysis, results_dir)?)?;
    let json = results_dir.join("report.json");
    write_whole(&json, &render_json(&analysis)?)?;
    let csv = results_dir.join("samples.csv");
    write_whole(&csv, &render_csv(&trials))?;
    Ok(Summary { tally: None, table: render_table(&analysis, colour), html, json, csv })
}
