//! Sources, the data that tools need beside the subject: a file of noise, a tree of text, its archive.
//!
//! ```text
//! bytes, seed ──plan_tree──> names and sizes ──> files of text ──tar──> archive
//! ```
//!
//! Invariants: the same data and seed give the same bytes; a source appears under its name only when it is
//! complete and on its disk, and an existing one is kept.
//!
//! The tree is shaped like a kernel's sources: sizes are log-normal around 4 KiB with a mean of some 11 KiB, a
//! dozen files per folder, folders up to six deep, text that compresses to about a quarter.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_stack::ByteSize;

use super::Content;
use super::parts::arg;
use crate::command::{CommandLine, Step};
use crate::error::LabError;
use crate::world::{Leave, StopFlag, World, make_file};
use braid_seed::Rng;

/// Time limit for making a source, on any storage.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Content of a tree's files, in blocks of 4 KiB (larger ones compress a little more).
pub(super) const CONTENT_OF_TREE: Content = Content::Text(65);

/// Data that must be ready before a tool's first trial, on fast storage beside the subject, with its size in
/// bytes. It is made once per campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceData {
    /// A file of incompressible bytes.
    File(u64),
    /// A tar archive of a tree like a kernel's sources (many small files, some large, nested folders, mostly
    /// compressible text); total bytes of its files.
    Archive(u64),
    /// The tree itself.
    Tree(u64),
}

impl SourceData {
    /// Returns the path in the folder of sources.
    pub(super) fn path_in(self, sources: &Path) -> PathBuf {
        sources.join(match self {
            Self::File(bytes) => format!("random-{}.bin", ByteSize(bytes)),
            Self::Archive(bytes) => format!("tree-{}.tar", ByteSize(bytes)),
            Self::Tree(bytes) => format!("tree-{}", ByteSize(bytes)),
        })
    }

    /// Returns true if the existing file or folder looks like the source.
    fn is(self, found: &fs::Metadata) -> bool {
        match self {
            Self::File(bytes) => found.is_file() && found.len() == bytes,
            Self::Archive(bytes) => found.is_file() && found.len() >= bytes,
            Self::Tree(_) => found.is_dir(),
        }
    }
}

/// Returns the space of a tree on a file system: small files fill whole blocks and have inodes.
pub(super) fn room_of_tree(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 2)
}

/// Makes a source in a folder, unless it exists.
///
/// # Errors
///
/// It cannot be written, `tar` is absent or fails, its name is taken, or `stop` is set meanwhile
/// ([`LabError::Stopped`]). No part of it is left then.
pub fn make_source(
    data: SourceData,
    folder: &Path,
    seed: u64,
    stop: &StopFlag,
    world: &mut dyn World,
) -> Result<(), LabError> {
    let path = data.path_in(folder);
    match fs::symlink_metadata(&path) {
        Ok(found) if data.is(&found) => return Ok(()),
        Ok(_) => {
            let other = io::Error::other("something else has this name; move it away");
            return Err(LabError::file("make the source", &path)(other));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(LabError::file("look at", &path)(error)),
    }
    // Beside its place, so that a rename is enough; removed with its contents on every way out.
    let work = tempfile::Builder::new()
        .prefix(".making-")
        .tempdir_in(folder)
        .map_err(LabError::file("make a folder in", folder))?;
    let [tree, archive] = ["tree", "archive"].map(|name| work.path().join(name));
    let made = match data {
        SourceData::File(bytes) => {
            make_file(&tree, bytes, seed, &Leave::new(LONGEST, stop))?;
            tree
        }
        SourceData::Tree(bytes) => {
            make_tree(&tree, bytes, seed, stop)?;
            tree
        }
        SourceData::Archive(bytes) => {
            make_tree(&tree, bytes, seed, stop)?;
            world.perform(&Step::Run(pack(&archive, work.path(), "tree")), LONGEST, stop)?;
            archive
        }
    };
    // Otherwise it would be written back during a measurement.
    let on_disk = File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(folder)?));
    on_disk.map_err(LabError::file("sync", folder))?;
    fs::rename(&made, &path).map_err(LabError::file("create", &path))
}

/// A file of a tree.
#[derive(Debug, PartialEq, Eq)]
struct Planned {
    folder: PathBuf,
    name: String,
    bytes: u64,
}

