//! The rule that no existing file or device is overwritten unless the caller named it.
//!
//! ```text
//!   campaign ──reasons_to_write──▶ of each subject: tool, file system, array, fill
//!                 │
//!                 ├─▶ plan_overwrites   paths to be named          (plan, report, refusal)
//!                 ├─▶ fill, read-only   mode of a subject          (subjects)
//!   --destroy ──▶ Permit ── asked again by each writer, at the time of the write
//! ```
//!
//! A workload that writes overwrites each member of its subjects: the file or block device of a `path` subject,
//! every path inside a `stack` or a `kernel` array, the export behind an `nbd` URI. A redundant array also
//! writes when it comes up: superblocks, or copies and parity that are made to agree. RAM and models hold no
//! valuable data; in a `directory` all work is in a new folder.
//!
//! Invariants:
//!
//! * one function decides what is written ([`reasons_to_write`]); the plan, the refusal and the run call it, so
//!   they cannot differ;
//! * a subject that is only read is filled only if other subjects overwrite all of it anyway, or it is in
//!   memory;
//! * [`Permit`] does not depend on the campaign: it refuses a write that the function above forgot.
//!
//! The use of a path by others is checked separately ([`crate::world::World::check_unused`]). The server has
//! refusals of its own (mounted, held, carrying a signature). These rules come before them, because an image
//! file without a signature may be a database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::campaign::{Health, Source};
use crate::error::LabError;
use crate::facts::{Member, members_of, real_path};
use crate::matrix::{Cell, Planned, Workload};
use crate::source::{has_content, writes_when_it_comes_up};
use crate::tool::Writes;

/// Returns true if a workload writes to its subject: by its tool, its file system, or a failed member that
/// comes back.
pub fn workload_writes(workload: &Workload) -> bool {
    let mut reasons = Reasons::default();
    reasons.add(workload);
    reasons.any()
}

/// The reasons why a campaign writes to a subject's members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasons {
    /// A tool.
    pub tool: bool,
    /// A file system is made.
    pub filesystem: bool,
    /// A member fails and is filled again.
    pub health: bool,
    /// Coming up: superblocks, or copies and parity that are made to agree.
    pub array: bool,
    /// The region is written before it is read raw.
    pub fill: bool,
}

impl Reasons {
    /// Returns true if there is a reason.
    pub fn any(&self) -> bool {
        self.tool || self.filesystem || self.health || self.array || self.fill
    }

    fn add(&mut self, workload: &Workload) {
        let setup = &workload.setup;
        self.tool |= workload.work().is_none_or(|work| work.writes != Writes::Nothing);
        self.filesystem |= setup.filesystem.is_made();
        self.health |= setup.health != Health::Healthy;
    }
}

/// Returns why each of the campaign's expanded subjects is written, in their order. A folder is not: all files
/// in it are new.
pub fn reasons_to_write(planned: &Planned) -> Vec<Reasons> {
    let Planned { campaign, subjects, cells, .. } = planned;
    let mine = |index: usize| {
        cells.iter().filter(move |cell| cell.subject == index && cell.impossible.is_none())
    };
    let mut all: Vec<Reasons> = subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| reasons_without_fill(&subject.source, mine(index)))
        .collect();
    let lost: BTreeSet<PathBuf> = subjects
        .iter()
        .zip(&all)
        .filter(|(_, reasons)| reasons.any())
        .flat_map(|(subject, _)| lasting(&subject.source))
        .map(|text| real_path(Path::new(&text)))
        .collect();
    for (index, subject) in subjects.iter().enumerate() {
        all[index].fill = campaign.fill
            && has_content(&subject.source)
            && mine(index).any(|cell| cell.workload.reads_raw())
            && lasting(&subject.source)
                .iter()
                .all(|text| lost.contains(&real_path(Path::new(text))));
    }
    all
}

