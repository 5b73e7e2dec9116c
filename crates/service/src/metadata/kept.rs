//! Copies of an array's superblocks: the state folder's `superblocks/`, a file for each version.
//!
//! ```text
//!   superblocks/12-7f3bb22f:….json   the array, and of each member: what tells it apart, its size, its
//!                                    superblock, the header of its bitmap, its bad-block log
//! ```
//!
//! A version is written when the membership changes. One that differs from the version before in events and
//! times alone takes that one's place and number, so that a volume that comes up daily keeps the history of its
//! changes.
//!
//! Invariants
//! * A file has its name only when it is whole and durable.
//! * There are at most [`MOST_VERSIONS`] files of an array and [`MOST_BYTES`] in all, but for the newest.
//! * What a file says is believed only after `braid_md` has checked it.
//!
//! Deliberately absent: the bits of a bitmap and what a log holds, which are of the moment.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, DirEntry};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use braid_md::bitmap::HEADER_BYTES;
use braid_md::superblock::{Contents, SUPERBLOCK_BYTES};
use braid_md::{BadBlocks, BitmapHeader, Resync, Superblock, Timestamp, Uuid};
use serde::{Deserialize, Serialize};

use super::Image;
use crate::beside::Beside;
use crate::failure::{Context, Failure};
use crate::places::Places;
use crate::record::{Known, Seen};

/// Versions that are kept of an array.
pub(super) const MOST_VERSIONS: usize = 16;
/// Bytes of all versions of all arrays.
const MOST_BYTES: u64 = 32 << 20;
/// Files of at least this length are not such versions.
const MOST_BYTES_OF_ONE: u64 = 8 << 20;
/// After so long a file that was not finished is not being written any more.
const UNFINISHED: Duration = Duration::from_secs(3600);

/// The superblocks of an array, as they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The form of the file.
    format: u32,
    /// Counts up over all arrays; 0 of a file of its own.
    #[serde(skip)]
    pub number: u64,
    /// When they were read, in seconds since 1970.
    pub time_s: u64,
    /// The reason for reading them: `create`, `up`, `change`, …
    pub why: String,
    /// The array's identifier, as mdadm prints it.
    pub array: String,
    /// The members that carried a superblock.
    pub members: Vec<KeptMember>,
}

/// The copy of one member's metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptMember {
    /// The member that it was read from.
    #[serde(rename = "member")]
    pub known: Known,
    /// The version of the superblock.
    metadata: String,
    superblock: Hex,
    /// The header of its write-intent bitmap.
    bitmap: Option<Hex>,
    /// Its bad-block log, if its entries count.
    bad_blocks: Option<Hex>,
}

/// Bytes as hexadecimal digits, without the zeroes at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Hex(String);

impl Hex {
    fn of(bytes: &[u8]) -> Hex {
        let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        Hex(bytes[..len].iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// `len` bytes; `None` if it has more, or is none.
    fn bytes(&self, len: usize) -> Option<Vec<u8>> {
        let digits: Vec<u8> =
            self.0.chars().map(|one| one.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
        let mut bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |all, one| all << 4 | one)).collect();
        (digits.len().is_multiple_of(2) && bytes.len() <= len).then(|| {
            bytes.resize(len, 0);
            bytes
        })
    }
}

/// A member's part of a version, checked.
#[derive(Clone, Debug)]
pub struct Carries {
    /// Its superblock.
    pub superblock: Superblock,
    /// The header of its write-intent bitmap.
    pub bitmap: Option<BitmapHeader>,
    /// Its bad-block log, if its entries count.
    pub bad_blocks: Option<BadBlocks>,
}

impl KeptMember {
    /// Reads the metadata of the member at `path`, and the array that it belongs to; `None` without a valid superblock.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(path: &Path) -> Result<Option<(Uuid, KeptMember)>, Failure> {
        let image = Image::open(path)?;
        let best = image.best().and_then(|one| Some((&one.bytes, one.result.as_ref().ok()?)));
        let seen = Seen::called(path, image.size);
        let (Some((bytes, superblock)), Some(seen)) = (best, seen) else {
            return Ok(None);
        };
        let bitmap = image.bitmap(superblock)?.filter(|bytes| BitmapHeader::parse(bytes).is_ok());
        // A log that is damaged is not worth keeping; a start says so.
        let bad_blocks = image.bad_blocks(superblock).ok().flatten();
        let kept = KeptMember {
            known: Known::from(seen).carrying(superblock),
            metadata: superblock.version.to_string(),
            superblock: Hex::of(bytes),
            bitmap: bitmap.map(|bytes| Hex::of(&bytes[..HEADER_BYTES])),
            bad_blocks: bad_blocks.map(|log| Hex::of(&log.encode())),
        };
        Ok(Some((superblock.array_uuid, kept)))
    }

