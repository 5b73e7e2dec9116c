//! `braid wipe`: members without md's superblocks, and without the head of a stripe log, which
//! would be found again when an array is made there.

use braid_md::detect::Found;
use braid_md::stripe_log::{self, BLOCK};
use braid_md::superblock::SUPERBLOCK_BYTES;
use braid_probe::MemberFacts;

use super::given;
use crate::cli::Wipe;
use crate::control::OUTPUT_VERSION;
use crate::failure::Failure;
use crate::metadata::{Change, Held, Image, Patch, Saved, Trail, stripe_log_head};
use crate::places::Places;
use crate::record::Known;

pub(super) fn wipe(wipe: &Wipe) -> Result<(), Failure> {
    let paths = given::absolute(&wipe.members)?;
    // What else they carry is not touched, and so is nothing to be asked about.
    let facts = given::judge(&paths, &paths)?;
    let images = paths.iter().map(|path| Image::open(path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(bare) = images.iter().find(|image| image.found.is_empty()) {
        let (path, places) = (bare.path.display(), bare.places());
        return Err(Failure::failed(format!("{path} has no md superblock: {places}")));
    }
    let number = match wipe.plan {
        true => None,
        false => Some(write(&images, &facts)?),
    };
    match wipe.json {
        true => print_json(&images, number),
        false => print(&images, number),
    }
}

/// What was removed by the change of this number, or would be.
fn print(images: &[Image], number: Option<u64>) -> Result<(), Failure> {
    let tense = if number.is_some() { "was" } else { "would be" };
    images.iter().try_for_each(|image| describe(image, tense))?;
    match number {
        Some(number) => println!("  `braid undo {number}` puts back what was overwritten"),
        None => println!("nothing was written"),
    }
    Ok(())
}

fn print_json(images: &[Image], number: Option<u64>) -> Result<(), Failure> {
    let mut superblocks = Vec::new();
    for image in images {
        for found in &image.found {
            superblocks.push(serde_json::json!({
                "path": image.path,
                "metadata_version": found.version.to_string(),
                "super_offset_bytes": found.offset,
                "array_uuid": found.result.as_ref().ok().map(|one| one.array_uuid.to_string()),
                "stripe_log_head_bytes": head_of_log(image, found)?,
            }));
        }
    }
    println!(
        "{}",
        serde_json::json!({
            "output_version": OUTPUT_VERSION,
            "superblocks": superblocks,
            "written": number.is_some(),
            "undo": number,
        })
    );
    Ok(())
}

fn describe(image: &Image, tense: &str) -> Result<(), Failure> {
    for found in &image.found {
        let of = match &found.result {
            Ok(superblock) => format!("array {}", superblock.array_uuid),
            Err(_) => "a damaged one".to_owned(),
        };
        println!(
            "{}: the superblock of version {} at byte {} ({of}) {tense} removed",
            image.path.display(),
            found.version,
            found.offset
        );
        if let Some(offset) = head_of_log(image, found)? {
            let path = image.path.display();
            println!("{path}: the head of its stripe log at byte {offset} {tense} removed");
        }
    }
    Ok(())
}

/// Where the head of a stripe log lies that belongs to this superblock, sound or not.
fn head_of_log(image: &Image, found: &Found) -> Result<Option<u64>, Failure> {
    let Ok(superblock) = &found.result else { return Ok(None) };
    let is_there = stripe_log_head(image, superblock)?.is_some();
    Ok(stripe_log::place(superblock).filter(|_| is_there).map(|place| place.head))
}

/// Overwrites each superblock, and the head of each log, with zeroes. Answers the number of the
/// change.
fn write(images: &[Image], facts: &[MemberFacts]) -> Result<u64, Failure> {
    let places = Places::from_environment();
    let held = facts.iter().map(Held::open).collect::<Result<Vec<_>, _>>()?;
    let mut patches = Vec::new();
    let mut saved = Saved::new("wipe");
    for (member, image) in images.iter().enumerate() {
        for found in &image.found {
            let bytes = vec![0; SUPERBLOCK_BYTES];
            patches.push(Patch { member, offset: found.offset, what: "superblock", bytes });
            if let Some(offset) = head_of_log(image, found)? {
                let (what, bytes) = ("head of the stripe log", vec![0; BLOCK]);
                patches.push(Patch { member, offset, what, bytes });
            }
            if let Ok(superblock) = &found.result {
                saved.names.push(without_host(&superblock.name).to_owned());
                saved.arrays.push(superblock.array_uuid.to_string());
            }
        }
    }
    for list in [&mut saved.names, &mut saved.arrays] {
        list.sort();
        list.dedup();
        list.retain(|text| !text.is_empty());
    }
    saved.members = facts.iter().map(Known::of).collect();
    let change = Change { members: held, patches };
    change.carry_out(&Trail::new(places.undo()), saved, || Ok(()))
}

/// An array's name without the host that it belongs to.
fn without_host(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_host, name)| name)
}
