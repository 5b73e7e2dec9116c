//! The volumes in arrays: partitions, and logical volumes of LVM2.
//!
//! ```text
//!   arrays ──▶ partition table? ──▶ partitions ─┐
//!     ▲  └──▶ label of LVM2?   ──▶ physical volumes ──▶ group ──▶ logical volumes ─┐
//!     └──────────── each is looked at in the same way ◀────────────────────────────┘
//! ```
//!
//! Invariants
//! * Bytes are untrusted: a volume that does not lie inside its arrays is not read, and it is said why.
//! * Kinds of logical volumes that are composed by tables elsewhere (thin, cached, mirrored, RAID of LVM2) are named,
//!   and not guessed.

mod lvm;
mod place;

use std::io;

use braid_probe::{Class, ReadAt, Signature, read_table, scan_signatures};

pub use place::Place;

/// Bytes that are tried alone where a larger read fails.
const PIECE: usize = 4096;
/// Layers that are followed: arrays, their partitions, logical volumes in them, their partitions, and so on.
const DEEPEST: usize = 6;
/// The most volumes that are looked at.
const MOST: usize = 1024;

/// An array, or a volume in arrays.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Its name: unique.
    pub name: String,
    /// Place of its bytes.
    pub place: Place,
    /// The formats at its start.
    pub contains: Vec<Signature>,
    /// When its file system was made, in seconds since 1970, if it says so; or the reason for which it cannot be believed.
    pub made: Result<Option<i64>, String>,
    /// True if other volumes lie in it, which make up its content.
    pub is_divided: bool,
}

/// Volumes that were found in arrays.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The arrays and the volumes in them.
    pub volumes: Vec<Volume>,
    /// Names of members that are not read, with the reason.
    pub unread: Vec<(String, String)>,
}

/// Looks for volumes in arrays, which have these names.
pub fn look(arrays: &[(String, &dyn ReadAt)]) -> Found {
    let devices: Vec<&dyn ReadAt> = arrays.iter().map(|(_, device)| *device).collect();
    let mut found = Found::default();
    let mut physical = Vec::new();
    let mut next: Vec<(String, Place)> = arrays
        .iter()
        .enumerate()
        .map(|(index, (name, device))| (name.clone(), Place::Array(index, device.size())))
        .collect();
    for _ in 0..DEEPEST {
        let mut inner = Vec::new();
        for (name, place) in next {
            if found.volumes.len() < MOST {
                inner.extend(look_at(&devices, name, place, &mut found, &mut physical));
            }
        }
        // A group may have physical volumes on arrays and in partitions: partitions come first.
        next = match inner.is_empty() {
            false => inner,
            true => lvm::logical(&mut physical, &mut found),
        };
    }
    found.unread.extend(next.into_iter().map(|(name, _)| (name, "it lies too deep".to_owned())));
    found
}

/// Looks at one device: notes what it is, and returns the partitions in it.
fn look_at(
    devices: &[&dyn ReadAt],
    name: String,
    place: Place,
    found: &mut Found,
    physical: &mut Vec<lvm::Pv>,
) -> Vec<(String, Place)> {
    let reader = Reader { devices, place: &place };
    let contains = scan_signatures(&reader).unwrap_or_default();
    let is = |class: Class| contains.iter().any(|one| one.class == class);
    let mut inner = Vec::new();
    if let Some(pv) = lvm::read(&reader, found.volumes.len(), &place) {
        physical.push(pv);
    } else if !is(Class::FileSystem)
        && let Ok(Some(Ok(table))) = read_table(&reader)
    {
        for partition in table {
            let name = format!("{name}/p{}", partition.number);
            match place.part(partition.start, partition.length) {
                Some(part) => inner.push((name, part)),
                None => found.unread.push((name, "it ends behind its table's device".to_owned())),
            }
        }
    }
    let name = unique(name, &found.volumes);
    let made = if is(Class::FileSystem) { braid_files::made(&reader) } else { Ok(None) };
    let made = made.map_err(|error| error.to_string());
    let is_divided = !inner.is_empty();
    found.volumes.push(Volume { name, place, contains, made, is_divided });
    inner
}

/// The name, with a number if another volume has it.
fn unique(name: String, volumes: &[Volume]) -> String {
    let is_taken = |name: &String| volumes.iter().any(|one| one.name == *name);
    let numbered = (2..).map(|number| format!("{name}@{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or(name)
}

/// A place, as bytes. What cannot be read is zeros.
struct Reader<'a> {
    devices: &'a [&'a dyn ReadAt],
    place: &'a Place,
}

impl ReadAt for Reader<'_> {
    fn size(&self) -> u64 {
        self.place.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((array, at, run)) = self.place.locate(offset) else { return Ok(0) };
        let count = buffer.len().min(usize::try_from(run).unwrap_or(usize::MAX));
        let device = self.devices[array];
        match device.read_at(at, &mut buffer[..count]) {
            Ok(count) => Ok(count),
            Err(_) => {
                // Up to the next multiple, so that a hole is met at its edge.
                let piece = PIECE - usize::try_from(at % PIECE as u64).unwrap_or(0);
                let piece = &mut buffer[..count.min(piece)];
                Ok(device.read_at(at, piece).unwrap_or_else(|_| {
                    piece.fill(0);
                    piece.len()
                }))
            }
        }
    }
}

impl braid_files::ReadAt for Reader<'_> {
    fn size(&self) -> u64 {
        self.place.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < buf.len() {
            match ReadAt::read_at(self, offset + done as u64, &mut buf[done..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
