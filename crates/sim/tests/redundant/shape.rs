//! Arrays by construction, and their disks when they are new.
//!
//! ```text
//!   0      4 KiB        8 KiB     16 KiB         24 KiB                  60 KiB  64 KiB
//!   |      | superblock | bitmap  |                                      |       | data …
//!                                 | partial parity log ....................... |
//!                                                | stripe log: ring .... | head  |
//! ```

use std::sync::Arc;

use braid_array::Mirrored;
use braid_array::geometry::{Raid1, Raid10, Raid456};
use braid_engine::redundant::{Consistency, Layout, LogSetup};
use braid_level::{ParityLayout, ParityLevel, Raid10Layout};
use braid_md::stripe_log::Head;
use braid_md::superblock::Contents;
use braid_md::{
    Bitmap, BitmapHeader, Features, Level, Resync, Role, Timestamp, Uuid, Version, ppl,
};
use braid_sim::Rng;

/// The places of superblocks, bitmaps and data, in bytes.
pub(crate) const SUPERBLOCK: u64 = 4096;
pub(crate) const BITMAP: u64 = 8192;
pub(crate) const DATA: u64 = 64 << 10;
/// The start of the partial parity log, which ends at the data.
pub(crate) const PPL: u64 = 16 << 10;
/// Bytes of the stripe log, which ends at the data with its head.
pub(crate) const LOG: u64 = 40 << 10;
pub(crate) const HEAD: u64 = DATA - 4096;
pub(crate) const ARRAY: Uuid = Uuid([7; 16]);

/// An array, by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) level: Level,
    pub(crate) members: usize,
    /// md's number of the layout.
    pub(crate) layout: u32,
    pub(crate) chunk: u64,
    pub(crate) member_size: u64,
    /// The bitmap's chunk in bytes, if there is a bitmap.
    pub(crate) bitmap: Option<u64>,
    /// The way to repair the damage of a crash.
    pub(crate) consistency: Consistency,
}

/// The time when arrays were made.
const CREATED: Timestamp = Timestamp { seconds: 1_600_000_000, micros: 0 };

const fn raid1(members: usize, bitmap: Option<u64>) -> Shape {
    let (layout, chunk, member_size) = (0, 0, 192 << 10);
    let consistency = by(bitmap);
    Shape { level: Level::Raid1, members, layout, chunk, member_size, bitmap, consistency }
}

const fn raid10(members: usize, layout: u32, bitmap: Option<u64>) -> Shape {
    let (chunk, member_size) = (8 << 10, 96 << 10);
    let consistency = by(bitmap);
    Shape { level: Level::Raid10, members, layout, chunk, member_size, bitmap, consistency }
}

const fn by(bitmap: Option<u64>) -> Consistency {
    match bitmap {
        Some(_) => Consistency::Bitmap,
        None => Consistency::Resync,
    }
}

/// An array with parity, with a bitmap where that is its `consistency`.
pub(crate) const fn parity(
    level: Level,
    layout: u32,
    members: usize,
    consistency: Consistency,
) -> Shape {
    let bitmap = match consistency {
        Consistency::Bitmap => Some(4 << 10),
        _ => None,
    };
    let (chunk, member_size) = (8 << 10, 64 << 10);
    Shape { level, members, layout, chunk, member_size, bitmap, consistency }
}

pub(crate) const NEAR: u32 = 0x102;
pub(crate) const FAR: u32 = 0x201;
pub(crate) const OFFSET: u32 = 0x1_0201;

/// Two copies on two members, the plainest of all.
pub(crate) const PAIR: Shape = raid1(2, None);
/// The same with a bitmap.
pub(crate) const PAIR_BITMAP: Shape = raid1(2, Some(8 << 10));
/// Three copies.
pub(crate) const TRIPLE: Shape = raid1(3, None);

/// Both levels, every kind of layout, with and without a bitmap.
pub(crate) const SHAPES: [Shape; 10] = [
    PAIR,
    PAIR_BITMAP,
    TRIPLE,
    raid1(3, Some(4 << 10)),
    raid10(4, NEAR, None),
    raid10(4, NEAR, Some(16 << 10)),
    raid10(3, FAR, Some(8 << 10)),
    raid10(3, OFFSET, None),
    raid10(4, FAR, None),
    raid10(3, NEAR, Some(4 << 10)),
];

impl Shape {
    /// One of those of copies, every one in turn.
    pub(crate) fn number(seed: u64) -> Shape {
        SHAPES[seed as usize % SHAPES.len()]
    }

    /// The geometry of copies.
    pub(crate) fn geometry(&self) -> Arc<dyn Mirrored> {
        match self.level {
            Level::Raid1 => Arc::new(Raid1::new(self.member_size, self.members).unwrap()),
            _ => {
                let layout = Raid10Layout::from_number(self.layout).unwrap();
                Arc::new(Raid10::new(self.member_size, self.members, self.chunk, layout).unwrap())
            }
        }
    }

    /// The geometry of stripes with parity.
    pub(crate) fn stripes(&self) -> Raid456 {
        let level = match self.level {
            Level::Raid4 => ParityLevel::Raid4,
            Level::Raid5 => ParityLevel::Raid5,
            Level::Raid6 => ParityLevel::Raid6,
            level => unreachable!("{level} has no parity"),
        };
        let layout = match level {
            ParityLevel::Raid4 => ParityLayout::ParityLast,
            level => ParityLayout::from_number(level, self.layout).unwrap(),
        };
        Raid456::new(self.member_size, self.members, self.chunk, level, layout).unwrap()
    }

