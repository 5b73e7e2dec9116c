//! Formats that a fixed magic number tells well enough.

use std::io;

use super::{Class, Signature, Window};

/// From where an offset counts.
#[derive(Clone, Copy)]
enum Place {
    Start(u64),
    End(u64),
}

use Class::{Cache, Encryption, FileSystem, Raid, VolumeManager};
use Place::{End, Start};

/// The name of the log of a cache of braid's.
pub const CACHE_LOG: &str = "braid cache log";

/// Name, class, place, magic bytes. The same name twice: any of the places.
const MAGICS: &[(&str, Class, Place, &[u8])] = &[
    ("jfs", FileSystem, Start(0x8000), b"JFS1"),
    ("reiserfs", FileSystem, Start(0x1_0034), b"ReIsErFs"),
    ("reiserfs", FileSystem, Start(0x1_0034), b"ReIsEr2Fs"),
    ("reiserfs", FileSystem, Start(0x1_0034), b"ReIsEr3Fs"),
    ("reiser4", FileSystem, Start(0x1_0000), b"ReIsEr4"),
    ("ocfs2", FileSystem, Start(0x400), b"OCFSV2"),
    ("ocfs2", FileSystem, Start(0x800), b"OCFSV2"),
    ("ocfs2", FileSystem, Start(0x1000), b"OCFSV2"),
    ("ocfs2", FileSystem, Start(0x2000), b"OCFSV2"),
    ("gfs2", FileSystem, Start(0x1_0000), b"\x01\x16\x19\x70"),
    ("hfs+", FileSystem, Start(0x400), b"H+\x00\x04"),
    ("hfs+", FileSystem, Start(0x400), b"HX\x00\x05"),
    ("apfs", FileSystem, Start(0x20), b"NXSB"),
    ("udf", FileSystem, Start(0x8001), b"BEA01"),
    ("udf", FileSystem, Start(0x8801), b"BEA01"),
    ("udf", FileSystem, Start(0x9001), b"BEA01"),
    ("erofs", FileSystem, Start(0x400), b"\xe2\xe1\xf5\xe0"),
    ("vmfs", FileSystem, Start(0x10_0000), b"\x0d\xd0\x01\xc0"),
    // bcachefs and bcache share the place; the identifiers differ from the fifth byte on.
    (
        "bcachefs",
        FileSystem,
        Start(0x1018),
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    ("ceph bluestore", VolumeManager, Start(0), b"bluestore block device"),
    ("stratis", VolumeManager, Start(0x204), b"!Stra0tis\x86\xff\x02^\x41rh"),
    ("vdo", VolumeManager, Start(0), b"dmvdo001"),
    (CACHE_LOG, Cache, Start(0), b"braidwbl"),
    (CACHE_LOG, Cache, Start(0x1000), b"braidwbl"),
    ("dm-snapshot", Cache, Start(0), b"SnAp"),
    ("dm-integrity", Encryption, Start(0), b"integrt\0"),
    ("dm-verity", Encryption, Start(0), b"verity\0\0"),
    ("Intel Matrix RAID", Raid, End(1024), b"Intel Raid ISM Cfg Sig. "),
    ("Intel Matrix RAID", Raid, End(8192), b"Intel Raid ISM Cfg Sig. "),
    ("DDF RAID", Raid, End(512), b"\xde\x11\xde\x11"),
];

/// Reports each format of the table once, at the first place where it is found.
pub(super) fn detect_all(window: &Window<'_>, found: &mut Vec<Signature>) -> io::Result<()> {
    for (name, class, place, magic) in MAGICS {
        let offset = match place {
            Start(offset) => Some(*offset),
            End(distance) => window.size().checked_sub(*distance),
        };
        let Some(offset) = offset else { continue };
        let mut bytes = vec![0; magic.len()];
        let is_there = window.fill(offset, &mut bytes)? && bytes == *magic;
        if is_there && !found.iter().any(|signature| signature.name == *name) {
            found.push(Signature::new(name, *class, offset));
        }
    }
    Ok(())
}
