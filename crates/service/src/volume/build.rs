//! What a shard makes of the media: devices on the leaves, joined to the one device that the stack is.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use braid_array::Role;
use braid_cache::{Cache, Config, Rules};
use braid_engine::redundant::{MemberState, NewMember, Redundant, STRIPE_CACHE, Setup, Speed};
use braid_engine::{Array, Dev};
use braid_md::{BadBlocks, Resync};
use braid_mem::Pool;
use braid_uring::{ExecutorClock, Handle};

use super::cache_log::WriteBack;
use super::leaf::Leaf;
use super::level::Level;
use super::md::MdArray;
use super::media::{Media, Part};
use super::warm::Warm;

/// An array that survives the loss of members, on its shard, with what people call it.
pub struct AtWork {
    /// What people call it; no other of the stack is called so.
    pub name: String,
    /// Its identifier, if it has superblocks.
    pub uuid: Option<String>,
    pub level: Level,
    pub array: Redundant,
    /// Who takes part is to be recorded at once.
    pub is_changed: bool,
}

/// A cache on its shard.
#[derive(Clone)]
pub struct AtCache {
    /// As it is written.
    pub text: String,
    /// Its log as it is written, if it has one.
    pub log: String,
    pub cache: Cache,
    /// Where it is kept between two lives.
    pub warm: Option<Arc<Warm>>,
    /// What is locked for a log that came later.
    pub log_media: Option<Arc<Media>>,
}

/// What a shard makes of the media.
pub struct Built {
    /// The device that is served.
    pub dev: Dev,
    /// Arrays that survive losses, those below others first.
    pub arrays: Vec<AtWork>,
    /// Caches, those below others first.
    pub caches: Vec<AtCache>,
}

/// What the parts of a stack are made with on a shard.
struct Builder<'a> {
    handle: &'a Handle,
    pool: &'a Pool,
    read_only: bool,
    arrays: Vec<AtWork>,
    caches: Vec<AtCache>,
}

/// The device that the stack is, for the shard of `handle`.
///
/// # Errors
/// `EMFILE`, when a file cannot be opened once more; no memory.
pub fn build(media: &Media, handle: &Handle, pool: &Pool, read_only: bool) -> io::Result<Built> {
    let mut builder = Builder { handle, pool, read_only, arrays: Vec::new(), caches: Vec::new() };
    let dev = builder.part(&media.root)?.expect("the whole of a stack is there");
    Ok(Built { dev, arrays: builder.arrays, caches: builder.caches })
}

