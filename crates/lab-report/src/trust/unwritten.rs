//! Reading what was never written: a hole in a file, an unmapped block of a flash disk. It is answered
//! without the medium, faster than anything that was written.

use super::Checked;
use super::case::{TrialCase, mib, percent};
use braid_lab::evidence::RegionContent;
use braid_lab::facts::Place;
use braid_lab::metric::Metric;
use braid_lab::source::has_content;

/// Share of holes from which on a rate is off by more than the noise of storage: with a tenth of the
/// bytes for nothing it is a tenth too high.
const HOLES: f64 = 0.1;

/// Rule `unwritten`.
pub(super) fn check_unwritten(case: &TrialCase<'_>) -> Checked {
    let Some(work) = case.workload.work() else { return Checked::Unknown };
    let matters = case.subject.is_none_or(|subject| has_content(&subject.source));
    if !case.is_raw() || !work.reads_raw || !matters {
        return Checked::Fine;
    }
    let region = case.trial.region_bytes as f64;
    if let Some(read) = case.get(Metric::BytesRead).filter(|_| work.reads_past_region)
        && read > region
    {
        let (read, region) = (mib(read), mib(region));
        return Checked::suspect(format!(
            "it read the first {read}, and the region is the first {region}: the rest was not written \
             for this campaign"
        ))
        .but_do("set region to more than is read in three seconds, or measure with fio or dd");
    }
    match case.evidence.content {
        Some(RegionContent::Filled) => Checked::Fine,
        Some(RegionContent::Found { holes, bytes }) => {
            let share = holes as f64 / bytes.max(1) as f64;
            if share < HOLES {
                return Checked::Fine;
            }
            Checked::suspect(format!(
                "{} of the first {} ({}) were never written: they are answered without the medium",
                mib(holes as f64),
                mib(bytes as f64),
                percent(share)
            ))
        }
        Some(RegionContent::Unknown) if on_rotating_disks(case) => Checked::Fine,
        Some(RegionContent::Unknown) | None => Checked::Unknown,
    }
}

/// A disk that turns reads what was never written as it reads anything else.
fn on_rotating_disks(case: &TrialCase<'_>) -> bool {
    case.all_members(|one| {
        let turns = matches!(&one.place, Place::Disk(disk) if disk.rotational);
        turns && one.member.starts_with("/dev/")
    })
}
