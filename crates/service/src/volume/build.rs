//! The devices of a shard: the wiring of a stack on the shard's clock, over leaves that the process opened.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use braid_cache::{Cache, WriteBackConfig};
use braid_engine::redundant::{Branch, Home, Setup};
use braid_engine::{Clock, Dev};
use braid_mem::Pool;
use braid_member::Member;
use braid_uring::{ExecutorClock, Handle};
use braid_wiring::{Array, CacheAt, Described, Ground, wire};

use super::md::MdArray;
use super::media::{Media, OfCache, called};
use super::warm::Warm;
use crate::metadata::random_number;

/// A cache on its shard.
#[derive(Clone)]
pub struct AtCache {
    /// The text of the cache in the stack.
    pub text: String,
    /// The text of its log, if it has one.
    pub log: String,
    pub cache: Cache,
    /// The file in which the cache is kept between two starts.
    pub warm: Option<Arc<Warm>>,
    /// The locked medium of a log that was attached later.
    pub log_media: Option<Arc<Media>>,
}

/// The devices of a shard.
pub struct Built {
    /// The device that is served.
    pub dev: Dev,
    /// Arrays that survive losses, those below others first.
    pub arrays: Vec<Array>,
    /// Arrays that live on the first shard, if this is another one.
    pub branches: Vec<Branch>,
    /// Caches, those below others first.
    pub caches: Vec<AtCache>,
}

/// The way to an array that lives on the first shard, by its place among the arrays of that shard.
pub(super) type Homes = dyn Fn(usize) -> Box<dyn Home>;

/// Builds the device of the stack for the shard of `handle`. With `homes`, the arrays that survive losses live on another
/// shard.
///
/// # Errors
/// `EMFILE`, when a file cannot be opened once more; no memory.
pub fn build(
    media: &Media,
    handle: &Handle,
    read_only: bool,
    homes: Option<&Homes>,
) -> io::Result<Built> {
    let zeroes = Pool::new(ZEROES)?;
    let wired = wire(&media.root, &Shard { handle, zeroes, read_only, homes })?;
    wired.cows.iter().for_each(|cow| handle.spawn(cow.run()));
    let caches = wired.caches.into_iter().map(|CacheAt { cache, of }| AtCache {
        text: of.text.clone(),
        log: of.write_back.as_ref().map_or(String::new(), |one| one.log_text.clone()),
        cache,
        warm: of.warm.clone(),
        log_media: None,
    });
    let caches = caches.collect();
    Ok(Built { dev: wired.dev, arrays: wired.arrays, branches: wired.branches, caches })
}

/// Memory of a shard for zeroes, in bytes: a member without an operation for zeroes writes them from this memory. The
/// memory of requests cannot serve for it, because requests that wait for the zeroes may hold all of that, as at the first
/// write to a log.
const ZEROES: usize = 256 << 10;

/// A shard, as the ground of a stack.
struct Shard<'a> {
    handle: &'a Handle,
    /// Memory for zeroes of members that have no operation for them.
    zeroes: Pool,
    read_only: bool,
    homes: Option<&'a Homes>,
}

impl Ground for Shard<'_> {
    type Leaf = Arc<Member>;
    type Md = Box<MdArray>;
    type Cache = OfCache;

    fn leaf(&self, leaf: &Arc<Member>) -> io::Result<Dev> {
        leaf.device(self.handle, &self.zeroes)
    }

    fn label(&self, leaf: &Arc<Member>, role: usize) -> String {
        called(leaf, role)
    }

    fn described<'a>(&self, array: &'a Box<MdArray>) -> io::Result<Described<'a>> {
        let leaves = array.leaves();
        let devs = leaves.iter().map(|leaf| self.leaf(leaf)).collect::<Result<_, _>>()?;
        Ok(Described { assembled: &array.assembled, devs })
    }

    fn nonce(&self) -> io::Result<u64> {
        random_number()
    }

    fn write_back(
        &self,
        of: &OfCache,
        origin: &Dev,
        log: Option<Dev>,
    ) -> io::Result<Option<WriteBackConfig>> {
        let config =
            |one: &super::cache_log::WriteBack| one.config(origin, log, self.clock(), false);
        of.write_back.as_ref().map(config).transpose()
    }

    fn clock(&self) -> Rc<dyn Clock> {
        Rc::new(ExecutorClock::new(self.handle))
    }

    fn home(&self, array: usize) -> Option<Box<dyn Home>> {
        self.homes.map(|home| home(array))
    }

    fn adjust(&self, setup: &mut Setup) {
        setup.read_only = self.read_only;
    }
}
