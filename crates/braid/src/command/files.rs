//! `braid files`: which files own bytes of a volume. Nothing is written.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use braid_files::{FilesError, Limits, Names, Owner, ReadAt, Report, owners};
use braid_probe::{Partition, read_table};
use braid_shell::shown;
use serde_json::{Value, json};

use super::cat::{self, Opened};
use crate::cli::Files;
use braid_service::control::{self, ArrayStatus, OUTPUT_VERSION, Status};
use braid_service::failure::{Context, Failure};
use braid_service::places::{Places, check_name};

/// The volume that is read: opened as a stack, or through the block device if it is up.
enum Volume {
    Stack(Box<Opened>),
    Device(File, u64),
}

/// A part of a volume.
struct Part<'a> {
    volume: &'a Volume,
    start: u64,
    size: u64,
}

/// The findings in one part of the volume. Ranges are in bytes of the volume.
struct Found {
    partition: Option<Partition>,
    report: Report,
}

pub(super) fn files(files: &Files) -> Result<(), Failure> {
    let volume = Volume::open(files)?;
    let size = volume.size();
    if let Some(range) = files.ranges.iter().find(|range| range.end > size) {
        let Range { start, end } = range;
        return Err(Failure::usage(format!(
            "bytes {start} to {end} are not there: the volume has {size} bytes"
        )));
    }
    let found = look(&volume, &files.ranges)?;
    match files.json {
        true => print_json(&found),
        false => found.iter().for_each(print),
    }
    Ok(())
}

/// Prints the owners of the bytes that differed, or were unreadable, in the last scrub of a
/// volume's only array.
pub(super) fn of_scrub(status: &Status, array: &ArrayStatus) -> Result<(), Failure> {
    let Some(scrub) = &array.last_scrub else { return Ok(()) };
    let mut ranges = Vec::new();
    for place in &scrub.mismatches {
        ranges.extend(place.array_offsets.iter().map(|start| *start..start + place.length_bytes));
    }
    // With parity these are places of members' data.
    let unread = scrub.unread_ranges.iter().filter(|_| !array.has_parity());
    ranges.extend(unread.map(|(start, len)| *start..start + len));
    let volume = Volume::attached(status)?;
    ranges.retain(|range| range.end <= volume.size());
    if !ranges.is_empty() {
        look(&volume, &ranges)?.iter().for_each(print);
    }
    Ok(())
}

/// Refuses a volume whose bytes are not those of one array, or cannot be read here.
pub(super) fn check_scrubbed(status: &Status) -> Result<(), Failure> {
    let is_whole = |array: &ArrayStatus| array.size_bytes == status.device.size_bytes;
    if !matches!(&status.arrays[..], [array] if is_whole(array)) {
        let name = &status.name;
        return Err(Failure::refused(format!(
            "{name} is not one array, so that places of an array are not places of the volume"
        ))
        .next(format!("braid scrub {name} --wait, which names the places of each array")));
    }
    Volume::attached(status).map(drop)
}

/// Asks the file system, or those of the partitions.
fn look(volume: &Volume, ranges: &[Range<u64>]) -> Result<Vec<Found>, Failure> {
    let whole = Part { volume, start: 0, size: volume.size() };
    match owners(&whole, ranges, &Limits::default()) {
        Ok(report) => return Ok(vec![Found { partition: None, report }]),
        Err(FilesError::NotKnown) => {}
        Err(error) => return Err(Failure::failed(error)),
    }
    let table = read_table(&whole).context("cannot read the partition table")?;
    let Some(table) = table else { return Err(Failure::failed(FilesError::NotKnown)) };
    let partitions = table.map_err(|error| Failure::failed(format!("the volume: {error}")))?;
    let mut found = Vec::new();
    for partition in partitions {
        let end = partition.end().min(whole.size);
        let inside =
            ranges.iter().map(|range| range.start.max(partition.start)..range.end.min(end));
        let inside = inside.filter(|range| !range.is_empty());
        let inside: Vec<_> = inside
            .map(|range| range.start - partition.start..range.end - partition.start)
            .collect();
        if inside.is_empty() {
            continue;
        }
        let part = Part { volume, start: partition.start, size: end - partition.start };
        let mut report = owners(&part, &inside, &Limits::default())
            .map_err(|error| Failure::failed(format!("partition {}: {error}", partition.number)))?;
        for piece in &mut report.pieces {
            piece.range = piece.range.start + partition.start..piece.range.end + partition.start;
        }
        found.push(Found { partition: Some(partition), report });
    }
    match found.is_empty() {
        true => Err(Failure::failed("the bytes lie in no partition of the volume")),
        false => Ok(found),
    }
}

