//! Members that are joined: what a load runs on.
//!
//! Invariant: members whose bus has one name share it; a member without one has a bus to itself.

use braid_array::geometry::{Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{Geometry as _, GeometryError, Mirrored as _};
use braid_level::{Level, ParityLayout, ParityLevel, Raid0Layout, Raid10Layout, Shape};
use braid_model::{BusProfile, Kind, Profile};

use crate::layout::Layout;
use crate::machine::{Machine, MemberModel};

/// A member that somebody has, or would buy.
#[derive(Clone, Debug)]
pub struct Offer {
    /// What the user calls it: a profile's name, a path.
    pub name: String,
    /// What it is.
    pub profile: Profile,
    /// Its size in bytes.
    pub size: u64,
    /// Which bus it hangs on; members of one name share it.
    pub bus: Option<String>,
    /// What that bus is; the first member of a bus says it.
    pub of_bus: BusProfile,
}

/// A machine whose members are joined.
pub struct Array {
    /// At rest.
    pub machine: Machine,
    /// Bytes of data.
    pub size: u64,
    /// Members that may be lost, whichever they are.
    pub losses: usize,
    /// What the members' queues hold, in bytes.
    pub under_way: u64,
    /// The names of its buses, in the order of the machine's.
    pub buses: Vec<Option<String>>,
}

/// `nr_requests` of Linux.
const QUEUED: u64 = 128;

impl Array {
    /// Joins members by a shape, without one the first alone. Each is used for a multiple of `grid`
    /// bytes.
    ///
    /// # Errors
    /// They cannot be joined so.
    ///
    /// # Panics
    /// If a member is no device.
    pub fn of(members: &[&Offer], shape: Option<Shape>, grid: u64) -> Result<Array, GeometryError> {
        let sizes: Vec<u64> = members.iter().map(|one| one.size / grid * grid).collect();
        let (layout, size, losses) = join(shape, &sizes)?;
        let mut names: Vec<Option<String>> = Vec::new();
        let mut buses: Vec<BusProfile> = Vec::new();
        let mut most = u64::MAX;
        let mut models = Vec::new();
        for one in members {
            let known = names.iter().position(|name| name.is_some() && *name == one.bus);
            let bus = known.unwrap_or_else(|| {
                names.push(one.bus.clone());
                buses.push(one.of_bus);
                names.len() - 1
            });
            most = most.min(largest(&one.profile.kind));
            models.push(MemberModel { kind: one.profile.kind.clone(), size: one.size, bus });
        }
        let machine = Machine::new(layout, &models, &buses, most);
        let under_way = QUEUED * most * models.len() as u64;
        Ok(Array { machine, size, losses, under_way, buses: names })
    }
}

/// The largest command, in bytes.
fn largest(kind: &Kind) -> u64 {
    match kind {
        Kind::Flash(flash) => flash.transfer_max,
        // Linux: max_sectors_kb of 1280 since 5.0, 512 before.
        _ => 512 << 10,
    }
}

/// The layout, the bytes of data, and how many members may be lost.
fn join(shape: Option<Shape>, sizes: &[u64]) -> Result<(Layout, u64, usize), GeometryError> {
    let (least, count) = (sizes.iter().copied().min().unwrap_or(0), sizes.len());
    let Some(Shape { level, layout, chunk }) = shape else {
        return Ok((Layout::Single, sizes.first().copied().unwrap_or(0), 0));
    };
    let parity = |level| {
        let layout = ParityLayout::from_number(level, layout)?;
        let raid456 = Raid456::new(least, count, chunk, level, layout)?;
        let (size, parities) = (raid456.size(), raid456.parities());
        Ok((Layout::Parity(raid456), size, parities))
    };
    match level {
        Level::Linear => {
            let linear = Linear::new(sizes, 512)?;
            let size = linear.size();
            Ok((Layout::Of(Box::new(linear)), size, 0))
        }
        Level::Raid0 => {
            let layout = Raid0Layout::from_number(layout).unwrap_or_default();
            let raid0 = Raid0::new(sizes, chunk, layout, 512)?;
            let size = raid0.size();
            Ok((Layout::Of(Box::new(raid0)), size, 0))
        }
        Level::Raid1 => {
            let raid1 = Raid1::new(least, count)?;
            let size = raid1.size();
            Ok((Layout::Mirrored(Box::new(raid1)), size, count - 1))
        }
        Level::Raid10 => {
            let layout = Raid10Layout::from_number(layout)?;
            let raid10 = Raid10::new(least, count, chunk, layout)?;
            let size = raid10.size();
            Ok((Layout::Mirrored(Box::new(raid10)), size, layout.copies() - 1))
        }
        Level::Raid4 => parity(ParityLevel::Raid4),
        Level::Raid5 => parity(ParityLevel::Raid5),
        Level::Raid6 => parity(ParityLevel::Raid6),
    }
}

/// The shape of a level with its usual layout; chunks where it has them.
pub(crate) fn usual_shape(level: Level, chunk: u64) -> Shape {
    let layout = match level {
        Level::Raid0 => Raid0Layout::default().number(),
        Level::Raid10 => Raid10Layout::default().number(),
        Level::Raid4 | Level::Raid5 | Level::Raid6 => ParityLayout::default().number(),
        Level::Linear | Level::Raid1 => 0,
    };
    Shape { level, layout, chunk }
}
