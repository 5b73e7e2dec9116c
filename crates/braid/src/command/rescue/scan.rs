//! `braid rescue scan`: what lies where, why the array does not start, and what to do next.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use braid_md::Level;
use braid_md::assembly::{Options, group};
use braid_probe::{Identity, identify};
use braid_rescue::assemble::{Claimant, seats};
use braid_rescue::scan::{Findings, How, Place, scan as look};
use braid_rescue::{
    Array, Case, CaseError, CaseMember, Examined, Patient, arrays, candidate, label,
};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::{Context, Failure};
use braid_shell::{shell_path, shown};
use serde_json::{Value, json};

use super::examined::{examined, failure, labels, read_map};
use super::words;
use crate::cli::RescueScan;
use crate::command::stacks::absolute_path;

pub(super) fn scan(arguments: &RescueScan) -> Result<ExitCode, Failure> {
    let folder = Case::folder_of(&arguments.case);
    let (mut case, is_new) = match Case::read(&folder) {
        Ok(case) => (case, false),
        Err(CaseError::None(_)) => (Case::new(&folder), true),
        Err(error) => return Err(failure(&arguments.case, &error)),
    };
    if is_new && arguments.paths.is_empty() {
        let text = format!("there is no case in {}, so it needs its members", folder.display());
        let name = shell_path(&arguments.case);
        return Err(Failure::usage(text).next(format!("braid rescue scan {name} PATH..")));
    }
    if !is_new {
        case.open().map_err(|error| failure(&arguments.case, &error))?;
    }
    let passed_over = add(&mut case, &arguments.paths)?;
    set_maps(&mut case, &arguments.map)?;
    if case.members.is_empty() {
        let text = format!("none of the paths can be examined: {}", passed_over.join("; "));
        return Err(Failure::failed(text).next("name images or block devices"));
    }
    let members = examine(&mut case)?;
    case.store().map_err(|error| failure(&arguments.case, &error))?;
    let arrays = arrays(&members);
    match arguments.json {
        true => print_json(&case, &members, &arrays),
        false => print(&case, &members, &arrays, &arguments.case),
    }
    match passed_over.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(Failure::failed(format!("passed over: {}", passed_over.join("; ")))
            .next("the case is stored without them")),
    }
}

/// Adds members to the case. Returns why paths are passed over.
fn add(case: &mut Case, paths: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let identity = |path: &Path| identify(path).ok().map(|(_, identity)| identity);
    let known = case.members.iter();
    let mut known: Vec<(Identity, String)> =
        known.filter_map(|one| Some((identity(Path::new(&one.path))?, one.path.clone()))).collect();
    let mut passed_over = Vec::new();
    for path in paths {
        let path = absolute_path(path)?;
        let Some(text) = path.to_str().map(str::to_owned) else {
            let text = format!("{}: a member's path must be UTF-8", path.display());
            return Err(Failure::usage(text).next("a symbolic link with another name reaches it"));
        };
        if case.members.iter().any(|one| one.path == text) {
            continue;
        }
        let own = identity(&path);
        if let Some((_, other)) = known.iter().find(|(known, _)| Some(*known) == own) {
            passed_over.push(format!(
                "{} is the same file or device as {}",
                shown(&text),
                shown(other)
            ));
            continue;
        }
        match Patient::open(&path) {
            Err(error) => passed_over.push(error.to_string()),
            Ok(patient) => {
                known.extend(own.map(|own| (own, text.clone())));
                let fingerprint = patient.fingerprint();
                let member = CaseMember { path: text, fingerprint, map: None, places: Vec::new() };
                case.members.push(member);
            }
        }
    }
    Ok(passed_over)
}

/// Gives members their maps.
fn set_maps(case: &mut Case, maps: &[String]) -> Result<(), Failure> {
    for text in maps {
        let Some((path, map)) = text.split_once('=') else {
            let text = format!("--map {}: it is PATH=FILE", shown(text));
            return Err(Failure::usage(text)
                .next("the member, `=`, and the map that ddrescue wrote beside it"));
        };
        let (path, map) = (absolute_path(Path::new(path))?, absolute_path(Path::new(map))?);
        let member = case.members.iter_mut().find(|one| Path::new(&one.path) == path);
        let Some(member) = member else {
            let text = format!("--map {}: the case has no such member", path.display());
            return Err(Failure::usage(text).next("name the member as a PATH, too"));
        };
        read_map(&map, &member.path, member.fingerprint.size)?;
        member.map = Some(map.to_string_lossy().into_owned());
    }
    Ok(())
}

