//! Nothing that exists is overwritten unless the caller named it.
//!
//! A workload that writes overwrites each member of its subjects: the file or block device of a
//! `path` subject, every path inside a `stack` or a `kernel` array, the export behind an `nbd`
//! URI. RAM and models hold nothing worth keeping; in a `directory` everything happens in a new
//! folder. The server has its own refusals (mounted, held, carrying a signature); this rule
//! stands before them, because an image file without a signature may be somebody's database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::campaign::{Campaign, FileSystem, Health, Source};
use crate::error::LabError;
use crate::facts::{Member, members_of};
use crate::matrix::{Workload, plan_matrix, plan_workloads};
use crate::tool::Writes;

/// Whether the campaign writes at all.
pub fn writes(campaign: &Campaign) -> bool {
    plan_workloads(campaign).iter().any(workload_writes)
        || campaign.subjects.iter().any(|subject| matches!(subject.source, Source::Kernel(_)))
}

/// Whether a workload writes to its subject: its tool, its file system, or a failed member that
/// comes back.
pub fn workload_writes(workload: &Workload) -> bool {
    let setup = &workload.setup;
    let tool = workload.tool();
    tool.is_none_or(|tool| tool.writes(&workload.settings, setup.processes) != Writes::Nothing)
        || setup.filesystem != FileSystem::None
        || setup.health != Health::Healthy
}

/// Everything that exists and that the campaign would overwrite: paths and NBD URIs.
pub fn plan_overwrites(campaign: &Campaign) -> Vec<String> {
    let subjects = campaign.expand();
    let cells = plan_matrix(campaign);
    let written = subjects.iter().enumerate().filter(|(index, subject)| {
        let mut mine = cells.iter().filter(|c| c.subject == *index && c.impossible.is_none());
        match subject.source {
            Source::Directory(_) => false,
            // mdadm writes superblocks whatever the tool does.
            Source::Kernel(_) => mine.next().is_some(),
            _ => mine.any(|cell| workload_writes(&cell.workload)),
        }
    });
    let named: BTreeSet<String> = written
        .flat_map(|(_, subject)| members_of(&subject.source))
        .filter_map(|member| match member {
            Member::Path(text) | Member::Remote(text) => Some(text),
            Member::Memory(_) | Member::Model { .. } => None,
        })
        .collect();
    named.into_iter().collect()
}

/// Refuses a campaign that would overwrite what is not in `destroy`.
///
/// # Errors
///
/// [`LabError::WouldDestroy`] with every path that is not allowed.
pub fn check_overwrites(campaign: &Campaign, destroy: &[PathBuf]) -> Result<(), LabError> {
    let allowed: BTreeSet<PathBuf> = destroy.iter().map(|path| identity(path)).collect();
    let paths: Vec<String> = plan_overwrites(campaign)
        .into_iter()
        .filter(|path| !allowed.contains(&identity(Path::new(path))))
        .collect();
    if paths.is_empty() { Ok(()) } else { Err(LabError::WouldDestroy { paths }) }
}

/// What two sources have in common, so that they cannot be served at the same time.
pub(crate) fn paths_of(source: &Source) -> BTreeSet<PathBuf> {
    members_of(source)
        .into_iter()
        .filter_map(|member| match member {
            Member::Path(path) => Some(identity(Path::new(&path))),
            _ => None,
        })
        .collect()
}

/// The same for every spelling of a path that exists; of anything else, the text with all that is
/// above it.
pub(crate) fn identity(path: &Path) -> PathBuf {
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    std::fs::canonicalize(path).unwrap_or_else(|_| absolute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::quick_campaign;

    fn campaign(baseline: &str, subject: &str) -> Campaign {
        quick_campaign(baseline, &[("other".to_owned(), subject.to_owned())]).unwrap()
    }

    #[test]
    fn what_is_written_must_be_named() {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("a.img");
        std::fs::write(&image, b"precious").unwrap();
        let text = image.display().to_string();
        let campaign = campaign(&text, &format!("raid0({text}, ram(1G))"));
        let error = check_overwrites(&campaign, &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("--destroy {text}")), "{error}");
        let other_spelling = dir.path().join(".").join("a.img");
        check_overwrites(&campaign, &[other_spelling]).unwrap();
    }

    #[test]
    fn memory_and_models_need_no_word() {
        check_overwrites(&campaign("ram(1G)", "raid0(ram(1G), model(hdd, size=1G))"), &[]).unwrap();
    }

    #[test]
    fn a_remote_volume_needs_one() {
        let uri = "nbd+unix:///?socket=/run/x.sock";
        let campaign = campaign(uri, "ram(1G)");
        assert!(check_overwrites(&campaign, &[]).is_err());
        check_overwrites(&campaign, &[PathBuf::from(uri)]).unwrap();
    }

    /// What may be overwritten may also be filled: a member that fails and comes back is written.
    #[test]
    fn hurting_an_array_writes_though_the_tool_reads() {
        let mut campaign = campaign("./a.img", "raid1(./a.img, ./b.img)");
        let read = crate::settings::Value::Word("read".to_owned());
        campaign.jobs[0].settings.insert("op".to_owned(), vec![read]);
        assert!(!writes(&campaign));
        campaign.jobs[0].health = vec![Health::Healthy, Health::Degraded];
        assert!(writes(&campaign));
    }

    #[test]
    fn reading_needs_none() {
        let mut campaign = campaign("/dev/sda", "/dev/sdb");
        let read = crate::settings::Value::Word("read".to_owned());
        campaign.jobs[0].settings.insert("op".to_owned(), vec![read]);
        check_overwrites(&campaign, &[]).unwrap();
    }
}
