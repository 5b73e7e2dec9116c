//! `braid examine`: what md's superblocks on members say. Nothing is written.

use braid_md::assembly::{Candidate, Options, Set, State, group};
use braid_md::detect::Found;
use braid_md::rejection::LogRejection;
use braid_md::stripe_log::Head;
use braid_md::{Level, Uuid};
use braid_md_text::examine::{self, Surroundings, Written};
use braid_md_text::next;
use braid_shell::{shell_path, shown};

use super::local_time::utc_offset;
use crate::cli::Examine;
use braid_service::control::OUTPUT_VERSION;
use braid_service::failure::Failure;
use braid_service::metadata::{
    Contents, Image, MetadataError, block_device_name, block_devices, host_name, stripe_log_head,
};

pub(super) fn examine(examine: &Examine) -> Result<(), Failure> {
    if examine.scan || examine.brief || examine.verbose {
        return brief(examine);
    }
    let machine = Machine { host: host_name(), utc_offset: Box::new(utc_offset()) };
    let mut failures = Vec::new();
    let mut described = Vec::new();
    let mut candidates = Vec::new();
    for path in &examine.members {
        let image = match Image::open(path) {
            Ok(image) => image,
            Err(failure) => {
                described.push(serde_json::json!({ "path": path, "error": failure.text() }));
                failures.push(failure.text());
                continue;
            }
        };
        candidates.extend(candidate(&image));
        let shown = match examine.json {
            true => machine.describe(&image).map(|json| described.push(json)),
            false => machine.print(examine, &image),
        };
        failures.extend(shown.and_then(|()| judge(&image)).err().map(|failure| failure.text()));
    }
    if examine.json {
        println!(
            "{}",
            serde_json::json!({ "output_version": OUTPUT_VERSION, "members": described })
        );
    }
    unstartable(candidates).iter().for_each(|note| eprintln!("braid: note: {note}"));
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(failures.join("\nbraid: "))),
    }
}

/// A member as the rules of assembly take it, without what only a start needs.
fn candidate(image: &Image) -> Option<Candidate> {
    Some(Candidate {
        label: image.path.display().to_string(),
        size: image.size,
        superblock: image.best()?.result.clone().ok()?,
        bitmap: None,
        bitmap_trouble: None,
        log_head: None,
        log_trouble: None,
    })
}

/// Arrays that do not start from these members although some of them are passed over, and the command that leads on. A
/// single member that is examined says nothing of the others.
fn unstartable(candidates: Vec<Candidate>) -> Vec<String> {
    let supported = |_: Level| true;
    let (force, read_only, degraded) = (false, true, false);
    let options = Options { force, read_only, degraded, raid0_layout: None, supported: &supported };
    let note = |set: &Set| {
        let assembly = set.assess(options);
        let is_partial = matches!(assembly.state, State::Partial(_));
        let is_passed_over = !assembly.left_out.is_empty() || !assembly.spares.is_empty();
        let next = assembly.next.first().filter(|_| is_partial && is_passed_over)?;
        let (name, next) = (shown(set.short_name()).into_owned(), next::command(next));
        Some(format!("the array {name} does not start: {assembly}\n  next: {next}"))
    };
    group(candidates).iter().filter_map(note).collect()
}

/// A line for each array, the one that was found last first, as mdadm has it.
fn brief(examine: &Examine) -> Result<(), Failure> {
    let paths = match examine.scan {
        true => block_devices()?,
        false => examine.members.clone(),
    };
    let (mut arrays, mut failures) = (Vec::<Array>::new(), Vec::new());
    for path in &paths {
        let held = Image::open(path).and_then(|image| judge(&image).map(|()| image));
        let image = match held {
            Ok(image) => image,
            // Most devices are no members.
            Err(_) if examine.scan => continue,
            Err(failure) => {
                failures.push(failure.text());
                continue;
            }
        };
        let Some((found, Ok(superblock))) = image.best().map(|best| (best, &best.result)) else {
            continue;
        };
        let written = Written::new(found.version, &found.bytes);
        let uuid = superblock.array_uuid;
        let at = arrays.iter().position(|one| one.uuid == uuid).unwrap_or_else(|| {
            let line = examine::brief(&written, examine.verbose);
            arrays.push(Array { uuid, line, spares: 0, devices: Vec::new() });
            arrays.len() - 1
        });
        arrays[at].spares += usize::from(examine::counts_as_spare(&written));
        arrays[at].devices.push(path.display().to_string());
    }
    for array in arrays.iter().rev() {
        print!("{}", array.line);
        let spares = (array.spares > 0).then(|| format!("   spares={}", array.spares));
        let devices = examine.verbose.then(|| format!("   devices={}", array.devices.join(",")));
        if spares.is_some() || devices.is_some() {
            println!("{}{}", spares.unwrap_or_default(), devices.unwrap_or_default());
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(failures.join("\nbraid: "))),
    }
}

/// An array for mdadm.conf.
struct Array {
    uuid: Uuid,
    line: String,
    spares: usize,
    devices: Vec<String>,
}

/// A member as it is shown, in one line.
fn name_of(image: &Image) -> String {
    shown(&image.path.display().to_string()).into_owned()
}

/// Fails if the member has no valid superblock.
fn judge(image: &Image) -> Result<(), Failure> {
    let path = name_of(image);
    let Some(Found { version, offset, result, .. }) = image.best() else {
        let Contents { what, next } = Contents::of(&image.path);
        let text = format!("{path} has no md superblock: {}{what}", image.places());
        return Err(Failure::failed(text).next(next));
    };
    if let Some(number) = image.partition_of_superblock() {
        let error = MetadataError::OfPartition { path: image.path.clone(), number };
        return Err(error.into());
    }
    match result {
        Ok(_) => Ok(()),
        Err(rejection) => Err(Failure::failed(format!(
            "{path}: the superblock of version {version} at byte {offset} is damaged: {rejection}"
        ))
        .next(format!("`braid examine --explain {}` shows where", shell_path(&image.path)))),
    }
}

