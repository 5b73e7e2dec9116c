//! The parts of a stack, and what holds for them before anything is wired.

use std::sync::Arc;

use braid_block::{HasLimits, Limits, Span};
use braid_cache::Config;
use braid_engine::assembled::Level;
use braid_engine::decorators::{Cow, Holes, Slice};

/// The kind of a decorator; `C` is the ground's data of a cache.
pub enum Decoration<C> {
    /// A part of the origin: within it, in whole blocks.
    Slice(Span),
    /// Ranges that cannot be read: in order, without overlaps, in whole blocks. Nothing can be written.
    Holes(Arc<[Span]>),
    /// Changes go to a store, whose header was checked.
    Cow,
    /// A cache in memory. Its log, in write-back mode, is the store.
    Cache {
        /// Size, blocks, mode.
        config: Config,
        /// The ground's data of the cache.
        of: C,
    },
}

impl<C> Decoration<C> {
    /// Returns the limits of the decorator in front of a device with the limits `origin`; `store` are those of the
    /// device to which changes go.
    fn limits(&self, origin: Limits, store: Option<Limits>) -> Limits {
        match self {
            Decoration::Cow => store.map_or(origin, |store| Cow::limits(origin, store)),
            Decoration::Slice(span) => Slice::limits(origin, *span),
            Decoration::Holes(holes) => Holes::limits(origin, holes),
            Decoration::Cache { .. } => Limits { immediate: false, ..origin },
        }
    }
}

/// A part of a stack: `L` is a leaf, `M` an array whose members describe it, `C` what belongs to a cache.
pub enum Part<L, M, C> {
    /// A device.
    Leaf(L),
    /// A member that is not there.
    Missing,
    /// An array without superblocks.
    Joined {
        /// The level with its geometry.
        level: Level,
        /// In the order of the roles.
        members: Vec<Part<L, M, C>>,
    },
    /// An array whose members describe it.
    Md(M),
    /// A device in front of a part.
    Decorated {
        /// The kind of the device.
        by: Decoration<C>,
        /// The part behind it.
        origin: Box<Part<L, M, C>>,
        /// The device to which changes go: always of [`Decoration::Cow`], and of a [`Decoration::Cache`] with a log.
        store: Option<Box<Part<L, M, C>>>,
    },
}

impl<L: HasLimits, M: HasLimits, C> Part<L, M, C> {
    /// The limits of the device that the part becomes; `None` for a member that is not there.
    pub fn limits(&self) -> Option<Limits> {
        match self {
            Part::Leaf(leaf) => Some(leaf.limits()),
            Part::Missing => None,
            Part::Md(array) => Some(array.limits()),
            Part::Decorated { by, origin, store } => {
                let store = store.as_ref().and_then(|store| store.limits());
                origin.limits().map(|origin| by.limits(origin, store))
            }
            Part::Joined { level, members } => {
                let limits = members.iter().filter_map(Part::limits);
                Some(Limits { size: level.size(), ..Limits::combine(limits) })
            }
        }
    }
}

impl<L, M, C> Part<L, M, C> {
    /// Calls `look` with the part and all parts below it: a part before its own, from left to right, an
    /// origin before its store.
    pub fn walk<'a>(&'a self, look: &mut impl FnMut(&'a Self)) {
        look(self);
        match self {
            Part::Leaf(_) | Part::Missing | Part::Md(_) => {}
            Part::Joined { members, .. } => members.iter().for_each(|member| member.walk(look)),
            Part::Decorated { origin, store, .. } => {
                origin.walk(look);
                store.iter().for_each(|store| store.walk(look));
            }
        }
    }
}