const DEEPEST: usize = 6;
const MEDIAN_BYTES: f64 = 4096.0;
/// Standard deviation of the logarithm: the mean is the median times e^(σ²/2), 10.9 KiB.
const SIGMA: f64 = 1.4;
const LARGEST_BYTES: f64 = (8 << 20) as f64;

/// Returns names and sizes of a tree; the sizes add up to `bytes`.
fn plan_tree(bytes: u64, seed: u64) -> Vec<Planned> {
    let mut rng = Rng::new(seed);
    let mut folders = vec![PathBuf::new()];
    let mut files = Vec::new();
    let mut left = bytes;
    while left > 0 {
        // One folder per dozen files.
        if rng.index(12) == 0 {
            let parent = &folders[rng.index(folders.len())];
            if parent.components().count() < DEEPEST {
                folders.push(parent.join(format!("{}{}", word(&mut rng), folders.len())));
            }
        }
        let drawn = (MEDIAN_BYTES * (SIGMA * normal(&mut rng)).exp()).clamp(1.0, LARGEST_BYTES);
        let size = (drawn as u64).min(left);
        let end = ["c", "c", "h", "h", "txt"][rng.index(5)];
        let name = format!("{}_{}{}.{end}", word(&mut rng), word(&mut rng), files.len());
        let folder = folders[rng.index(folders.len())].clone();
        files.push(Planned { folder, name, bytes: size });
        left -= size;
    }
    files
}

/// Returns an about normal number: the sum of twelve uniform numbers has a variance of one.
fn normal(rng: &mut Rng) -> f64 {
    let uniform = |rng: &mut Rng| (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
}

const WORDS: &[&str] = &[
    "array", "block", "buffer", "chunk", "clock", "copy", "count", "degraded", "device", "disk",
    "drive", "else", "error", "event", "failed", "false", "field", "flush", "for", "free", "head",
    "if", "index", "int", "length", "level", "limit", "list", "lock", "long", "member", "mirror",
    "next", "null", "offset", "order", "page", "parity", "pending", "plan", "queue", "read",
    "rebuild", "region", "return", "sector", "seek", "size", "spare", "static", "stripe", "struct",
    "super", "switch", "sync", "true", "unsigned", "until", "volume", "wait", "while", "width",
    "write", "zero",
];

fn word(rng: &mut Rng) -> &'static str {
    WORDS[rng.index(WORDS.len())]
}

/// Returns lines of words, indented, with some punctuation.
fn text(bytes: u64, rng: &mut Rng) -> Vec<u8> {
    let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut text = Vec::with_capacity(wanted.saturating_add(64));
    while text.len() < wanted {
        let mut bits = rng.next_u64();
        text.resize(text.len() + (bits % 4) as usize, b'\t');
        bits >>= 2;
        // Up to eight words from one number: six bits each choose a word.
        for _ in 0..1 + bits % 8 {
            bits = bits.rotate_right(6);
            text.extend_from_slice(WORDS[(bits % 64) as usize].as_bytes());
            text.extend_from_slice([" ", " ", "(", ", "][(bits >> 40) as usize % 4].as_bytes());
        }
        text.extend_from_slice(b";\n");
    }
    text.truncate(wanted);
    text
}

fn make_tree(root: &Path, bytes: u64, seed: u64, stop: &StopFlag) -> Result<(), LabError> {
    let mut rng = Rng::new(seed ^ 0x7472_6565);
    fs::create_dir(root).map_err(LabError::file("create", root))?;
    for planned in plan_tree(bytes, seed) {
        if stop.is_set() {
            return Err(LabError::Stopped);
        }
        let folder = root.join(&planned.folder);
        fs::create_dir_all(&folder).map_err(LabError::file("create", &folder))?;
        let path = folder.join(&planned.name);
        fs::write(&path, text(planned.bytes, &mut rng)).map_err(LabError::file("write", &path))?;
    }
    Ok(())
}

/// Packs a folder of `work` into an archive, which is the same for the same content, independent of user and
/// time.
fn pack(archive: &Path, work: &Path, folder: &str) -> CommandLine {
    CommandLine::new("tar")
        .args(["--create", "--format=ustar", "--force-local", "--sort=name", "--mtime=@0"])
        .args(["--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"])
        .args(["--file", &arg(archive), "--directory", &arg(work), folder])
}

#[cfg(test)]
mod tests;
