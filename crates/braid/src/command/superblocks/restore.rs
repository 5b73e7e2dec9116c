//! `braid superblocks restore`: superblocks of a copy, written to members that lost theirs.
//!
//! ```text
//!   copy, members ──match──▶ targets ──judge──▶ free, the same devices ──┬─ has its superblock: kept
//!                                                                        └─ lost it: planned, saved, written
//! ```
//!
//! Invariants
//! * A member whose superblock is in order is not written.
//! * If other members went on since the copy, a superblock agrees with the freshest of theirs, and a member
//!   that they call out of the array gets none: it would be taken for fresh.
//! * A bitmap that is still there stays. One that was lost is marked as out of date: all of it is resynchronised.

use std::path::{Path, PathBuf};

use braid_md::superblock::{OfMember, Recovery};
use braid_md::{BitmapHeader, Features, Role, Superblock};
use braid_shell::{shell_path, shown};

use super::super::given;
use super::{copies, copy_of};
use crate::cli::SuperblocksRestore;
use braid_service::control::{self, OUTPUT_VERSION};
use braid_service::examined::Examined;
use braid_service::failure::Failure;
use braid_service::metadata::{Carries, Change, Image, Kept, KeptMember, Patch, Saved, Trail};
use braid_service::places::Places;
use braid_service::record::Seen;

/// A member that is to have its superblock.
struct Target<'a> {
    kept: &'a KeptMember,
    carries: Carries,
    path: PathBuf,
    image: Image,
}

pub(super) fn restore(options: &SuperblocksRestore) -> Result<(), Failure> {
    let kept = copy_of(&options.copy)?;
    check_latest(options, &kept)?;
    check_down(&kept)?;
    let targets = targets(options, &kept)?;
    let paths: Vec<PathBuf> = targets.iter().map(|one| one.path.clone()).collect();
    let forced = given::named_again("--force", &options.force, &paths)?;
    let is_own = |one: &&Target<'_>| one.own().is_some() || is_of(&one.image, &kept);
    let own = targets.iter().filter(is_own).map(|one| one.path.clone());
    let accepted: Vec<PathBuf> = forced.iter().cloned().chain(own).collect();
    let examined = Examined::judge(&paths, &accepted)?;
    for (target, now) in targets.iter().zip(&examined) {
        target.check(now.seen(), forced.contains(&target.path))?;
    }
    let fresh = freshest(&kept, &targets);
    let mut patches = Vec::new();
    for (member, target) in targets.iter().enumerate() {
        if target.own().is_none() {
            patches.extend(target.patches(member, examined[member].size(), fresh.as_ref())?);
        }
    }
    let number = match options.plan || patches.is_empty() {
        true => None,
        false => {
            let members = examined.iter().map(Examined::hold).collect::<Result<Vec<_>, _>>()?;
            let saved = Saved {
                arrays: vec![kept.array.clone()],
                members: examined.iter().map(Examined::known).collect(),
                ..Saved::new("superblocks restore")
            };
            let change = Change { members, patches: patches.clone() };
            Some(
                change
                    .carry_out(&Trail::new(Places::from_environment().undo()), saved, || Ok(()))?,
            )
        }
    };
    match options.json {
        true => print_json(&targets, &patches, number),
        false => print(&targets, &patches, number),
    }
    Ok(())
}

/// A later copy tells of later members.
fn check_latest(options: &SuperblocksRestore, kept: &Kept) -> Result<(), Failure> {
    let events = |kept: &Kept| super::freshest(kept).map(|one| one.superblock.events);
    let later = copies()
        .list()
        .into_iter()
        .find(|one| one.array == kept.array && events(one) > events(kept));
    match later.filter(|_| !options.older) {
        None => Ok(()),
        Some(later) => Err(Failure::refused(format!(
            "copy {} of this array is later: since this one its members changed, and one that left would be \
             taken for fresh",
            later.number
        ))
        .next(format!(
            "`braid superblocks restore {}`; or --older, if the later one is of a mistake",
            later.number
        ))),
    }
}

/// Refuses an array that a volume serves.
fn check_down(kept: &Kept) -> Result<(), Failure> {
    let places = Places::from_environment();
    let names = places.running_names()?;
    let sockets: Vec<PathBuf> = names.iter().map(|name| places.control(name)).collect();
    let statuses = control::get_statuses(&sockets).into_iter();
    let serves = |status: &control::Status| {
        status.arrays.iter().any(|one| one.uuid.as_ref() == Some(&kept.array))
    };
    match names.iter().zip(statuses).find(|(_, status)| status.as_ref().is_ok_and(serves)) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::refused(format!(
            "the array is up as {name}, and writes its superblocks itself"
        ))
        .next(format!("braid down {name}"))),
    }
}

