//! The disks of a new array, what the array reads as, and blank disks beside it.

use braid_array::geometry::Column;
use braid_array::{ArrayByte, Geometry};
use braid_engine::redundant::Layout;
use braid_md::{Resync, Role, Version};

use crate::contents::parities;
use crate::scenario::Start;
use crate::spec::Spec;
use crate::{Image, Oracle, Rng};

/// The state before the first life.
pub(crate) struct Birth {
    /// By disk: members by their roles, then blank ones.
    pub disks: Vec<Option<Image>>,
    /// The possible content of the array.
    pub oracle: Oracle,
}

/// Bytes that distinguish every block from any other.
pub(crate) fn fill(bytes: &mut [u8], rng: &mut Rng) {
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&rng.next_u64().to_le_bytes()));
}

/// A new array of `spec`, and `blank` disks.
pub(crate) fn birth(spec: &Spec, start: Start, blank: usize, rng: &mut Rng) -> Birth {
    let mut content = vec![0; spec.size() as usize];
    fill(&mut content, rng);
    let mut data = members_data(spec, &content);
    let mut oracle = Oracle::new(&content, 512);
    if let Start::Unsynced(from) = start {
        spoil(spec, &mut data, from);
        if !spec.has_parity() {
            // It was never written: before the resync, any copy may count.
            oracle.crash(|_| true);
        }
    }
    let absent = if spec.version == Version::V0_90 { Role::Faulty } else { Role::Spare };
    let member = |role: usize| {
        if start == Start::Missing(role) {
            return None;
        }
        Some(spec.disk(role, &data[role], |superblock| match start {
            Start::Clean => {}
            Start::Unsynced(from) => superblock.resync = Resync::From(from),
            Start::Missing(missing) => {
                superblock.roles[missing] = absent;
                if let Some(old) = &mut superblock.old {
                    old.counts = [spec.members as u32 - 1; 4];
                    (old.counts[2], old.counts[3]) = (1, 0);
                }
            }
        }))
    };
    let mut disks: Vec<_> = (0..spec.members).map(member).collect();
    // Another program's data, but no superblocks.
    let rubbish = || {
        let mut disk = vec![0x5a; spec.disk_size() as usize];
        disk[..4096].fill(0);
        Some(Image::from(disk))
    };
    disks.extend((0..blank).map(|_| rubbish()));
    Birth { disks, oracle }
}

/// The data of each member when the array holds `content`.
pub(crate) fn members_data(spec: &Spec, content: &[u8]) -> Vec<Vec<u8>> {
    let mut data = vec![vec![0; spec.member_size as usize]; spec.members];
    match spec.geometry(spec.members) {
        Layout::Copies(geometry) => {
            for (block, bytes) in (0..).zip(content.chunks_exact(512)) {
                for copy in 0..geometry.copies() {
                    let run = geometry.locate(ArrayByte::new(block * 512), copy);
                    data[run.role.index()][run.offset.get() as usize..][..512]
                        .copy_from_slice(bytes);
                }
            }
        }
        Layout::Parity(geometry) => {
            let chunk = geometry.chunk() as usize;
            for (stripe, bytes) in (0..).zip(content.chunks_exact(geometry.stripe() as usize)) {
                let columns: Vec<&[u8]> = bytes.chunks_exact(chunk).collect();
                let (p, q) = parities(&geometry, stripe, &columns);
                let mut put = |column, bytes: &[u8]| {
                    let role = geometry.role_of(stripe, column);
                    data[role.index()][stripe as usize * chunk..][..chunk].copy_from_slice(bytes);
                };
                for (index, bytes) in columns.iter().enumerate() {
                    put(Column::Data(index), bytes);
                }
                put(Column::P, &p);
                if geometry.parities() == 2 {
                    put(Column::Q, &q);
                }
            }
        }
    }
    data
}

/// Has other bytes where parity, or a second copy, is from sync byte `from` on.
fn spoil(spec: &Spec, data: &mut [Vec<u8>], from: u64) {
    match spec.geometry(spec.members) {
        Layout::Copies(geometry) => {
            for offset in (from..geometry.size()).step_by(512) {
                for copy in 1..geometry.copies() {
                    let run = geometry.locate(ArrayByte::new(offset), copy);
                    data[run.role.index()][run.offset.get() as usize..][..512]
                        .fill(0x70 + copy as u8);
                }
            }
        }
        Layout::Parity(geometry) => {
            for row in (from..geometry.member_size()).step_by(512) {
                for column in [Column::P, Column::Q].into_iter().take(geometry.parities()) {
                    let role = geometry.role_of(row / geometry.chunk(), column);
                    data[role.index()][row as usize..][..512].fill(0x77);
                }
            }
        }
    }
}
