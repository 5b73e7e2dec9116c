//! LVM2: from physical volumes to logical ones.
//!
//! ```text
//!   PV: label ──▶ metadata areas ──header──▶ the text that is committed: groups, segments
//!                      │                          (a ring: it may go on behind the header)
//!                      └─ header damaged: the newest text in the area
//! ```
//!
//! Source: LVM2 `lib/format_text/layout.h`, `format-text.c`.

use braid_probe::ReadAt;

use super::{Found, Place};
use crate::evidence::bytes::{le32, le64};
use crate::evidence::crc::{START_LVM2, advance_ieee};
use crate::evidence::lvm2::{self, parse};
use crate::evidence::{Logical, Segment, VolumeGroup};

const SECTOR: u64 = 512;
/// The most metadata areas of a PV, and bytes of one, that are read.
const MOST_AREAS: usize = 8;
const LONGEST: u64 = 4 << 20;
const MAGIC: &[u8] = b" LVM2 x[5A%r0N*>";
/// A text that is not in use.
const IGNORED: u32 = 1;

/// A physical volume that was found.
pub(super) struct Pv {
    id: [u8; 32],
    /// Its index among the volumes.
    volume: usize,
    place: Place,
    /// The text in it.
    group: Option<VolumeGroup>,
    /// True after the volumes of its group were found.
    is_done: bool,
}

/// Reads the label of a physical volume, and its text.
pub(super) fn read(device: &dyn ReadAt, volume: usize, place: &Place) -> Option<Pv> {
    let head = bytes(device, 0, 4 * SECTOR)?;
    let label = |sector: u64| {
        let from = usize::try_from(sector * SECTOR).ok()?;
        let (label, at) = lvm2::recognise(&head[from..])?;
        (at == sector * SECTOR).then_some((label, &head[from..]))
    };
    let (label, sector) = (0..4).find_map(label)?;
    let header = sector.get(le32(sector, 20)? as usize..)?;
    let mut group: Option<VolumeGroup> = None;
    for (at, length) in areas(header) {
        let found = area(device, at, length);
        if let Some(found) = found
            && group.as_ref().is_none_or(|held| held.seqno < found.seqno)
        {
            group = Some(found);
        }
    }
    Some(Pv { id: *label.id(), volume, place: place.clone(), group, is_done: false })
}

/// The metadata areas that a PV's header lists: the second list of pairs.
fn areas(header: &[u8]) -> Vec<(u64, u64)> {
    let pairs = (40..header.len()).step_by(16);
    let pairs = pairs.map_while(|at| Some((le64(header, at)?, le64(header, at + 8)?)));
    let lists: Vec<(u64, u64)> = pairs.collect();
    let mut lists = lists.split(|(at, _)| *at == 0).skip(1);
    lists.next().unwrap_or_default().iter().take(MOST_AREAS).copied().collect()
}

/// The text of a metadata area.
fn area(device: &dyn ReadAt, at: u64, length: u64) -> Option<VolumeGroup> {
    let header = bytes(device, at, SECTOR)?;
    committed(device, at, length, &header).or_else(|| {
        let all = bytes(device, at, length.min(LONGEST))?;
        let texts = all.chunks(SECTOR as usize).enumerate();
        let texts = texts.filter_map(|(index, _)| parse(&all[index * SECTOR as usize..]));
        texts.max_by_key(|group| group.seqno)
    })
}

/// The text that the header of an area names, if the checksums of both are right.
fn committed(device: &dyn ReadAt, at: u64, length: u64, header: &[u8]) -> Option<VolumeGroup> {
    let is_sound = header.get(4..20)? == MAGIC
        && advance_ieee(START_LVM2, &header[4..]) == le32(header, 0)?
        && le64(header, 24)? == at
        && le64(header, 32)? == length;
    let (from, size) = (le64(header, 40)?, le64(header, 48)?);
    let (sum, flags) = (le32(header, 56)?, le32(header, 60)?);
    if !is_sound || flags & IGNORED != 0 || size > LONGEST || from >= length || from < SECTOR {
        return None;
    }
    let first = size.min(length - from);
    let mut text = bytes(device, at.checked_add(from)?, first)?;
    if first < size {
        text.extend(bytes(device, at + SECTOR, size - first)?);
    }
    let is_right = advance_ieee(START_LVM2, &text) == sum;
    is_right.then(|| parse(&text)).flatten()
}

