//! Samples of files that carry their own checksums: read from the volume, checked, and traced to members.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use braid_files::{Limits, Owner, owners};
use braid_rescue::samples::{Fault, Finding, Format, HEAD, Places, shuffled, suspect, wilson};
use braid_rescue::{BadFile, Sampled};
use braid_stack::{Missing, Node, Stack};

use super::super::answer::Opened;
use super::super::examined::labels;
use crate::command::cat;

/// The longest file that is checked.
const LONGEST: u64 = 32 << 20;
/// Files that are checked, and bytes of them that are read, unless all are.
const FILES: usize = 400;
const BYTES: u64 = 512 << 20;
/// Beginnings of files that are looked at for that.
const HEADS: usize = 20_000;
/// Pieces of files that are held.
const PIECES: usize = 1_000_000;
/// Blocks that are looked at for headers, where the file system is not known.
const BLOCKS: u64 = 65_536;
const BLOCK: u64 = 4096;
/// Bytes that are followed behind a header.
const FOLLOWED: u64 = 4 << 20;
/// Bad files that are told.
const TOLD: usize = 20;
/// Bad files that are read again without each member.
const TRIED: usize = 8;
/// The seed: the same case gives the same sample.
const SEED: u64 = 0x7665_7269_6679;

/// A volume that is read by one stack.
pub(super) struct Source<'a> {
    pub(super) device: &'a cat::Opened,
    pub(super) stack: &'a Stack,
    pub(super) opened: &'a Opened,
    /// True if all files are to be checked.
    pub(super) all: bool,
}

/// The pieces of a file: bytes of the file, and where they lie in the volume.
type Pieces = Vec<(u64, Range<u64>)>;

/// Counts of a sample.
#[derive(Default)]
struct Tally {
    sampled: Sampled,
    /// The members of each bad range, and of each good file.
    bad: Vec<BTreeSet<String>>,
    good: Vec<BTreeSet<String>>,
    /// Bad files that are tried without a member.
    tried: Vec<(Format, Pieces)>,
}

impl braid_files::ReadAt for Source<'_> {
    fn size(&self) -> u64 {
        braid_probe::ReadAt::size(self.device)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.device.read(offset, buffer)
    }
}

/// Checks a sample of the files of a volume.
pub(super) fn samples(source: &Source<'_>) -> Sampled {
    let size = braid_files::ReadAt::size(source);
    let limits = Limits { pieces: PIECES, ..Limits::default() };
    let everything = 0..size;
    let mut tally = Tally::default();
    match owners(source, std::slice::from_ref(&everything), &limits) {
        Ok(report) => by_names(source, &report, &mut tally),
        Err(_) => by_headers(source, size, &mut tally),
    }
    let Tally { mut sampled, bad, good, tried } = tally;
    sampled.interval = wilson(sampled.good, sampled.bad);
    match mended(source, &tried) {
        Some((member, count)) => {
            sampled.suspect = Some(member);
            sampled.mended = Some((count, tried.len() as u64));
        }
        None => sampled.suspect = suspect(&bad, &good),
    }
    sampled
}

/// Reads bad files without each member in turn, by parity or copies. Returns the member without which most are good, and
/// how many; `None` if no file is, or if two members are alike in this.
fn mended(source: &Source<'_>, tried: &[(Format, Pieces)]) -> Option<(String, u64)> {
    if tried.is_empty() {
        return None;
    }
    let mut counts: Vec<(u64, String)> = Vec::new();
    for role in 0.. {
        let mut stack = source.stack.clone();
        let Some(left_out) = leave_out(&mut stack, role)? else { continue };
        // Without redundancy the stack is refused.
        let Ok(device) = cat::open_on(&source.device.executor, &stack) else { return best(counts) };
        let other = Source { device: &device, ..*source };
        let is_good = |(format, pieces): &&(Format, Pieces)| {
            read(&other, pieces).is_some_and(|bytes| format.check(&bytes) == Finding::Good)
        };
        let count = tried.iter().filter(is_good).count() as u64;
        counts.push((count, label(source, &left_out)));
        if role + 1 == width(source.stack) {
            break;
        }
    }
    best(counts)
}

