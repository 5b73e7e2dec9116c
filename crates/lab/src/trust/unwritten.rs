//! Reading what was never written: a hole in a file, an unmapped block of a flash disk. It is answered
//! without the medium, faster than anything that was.

use super::Checked;
use super::case::{TrialCase, mib};
use crate::metric::Metric;

/// Rule `unwritten`.
pub(super) fn check_unwritten(case: &TrialCase<'_>) -> Checked {
    let Some(tool) = case.workload.tool() else { return Checked::Unknown };
    if !case.is_raw() || !tool.reads_raw(&case.workload.settings) {
        return Checked::NotApplicable;
    }
    let region = case.trial.region_bytes as f64;
    match case.get(Metric::BytesRead).filter(|_| tool.reads_past_region()) {
        Some(read) if read > region => Checked::suspect(format!(
            "it read the first {}, and the region is the first {}: nobody wrote the rest for this \
             campaign",
            mib(read),
            mib(region)
        ))
        .but_do("set region to more than is read in three seconds, or measure with fio or dd"),
        _ => Checked::Fine,
    }
}