fn reasons_without_fill<'c>(source: &Source, cells: impl Iterator<Item = &'c Cell>) -> Reasons {
    let mut reasons = Reasons::default();
    if source.is_folder() {
        return reasons;
    }
    for cell in cells {
        reasons.array |= writes_when_it_comes_up(source);
        reasons.add(&cell.workload);
    }
    reasons
}

/// Returns the members whose content outlives the campaign: paths and NBD URIs.
fn lasting(source: &Source) -> Vec<String> {
    let lasting = members_of(source).into_iter().filter_map(|member| match member {
        Member::Path(text) | Member::Remote(text) => Some(text),
        Member::Memory(_) | Member::Model { .. } => None,
    });
    lasting.collect()
}

/// Returns all existing paths and NBD URIs that the campaign would overwrite.
pub fn plan_overwrites(planned: &Planned) -> Vec<String> {
    let reasons = reasons_to_write(planned);
    let written = planned.subjects.iter().zip(&reasons).filter(|(_, reasons)| reasons.any());
    let named: BTreeSet<String> =
        written.flat_map(|(subject, _)| lasting(&subject.source)).collect();
    named.into_iter().collect()
}

/// Refuses a campaign that would overwrite paths that are not in `destroy`.
///
/// # Errors
///
/// [`LabError::WouldDestroy`] with every path that is not named.
pub fn check_overwrites(planned: &Planned, destroy: &[PathBuf]) -> Result<(), LabError> {
    Permit::new(destroy).check_all(plan_overwrites(planned))
}

/// The paths that the caller has named to be overwritten. Each writer asks it.
#[derive(Debug)]
pub(crate) struct Permit {
    named: BTreeSet<PathBuf>,
}

impl Permit {
    /// Makes a permit. Paths are resolved now, so that a later change of a link has no effect.
    pub(crate) fn new(destroy: &[PathBuf]) -> Self {
        Self { named: destroy.iter().map(|path| real_path(path)).collect() }
    }

    /// Returns true if a path or URI was named, in any spelling.
    pub(crate) fn covers(&self, member: &str) -> bool {
        self.named.contains(&real_path(Path::new(member)))
    }

    /// Refuses to write to a subject with a lasting member that was not named.
    ///
    /// # Errors
    ///
    /// [`LabError::WouldDestroy`] with every path that was not named.
    pub(crate) fn check(&self, source: &Source) -> Result<(), LabError> {
        match source {
            Source::Directory(_) => Ok(()),
            source => self.check_all(lasting(source)),
        }
    }

