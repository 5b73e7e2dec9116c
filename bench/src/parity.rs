//! RAID 5 and 6 as they are made for measurements: over any devices, with the log that is asked
//! for, in sync from the start.
//!
//! ```text
//! member  | superblock | partial parity log        stripe log | data and parity            |
//!         0            8 KiB       1 MiB …           1 MiB    DATA_OFFSET  DATA_OFFSET + size
//! ```
//!
//! The earlier content of the devices has to have parity that fits: memory that is all zeroes does.

use std::rc::Rc;

use braid_array::geometry::Raid456;
use braid_array::{ArrayByte, Geometry, Role};
use braid_engine::redundant::{
    Layout, LogSetup, MemberState, NewMember, STRIPE_CACHE, Setup, Speed,
};
use braid_engine::{Clock, Dev};
use braid_level::{ParityLayout, ParityLevel};
use braid_md::create::{BitmapChoice, Consistency, Device, Place, Plan, Request, plan};
use braid_md::{BadBlocks, Level, Resync, Timestamp, Uuid, Version, ppl};

use crate::{Error, Result};

/// The start of a member's data, in bytes.
pub const DATA_OFFSET: u64 = 4 << 20;
/// The size of each member's log area, in bytes.
const LOG_AREA: u64 = 1 << 20;

/// The kind of parity, and of the log that closes the write hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// raid5 without a log: all is resynchronised after a crash.
    Raid5,
    /// raid5 with md's partial parity log.
    Raid5Ppl,
    /// raid6 without a log.
    Raid6,
    /// raid6 with braid's stripe log.
    Raid6Log,
}

impl Kind {
    /// The number of members of a stripe that have parity.
    pub fn parities(self) -> usize {
        match self {
            Kind::Raid5 | Kind::Raid5Ppl => 1,
            Kind::Raid6 | Kind::Raid6Log => 2,
        }
    }
}

/// An array with parity that is to be.
pub struct ParityPlan {
    kind: Kind,
    geometry: Raid456,
    plan: Plan,
}

impl ParityPlan {
    /// An array with `size` bytes on each of its `members`, which are [`DATA_OFFSET`] larger, in
    /// md's usual layout with chunks of `chunk` bytes.
    ///
    /// # Errors
    /// If there can be no such array.
    pub fn new(kind: Kind, size: u64, members: usize, chunk: u64) -> Result<ParityPlan> {
        let (level, parity_level) = match kind.parities() {
            1 => (Level::Raid5, ParityLevel::Raid5),
            _ => (Level::Raid6, ParityLevel::Raid6),
        };
        let device = |index: usize| Device {
            label: format!("member {index}"),
            size: DATA_OFFSET + size,
            uuid: Uuid([index as u8 + 1; 16]),
            write_mostly: false,
        };
        let request = Request {
            level,
            layout: None,
            version: Version::V1_2,
            chunk: Some(chunk),
            members: (0..members).map(|index| Place::Device(device(index))).collect(),
            spares: Vec::new(),
            size: Some(size),
            data_offset: Some(DATA_OFFSET),
            bitmap: BitmapChoice::None,
            consistency: Some(match kind {
                Kind::Raid5Ppl => Consistency::Ppl,
                _ => Consistency::Resync,
            }),
            write_behind: 0,
            assume_clean: true,
            array_uuid: Uuid([0xb5; 16]),
            name: "bench".to_owned(),
            homehost: None,
            created: Timestamp::default(),
        };
        let plan = plan(&request).map_err(unexpected)?;
        let layout = ParityLayout::LeftSymmetric;
        let geometry = Raid456::new(size, members, chunk, parity_level, layout);
        Ok(ParityPlan { kind, geometry: geometry.map_err(unexpected)?, plan })
    }

    /// Bytes of a whole stripe's data.
    pub fn stripe(&self) -> u64 {
        self.geometry.stripe()
    }

    /// The member that has the array's byte `offset`, and where in its data.
    pub fn place_of(&self, offset: u64) -> (usize, u64) {
        let run = self.geometry.locate(ArrayByte::new(offset));
        (run.role.index(), run.offset.get())
    }

    /// Member `index`, on `dev`: in sync if it has a role, a spare otherwise.
    pub fn member(&self, index: usize, dev: Dev, role: Option<u16>) -> NewMember {
        let superblock = self.plan.members[index].superblock.clone();
        NewMember {
            label: self.plan.members[index].label.clone(),
            dev,
            data_offset: superblock.data_offset,
            number: superblock.device_number,
            role: role.map(Role::new),
            replacement: false,
            state: role.map_or(MemberState::Spare, |_| MemberState::InSync),
            by_bitmap: false,
            write_mostly: false,
            superblock: Some(superblock),
            bad_blocks: BadBlocks::none(),
        }
    }

    /// The array of these `devs`, by role; where there is `None` the member is missing.
    pub fn setup(&self, devs: Vec<Option<Dev>>, clock: Rc<dyn Clock>) -> Setup {
        let superblock = &self.plan.members[0].superblock;
        let array_uuid = superblock.array_uuid;
        let member = |(index, dev): (usize, Option<Dev>)| {
            dev.map(|dev| self.member(index, dev, Some(index as u16)))
        };
        Setup {
            layout: Layout::Parity(self.geometry.clone()),
            members: devs.into_iter().enumerate().filter_map(member).collect(),
            array: Some(superblock.clone()),
            bitmap: None,
            resync: Resync::Clean,
            log: match self.kind {
                Kind::Raid5 | Kind::Raid6 => None,
                Kind::Raid5Ppl => {
                    Some(LogSetup::Partial { signature: ppl::signature(&array_uuid) })
                }
                Kind::Raid6Log => {
                    Some(LogSetup::Records { array_uuid, area: LOG_AREA, nonce: 0x5eed })
                }
            },
            stripe_cache: STRIPE_CACHE,
            read_only: false,
            clock,
            speed: Speed::default(),
        }
    }
}

fn unexpected(error: impl std::fmt::Display) -> Error {
    Error::Unexpected(error.to_string())
}