/// Properties of the machine that the text depends on.
struct Machine {
    host: String,
    utc_offset: Box<dyn Fn(u64) -> i64>,
}

impl Machine {
    fn around<'a>(&'a self, image: &Image, bitmap: Option<&'a [u8]>) -> Surroundings<'a> {
        Surroundings {
            device_size: image.size,
            bitmap,
            host: Some(&self.host),
            utc_offset: &*self.utc_offset,
            device_name: &block_device_name,
        }
    }

    fn print(&self, examine: &Examine, image: &Image) -> Result<(), Failure> {
        let Some(found) = image.best() else { return Ok(()) };
        let bitmap = bitmap_of(image, found)?;
        if examine.bitmap {
            return print_bitmap(image, found, bitmap.as_deref());
        }
        if examine.badblocks {
            return print_bad_blocks(image, found);
        }
        let around = self.around(image, bitmap.as_deref());
        let written = Written::new(found.version, &found.bytes);
        if examine.export {
            print!("{}", examine::export(&written));
            return Ok(());
        }
        println!("{}:", name_of(image));
        match examine.explain {
            true => {
                print!("{}", examine::explain(&written, &around));
                print_stripe_log(image, found)?;
            }
            false => print!("{}", examine::text(&written, &around)),
        }
        for other in image.found.iter().filter(|other| other.version != found.version) {
            let state = match &other.result {
                Ok(_) => "older".to_owned(),
                Err(rejection) => rejection.to_string(),
            };
            eprintln!(
                "braid: {}: there is another superblock, of version {}: {state}",
                name_of(image),
                other.version
            );
        }
        Ok(())
    }

    /// A member with all superblocks on it, the one that holds first.
    fn describe(&self, image: &Image) -> Result<serde_json::Value, Failure> {
        let mut superblocks = Vec::new();
        let best = image.best();
        let others =
            image.found.iter().filter(|one| Some(one.version) != best.map(|best| best.version));
        for found in best.into_iter().chain(others) {
            let bitmap = bitmap_of(image, found)?;
            let around = self.around(image, bitmap.as_deref());
            superblocks.push(examine::facts(&Written::new(found.version, &found.bytes), &around));
        }
        let error = judge(image).err().map(|failure| failure.text());
        let stripe_log = match best {
            Some(found) => stripe_log_of(image, found)?.map(|head| stripe_log_as_json(&head)),
            None => None,
        };
        Ok(serde_json::json!({
            "path": image.path,
            "superblocks": superblocks,
            "stripe_log": stripe_log,
            "error": error,
        }))
    }
}

/// braid's stripe log in front of the data of a member of an array with parity, or why it is not
/// the member's. md's superblock does not know of it, and neither does mdadm's text.
fn stripe_log_of(
    image: &Image,
    found: &Found,
) -> Result<Option<Result<Head, LogRejection>>, Failure> {
    let Ok(superblock) = &found.result else { return Ok(None) };
    stripe_log_head(image, superblock)
}

fn stripe_log_as_json(head: &Result<Head, LogRejection>) -> serde_json::Value {
    match head {
        Ok(head) => serde_json::json!({
            "area_bytes": head.area,
            "events": head.events,
            "tail": head.tail,
            "synced_bytes": (head.synced < u64::MAX).then_some(head.synced),
            "error": null,
        }),
        Err(why) => serde_json::json!({ "error": why.to_string() }),
    }
}

fn print_stripe_log(image: &Image, found: &Found) -> Result<(), Failure> {
    let Some(head) = stripe_log_of(image, found)? else { return Ok(()) };
    println!("braid's stripe log in front of the data:");
    match head {
        Err(why) => println!("  not used: {why}"),
        Ok(head) => {
            let Head { area, events, tail, synced, .. } = &head;
            println!(
                "  {area} bytes, {events} events, records from number {tail} on may be needed"
            );
            if *synced < u64::MAX {
                println!("  parity is known to fit below byte {synced} of each member's data");
            }
            if let Ok(array) = &found.result
                && let Err(why) = head.check_current(array.events, array.updated)
            {
                println!("  not used: {why}");
            }
        }
    }
    Ok(())
}

fn bitmap_of(image: &Image, found: &Found) -> Result<Option<Vec<u8>>, Failure> {
    match &found.result {
        Ok(superblock) => image.bitmap(superblock),
        Err(_) => Ok(None),
    }
}

fn print_bad_blocks(image: &Image, found: &Found) -> Result<(), Failure> {
    // A damaged superblock is reported elsewhere.
    let Ok(superblock) = &found.result else { return Ok(()) };
    let log = image.bad_blocks(superblock)?;
    print!("{}", examine::bad_blocks_text(&name_of(image), superblock, log.as_ref()));
    Ok(())
}

fn print_bitmap(image: &Image, found: &Found, bitmap: Option<&[u8]>) -> Result<(), Failure> {
    let path = name_of(image);
    // A damaged superblock is reported elsewhere.
    let (Some(bitmap), Ok(_)) = (bitmap, &found.result) else {
        return match found.result {
            Ok(_) => Err(Failure::failed(format!("{path} has no write-intent bitmap"))),
            Err(_) => Ok(()),
        };
    };
    let text = examine::bitmap_text(&path, found.version, bitmap)
        .map_err(|error| Failure::failed(format!("{path}: {error}")))?;
    print!("{text}");
    Ok(())
}