    pub(crate) fn has_parity(&self) -> bool {
        matches!(self.level, Level::Raid4 | Level::Raid5 | Level::Raid6)
    }

    pub(crate) fn layout(&self) -> Layout {
        match self.has_parity() {
            true => Layout::Parity(self.stripes()),
            false => Layout::Copies(self.geometry()),
        }
    }

    /// Capacity in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.layout().size()
    }

    /// The log of an array that has this many events, in a run of this seed.
    pub(crate) fn log(&self, seed: u64, events: u64) -> Option<LogSetup> {
        match self.consistency {
            Consistency::Resync | Consistency::Bitmap => None,
            Consistency::Ppl => Some(LogSetup::Partial { signature: ppl::signature(&ARRAY) }),
            Consistency::Log => {
                let nonce = nonce(seed, events);
                Some(LogSetup::Records { array_uuid: ARRAY, area: LOG, nonce })
            }
        }
    }

    fn array(&self) -> Contents {
        let has_ppl = self.consistency == Consistency::Ppl;
        Contents {
            version: Version::V1_2,
            array_uuid: ARRAY,
            name: "sim:array".to_owned(),
            created: CREATED,
            updated: CREATED,
            level: self.level,
            layout: self.layout,
            chunk: self.chunk,
            component_size: self.layout().member_size(),
            raid_disks: self.members as u32,
            events: 1,
            resync: Resync::Clean,
            features: if has_ppl { Features::PPL } else { Features::default() },
            bitmap_offset: self.bitmap.map(|_| (BITMAP - SUPERBLOCK) as i64),
            ppl: has_ppl.then_some(((PPL - SUPERBLOCK) as i64, DATA - PPL)),
            reshape: None,
            roles: vec![Role::Spare; (self.members + 1).next_multiple_of(128)],
            logical_block_size: 0,
            super_offset: SUPERBLOCK,
            data_offset: DATA,
            data_size: self.member_size,
            device_uuid: Uuid([0; 16]),
            device_number: 0,
            corrected_reads: 0,
            write_mostly: false,
            fail_fast: false,
            recovery_offset: None,
            bad_block_log: None,
            old: None,
            raw: Vec::new(),
        }
    }

    fn blank_bitmap(&self) -> Option<Bitmap> {
        let sync_size = self.layout().sync_size();
        let header = BitmapHeader {
            version: 4,
            uuid: ARRAY,
            events: 1,
            events_cleared: 1,
            sync_size,
            stale: false,
            write_error: false,
            host_endian: false,
            chunk_size: self.bitmap?,
            daemon_sleep: 5,
            write_behind: 0,
            reserved: 0,
            nodes: 0,
            cluster_name: [0; 64],
            unknown: Default::default(),
        };
        Some(Bitmap::new(header, self.bitmap_room()).unwrap())
    }

    /// Bytes from the bitmap's start to what follows.
    pub(crate) fn bitmap_room(&self) -> u64 {
        match self.consistency {
            Consistency::Log => DATA - LOG - BITMAP,
            _ => DATA - BITMAP,
        }
    }

    /// A disk as `--create` leaves it: zeroes, a superblock of device `number` that has `role`,
    /// and an empty log. A spare has something else where a log would be.
    pub(crate) fn image(&self, number: u32, role: Role) -> Vec<u8> {
        let mut superblock = self.array();
        for role in 0..self.members {
            superblock.roles[role] = Role::Active(role as u16);
        }
        superblock.roles[number as usize] = role;
        superblock.device_number = number;
        superblock.device_uuid = Uuid([(number % 255) as u8 + 1; 16]);
        let mut image = vec![0; (DATA + self.member_size) as usize];
        let bytes = superblock.encode();
        image[SUPERBLOCK as usize..][..bytes.len()].copy_from_slice(&bytes);
        if let Some(bitmap) = self.blank_bitmap() {
            for page in 0..bitmap.page_count() {
                let at = (BITMAP + page * 4096) as usize;
                image[at..at + 4096].copy_from_slice(&bitmap.page(page));
            }
        }
        match role {
            Role::Spare if self.consistency == Consistency::Ppl => {
                image[PPL as usize..DATA as usize].fill(0x5a);
            }
            Role::Spare if self.consistency == Consistency::Log => {
                image[(DATA - LOG) as usize..DATA as usize].fill(0x5a);
            }
            _ => self.put_empty_log(number, &mut image),
        }
        image
    }

    fn put_empty_log(&self, number: u32, image: &mut [u8]) {
        let (at, bytes) = match self.consistency {
            Consistency::Resync | Consistency::Bitmap => return,
            Consistency::Ppl => (PPL, ppl::Header::empty(ppl::signature(&ARRAY)).encode()),
            Consistency::Log => {
                let head = Head {
                    array_uuid: ARRAY,
                    device_number: number,
                    area: LOG,
                    events: 1,
                    tail: 1,
                    nonce: nonce(0, 0),
                    synced: u64::MAX,
                    updated: CREATED,
                    before: CREATED,
                };
                (HEAD, head.encode())
            }
        };
        image[at as usize..][..bytes.len()].copy_from_slice(&bytes);
    }

    /// The disks of a new array.
    pub(crate) fn images(&self) -> Vec<Option<Vec<u8>>> {
        let image = |role| Some(self.image(role as u32, Role::Active(role as u16)));
        (0..self.members).map(image).collect()
    }
}

/// A number that is another one each time that an array is put together.
fn nonce(seed: u64, events: u64) -> u64 {
    Rng::new(seed ^ events.rotate_left(32)).next_u64()
}
