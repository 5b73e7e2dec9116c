//! `braid create`: a new md array, from the request to superblocks and `NAME.toml`.
//!
//! ```text
//!   members ──judge──▶ facts ──plan──▶ Plan ──┬─ --plan: printed, the end
//!                                             └─ held, saved, written ──▶ NAME.toml
//! ```

use std::path::{Path, PathBuf};

use braid_md::create::{
    BitmapChoice, Consistency, Device, Place, Plan, Planned, Request, What, plan,
};
use braid_md::superblock::SUPERBLOCK_BYTES;
use braid_md::{Level, Resync, Role, Superblock};
use braid_stack::{ByteSize, Stack};

use super::past::{self, Wanted};
use super::{given, stacks};
use crate::cli::{BitmapArg, ConsistencyArg, Create};
use braid_service::control::{ErrorCode, OUTPUT_VERSION};
use braid_service::examined::Examined;
use braid_service::failure::Failure;
use braid_service::metadata::{
    Change, Copies, Held, Patch, Saved, Trail, allocate, host_name, now, random_uuid,
};
use braid_service::places::{Places, check_name};
use braid_service::record::Record;

/// Placeholder for a vacant role.
const MISSING: &str = "missing";

pub(super) fn create(create: &Create) -> Result<(), Failure> {
    check_name(&create.name)?;
    let places = Places::from_environment();
    let config = places.config_file(&create.name);
    refuse_if_known(&create.name, &config)?;
    let given: Vec<PathBuf> =
        create.members.iter().filter(|path| !is_missing(path)).cloned().collect();
    let paths = given::absolute(&[given, create.spare.clone()].concat())?;
    let accepted = given::named_again("--force", &create.force, &paths)?;
    let notes = past::notes(&paths, &wanted(create));
    notes.iter().for_each(|note| eprintln!("braid: note: {note}"));
    let examined = Examined::judge(&paths, &accepted)?;
    let request = request(create, &examined)?;
    let plan = plan(&request).map_err(Failure::usage)?;
    let stack = stacks::md(None, &paths)?;
    if create.plan {
        print_plan(create, &plan, &config, &notes, false);
        return Ok(());
    }
    let copies = Copies::own();
    // Of arrays that end here.
    copies.keep_or_warn("create over it", &paths);
    write(create, &places, &plan, &examined, stack)?;
    copies.keep_or_warn("create", &paths);
    match create.json {
        true => print_plan(create, &plan, &config, &notes, true),
        false => print_done(create, &plan),
    }
    Ok(())
}

fn wanted(create: &Create) -> Wanted {
    Wanted {
        level: create.level,
        version: create.metadata,
        chunk: create.chunk.map(ByteSize::bytes),
        assume_clean: create.assume_clean,
    }
}

fn is_missing(path: &Path) -> bool {
    path.as_os_str() == MISSING
}

fn refuse_if_known(name: &str, config: &Path) -> Result<(), Failure> {
    if !config.exists() {
        return Ok(());
    }
    Err(Failure::refused(format!("there is a volume called {name}: {}", config.display()))
        .next(format!(
            "another name; or `braid forget {name}`, which leaves the members as they are"
        ))
        .code(ErrorCode::NameTaken))
}

fn request(create: &Create, examined: &[Examined]) -> Result<Request, Failure> {
    let paths: Vec<PathBuf> = examined.iter().map(|one| one.path().to_owned()).collect();
    let write_mostly = given::named_again("--write-mostly", &create.write_mostly, &paths)?;
    let device = |one: &Examined| -> Result<Device, Failure> {
        Ok(Device {
            label: one.path().display().to_string(),
            size: one.size(),
            uuid: random_uuid()?,
            write_mostly: write_mostly.iter().any(|path| path == one.path()),
        })
    };
    let mut devices = examined.iter().map(device).collect::<Result<Vec<_>, _>>()?.into_iter();
    let mut roles = Vec::new();
    for path in &create.members {
        roles.push(match is_missing(path) {
            true => Place::Missing,
            false => Place::Device(devices.next().expect("facts of each member")),
        });
    }
    let bytes = |size: Option<ByteSize>| size.map(ByteSize::bytes);
    Ok(Request {
        level: create.level,
        layout: create.layout.clone(),
        version: create.metadata,
        chunk: bytes(create.chunk),
        members: roles,
        spares: devices.collect(),
        size: bytes(create.size),
        data_offset: bytes(create.data_offset),
        bitmap: match create.bitmap {
            None => BitmapChoice::Default,
            Some(BitmapArg::None) => BitmapChoice::None,
            Some(BitmapArg::Internal) => BitmapChoice::Internal { chunk: None },
            Some(BitmapArg::Chunk(chunk)) => BitmapChoice::Internal { chunk: Some(chunk.bytes()) },
        },
        consistency: create.consistency.map(|policy| match policy {
            ConsistencyArg::Resync => Consistency::Resync,
            ConsistencyArg::Bitmap => Consistency::Bitmap,
            ConsistencyArg::Ppl => Consistency::Ppl,
            ConsistencyArg::Log => Consistency::Log,
        }),
        write_behind: create.write_behind.unwrap_or(0),
        assume_clean: create.assume_clean,
        array_uuid: match create.uuid {
            Some(uuid) => uuid,
            None => random_uuid()?,
        },
        name: create.name.clone(),
        homehost: match create.homehost.as_deref() {
            Some("none" | "") => None,
            Some(host) => Some(host.to_owned()),
            None => Some(host_name()),
        },
        created: now(),
    })
}

