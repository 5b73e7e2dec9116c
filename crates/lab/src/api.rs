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

/// A campaign with what it leaves open decided: as it was begun in the results folder, else anew.
fn settle(campaign: &Campaign, options: &LabOptions, seed: Option<u64>) -> Campaign {
    // What is wrong with a folder is said by those who open it to use it.
    let held = Store::open(&options.results_dir).and_then(|store| store.campaign()).ok();
    campaign.settled(held.as_ref(), seed)
}

/// What a run of a campaign with these options would do, as far as it is not done. Writes nothing;
/// [`crate::plan::render_plan`] makes it text.
///
/// # Errors
///
/// When the campaign does not make sense, a path of it is not there, or the results folder holds
/// another one's results.
pub fn plan(campaign: &Campaign, options: &LabOptions) -> Result<Plan, LabError> {
    let campaign = &settle(campaign, options, None);
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
        let chosen = chosen.settled(Some(&held), None);
        if chosen.rooted()? == held {
            return Ok(Fitted { campaign: chosen, said: Vec::new() });
        }
    }
    crate::plan::fit_with_control(&campaign, budget)
}

/// Runs a campaign, or what is missing of it, into its results directory.
///
/// # Errors
///
/// As [`crate::runner::run_campaign`]. When every trial was stopped before its end there is no
/// error: the results are without a number.
pub fn run(campaign: &Campaign, options: &LabOptions) -> Result<Tally, LabError> {
    let campaign = settle(campaign, options, Some(draw_seed()));
    run_campaign(&campaign, options, &mut SystemWorld::new())
}

/// Predicts a campaign into a results directory, on no machine and in no time.
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

/// The campaign that a results directory holds, to go on with it.
///
/// # Errors
///
/// When the directory holds no results.
pub fn held_campaign(results_dir: &Path) -> Result<Campaign, LabError> {
    Store::open(results_dir)?.campaign()
}

/// The default place for the results of a campaign.
pub fn default_folder(campaign: &Campaign) -> PathBuf {
    PathBuf::from(format!("{}-results", campaign.name))
}

/// The default place for predictions of a campaign: not that of its results, so that the two can be
/// compared.
pub fn predicted_folder(campaign: &Campaign) -> PathBuf {
    PathBuf::from(format!("{}-predicted", campaign.name))
}
