//! A commit that was begun: finished or undone.
//!
//! Each place must hold what was there before the commit, what the commit wrote, or sectors of both. Anything else was
//! written since, as by an array that was started.

use std::path::{Path, PathBuf};

use braid_probe::MemberFacts;
use braid_rescue::scan::scan;
use braid_rescue::{Case, Patient};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_service::metadata::{Change, Held, Patch, Saved, SavedPatch, Standing, Trail};
use braid_service::record::{Known, Seen};
use braid_shell::{shell_path, shown};
use serde_json::json;

use super::super::examined::failure;
use super::judged;
use crate::cli::RescueCommit;
use crate::command::given;

/// The members of a commit, locked, with what they hold now.
struct Begun {
    /// The change as it was written.
    change: Change,
    before: Vec<Vec<u8>>,
    standings: Vec<Standing>,
}

impl Begun {
    fn open(name: &Path, case: &Case, trail: &Trail, saved: &Saved) -> Result<Begun, Failure> {
        let paths = members(name, case, saved)?;
        let facts = judged(&paths)?;
        let is_other = |(known, facts): &(&Known, &MemberFacts)| !known.is(&Seen::of(facts));
        if let Some((known, _)) = saved.members.iter().zip(&facts).find(is_other) {
            let text = format!(
                "{} is another file or device than the one that was written",
                known.path.display()
            );
            return Err(
                Failure::refused(text).next("put the member back under its path, then this again")
            );
        }
        let contents = trail.contents(saved)?;
        let patch = |(place, bytes): (&SavedPatch, &Vec<u8>)| Patch {
            member: place.member,
            offset: place.offset_bytes,
            what: if place.what == "superblock" { "superblock" } else { "older superblock" },
            bytes: bytes.clone(),
        };
        let patches = saved.patches.iter().zip(&contents.after).map(patch).collect();
        let members = facts.iter().map(Held::open).collect::<Result<Vec<_>, _>>()?;
        let change = Change { members, patches };
        let present = change.present()?;
        let both = contents.before.iter().zip(&contents.after);
        let standings = present.iter().zip(both);
        let standings =
            standings.map(|(now, (before, after))| Standing::of(before, now, after)).collect();
        Ok(Begun { change, before: contents.before, standings })
    }

    /// Refuses members that were written since, except those that are named again.
    fn check(&self, saved: &Saved, forced: &[PathBuf], next: &str) -> Result<(), Failure> {
        let is_other = |(standing, place): &(&Standing, &SavedPatch)| {
            **standing == Standing::Other && !forced.contains(&saved.members[place.member].path)
        };
        let other = self.standings.iter().zip(&saved.patches).find(is_other);
        let Some((_, place)) = other else { return Ok(()) };
        let path = shown(&saved.members[place.member].path.display().to_string()).into_owned();
        let text = format!(
            "{path} was written since the commit: at byte {} there is neither what was there before nor the {} of the \
             commit. The array was probably started",
            place.offset_bytes, place.what
        );
        Err(Failure::refused(text)
            .next(next.replace("PATH", &shell_path(&saved.members[place.member].path))))
    }
}

/// The members of a commit, which must be of the case.
fn members(name: &Path, case: &Case, saved: &Saved) -> Result<Vec<PathBuf>, Failure> {
    let paths: Vec<PathBuf> = saved.members.iter().map(|one| one.path.clone()).collect();
    let is_strange =
        |path: &&PathBuf| !case.members.iter().any(|one| Path::new(&one.path) == **path);
    let is_whole = saved.patches.iter().all(|patch| patch.member < paths.len());
    match paths.iter().find(is_strange) {
        None if is_whole => Ok(paths),
        None => Err(Failure::failed("the description of the commit is damaged")
            .next(format!("ls {}", shell_path(case.folder().join("undo"))))),
        Some(path) => {
            let text = format!("the commit names {}, which is not of the case", path.display());
            Err(Failure::refused(text).next(format!("braid rescue scan {}", shell_path(name))))
        }
    }
}

/// Says how far a commit is; with `--write`, finishes it.
pub(super) fn resume(
    arguments: &RescueCommit,
    case: Case,
    trail: &Trail,
    saved: &Saved,
) -> Result<(), Failure> {
    let name = shell_path(&arguments.case);
    let undo = format!("braid rescue commit {name} --undo");
    let begun = Begun::open(&arguments.case, &case, trail, saved)?;
    begun.check(
        saved,
        &[],
        &format!("stop the array, then {undo} --force PATH, for each member"),
    )?;
    let is_done = begun.standings.iter().all(|one| *one == Standing::After);
    if arguments.write {
        begun.change.replace()?;
        note(&case, &members(&arguments.case, &case, saved)?)?;
    }
    let is_done = is_done || arguments.write;
    if arguments.json {
        println!(
            "{}",
            json!({ "output_version": OUTPUT_VERSION, "written": is_done, "commit": saved })
        );
        return Ok(());
    }
    match is_done {
        true => {
            println!("Committed: {}", shown(&saved.describe()));
            println!("Next: braid assemble {}", super::show::words(&saved_paths(saved)));
            println!("or take it back: {undo}");
        }
        false => {
            let written = begun.standings.iter().filter(|one| **one == Standing::After).count();
            let all = begun.standings.len();
            println!("A commit was interrupted: {written} of {all} places are written.");
            println!("Next: braid rescue commit {name} --write, which finishes it");
            println!("or take it back: {undo}");
        }
    }
    Ok(())
}

fn saved_paths(saved: &Saved) -> Vec<String> {
    saved.members.iter().map(|one| one.path.display().to_string()).collect()
}

/// Puts back what was there before the commit.
pub(super) fn undo(
    arguments: &RescueCommit,
    case: Case,
    trail: &Trail,
    saved: &Saved,
) -> Result<(), Failure> {
    let name = shell_path(&arguments.case);
    let begun = Begun::open(&arguments.case, &case, trail, saved)?;
    let forced = given::absolute(&arguments.force)?;
    let next = format!(
        "to lose the present one: braid rescue commit {name} --undo --force PATH, for each member"
    );
    begun.check(saved, &forced, &next)?;
    begun.change.put(&begun.before)?;
    drop(begun);
    note(&case, &members(&arguments.case, &case, saved)?)?;
    trail.remove(saved.number)?;
    match arguments.json {
        true => println!("{}", json!({ "output_version": OUTPUT_VERSION, "undone": saved })),
        false => println!("Undone: {}. The members are as they were.", shown(&saved.describe())),
    }
    Ok(())
}

/// Notes in the case what members are now, so that the next command does not take them for changed.
pub(super) fn note(case: &Case, paths: &[PathBuf]) -> Result<(), Failure> {
    let mut case = case.clone();
    for path in paths {
        let patient = Patient::open(path).context("cannot read what was written")?;
        let is_it = |one: &&mut braid_rescue::CaseMember| Path::new(&one.path) == *path;
        for member in case.members.iter_mut().filter(is_it) {
            let found = scan(&patient, true).superblocks;
            member.fingerprint = patient.fingerprint();
            member.places = found.iter().map(|found| found.place).collect();
            member.places.sort();
            member.places.dedup();
        }
    }
    let folder = case.folder().to_owned();
    case.store().map_err(|error| failure(&folder, &error))
}
