//! `braid rescue commit`: md superblocks that describe the array as it is read, so that mdadm, the kernel and braid
//! assemble it again.
//!
//! ```text
//!   answer ──▶ allowed ──▶ plan ──┬─ printed, the end
//!                                 ├─ --mdadm: the command that does the same
//!                                 └─ --write: saved in CASE/undo, written ──▶ --undo
//! ```
//!
//! Invariants
//! * No other command of `rescue` opens a member for writing.
//! * No byte is replaced before all that will be replaced is on stable storage in the folder of the case.
//! * A commit that was interrupted is finished by the same command, or undone.

mod allowed;
mod carried;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use braid_md::Uuid;
use braid_probe::MemberFacts;
use braid_rescue::commit::{Geometry, Identity, Plan, Planned, Unfit, plan};
use braid_rescue::scan::How;
use braid_rescue::{Case, Examined, Verdict};
use braid_service::failure::Failure;
use braid_service::metadata::{Change, Held, Patch, Saved, Trail, host_name, now, random_uuid};
use braid_service::record::Known;
use braid_shell::{shell_path, shown};
use braid_stack::{ByteSize, File};

use super::answer::{Opened, ReadArray, opened};
use super::examined::failure;
use crate::cli::RescueCommit;
use crate::command::{given, stacks};

/// A commit before it is written.
struct Draft {
    case: Case,
    /// Labels of the members of the case.
    labels: Vec<String>,
    /// Their paths.
    paths: Vec<PathBuf>,
    plan: Plan,
    /// The present bytes of the places of the plan's writes.
    present: Vec<Vec<u8>>,
    /// Sentences: what is not as it was, and what stays in doubt.
    notes: Vec<String>,
    /// The verdict of `verify` on the array, or on a volume in it.
    verdict: Option<Verdict>,
}

