//! The versions of the campaign's tools.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::LabOptions;
use crate::command::{Exit, ToolOutput};
use crate::error::LabError;
use crate::matrix::Planned;
use crate::tool::Tool;
use crate::world::World;

/// Time limit of a version command.
const LIMIT: Duration = Duration::from_secs(30);

/// The tools of a campaign.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Name and version of the tools that work.
    pub(super) found: Vec<(String, String)>,
    /// Name of the tools that do not work, with the reason and the next step.
    pub(super) missing: BTreeMap<String, String>,
}

/// Reads the version of every tool of the campaign.
///
/// # Errors
///
/// No tool works.
pub(super) fn ask_versions(
    planned: &Planned,
    options: &LabOptions,
    world: &mut dyn World,
) -> Result<Versions, LabError> {
    let mut versions = Versions::default();
    for workload in &planned.workloads {
        let Some(tool) = workload.tool() else { continue };
        let known = versions.found.iter().any(|(name, _)| name == tool.name());
        if known || versions.missing.contains_key(tool.name()) {
            continue;
        }
        match ask_version(tool, options, world) {
            Ok(Some(version)) => versions.found.push((tool.name().to_owned(), version)),
            // The user stopped the run; the first trial notices, and nothing is measured.
            Ok(None) => return Ok(versions),
            Err(reason) => {
                versions.missing.insert(tool.name().to_owned(), reason);
            }
        }
    }
    match versions.missing.iter().next() {
        Some((program, reason)) if versions.found.is_empty() => Err(LabError::Reason(format!(
            "{program} does not work: {reason}; run `{program} --version` by hand"
        ))),
        _ => Ok(versions),
    }
}

fn ask_version(
    tool: &dyn Tool,
    options: &LabOptions,
    world: &mut dyn World,
) -> Result<Option<String>, String> {
    let command = tool.version_command().with_own(&options.braid_binary);
    let began = world.monotonic();
    let done = world.run(&command, LIMIT, &options.stop).map_err(|error| match error {
        LabError::Spawn { program, source } => format!(
            "{program} cannot be started ({source}): install it with apt-get install {}",
            tool.about().package
        ),
        error => error.to_string(),
    })?;
    if done.exit == Exit::Stopped {
        return Ok(None);
    }
    let output = ToolOutput {
        exit: done.exit,
        stdout: done.stdout,
        stderr: done.stderr,
        wall_s: (world.monotonic() - began).as_secs_f64(),
    };
    tool.parse_version(&output).map(Some).map_err(|error| {
        format!(
            "`{command}` does not tell its version: {error}; reinstall {}",
            tool.about().package
        )
    })
}
