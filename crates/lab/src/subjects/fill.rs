//! The first content of a raw subject. Reading what was never written measures nothing: a hole in
//! a file, an unmapped block of a flash disk.

use std::time::Duration;

use crate::campaign::{FileSystem, Source};
use crate::facts::{Member, members_of};
use crate::matrix::Workload;

/// The slowest device that can be filled: 1 MiB/s, and a minute on top.
const LIMIT_BYTES_PER_S: u64 = 1 << 20;

/// How long filling may take.
pub(super) fn limit(bytes: u64) -> Duration {
    Duration::from_secs(60 + bytes / LIMIT_BYTES_PER_S)
}

/// Whether a workload reads what an earlier one should have written.
pub(crate) fn reads_raw(workload: &Workload) -> bool {
    workload.setup.filesystem == FileSystem::None
        && workload.tool().is_some_and(|tool| tool.reads_raw(&workload.settings))
}

/// Whether a subject has content that matters: a model's time does not depend on it, and filling
/// one takes model time; a folder has none.
pub(crate) fn has_content(source: &Source) -> bool {
    let members = members_of(source);
    !matches!(source, Source::Directory(_))
        && !members.iter().all(|member| matches!(member, Member::Model { .. }))
}

/// Whether a subject's content ends when it is taken down.
pub(super) fn is_ephemeral(source: &Source) -> bool {
    members_of(source).iter().any(Member::is_ephemeral)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_folders_have_no_content() {
        let stack = |text: &str| Source::Stack(text.to_owned());
        assert!(!has_content(&stack("raid0(model(hdd, size=1G), model(hdd, size=1G))")));
        assert!(has_content(&stack("raid0(model(hdd, size=1G), ram(1G))")));
        assert!(!has_content(&Source::Directory("/srv".into())));
        assert!(has_content(&Source::Path("/dev/sda".into())));
        assert!(is_ephemeral(&Source::Zram("1G".into())));
        assert!(!is_ephemeral(&stack("raid0(./a, ./b)")));
    }
}