/// Writes all that is planned, and the record, or nothing.
fn write(
    create: &Create,
    places: &Places,
    plan: &Plan,
    examined: &[Examined],
    stack: Stack,
) -> Result<(), Failure> {
    let held = examined.iter().map(Examined::hold).collect::<Result<Vec<_>, _>>()?;
    // The plan has its members in an order of its own.
    let index = |planned: &Planned| {
        let is_it = |one: &Examined| one.path().display().to_string() == planned.label;
        examined.iter().position(is_it).expect("what is planned is a member")
    };
    let patches = plan.writes().map(|write| Patch {
        member: index(&plan.members[write.area.member]),
        offset: write.area.offset,
        what: what_in_words(write.area.what),
        bytes: write.bytes,
    });
    let mut patches: Vec<Patch> = patches.collect();
    let older = older_superblocks(&held, &patches)?;
    // What was there goes first: a crash leaves members of nothing, not of two arrays.
    patches.splice(0..0, older);
    for planned in &plan.members {
        allocate(examined[index(planned)].path(), &plan.log_areas(planned))?;
    }
    let change = Change { members: held, patches };
    let array = array_of(plan);
    let config = places.config_file(&create.name);
    let saved = Saved {
        names: vec![create.name.clone()],
        arrays: vec![array.array_uuid.to_string()],
        record: Some((config.clone(), stack.to_string())),
        members: examined.iter().map(Examined::known).collect(),
        ..Saved::new("create")
    };
    let remember = || {
        let mut record = Record::new(stack);
        let known = |one: &Examined| {
            let label = one.path().display().to_string();
            let planned = plan.members.iter().find(|planned| planned.label == label);
            let planned = planned.expect("each member is planned");
            one.known().carrying(&planned.superblock)
        };
        // A remote member is known by its superblock alone.
        record.members = examined.iter().filter(|one| !one.is_remote()).map(known).collect();
        places.prepare_config()?;
        record.write(&config)
    };
    change.carry_out(&Trail::new(places.undo()), saved, remember).map(drop)
}

/// Returns patches that remove md superblocks of all versions where no new one is written. An older
/// superblock would be the member's second one.
fn older_superblocks(held: &[Held], patches: &[Patch]) -> Result<Vec<Patch>, Failure> {
    let mut older = Vec::new();
    for (member, held) in held.iter().enumerate() {
        for found in held.image()?.found {
            let start = found.offset;
            let is_in = |at: u64, patch: &&Patch| {
                patch.member == member
                    && (patch.offset..patch.offset + patch.bytes.len() as u64).contains(&at)
            };
            // With its first bytes it is gone.
            if patches.iter().any(|patch| is_in(start, &patch)) {
                continue;
            }
            let behind = patches.iter().filter(|patch| patch.member == member);
            let next = behind.map(|patch| patch.offset).filter(|offset| *offset > start).min();
            let end = next.unwrap_or(u64::MAX).min(start + SUPERBLOCK_BYTES as u64);
            older.push(Patch {
                member,
                offset: start,
                what: "older superblock",
                bytes: vec![0; (end - start) as usize],
            });
        }
    }
    Ok(older)
}

fn array_of(plan: &Plan) -> &Superblock {
    &plan.members.first().expect("an array has members").superblock
}

