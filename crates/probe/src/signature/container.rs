//! Contents that are neither a file system nor a partition table: LUKS, LVM2, bcache, ZFS pools, swap.

use std::io;

use super::{Class, Signature, Window};

/// LUKS1 and LUKS2; for LUKS2 also by its second header, when the first is gone.
///
/// Source: LUKS1 and LUKS2 on-disk format specifications: magic 0, version 6 (big-endian), hdr_size 8
/// and label 24 (LUKS2), uuid 168.
pub(super) fn detect_luks(window: &Window<'_>) -> io::Result<Option<Signature>> {
    if let Some(block) = window.read::<208>(0)?
        && block.has(0, b"LUKS\xba\xbe")
    {
        let signature = match block.be16(6) {
            1 => Signature::new("LUKS1", Class::Encryption, 0),
            2 => Signature::new("LUKS2", Class::Encryption, 0).labelled(block.text(24, 48)),
            _ => Signature::new("LUKS", Class::Encryption, 0),
        };
        return Ok(Some(signature.identified(block.text(168, 40))));
    }
    // The second header stands behind the first area: 16 KiB to 4 MiB, a power of two.
    for shift in 14..=22 {
        let offset = 1_u64 << shift;
        if let Some(block) = window.read::<208>(offset)?
            && block.has(0, b"SKUL\xba\xbe")
        {
            return Ok(Some(
                Signature::new("LUKS2 (second header only)", Class::Encryption, offset)
                    .labelled(block.text(24, 48))
                    .identified(block.text(168, 40)),
            ));
        }
    }
    Ok(None)
}

/// An LVM2 physical volume: `LABELONE` in one of the first four sectors.
///
/// Source: lvm2 `lib/label/label.h` and `lib/format_text/layout.h`: offset of the header 20, type 24;
/// in the header the identifier of 32 characters and the device's size.
pub(super) fn detect_lvm2(window: &Window<'_>) -> io::Result<Option<Signature>> {
    for offset in [0, 512, 1024, 1536] {
        let Some(block) = window.read::<32>(offset)? else { return Ok(None) };
        if !block.has(0, b"LABELONE") || !block.has(24, b"LVM2 001") {
            continue;
        }
        let signature = Signature::new("LVM2 member", Class::VolumeManager, offset);
        let header = window.read::<40>(offset + u64::from(block.le32(20)))?;
        return Ok(Some(match header {
            Some(header) => {
                signature.identified(lvm_uuid(&header.text(0, 32))).sized(header.le64(32), 1)
            }
            None => signature,
        }));
    }
    Ok(None)
}

/// LVM writes its identifiers in groups of 6-4-4-4-4-4-6.
fn lvm_uuid(text: &str) -> String {
    if text.len() != 32 || !text.is_ascii() {
        return String::new();
    }
    [0..6, 6..10, 10..14, 14..18, 18..22, 22..26, 26..32].map(|group| &text[group]).join("-")
}

/// Source: the kernel's `drivers/md/bcache/bcache_ondisk.h`, `cache_sb_disk` at 4 KiB: version 16,
/// magic 24, uuid 40, label 72.
pub(super) fn detect_bcache(window: &Window<'_>) -> io::Result<Option<Signature>> {
    const MAGIC: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
    let Some(block) = window.read::<104>(4096)? else { return Ok(None) };
    Ok(block.has(24, MAGIC).then(|| {
        Signature::new("bcache", Class::Cache, 4096 + 24)
            .labelled(block.text(72, 32))
            .identified(block.uuid(40))
    }))
}

/// A member of a ZFS pool: an uberblock in one of the four labels.
///
/// ```text
///  L0 at 0    L1 at 256K   …   L2 and L3: the last two 256K of the size rounded down to 256K
///  inside a label: 128K of other things, then 128K of uberblocks, each 1K or more, magic first
/// ```
///
/// Source: OpenZFS `include/sys/vdev_impl.h` and `uberblock_impl.h`.
pub(super) fn detect_zfs(window: &Window<'_>) -> io::Result<Option<Signature>> {
    const LABEL: u64 = 256 << 10;
    const RING: u64 = 128 << 10;
    const MAGIC: u64 = 0x00ba_b10c;
    let end = window.size() / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    let mut ring = vec![0; RING as usize];
    for label in labels.into_iter().flatten() {
        if !window.fill(label + RING, &mut ring)? {
            continue;
        }
        let is_uberblock =
            |block: &[u8]| block[..8] == MAGIC.to_le_bytes() || block[..8] == MAGIC.to_be_bytes();
        if let Some(index) = ring.chunks(1024).position(is_uberblock) {
            let offset = label + RING + 1024 * index as u64;
            return Ok(Some(Signature::new("ZFS member", Class::VolumeManager, offset)));
        }
    }
    Ok(None)
}

/// Swap space, or a hibernation image in its place: ten characters at the end of the first page,
/// whose size is the machine's that made it.
///
/// Source: the kernel's `include/linux/swap.h`, `union swap_header`: at 1024 version, last_page,
/// nr_badpages, uuid, volume name.
pub(super) fn detect_swap(window: &Window<'_>) -> io::Result<Option<Signature>> {
    for page in [4096, 8192, 16384, 32768, 65536] {
        let Some(magic) = window.read::<10>(page - 10)? else { return Ok(None) };
        let name = match &magic.0 {
            b"SWAPSPACE2" | b"SWAP-SPACE" => "swap",
            magic if magic.starts_with(b"S1SUSPEND") || magic.starts_with(b"S2SUSPEND") => {
                "hibernation image"
            }
            magic if magic.starts_with(b"ULSUSPEND") || magic.starts_with(b"LINHIB0001") => {
                "hibernation image"
            }
            _ => continue,
        };
        let signature = Signature::new(name, Class::Swap, page - 10);
        let Some(header) = window.read::<44>(1024)? else { return Ok(Some(signature)) };
        if &magic.0 != b"SWAPSPACE2" {
            return Ok(Some(signature));
        }
        let last_page = u64::from(header.le32(4));
        return Ok(Some(
            signature
                .labelled(header.text(28, 16))
                .identified(header.uuid(12))
                .sized(last_page + 1, page),
        ));
    }
    Ok(None)
}
