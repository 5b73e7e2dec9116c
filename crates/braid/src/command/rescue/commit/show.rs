//! A commit in words, as JSON, and as mdadm's command.

use braid_level::layout;
use braid_md::{Superblock, Version};
use braid_rescue::commit::{Plan, Planned, Write};
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use braid_shell::{shell_path, shell_word, shown};
use braid_stack::ByteSize;
use serde_json::{Value, json};

use super::super::words::size;
use super::{Draft, unfit};
use crate::cli::RescueCommit;

/// Prints what is written, or was; the next command only if it is allowed.
pub(super) fn plan(arguments: &RescueCommit, draft: &Draft, is_written: bool, is_allowed: bool) {
    if arguments.json {
        print_json(draft, is_written);
        return;
    }
    let Draft { plan, notes, .. } = draft;
    let array = plan.array();
    println!("{}", line(plan));
    let kept = match &plan.kept_from {
        Some(label) => format!("kept from {}", shown(label)),
        None => "new: no superblock is left".to_owned(),
    };
    println!("  UUID {}, name {}, {kept}", array.array_uuid, shown(&array.name));
    println!("  metadata {}, events {}, clean, without a bitmap", array.version, array.events);
    println!("");
    let width = draft.labels.iter().map(|one| one.chars().count()).fold(6, usize::max);
    println!("  role  {:width$}  {:>10}  {:>14}  there now", "member", "data from", "written at");
    let writes = plan.writes();
    let places: Vec<(&Write, &Vec<u8>)> = writes.iter().zip(&draft.present).collect();
    for role in 0..array.raid_disks as usize {
        let Some(one) = plan.members.iter().find(|one| one.role == role) else {
            println!("  {role:>4}  {:width$}  missing", "-");
            continue;
        };
        let from = ByteSize(one.place.start + one.superblock.data_offset);
        let mine = places.iter().filter(|(write, _)| write.member == one.member);
        for (index, (write, now)) in mine.enumerate() {
            let what = if write.what == "superblock" { "" } else { ", removed" };
            let (number, label, from) = match index {
                0 => (role.to_string(), shown(&draft.labels[one.member]), from.to_string()),
                _ => (String::new(), "".into(), String::new()),
            };
            let now = there_now(one, write, now);
            println!("  {number:>4}  {label:width$}  {from:>10}  {:>14}  {now}{what}", write.at);
        }
    }
    notes.iter().for_each(|note| println!("  {}", shown(note)));
    println!("");
    let name = shell_path(&arguments.case);
    match is_written {
        false => {
            let bytes: u64 = writes.iter().map(|write| write.bytes.len() as u64).sum();
            println!("Nothing is written yet: {} places, {} together.", writes.len(), size(bytes));
            if is_allowed {
                println!("Next: braid rescue commit {name}{} --write", options(arguments));
            }
        }
        true => {
            println!(
                "Written. What was there is in {}.",
                shell_path(draft.case.folder().join("undo"))
            );
            print_next(draft, &name);
        }
    }
}

/// The options that are given again.
fn options(arguments: &RescueCommit) -> String {
    let mut text = String::new();
    let meant = &arguments.meant;
    if let Some(array) = &meant.array {
        text += &format!(" --array {}", shell_word(array));
    }
    if let Some(number) = meant.hypothesis {
        text += &format!(" --hypothesis {number}");
    }
    if let Some(version) = arguments.metadata {
        text += &format!(" --metadata {version}");
    }
    arguments.force.iter().for_each(|path| text += &format!(" --force {}", shell_path(path)));
    text + if arguments.verified { " --verified" } else { "" }
}

/// The array in one line.
fn line(plan: &Plan) -> String {
    let array = plan.array();
    let mut text = format!("{} of {}", array.level, array.raid_disks);
    let name = layout::name_of(array.level, array.layout);
    if !name.is_empty() {
        text += &format!(", {name}");
    }
    if array.chunk > 0 {
        text += &format!(", chunk {}", size(array.chunk));
    }
    text + &format!(", {}", size(plan.size))
}

