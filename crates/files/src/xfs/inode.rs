//! An inode of xfs.

use crate::bytes::{be16, be32, be64, byte};
use crate::error::{Tried, check};
use crate::walk::{Kind, Node, Time};

const REALTIME: u16 = 1;
const BIG_TIMES: u64 = 0x8;
const MANY_EXTENTS: u64 = 0x10;

#[derive(Debug)]
pub(super) struct Inode {
    pub(super) number: u64,
    mode: u16,
    links: u32,
    /// Contents lie on the realtime device.
    pub(super) is_realtime: bool,
    formats: [u8; 2],
    extents: [u64; 2],
    /// The starts of the forks, and the end of the first one.
    forks: (usize, usize),
    bytes: Vec<u8>,
}

/// The part of an inode that leads to its contents or its attributes.
#[derive(Clone, Copy)]
pub(super) struct Fork<'i> {
    pub(super) is_attributes: bool,
    /// 1: in the inode; 2: extents; 3: a tree.
    pub(super) format: u8,
    pub(super) extents: u64,
    pub(super) bytes: &'i [u8],
}

impl Inode {
    /// Reads an inode; one that is not in use is an error, too.
    pub(super) fn parse(number: u64, bytes: Vec<u8>) -> Tried<Inode> {
        check(bytes.starts_with(b"IN"), "an inode is none")?;
        let (mode, version) = (be16(&bytes, 2)?, byte(&bytes, 4)?);
        check(mode != 0, "an inode is not in use")?;
        check((1..=3).contains(&version), "an inode has a version that is not known")?;
        let is_v3 = version == 3;
        check(!is_v3 || be64(&bytes, 152)? == number, "an inode has the number of another")?;
        let start = if is_v3 { 176 } else { 100 };
        let end = match usize::from(byte(&bytes, 82)?) {
            0 => bytes.len(),
            offset => start + offset * 8,
        };
        check(end <= bytes.len(), "the forks of an inode lie outside of it")?;
        let extents = match is_v3 && be64(&bytes, 120)? & MANY_EXTENTS != 0 {
            true => [be64(&bytes, 24)?, be32(&bytes, 76)?.into()],
            false => [be32(&bytes, 76)?.into(), be16(&bytes, 80)?.into()],
        };
        Ok(Inode {
            number,
            mode,
            links: if version == 1 { be16(&bytes, 6)?.into() } else { be32(&bytes, 16)? },
            is_realtime: be16(&bytes, 90)? & REALTIME != 0,
            formats: [byte(&bytes, 5)?, byte(&bytes, 83)?],
            extents,
            forks: (start, end),
            bytes,
        })
    }

    pub(super) fn is_directory(&self) -> bool {
        self.mode & 0xf000 == 0x4000
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode & 0xf000 == 0xa000
    }

    /// Bytes of its contents.
    pub(super) fn size(&self) -> Tried<u64> {
        be64(&self.bytes, 56)
    }

    /// The attributes.
    pub(super) fn node(&self) -> Tried<Node> {
        let (kind, size) = (Kind::of_mode(self.mode)?, self.size()?);
        check(self.links > 0, "the inode is not in use")?;
        check(size <= i64::MAX.cast_unsigned(), "the file is larger than a file can be")?;
        Ok(Node {
            inode: self.number,
            kind,
            mode: self.mode,
            links: self.links,
            owner: (be32(&self.bytes, 8)?, be32(&self.bytes, 12)?),
            size,
            accessed: self.time(32)?,
            modified: self.time(40)?,
            is_again: false,
            sealed: (self.is_realtime && kind == Kind::File && size > 0)
                .then_some("its contents lie on the realtime device"),
        })
    }

    /// When it was made, in seconds since 1970, or changed if it does not say; none without the number.
    pub(super) fn made(&self) -> Option<i64> {
        let is_v3 = self.forks.0 == 176;
        self.time(if is_v3 { 144 } else { 48 }).ok().map(|(seconds, _)| seconds)
    }

    /// A time: seconds and nanoseconds, or nanoseconds since 2^31 seconds before 1970.
    fn time(&self, at: usize) -> Tried<Time> {
        let number = be64(&self.bytes, at)?;
        if self.forks.0 == 176 && be64(&self.bytes, 120)? & BIG_TIMES != 0 {
            let seconds = (number / 1_000_000_000).cast_signed() - (1 << 31);
            return Ok((seconds, u32::try_from(number % 1_000_000_000).unwrap_or(0)));
        }
        let seconds = be32(&self.bytes, at)?.cast_signed();
        Ok((seconds.into(), be32(&self.bytes, at + 4)?.min(999_999_999)))
    }

    pub(super) fn data(&self) -> Fork<'_> {
        let bytes = &self.bytes[self.forks.0..self.forks.1];
        Fork { is_attributes: false, format: self.formats[0], extents: self.extents[0], bytes }
    }

    pub(super) fn attributes(&self) -> Fork<'_> {
        let bytes = &self.bytes[self.forks.1..];
        // Without a fork its format says nothing.
        let format = if bytes.is_empty() { 0 } else { self.formats[1] };
        Fork { is_attributes: true, format, extents: self.extents[1], bytes }
    }

    /// An inode without a name, in words.
    pub(super) fn what(&self) -> &'static str {
        match self.links {
            0 => "file that was deleted while it was open",
            _ => "file whose name was not found",
        }
    }
}
