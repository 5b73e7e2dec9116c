//! Arrays by construction, and what lies on their members when they are new.
//!
//! ```text
//!   1.2   0      4 KiB        8 KiB    12 KiB       16 KiB        24 KiB              60   64 KiB
//!         |      | superblock | bitmap | bad blocks |                                      | data …
//!                                                   | partial parity log ............. |
//!                                                                 | stripe log: ring  | head |
//!   1.1   the same with the superblock in front
//!   1.0   | data …                 | partial parity log | bitmap | bad blocks | superblock | 8 KiB
//!   0.90  | data …                 | superblock | bitmap |      the last whole 64 KiB
//! ```
//!
//! A bitmap of two pages, of version 1.2 only, lies where the partial parity log would.
//!
//! Smaller than anything that mdadm makes, so that a life of an array takes milliseconds; but of
//! the same parts, which are read as those of any array are.

use braid_array::Mirrored;
use braid_array::geometry::Raid456;
use braid_engine::assembled::Level as Joined;
use braid_engine::redundant::Layout;
use braid_md::stripe_log::Head;
use braid_md::superblock::{BadBlockLog, Contents, Old};
use braid_md::{
    BadBlocks, Bitmap, BitmapHeader, Features, Level, Resync, Role, Superblock, Timestamp, Uuid,
    Version, ppl,
};
use std::sync::Arc;

use braid_block::Span;

use crate::{Image, SimDisk};

/// Bytes in front of the data of versions 1.1 and 1.2, and behind it of 1.0.
pub const BESIDE: u64 = 64 << 10;
/// The part for the stripe log, which ends at the start of the data.
const STRIPE_LOG: u64 = 40 << 10;
/// The part for the partial parity log.
const PPL: u64 = 44 << 10;
const KIB_4: u64 = 4096;
/// Bytes of a member whose sectors all have their bits on the first page of a bitmap: that page holds 256 bytes of
/// header and 30,720 bits.
pub const FIRST_PAGE: u64 = (4096 - 256) * 8 * 512;
/// The array that all of it is about.
pub const ARRAY: Uuid = Uuid([7; 16]);
/// When it was made.
const CREATED: Timestamp = Timestamp { seconds: 1_600_000_000, micros: 0 };

/// The way to repair the damage of a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A resync of everything.
    Resync,
    /// A resync of what the bitmap says.
    Bitmap,
    /// md's partial parity log.
    Ppl,
    /// braid's stripe log.
    Log,
}

/// An array, by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The RAID level.
    pub level: Level,
    /// md's number of the layout.
    pub layout: u32,
    /// The number of roles.
    pub members: usize,
    /// The chunk in bytes; 0 for raid1.
    pub chunk: u64,
    /// Bytes used of each member.
    pub member_size: u64,
    /// The policy that closes its write hole.
    pub policy: Policy,
    /// The version of the superblocks.
    pub version: Version,
}

impl Spec {
    /// True if it has parity.
    pub fn has_parity(&self) -> bool {
        matches!(self.level, Level::Raid4 | Level::Raid5 | Level::Raid6)
    }

    /// True if its bitmap has two pages, with a bit for each of a member's sectors.
    pub(crate) fn is_wide(&self) -> bool {
        self.member_size > FIRST_PAGE
    }

    /// The bitmap's chunk in bytes, if there is a bitmap.
    fn bitmap_chunk(&self) -> Option<u64> {
        let chunk = match (self.is_wide(), self.has_parity()) {
            (true, _) => 512,
            (false, true) => 4 << 10,
            (false, false) => 8 << 10,
        };
        (self.policy == Policy::Bitmap).then_some(chunk)
    }

    /// Writes that its last member may have later than the others: of half of the arrays that can.
    pub(crate) fn write_behind(&self) -> u32 {
        let has_it = self.level == Level::Raid1
            && self.policy == Policy::Bitmap
            && (self.member_size / KIB_4).is_multiple_of(2);
        if has_it { 3 } else { 0 }
    }

    /// The layout of data and redundancy with `roles` roles: a raid1 may have grown.
    ///
    /// # Panics
    /// If there is no such array.
    pub fn geometry(&self, roles: usize) -> Layout {
        let contents = Spec { members: roles, ..*self }.array();
        let superblock = Superblock::new(contents, self.disk_size()).expect("a spec's superblock");
        let level = Joined::of(&superblock, None, Vec::new()).expect("a spec is of an array");
        level.redundant().expect("an array that survives losses")
    }

    /// The geometry of copies.
    ///
    /// # Panics
    /// If it has parity.
    pub fn copies(&self, roles: usize) -> Arc<dyn Mirrored> {
        match self.geometry(roles) {
            Layout::Copies(geometry) => geometry,
            Layout::Parity(_) => panic!("{self:?} has parity"),
        }
    }

    /// The geometry of stripes with parity, if it has any.
    pub fn stripes(&self) -> Option<Raid456> {
        match self.geometry(self.members) {
            Layout::Copies(_) => None,
            Layout::Parity(geometry) => Some(geometry),
        }
    }

    /// Capacity in bytes.
    pub fn size(&self) -> u64 {
        self.geometry(self.members).size()
    }

    /// The size of a disk that can be a member.
    pub fn disk_size(&self) -> u64 {
        match self.version {
            Version::V0_90 => self.member_size.next_multiple_of(BESIDE) + BESIDE,
            _ => self.member_size + BESIDE,
        }
    }

    /// The start of a member's data.
    pub fn data_offset(&self) -> u64 {
        match self.version {
            Version::V0_90 | Version::V1_0 => 0,
            Version::V1_1 | Version::V1_2 => BESIDE,
        }
    }

