//! Verdicts, for people and as JSON.

use braid_md::assembly::{Assembly, Member, Next, Set, Slot, Start};
use braid_md_text::next::command;
use braid_stack::ByteSize;

use super::Taken;
use braid_service::control::OUTPUT_VERSION;
use braid_service::volume::log_troubles;

/// Verdict on an array.
pub(super) struct Verdict<'a> {
    pub(super) set: &'a Set,
    pub(super) assembly: Assembly,
    /// The array can be started with the given options.
    pub(super) is_accepted: bool,
    /// Commands that lead on.
    pub(super) next: Vec<Next>,
}

/// `data (8c3d…)`, or the identifier alone.
pub(super) fn title(set: &Set) -> String {
    match set.short_name() {
        "" => set.uuid.to_string(),
        name => format!("{} ({})", name.escape_debug(), set.uuid),
    }
}

pub(super) fn print(verdicts: &[Verdict<'_>], taken: Option<&Taken>) {
    verdicts.iter().for_each(print_verdict);
    if let Some(taken) = taken {
        if let Some((count, number)) = taken.rewritten {
            println!("{count} superblocks were rewritten: `braid undo {number}` puts them back");
        }
        println!("{} was written", taken.config.display());
        println!("  next: {}", taken.next);
    } else if verdicts.len() > 1 && verdicts.iter().all(|verdict| verdict.is_accepted) {
        println!("several arrays were found; `braid assemble … --uuid UUID` takes one");
    }
}

fn print_verdict(verdict: &Verdict<'_>) {
    let Verdict { set, assembly, .. } = verdict;
    let array = &set.candidates()[assembly.freshest].superblock;
    let size = assembly.array_size.map(|size| format!(", {:#}", ByteSize(size)));
    println!(
        "{}: {} of {} members, metadata {}{}",
        title(set),
        array.level,
        array.raid_disks,
        array.version,
        size.unwrap_or_default()
    );
    println!("  state: {assembly}");
    for (role, slot) in assembly.slots.iter().enumerate() {
        println!("  role {role}: {}", slot_in_words(slot));
    }
    for (role, member, filled) in &assembly.replacements {
        println!("  role {role}: {} replaces it, filled up to {filled} bytes", member.label);
    }
    for spare in &assembly.spares {
        println!("  spare: {}", spare.label);
    }
    if let Some(journal) = &assembly.journal {
        println!("  journal: {}", journal.label);
    }
    for left_out in &assembly.left_out {
        println!("  left out: {}: {}", left_out.label, left_out.reason);
    }
    for (member, why) in log_troubles(set, assembly) {
        println!("  log not used: {member}: {why}");
    }
    for risk in &assembly.risks {
        println!("  risk: {risk}");
    }
    if let Some(other) = set.name_conflict {
        println!("  another array has the same name: {other}");
    }
    for next in verdict.next.iter().map(command) {
        println!("  next: {next}");
    }
}

fn slot_in_words(slot: &Slot) -> String {
    match slot {
        Slot::InSync(member) => format!("{}, in sync", member.label),
        Slot::Recovering { member, by_bitmap: true, .. } => {
            format!("{}, lacks what the bitmap says", member.label)
        }
        Slot::Recovering { member, from, .. } => {
            format!("{}, being rebuilt, at {from} bytes", member.label)
        }
        Slot::Missing => "missing".to_owned(),
    }
}

pub(super) fn print_json(verdicts: &[Verdict<'_>], taken: Option<&Taken>) {
    let arrays: Vec<serde_json::Value> = verdicts.iter().map(describe).collect();
    println!(
        "{}",
        serde_json::json!({
            "output_version": OUTPUT_VERSION,
            "arrays": arrays,
            "record": taken.map(|taken| &taken.config),
            "rewritten_superblocks": taken.and_then(|taken| taken.rewritten).map_or(0, |(n, _)| n),
            "undo": taken.and_then(|taken| taken.rewritten).map(|(_, number)| number),
            "next": taken.map(|taken| &taken.next),
        })
    );
}

fn describe(verdict: &Verdict<'_>) -> serde_json::Value {
    let Verdict { set, assembly, is_accepted, next } = verdict;
    let array = &set.candidates()[assembly.freshest].superblock;
    let member = |member: &Member| {
        serde_json::json!({
            "path": member.label,
            "data_offset_bytes": member.data_offset,
            "used_bytes": member.usable,
        })
    };
    let slot = |slot: &Slot| {
        let (state, from) = match slot {
            Slot::InSync(_) => ("in_sync", None),
            Slot::Recovering { from, .. } => ("recovering", Some(*from)),
            Slot::Missing => ("missing", None),
        };
        serde_json::json!({
            "state": state,
            "member": slot.member().map(member),
            "recovered_bytes": from,
        })
    };
    let left_out = assembly.left_out.iter().map(|one| {
        serde_json::json!({
            "path": one.label,
            "why": one.reason.to_string(),
            "re_add_role": one.re_add,
        })
    });
    serde_json::json!({
        "uuid": set.uuid.to_string(),
        "name": set.name,
        "level": array.level.to_string(),
        "layout_number": array.layout,
        "chunk_bytes": array.chunk,
        "metadata_version": array.version.to_string(),
        "raid_disks": array.raid_disks,
        "events": array.events,
        "array_bytes": assembly.array_size,
        "state": assembly.state.to_string(),
        "can_start": match assembly.can_start {
            Start::Refused => "no",
            Start::ReadOnly => "read_only",
            Start::ReadWrite => "yes",
        },
        "accepted": is_accepted,
        "roles": assembly.slots.iter().map(slot).collect::<Vec<_>>(),
        "spares": assembly.spares.iter().map(member).collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
        "logs_not_used": log_troubles(set, assembly)
            .into_iter()
            .map(|(path, why)| serde_json::json!({ "path": path, "why": why }))
            .collect::<Vec<_>>(),
        "risks": assembly.risks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "name_conflict": set.name_conflict.map(|uuid| uuid.to_string()),
        "next": next.iter().map(command).collect::<Vec<_>>(),
    })
}
