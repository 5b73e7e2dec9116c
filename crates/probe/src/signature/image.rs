//! Images of virtual disks: files whose bytes are not the disk's bytes.

use std::io;

use super::{Class, Signature, Window};

fn image(name: &'static str, offset: u64) -> Signature {
    Signature::new(name, Class::DiskImage, offset)
}

/// Source: QEMU's `docs/interop/qcow2.rst`, big-endian: magic 0, version 4, size 24.
pub(super) fn detect_qcow(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<32>(0)? else { return Ok(None) };
    if !block.has(0, b"QFI\xfb") {
        return Ok(None);
    }
    let name = if block.be32(4) == 1 { "qcow" } else { "qcow2" };
    Ok(Some(image(name, 0).sized(block.be64(24), 1)))
}

/// Source: VMware's "Virtual Disk Format 5.0": a sparse extent begins with `KDMV` and has its
/// capacity in sectors at 12; a descriptor is a text.
pub(super) fn detect_vmdk(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<21>(0)? else { return Ok(None) };
    Ok(if block.has(0, b"KDMV") {
        Some(image("vmdk", 0).sized(block.le64(12), 512))
    } else if block.has(0, b"# Disk DescriptorFile") {
        Some(image("vmdk", 0))
    } else {
        None
    })
}

/// Source: VirtualBox `VDICore.h`: a text, the magic at 64, the size of the disk at 368.
pub(super) fn detect_vdi(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<376>(0)? else { return Ok(None) };
    let is_vdi = block.le32(64) == 0xbeda_107f;
    Ok(is_vdi.then(|| image("vdi", 64).sized(block.le64(368), 1)))
}

/// Source: Microsoft's "Virtual Hard Disk Image Format" (`conectix` in the footer, and in front of a
/// dynamic disk in its copy; size at 48, big-endian) and "VHDX Format" (`vhdxfile`).
pub(super) fn detect_vhd(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(start) = window.read::<64>(0)? else { return Ok(None) };
    if start.has(0, b"vhdxfile") {
        return Ok(Some(image("vhdx", 0)));
    }
    if start.has(0, b"conectix") {
        return Ok(Some(image("vhd", 0).sized(start.be64(48), 1)));
    }
    let Some((offset, end)) = window.read_from_end::<64>(512)? else { return Ok(None) };
    Ok(end.has(0, b"conectix").then(|| image("vhd", offset).sized(end.be64(48), 1)))
}