/// The bytes of a place, in words.
fn there_now(planned: &Planned, write: &Write, now: &[u8]) -> String {
    let at = write.at - planned.place.start;
    let parsed = Version::ALL.into_iter().find_map(|version| {
        Superblock::parse(version, at, planned.place.length, now).ok().map(|one| (version, one))
    });
    match parsed {
        Some((version, one)) => {
            let uuid = one.array_uuid.to_string();
            let name = if one.name.is_empty() { &uuid } else { &one.name };
            format!("superblock {version} of {}, {} events", shown(name), one.events)
        }
        None if now.iter().all(|byte| *byte == 0) => "zeros".to_owned(),
        None if now.starts_with(&braid_md::superblock::MAGIC.to_le_bytes()) => {
            "a superblock that is damaged, or longer".to_owned()
        }
        None => "other bytes, which are no superblock".to_owned(),
    }
}

/// The ways in which the array is assembled, and lines for configuration files.
fn print_next(draft: &Draft, name: &str) {
    let array = draft.plan.array();
    let members: Vec<String> =
        draft.plan.members.iter().map(|one| draft.member_name(one)).collect();
    let device = device(array);
    println!("Next: braid assemble {}", words(&members));
    println!("or, on block devices: mdadm --assemble {device} {}", words(&members));
    println!(
        "Then mount it with -o ro, and compare. To take the commit back: braid rescue commit {name} --undo"
    );
    let name = if array.name.is_empty() { String::new() } else { format!(" name={}", array.name) };
    println!(
        "In mdadm.conf: ARRAY {device} metadata={} UUID={}{name}",
        array.version, array.array_uuid
    );
    if draft.plan.kept_from.is_none() {
        println!("In fstab: the UUID of the file system is what it was; {device} is new.");
    }
}

/// Names as words of a command line.
pub(super) fn words(names: &[String]) -> String {
    names.iter().map(|name| shell_word(name)).collect::<Vec<_>>().join(" ")
}

/// The device that mdadm makes of the array.
fn device(array: &Superblock) -> String {
    let name = array.name.split_once(':').map_or(&*array.name, |(_host, name)| name);
    shell_path(if name.is_empty() { "/dev/md0".to_owned() } else { format!("/dev/md/{name}") })
}

/// Prints the mdadm command that does the same.
pub(super) fn mdadm(arguments: &RescueCommit, draft: &Draft) -> Result<(), Failure> {
    let name = |one: &Planned| draft.member_name(one);
    let command = draft.plan.mdadm(&device(draft.plan.array()), &name);
    let command = command.map_err(|why| unfit(&arguments.case, &why))?;
    if arguments.json {
        println!("{}", json!({ "output_version": OUTPUT_VERSION, "mdadm": command }));
        return Ok(());
    }
    println!("{}", shown(&command));
    eprintln!(
        "braid: note: mdadm writes at once, and keeps nothing of what it overwrites. Images need loop devices: \
         losetup --find --show PATH"
    );
    Ok(())
}

fn print_json(draft: &Draft, is_written: bool) {
    let array = draft.plan.array();
    let member = |one: &Planned| {
        json!({
            "role": one.role,
            "path": draft.paths[one.member],
            "name": draft.member_name(one),
            "super_offset_bytes": one.superblock.super_offset,
            "data_offset_bytes": one.superblock.data_offset,
            "data_bytes": one.superblock.used(),
            "device_uuid": one.superblock.device_uuid.to_string(),
        })
    };
    let writes = draft.plan.writes();
    let write = |write: &Write| {
        json!({ "path": draft.paths[write.member], "offset_bytes": write.at,
                "length_bytes": write.bytes.len(), "what": write.what })
    };
    println!(
        "{}",
        json!({
            "output_version": OUTPUT_VERSION,
            "written": is_written,
            "uuid": array.array_uuid.to_string(),
            "name": array.name,
            "kept_from": draft.plan.kept_from,
            "level": array.level.to_string(),
            "layout": layout::name_of(array.level, array.layout),
            "chunk_bytes": array.chunk,
            "raid_disks": array.raid_disks,
            "metadata_version": array.version.to_string(),
            "size_bytes": draft.plan.size,
            "missing_roles": draft.plan.missing,
            "members": draft.plan.members.iter().map(member).collect::<Vec<Value>>(),
            "writes": writes.iter().map(write).collect::<Vec<Value>>(),
            "notes": draft.notes,
        })
    );
}