/// Looks at all members at once, and notes in the case where superblocks are.
fn examine(case: &mut Case) -> Result<Vec<Examined>, Failure> {
    let patients = case.members.iter().map(|one| Patient::open(Path::new(&one.path)));
    let patients = patients.collect::<Result<Vec<_>, _>>().context("cannot scan")?;
    let findings: Vec<Findings> = thread::scope(|scope| {
        let looks: Vec<_> =
            patients.iter().map(|patient| scope.spawn(|| look(patient, true))).collect();
        looks.into_iter().map(|one| one.join().expect("a scan does not panic")).collect()
    });
    let labels = labels(&case.members);
    let mut members = Vec::new();
    for (index, (patient, findings)) in patients.into_iter().zip(findings).enumerate() {
        let member = &mut case.members[index];
        member.places = findings.superblocks.iter().map(|found| found.place).collect();
        member.places.sort();
        member.places.dedup();
        members.push(examined(member, patient, findings, labels[index].clone())?);
    }
    Ok(members)
}

fn print(case: &Case, members: &[Examined], arrays: &[Array], name: &Path) {
    let count = members.len();
    println!("Case {}: {count} members. Nothing is written to them.", case.folder().display());
    println!("");
    println!("What lies on them");
    let width = members.iter().map(|one| one.label.chars().count()).fold(6, usize::max);
    for member in members {
        let lines = contents(member);
        let size = words::size(member.patient.size());
        for (index, line) in lines.iter().enumerate() {
            let (label, size) =
                if index == 0 { (shown(&member.label), &*size) } else { ("".into(), "") };
            println!("  {label:width$}  {size:>10}  {}", shown(line));
        }
    }
    for array in arrays {
        let (seats, left_out) = seats(&array.claimants);
        let authority = freshest(array);
        println!("");
        let superblock = &array.claimants[authority].superblock;
        println!("Array {}", words::array(array, superblock));
        println!("  {}", words::identity(superblock));
        words::print_table(&words::table(&array.claimants, &seats, &left_out));
        println!("  {}", verdict(members, array));
    }
    println!("");
    println!(
        "Do not, until the data are copied: create the array anew (`mdadm --create`), assemble it by"
    );
    println!(
        "force, repair or mount it, or write to a member in any other way. Copy a disk with errors by"
    );
    println!("GNU ddrescue first, and scan the image with `--map`.");
    let name = shell_path(name);
    match arrays.is_empty() {
        false => println!("Next: braid rescue open {name}"),
        true => println!("Next: no md superblock is left: braid rescue solve {name}"),
    }
}

/// The claimant with the most events.
fn freshest(array: &Array) -> usize {
    let key = |index: &usize| {
        let superblock = &array.claimants[*index].superblock;
        (superblock.events, superblock.updated)
    };
    (0..array.claimants.len()).max_by_key(key).expect("an array has a claimant")
}

/// Why mdadm and the kernel do not start it, or that they would.
fn verdict(members: &[Examined], array: &Array) -> String {
    let candidates = array.claimants.iter().zip(&array.places);
    let candidates = candidates.filter(|(one, _)| !one.is_guessed);
    // The kernel refuses a device that is shorter than its superblock says.
    let is_whole = |(one, place): &(&Claimant, &Place)| {
        place.start + place.length <= members[one.member].patient.size()
    };
    let candidates =
        candidates.filter(is_whole).map(|(one, place)| candidate(one, place.length)).collect();
    let served = |_: Level| true;
    let (force, read_only, degraded) = (false, false, false);
    let options = Options { force, read_only, degraded, raid0_layout: None, supported: &served };
    let sets = group(candidates);
    let verdicts = sets.iter().map(|set| set.assess(options));
    let words = verdicts.map(|verdict| format!("By md's rules: {verdict}"));
    let unread = members.iter().filter(|one| !one.holes.is_empty()).count();
    let holes = match unread {
        0 => String::new(),
        count => format!(
            ". {count} of the members could not be read everywhere: md fails a member at its first error"
        ),
    };
    shown(&(words.collect::<Vec<_>>().join("; ") + &holes)).into_owned()
}

