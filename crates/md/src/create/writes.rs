//! The writes of a plan: contents, places, order, and a description.

use super::place::SUPERBLOCK;
use braid_level::layout;

use super::{Area, NewBitmap, Plan, Planned, What, Write};
use crate::stripe_log::{BLOCK, Head};
use crate::{BitmapHeader, Resync, Role, SECTOR, Superblock, Uuid, ppl};

impl Plan {
    /// All parts of devices that will be overwritten, in the order in which they are.
    #[must_use]
    pub fn areas(&self) -> Vec<Area> {
        let all = |what: What| {
            let area = move |(member, planned): (usize, &Planned)| {
                let (offset, len) = self.place(&planned.superblock, what)?;
                Some(Area { member, offset, len, what })
            };
            self.members.iter().enumerate().filter_map(area)
        };
        let logs = all(What::Ppl).chain(all(What::StripeLog)).chain(all(What::BadBlockLog));
        all(What::Bitmap).chain(logs).chain(all(What::Superblock)).collect()
    }

    /// Returns all bytes to be written, in the required order: the writer makes all writes before the first
    /// superblock durable before it.
    pub fn writes(&self) -> impl Iterator<Item = Write> {
        self.areas().into_iter().filter_map(|area| {
            let superblock = &self.members[area.member].superblock;
            let mut bytes = match area.what {
                What::Bitmap => self.bitmap?.bytes(superblock),
                // Zeroes behind it, so that nothing of an earlier log follows.
                What::Ppl => ppl::Header::empty(ppl::signature(&superblock.array_uuid)).encode(),
                What::StripeLog => self.log_head(superblock)?.encode(),
                What::BadBlockLog => vec![0xff; area.len as usize],
                What::Superblock => superblock.encode(),
            };
            bytes.resize(area.len as usize, 0);
            Some(Write { area, bytes })
        })
    }

    /// The parts of a device, offset and length in bytes, that are written while the array is used
    /// and of which [`Plan::writes`] covers the start at most: the stripe log, the partial parity
    /// log.
    #[must_use]
    pub fn log_areas(&self, planned: &Planned) -> Vec<(u64, u64)> {
        let superblock = &planned.superblock;
        let log = self.stripe_log.map(|area| (superblock.data_offset - area, area));
        let ppl = superblock.ppl.and_then(|(offset, len)| {
            Some((superblock.super_offset.checked_add_signed(offset)?, len))
        });
        log.into_iter().chain(ppl).collect()
    }

    /// Returns the head of a member's stripe log. Its nonce is 0, which no record has: the start of the array
    /// draws one.
    fn log_head(&self, superblock: &Superblock) -> Option<Head> {
        Some(Head {
            array_uuid: superblock.array_uuid,
            device_number: superblock.device_number,
            area: self.stripe_log?,
            events: superblock.events,
            tail: 0,
            nonce: 0,
            synced: 0,
            updated: superblock.updated,
            before: superblock.updated,
        })
    }

    fn place(&self, superblock: &Superblock, what: What) -> Option<(u64, u64)> {
        let (offset, len) = match what {
            What::StripeLog => {
                let len = self.stripe_log.map(|_| BLOCK as u64)?;
                return Some((superblock.data_offset - len, len));
            }
            What::Ppl => superblock.ppl?,
            What::Bitmap => self.bitmap.map(|bitmap| (bitmap.offset, bitmap.size))?,
            What::BadBlockLog => superblock.bad_block_log.map(|log| (log.offset, log.size))?,
            What::Superblock => (0, SUPERBLOCK),
        };
        Some((superblock.super_offset.checked_add_signed(offset)?, len))
    }

    /// Describes the steps in lines.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let Some(Planned { superblock: array, .. }) = self.members.first() else {
            return Vec::new();
        };
        let mut lines = vec![format!(
            "{} of {} members, metadata {}, {}",
            array.level,
            array.raid_disks,
            array.version,
            bytes(self.array_size)
        )];
        if array.chunk != 0 {
            lines.push(format!("chunk {}", bytes(array.chunk)));
        }
        let layout = layout::name_of(array.level, array.layout);
        if !layout.is_empty() {
            lines.push(format!("layout {layout}"));
        }
        lines.push(match array.resync {
            Resync::Clean => "clean: nothing has to be resynced".to_owned(),
            Resync::From(_) => "a resync follows".to_owned(),
        });
        if let Some(bitmap) = self.bitmap {
            lines.push(format!("bitmap of {} chunks", bytes(bitmap.chunk)));
        }
        if let Some((_, size)) = array.ppl {
            lines.push(format!("partial parity log of {}", bytes(size)));
        }
        if let Some(size) = self.stripe_log {
            lines.push(format!("stripe log of {} in front of the data", bytes(size)));
        }
        for Planned { label, superblock } in &self.members {
            let role = match superblock.role() {
                Role::Active(role) => format!("role {role}"),
                _ => "spare".to_owned(),
            };
            let end = superblock.data_offset + superblock.data_size;
            lines.push(format!("{label}: {role}, data {}..{end}", superblock.data_offset));
        }
        for area in self.areas() {
            let what = match area.what {
                What::Bitmap => "bitmap",
                What::Ppl => "partial parity log",
                What::StripeLog => "head of the stripe log",
                What::BadBlockLog => "bad-block log",
                What::Superblock => "superblock",
            };
            let label = &self.members[area.member].label;
            lines.push(format!("write {} bytes at {} of {label}: {what}", area.len, area.offset));
        }
        lines
    }
}

impl NewBitmap {
    /// The bitmap's bytes for a member, as mdadm has them but for the bits.
    fn bytes(&self, superblock: &Superblock) -> Vec<u8> {
        let header = BitmapHeader {
            version: 4,
            uuid: Uuid(superblock.uuid_on_disk()),
            events: superblock.events,
            events_cleared: 0,
            sync_size: self.sync_size,
            stale: false,
            write_error: false,
            host_endian: false,
            chunk_size: self.chunk,
            daemon_sleep: 5,
            write_behind: self.write_behind,
            reserved: 0,
            nodes: 0,
            cluster_name: [0; 64],
            unknown: Default::default(),
        };
        let mut bytes = header.encode().to_vec();
        let chunks = header.chunk_count();
        let bits = (0..chunks.div_ceil(8)).map(|byte| match chunks - 8 * byte {
            _ if !self.all_set => 0,
            1..8 => (1 << (chunks % 8)) - 1,
            _ => 0xff,
        });
        bytes.extend(bits);
        bytes
    }
}

/// A size in the largest unit that leaves no rest, with the bytes beside it.
fn bytes(size: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = |(_, shift): &&(&str, u32)| size != 0 && size.trailing_zeros() >= *shift;
    match units.iter().find(whole) {
        Some((unit, shift)) => format!("{} {unit} ({size} bytes)", size >> shift),
        None => format!("{size} bytes ({} sectors)", size / SECTOR),
    }
}