pub(super) fn commit(arguments: &RescueCommit) -> Result<ExitCode, Failure> {
    let name = &arguments.case;
    let case = Case::read(&Case::folder_of(name)).map_err(|error| failure(name, &error))?;
    let trail = Trail::new(case.folder().join("undo")).with_next(
        "make room there, or a case in another folder: `braid rescue scan FOLDER/CASE PATH..`",
    );
    match (trail.list().into_iter().next(), arguments.undo) {
        (Some(saved), true) => carried::undo(arguments, case, &trail, &saved)?,
        (Some(saved), false) => carried::resume(arguments, case, &trail, &saved)?,
        (None, true) => {
            return Err(Failure::failed("nothing of this case was committed")
                .next(format!("braid rescue commit {}", shell_path(name))));
        }
        (None, false) => begin(arguments, &trail)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Plans the commit, and prints it or carries it out.
fn begin(arguments: &RescueCommit, trail: &Trail) -> Result<(), Failure> {
    let draft = drafted(arguments)?;
    if arguments.mdadm {
        return show::mdadm(arguments, &draft);
    }
    let allowed = allowed::check(arguments, &draft);
    if !arguments.write {
        show::plan(arguments, &draft, false, allowed.is_ok());
        return allowed.map(drop);
    }
    let facts = allowed?;
    write(&draft, trail, &facts)?;
    show::plan(arguments, &draft, true, true);
    Ok(())
}

/// Decides what is written.
fn drafted(arguments: &RescueCommit) -> Result<Draft, Failure> {
    let name = &arguments.case;
    let Opened { case, members, mut arrays, volumes, .. } = opened(name, &arguments.meant)?;
    if arrays.len() > 1 {
        let names: Vec<_> = arrays.iter().map(|one| shown(&one.name).into_owned()).collect();
        let text = format!("the case has several arrays: {}", names.join(", "));
        let next =
            format!("braid rescue commit {} --array NAME|UUID, each for itself", shell_path(name));
        return Err(Failure::usage(text).next(next));
    }
    let array: ReadArray = arrays.remove(0);
    let mut geometry =
        Geometry::of(&stacks::parse_for(&array.stack, true)?).map_err(|why| unfit(name, &why))?;
    let mut notes = allowed::vacate(&array, &mut geometry);
    notes.extend(allowed::doubts(name, &array)?);
    let stacks = volumes.iter().map(|one| &one.stack).chain([&array.stack]);
    let verdict = allowed::verdict(name, &case, stacks)?;
    // Devices that are only read are closed before one is opened to be written.
    drop(array);
    let mut device_uuids = identifiers(name, &case, geometry.seats.len() + 1)?;
    let identity = Identity {
        uuid: device_uuids.remove(0),
        name: new_name(case.folder()),
        device_uuids,
        now: now(),
        version: arguments.metadata,
    };
    let plan = plan(&geometry, &members, &identity).map_err(|why| unfit(name, &why))?;
    let read = |write: &braid_rescue::commit::Write| {
        let mut bytes = vec![0; write.bytes.len()];
        members[write.member].patient.read_around(write.at, &mut bytes, &mut Vec::new());
        bytes
    };
    let present = plan.writes().iter().map(read).collect();
    if plan.shorter > 0 {
        notes.push(format!(
            "the last {:#} of each member are not used: the superblock is there",
            ByteSize(plan.shorter)
        ));
    }
    for one in plan.members.iter().filter(|one| one.is_over_table) {
        let label = shown(&members[one.member].label).into_owned();
        notes.push(format!(
            "{label}: a GPT has a second copy at the end of the disk, where it may have overwritten data: compare, or \
             repair, when the array runs"
        ));
    }
    let labels = members.iter().map(|one: &Examined| one.label.clone()).collect();
    let paths = members.iter().map(|one| PathBuf::from(&one.path)).collect();
    Ok(Draft { case, labels, paths, plan, present, notes, verdict })
}

/// Identifiers for an array and its members of which no superblock is left. They are kept in the case, so that what is
/// printed is what is written.
fn identifiers(name: &Path, case: &Case, count: usize) -> Result<Vec<Uuid>, Failure> {
    const FILE: &str = "identifiers";
    let text = case.text(FILE).map_err(|error| failure(name, &error))?.unwrap_or_default();
    let mut all: Vec<Uuid> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let is_known = all.len() >= count;
    while all.len() < count {
        all.push(random_uuid()?);
    }
    if !is_known {
        let text: String = all.iter().map(|uuid| format!("{uuid}\n")).collect();
        case.write(FILE, &text).map_err(|error| failure(name, &error))?;
    }
    all.truncate(count);
    Ok(all)
}

/// The name of an array of which no superblock is left: that of the case, on this machine.
fn new_name(folder: &Path) -> String {
    let name = folder.file_stem().map(|name| name.to_string_lossy().replace(':', "-"));
    let name = name.unwrap_or_default();
    let whole = format!("{}:{name}", host_name());
    [whole, name].into_iter().find(|name| name.len() <= 32).unwrap_or_else(|| "rescued".to_owned())
}

/// Why no superblocks can be written, and what to do instead.
fn unfit(name: &Path, why: &Unfit) -> Failure {
    let case = shell_path(name);
    let copy = format!("braid rescue copy {case} --to FILE.img");
    let next = match why {
        Unfit::NoArray(_) => format!("{copy}: the content has to be copied out"),
        Unfit::Holes(_) => format!("{copy}: the copy says which bytes are lost"),
        Unfit::TooFew { .. } => copy,
        Unfit::BadBlocks(_) | Unfit::Unknown(_) => copy,
        Unfit::NoMember(_) => format!("braid rescue scan {case} PATH.."),
        Unfit::NoRoom { .. } => format!("another version: --metadata 1.2, 1.1 or 1.0; or {copy}"),
        Unfit::NotByMdadm(_) => format!("braid rescue commit {case}"),
    };
    Failure::refused(shown(&why.to_string())).next(next)
}

impl Draft {
    /// The name by which a member is assembled.
    fn member_name(&self, planned: &Planned) -> String {
        let path = self.paths[planned.member].to_string_lossy().into_owned();
        let whole = File::whole_at(path);
        match planned.place.how {
            How::Whole => whole.to_string(),
            How::Partition(number) => File { partition: Some(number), ..whole }.to_string(),
            How::Displaced => {
                let (offset, length) = (planned.place.start, planned.place.length / 512 * 512);
                File { offset: ByteSize(offset), length: Some(ByteSize(length)), ..whole }
                    .to_string()
            }
        }
    }

    /// Paths of the members that are written, in the order of their roles.
    fn written(&self) -> Vec<PathBuf> {
        self.plan.members.iter().map(|one| self.paths[one.member].clone()).collect()
    }
}

/// Saves what will be overwritten, writes the superblocks, and notes in the case what the members are now.
fn write(draft: &Draft, trail: &Trail, facts: &[MemberFacts]) -> Result<(), Failure> {
    let paths = draft.written();
    let index = |member: usize| {
        let is_it = |path: &PathBuf| *path == draft.paths[member];
        paths.iter().position(is_it).expect("what is written is a member of the plan")
    };
    let writes = draft.plan.writes().into_iter();
    let patches = writes.map(|write| Patch {
        member: index(write.member),
        offset: write.at,
        what: write.what,
        bytes: write.bytes,
    });
    let change = Change {
        patches: patches.collect(),
        members: facts.iter().map(Held::open).collect::<Result<Vec<_>, _>>()?,
    };
    if change.present()? != draft.present {
        return Err(Failure::refused("a member was written while the commit was planned")
            .next("find out what writes to it, then the same command"));
    }
    let array = draft.plan.array();
    let saved = Saved {
        names: vec![array.name.clone()],
        arrays: vec![array.array_uuid.to_string()],
        members: facts.iter().map(Known::of).collect(),
        ..Saved::new("rescue commit")
    };
    let noted = || carried::note(&draft.case, &paths);
    change.carry_out(trail, saved, noted).map(drop)
}

/// Judges the members: none may be in use. What they carry is known: the plan has it.
fn judged(paths: &[PathBuf]) -> Result<Vec<MemberFacts>, Failure> {
    given::judge(paths, paths)
}
