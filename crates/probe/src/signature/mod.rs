//! The contents of a member, recognized by its bytes.
//!
//! ```text
//!  0      512    1K    4K     32K    64K          1M      …      −512K     −64K  −8K  −4K −512
//!  │MBR   │GPT   │ext  │md1.2 │iso   │btrfs ──── │vmfs          │zfs      │md   │md  │drbd │GPT
//!  │LUKS  │LVM2  │f2fs │bcache│udf   │reiserfs   │              │L2 L3    │0.90 │1.0 │     │vhd
//!  │xfs, vfat, ntfs, qcow2 …                                   (distances from the end)
//! ```
//!
//! Invariants:
//! - Pure over [`ReadAt`]; nothing is ever written.
//! - Every offset and length that is read from the bytes is bounded before it is used; no content
//!   can panic, overflow or cause more than a few MiB of reads.
//! - Several formats can be present at once (md inside a partition table's gap, a file system left in front of
//!   a new one); all are reported, in the order of `DETECTORS`.
//!
//! A format with a fixed magic number is one line in `magic.rs`; any other is one function in the
//! file of its family and one line in `DETECTORS`.
//!
//! Deliberately absent: checksums (data behind a damaged header may still be wanted), and file systems whose
//! only mark is two bytes without anything else to check.

mod container;
mod filesystem;
mod image;
mod magic;
mod partition;
mod raid;
mod window;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use braid_stack::ByteSize;

pub use magic::CACHE_LOG;
pub(crate) use window::Window;

/// Bytes that can be read at an offset.
pub trait ReadAt {
    /// The number of bytes.
    fn size(&self) -> u64;

    /// Reads up to `buffer.len()` bytes at `offset` and returns their number; 0 only behind the end or for an
    /// empty buffer.
    ///
    /// # Errors
    /// Whatever the medium reports; a short read is not an error.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A part of what can be read.
pub struct Part<'a> {
    bytes: &'a dyn ReadAt,
    start: u64,
    length: u64,
}

impl<'a> Part<'a> {
    /// The bytes from `start` on, `length` of them; what lies behind the end of `bytes` is missing.
    #[must_use]
    pub fn new(bytes: &'a dyn ReadAt, start: u64, length: u64) -> Part<'a> {
        Part { bytes, start, length }
    }
}

impl ReadAt for Part<'_> {
    fn size(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(offset);
        let count = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.bytes.read_at(self.start.saturating_add(offset), &mut buffer[..count])
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - start);
        buffer[..count].copy_from_slice(&self[start..start + count]);
        Ok(count)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> u64 {
        self.as_slice().size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buffer)
    }
}

/// An open file or block device and its size in bytes.
#[derive(Debug)]
pub struct FileImage<'a> {
    /// Open for reading.
    pub file: &'a File,
    /// The start of the bytes in it.
    pub start: u64,
    /// Size in bytes; for a block device its real end, not the size from `stat`.
    pub size: u64,
}

impl ReadAt for FileImage<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        loop {
            match self.file.read_at(&mut buffer[..count], self.start.saturating_add(offset)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// The kind of content that a signature stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// A file system.
    FileSystem,
    /// A partition table.
    PartitionTable,
    /// A member of a RAID array.
    Raid,
    /// A member of a volume manager or a storage pool.
    VolumeManager,
    /// An encrypted volume.
    Encryption,
    /// Swap space or a hibernation image.
    Swap,
    /// A cache device or what it stands in front of.
    Cache,
    /// The image of a virtual disk in a format of its own: its bytes are not the disk's bytes.
    DiskImage,
}

/// A format that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name, such as `ext4`, `md 1.2`, `GPT`, `LUKS2`, `qcow2`.
    pub name: &'static str,
    /// The kind of content.
    pub class: Class,
    /// The place of its identifying bytes, in bytes from the beginning.
    pub offset: u64,
    /// Its label or name.
    pub label: Option<String>,
    /// Its unique identifier, in the spelling of its own tools.
    pub uuid: Option<String>,
    /// The number of bytes that it covers or describes, according to itself.
    pub size: Option<u64>,
}

impl Signature {
    pub(crate) fn new(name: &'static str, class: Class, offset: u64) -> Self {
        Self { name, class, offset, label: None, uuid: None, size: None }
    }

    /// Adds a label, unless it is empty.
    pub(crate) fn labelled(mut self, label: String) -> Self {
        self.label = (!label.is_empty()).then_some(label);
        self
    }

    /// Adds an identifier, unless it is all zeros.
    pub(crate) fn identified(mut self, uuid: String) -> Self {
        self.uuid =
            uuid.bytes().any(|byte| byte.is_ascii_alphanumeric() && byte != b'0').then_some(uuid);
        self
    }

    /// Adds `count × unit` bytes, unless that is nonsense.
    pub(crate) fn sized(mut self, count: u64, unit: u64) -> Self {
        self.size = count.checked_mul(unit);
        self
    }
}

impl fmt::Display for Signature {
    /// `ext4 "photos" (1.5 GiB)`; a label's control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(label) = &self.label {
            write!(f, " {label:?}")?;
        }
        if let Some(size) = self.size {
            write!(f, " ({:#})", ByteSize(size))?;
        }
        Ok(())
    }
}

type Detector = fn(&Window<'_>) -> io::Result<Option<Signature>>;

/// Every format with a function of its own; `magic.rs` has the others.
const DETECTORS: &[Detector] = &[
    partition::detect_gpt,
    partition::detect_mbr,
    raid::detect_md_v1_1,
    raid::detect_md_v1_2,
    raid::detect_md_v1_0,
    raid::detect_md_v0,
    raid::detect_drbd,
    container::detect_luks,
    container::detect_lvm2,
    container::detect_bcache,
    container::detect_zfs,
    container::detect_swap,
    filesystem::detect_ext,
    filesystem::detect_xfs,
    filesystem::detect_btrfs,
    filesystem::detect_f2fs,
    filesystem::detect_bitlocker,
    filesystem::detect_ntfs,
    filesystem::detect_exfat,
    filesystem::detect_fat,
    filesystem::detect_squashfs,
    filesystem::detect_iso9660,
    image::detect_qcow,
    image::detect_vmdk,
    image::detect_vdi,
    image::detect_vhd,
];

/// All formats that the bytes carry.
///
/// # Errors
/// The medium's, when it cannot be read where a format would be: what cannot be read cannot be
/// called empty.
pub fn scan_signatures(bytes: &dyn ReadAt) -> io::Result<Vec<Signature>> {
    let window = Window::new(bytes);
    let mut found = Vec::new();
    for detect in DETECTORS {
        found.extend(detect(&window)?);
    }
    magic::detect_all(&window, &mut found)?;
    Ok(found)
}
