//! An inode of xfs.

use crate::bytes::{be16, be32, be64, byte};
use crate::error::{Tried, check};

const REALTIME: u16 = 1;
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
