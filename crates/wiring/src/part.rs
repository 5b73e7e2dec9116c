//! The parts of a stack, and what holds for them before anything is wired.

use std::sync::Arc;

use braid_block::{HasLimits, Limits, Span};
use braid_cache::Config;
use braid_engine::assembled::Level;
use braid_engine::decorators::{Holes, Slice};

/// The kind of a decorator.
pub enum Decoration {
    /// A part of the origin: within it, in whole blocks.
    Slice(Span),
    /// Ranges that cannot be read: in order, without overlaps, in whole blocks. Nothing can be written.
    Holes(Arc<[Span]>),
}

impl Decoration {
    /// Returns the limits of the decorator in front of a device with the limits `origin`.
    pub fn limits(&self, origin: Limits) -> Limits {
        match self {
            Decoration::Slice(span) => Slice::limits(origin, *span),
            Decoration::Holes(_) => Holes::limits(origin),
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
        by: Decoration,
        /// The part behind it.
        origin: Box<Part<L, M, C>>,
    },
    /// A cache in memory in front of a part.
    Cached {
        /// Size, blocks, mode.
        config: Config,
        /// The part behind the cache.
        origin: Box<Part<L, M, C>>,
        /// The log of a cache in write-back mode.
        log: Option<Box<Part<L, M, C>>>,
        /// The ground's data of the cache.
        of: C,
    },
}

impl<L: HasLimits, M: HasLimits, C> Part<L, M, C> {
    /// The limits of the device that the part becomes; `None` for a member that is not there.
    pub fn limits(&self) -> Option<Limits> {
        match self {
            Part::Leaf(leaf) => Some(leaf.limits()),
            Part::Missing => None,
            Part::Md(array) => Some(array.limits()),
            Part::Decorated { by, origin } => origin.limits().map(|origin| by.limits(origin)),
            Part::Cached { origin, .. } => {
                origin.limits().map(|limits| Limits { immediate: false, ..limits })
            }
            Part::Joined { level, members } => {
                let limits = members.iter().filter_map(Part::limits);
                Some(Limits { size: level.size(), ..Limits::combine(limits) })
            }
        }
    }
}

impl<L, M, C> Part<L, M, C> {
    /// Calls `look` with the part and all parts below it: a part before its own, from left to right, a cache's
    /// origin before its log.
    pub fn walk<'a>(&'a self, look: &mut impl FnMut(&'a Self)) {
        look(self);
        match self {
            Part::Leaf(_) | Part::Missing | Part::Md(_) => {}
            Part::Joined { members, .. } => members.iter().for_each(|member| member.walk(look)),
            Part::Decorated { origin, .. } => origin.walk(look),
            Part::Cached { origin, log, .. } => {
                origin.walk(look);
                log.iter().for_each(|log| log.walk(look));
            }
        }
    }
}
