//! Every format on bytes made by hand, at its edges, and on garbage.

use std::io;

use braid_probe::{Class, ReadAt, Signature, scan_signatures};
use proptest::prelude::*;

/// Bytes that are zero but for some patches, of any size without needing the memory.
struct Sparse {
    size: u64,
    patches: Vec<(u64, Vec<u8>)>,
}

impl ReadAt for Sparse {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..count];
        buffer.fill(0);
        for (start, bytes) in &self.patches {
            for (index, byte) in bytes.iter().enumerate() {
                let at = (start + index as u64)
                    .checked_sub(offset)
                    .and_then(|at| usize::try_from(at).ok());
                if let Some(place) = at.and_then(|at| buffer.get_mut(at)) {
                    *place = *byte;
                }
            }
        }
        Ok(count)
    }
}

const MIB: u64 = 1 << 20;

fn scan(size: u64, patches: &[(u64, &[u8])]) -> Vec<Signature> {
    let patches = patches.iter().map(|(offset, bytes)| (*offset, bytes.to_vec())).collect();
    scan_signatures(&Sparse { size, patches }).expect("memory can be read")
}

/// The names found, in order.
fn names(size: u64, patches: &[(u64, &[u8])]) -> Vec<&'static str> {
    scan(size, patches).into_iter().map(|signature| signature.name).collect()
}