fn bytes(device: &dyn ReadAt, at: u64, length: u64) -> Option<Vec<u8>> {
    if at.checked_add(length)? > device.size() {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    let mut done = 0;
    while done < bytes.len() {
        match device.read_at(at + done as u64, &mut bytes[done..]) {
            Ok(count) if count > 0 => done += count,
            _ => return None,
        }
    }
    Some(bytes)
}

/// Returns the logical volumes of the groups of these physical volumes, and notes what is not read.
pub(super) fn logical(physical: &mut [Pv], found: &mut Found) -> Vec<(String, Place)> {
    let mut volumes = Vec::new();
    while let Some(group) = newest(physical) {
        let of = |id: &[u8; 32]| group.physical.iter().any(|one| one.id == *id);
        for pv in physical.iter_mut().filter(|pv| of(&pv.id)) {
            pv.is_done = true;
        }
        let before = volumes.len();
        let is_store = |name: &String| {
            let mut segments = group.logical.iter().flat_map(|one| &one.segments);
            segments.any(|segment| segment.store.as_ref() == Some(name))
        };
        for one in &group.logical {
            let is_snapshot = one.segments.iter().any(|segment| segment.kind == "snapshot");
            if !one.is_visible || is_snapshot {
                continue;
            }
            let name = format!("{}/{}", group.name, one.name);
            let place = match is_store(&one.name) {
                true => {
                    Err("it is a snapshot, of which this volume has the changes only".to_owned())
                }
                false => place_of(one, &group, physical),
            };
            match place {
                Ok(place) => volumes.push((name, place)),
                Err(why) => found.unread.push((name, why)),
            }
        }
        for pv in physical.iter().filter(|pv| of(&pv.id)) {
            found.volumes[pv.volume].is_divided = volumes.len() > before;
        }
    }
    volumes
}

/// The newest text about a group whose volumes were not found yet.
fn newest(physical: &[Pv]) -> Option<VolumeGroup> {
    let left = physical.iter().filter(|pv| !pv.is_done);
    left.filter_map(|pv| pv.group.as_ref().filter(|group| group.has(&pv.id)))
        .max_by_key(|group| group.seqno)
        .cloned()
}

impl VolumeGroup {
    fn has(&self, id: &[u8; 32]) -> bool {
        self.physical.iter().any(|one| one.id == *id)
    }
}

/// Returns the place of a logical volume, or the reason why it is not read.
fn place_of(one: &Logical, group: &VolumeGroup, physical: &[Pv]) -> Result<Place, String> {
    let mut parts = Vec::new();
    let mut at = 0;
    for segment in &one.segments {
        if segment.start != at || segment.length == 0 {
            return Err(format!("its segments leave byte {at} out"));
        }
        parts.push(segment_place(segment, group, physical)?);
        at = at.checked_add(segment.length).ok_or("its segments are too long")?;
    }
    match parts.is_empty() {
        true => Err("it has no segments".to_owned()),
        false => Ok(Place::linear(parts)),
    }
}

fn segment_place(segment: &Segment, group: &VolumeGroup, physical: &[Pv]) -> Result<Place, String> {
    let count = segment.stripes.len() as u64;
    if segment.kind != "striped" || count == 0 {
        return Err(format!("volumes of LVM2's kind `{}` are not read here", segment.kind));
    }
    let length = segment.length / count;
    let is_even = length * count == segment.length;
    if count > 1 && (segment.chunk == 0 || !is_even || !length.is_multiple_of(segment.chunk)) {
        return Err("its stripes do not fit its length".to_owned());
    }
    let mut places = Vec::new();
    for (name, offset) in &segment.stripes {
        let known = group.physical.iter().find(|known| known.name == *name);
        let known = known.ok_or("its physical volume is not in the text")?;
        let pv = physical.iter().find(|pv| pv.id == known.id).ok_or_else(|| {
            let id = String::from_utf8_lossy(&known.id).into_owned();
            format!("a part of it lies on physical volume {name} ({id}), which no array that is read has")
        })?;
        let part =
            pv.place.part(*offset, length).ok_or("a part of it lies behind its array's end")?;
        places.push(part);
    }
    match places.len() {
        1 => Ok(places.remove(0)),
        _ => Ok(Place::Striped { chunk: segment.chunk, of: places }),
    }
}
