//! RAID 1 as it is made for measurements: planned as `braid create` plans it, over any devices.
//!
//! ```text
//! member  | superblock, bitmap | data, of every member the same |
//!         0                    DATA_OFFSET                      DATA_OFFSET + size
//! ```
//!
//! Any earlier content of a device will do: nothing is written here, and the copies count as
//! equal. The first change of state writes the superblocks.

use std::future::pending;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use braid_array::Role;
use braid_array::geometry::Raid1;
use braid_engine::redundant::{
    Layout, MemberState, NewMember, STRIPE_CACHE, Setup, Speed, StartingBitmap,
};
use braid_engine::{Clock, Dev};
use braid_md::bitmap::Bitmap;
use braid_md::create::{BitmapChoice, Device, Place, Plan, Request, What, plan};
use braid_md::{BadBlocks, Level, Resync, Timestamp, Uuid, Version};

use crate::{Error, Result};

/// The start of a member's data, in bytes.
pub const DATA_OFFSET: u64 = 1 << 20;

/// The plan of a RAID 1.
pub struct Raid1Plan {
    size: u64,
    plan: Plan,
}

impl Raid1Plan {
    /// A RAID 1 of `size` bytes with `members` members of [`DATA_OFFSET`] more, and with a bitmap
    /// if there is a `bitmap_chunk`, in bytes.
    ///
    /// # Errors
    /// If there can be no such array.
    pub fn new(size: u64, members: usize, bitmap_chunk: Option<u64>) -> Result<Raid1Plan> {
        let device = |index: usize| Device {
            label: format!("member {index}"),
            size: DATA_OFFSET + size,
            uuid: Uuid([index as u8 + 1; 16]),
            write_mostly: false,
        };
        let bitmap = match bitmap_chunk {
            Some(chunk) => BitmapChoice::Internal { chunk: Some(chunk) },
            None => BitmapChoice::None,
        };
        let request = Request {
            level: Level::Raid1,
            layout: None,
            version: Version::V1_2,
            chunk: None,
            members: (0..members).map(|index| Place::Device(device(index))).collect(),
            spares: Vec::new(),
            size: Some(size),
            data_offset: Some(DATA_OFFSET),
            bitmap,
            consistency: None,
            write_behind: 0,
            assume_clean: true,
            array_uuid: Uuid([0xb1; 16]),
            name: "bench".to_owned(),
            homehost: None,
            created: Timestamp::default(),
        };
        let plan = plan(&request).map_err(|error| Error::Unexpected(error.to_string()))?;
        Ok(Raid1Plan { size, plan })
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

    /// The array of these `devs`, the first members of the plan.
    ///
    /// # Errors
    /// If the plan contradicts itself.
    pub fn setup(&self, devs: Vec<Dev>, clock: Rc<dyn Clock>) -> Result<Setup> {
        let unexpected = |error: &dyn std::fmt::Display| Error::Unexpected(error.to_string());
        let geometry = Raid1::new(self.size, self.plan.members.len());
        let members = devs.into_iter().enumerate();
        let members = members.map(|(index, dev)| self.member(index, dev, Some(index as u16)));
        let area = self.plan.writes().find(|write| write.area.what == What::Bitmap);
        let bitmap = area.map(|area| Bitmap::parse(&area.bytes)).transpose();
        Ok(Setup {
            layout: Layout::Copies(Arc::new(geometry.map_err(|error| unexpected(&error))?)),
            members: members.collect(),
            array: Some(self.plan.members[0].superblock.clone()),
            bitmap: bitmap
                .map_err(|error| unexpected(&error))?
                .map(|bitmap| StartingBitmap { bitmap, is_on_members: true }),
            resync: Resync::Clean,
            log: None,
            stripe_cache: STRIPE_CACHE,
            read_only: false,
            clock,
            speed: Speed::default(),
        })
    }
}

/// Time without timers, for arrays whose own work is not polled.
pub struct NoTimers;

impl Clock for NoTimers {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn unix_time(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(pending())
    }
}
