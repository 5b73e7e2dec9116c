//! The known facts about a golden array: its manifest, and the way to its bytes.
//!
//! Field names are the manifest's. Sizes and offsets are in bytes unless the name says sectors.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::pattern::{Content, SECTOR};
use crate::runs;

pub use crate::pattern::Piece;

/// The result that a reader must get from the present members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Assemble, and read as the content.
    Read,
    /// The same, with members missing or stale.
    ReadDegraded,
    /// Refuse with a reason, or read as the content; never read as anything else.
    RefuseOrRead,
}

/// The role of a member in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "RoleText")]
pub enum Role {
    /// The number of its slot.
    Slot(u32),
    /// A spare.
    Spare,
    /// The journal of a raid4, 5 or 6.
    Journal,
}

/// A role as the manifest writes it: a number or a word.
#[derive(Deserialize)]
#[serde(untagged)]
enum RoleText {
    Slot(u32),
    Word(RoleWord),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RoleWord {
    Spare,
    Journal,
}

impl From<RoleText> for Role {
    fn from(text: RoleText) -> Role {
        match text {
            RoleText::Slot(slot) => Role::Slot(slot),
            RoleText::Word(RoleWord::Spare) => Role::Spare,
            RoleText::Word(RoleWord::Journal) => Role::Journal,
        }
    }
}

/// Versions of what made the array.
#[derive(Clone, Debug, Deserialize)]
pub struct MadeWith {
    /// The way in which the kernel was run.
    pub engine: String,
    /// The kernel's release.
    pub kernel: String,
    /// The output of `mdadm --version`.
    pub mdadm: String,
}

/// A member. All but index, bytes, role and state is absent of a member that is missing.
#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    /// Its place in the order in which mdadm was given the members.
    pub index: usize,
    /// The size of its image.
    pub bytes: u64,
    /// Its role in the array, or its role before it went missing or stale.
    pub role: Role,
    /// `in_sync`, `missing`, `stale`, `spare`, `recovering`, ... and flags after commas, such as
    /// `write_mostly`, as in sysfs.
    pub state: String,
    /// The SHA-256 of its image, in hexadecimal.
    pub sha256: Option<String>,
    /// Its superblock's count of events.
    pub events: Option<u64>,
    /// The place of its superblock.
    pub super_offset_bytes: Option<u64>,
    /// The start of its data.
    pub data_offset_bytes: Option<u64>,
    /// The length of its data.
    pub data_bytes: Option<u64>,
    /// The superblock's feature map (version 1 only).
    pub feature_map: Option<u32>,
    /// The progress of a resync: the superblock's field; `None` if none is due, or in version 0.90.
    pub resync_offset_sectors: Option<u64>,
    /// The progress of a recovery, if one was running.
    pub recovery_offset_sectors: Option<u64>,
    /// The place of its bitmap, if it has one.
    pub bitmap_offset_bytes: Option<u64>,
    /// The place of its partial parity log, if it has one.
    pub ppl_sector: Option<u64>,
    /// The size of the log.
    pub ppl_size_sectors: Option<u64>,
    /// Ranges of its bad-block log: first sector and count, on the member.
    #[serde(default)]
    pub bad_blocks: Vec<(u64, u64)>,
    /// The output of `mdadm --examine mN.img`.
    pub examine: Option<String>,
    /// The output of `mdadm --examine-bitmap`.
    pub examine_bitmap: Option<String>,
    /// The output of `mdadm --examine-badblocks mN.img`, if the log holds a range.
    pub examine_badblocks: Option<String>,
}

impl Member {
    /// True if there is an image of it.
    #[must_use]
    pub fn present(&self) -> bool {
        self.sha256.is_some()
    }
}

