//! Requests for new arrays.

use crate::{Level, Timestamp, Uuid, Version};

/// A new array as it is asked for. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The level.
    pub level: Level,
    /// The layout as mdadm spells it (`n2`, `left-symmetric`, `alternate`); `None` for the
    /// level's default.
    pub layout: Option<String>,
    /// The version of the metadata.
    pub version: Version,
    /// `None` for 512 KiB (none for linear and raid1).
    pub chunk: Option<u64>,
    /// The member of each role, in order.
    pub members: Vec<Place>,
    /// Devices that wait for a member to fail.
    pub spares: Vec<Device>,
    /// Bytes of each member to use; `None` for as much as the smallest has.
    pub size: Option<u64>,
    /// Start of the data; `None` for mdadm's choice.
    pub data_offset: Option<u64>,
    /// The choice of a write-intent bitmap.
    pub bitmap: BitmapChoice,
    /// The protection after a crash; `None` for a log if the level has parity and the metadata room for one,
    /// else a bitmap on large arrays, else a resync.
    pub consistency: Option<Consistency>,
    /// Writes that write-mostly members of a raid1 may have later than others; 0 for none. Needs a bitmap.
    pub write_behind: u32,
    /// True if the copies agree already.
    pub assume_clean: bool,
    /// The array's identifier, not nil.
    pub array_uuid: Uuid,
    /// The array's name.
    pub name: String,
    /// The host that the array belongs to, which goes before the name if there is room.
    pub homehost: Option<String>,
    /// Now.
    pub created: Timestamp,
}

/// The device of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This device.
    Device(Device),
    /// No device yet: the array starts degraded.
    Missing,
}

/// A device for a new array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The user's name of it: a path.
    pub label: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its identifier-to-be; not used by version 0.90.
    pub uuid: Uuid,
    /// Reads avoid it.
    pub write_mostly: bool,
}

/// The choice of a write-intent bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BitmapChoice {
    /// For redundant levels that use more than 100 GiB of each member.
    #[default]
    Default,
    /// No.
    None,
    /// Near the superblock.
    Internal {
        /// Bytes for each bit; `None` for 64 MiB or as much more as it takes.
        chunk: Option<u64>,
    },
}

/// The protection of the array after a crash: mdadm's `--consistency-policy`, without a journal, and braid's
/// own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// A resync of everything.
    Resync,
    /// A resync of what the bitmap says.
    Bitmap,
    /// md's partial parity log, for raid5.
    Ppl,
    /// The stripe log, for raid4, raid5 and raid6.
    Log,
}

impl Request {
    /// The devices, members first, then spares.
    pub fn devices(&self) -> impl Iterator<Item = &Device> {
        let members = self.members.iter().filter_map(|place| match place {
            Place::Device(device) => Some(device),
            Place::Missing => None,
        });
        members.chain(&self.spares)
    }

    /// The name in the superblock: `host:name` where that has less than 32 bytes and the name
    /// has no host yet, as mdadm does.
    pub(super) fn full_name(&self) -> String {
        match &self.homehost {
            Some(host) if !self.name.contains(':') && host.len() + 1 + self.name.len() < 32 => {
                format!("{host}:{}", self.name)
            }
            _ => self.name.clone(),
        }
    }
}