/// The member with the greatest count, if it is the only one.
fn best(mut counts: Vec<(u64, String)>) -> Option<(String, u64)> {
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let (count, member) = counts.first()?.clone();
    let second = counts.get(1).map_or(0, |(count, _)| *count);
    (count > second).then_some((member, count))
}

/// True for an array with parity or copies.
fn is_redundant(stack: &Stack) -> bool {
    stack.shape().is_some_and(|shape| shape.level.is_redundant())
}

/// The first array with redundancy in a stack.
fn array(stack: &Stack) -> Option<&Stack> {
    match is_redundant(stack) {
        true => Some(stack),
        false => stack.members().first().and_then(array),
    }
}

fn width(stack: &Stack) -> usize {
    array(stack).map_or(0, |array| array.members().len())
}

/// Makes a member of the array missing. Returns its path, or no path if it is missing already; `None` without this role.
fn leave_out(stack: &mut Stack, role: usize) -> Option<Option<String>> {
    if !is_redundant(stack) {
        return leave_out(stack.members_mut().first_mut()?, role);
    }
    let member = stack.members_mut().get_mut(role)?;
    let path = member.leaves().first().and_then(|leaf| leaf.own_path()).cloned();
    *member = Stack::from(Node::Missing(Missing));
    Some(path)
}

/// Checks files that the metadata of the file system lead to.
fn by_names(source: &Source<'_>, report: &braid_files::Report, tally: &mut Tally) {
    let mut files: BTreeMap<u64, Pieces> = BTreeMap::new();
    for piece in &report.pieces {
        if let Owner::File { inode, offset, unwritten: false } = piece.owner {
            files.entry(inode).or_default().push((offset, piece.range.clone()));
        }
    }
    let files: Vec<(u64, Pieces)> = files.into_iter().collect();
    tally.sampled.how = format!("by the metadata of {}", report.kind);
    let (mut checked, mut left) = (0, BYTES);
    for (looked, index) in shuffled(files.len(), SEED).into_iter().enumerate() {
        if !source.all && (checked == FILES || left == 0 || looked == HEADS) {
            break;
        }
        let (inode, pieces) = &files[index];
        let Some(first) = pieces.iter().find(|(offset, _)| *offset == 0) else { continue };
        let head =
            read(source, &[(0, first.1.start..first.1.end.min(first.1.start + HEAD as u64))]);
        let Some(format) = head.and_then(|head| Format::of(&head)) else { continue };
        let length = length(pieces);
        let name = report.files.get(inode).and_then(|names| names.paths.first());
        let name = match name {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => format!("inode {inode}"),
        };
        checked += 1;
        left = left.saturating_sub(length);
        let bytes = if length <= LONGEST { read(source, pieces) } else { None };
        let finding = bytes.map_or(Finding::Unknown, |bytes| format.check(&bytes));
        enter(source, tally, &name, format, pieces, finding);
    }
}

/// Checks files that begin with a block, followed as far as their format leads: those in one piece.
fn by_headers(source: &Source<'_>, size: u64, tally: &mut Tally) {
    tally.sampled.how =
        "by headers at the starts of blocks: the file system is not one whose names are read"
            .to_owned();
    let blocks = size / BLOCK;
    let looked = if source.all { blocks } else { blocks.min(BLOCKS) };
    let mut left = BYTES;
    for index in 0..looked {
        // Evenly over the volume.
        let at = index * blocks / looked * BLOCK;
        let all = tally.sampled.good + tally.sampled.unchecked;
        if !source.all && (all == FILES as u64 || left == 0) {
            break;
        }
        let Some(head) = read(source, &[(0, at..at + HEAD as u64)]) else { continue };
        let Some(format) = Format::of(&head).filter(|format| format.ends_by_itself()) else {
            continue;
        };
        let pieces = vec![(0, at..size.min(at + FOLLOWED))];
        left = left.saturating_sub(FOLLOWED);
        // A file in several pieces looks damaged, too.
        let finding = match read(source, &pieces).map(|bytes| format.check(&bytes)) {
            Some(Finding::Good) => Finding::Good,
            _ => Finding::Unknown,
        };
        enter(source, tally, &format!("at byte {at}"), format, &pieces, finding);
    }
}

