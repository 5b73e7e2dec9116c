//! Members that are joined, in whatever depth: what a load runs on.
//!
//! Invariant: members whose bus has one name share it; a member without one has a bus to itself.

use std::fmt;

use braid_array::geometry::{Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{Geometry as _, GeometryError, Mirrored as _};
use braid_cache::{Behind, Config, Shadow};
use braid_level::size::suffice;
use braid_level::{Level, ParityLayout, ParityLevel, Raid0Layout, Raid10Layout, Shape};
use braid_model::{BusProfile, Kind, Profile, profile};

use crate::layout::Layout;
use crate::machine::{Machine, Made, MemberModel};
use crate::queue::Merge;

/// A member that the user has, or would buy.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The user's name for it: a profile's name, a path.
    pub name: String,
    /// The profile of the device.
    pub profile: Profile,
    /// Its size in bytes.
    pub size: u64,
    /// The name of its bus; members with the same name share it.
    pub bus: Option<String>,
    /// The profile of that bus, as given by the first member of the bus.
    pub of_bus: BusProfile,
}

/// The profile of RAM disks, and of the content of caches.
pub const MEMORY: &str = "ram";

impl Offer {
    /// Memory of so many bytes, as the profile [`MEMORY`] has it.
    ///
    /// # Panics
    /// If braid has no profile of this name.
    pub fn memory(size: u64) -> Offer {
        let profile = profile(MEMORY).expect("memory is a profile that comes with braid");
        let of_bus = profile.usual_bus();
        Offer { name: MEMORY.to_owned(), profile, size, bus: None, of_bus }
    }
}

/// A device, with everything below it.
#[derive(Clone, Debug)]
pub enum Tree {
    /// A member that is there.
    Device(Box<Offer>),
    /// Several, joined by a shape; none stands for a member that is missing.
    Joined(Shape, Vec<Option<Tree>>),
    /// Memory in front of a device; with the bounds of write-back mode, in that mode.
    Cached(Config, Option<Behind>, Box<Tree>),
}

/// The reason why there is no such device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotBe {
    /// Its members cannot be joined so.
    Joined(GeometryError),
    /// More members are missing than it can do without.
    Lost(Level),
    /// A cache that cannot be, or that is not modelled: why, as a part of a sentence.
    Cached(&'static str),
}

impl fmt::Display for CannotBe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined(why) => why.fmt(f),
            Self::Lost(level) => {
                write!(f, "a {} without more of its members than it can do without", level.name())
            }
            Self::Cached(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CannotBe {}

impl From<GeometryError> for CannotBe {
    fn from(why: GeometryError) -> Self {
        Self::Joined(why)
    }
}

/// A machine whose members are joined as braid does it, which gives each what it is asked for, unmerged.
pub struct Array {
    /// At rest.
    pub machine: Machine,
    /// Bytes of data.
    pub size: u64,
    /// Members that may be lost, whichever they are.
    pub losses: usize,
    /// The bytes in the members' queues.
    pub under_way: u64,
    /// The names of its buses, in the order of the machine's.
    pub buses: Vec<Option<String>>,
}

/// `nr_requests` of Linux.
const QUEUED: u64 = 128;

/// The most memory of a cache whose contents are followed: what is noted of its blocks takes up to 1.5 % of it.
const MOST_CACHE: u64 = 16 << 30;

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
        let mut joiner = Joiner { grid, ..Joiner::default() };
        let devices = members.iter().map(|one| Some(joiner.device(one))).collect();
        let made = joiner.join(shape, devices)?;
        Ok(joiner.array(made))
    }

    /// A device with all that is below it.
    ///
    /// # Errors
    /// [`CannotBe`].
    ///
    /// # Panics
    /// If a member is no device.
    pub fn over(tree: &Tree) -> Result<Array, CannotBe> {
        let mut joiner = Joiner { grid: 1, ..Joiner::default() };
        let made = match tree {
            Tree::Device(offer) => {
                let device = joiner.device(offer);
                joiner.join(None, vec![Some(device)])?
            }
            Tree::Joined(..) | Tree::Cached(..) => joiner.tree(tree)?,
        };
        Ok(joiner.array(made))
    }

    /// Has its caches hold what those of `before` hold, which is the same array after a run.
    pub fn hold_as(&mut self, before: Array) {
        self.machine.hold_as(before.machine);
    }
}