/// The members that are meant, each with its part of the copy.
fn targets<'a>(options: &SuperblocksRestore, kept: &'a Kept) -> Result<Vec<Target<'a>>, Failure> {
    let mut found = Vec::new();
    let understood = |one: &KeptMember| {
        one.carried().map_err(|why| {
            let path = shown(&one.known.path.display().to_string()).into_owned();
            Failure::failed(format!("what the copy has of {path} cannot be used: {why}"))
        })
    };
    for member in kept.members.iter().filter(|_| options.members.is_empty()) {
        let path = member.known.path.clone();
        if path.exists() {
            found.push((member, path));
        } else {
            let path = shell_path(&path);
            eprintln!("braid: passed over: {path} is not there; if it is elsewhere: ID=PATH");
        }
    }
    for given in &options.members {
        found.push(matched(given, kept)?);
    }
    if found.is_empty() {
        return Err(Failure::failed("none of the members is where it was")
            .next("name them: ID=PATH, with the IDs that `braid superblocks show` has"));
    }
    let target = |(member, path): (&'a KeptMember, PathBuf)| {
        Ok(Target { kept: member, carries: understood(member)?, image: Image::open(&path)?, path })
    };
    found.into_iter().map(target).collect()
}

/// The member that `given` means: by its ID, by what it is, by its superblock, or by its path.
fn matched<'a>(given: &Path, kept: &'a Kept) -> Result<(&'a KeptMember, PathBuf), Failure> {
    let text = given.to_string_lossy();
    if let Some((id, path)) = text.split_once('=')
        && let Ok(id) = id.parse::<u32>()
    {
        let path = given::absolute(&[path.into()])?.remove(0);
        let is_it =
            |one: &&KeptMember| one.carried().is_ok_and(|it| it.superblock.device_number == id);
        let member = kept.members.iter().find(is_it);
        return member.map(|one| (one, path)).ok_or_else(|| {
            Failure::usage(format!("the copy has no member with ID {id}"))
                .next("`braid superblocks show`")
        });
    }
    let path = given::absolute(&[given.to_owned()])?.remove(0);
    let seen = Seen::at(&path);
    let carried = Image::open(&path)?.best().and_then(|one| one.result.clone().ok());
    let by_identity = |one: &&KeptMember| seen.as_ref().is_some_and(|seen| one.known.is(seen));
    let by_superblock = |one: &&KeptMember| {
        let is_same =
            |it: &Superblock| one.carried().is_ok_and(|own| is_member(it, &own.superblock));
        carried.as_ref().is_some_and(is_same)
    };
    let members = || kept.members.iter();
    let member = members()
        .find(by_identity)
        .or_else(|| members().find(by_superblock))
        .or_else(|| members().find(|one| one.known.path == path));
    member.map(|one| (one, path.clone())).ok_or_else(|| {
        let shown = shell_path(&path);
        Failure::refused(format!("{shown} is none of the members of the copy"))
            .next(format!("if it is a copy of one: ID={shown} --force {shown}; `show` has the IDs"))
    })
}

/// Returns whether both describe the same member of the same array.
fn is_member(one: &Superblock, other: &Superblock) -> bool {
    one.array_uuid == other.array_uuid
        && one.device_uuid == other.device_uuid
        && one.device_number == other.device_number
}

/// Returns whether a member carries a valid superblock of the array.
fn is_of(image: &Image, kept: &Kept) -> bool {
    let best = image.best().and_then(|one| one.result.as_ref().ok());
    best.is_some_and(|one| one.array_uuid.to_string() == kept.array)
}