/// The only signature.
fn only(size: u64, patches: &[(u64, &[u8])]) -> Signature {
    let mut found = scan(size, patches);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn nothing_is_found_where_nothing_is() {
    for size in [0, 1, 511, 512, 513, 4095, 4096, 65535, 65536, MIB, 1 << 40, u64::MAX] {
        assert_eq!(names(size, &[]), [""; 0], "{size}");
    }
    assert_eq!(scan_signatures(&vec![0xff_u8; 1 << 20]).unwrap(), []);
}

#[test]
fn formats_with_a_magic_number() {
    let cases: &[(&str, Class, u64, &[u8])] = &[
        ("xfs", Class::FileSystem, 0, b"XFSB\0\0\x10\0"),
        ("btrfs", Class::FileSystem, 65600, b"_BHRfS_M"),
        ("f2fs", Class::FileSystem, 1024, b"\x10\x20\xf5\xf2"),
        ("f2fs", Class::FileSystem, 5120, b"\x10\x20\xf5\xf2"),
        ("squashfs", Class::FileSystem, 0, b"hsqs"),
        ("iso9660", Class::FileSystem, 32768, b"\x01CD001"),
        ("exfat", Class::FileSystem, 3, b"EXFAT   "),
        ("ntfs", Class::FileSystem, 3, b"NTFS    "),
        ("BitLocker", Class::Encryption, 3, b"-FVE-FS-"),
        ("reiserfs", Class::FileSystem, 65588, b"ReIsEr2Fs"),
        ("LUKS1", Class::Encryption, 0, b"LUKS\xba\xbe\0\x01"),
        ("LUKS2", Class::Encryption, 0, b"LUKS\xba\xbe\0\x02"),
        ("LUKS2 (second header only)", Class::Encryption, 16384, b"SKUL\xba\xbe"),
        ("swap", Class::Swap, 4086, b"SWAPSPACE2"),
        ("swap", Class::Swap, 65526, b"SWAPSPACE2"),
        ("hibernation image", Class::Swap, 4086, b"S1SUSPEND\0"),
        ("qcow2", Class::DiskImage, 0, b"QFI\xfb\0\0\0\x03"),
        ("vmdk", Class::DiskImage, 0, b"KDMV"),
        ("vmdk", Class::DiskImage, 0, b"# Disk DescriptorFile"),
        ("vdi", Class::DiskImage, 64, b"\x7f\x10\xda\xbe"),
        ("vhdx", Class::DiskImage, 0, b"vhdxfile"),
        ("vhd", Class::DiskImage, 8 * MIB - 512, b"conectix"),
        ("DDF RAID", Class::Raid, 8 * MIB - 512, b"\xde\x11\xde\x11"),
        ("DRBD", Class::Raid, 8 * MIB - 4096 + 60, b"\x83\x74\x02\x6b"),
        (
            "bcache",
            Class::Cache,
            4120,
            b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        ),
    ];
    for (name, class, offset, magic) in cases {
        let signature = only(8 * MIB, &[(*offset, magic)]);
        assert_eq!((signature.name, signature.class), (*name, *class));
        // One byte less than the whole magic is nothing.
        let cut = offset + magic.len() as u64 - 1;
        if *offset < MIB {
            assert!(!names(cut, &[(*offset, magic)]).contains(name), "{name} in {cut} bytes");
        }
    }
}

#[test]
fn ext_in_its_generations() {
    let ext = |log_block_size: u8, compat: u8, incompat: u8| {
        names(
            MIB,
            &[
                (1024 + 24, &[log_block_size]),
                (1024 + 56, b"\x53\xef"),
                (1024 + 92, &[compat]),
                (1024 + 96, &[incompat]),
            ],
        )
    };
    assert_eq!(ext(2, 0, 0), ["ext2"]);
    assert_eq!(ext(2, 0x4, 0x2), ["ext3"]);
    assert_eq!(ext(2, 0x4, 0x40), ["ext4"]);
    assert_eq!(ext(2, 0, 0x8), ["ext journal"]);
    assert_eq!(ext(7, 0x4, 0x40), [""; 0]);
}

#[test]
fn zfs_in_each_of_its_labels() {
    let size = 8 * MIB + 12345;
    let end = 8 * MIB;
    for label in [0, 256 << 10, end - (512 << 10), end - (256 << 10)] {
        let offset = label + (128 << 10) + 3 * 1024;
        assert_eq!(only(size, &[(offset, b"\x0c\xb1\xba\0\0\0\0\0")]).offset, offset);
        assert_eq!(only(size, &[(offset, b"\0\0\0\0\0\xba\xb1\x0c")]).name, "ZFS member");
    }
}

#[test]
fn lvm2_in_each_of_its_sectors() {
    for sector in 0..4_u64 {
        let at = sector * 512;
        let label: Vec<u8> = [&b"LABELONE"[..], &[0; 12], &[32, 0, 0, 0], b"LVM2 001"].concat();
        let header = [&b"AbCdEf0123456789ghijklmnopQRSTUV"[..], &(64 * MIB).to_le_bytes()].concat();
        let signature = only(64 * MIB, &[(at, &label), (at + 32, &header)]);
        assert_eq!(signature.name, "LVM2 member");
        assert_eq!(signature.uuid.as_deref(), Some("AbCdEf-0123-4567-89gh-ijkl-mnop-QRSTUV"));
        assert_eq!(signature.size, Some(64 * MIB));
        // The header's offset is hostile.
        let hostile: Vec<u8> = [&b"LABELONE"[..], &[0; 12], &[0xff; 4], b"LVM2 001"].concat();
        assert_eq!(only(64 * MIB, &[(at, &hostile)]).uuid, None);
    }
}

/// Superblocks that Linux 6.1's md wrote; each 256 bytes, of members of 16 MiB.
const MD_1_2: &[u8] = include_bytes!("golden/md-1.2.sb");
const MD_1_0: &[u8] = include_bytes!("golden/md-1.0.sb");
const MD_0_90: &[u8] = include_bytes!("golden/md-0.90.sb");

#[test]
fn md_in_each_of_its_places() {
    let signature = only(16 * MIB, &[(4096, MD_1_2)]);
    assert_eq!(signature.name, "md 1.2");
    assert_eq!(signature.label.as_deref(), Some("klab:v"));
    assert_eq!(signature.uuid.as_deref(), Some("477b7179:fd1f16fe:6bcf7e3f:0fa1428d"));
    assert_eq!(signature.size, Some(14 * MIB));

    let end = 16 * MIB - 8192;
    // A size that is no multiple of 4 KiB is rounded down.
    for size in [16 * MIB, 16 * MIB + 512, 16 * MIB + 3584] {
        assert_eq!(only(size, &[(end, MD_1_0)]).name, "md 1.0");
    }
    assert_eq!(names(16 * MIB + 4096, &[(end, MD_1_0)]), [""; 0]);
    // A superblock knows its place: a copy of it elsewhere is none.
    assert_eq!(names(16 * MIB, &[(4096, MD_1_0)]), [""; 0]);
    let mut first = MD_1_2.to_vec();
    first[144..152].fill(0);
    assert_eq!(only(16 * MIB, &[(0, &first)]).name, "md 1.1");
}

#[test]
fn md_0_90_of_both_byte_orders() {
    let uuid = "948be6bd:34248c95:52b18f43:bba0c658";
    let swapped: Vec<u8> =
        MD_0_90.chunks(4).flat_map(|word| word.iter().rev().copied().collect::<Vec<_>>()).collect();
    for block in [MD_0_90, &swapped] {
        // 64 KiB to 128 KiB before the end, on a 64 KiB boundary.
        for size in [16 * MIB, 16 * MIB + 512, 16 * MIB + 65535] {
            let signature = only(size, &[(16 * MIB - 65536, block)]);
            assert_eq!(signature.name, "md 0.90");
            assert_eq!(signature.uuid.as_deref(), Some(uuid));
            assert_eq!(signature.size, Some(16 * MIB - 65536));
        }
    }
    assert_eq!(names(65536, &[(0, MD_0_90)]), ["md 0.90"]);
    assert_eq!(names(65535, &[(0, MD_0_90)]), [""; 0]);
}

fn mbr_entry(kind: u8, start: u32, count: u32) -> Vec<u8> {
    let mut entry = vec![0, 0, 0, 0, kind, 0, 0, 0];
    entry.extend(start.to_le_bytes());
    entry.extend(count.to_le_bytes());
    entry
}

#[test]
fn mbr_and_what_only_looks_like_one() {
    let mark: (u64, &[u8]) = (510, b"\x55\xaa");
    let linux = mbr_entry(0x83, 2048, 2048);
    let signature = only(8 * MIB, &[mark, (446, &linux), (440, b"\x78\x56\x34\x12")]);
    assert_eq!((signature.name, signature.size), ("MBR", Some(2 * MIB)));
    assert_eq!(signature.uuid.as_deref(), Some("12345678"));
    assert_eq!(only(8 * MIB, &[mark]).size, None);
    // Code in place of entries.
    assert_eq!(names(8 * MIB, &[mark, (446, b"\xfa\x31\xc0\x8e")]), [""; 0]);
    assert_eq!(names(8 * MIB, &[mark, (446, &mbr_entry(0x83, 0, 2048))]), [""; 0]);
    // A boot sector of FAT ends in the same mark.
    let parameters = b"\xeb\x3c\x90mkfs.fat\x00\x02\x04\x01\x00\x02\x00\x02\x00\x40\xf8\x10\x00";
    let signature = only(8 * MIB, &[(0, parameters), (54, b"FAT16   "), mark]);
    assert_eq!((signature.name, signature.size), ("vfat", Some(8 * MIB)));
    assert_eq!(names(8 * MIB, &[(0, parameters), mark]), ["vfat"]);
    assert_eq!(names(8 * MIB, &[(3, b"NTFS    "), mark]), ["ntfs"]);
}

#[test]
fn gpt_at_both_ends_and_with_both_sector_sizes() {
    let size = 8 * MIB;
    for sector in [512_u64, 4096] {
        let last = size / sector - 1;
        let header = |own: u64, other: u64| {
            let mut header = b"EFI PART\0\0\x01\0\x5c\0\0\0".to_vec();
            header.resize(24, 0);
            header.extend(own.to_le_bytes());
            header.extend(other.to_le_bytes());
            header.resize(56, 0);
            header.extend(*b"\x28\x73\x2a\xc1\x1f\xf8\xd2\x11\xba\x4b\x00\xa0\xc9\x3e\xc9\x3b");
            header
        };
        let (primary, backup) = (header(1, last), header(last, 1));
        let protective = mbr_entry(0xee, 1, u32::MAX);
        let mbr: [(u64, &[u8]); 2] = [(510, b"\x55\xaa"), (446, &protective)];
        let first: (u64, &[u8]) = (sector, &primary);
        let second: (u64, &[u8]) = (size - sector, &backup);
        let signature = only(size, &[mbr[0], mbr[1], first, second]);
        assert_eq!((signature.name, signature.size), ("GPT", Some(size)));
        assert_eq!(signature.uuid.as_deref(), Some("c12a7328-f81f-11d2-ba4b-00a0c93ec93b"));
        assert_eq!(only(size, &[second]).name, "GPT (backup only)");
    }
    // Protective, but the GPT is gone: still a partition table.
    let protective = mbr_entry(0xee, 1, u32::MAX);
    assert_eq!(names(size, &[(510, b"\x55\xaa"), (446, &protective)]), ["MBR"]);
}

#[test]
fn labels_are_escaped_and_sizes_have_units() {
    let label = "a\u{1b}[31m\"";
    let signature =
        only(8 * MIB, &[(0, b"XFSB\0\0\x10\0\0\0\0\0\0\x04\0\0"), (108, label.as_bytes())]);
    assert_eq!(signature.to_string(), r#"xfs "a\u{1b}[31m\"" (1 GiB)"#);
    // What cannot be multiplied is left out.
    let absurd = only(8 * MIB, &[(0, b"XFSB\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")]);
    assert_eq!(absurd.to_string(), "xfs");
}

/// A medium that fails is not an empty one.
struct Broken;

impl ReadAt for Broken {
    fn size(&self) -> u64 {
        MIB
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= 65536 {
            return Err(io::Error::other("unreadable sector"));
        }
        buffer.fill(0);
        Ok(buffer.len().min(7))
    }
}

#[test]
fn a_medium_that_fails_is_an_error_and_short_reads_are_not() {
    assert_eq!(scan_signatures(&Broken).unwrap_err().to_string(), "unreadable sector");
}

/// Magic numbers with the places where they count.
const SEEDS: &[(u64, &[u8])] = &[
    (0, b"LUKS\xba\xbe"),
    (0, b"XFSB"),
    (0, b"LABELONE"),
    (24, b"LVM2 001"),
    (0, b"QFI\xfb"),
    (0, b"hsqs"),
    (3, b"NTFS    "),
    (3, b"EXFAT   "),
    (54, b"FAT16   "),
    (510, b"\x55\xaa"),
    (512, b"EFI PART"),
    (1024, b"\x10\x20\xf5\xf2"),
    (1080, b"\x53\xef"),
    (4086, b"SWAPSPACE2"),
    (4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    (32769, b"CD001"),
    (65600, b"_BHRfS_M"),
];

proptest! {
    /// Garbage around real magic numbers, in every length.
    #[test]
    fn no_bytes_panic(
        seed in prop::collection::vec(any::<u8>(), 64),
        length in 0_usize..80_000,
        magics in prop::collection::vec(prop::sample::select(SEEDS), 0..6),
    ) {
        let mut bytes: Vec<u8> = seed.iter().copied().cycle().take(length).collect();
        for (offset, magic) in magics {
            let start = offset as usize;
            if let Some(place) = bytes.get_mut(start..start + magic.len()) {
                place.copy_from_slice(magic);
            }
        }
        for signature in scan_signatures(&bytes).expect("memory can be read") {
            prop_assert!(signature.offset < length as u64);
            prop_assert!(!signature.to_string().is_empty());
        }
    }
}