/// A part of a machine that is being made.
struct Below {
    made: Made,
    /// Bytes of data.
    size: u64,
    /// The least number of lost devices that loses data.
    kills: usize,
}

/// The facts about the devices so far.
#[derive(Default)]
struct Joiner {
    grid: u64,
    names: Vec<Option<String>>,
    buses: Vec<BusProfile>,
    devices: u64,
    /// The largest command that all of them take; none without a device.
    most: Option<u64>,
}

impl Joiner {
    fn device(&mut self, one: &Offer) -> Below {
        let model = self.model(one);
        self.devices += 1;
        let largest = largest(&one.profile.kind);
        self.most = Some(self.most.map_or(largest, |most| most.min(largest)));
        let size = one.size / self.grid * self.grid;
        Below { made: Made::Device(model), size, kills: 1 }
    }

    fn model(&mut self, one: &Offer) -> MemberModel {
        let known = self.names.iter().position(|name| name.is_some() && *name == one.bus);
        let bus = known.unwrap_or_else(|| {
            self.names.push(one.bus.clone());
            self.buses.push(one.of_bus);
            self.names.len() - 1
        });
        MemberModel { kind: one.profile.kind.clone(), size: one.size, bus }
    }

    fn tree(&mut self, tree: &Tree) -> Result<Below, CannotBe> {
        match tree {
            Tree::Device(offer) => Ok(self.device(offer)),
            Tree::Joined(shape, members) => {
                let is_there: Vec<bool> = members.iter().map(Option::is_some).collect();
                if !suffice(shape.level, shape.layout, &is_there) {
                    return Err(CannotBe::Lost(shape.level));
                }
                let below =
                    members.iter().map(|one| one.as_ref().map(|one| self.tree(one)).transpose());
                let below = below.collect::<Result<Vec<_>, CannotBe>>()?;
                Ok(self.join(Some(*shape), below)?)
            }
            Tree::Cached(config, behind, origin) => {
                if config.size > MOST_CACHE {
                    return Err(CannotBe::Cached(
                        "a cache of more than 16 GiB: its blocks are followed one by one",
                    ));
                }
                let Below { made: origin, size, kills } = self.tree(origin)?;
                let shadow = Shadow::new(*config, *behind, size);
                let shadow = shadow.ok_or(CannotBe::Cached("a cache of no blocks"))?;
                let age_ns = behind.map(|behind| behind.age.as_nanos() as u64);
                let memory = self.model(&Offer::memory(size));
                let (shadow, origin) = (Box::new(shadow), Box::new(origin));
                Ok(Below { made: Made::Cached { shadow, age_ns, origin, memory }, size, kills })
            }
        }
    }

    fn join(
        &mut self,
        shape: Option<Shape>,
        members: Vec<Option<Below>>,
    ) -> Result<Below, GeometryError> {
        let there = || members.iter().flatten();
        let least = there().map(|one| one.size).min().unwrap_or(0);
        // A member that is missing had room enough.
        let sizes = members.iter().map(|one| one.as_ref().map_or(least, |one| one.size));
        let (layout, size, losses) = join(shape, &sizes.collect::<Vec<_>>())?;
        let mut kills: Vec<usize> = there().map(|one| one.kills).collect();
        kills.sort_unstable();
        let missing = members.len() - kills.len();
        let kills = kills.iter().take((losses + 1).saturating_sub(missing).max(1)).sum();
        let below = members.into_iter().map(|one| one.map(|one| one.made)).collect();
        Ok(Below { made: Made::Joined(layout, below), size, kills })
    }

    fn array(self, Below { made, size, kills }: Below) -> Array {
        let most = self.most.unwrap_or(u64::MAX);
        Array {
            machine: Machine::over(made, &self.buses, most).merging(Merge::Nothing),
            size,
            losses: kills.saturating_sub(1),
            under_way: QUEUED * most * self.devices,
            buses: self.names,
        }
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

/// Returns the shape of a level with its usual layout, and chunks of `chunk` bytes where the level has them.
pub fn usual_shape(level: Level, chunk: u64) -> Shape {
    let layout = match level {
        Level::Raid0 => Raid0Layout::default().number(),
        Level::Raid10 => Raid10Layout::default().number(),
        Level::Raid4 | Level::Raid5 | Level::Raid6 => ParityLayout::default().number(),
        Level::Linear | Level::Raid1 => 0,
    };
    Shape { level, layout, chunk }
}
