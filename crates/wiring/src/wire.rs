//! From parts to devices.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use braid_array::Role;
use braid_cache::{Cache, Config, Rules, WriteBackConfig};
use braid_engine::assembled::{Assembled, Level};
use braid_engine::decorators::{Cow, Holes, Slice};
use braid_engine::redundant::{Branch, Home, NewMember, Redundant, STRIPE_CACHE, Setup, Speed};
use braid_engine::{self as engine, Clock, Dev};
use braid_md::Resync;

use crate::part::{Decoration, Part};

/// The source of leaves, and of the clock on which arrays and caches run.
pub trait Ground {
    /// A leaf.
    type Leaf;
    /// An array whose members describe it.
    type Md;
    /// Data of a cache.
    type Cache;

    /// A device on a leaf.
    ///
    /// # Errors
    /// What the system says.
    fn leaf(&self, leaf: &Self::Leaf) -> io::Result<Dev>;

    /// Returns the label that an array without superblocks gives to its member of `role`.
    fn label(&self, leaf: &Self::Leaf, role: usize) -> String;

    /// Returns the verdict on an array whose members describe it, with a device on each.
    ///
    /// # Errors
    /// What the system says of one of its leaves.
    fn described<'a>(&self, array: &'a Self::Md) -> io::Result<Described<'a>>;

    /// A number that no run before had, for a log.
    ///
    /// # Errors
    /// No randomness.
    fn nonce(&self) -> io::Result<u64>;

    /// Returns the parameters of write-back mode; `None` for a cache in another mode.
    ///
    /// # Errors
    /// No randomness.
    fn write_back(
        &self,
        of: &Self::Cache,
        origin: &Dev,
        log: Option<Dev>,
    ) -> io::Result<Option<WriteBackConfig>>;

    /// A clock for an array or a cache.
    fn clock(&self) -> Rc<dyn Clock>;

    /// A device on a cache.
    fn cache(&self, cache: Cache) -> Dev {
        Dev::new(cache)
    }

    /// Returns the way to the shard on which the stack's arrays live, if that is another one. `array` is the place of
    /// the array in [`Wired::arrays`] there.
    fn home(&self, _array: usize) -> Option<Box<dyn Home>> {
        None
    }

    /// Changes what an array is set up with, before it is made.
    fn adjust(&self, setup: &mut Setup);
}

/// An array whose members describe it.
pub struct Described<'a> {
    /// Verdict on what the members carry.
    pub assembled: &'a Assembled,
    /// A device on each member that takes part, in the order of the verdict.
    pub devs: Vec<Dev>,
}

/// An array that survives the loss of members.
pub struct Array {
    /// The array's name; no other array of the stack has it.
    pub name: String,
    /// The array's identifier, if it has superblocks.
    pub uuid: Option<String>,
    /// The level with its geometry.
    pub level: Level,
    /// The array itself.
    pub array: Redundant,
    /// The superblocks count on a member that does not take part, which is to be recorded at once.
    pub is_changed: bool,
}

/// A cache, and what belongs to it.
pub struct CacheAt<'a, C> {
    /// The cache itself.
    pub cache: Cache,
    /// The ground's data of the cache.
    pub of: &'a C,
}

/// A stack that was wired.
pub struct Wired<'a, C> {
    /// The device that the stack is.
    pub dev: Dev,
    /// Arrays that survive losses, the lower ones first.
    pub arrays: Vec<Array>,
    /// Arrays that live on another shard, in the order of [`Wired::arrays`] there.
    pub branches: Vec<Branch>,
    /// Caches, the lower ones first.
    pub caches: Vec<CacheAt<'a, C>>,
    /// Devices whose changes go to a store, the lower ones first.
    pub cows: Vec<Cow>,
}

/// Makes the device that `part` is, on `ground`.
///
/// # Errors
/// What `ground` says; no memory.
///
/// # Panics
/// If the part itself is missing.
pub fn wire<'a, G: Ground>(
    part: &'a Part<G::Leaf, G::Md, G::Cache>,
    ground: &G,
) -> io::Result<Wired<'a, G::Cache>> {
    let (arrays, branches, caches, cows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut wiring = Wiring { ground, arrays, branches, caches, cows };
    let dev = wiring.part(part)?.expect("the whole of a stack is there");
    let Wiring { arrays, branches, caches, cows, .. } = wiring;
    Ok(Wired { dev, arrays, branches, caches, cows })
}

struct Wiring<'a, 'g, G: Ground> {
    ground: &'g G,
    arrays: Vec<Array>,
    branches: Vec<Branch>,
    caches: Vec<CacheAt<'a, G::Cache>>,
    cows: Vec<Cow>,
}

