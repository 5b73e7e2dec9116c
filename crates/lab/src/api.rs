//! The calls that the command line makes.

use std::path::{Path, PathBuf};

use braid_shell::shell_path;

use crate::LabOptions;
use crate::analysis::analyse;
use crate::campaign::Campaign;
use crate::compare::{CompareOptions, Comparison, compare_runs};
use crate::error::LabError;
use crate::matrix::Planned;
use crate::plan::{Budget, Fitted, Plan, plan_campaign};
use crate::preset::{PRESETS, Preset};
use crate::report::render::{Formats, Written, render_terminal, write_report};
use crate::report::{build_report, report_data, tidy_rows};
use crate::runner::{Tally, check_there, run_campaign};
use crate::store::Store;
use crate::world::{SystemWorld, World};

/// What a run or a report leaves.
#[derive(Debug, Clone)]
pub struct Summary {
    /// How the run ended; `None` for a report alone.
    pub tally: Option<Tally>,
    /// The report for the terminal.
    pub text: String,
    /// The answer's first sentence.
    pub answer: String,
    /// The files that were written.
    pub written: Written,
}

/// The ready-made campaigns.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// What a run of a campaign with these options would do, as far as it is not done. Writes nothing;
/// [`crate::plan::render_plan`] makes it text.
///
/// # Errors
///
/// When the campaign does not make sense, a path of it is not there, or the results folder holds
/// another one's results.
pub fn plan(campaign: &Campaign, options: &LabOptions) -> Result<Plan, LabError> {
    let planned = Planned::checked(campaign)?;
    check_there(&planned, &mut SystemWorld::new())?;
    let earlier = Store::earlier(&options.results_dir, &campaign.rooted()?)?;
    Ok(plan_campaign(planned, &earlier, &options.destroy))
}

/// A campaign with as many repetitions and as much time for each as `budget` allows, and what that
/// is not enough for. One that was begun in the results folder stays as it was begun.
///
/// # Errors
///
/// When the campaign does not make sense, or not one repetition fits.
pub fn fit_budget(
    campaign: Campaign,
    budget: &Budget,
    options: &LabOptions,
) -> Result<Fitted, LabError> {
    if let Ok(store) = Store::open(&options.results_dir) {
        let held = store.campaign()?;
        let (runtime_s, repetitions) = (held.runtime_s, held.repetitions);
        let chosen = Campaign { runtime_s, repetitions, ..campaign.clone() };
        if chosen.rooted()? == held {
            return Ok(Fitted { campaign: chosen, said: Vec::new() });
        }
    }
    crate::plan::fit(campaign, budget)
}

/// Runs a campaign, or what is missing of it, and reports.
///
/// # Errors
///
/// As [`crate::runner::run_campaign`]. When every trial was stopped before its end there is no
/// error: the report says that there is nothing yet.
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
    let tally = run_campaign(campaign, options, world)?;
    let mut summary = report(&options.results_dir, &options.formats, options.colour)?;
    summary.tally = Some(tally);
    Ok(summary)
}

/// The campaign that a results directory holds, to go on with it.
///
/// # Errors
///
/// When the directory holds no results.
pub fn held_campaign(results_dir: &Path) -> Result<Campaign, LabError> {
    Store::open(results_dir)?.campaign()
}

/// Renders the results in a directory again.
///
/// # Errors
///
/// When the directory holds no results, or a file cannot be written.
pub fn report(results_dir: &Path, formats: &Formats, colour: bool) -> Result<Summary, LabError> {
    let results = Store::open(results_dir)?.results()?;
    let analysis = analyse(&results);
    let report = build_report(&analysis, &results, results_dir);
    let samples = tidy_rows(&analysis, &results);
    let data = report_data(&report, &analysis, &results, results_dir);
    let written = write_report(&report, &data, &samples, results_dir, formats)?;
    let whole = match &written.html {
        Some(page) => page.display().to_string(),
        None => {
            let results_dir = shell_path(results_dir);
            format!("braid lab report {results_dir} --format html")
        }
    };
    let text = render_terminal(&report, colour, &whole);
    let answer = report.answer.into_iter().next().unwrap_or_default();
    Ok(Summary { tally: None, text, answer, written })
}

/// What changed between two results directories.
///
/// # Errors
///
/// When one of them holds no results.
pub fn compare(
    before: &Path,
    after: &Path,
    options: &CompareOptions,
) -> Result<Comparison, LabError> {
    let before = Store::open(before)?.results()?;
    let after = Store::open(after)?.results()?;
    Ok(compare_runs(&before, &after, options))
}

/// The default place for the results of a campaign.
pub fn default_folder(campaign: &Campaign) -> PathBuf {
    PathBuf::from(format!("{}-results", campaign.name))
}