/// Contents of a member, a line each.
fn contents(member: &Examined) -> Vec<String> {
    let findings = &member.findings;
    let mut lines = Vec::new();
    for found in &findings.superblocks {
        let (version, at) = (found.version, found.at);
        let place = match found.place.how {
            How::Whole => String::new(),
            How::Partition(number) => format!(" of partition {number}"),
            How::Displaced => format!(
                " of a member that begins at byte {}, where no partition table has one",
                found.place.start
            ),
        };
        lines.push(match &found.result {
            Ok(superblock) => {
                let (array, uuid) = (&superblock.name, superblock.array_uuid);
                let array = if array.is_empty() { uuid.to_string() } else { array.clone() };
                format!("md {version} of {array}, at byte {at}{place}")
            }
            Err(why) => format!("md {version} at byte {at}{place}, damaged: {why}"),
        });
    }
    for found in &findings.contents {
        let place = label("", &found.place);
        let place = if place.is_empty() { String::new() } else { format!(" {place}") };
        let at = found.place.start.saturating_add(found.signature.offset);
        lines.push(format!("{} at byte {at}{place}", found.signature));
    }
    if let Some(error) = &findings.table {
        lines.push(format!("a partition table that is not used: {error}"));
    }
    let holes = member.holes.iter().chain(&findings.unreadable);
    let (beyond, unread): (Vec<_>, Vec<_>) =
        holes.partition(|hole| hole.start >= member.patient.size());
    let bytes = |holes: &[&Range<u64>]| holes.iter().map(|hole| hole.end - hole.start).sum::<u64>();
    if !unread.is_empty() {
        lines.push(format!("{} could not be read", words::size(bytes(&unread))));
    }
    if let Some(end) = beyond.iter().map(|hole| hole.end).max() {
        let missing = words::size(end - member.patient.size());
        lines.push(format!("it ends {missing} before the member does: not all of it was copied"));
    }
    if lines.is_empty() {
        lines.push("nothing that is known".to_owned());
    }
    lines
}

fn print_json(case: &Case, members: &[Examined], arrays: &[Array]) {
    let member = |member: &Examined| {
        let found = member.findings.superblocks.iter().map(|found| {
            let superblock = found.result.as_ref().ok();
            json!({
                "version": found.version.to_string(),
                "offset_bytes": found.at,
                "member_start_bytes": found.place.start,
                "member_bytes": found.place.length,
                "array_uuid": superblock.map(|one| one.array_uuid.to_string()),
                "events": superblock.map(|one| one.events),
                "updated_seconds": superblock.map(|one| one.updated.seconds),
                "error": found.result.as_ref().err().map(ToString::to_string),
            })
        });
        let contents = member.findings.contents.iter().map(|found| {
            json!({
                "name": found.signature.name,
                "label": found.signature.label,
                "uuid": found.signature.uuid,
                "offset_bytes": found.place.start.saturating_add(found.signature.offset),
            })
        });
        let unreadable = member.holes.iter().chain(&member.findings.unreadable);
        json!({
            "path": member.path,
            "size_bytes": member.patient.size(),
            "superblocks": found.collect::<Vec<Value>>(),
            "contents": contents.collect::<Vec<Value>>(),
            "unreadable": unreadable.map(|hole| json!([hole.start, hole.end - hole.start])).collect::<Vec<Value>>(),
        })
    };
    let array = |array: &Array| json!({ "uuid": array.uuid.to_string(), "name": array.name, "verdict": verdict(members, array) });
    println!(
        "{}",
        json!({
            "output_version": OUTPUT_VERSION,
            "case": case.folder(),
            "members": members.iter().map(member).collect::<Vec<Value>>(),
            "arrays": arrays.iter().map(array).collect::<Vec<Value>>(),
        })
    );
}