fn enter(
    source: &Source<'_>,
    tally: &mut Tally,
    name: &str,
    format: Format,
    pieces: &Pieces,
    finding: Finding,
) {
    let sampled = &mut tally.sampled;
    match finding {
        Finding::Unknown => sampled.unchecked += 1,
        Finding::Good => {
            sampled.good += 1;
            let ranges: Vec<_> = pieces.iter().map(|(_, range)| range.clone()).collect();
            tally.good.push(members(source, &ranges));
        }
        Finding::Bad(faults) => {
            sampled.bad += 1;
            let ranges = located(&faults, pieces);
            let on = members(source, &ranges);
            if sampled.files.len() < TOLD {
                let why = faults.first().map(|fault| fault.why.clone()).unwrap_or_default();
                sampled.files.push(BadFile {
                    name: name.to_owned(),
                    format: format.name().to_owned(),
                    why,
                    ranges: ranges
                        .iter()
                        .map(|range| (range.start, range.end - range.start))
                        .collect(),
                    members: on.iter().cloned().collect(),
                });
            }
            tally.bad.push(on);
            if tally.tried.len() < TRIED {
                tally.tried.push((format, pieces.clone()));
            }
        }
    }
}

/// The number of bytes up to the end of the last piece.
fn length(pieces: &Pieces) -> u64 {
    pieces.iter().map(|(offset, range)| offset + (range.end - range.start)).max().unwrap_or(0)
}

/// Reads the pieces of a file, zeros between them; `None` if something cannot be read.
fn read(source: &Source<'_>, pieces: &[(u64, Range<u64>)]) -> Option<Vec<u8>> {
    let pieces = pieces.to_vec();
    let mut bytes = vec![0; usize::try_from(length(&pieces)).ok()?];
    for (offset, range) in pieces {
        let from = usize::try_from(offset).ok()?;
        let to = from + usize::try_from(range.end - range.start).ok()?;
        for (at, part) in (range.start..).step_by(1 << 20).zip(bytes[from..to].chunks_mut(1 << 20))
        {
            source.device.read(at, part).ok()?;
        }
    }
    Some(bytes)
}

/// The bytes of the volume in which faults lie.
fn located(faults: &[Fault], pieces: &Pieces) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    for fault in faults {
        for (offset, range) in pieces {
            let end = offset + (range.end - range.start);
            let (from, to) =
                ((fault.range.start as u64).max(*offset), (fault.range.end as u64).min(end));
            if from < to {
                ranges.push(range.start + (from - offset)..range.start + (to - offset));
            }
        }
    }
    braid_rescue::assemble::joined(ranges)
}

/// The labels of the members that have these bytes.
fn members(source: &Source<'_>, ranges: &[Range<u64>]) -> BTreeSet<String> {
    let Some(places) = Places::of(source.stack) else { return BTreeSet::new() };
    let paths = ranges.iter().flat_map(|range| places.members(range));
    paths.map(|path| label(source, &path)).collect()
}

/// The label of the member with this path.
fn label(source: &Source<'_>, path: &str) -> String {
    let members = &source.opened.case.members;
    let at = members.iter().position(|one| Path::new(&one.path) == Path::new(path));
    at.map_or_else(|| path.to_owned(), |at| labels(members)[at].clone())
}