    fn check_all(&self, members: Vec<String>) -> Result<(), LabError> {
        let paths: Vec<String> = members.into_iter().filter(|one| !self.covers(one)).collect();
        if paths.is_empty() { Ok(()) } else { Err(LabError::WouldDestroy { paths }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::Campaign;
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
        let error = check_overwrites(&Planned::of(&campaign), &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("--destroy {text}")), "{error}");
        let other_spelling = dir.path().join(".").join("a.img");
        check_overwrites(&Planned::of(&campaign), &[other_spelling]).unwrap();
    }

    #[test]
    fn memory_and_models_need_no_word() {
        check_overwrites(
            &Planned::of(&campaign("ram(1G)", "raid0(ram(1G), model(hdd, size=1G))")),
            &[],
        )
        .unwrap();
    }

    #[test]
    fn a_remote_volume_needs_one() {
        let uri = "nbd+unix:///?socket=/run/x.sock";
        let campaign = campaign(uri, "ram(1G)");
        assert!(check_overwrites(&Planned::of(&campaign), &[]).is_err());
        check_overwrites(&Planned::of(&campaign), &[PathBuf::from(uri)]).unwrap();
    }

    fn only_reading(baseline: &str, subject: &str) -> Campaign {
        let mut campaign = campaign(baseline, subject);
        let read = crate::settings::Value::Word("read".to_owned());
        campaign.jobs[0].settings.insert("op".to_owned(), vec![read]);
        campaign
    }

    /// A member that fails and comes back is written.
    #[test]
    fn hurting_an_array_writes_though_the_tool_reads() {
        let mut campaign = only_reading("./a.img", "md(./a.img, ./b.img)");
        assert_eq!(plan_overwrites(&Planned::of(&campaign)), [] as [&str; 0]);
        let states = ["healthy", "degraded"].map(|name| crate::settings::Value::Word(name.into()));
        campaign.jobs[0].settings.insert("health".into(), states.to_vec());
        assert_eq!(plan_overwrites(&Planned::of(&campaign)), ["./a.img", "./b.img"]);
        // All of the baseline is overwritten, so it may be filled, too.
        let filled: Vec<bool> =
            reasons_to_write(&Planned::of(&campaign)).iter().map(|one| one.fill).collect();
        assert_eq!(filled, [true, true]);
    }

    #[test]
    fn reading_needs_none() {
        let campaign = only_reading("/dev/sda", "raid0(/dev/sdb, linear(/dev/sdc, ram(1G)))");
        check_overwrites(&Planned::of(&campaign), &[]).unwrap();
        assert_eq!(reasons_to_write(&Planned::of(&campaign)), [Reasons::default(); 2]);
    }

    /// Superblocks of a new array, and copies that are made to agree: not the tool's writes.
    #[test]
    fn an_array_that_survives_losses_writes_when_it_comes_up() {
        for text in [
            "raid1(./a, ./b)",
            "raid5(./a, ./b, ./c)",
            "raid1(./a, missing)",
            "raid0(./c, raid1(./a, ram(1G)))",
        ] {
            let reasons = reasons_to_write(&Planned::of(&only_reading("./x", text)));
            assert_eq!((reasons[0].any(), reasons[1].array), (false, true), "{text}");
            assert!(
                check_overwrites(&Planned::of(&only_reading("./x", text)), &[]).is_err(),
                "{text}"
            );
        }
        for text in ["raid0(./a, ./b)", "linear(./a, ./b)", "md(./a, ./b)"] {
            assert!(!reasons_to_write(&Planned::of(&only_reading("./x", text)))[1].any(), "{text}");
        }
    }

    /// Filling is decided for each subject: the writes of another subject do not permit it.
    #[test]
    fn what_is_only_read_is_not_filled_for_what_others_write() {
        let mut campaign = campaign("./keep", "./scratch");
        let mut reading = campaign.jobs[0].clone();
        let read = crate::settings::Value::Word("read".to_owned());
        reading.settings.insert("op".to_owned(), vec![read]);
        let only = |name: &str| vec![crate::settings::Value::Word(name.to_owned())];
        reading.settings.insert("subjects".to_owned(), only("single"));
        campaign.jobs[0].settings.insert("subjects".to_owned(), only("other"));
        campaign.jobs.push(reading);
        let names: Vec<String> = campaign.expand().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["single", "other"]);
        let reasons = reasons_to_write(&Planned::of(&campaign));
        assert_eq!(reasons[0], Reasons::default());
        assert!(reasons[1].tool && reasons[1].fill);
        assert_eq!(plan_overwrites(&Planned::of(&campaign)), ["./scratch"]);
        // A path that was not named is refused even if no write was planned.
        let permit = Permit::new(&[PathBuf::from("./scratch")]);
        permit.check(&Source::Stack("raid0(./scratch, ram(1G))".into())).unwrap();
        for source in [
            Source::Path("./keep".to_owned()),
            Source::Kernel("raid0(./scratch, ./keep)".into()),
            Source::Nbd("nbd://keep".to_owned()),
        ] {
            let error = permit.check(&source).unwrap_err().to_string();
            assert!(error.contains("keep"), "{error}");
        }
    }

    #[test]
    fn memory_is_filled_also_by_a_campaign_that_only_reads() {
        let reasons =
            reasons_to_write(&Planned::of(&only_reading("./keep", "raid0(ram(1G), ram(1G))")));
        assert_eq!(reasons[0], Reasons::default());
        assert_eq!(reasons[1], Reasons { fill: true, ..Reasons::default() });
    }
}
