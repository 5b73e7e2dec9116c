//! The calls that the command line makes.

use std::path::{Path, PathBuf};

use crate::LabOptions;
use crate::campaign::{Campaign, draw_seed};
use crate::error::LabError;
use crate::matrix::Planned;
use crate::plan::{Budget, Fitted, Plan, plan_campaign};
use crate::prediction::{Oracle, predict_campaign};
use crate::preset::{PRESETS, Preset};
use crate::runner::{Tally, check_there, run_campaign};
use crate::store::Store;
use crate::world::SystemWorld;

/// The ready-made campaigns.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// Returns the campaign with its open choices made: as in the results folder if it was begun there, else anew.
fn settle(campaign: &Campaign, options: &LabOptions, seed: Option<u64>) -> Campaign {
    // The callers that open the folder report its faults.
    let held = Store::open(&options.results_dir).and_then(|store| store.campaign()).ok();
    campaign.settled(held.as_ref(), seed)
}

/// Returns the work that a run of a campaign with these options would do, without finished trials. Writes
/// nothing. [`crate::plan::render_plan`] renders the plan.
///
/// # Errors
///
/// The campaign is invalid, one of its paths does not exist, or the results folder holds the results of another
/// campaign.
pub fn plan(campaign: &Campaign, options: &LabOptions) -> Result<Plan, LabError> {
    let campaign = &settle(campaign, options, None);
    let planned = Planned::checked(campaign)?;
    check_there(&planned, &mut SystemWorld::new())?;
    let earlier = Store::earlier(&options.results_dir, &campaign.rooted()?)?;
    Ok(plan_campaign(planned, &earlier, &options.destroy))
}

/// Returns the campaign with as many repetitions and as long trials as `budget` allows, and a note of questions
/// for which the budget is too small. A campaign that was begun in the results folder keeps its values.
///
/// # Errors
///
/// The campaign is invalid, or not one repetition fits.
pub fn fit_budget(
    campaign: Campaign,
    budget: &Budget,
    options: &LabOptions,
) -> Result<Fitted, LabError> {
    if let Ok(store) = Store::open(&options.results_dir) {
        let held = store.campaign()?;
        let (runtime_s, repetitions) = (held.runtime_s, held.repetitions);
        let chosen = Campaign { runtime_s, repetitions, ..campaign.clone() };
        let chosen = chosen.settled(Some(&held), None);
        if chosen.rooted()? == held {
            return Ok(Fitted { campaign: chosen, said: Vec::new() });
        }
    }
    crate::plan::fit_with_control(&campaign, budget)
}

/// Runs a campaign, or its missing trials, into its results directory.
///
/// # Errors
///
/// As [`crate::runner::run_campaign`]. If every trial was stopped before its end there is no error: the results
/// contain no number.
pub fn run(campaign: &Campaign, options: &LabOptions) -> Result<Tally, LabError> {
    let campaign = settle(campaign, options, Some(draw_seed()));
    run_campaign(&campaign, options, &mut SystemWorld::new())
}

/// Predicts a campaign into a results directory, without a machine and without time.
///
/// # Errors
///
/// As [`crate::prediction::predict_campaign`].
pub fn predict(
    campaign: &Campaign,
    results_dir: &Path,
    oracle: &dyn Oracle,
) -> Result<Tally, LabError> {
    predict_campaign(campaign, results_dir, oracle)
}

/// Returns the campaign in a results directory, to continue it.
///
/// # Errors
///
/// The directory holds no results.
pub fn held_campaign(results_dir: &Path) -> Result<Campaign, LabError> {
    Store::open(results_dir)?.campaign()
}

/// Returns the default results folder of a campaign.
pub fn default_folder(campaign: &Campaign) -> PathBuf {
    PathBuf::from(format!("{}-results", campaign.name))
}

/// Returns the default folder for predictions of a campaign. It differs from that of its results, so that the
/// two can be compared.
pub fn predicted_folder(campaign: &Campaign) -> PathBuf {
    PathBuf::from(format!("{}-predicted", campaign.name))
}
