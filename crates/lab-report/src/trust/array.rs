//! Work of the array beside the tool, and of arrays that may be below it.

use super::Checked;
use super::case::TrialCase;
use braid_lab::campaign::Health;
use braid_lab::facts::Place;

/// Words for filling a member, as md and braid use them.
const FILLING: [&str; 4] = ["recovery", "rebuild", "resync", "replace"];
/// Words for reading all of the array.
const CHECKING: [&str; 3] = ["check", "scrub", "repair"];

/// Rule `rebuilding`. The number is then not that of the state that was asked for.
pub(super) fn check_activities(case: &TrialCase<'_>) -> Checked {
    let health = case.workload.setup.health;
    let expected = |activity: &str| match health {
        Health::Healthy | Health::Degraded => false,
        Health::Rebuilding => FILLING.iter().any(|word| activity.contains(word)),
        Health::Scrubbing => CHECKING.iter().any(|word| activity.contains(word)),
        Health::Story => true,
    };
    let activities = case.evidence.activities.iter().map(String::as_str);
    let unexpected: Vec<&str> = activities.filter(|activity| !expected(activity)).collect();
    if !unexpected.is_empty() {
        return Checked::invalid(format!(
            "the array was to be {}, and beside the tool ran {}",
            health.name(),
            unexpected.join(" and ")
        ));
    }
    // In memory, in a model, on a disk that was watched.
    let is_placed =
        case.all_members(|one| !matches!(one.place, Place::Unknown(_) | Place::Remote(_)));
    let elsewhere = &case.evidence.elsewhere;
    if !elsewhere.is_empty() && !is_placed {
        return Checked::suspect(format!(
            "beside the tool ran {}, and it cannot be told whether that array is below the subject",
            elsewhere.join(" and ")
        ));
    }
    // An empty record may also mean that no check was made.
    if case.evidence.span_s.is_some() { Checked::Fine } else { Checked::Unknown }
}
