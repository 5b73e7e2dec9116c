//! `braid model predict`: a campaign of the laboratory in virtual time.

mod oracle;

use braid_lab::{LabError, Preset};
use braid_stack::{ByteSize, Node, Stack};

use super::super::lab::{campaign, refusal, report};
use crate::cli::{LabTarget, ModelPredict};
use braid_service::failure::Failure;

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

/// Adapts the arguments for a prediction: members of a preset are modelled unless named.
fn target(typed: &LabTarget) -> Result<LabTarget, Failure> {
    let runs = [
        ("--budget", typed.budget.is_some(), "a prediction takes no time; leave it out"),
        ("--repetitions", typed.repetitions.is_some(), "predictions do not scatter; leave it out"),
    ];
    if let Some((flag, _, why)) = runs.into_iter().find(|(_, given, _)| *given) {
        return Err(Failure::usage(format!("{flag}: {why}")));
    }
    let models = Preset::find(&typed.campaign).map_or(&[][..], |preset| preset.modelled);
    let modelled = typed.modelled || (!models.is_empty() && !typed.kernel);
    let is_named = |name: &str| typed.member.iter().any(|one| one.split('=').next() == Some(name));
    let whole = models.iter().filter(|(name, _)| modelled && !is_named(name));
    let whole = whole.filter_map(|(name, model)| Some(format!("{name}={}", whole_device(model)?)));
    let member = typed.member.iter().cloned().chain(whole).collect();
    Ok(LabTarget { modelled, member, ..typed.clone() })
}

/// A modelled member with the capacity of its profile's device, if that is more: a prediction keeps no contents, and
/// what is written to disks of the time does not fit into the memory of a run.
fn whole_device(model: &str) -> Option<Stack> {
    let mut stack = Stack::parse(model).ok()?;
    let Node::Model(member) = &mut stack.node else { return None };
    let capacity = braid_model::profile(&member.profile)?.capacity?;
    (capacity > member.size.bytes()).then(|| member.size = ByteSize(capacity))?;
    Some(stack)
}
