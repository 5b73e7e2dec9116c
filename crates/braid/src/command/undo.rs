//! `braid undo`: what `create`, `wipe` or `assemble --force` overwrote, put back.
//!
//! Each place must hold what was written there, or what was there before, or sectors of both (an undo that was
//! interrupted goes on): anything else was written since, and would be lost.

use std::path::PathBuf;

use super::local_time::utc_offset;
use crate::cli::Undo;
use braid_service::control::OUTPUT_VERSION;
use braid_service::examined::Examined;
use braid_service::failure::Failure;
use braid_service::metadata::{
    Change, Copies, Held, Kept, Patch, Saved, SavedPatch, Standing, Trail,
};
use braid_service::places::Places;
use braid_service::record::{Known, Record, Seen};

pub(super) fn undo(undo: &Undo) -> Result<(), Failure> {
    let trail = Trail::new(Places::from_environment().undo());
    if undo.list {
        list(undo, &trail);
        return Ok(());
    }
    let saved = find(&trail, undo.change.as_deref())?;
    let paths: Vec<PathBuf> = saved.members.iter().map(|member| member.path.clone()).collect();
    let examined = Examined::judge(&paths, &paths)?;
    let now: Vec<Seen> = examined.iter().map(Examined::seen).collect();
    let is_other = |then: &Known, now: &Seen| !then.is(now) || then.size_bytes != now.size_bytes;
    let strange = saved.members.iter().zip(&now).find(|(then, now)| is_other(then, now));
    if let Some((then, now)) = strange.filter(|_| !undo.force) {
        return Err(Failure::refused(format!(
            "{} is not what it was: {} of {} bytes, then {} of {} bytes",
            now.path.display(),
            now.identity(),
            now.size_bytes,
            then.identity,
            then.size_bytes
        ))
        .next(format!("if it is a copy: `braid undo {} --force`", saved.number)));
    }
    let held = examined.iter().map(Examined::hold).collect::<Result<Vec<_>, _>>()?;
    put_back(undo, &trail, &saved, held)?;
    forget_record(&saved)?;
    trail.remove(saved.number)?;
    match undo.json {
        true => {
            println!("{}", serde_json::json!({ "output_version": OUTPUT_VERSION, "undone": saved }))
        }
        false => println!("undone: {}", saved.describe()),
    }
    Ok(())
}

fn list(undo: &Undo, trail: &Trail) {
    if undo.json {
        let json = serde_json::json!({ "output_version": OUTPUT_VERSION, "changes": trail.list() });
        println!("{json}");
        return;
    }
    let ahead = utc_offset();
    for saved in trail.list() {
        let when = braid_md_text::examine::ctime(saved.time_s, ahead(saved.time_s));
        println!("{}  {when}  {}", saved.number, saved.describe());
        saved.members.iter().for_each(|member| println!("    {}", member.path.display()));
    }
}

/// The latest change, or the latest one that is meant.
fn find(trail: &Trail, meant: Option<&str>) -> Result<Saved, Failure> {
    let is_meant = |saved: &Saved| meant.is_none_or(|text| saved.is_meant_by(text));
    trail.list().into_iter().find(is_meant).ok_or_else(|| {
        let what = meant.map_or(String::new(), |text| format!(" of {text:?}"));
        Failure::failed(format!("there is no change{what} to undo"))
            .next("`braid undo --list` lists those that there are")
    })
}

fn put_back(undo: &Undo, trail: &Trail, saved: &Saved, held: Vec<Held>) -> Result<(), Failure> {
    let contents = trail.contents(saved)?;
    let patch = |(place, bytes): (&SavedPatch, &Vec<u8>)| Patch {
        member: place.member,
        offset: place.offset_bytes,
        what: "",
        bytes: bytes.clone(),
    };
    let patches = saved.patches.iter().zip(&contents.after).map(patch).collect();
    let change = Change { members: held, patches };
    let present = change.present()?;
    let states = present.iter().zip(&contents.before).zip(&contents.after);
    let states = states.map(|((now, before), after)| Standing::of(before, now, after));
    let used =
        Some(Copies::own()).filter(|_| !undo.force).and_then(|copies| used_since(&copies, saved));
    for (state, place) in states.zip(&saved.patches) {
        if let (Standing::Before, "superblock", Some(kept)) = (state, &*place.what, &used) {
            return Err(lost(saved, place, kept));
        }
        if state == Standing::Other && !undo.force {
            return Err(Failure::refused(format!(
                "{} was used since: at byte {} the {} is not what `{}` wrote",
                saved.members[place.member].path.display(),
                place.offset_bytes,
                place.what,
                saved.command
            ))
            .next(format!("to lose that: `braid undo {} --force`", saved.number)));
        }
    }
    change.put(&contents.before)
}

/// The copy that tells that an array was used after `create`; what `create` itself kept does not.
fn used_since(copies: &Copies, saved: &Saved) -> Option<Kept> {
    let mut all = copies.list().into_iter().filter(|one| saved.arrays.contains(&one.array));
    all.next().filter(|one| saved.command == "create" && one.why != "create")
}

/// The refusal where a superblock of an array that was used is gone: nothing is left to undo, but its record.
fn lost(saved: &Saved, place: &SavedPatch, kept: &Kept) -> Failure {
    let member = saved.members[place.member].path.display();
    Failure::refused(format!(
        "{member} lost its superblock after the array was used: what lies there is not what `create` wrote, and \
         an undo would forget the array"
    ))
    .next(format!(
        "{}; to forget the array: `braid undo {} --force`",
        kept.next(),
        saved.number
    ))
}

/// Removes the `NAME.toml` that was written with the change, unless it is about something else
/// now.
fn forget_record(saved: &Saved) -> Result<(), Failure> {
    let Some((path, stack)) = &saved.record else { return Ok(()) };
    if Record::read(path).is_ok_and(|record| record.stack.to_string() == *stack) {
        std::fs::remove_file(path).map_err(|error| {
            Failure::failed(format!("cannot remove {}: {error}", path.display()))
        })?;
    }
    Ok(())
}