fn what_in_words(what: What) -> &'static str {
    match what {
        What::Bitmap => "bitmap",
        What::Ppl => "partial parity log",
        What::StripeLog => "head of the stripe log",
        What::BadBlockLog => "bad-block log",
        What::Superblock => "superblock",
    }
}

fn has_parity(level: Level) -> bool {
    matches!(level, Level::Raid4 | Level::Raid5 | Level::Raid6)
}

/// Describes how the write hole of an array with parity is closed.
fn protection(plan: &Plan) -> Option<String> {
    let array = array_of(plan);
    if !has_parity(array.level) {
        return None;
    }
    Some(match (array.ppl, plan.stripe_log, plan.bitmap) {
        (Some(_), ..) => "its write hole is closed by md's partial parity log".to_owned(),
        (_, Some(area), _) => format!(
            "its write hole is closed by braid's stripe log, {:#} in front of each member's data",
            ByteSize(area)
        ),
        (_, _, Some(_)) => {
            "its write hole is open: after a crash what the bitmap says is resynchronised"
                .to_owned()
        }
        _ => "its write hole is open: after a crash all of it is resynchronised".to_owned(),
    })
}

/// The next command.
fn next(create: &Create) -> String {
    format!("braid up {}", create.name)
}

fn print_done(create: &Create, plan: &Plan) {
    let array = array_of(plan);
    println!(
        "{} is created: {} of {} members, {:#}, {}",
        create.name,
        array.level,
        array.raid_disks,
        ByteSize(plan.array_size),
        array.array_uuid
    );
    if array.resync != Resync::Clean {
        let what = match has_parity(array.level) {
            true => "its parity is made",
            false => "its copies are made equal",
        };
        println!("  {what} when it is up: it can be used meanwhile");
    }
    if let Some(text) = protection(plan) {
        println!("  {text}");
    }
    println!("  what was overwritten is saved: `braid undo {}` puts it back", create.name);
    println!("  next: {}", next(create));
}

fn print_plan(create: &Create, plan: &Plan, config: &Path, notes: &[String], is_written: bool) {
    if create.json {
        let mut json = plan_as_json(create, plan, config, is_written);
        json["notes"] = notes.into();
        println!("{json}");
        return;
    }
    let mut lines = plan.explain().into_iter();
    println!("{}: {}", create.name, lines.next().unwrap_or_default());
    lines.for_each(|line| println!("  {line}"));
    if let Some(text) = protection(plan) {
        println!("  {text}");
    }
    println!("  write {}", config.display());
    println!("  before, what lies there is saved for `braid undo {}`", create.name);
    println!("nothing was written");
}

fn plan_as_json(
    create: &Create,
    plan: &Plan,
    config: &Path,
    is_written: bool,
) -> serde_json::Value {
    let array = array_of(plan);
    let member = |planned: &Planned| {
        let superblock = &planned.superblock;
        let role = match superblock.role() {
            Role::Active(role) => Some(role),
            _ => None,
        };
        serde_json::json!({
            "path": planned.label,
            "role": role,
            "device_number": superblock.device_number,
            "device_uuid": superblock.device_uuid.to_string(),
            "super_offset_bytes": superblock.super_offset,
            "data_offset_bytes": superblock.data_offset,
            "data_bytes": superblock.data_size,
            "write_mostly": superblock.write_mostly,
        })
    };
    let write = |area: braid_md::create::Area| {
        serde_json::json!({
            "member": plan.members[area.member].label,
            "offset_bytes": area.offset,
            "length_bytes": area.len,
            "what": what_in_words(area.what),
        })
    };
    serde_json::json!({
        "output_version": OUTPUT_VERSION,
        "name": create.name,
        "uuid": array.array_uuid.to_string(),
        "metadata_version": array.version.to_string(),
        "level": array.level.to_string(),
        "layout_number": array.layout,
        "chunk_bytes": array.chunk,
        "raid_disks": array.raid_disks,
        "component_bytes": array.component_size,
        "array_bytes": plan.array_size,
        "clean": array.resync == Resync::Clean,
        "bitmap_chunk_bytes": plan.bitmap.map(|bitmap| bitmap.chunk),
        "ppl_bytes": array.ppl.map(|(_, size)| size),
        "stripe_log_bytes": plan.stripe_log,
        "members": plan.members.iter().map(member).collect::<Vec<_>>(),
        "writes": plan.areas().into_iter().map(write).collect::<Vec<_>>(),
        "record": config,
        "written": is_written,
        "next": next(create),
    })
}