    /// Makes `disk` write superblocks whole if they are longer than a sector. No disk promises this to md, and
    /// a torn superblock is lost; of version 1, no superblock here is that long.
    pub(crate) fn settle(&self, disk: &SimDisk) {
        let size = self.disk_size();
        let place = self.version.superblock_offset(size);
        if let (Version::V0_90, Some(offset)) = (self.version, place)
            && !disk.is_gone()
        {
            disk.set_atomic(Span::new(offset, KIB_4));
        }
    }

    /// The part of the superblocks that all members have in common, and the places of what lies
    /// beside them.
    fn array(&self) -> Contents {
        let is_old = self.version == Version::V0_90;
        let super_offset = self.version.superblock_offset(self.disk_size()).unwrap_or(0);
        // In bytes from the superblock.
        let (bitmap, bad_blocks, ppl) = match self.version {
            Version::V0_90 => (KIB_4 as i64, None, None),
            Version::V1_0 => (-8192, Some(-4096), Some(-8192 - PPL as i64)),
            Version::V1_1 | Version::V1_2 => (4096, Some(8192), Some(12288)),
        };
        let bitmap = if self.is_wide() { 12288 } else { bitmap };
        let has_ppl = self.policy == Policy::Ppl;
        let mut features = Features::default();
        if has_ppl {
            features = features.union(Features::PPL);
        }
        if self.policy == Policy::Bitmap {
            features = features.union(Features::BITMAP);
        }
        let members = self.members as u32;
        Contents {
            version: self.version,
            array_uuid: ARRAY,
            name: if is_old { String::new() } else { "sim:array".to_owned() },
            created: CREATED,
            updated: CREATED,
            level: self.level,
            layout: self.layout,
            chunk: self.chunk,
            component_size: self.member_size,
            raid_disks: members,
            events: 2,
            resync: Resync::Clean,
            features,
            bitmap_offset: self.bitmap_chunk().map(|_| bitmap),
            ppl: ppl.filter(|_| has_ppl).map(|offset| (offset, PPL)),
            reshape: None,
            roles: vec![Role::Spare; if is_old { 27 } else { 128 }],
            logical_block_size: 0,
            super_offset,
            data_offset: self.data_offset(),
            data_size: match self.version {
                Version::V0_90 => super_offset,
                _ => self.member_size,
            },
            device_uuid: Uuid([0; 16]),
            device_number: 0,
            corrected_reads: 0,
            write_mostly: false,
            fail_fast: false,
            recovery_offset: None,
            bad_block_log: bad_blocks.map(|offset| BadBlockLog { offset, size: KIB_4, shift: 0 }),
            old: is_old.then(|| Old {
                minor_version: 90,
                nr_disks: members,
                counts: [members, members, 0, 0],
                ..Old::default()
            }),
            raw: Vec::new(),
        }
    }

    fn blank_bitmap(&self, superblock: &Contents) -> Option<Bitmap> {
        let header = BitmapHeader {
            version: 4,
            uuid: Uuid(superblock.uuid_on_disk()),
            events: superblock.events,
            events_cleared: superblock.events,
            sync_size: self.geometry(self.members).sync_size(),
            stale: false,
            write_error: false,
            host_endian: false,
            chunk_size: self.bitmap_chunk()?,
            daemon_sleep: 5,
            write_behind: self.write_behind(),
            reserved: 0,
            nodes: 0,
            cluster_name: [0; 64],
            unknown: Default::default(),
        };
        Some(Bitmap::new(header, 2 * KIB_4).expect("a small bitmap"))
    }

    /// A disk as `create` leaves it, with device number and role `role`, that holds `data`; its
    /// superblock as `change` has it.
    ///
    /// # Panics
    /// If `data` is longer than the member's.
    pub fn disk(&self, role: usize, data: &[u8], change: impl Fn(&mut Contents)) -> Image {
        let mut superblock = self.array();
        for role in 0..self.members {
            superblock.roles[role] = Role::Active(role as u16);
        }
        superblock.device_number = role as u32;
        superblock.write_mostly = self.write_behind() > 0 && role + 1 == self.members;
        if self.version != Version::V0_90 {
            superblock.device_uuid = Uuid([role as u8 + 1; 16]);
        }
        change(&mut superblock);
        let mut disk = Image::zeroes(self.disk_size() as usize);
        let mut put = |at: u64, bytes: &[u8]| disk.write(at as usize, bytes);
        put(superblock.super_offset, &superblock.encode());
        let beside = |offset: i64| superblock.super_offset.wrapping_add_signed(offset);
        if let (Some(offset), Some(mut bitmap)) =
            (superblock.bitmap_offset, self.blank_bitmap(&superblock))
        {
            if superblock.resync != Resync::Clean {
                bitmap.set_all();
            }
            for page in 0..bitmap.page_count() {
                put(beside(offset) + page * KIB_4, &bitmap.page(page));
            }
        }
        if let Some(log) = superblock.bad_block_log {
            let none = BadBlocks::new(log.size, log.shift).expect("an empty log");
            put(beside(log.offset), &none.encode());
        }
        if let Some((offset, _)) = superblock.ppl {
            let empty = ppl::Header::empty(ppl::signature(&ARRAY));
            put(beside(offset), &empty.encode());
        }
        if self.policy == Policy::Log {
            let head = Head {
                array_uuid: ARRAY,
                device_number: superblock.device_number,
                area: STRIPE_LOG,
                events: superblock.events,
                tail: 1,
                nonce: 1,
                synced: match superblock.resync {
                    Resync::Clean => u64::MAX,
                    Resync::From(from) => from,
                },
                updated: superblock.updated,
                before: superblock.updated,
            };
            put(superblock.data_offset - KIB_4, &head.encode());
        }
        put(superblock.data_offset, data);
        disk
    }
}