impl<'a, G: Ground> Wiring<'a, '_, G> {
    /// The label of a member: that of the device behind its decorators.
    fn label(&self, part: &Part<G::Leaf, G::Md, G::Cache>, role: usize) -> String {
        match part {
            Part::Leaf(leaf) => self.ground.label(leaf, role),
            Part::Decorated { origin, .. } => self.label(origin, role),
            _ => unnamed(role),
        }
    }

    /// The device of a part; `None` for a member that is not there.
    fn part(&mut self, part: &'a Part<G::Leaf, G::Md, G::Cache>) -> io::Result<Option<Dev>> {
        Ok(match part {
            Part::Missing => None,
            Part::Leaf(leaf) => Some(self.ground.leaf(leaf)?),
            Part::Md(array) => Some(self.described(array)?),
            Part::Decorated { by, origin, store } => {
                let Some(origin) = self.part(origin)? else { return Ok(None) };
                let store = store.as_ref().map(|store| self.part(store)).transpose()?.flatten();
                Some(match by {
                    Decoration::Cache { config, of } => self.cached(*config, of, origin, store)?,
                    Decoration::Slice(span) => Dev::new(Slice::new(origin, *span)),
                    Decoration::Holes(holes) => Dev::new(Holes::new(origin, Arc::clone(holes))),
                    Decoration::Cow => {
                        let cow = Cow::new(origin, store.expect("a store is there"))?;
                        self.cows.push(cow.clone());
                        Dev::new(cow)
                    }
                })
            }
            Part::Joined { level, members } => {
                let label = |(role, part)| self.label(part, role);
                let mut labels: Vec<String> = members.iter().enumerate().map(label).collect();
                let is_twice = |name: &String| labels.iter().filter(|one| *one == name).count() > 1;
                if labels.iter().any(is_twice) {
                    labels = (0..members.len()).map(unnamed).collect();
                }
                let devs: Vec<Option<Dev>> =
                    members.iter().map(|member| self.part(member)).collect::<Result<_, _>>()?;
                Some(self.joined(level, devs, labels)?)
            }
        })
    }

    fn cached(
        &mut self,
        config: Config,
        of: &'a G::Cache,
        origin: Dev,
        log: Option<Dev>,
    ) -> io::Result<Dev> {
        let cache = match self.ground.write_back(of, &origin, log)? {
            None => Cache::new(origin, config)?,
            Some(more) => Cache::write_back(origin, config, more)?,
        };
        cache.time_origin(self.ground.clock(), Rules::default());
        self.caches.push(CacheAt { cache: cache.clone(), of });
        Ok(self.ground.cache(cache))
    }

    fn described(&mut self, array: &G::Md) -> io::Result<Dev> {
        let Described { assembled, devs } = self.ground.described(array)?;
        let Some(layout) = assembled.level.redundant() else {
            return Ok(spread(&assembled.level, devs));
        };
        let clock = self.ground.clock();
        let setup = assembled.setup(layout, devs, clock, || self.ground.nonce())?;
        let uuid = Some(assembled.superblock.array_uuid.to_string());
        self.redundant(&assembled.name, uuid, &assembled.level, setup, assembled.is_changed)
    }

    fn joined(
        &mut self,
        level: &Level,
        members: Vec<Option<Dev>>,
        labels: Vec<String>,
    ) -> io::Result<Dev> {
        let Some(layout) = level.redundant() else {
            let all = members.into_iter();
            let all = all.map(|member| member.expect("checked when the stack was read"));
            return Ok(spread(level, all.collect()));
        };
        let is_volatile = members.iter().flatten().all(|dev| dev.limits().volatile);
        let is_missing = members.iter().any(Option::is_none);
        let members = members.into_iter().zip(labels).zip(0..);
        let members = members.filter_map(|((dev, label), role)| {
            Some(NewMember::unrecorded(label, dev?, Role::new(role)))
        });
        let setup = Setup {
            layout,
            members: members.collect(),
            array: None,
            bitmap: None,
            resync: resync_of_unrecorded(level, is_volatile, is_missing),
            log: None,
            stripe_cache: STRIPE_CACHE,
            read_only: false,
            clock: self.ground.clock(),
            speed: Speed::default(),
        };
        self.redundant(level.name(), None, level, setup, false)
    }

    fn redundant(
        &mut self,
        name: &str,
        uuid: Option<String>,
        level: &Level,
        mut setup: Setup,
        is_changed: bool,
    ) -> io::Result<Dev> {
        self.ground.adjust(&mut setup);
        setup.read_only |= setup.members.iter().any(|member| member.dev.limits().read_only);
        if setup.read_only && setup.array.is_none() && matches!(level, Level::Parity(_)) {
            // No resync will ever make parity agree, and no record says that it does not: it is the only source of
            // the bytes that a member cannot read.
            setup.resync = Resync::Clean;
        }
        if let Some(home) = self.ground.home(self.branches.len()) {
            let branch = Branch::new(setup, home)?;
            self.branches.push(branch.clone());
            return Ok(Dev::new(branch));
        }
        let array = Redundant::new(setup)?;
        let is_free = |name: &String| self.arrays.iter().all(|one| one.name != *name);
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let name = names.find(is_free).unwrap_or_default();
        let level = level.clone();
        self.arrays.push(Array { name, uuid, level, array: array.clone(), is_changed });
        Ok(Dev::new(array))
    }
}

/// Returns the label of a member of `role` without a path, in an array without superblocks.
pub fn unnamed(role: usize) -> String {
    format!("member {role}")
}

/// An array that keeps nothing twice.
fn spread(level: &Level, members: Vec<Dev>) -> Dev {
    match level {
        Level::Linear(linear) => Dev::new(engine::Array::new(linear.clone(), members)),
        Level::Raid0(raid0) => Dev::new(engine::Array::new(raid0.clone(), members)),
        Level::Raid1(_) | Level::Raid10(_) | Level::Parity(_) => panic!("it survives losses"),
    }
}

/// Returns the state in which an array without superblocks starts: whether copies, or data and parity, agree is
/// recorded nowhere; new memory is all zeroes, whose parity is zero. Where a member of a level with
/// parity is missing, its data is what the parity says: to make that anew would change the data.
fn resync_of_unrecorded(level: &Level, is_volatile: bool, is_missing: bool) -> Resync {
    let is_defined = is_missing && matches!(level, Level::Parity(_));
    if is_volatile || is_defined { Resync::Clean } else { Resync::From(0) }
}