impl Builder<'_> {
    /// The device of a part; none for a member that is not there.
    fn part(&mut self, part: &Part) -> io::Result<Option<Dev>> {
        Ok(match part {
            Part::Missing => None,
            Part::Leaf(leaf) => Some(self.leaf(leaf)?),
            Part::Md(array) => Some(self.md(array)?),
            Part::Cached { config, text, origin, write_back, log, warm } => {
                let Some(origin) = self.part(origin)? else { return Ok(None) };
                let log = log.as_ref().map(|log| self.part(log)).transpose()?.flatten();
                let dev = self.cached(*config, text, origin, write_back.as_ref(), log)?;
                if let Some(at) = self.caches.last_mut() {
                    at.warm.clone_from(warm);
                }
                Some(dev)
            }
            Part::Joined { level, members } => {
                let devs: Vec<Option<Dev>> =
                    members.iter().map(|member| self.part(member)).collect::<Result<_, _>>()?;
                let called = members.iter().enumerate();
                let called: Vec<String> = called.map(|(role, part)| part.called(role)).collect();
                Some(self.join(level, devs, &called)?)
            }
        })
    }

    fn cached(
        &mut self,
        config: Config,
        text: &str,
        origin: Dev,
        write_back: Option<&WriteBack>,
        log: Option<Dev>,
    ) -> io::Result<Dev> {
        let cache = match write_back {
            None => Cache::new(origin, config)?,
            Some(write_back) => {
                let clock = Rc::new(ExecutorClock::new(self.handle));
                let more = write_back.config(&origin, log, clock, false)?;
                Cache::write_back(origin, config, more)?
            }
        };
        cache.time_origin(Rc::new(ExecutorClock::new(self.handle)), Rules::default());
        let log = write_back.map(|write_back| write_back.log_text.clone()).unwrap_or_default();
        self.caches.push(AtCache {
            text: text.to_owned(),
            log,
            cache: cache.clone(),
            warm: None,
            log_media: None,
        });
        Ok(Dev::new(cache))
    }

    fn leaf(&self, leaf: &Leaf) -> io::Result<Dev> {
        leaf.device(self.handle, self.pool)
    }

    fn md(&mut self, array: &MdArray) -> io::Result<Dev> {
        let devs: Vec<Dev> =
            array.leaves().iter().map(|leaf| self.leaf(leaf)).collect::<Result<_, _>>()?;
        let Some(layout) = array.level.redundant() else {
            return self.join(&array.level, devs.into_iter().map(Some).collect(), &[]);
        };
        let setup = array.setup(layout, devs, Rc::new(ExecutorClock::new(self.handle)))?;
        let uuid = array.superblock.array_uuid.to_string();
        self.redundant(&array.name, Some(uuid), &array.level, setup, array.is_changed)
    }

    /// `called` is what the array calls its members.
    fn join(
        &mut self,
        level: &Level,
        members: Vec<Option<Dev>>,
        called: &[String],
    ) -> io::Result<Dev> {
        let layout = match level {
            Level::Linear(linear) => {
                return Ok(Dev::new(Array::new(linear.clone(), all_of(members))));
            }
            Level::Raid0(raid0) => {
                return Ok(Dev::new(Array::new(raid0.clone(), all_of(members))));
            }
            Level::Raid1(_) | Level::Raid10(_) | Level::Parity(_) => level.redundant(),
        };
        let volatile = members.iter().flatten().all(|dev| dev.limits().volatile);
        let resync = resync_of_unrecorded(level, volatile, members.iter().any(Option::is_none));
        let members = members.into_iter().enumerate().filter_map(|(role, dev)| {
            Some(NewMember {
                label: called[role].clone(),
                dev: dev?,
                data_offset: 0,
                number: role as u32,
                role: Some(Role::nth(role)),
                replacement: false,
                state: MemberState::InSync,
                by_bitmap: false,
                write_mostly: false,
                superblock: None,
                bad_blocks: BadBlocks::none(),
            })
        });
        let setup = Setup {
            layout: layout.expect("a level that survives losses"),
            members: members.collect(),
            array: None,
            bitmap: None,
            resync,
            log: None,
            stripe_cache: STRIPE_CACHE,
            read_only: self.read_only,
            clock: Rc::new(ExecutorClock::new(self.handle)),
            speed: Speed::default(),
        };
        self.redundant(level.name(), None, level, setup, false)
    }

    fn redundant(
        &mut self,
        name: &str,
        uuid: Option<String>,
        level: &Level,
        setup: Setup,
        is_changed: bool,
    ) -> io::Result<Dev> {
        let array = Redundant::new(setup)?;
        let is_free = |name: &String| self.arrays.iter().all(|one| one.name != *name);
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        self.arrays.push(AtWork {
            name: names.find(is_free).unwrap_or_default(),
            uuid,
            level: level.clone(),
            array: array.clone(),
            is_changed,
        });
        Ok(Dev::new(array))
    }
}

/// Whether copies, or data and parity, of an array without superblocks are taken to agree. It is
/// recorded nowhere; new memory is all zeroes, whose parity is zero. Where a member of a level with
/// parity is missing, its data is what the parity says: to make that anew would change the data.
fn resync_of_unrecorded(level: &Level, volatile: bool, is_missing: bool) -> Resync {
    let is_defined = is_missing && matches!(level, Level::Parity(_));
    if volatile || is_defined { Resync::Clean } else { Resync::From(0) }
}

/// The members of a level of which none may be missing.
fn all_of(members: Vec<Option<Dev>>) -> Vec<Dev> {
    members.into_iter().map(|member| member.expect("checked when the stack was read")).collect()
}
