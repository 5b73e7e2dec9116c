//! Facts about a volume that are kept between two looks: those by which changes are found, and no others.

use std::collections::BTreeMap;

use braid_control::{ArrayStatus, JobStatus, Status};
use serde::{Deserialize, Serialize};

use super::Draft;

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VolumeView {
    /// It has been up since it is known.
    pub(super) was_up: bool,
    pub(super) device: Option<String>,
    /// By what they are called.
    pub(super) arrays: BTreeMap<String, ArrayView>,
}

/// An array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArrayView {
    /// The state of each member, in md's words.
    pub(super) members: BTreeMap<String, String>,
    pub(super) job: Option<JobView>,
    /// When the last scrub ended, in milliseconds since 1970.
    pub(super) scrub_ended_ms: Option<u64>,
}

/// A pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobView {
    pub(super) kind: String,
    pub(super) member: Option<String>,
    /// Progress in percent, rounded down to a step that is reported.
    pub(super) step: u8,
}

impl VolumeView {
    pub(super) fn of(status: &Status, increment: u8) -> VolumeView {
        let arrays = called(&status.arrays)
            .into_iter()
            .map(|(name, array)| (name, ArrayView::of(array, increment)))
            .collect();
        let device = status.device_export().map(|export| export.address.clone());
        VolumeView { was_up: true, device, arrays }
    }

    /// A draft for each array, or one for a volume that has none.
    pub(super) fn of_each(&self, draft: impl Fn() -> Draft) -> Vec<Draft> {
        match self.arrays.is_empty() {
            true => vec![draft()],
            false => self.arrays.keys().map(|array| draft().array(array)).collect(),
        }
    }

    /// Arrays with their spares.
    pub(super) fn spares(&self) -> impl Iterator<Item = (&str, String)> {
        self.arrays.iter().flat_map(|(array, view)| {
            let spares = view.members.iter().filter(|(_, state)| *state == "spare");
            spares.map(move |(member, _)| (array.as_str(), member.clone()))
        })
    }
}

impl ArrayView {
    fn of(array: &ArrayStatus, increment: u8) -> ArrayView {
        ArrayView {
            members: array
                .members
                .iter()
                .map(|one| (one.member.clone(), one.state.clone()))
                .collect(),
            job: array.job.as_ref().map(|job| JobView::of(job, increment)),
            scrub_ended_ms: array.last_scrub.as_ref().map(|scrub| scrub.ended_ms),
        }
    }
}

impl JobView {
    fn of(job: &JobStatus, increment: u8) -> JobView {
        let percent = u128::from(job.done_bytes) * 100 / u128::from(job.total_bytes.max(1));
        let percent = u8::try_from(percent.min(100)).unwrap_or(100);
        let step = percent / increment.max(1) * increment.max(1);
        JobView { kind: job.kind.clone(), member: job.member.clone(), step }
    }
}

/// The arrays of a volume under names that tell them apart.
pub(super) fn called(arrays: &[ArrayStatus]) -> Vec<(String, &ArrayStatus)> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let mut named = Vec::new();
    for array in arrays {
        let called = if array.called.is_empty() { &array.level } else { &array.called };
        let nth = times.entry(called).or_default();
        *nth += 1;
        let name = if *nth == 1 { called.clone() } else { format!("{called}#{nth}") };
        named.push((name, array));
    }
    named
}
