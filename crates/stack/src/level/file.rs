//! A plain path, `file(PATH, offset=…, length=…)` or `part(PATH, NUMBER)`: a regular file or a block
//! device, or a part of one, given by its bytes or by the partition table.
//!
//! ```text
//!  file      ├───────────┬─────────────────┬──────────────┤
//!            0         offset       offset + length      size
//!                        └──── member ─────┘
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use super::args::Args;
use super::{Level, Node, Stack};
use crate::error::Fault;
use crate::expr::{Word, fmt_path};
use crate::problem::Problem;
use crate::size::ByteSize;

/// A regular file or a block device, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path as written: UTF-8, not empty, without NUL; nothing is expanded.
    pub path: String,
    /// The start of the member, in bytes: a multiple of 512.
    pub offset: ByteSize,
    /// The length of the member in bytes: a multiple of 512, not zero; `None` reaches to the end.
    pub length: Option<ByteSize>,
    /// The number of the partition, from 1 on; then the partition table gives its start and end.
    pub partition: Option<u32>,
}

impl File {
    /// The whole file or device at a path.
    #[must_use]
    pub fn whole_at(path: String) -> Self {
        Self { path, offset: ByteSize(0), length: None, partition: None }
    }

    /// The name of the member in messages: its path, or, for a part of a file or device, its text in a stack,
    /// with an absolute path.
    #[must_use]
    pub fn called(name: &str) -> Self {
        // An absolute path cannot be taken for a call.
        let parsed = if name.starts_with('/') { None } else { Stack::parse(name).ok() };
        match parsed.map(|stack| stack.node) {
            Some(Node::File(file)) => file,
            _ => Self::whole_at(name.to_owned()),
        }
    }

    /// The member's name: see [`File::called`].
    #[must_use]
    pub fn name(&self) -> PathBuf {
        if self.is_whole() { self.path().to_owned() } else { self.to_string().into() }
    }

    /// True if the member is the whole file or device at its path.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.offset.0 == 0 && self.length.is_none() && self.partition.is_none()
    }

    /// The whole file or device at the path that `word` spells.
    pub(crate) fn whole(word: &Word) -> Result<Self, Fault> {
        if word.text.is_empty() || word.text.contains('\0') {
            return Err(Fault::new(Problem::ImpossiblePath, word.span));
        }
        Ok(Self::whole_at(word.text.clone()))
    }

    /// The path in the operating system's type.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// The path without a leading `./`. (`Path` itself compares `a//b` and `a/./b` equal to `a/b`.)
    pub(crate) fn plain_path(&self) -> &Path {
        let path = self.path();
        path.strip_prefix(".").unwrap_or(path)
    }

    /// True if both name the same path, apart from `./` and doubled slashes, and share at least a byte.
    ///
    /// This compares the text only; links are not followed.
    #[must_use]
    pub fn overlaps(&self, other: &File) -> bool {
        let end = |file: &File| {
            file.length.map_or(u64::MAX, |length| file.offset.0.saturating_add(length.0))
        };
        let are_apart = match (self.partition, other.partition) {
            (Some(one), Some(other)) => one != other,
            // The place of a partition is not known here.
            (Some(_), None) => !other.is_whole(),
            (None, Some(_)) => !self.is_whole(),
            (None, None) => self.offset.0 >= end(other) || other.offset.0 >= end(self),
        };
        !are_apart && self.plain_path() == other.plain_path()
    }
}

impl Level for File {
    const NAME: &'static str = "file";
    const USAGE: &'static str = "file(PATH, offset=SIZE, length=SIZE), or the path alone";
    const PARAMETERS: &'static [&'static str] = &["offset", "length"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let whole = Self::whole(args.only("path", "a path")?)?;
        Ok(Self { offset: args.offset("offset")?, length: args.size("length")?, ..whole })
    }
}

impl fmt::Display for File {
    /// The path alone, if the member is the whole file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            return fmt_path(f, &self.path);
        }
        if let Some(number) = self.partition {
            f.write_str("part(")?;
            fmt_path(f, &self.path)?;
            return write!(f, ", {number})");
        }
        f.write_str("file(")?;
        fmt_path(f, &self.path)?;
        if self.offset.0 != 0 {
            write!(f, ", offset={}", self.offset)?;
        }
        if let Some(length) = self.length {
            write!(f, ", length={length}")?;
        }
        f.write_str(")")
    }
}

/// The path in a member's name: see [`File::called`].
#[must_use]
pub fn path_of(name: &Path) -> PathBuf {
    let called = name.to_str().map(File::called);
    called.map_or(name.to_owned(), |file| file.path().to_owned())
}

/// `part(PATH, NUMBER)`: the notation for a partition. From there on it is a [`File`].
pub(crate) struct Part(pub(crate) File);

impl Level for Part {
    const NAME: &'static str = "part";
    const USAGE: &'static str = "part(PATH, NUMBER)";
    const PARAMETERS: &'static [&'static str] = &[];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let (path, number) = args.two("a path and the number of a partition")?;
        let whole = File::whole(path)?;
        match number.text.parse() {
            Ok(1..=MOST_PARTITIONS) => {
                Ok(Self(File { partition: number.text.parse().ok(), ..whole }))
            }
            _ => Err(Fault::new(Problem::NoPartitionNumber, number.span)),
        }
    }
}

/// More partitions than a partition table can have.
const MOST_PARTITIONS: u32 = 1024;

impl From<Part> for File {
    fn from(Part(file): Part) -> Self {
        file
    }
}
