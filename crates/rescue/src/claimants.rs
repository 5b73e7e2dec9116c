//! From what lies on members to the arrays that they claim to be of.

use std::collections::BTreeMap;

use braid_md::assembly::{BitmapFacts, Candidate};
use braid_md::{Bitmap, BitmapHeader, Role, Superblock, Uuid, bitmap, ppl};

use crate::assemble::{self, Claimant, Ranges, joined};
use crate::evidence::{self, Known};
use crate::patient::Patient;
use crate::scan::{Findings, FoundSuperblock, How, Place};
use crate::solve::{Claim, Pattern};

/// The most bytes of a bitmap that are read: all chunks that md keeps, in whole pages with the header.
const MOST_BITMAP: u64 = bitmap::MOST_CHUNKS / 8 + bitmap::PAGE_BYTES as u64;

/// Bytes at the start of an array in which a file system has its first superblock.
const HEAD: usize = 128 << 10;

/// The most bytes of a partial parity log that are read.
const MOST_LOG: u64 = 16 << 20;

/// A member of a case, with what was found on it.
#[derive(Debug)]
pub struct Examined {
    /// The open member.
    pub patient: Patient,
    /// Its contents.
    pub findings: Findings,
    /// Its name in messages.
    pub label: String,
    /// Its path in expressions: absolute.
    pub path: String,
    /// Bytes that its map, if there is one, does not call read.
    pub holes: Ranges,
    /// Equal for members with equal fingerprints.
    pub content: String,
}

/// The members that carry one array's UUID.
#[derive(Debug)]
pub struct Array {
    /// The array's identifier.
    pub uuid: Uuid,
    /// Its name, often `host:name`; empty for 0.90.
    pub name: String,
    /// The members that claim to be of it; at least one.
    pub claimants: Vec<Claimant>,
    /// The place of each of them.
    pub places: Vec<Place>,
}

impl Array {
    /// Returns the name of the array in messages, or the UUID if it has none.
    #[must_use]
    pub fn label(&self) -> String {
        let name = self.name.split_once(':').map_or(&*self.name, |(_host, name)| name);
        if name.is_empty() { self.uuid.to_string() } else { self.name.clone() }
    }

    /// Returns true if `text` is its name, with the host or without, or its UUID.
    #[must_use]
    pub fn is_called(&self, text: &str) -> bool {
        let name = self.name.split_once(':').map_or(&*self.name, |(_host, name)| name);
        !text.is_empty() && [&self.name, name, &self.uuid.to_string()].contains(&text)
    }
}

/// Returns the arrays of which superblocks were found, by UUID.
#[must_use]
pub(crate) fn claimed(members: &[Examined]) -> Vec<Array> {
    let mut arrays: BTreeMap<Uuid, Array> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        for (found, superblock) in chosen(&member.findings) {
            let uuid = superblock.array_uuid;
            let array = arrays.entry(uuid).or_insert_with(|| Array {
                uuid,
                name: superblock.name.clone(),
                claimants: Vec::new(),
                places: Vec::new(),
            });
            let holes = member.holes.iter().chain(&member.findings.unreadable).cloned().collect();
            array.claimants.push(Claimant {
                member: index,
                label: label(&member.label, &found.place),
                path: member.path.clone(),
                start: found.place.start,
                length: found.place.length,
                superblock: superblock.clone(),
                bitmap: read_bitmap(&member.patient, &found.place, superblock),
                logged: read_log(&member.patient, &found.place, superblock),
                holes: joined(holes),
                content: member.content.clone(),
                is_guessed: false,
            });
            array.places.push(found.place);
        }
    }
    arrays.into_values().collect()
}

/// Returns the bytes of the file system that begins with an array, by what lies at the start of the member in its first role.
#[must_use]
pub fn content_of(members: &[Examined], array: &Array) -> Option<u64> {
    let has_first = |one: &&Claimant| one.superblock.role() == Role::Active(0);
    let first = array.claimants.iter().filter(has_first).max_by_key(|one| one.superblock.events)?;
    let start = first.start.checked_add(first.superblock.data_offset)?;
    let mut window = vec![0; HEAD];
    members[first.member].patient.read_around(start, &mut window, &mut Vec::new());
    let begins = |(at, known): &(u64, Known)| match known {
        Known::Xfs(_) => *at == 0,
        Known::Ext(_) => *at == 1024,
        Known::Btrfs(_) => *at == 64 << 10,
        _ => false,
    };
    evidence::anchors(&window, 0).iter().find(|one| begins(one))?.1.anchor().size
}