/// The freshest superblock in order, of all members of the copy, with its bitmap.
fn freshest(kept: &Kept, targets: &[Target<'_>]) -> Option<Carries> {
    let elsewhere = kept.members.iter().filter_map(|one| Image::open(&one.known.path).ok());
    let elsewhere: Vec<Image> = elsewhere.filter(|image| is_of(image, kept)).collect();
    let all =
        targets.iter().map(|one| &one.image).chain(&elsewhere).filter(|image| is_of(image, kept));
    let carries = |image: &Image| {
        let superblock = image.best()?.result.clone().ok()?;
        let bytes = image.bitmap(&superblock).ok().flatten();
        let bitmap = bytes.and_then(|bytes| BitmapHeader::parse(&bytes).ok());
        Some(Carries { superblock, bitmap, bad_blocks: None })
    };
    all.filter_map(carries).max_by_key(|one| one.superblock.events)
}

impl Target<'_> {
    /// Its superblock, if that is in order.
    fn own(&self) -> Option<&Superblock> {
        let best = self.image.best()?.result.as_ref().ok()?;
        Some(best).filter(|own| is_member(own, &self.carries.superblock))
    }

    fn shown(&self) -> String {
        shown(&self.path.display().to_string()).into_owned()
    }

    /// Checks that the device is the same as before, or was named again.
    fn check(&self, now: Seen, is_forced: bool) -> Result<(), Failure> {
        let then = &self.kept.known;
        let next = || format!("if it is a copy of it: --force {}", shell_path(&self.path));
        if is_forced {
            return Ok(());
        }
        if then.size_bytes != now.size_bytes {
            let (now, then) = (now.size_bytes, then.size_bytes);
            return Err(Failure::refused(format!(
                "{} has {now} bytes, and had {then}",
                self.shown()
            ))
            .next(next()));
        }
        if !then.is(&now) {
            return Err(Failure::refused(format!(
                "{} is another device than it was: {}, then {}",
                self.shown(),
                now.identity(),
                then.identity
            ))
            .next(next()));
        }
        Ok(())
    }

    /// The changes to it, a device of `size` bytes.
    fn patches(
        &self,
        member: usize,
        size: u64,
        fresh: Option<&Carries>,
    ) -> Result<Vec<Patch>, Failure> {
        let carries = self.kept.carries(size).map_err(|why| {
            Failure::refused(format!("{} cannot have this superblock: {why}", self.shown()))
                .next("a device of the size that the copy names")
        })?;
        let superblock = self.agreed(carries.superblock, fresh)?;
        let mut patches = Vec::new();
        let mut patch = |at: Option<u64>, what, bytes: Vec<u8>| {
            patches.extend(at.map(|offset| Patch { member, offset, what, bytes }));
        };
        let at = |offset: i64| superblock.super_offset.checked_add_signed(offset);
        if let (Some(log), Some(place)) = (carries.bad_blocks, superblock.bad_block_log) {
            // Entries of what is there now are in the data.
            let there = self.image.bad_blocks(&superblock).ok().flatten();
            let is_sound = there.is_some_and(|one| {
                !one.is_empty() && one.iter().all(|range| range.offset >= superblock.data_offset)
            });
            if !is_sound {
                patch(at(place.offset), "bad-block log", log.encode());
            }
        }
        if let Some(place) = superblock.bitmap_offset {
            let bytes = self.image.bitmap(&superblock)?.unwrap_or_default();
            let is_own = |one: BitmapHeader| one.uuid.0 == superblock.uuid_on_disk();
            let header = fresh.and_then(|one| one.bitmap.clone()).or(carries.bitmap);
            if let (false, Some(header)) = (BitmapHeader::parse(&bytes).is_ok_and(is_own), header) {
                let header = BitmapHeader { stale: true, ..header };
                patch(at(place), "header of the bitmap", header.encode().to_vec());
            }
        }
        patch(Some(superblock.super_offset), "superblock", superblock.encode());
        Ok(patches)
    }

    /// Its superblock as of the copy, or of the freshest member, if that has been written since.
    fn agreed(&self, own: Superblock, fresh: Option<&Carries>) -> Result<Superblock, Failure> {
        let Some(array) = fresh.map(|one| &one.superblock).filter(|one| one.events >= own.events)
        else {
            return Ok(own);
        };
        let role = array.roles.get(own.device_number as usize).copied().unwrap_or(Role::Spare);
        if role != own.role() {
            return Err(Failure::refused(format!(
                "{} was {} in the copy, and the other members say by now that it is {}",
                self.shown(),
                super::role_in_words(own.role()),
                super::role_in_words(role)
            ))
            .next("restore the others; then `braid member add` takes it in"));
        }
        let recovery = own.recovery_offset.map(|filled| Recovery {
            filled,
            by_bitmap: own.features.contains(Features::RECOVERY_BITMAP),
        });
        let of = OfMember {
            number: own.device_number,
            data_size: own.data_size,
            corrected_reads: own.corrected_reads,
            recovery,
            is_replacement: own.is_replacement(),
            has_bad_blocks: own.features.contains(Features::BAD_BLOCKS),
        };
        Ok(array.of_member(&own, of))
    }
}

fn print(targets: &[Target<'_>], patches: &[Patch], number: Option<u64>) {
    let verb = if number.is_some() { "was" } else { "would be" };
    for (member, target) in targets.iter().enumerate() {
        if target.own().is_some() {
            println!("{}: its superblock is in order and stays", target.shown());
        }
        for Patch { offset, what, bytes, .. } in patches.iter().filter(|one| one.member == member) {
            println!(
                "{}: the {what}, {} bytes at {offset}, {verb} written",
                target.shown(),
                bytes.len()
            );
        }
    }
    match number {
        Some(number) => {
            println!("  `braid undo {number}` puts back what was overwritten");
            let all = targets.iter().map(|one| shell_path(&one.path));
            println!("  next: braid assemble {}", all.collect::<Vec<_>>().join(" "));
            println!(
                "  then, when it is up: braid scrub NAME, which compares what the members hold"
            );
        }
        None => println!("nothing was written"),
    }
}

fn print_json(targets: &[Target<'_>], patches: &[Patch], number: Option<u64>) {
    let write = |patch: &Patch| {
        serde_json::json!({
            "member": targets[patch.member].path,
            "offset_bytes": patch.offset,
            "length_bytes": patch.bytes.len(),
            "what": patch.what,
        })
    };
    let in_order = targets.iter().filter(|one| one.own().is_some()).map(|one| &one.path);
    let json = serde_json::json!({
        "output_version": OUTPUT_VERSION,
        "in_order": in_order.collect::<Vec<_>>(),
        "writes": patches.iter().map(write).collect::<Vec<_>>(),
        "written": number.is_some(),
        "undo": number,
    });
    println!("{json}");
}