    /// The superblock, bitmap header and bad-block log that it carried, for a member of `size` bytes.
    ///
    /// # Errors
    /// Why that is nothing md would have written.
    pub fn carries(&self, size: u64) -> Result<Carries, String> {
        let none = || "it is no file of braid's, or damaged".to_owned();
        let version: braid_md::Version = self.metadata.parse()?;
        let offset = version.superblock_offset(size).ok_or("the device is too small")?;
        let bytes = self.superblock.bytes(SUPERBLOCK_BYTES).ok_or_else(none)?;
        let superblock =
            Superblock::parse(version, offset, size, &bytes).map_err(|why| why.to_string())?;
        let bitmap = match &self.bitmap {
            None => None,
            Some(hex) => {
                let bytes = hex.bytes(HEADER_BYTES).ok_or_else(none)?;
                Some(BitmapHeader::parse(&bytes).map_err(|why| why.to_string())?)
            }
        };
        let bad_blocks = match (&self.bad_blocks, superblock.bad_block_log) {
            (Some(hex), Some(log)) => {
                let len = usize::try_from(log.size).map_err(|_| none())?;
                let bytes = hex.bytes(len).ok_or_else(none)?;
                Some(BadBlocks::parse(&bytes, log.shift, size).map_err(|why| why.to_string())?)
            }
            _ => None,
        };
        Ok(Carries { superblock, bitmap, bad_blocks })
    }

    /// The parts that do not depend on the member's fate since.
    ///
    /// # Errors
    /// As [`KeptMember::carries`].
    pub fn carried(&self) -> Result<Carries, String> {
        self.carries(self.known.size_bytes)
    }

    /// The fields that change with the membership alone; `None` of a member that cannot be understood.
    fn shape(&self) -> Option<Contents> {
        let mut contents = self.carried().ok()?.superblock.into_contents();
        contents.events = 0;
        contents.updated = Timestamp::default();
        contents.resync = Resync::Clean;
        contents.recovery_offset = contents.recovery_offset.map(|_| 0);
        contents.corrected_reads = 0;
        contents.raw = Vec::new();
        Some(contents)
    }
}

impl Kept {
    /// Reads the superblocks of the members at `paths`, an array each. A member without one is passed over.
    ///
    /// # Errors
    /// A member cannot be read.
    pub fn read(why: &str, paths: &[PathBuf]) -> Result<Vec<Kept>, Failure> {
        let mut all: Vec<Kept> = Vec::new();
        for path in paths {
            let Some((uuid, member)) = KeptMember::read(path)? else { continue };
            match all.iter_mut().find(|one| one.array == uuid.to_string()) {
                Some(kept) => kept.members.push(member),
                None => all.push(Kept { members: vec![member], ..Kept::new(why, uuid) }),
            }
        }
        Ok(all)
    }

    /// Nothing of an array yet.
    pub fn new(why: &str, uuid: Uuid) -> Kept {
        Kept {
            format: 1,
            number: 0,
            time_s: super::host::now().seconds,
            why: why.to_owned(),
            array: uuid.to_string(),
            members: Vec::new(),
        }
    }

    /// Reads a file that was written by [`Kept::write`].
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn read_file(path: &Path) -> Result<Kept, Failure> {
        let what = || format!("cannot read {}", path.display());
        let len = fs::metadata(path).context(what())?.len();
        if len > MOST_BYTES_OF_ONE {
            return Err(Failure::failed(format!(
                "{} holds no superblocks: it has {len} bytes",
                path.display()
            )));
        }
        let text = fs::read(path).context(what())?;
        let kept: Kept = serde_json::from_slice(&text).map_err(|error| {
            Failure::failed(format!("{} holds no superblocks: {error}", path.display()))
        })?;
        match kept.format {
            1 => Ok(kept),
            format => Err(Failure::failed(format!(
                "{} has the form {format}, which a later braid wrote",
                path.display()
            ))),
        }
    }

    /// Writes it to a file, which is not there before, or is replaced.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn write(&self, path: &Path, replace: bool) -> io::Result<()> {
        let new = Beside::create(path)?;
        new.file().write_all(&serde_json::to_vec_pretty(self)?)?;
        new.into_place(path, replace).map(drop)
    }

    /// The next command where superblocks that it has are gone.
    pub fn next(&self) -> String {
        format!("`braid superblocks restore {} --plan` shows how they come back", self.number)
    }

    /// Returns true if it has a superblock of the member at `path`.
    pub fn has(&self, path: &Path) -> bool {
        self.members.iter().any(|one| one.known.path == path)
    }

    /// Returns true if the versions differ in events and times alone.
    fn has_shape_of(&self, other: &Kept) -> bool {
        let members = |kept: &Kept| -> Option<Vec<(PathBuf, Contents)>> {
            kept.members.iter().map(|one| Some((one.known.path.clone(), one.shape()?))).collect()
        };
        members(self).is_some_and(|own| Some(own) == members(other))
    }
}

/// The folder of all versions.
#[derive(Clone, Debug)]
pub struct Copies {
    folder: PathBuf,
}

impl Copies {
    /// The copies that are kept in `folder`, which need not be there yet.
    pub fn new(folder: PathBuf) -> Copies {
        Copies { folder }
    }

    /// The copies of this machine.
    pub fn own() -> Copies {
        Copies::new(Places::from_environment().superblocks())
    }

