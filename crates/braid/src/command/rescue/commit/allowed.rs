//! Conditions of a commit: the answer is verified and decided, and the members are free, and no originals.

use std::fs;
use std::path::{Path, PathBuf};

use braid_probe::{BlockDevice, FileKind, Identity, MemberFacts, identify};
use braid_rescue::assemble::{Doubt, Standing};
use braid_rescue::commit::{Geometry, Planned};
use braid_rescue::{Case, Fingerprint, Patient, Verdict, Verified};
use braid_service::failure::Failure;
use braid_shell::{shell_path, shown};

use super::super::answer::{By, ReadArray};
use super::super::examined::failure;
use super::super::words;
use super::{Draft, judged};
use crate::cli::RescueCommit;
use crate::command::given;

/// Makes members that are not as good as the others missing ones; says which.
pub(super) fn vacate(array: &ReadArray, geometry: &mut Geometry) -> Vec<String> {
    let By::Superblocks { array, opening } = &array.by else { return Vec::new() };
    let mut notes = Vec::new();
    for (role, seat) in opening.seats.iter().enumerate() {
        let Some(seat) = seat else { continue };
        let one = &array.claimants[seat.claimant];
        let why = match seat.standing {
            Standing::ByBitmap | Standing::Stale => "is stale",
            Standing::Ambiguous => "is one of two members that claim this role",
            _ if one.superblock.recovery_offset.is_some() => "was being filled",
            Standing::Last | Standing::LeftLast | Standing::Guessed => continue,
        };
        geometry.vacate(role);
        notes.push(format!(
            "role {role} becomes missing: {} {why}. Add a disk to the array when it runs, and md fills it",
            shown(&one.label)
        ));
    }
    notes
}

/// The doubts that stay, in sentences.
///
/// # Errors
/// A doubt for which no superblocks can be written.
pub(super) fn doubts(name: &Path, array: &ReadArray) -> Result<Vec<String>, Failure> {
    let mut stay = Vec::new();
    for doubt in &array.doubts {
        match doubt {
            // Holes and members that are vacated are judged for themselves.
            Doubt::Lost { .. } | Doubt::Stale { .. } | Doubt::Ambiguous { .. } => {}
            Doubt::Guessed { .. } | Doubt::Torn { .. } => {
                stay.push(format!("in doubt, as before: {}", words::doubt(doubt)));
            }
            _ => {
                let case = shell_path(name);
                let text = format!("something is undecided: {}", words::doubt(doubt));
                let next =
                    format!("braid rescue solve {case}, or braid rescue copy {case} --to FILE.img");
                return Err(Failure::refused(text).next(next));
            }
        }
    }
    Ok(stay)
}

/// Returns the last verdict of `verify` on one of these stacks.
pub(super) fn verdict<'a>(
    name: &Path,
    case: &Case,
    stacks: impl Iterator<Item = &'a String> + Clone,
) -> Result<Option<Verdict>, Failure> {
    let results = Verified::all(case).map_err(|error| failure(name, &error))?;
    let last = results.iter().find(|one| stacks.clone().any(|stack| *stack == one.stack));
    Ok(last.map(|one| one.verdict))
}

/// Checks all that may forbid the commit; returns what is known of the members that are written, by role.
pub(super) fn check(arguments: &RescueCommit, draft: &Draft) -> Result<Vec<MemberFacts>, Failure> {
    let case = shell_path(&arguments.case);
    let unverified = match draft.verdict {
        Some(Verdict::Right) => None,
        Some(Verdict::Wrong) => {
            let text =
                "`braid rescue verify` found the content wrong: md would write over the data";
            return Err(Failure::refused(text).next(format!("braid rescue solve {case}")));
        }
        Some(Verdict::Doubtful | Verdict::Unknown) => {
            Some("`braid rescue verify` could not say that the content is right")
        }
        None => Some("the content was not verified"),
    };
    if let Some(why) = unverified.filter(|_| !arguments.verified) {
        let text =
            format!("{why}: by superblocks for a wrong reading md would write over the data");
        return Err(Failure::refused(text).next(format!(
            "braid rescue verify {case}; if you have checked files of the array yourself, --verified"
        )));
    }
    let paths = draft.written();
    let forced = given::named_again("--force", &arguments.force, &paths)?;
    let is_over = |(one, path): &(&Planned, &PathBuf)| one.is_over_table && !forced.contains(path);
    if let Some((_, path)) = draft.plan.members.iter().zip(&paths).find(is_over) {
        let path = shell_path(path);
        let text = format!(
            "{path} has a sound partition table, and the superblock of the whole disk would lie in it or beside it"
        );
        return Err(Failure::refused(text).next(format!(
            "if the member is a partition, scan it alone (losetup --partscan); if the table was written over the \
             member by mistake: --force {path}"
        )));
    }
    for planned in &draft.plan.members {
        if let Some(image) = image_of(draft, planned.member) {
            let text = format!(
                "{} is an original disk, and an image of it is there: {}",
                shown(&draft.labels[planned.member]),
                shell_path(&image)
            );
            return Err(Failure::refused(text).next(
                "make a case of the images, and commit that; the disk stays as it is, whatever goes wrong",
            ));
        }
    }
    judged(&paths)
}

/// An image of a block device, in the case or in the folder of the case.
fn image_of(draft: &Draft, index: usize) -> Option<PathBuf> {
    let own = &draft.case.members[index];
    let path = Path::new(&own.path);
    let (FileKind::Block, identity) = identify(path).ok()? else { return None };
    let is_equal = |other: &Fingerprint| {
        let of = |one: &Fingerprint| (one.size, one.head_sha1.clone(), one.tail_sha1.clone());
        of(other) == of(&own.fingerprint)
    };
    let known = draft.case.members.iter().filter(|one| is_equal(&one.fingerprint));
    let known = known.map(|one| PathBuf::from(&one.path));
    let folder = std::path::absolute(draft.case.folder()).ok()?;
    let beside = fs::read_dir(folder.parent()?).into_iter().flatten().flatten();
    let beside = beside.map(|entry| entry.path()).filter(|path| {
        let has_size =
            fs::metadata(path).is_ok_and(|one| one.is_file() && one.len() == own.fingerprint.size);
        has_size && Patient::open(path).is_ok_and(|one| is_equal(&one.fingerprint()))
    });
    let is_image = |path: &PathBuf| {
        identify(path).is_ok_and(|(kind, _)| kind == FileKind::Regular)
            && !is_backing(identity, path)
    };
    known.chain(beside).find(is_image)
}

/// True if the device is a loop device over this file.
fn is_backing(device: Identity, path: &Path) -> bool {
    let Identity::Block(number) = device else { return false };
    let backing = BlockDevice::find(number).ok().flatten().and_then(|one| one.backing_file());
    let same = |backing: PathBuf| {
        let identities = [identify(&backing), identify(path)].map(|one| one.ok().map(|one| one.1));
        identities[0].is_some() && identities[0] == identities[1]
    };
    backing.is_some_and(same)
}