impl Volume {
    /// Opens the volume with this name as it is, or the stack.
    fn open(files: &Files) -> Result<Volume, Failure> {
        let name = &files.stack;
        let places = Places::from_environment();
        let status =
            check_name(name).ok().and_then(|()| control::get_status(&places.control(name)).ok());
        match status {
            None => cat::open(name, files.io).map(|opened| Volume::Stack(Box::new(opened))),
            Some(status) => Volume::attached(&status),
        }
    }

    /// Opens the block device of a volume that is up.
    fn attached(status: &Status) -> Result<Volume, Failure> {
        let name = &status.name;
        let Some(export) = status.device_export() else {
            return Err(Failure::refused(format!("{name} is up without a block device to read"))
                .next(format!("`braid down {name}`, and then this again")));
        };
        let path = &export.address;
        let file = File::open(path).context(format!("cannot read {path}"))?;
        Ok(Volume::Device(file, status.device.size_bytes))
    }

    fn size(&self) -> u64 {
        match self {
            Volume::Stack(opened) => opened.built.dev.limits().size,
            Volume::Device(_, size) => *size,
        }
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        match self {
            Volume::Device(file, _) => file.read_exact_at(buf, offset),
            Volume::Stack(opened) => opened.read(offset, buf),
        }
    }
}

impl ReadAt for Part<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.volume.read(self.start + offset, buf)
    }
}

impl braid_probe::ReadAt for Part<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.size.saturating_sub(offset).min(buf.len() as u64) as usize;
        if len > 0 {
            self.volume.read(self.start + offset, &mut buf[..len])?;
        }
        Ok(len)
    }
}

fn print(found: &Found) {
    let report = &found.report;
    if let Some(partition) = &found.partition {
        print!("partition {}: ", partition.number);
    }
    println!("{} of {} bytes", report.kind, report.size);
    for piece in &report.pieces {
        let Range { start, end } = piece.range;
        println!("  {start}+{}: {}", end - start, shown(&words(&piece.owner, report)));
    }
    report.notes.iter().for_each(|note| eprintln!("braid: warning: {note}"));
}

/// The owner in words.
fn words(owner: &Owner, report: &Report) -> String {
    match owner {
        Owner::File { inode, offset, unwritten } => {
            let state = if *unwritten { ", reserved and not written" } else { "" };
            format!("{}, from byte {offset} on{state}", called(*inode, report))
        }
        Owner::OfFile { inode, what } => format!("{what} of {}", called(*inode, report)),
        Owner::Metadata(what) => (*what).to_owned(),
        Owner::Free => "free".to_owned(),
        Owner::Outside => "behind the file system".to_owned(),
        Owner::Unknown => "unknown: in use, and no file that was found has it".to_owned(),
    }
}

/// A file by its names.
fn called(inode: u64, report: &Report) -> String {
    let none = Names::default();
    let names = report.files.get(&inode).unwrap_or(&none);
    if names.paths.is_empty() {
        return format!("inode {inode}, a {}", names.what.unwrap_or("file without a name"));
    }
    let mut text = paths(names).join(" = ");
    if names.more > 0 {
        text = format!("{text} and {} more names", names.more);
    }
    format!("{text} (inode {inode})")
}

fn paths(names: &Names) -> Vec<String> {
    names.paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

fn print_json(found: &[Found]) {
    let systems = found.iter().map(|Found { partition, report }| {
        let piece = |piece: &braid_files::Piece| {
            let Range { start, end } = piece.range;
            let mut value = json!({ "offset": start, "length": end - start, "owner": "metadata" });
            match piece.owner {
                Owner::File { offset, unwritten, .. } => {
                    value["owner"] = json!("file");
                    value["file_offset"] = json!(offset);
                    value["written"] = json!(!unwritten);
                }
                Owner::OfFile { what, .. } | Owner::Metadata(what) => value["what"] = json!(what),
                Owner::Free => value["owner"] = json!("free"),
                Owner::Outside => value["owner"] = json!("outside"),
                Owner::Unknown => value["owner"] = json!("unknown"),
            }
            if let Some(inode) = piece.owner.inode() {
                value["inode"] = json!(inode);
                let names = report.files.get(&inode);
                value["paths"] = json!(names.map(paths).unwrap_or_default());
            }
            value
        };
        json!({
            "partition": partition.map(|partition| partition.number),
            "kind": report.kind,
            "size": report.size,
            "pieces": report.pieces.iter().map(piece).collect::<Vec<Value>>(),
            "notes": report.notes,
        })
    });
    let systems: Vec<Value> = systems.collect();
    println!("{}", json!({ "output_version": OUTPUT_VERSION, "file_systems": systems }));
}