    /// The latest copy that has a superblock of the device at `path`, wherever that is now.
    pub fn latest_of(&self, path: &Path) -> Option<Kept> {
        let seen = Seen::at(path)?;
        self.list().into_iter().find(|kept| kept.members.iter().any(|one| one.known.is(&seen)))
    }

    /// The folder that they are kept in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All that can be read, the latest first; says on standard error which cannot.
    pub fn list(&self) -> Vec<Kept> {
        let read = |(number, uuid): (u64, String)| match Kept::read_file(&self.file(number, &uuid))
        {
            Ok(kept) => Some(Kept { number, ..kept }),
            Err(failure) => {
                eprintln!("braid: warning: {}", failure.text());
                None
            }
        };
        self.files().into_iter().rev().filter_map(read).collect()
    }

    /// Returns true if a copy of the array with this identifier exists.
    pub fn has(&self, uuid: &str) -> bool {
        self.files().iter().any(|one| one.1 == uuid)
    }

    /// The version of this number.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn get(&self, number: u64) -> Result<Kept, Failure> {
        let found = self.files().into_iter().find(|one| one.0 == number);
        let (number, uuid) = found.ok_or_else(|| {
            Failure::failed(format!("no superblocks of number {number} are kept"))
                .next("`braid superblocks list`")
        })?;
        Ok(Kept { number, ..Kept::read_file(&self.file(number, &uuid))? })
    }

    /// Makes the folder that copies lie in, for this user alone.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// Keeps a version, durably, and drops what is too much. Answers its number, which is that of the version
    /// before where the membership is the same.
    ///
    /// # Errors
    /// It could not be written: then nothing is dropped.
    pub fn keep(&self, kept: &Kept) -> io::Result<u64> {
        self.make_folder()?;
        self.drop_unfinished();
        let files = self.files();
        let before = files.iter().rev().find(|(_, uuid)| *uuid == kept.array);
        if let Some((number, uuid)) = before {
            let file = self.file(*number, uuid);
            if Kept::read_file(&file).is_ok_and(|one| one.has_shape_of(kept)) {
                kept.write(&file, true)?;
                return Ok(*number);
            }
        }
        let mut number = files.last().map_or(0, |one| one.0) + 1;
        loop {
            match kept.write(&self.file(number, &kept.array), false) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                written => break written?,
            }
        }
        self.drop_surplus(number);
        Ok(number)
    }

    /// Drops the oldest of what is beyond the limits, but for the version of this number. What cannot be
    /// dropped is tried again with the next version.
    fn drop_surplus(&self, newest: u64) {
        let mut counts = BTreeMap::new();
        let mut files = Vec::new();
        for (number, uuid) in self.files().into_iter().rev() {
            let file = self.file(number, &uuid);
            let count = counts.entry(uuid).or_insert(0);
            *count += 1;
            if *count > MOST_VERSIONS {
                let _ = fs::remove_file(file);
            } else if let Ok((written, len)) =
                fs::metadata(&file).and_then(|one| Ok((one.modified()?, one.len())))
            {
                files.push((number != newest, std::cmp::Reverse(written), len, file));
            }
        }
        files.sort();
        let mut bytes = 0;
        for (is_older, _, len, file) in files {
            bytes += len;
            if is_older && bytes > MOST_BYTES {
                let _ = fs::remove_file(file);
            }
        }
    }

    /// Drops what a process that was killed did not finish.
    fn drop_unfinished(&self) {
        let is_old = |entry: &DirEntry| {
            let modified = entry.metadata().and_then(|one| one.modified()).ok();
            let age = modified.and_then(|at| SystemTime::now().duration_since(at).ok());
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            is_hidden && age.is_some_and(|age| age > UNFINISHED)
        };
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries.filter(is_old) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Number and array of all files, in the order of the numbers.
    fn files(&self) -> Vec<(u64, String)> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let parse = |name: &str| {
            let (number, uuid) = name.strip_suffix(".json")?.split_once('-')?;
            let uuid: Uuid = uuid.parse().ok()?;
            Some((number.parse().ok()?, uuid.to_string()))
        };
        let mut files: Vec<(u64, String)> =
            entries.filter_map(|entry| parse(entry.ok()?.file_name().to_str()?)).collect();
        files.sort();
        files
    }

    fn file(&self, number: u64, uuid: &str) -> PathBuf {
        self.folder.join(format!("{number}-{uuid}.json"))
    }

    /// Keeps what the members at `paths` carry; says so where that does not work, and goes on: a change
    /// does not wait for its copy.
    pub fn keep_or_warn(&self, why: &str, paths: &[PathBuf]) {
        let kept = Kept::read(why, paths).and_then(|all| {
            all.iter()
                .try_for_each(|one| self.keep(one).map(drop).map_err(|error| self.not_kept(&error)))
        });
        if let Err(failure) = kept {
            eprintln!("braid: warning: {}", failure.text());
        }
    }

    /// The message about a copy that could not be written.
    pub fn not_kept(&self, error: &io::Error) -> Failure {
        Failure::failed(format!(
            "no copy of the superblocks is kept in {}: {error}",
            self.folder.display()
        ))
        .next("make room there, then `braid superblocks save MEMBER..`")
    }
}