/// Returns the members that are as a whole of an array which went on without them, by their superblocks.
#[must_use]
pub fn stale(members: &[Examined]) -> Vec<usize> {
    let mut found = Vec::new();
    for array in claimed(members) {
        let stale = assemble::stale(&array.claimants).into_iter();
        let is_whole = |one: &usize| array.places[*one].how == How::Whole;
        found.extend(stale.filter(is_whole).map(|one| array.claimants[one].member));
    }
    found
}

/// Returns the geometries that superblocks on members name, also those of an earlier array, each once.
#[must_use]
pub fn claims(members: &[Examined]) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for (member, found) in members
        .iter()
        .enumerate()
        .flat_map(|(member, one)| one.findings.superblocks.iter().map(move |found| (member, found)))
    {
        let Ok(superblock) = &found.result else { continue };
        let pattern = Pattern::of(superblock);
        let offset = found.place.start + superblock.data_offset;
        if superblock.reshape.is_some() {
            continue;
        }
        let is_same = |one: &Claim| one.pattern == pattern && one.offset == offset;
        let index = claims.iter().position(is_same).unwrap_or_else(|| {
            claims.push(Claim { pattern, offset, roles: vec![None; pattern.members] });
            claims.len() - 1
        });
        if let Role::Active(role) = superblock.role()
            && let Some(role) = claims[index].roles.get_mut(usize::from(role))
        {
            role.get_or_insert(member);
        }
    }
    claims
}

/// The name of a place on a member.
#[must_use]
pub fn label(member: &str, place: &Place) -> String {
    match place.how {
        How::Whole => member.to_owned(),
        How::Partition(number) => format!("part({member}, {number})"),
        How::Displaced => format!("{member} from byte {}", place.start),
    }
}

/// The superblock that counts for each array on a member: where one belongs before displaced ones, then the newest
/// array and the one with most events. Another array's superblock in the same place is older, and does not count.
fn chosen(findings: &Findings) -> Vec<(&FoundSuperblock, &Superblock)> {
    let valid = findings.superblocks.iter();
    let mut valid: Vec<_> =
        valid.filter_map(|found| Some((found, found.result.as_ref().ok()?))).collect();
    valid.sort_by_key(|(found, superblock)| {
        let is_displaced = found.place.how == How::Displaced;
        let newest = std::cmp::Reverse((superblock.created.seconds, superblock.events));
        (is_displaced, newest, found.at)
    });
    let mut chosen: Vec<(&FoundSuperblock, &Superblock)> = Vec::new();
    for (found, superblock) in valid {
        let is_known = chosen.iter().any(|(other, known)| {
            known.array_uuid == superblock.array_uuid || other.place.start == found.place.start
        });
        if !is_known {
            chosen.push((found, superblock));
        }
    }
    chosen
}

/// The bitmap that a superblock names, if it can be read and is the array's.
fn read_bitmap(patient: &Patient, place: &Place, superblock: &Superblock) -> Option<Bitmap> {
    let offset = superblock.super_offset.checked_add_signed(superblock.bitmap_offset?)?;
    let start = place.start.checked_add(offset)?;
    let read = |length: u64| {
        let length = length.min(patient.size().checked_sub(start)?);
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        patient.read(start, &mut bytes).ok()?;
        Some(bytes)
    };
    let page = bitmap::PAGE_BYTES as u64;
    let length = BitmapHeader::parse(&read(page)?).ok()?.byte_len();
    Bitmap::of(superblock, &read(length.clamp(page, MOST_BITMAP))?).ok()
}

/// The entries of a member's partial parity log that count; `None` without a log, or if it cannot be read.
fn read_log(patient: &Patient, place: &Place, superblock: &Superblock) -> Option<Vec<ppl::Entry>> {
    let (offset, length) = superblock.ppl.filter(|(_, length)| *length <= MOST_LOG)?;
    let start = place.start.checked_add(superblock.super_offset.checked_add_signed(offset)?)?;
    let mut area = vec![0; usize::try_from(length).ok()?];
    patient.read(start, &mut area).ok()?;
    let newest = ppl::newest(&area, ppl::signature(&superblock.array_uuid)).ok()?;
    Some(newest.header.entries)
}

/// Returns a claimant on a member of `size` bytes as md's rules of assembly take it.
#[must_use]
pub fn candidate(claimant: &Claimant, size: u64) -> Candidate {
    let superblock = claimant.superblock.clone();
    let is_fresh = |map: &&Bitmap| map.header.events >= superblock.events && !map.header.stale;
    let facts = |bitmap: &Bitmap| BitmapFacts {
        events_cleared: bitmap.header.events_cleared,
        chunk: bitmap.header.chunk_size,
        dirty: bitmap.count_set(),
    };
    Candidate {
        label: claimant.label.clone(),
        size,
        bitmap: claimant.bitmap.as_ref().filter(is_fresh).map(facts),
        bitmap_trouble: None,
        log_head: None,
        log_trouble: None,
        superblock,
    }
}
