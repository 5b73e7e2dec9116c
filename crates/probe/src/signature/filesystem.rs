//! File systems that need more than a magic number to be told, or have a label worth showing.

use std::io;

use super::window::{Block, hexadecimal};
use super::{Class, Signature, Window};

fn file_system(name: &'static str, offset: u64) -> Signature {
    Signature::new(name, Class::FileSystem, offset)
}

/// ext2, ext3, ext4 and an external journal.
///
/// Source: the kernel's `Documentation/filesystems/ext4/super.rst`: superblock at 1024; in it blocks
/// 4, log_block_size 24, magic 56, features 92/96/100, uuid 104, label 120, blocks_hi 336.
pub(super) fn detect_ext(window: &Window<'_>) -> io::Result<Option<Signature>> {
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    const SIXTY_FOUR_BIT: u32 = 0x80;
    // What ext3 knows: filetype, recover, meta_bg; sparse_super, large_file, btree_dir.
    const EXT3_INCOMPAT: u32 = 0x2 | 0x4 | 0x10;
    const EXT3_RO_COMPAT: u32 = 0x1 | 0x2 | 0x4;
    let Some(block) = window.read::<340>(1024)? else { return Ok(None) };
    let log_block_size = block.le32(24);
    // Two bytes of magic are weak; a block size of 1 KiB to 64 KiB makes them strong enough.
    if block.le16(56) != 0xef53 || log_block_size > 6 {
        return Ok(None);
    }
    let (compat, incompat, ro_compat) = (block.le32(92), block.le32(96), block.le32(100));
    let name = if incompat & JOURNAL_DEVICE != 0 {
        "ext journal"
    } else if incompat & !EXT3_INCOMPAT != 0 || ro_compat & !EXT3_RO_COMPAT != 0 {
        "ext4"
    } else if compat & HAS_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    };
    let high = if incompat & SIXTY_FOUR_BIT != 0 { block.le32(336) } else { 0 };
    let blocks = u64::from(high) << 32 | u64::from(block.le32(4));
    Ok(Some(
        file_system(name, 1024 + 56)
            .labelled(block.text(120, 16))
            .identified(block.uuid(104))
            .sized(blocks, 1024 << log_block_size),
    ))
}

/// Source: the kernel's `fs/xfs/libxfs/xfs_format.h`, `xfs_dsb`, big-endian: magic 0, blocksize 4,
/// dblocks 8, uuid 32, fname 108.
pub(super) fn detect_xfs(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<120>(0)? else { return Ok(None) };
    Ok(block.has(0, b"XFSB").then(|| {
        file_system("xfs", 0)
            .labelled(block.text(108, 12))
            .identified(block.uuid(32))
            .sized(block.be64(8), u64::from(block.be32(4)))
    }))
}

/// Source: the kernel's `include/uapi/linux/btrfs_tree.h`, `btrfs_super_block` at 64 KiB: fsid 32,
/// magic 64, total_bytes 112, label 299.
pub(super) fn detect_btrfs(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<555>(65536)? else { return Ok(None) };
    Ok(block.has(64, b"_BHRfS_M").then(|| {
        file_system("btrfs", 65536 + 64)
            .labelled(block.text(299, 256))
            .identified(block.uuid(32))
            .sized(block.le64(112), 1)
    }))
}

/// Source: the kernel's `include/linux/f2fs_fs.h`, `f2fs_super_block` at 1 KiB and again at 5 KiB:
/// log_blocksize 16, block_count 36, uuid 108, volume_name 124.
pub(super) fn detect_f2fs(window: &Window<'_>) -> io::Result<Option<Signature>> {
    for offset in [1024, 5120] {
        let Some(block) = window.read::<1148>(offset)? else { return Ok(None) };
        if block.le32(0) == 0xf2f5_2010 {
            let block_size = 1_u64.checked_shl(block.le32(16)).unwrap_or(0);
            return Ok(Some(
                file_system("f2fs", offset)
                    .labelled(block.text_utf16(124, 512))
                    .identified(block.uuid(108))
                    .sized(block.le64(36), block_size),
            ));
        }
    }
    Ok(None)
}

/// True if a sector 0 is BitLocker's: `-FVE-FS-` in place of the OEM name, or on removable media a FAT-like
/// sector with BitLocker's identifier at 424 (libbde's format description).
pub(super) fn is_bitlocker(sector: &Block<512>) -> bool {
    const TO_GO: &[u8] = b"\x3b\xd6\x67\x49\x29\x2e\xd8\x4a\x83\x99\xf6\xa3\x39\xe3\xd0\x01";
    sector.has(3, b"-FVE-FS-") || (sector.has(3, b"MSWIN4.1") && sector.has(424, TO_GO))
}

pub(super) fn detect_bitlocker(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let sector = window.read::<512>(0)?;
    let is_there = sector.is_some_and(|sector| is_bitlocker(&sector));
    Ok(is_there.then(|| Signature::new("BitLocker", Class::Encryption, 3)))
}

