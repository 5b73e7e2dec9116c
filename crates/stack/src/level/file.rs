//! A plain path, or `file(PATH, offset=…, length=…)`: a regular file or a block device, or a part of
//! one.
//!
//! ```text
//!  file      ├───────────┬─────────────────┬──────────────┤
//!            0         offset       offset + length      size
//!                        └──── member ─────┘
//! ```

use std::fmt;
use std::path::Path;

use super::Level;
use super::args::Args;
use crate::error::Fault;
use crate::expr::{Word, fmt_path};
use crate::problem::Problem;
use crate::size::ByteSize;

/// A regular file or a block device, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The path as written: UTF-8, not empty, without NUL; nothing is expanded.
    pub path: String,
    /// Where the member begins, in bytes: a multiple of 512.
    pub offset: ByteSize,
    /// How many bytes belong to the member: a multiple of 512, not zero; `None` is all up to the end.
    pub length: Option<ByteSize>,
}

impl File {
    /// The whole file or device at the path that `word` spells.
    pub(crate) fn whole(word: &Word) -> Result<Self, Fault> {
        if word.text.is_empty() || word.text.contains('\0') {
            return Err(Fault::new(Problem::ImpossiblePath, word.span));
        }
        Ok(Self { path: word.text.clone(), offset: ByteSize(0), length: None })
    }

    /// The path as the operating system takes it.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// The path without a leading `./`. (`Path` itself compares `a//b` and `a/./b` equal to `a/b`.)
    pub(crate) fn plain_path(&self) -> &Path {
        let path = self.path();
        path.strip_prefix(".").unwrap_or(path)
    }

    /// Whether both name the same path, but for `./` and doubled slashes, and share at least a byte.
    ///
    /// This is about the text only; links are not followed.
    #[must_use]
    pub fn overlaps(&self, other: &File) -> bool {
        let end = |file: &File| {
            file.length.map_or(u64::MAX, |length| file.offset.0.saturating_add(length.0))
        };
        self.offset.0 < end(other)
            && other.offset.0 < end(self)
            && self.plain_path() == other.plain_path()
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
    /// The path alone when it is the whole file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.offset.0 == 0 && self.length.is_none() {
            return fmt_path(f, &self.path);
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