/// An array that the kernel made.
#[derive(Clone, Debug, Deserialize)]
pub struct Golden {
    /// Its name, and the folder's.
    pub name: String,
    /// A description in one line.
    pub title: String,
    /// The result that a reader must get from it.
    pub expect: Expect,
    /// Further remarks.
    pub notes: String,
    /// The level, as mdadm names it.
    pub level: String,
    /// The layout's number; for a raid0 -1, which means that it is not stored.
    pub layout_number: i64,
    /// The layout's name, if mdadm has one.
    pub layout: Option<String>,
    /// The chunk; 0 for levels without.
    pub chunk_bytes: u64,
    /// The number of slots.
    pub raid_disks: u32,
    /// The superblock's version: `0.90`, `1.0`, `1.1` or `1.2`.
    pub metadata: String,
    /// The array's UUID, as mdadm prints it.
    pub uuid: String,
    /// The array's size.
    pub array_bytes: u64,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// The pieces of its content.
    pub pattern: Vec<Piece>,
    /// The number of slots without a member in sync.
    pub degraded: u32,
    /// True if the superblocks say clean; otherwise the machine was stopped abruptly while they said active.
    pub clean_shutdown: bool,
    /// The members, by index.
    pub members: Vec<Member>,
    /// The output of `mdadm --detail`, just before the array was stopped.
    pub detail: String,
    /// `/proc/mdstat`, at the same time.
    pub mdstat: String,
    /// Files of `/sys/block/md0/md`, at the same time.
    pub sysfs: BTreeMap<String, String>,
    /// The settings that the kernel needs to assemble it, such as `module_params`.
    pub assemble: BTreeMap<String, serde_json::Value>,
    /// The command that created it.
    pub create: String,
    /// The steps after that.
    pub steps: String,
    /// The versions of the programs.
    pub made_with: MadeWith,
    #[serde(skip)]
    folder: PathBuf,
    #[serde(skip)]
    content: OnceLock<Content>,
}

/// The folder of the golden arrays.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/md/golden")
}

/// The array of this name that was broken on purpose: it does not start, although its members hold its content.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn broken(name: &str) -> Golden {
    read(&folder().with_file_name("broken").join(name))
}

/// All golden arrays, by name.
///
/// # Panics
///
/// If a manifest cannot be read.
#[must_use]
pub fn all() -> Vec<Golden> {
    let entries = fs::read_dir(folder()).expect("the folder of golden arrays");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    let mut names: Vec<String> = paths
        .filter(|path| path.join("manifest.json").exists())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.iter().map(|name| named(name)).collect()
}

/// The golden array of this name.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn named(name: &str) -> Golden {
    read(&folder().join(name))
}

/// The array in a folder.
fn read(folder: &Path) -> Golden {
    let path = folder.join("manifest.json");
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("no golden array: {}: {error}", path.display()));
    let golden: Golden =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Golden { folder: folder.to_owned(), ..golden }
}

impl Golden {
    /// The members of which there are images.
    pub fn present(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.present())
    }

    /// The image of the member with this index.
    ///
    /// # Panics
    ///
    /// If it is missing.
    #[must_use]
    pub fn expand_member(&self, index: usize) -> Vec<u8> {
        let path = self.folder.join(format!("m{index}.runs"));
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("no member {index}: {}: {error}", path.display()));
        runs::expand(&text, self.content())
    }

    /// Writes the images of the members that are present to `m0.img`, ... in a folder that
    /// exists, with holes where they are zero; their paths, by index.
    ///
    /// # Errors
    ///
    /// Those of creating and writing the files.
    pub fn expand_into(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.present()
            .map(|member| {
                let path = folder.join(format!("m{}.img", member.index));
                write_sparse(&path, &self.expand_member(member.index))?;
                Ok(path)
            })
            .collect()
    }

    /// The expected content of the array: `length` bytes at `offset`, on any boundary.
    ///
    /// # Panics
    ///
    /// If the range is not within the array.
    #[must_use]
    pub fn content_block(&self, offset: u64, length: usize) -> Vec<u8> {
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.array_bytes);
        let end = end.unwrap_or_else(|| {
            panic!("{length} bytes at {offset} are not within {} bytes", self.array_bytes)
        });
        let sectors = offset / SECTOR as u64..end.div_ceil(SECTOR as u64);
        let skip = (offset % SECTOR as u64) as usize;
        let mut bytes = Vec::with_capacity(length + 2 * SECTOR);
        for sector in sectors {
            let age = self.content().last_age();
            bytes.extend_from_slice(&self.content().sector(age, sector).bytes());
        }
        bytes.drain(..skip);
        bytes.truncate(length);
        bytes
    }

    fn content(&self) -> &Content {
        self.content.get_or_init(|| Content::new(&self.pattern))
    }
}

/// Writes a file of these bytes, with holes for the blocks of them that are zero.
fn write_sparse(path: &Path, bytes: &[u8]) -> io::Result<()> {
    const BLOCK: usize = 64 << 10;
    let mut file = fs::File::create(path)?;
    file.set_len(bytes.len() as u64)?;
    for (index, block) in bytes.chunks(BLOCK).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            file.seek(SeekFrom::Start((index * BLOCK) as u64))?;
            file.write_all(block)?;
        }
    }
    Ok(())
}