pub(super) fn is_ntfs(sector: &Block<512>) -> bool {
    sector.has(3, b"NTFS    ")
}

/// Source: the kernel's `fs/ntfs3/ntfs.h`, `NTFS_BOOT`: bytes per sector 11, sectors 40, serial 72.
pub(super) fn detect_ntfs(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(sector) = window.read::<512>(0)?.filter(is_ntfs) else { return Ok(None) };
    let mut serial = sector.bytes(72, 8).to_vec();
    serial.reverse();
    Ok(Some(
        file_system("ntfs", 3)
            .identified(hexadecimal(&serial).to_uppercase())
            .sized(sector.le64(40), u64::from(sector.le16(11))),
    ))
}

pub(super) fn is_exfat(sector: &Block<512>) -> bool {
    sector.has(3, b"EXFAT   ")
}

/// Source: Microsoft's exFAT specification, 3.1: length in sectors 72, serial 100, sector shift 108.
pub(super) fn detect_exfat(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(sector) = window.read::<512>(0)?.filter(is_exfat) else { return Ok(None) };
    let sector_size = 1_u64.checked_shl(u32::from(sector.u8(108))).unwrap_or(0);
    Ok(Some(
        file_system("exfat", 3)
            .identified(fat_serial(sector.bytes(100, 4)))
            .sized(sector.le64(72), sector_size),
    ))
}

/// True if a sector 0 begins a FAT file system: it contains the words that nothing relies on, or it has a jump
/// and plausible parameters.
///
/// Source: Microsoft's FAT specification 1.03: jump 0, bytes per sector 11, sectors per cluster 13,
/// reserved sectors 14, number of FATs 16, media 21, sectors per FAT 22 or 36.
pub(super) fn is_fat(sector: &Block<512>) -> bool {
    if is_ntfs(sector) || is_exfat(sector) || is_bitlocker(sector) {
        return false;
    }
    let is_geometry_sane = matches!(sector.le16(11), 512 | 1024 | 2048 | 4096)
        && sector.u8(13).is_power_of_two()
        && sector.le16(14) > 0
        && matches!(sector.u8(16), 1 | 2)
        && matches!(sector.u8(21), 0xf0 | 0xf8..)
        && (sector.le16(22) > 0 || sector.le32(36) > 0);
    let is_named = is_fat32(sector)
        || [&b"FAT12   "[..], b"FAT16   ", b"FAT     "].iter().any(|name| sector.has(54, name));
    let has_jump = sector.u8(0) == 0xe9 || (sector.u8(0) == 0xeb && sector.u8(2) == 0x90);
    is_geometry_sane && (is_named || (has_jump && sector.has(510, b"\x55\xaa")))
}

fn is_fat32(sector: &Block<512>) -> bool {
    sector.has(82, b"FAT32   ")
}

/// FAT32 keeps serial and label at 67 and 71, its smaller sisters at 39 and 43.
pub(super) fn detect_fat(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(sector) = window.read::<512>(0)?.filter(is_fat) else { return Ok(None) };
    let (name_at, serial_at, label_at) =
        if is_fat32(&sector) { (82, 67, 71) } else { (54, 39, 43) };
    let sectors = match sector.le16(19) {
        0 => u64::from(sector.le32(32)),
        small => u64::from(small),
    };
    let label = sector.text(label_at, 11);
    let label = if label == "NO NAME" { String::new() } else { label };
    Ok(Some(
        file_system("vfat", name_at)
            .labelled(label)
            .identified(fat_serial(sector.bytes(serial_at, 4)))
            .sized(sectors, u64::from(sector.le16(11))),
    ))
}

/// The eight digits that Microsoft's serial numbers are written in: `1234-ABCD`.
fn fat_serial(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().rev().map(|byte| format!("{byte:02X}")).collect();
    format!("{}-{}", &digits[..4], &digits[4..])
}

/// Source: the kernel's `fs/squashfs/squashfs_fs.h`: magic 0, bytes_used 40.
pub(super) fn detect_squashfs(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<48>(0)? else { return Ok(None) };
    let size = match block.bytes(0, 4) {
        b"hsqs" => block.le64(40),
        b"sqsh" => block.be64(40),
        _ => return Ok(None),
    };
    Ok(Some(file_system("squashfs", 0).sized(size, 1)))
}

/// Source: ECMA-119, 8.4: from sector 16 on, the primary descriptor has the type 1, `CD001`, the
/// label at 40, the number of blocks at 80 and their size at 128.
pub(super) fn detect_iso9660(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<132>(32768)? else { return Ok(None) };
    Ok(block.has(1, b"CD001").then(|| {
        file_system("iso9660", 32769)
            .labelled(block.text(40, 32))
            .sized(u64::from(block.le32(80)), u64::from(block.le16(128)))
    }))
}
