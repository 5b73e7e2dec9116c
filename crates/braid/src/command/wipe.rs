//! `braid wipe`: members without md's superblocks, and without the head of a stripe log, which
//! would be found again when an array is made there.

use std::path::Path;

use braid_md::detect::Found;
use braid_md::stripe_log::{self, BLOCK};
use braid_md::superblock::SUPERBLOCK_BYTES;

use super::given;
use crate::cli::Wipe;
use braid_service::control::OUTPUT_VERSION;
use braid_service::examined::Examined;
use braid_service::failure::Failure;
use braid_service::metadata::{Change, Copies, Image, Patch, Saved, Trail, stripe_log_head};
use braid_service::places::Places;

pub(super) fn wipe(wipe: &Wipe) -> Result<(), Failure> {
    let paths = given::absolute(&wipe.members)?;
    // What else they carry is not touched, and so is nothing to be asked about.
    let examined = Examined::judge(&paths, &paths)?;
    let images = paths.iter().map(|path| Image::open(path)).collect::<Result<Vec<_>, _>>()?;
    let is_meant = |found: &&Found| wipe.metadata.is_none_or(|version| version == found.version);
    let mut removals = Vec::new();
    let mut bare = Vec::new();
    for (member, image) in images.iter().enumerate() {
        if !image.found.iter().any(|found| is_meant(&found)) {
            bare.push(match (wipe.metadata, image.found.is_empty()) {
                (Some(version), false) => {
                    format!("{} has no md superblock of version {version}", image.path.display())
                }
                _ => format!("{} has no md superblock: {}", image.path.display(), image.places()),
            });
        }
        for found in image.found.iter().filter(is_meant) {
            removals.push(Removal::of(member, image, found)?);
        }
    }
    // One that has none is as it is to be; if none has any, something else was meant.
    match &bare[..] {
        [first, ..] if removals.is_empty() => return Err(Failure::failed(first)),
        bare => bare.iter().for_each(|bare| eprintln!("braid: passed over: {bare}")),
    }
    let number = match wipe.plan {
        true => None,
        false => {
            Copies::own().keep_or_warn("wipe", &paths);
            Some(write(&removals, &examined)?)
        }
    };
    match wipe.json {
        true => print_json(&removals, number),
        false => print(&removals, number),
    }
    Ok(())
}

/// A superblock, and what goes with it.
struct Removal<'a> {
    /// Which member, by its index.
    member: usize,
    path: &'a Path,
    found: &'a Found,
    /// Offset of the header of the member's stripe log, valid or not.
    log_head: Option<u64>,
}

impl Removal<'_> {
    fn of<'a>(member: usize, image: &'a Image, found: &'a Found) -> Result<Removal<'a>, Failure> {
        let log_head = match &found.result {
            Ok(superblock) => stripe_log_head(image, superblock)?
                .and_then(|_| stripe_log::place(superblock))
                .map(|place| place.head),
            Err(_) => None,
        };
        Ok(Removal { member, path: &image.path, found, log_head })
    }

    fn describe(&self, tense: &str) {
        let Found { version, offset, result, .. } = self.found;
        let path = self.path.display();
        let of = match result {
            Ok(superblock) => format!("array {}", superblock.array_uuid),
            Err(_) => "a damaged one".to_owned(),
        };
        println!(
            "{path}: the superblock of version {version} at byte {offset} ({of}) {tense} removed"
        );
        if let Some(offset) = self.log_head {
            println!("{path}: the head of its stripe log at byte {offset} {tense} removed");
        }
    }
}

/// Prints the removed superblocks, or those that would be removed; `number` is that of the change.
fn print(removals: &[Removal<'_>], number: Option<u64>) {
    let tense = if number.is_some() { "was" } else { "would be" };
    removals.iter().for_each(|removal| removal.describe(tense));
    match number {
        Some(number) => println!("  `braid undo {number}` puts back what was overwritten"),
        None => println!("nothing was written"),
    }
}

fn print_json(removals: &[Removal<'_>], number: Option<u64>) {
    let describe = |removal: &Removal<'_>| {
        let Found { version, offset, result, .. } = removal.found;
        serde_json::json!({
            "path": removal.path,
            "metadata_version": version.to_string(),
            "super_offset_bytes": offset,
            "array_uuid": result.as_ref().ok().map(|one| one.array_uuid.to_string()),
            "stripe_log_head_bytes": removal.log_head,
        })
    };
    println!(
        "{}",
        serde_json::json!({
            "output_version": OUTPUT_VERSION,
            "superblocks": removals.iter().map(describe).collect::<Vec<_>>(),
            "written": number.is_some(),
            "undo": number,
        })
    );
}

/// Overwrites each superblock and log header with zeroes. Returns the number of the change.
fn write(removals: &[Removal<'_>], examined: &[Examined]) -> Result<u64, Failure> {
    let places = Places::from_environment();
    let held = examined.iter().map(Examined::hold).collect::<Result<Vec<_>, _>>()?;
    let mut patches = Vec::new();
    let mut saved = Saved::new("wipe");
    for &Removal { member, found, log_head, .. } in removals {
        let bytes = vec![0; SUPERBLOCK_BYTES];
        patches.push(Patch { member, offset: found.offset, what: "superblock", bytes });
        if let Some(offset) = log_head {
            let (what, bytes) = ("head of the stripe log", vec![0; BLOCK]);
            patches.push(Patch { member, offset, what, bytes });
        }
        if let Ok(superblock) = &found.result {
            saved.names.push(without_host(&superblock.name).to_owned());
            saved.arrays.push(superblock.array_uuid.to_string());
        }
    }
    for list in [&mut saved.names, &mut saved.arrays] {
        list.sort();
        list.dedup();
        list.retain(|text| !text.is_empty());
    }
    saved.members = examined.iter().map(Examined::known).collect();
    let change = Change { members: held, patches };
    change.carry_out(&Trail::new(places.undo()), saved, || Ok(()))
}

/// An array's name without the host that it belongs to.
fn without_host(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_host, name)| name)
}
