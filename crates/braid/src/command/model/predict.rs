//! `braid model predict`: a campaign of the laboratory in virtual time.

mod oracle;

use braid_lab::{LabError, Preset};

use super::super::lab::{campaign, refusal, report};
use crate::cli::{LabTarget, ModelPredict};
use crate::failure::Failure;

use oracle::Models;

pub(super) fn predict(options: &ModelPredict) -> Result<(), Failure> {
    let campaign = campaign(&target(&options.target)?)?;
    let folder = options.output.clone();
    let folder = folder.unwrap_or_else(|| braid_lab::predicted_folder(&campaign));
    braid_lab::predict(&campaign, &folder, &Models::new()).map_err(|error| match error {
        LabError::NothingPredicted { .. } => Failure::usage(error)
            .next("`braid lab run` measures it; docs/laboratory.md says what can be predicted"),
        error => refusal(error),
    })?;
    report(&folder, &options.format)
}

/// What is typed, for what is not measured: members of a preset are models unless they are named.
fn target(typed: &LabTarget) -> Result<LabTarget, Failure> {
    let runs = [
        ("--budget", typed.budget.is_some(), "a prediction takes no time; leave it out"),
        ("--repetitions", typed.repetitions.is_some(), "predictions do not scatter; leave it out"),
    ];
    if let Some((flag, _, why)) = runs.into_iter().find(|(_, given, _)| *given) {
        return Err(Failure::usage(format!("{flag}: {why}")));
    }
    let has_models =
        Preset::find(&typed.campaign).is_some_and(|preset| !preset.modelled.is_empty());
    Ok(LabTarget { modelled: typed.modelled || (has_models && !typed.kernel), ..typed.clone() })
}
