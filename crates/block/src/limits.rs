//! The requirements and abilities of a device.

use std::convert::Infallible;
use std::sync::Arc;

/// The properties of a device that do not change while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Capacity in bytes, a multiple of `logical_block`.
    pub size: u64,
    /// Smallest unit that can be addressed, in bytes: a power of two from 512 to 4096. Every
    /// offset and length is a multiple of it.
    pub logical_block: u32,
    /// Smallest unit written without reading first, in bytes; at least `logical_block`.
    pub physical_block: u32,
    /// Size and alignment that serve the device best, in bytes (a full stripe); 0 if none is
    /// better than another.
    pub optimal_io: u32,
    /// Refuses all that modifies.
    pub read_only: bool,
    /// Discards do something.
    pub discard: bool,
    /// Zeroes that may give up space are made by giving it up: they cost little, and are not written.
    pub unmaps_zeroes: bool,
    /// Contents survive neither the process nor the power. A flush may take time all the same: a modelled
    /// device keeps its contents in memory, and takes as long as the device that it stands for.
    pub volatile: bool,
    /// Access time depends on the position.
    pub rotational: bool,
    /// Requests are carried out in the call that starts them, so that cutting one into several
    /// costs nothing.
    pub immediate: bool,
    /// A flush makes durable what any device on the same medium wrote, on whatever shard. Not so if each has a connection
    /// of its own, or a memory of changes.
    pub shared_flush: bool,
}

impl Limits {
    /// A plain writable device of `size` bytes with logical and physical blocks of
    /// `logical_block` bytes.
    pub const fn new(size: u64, logical_block: u32) -> Limits {
        Limits {
            size,
            logical_block,
            physical_block: logical_block,
            optimal_io: 0,
            read_only: false,
            discard: true,
            unmaps_zeroes: true,
            volatile: false,
            rotational: false,
            immediate: false,
            shared_flush: true,
        }
    }

    /// Returns the limits of a set of members taken together, except `size` and `optimal_io`, which
    /// the array decides.
    ///
    /// # Panics
    /// If there is no member.
    pub fn combine(members: impl IntoIterator<Item = Limits>) -> Limits {
        members
            .into_iter()
            .reduce(|all, one| Limits {
                size: all.size.saturating_add(one.size),
                logical_block: all.logical_block.max(one.logical_block),
                physical_block: all.physical_block.max(one.physical_block),
                optimal_io: all.optimal_io.max(one.optimal_io),
                read_only: all.read_only || one.read_only,
                discard: all.discard || one.discard,
                unmaps_zeroes: all.unmaps_zeroes && one.unmaps_zeroes,
                volatile: all.volatile && one.volatile,
                rotational: all.rotational || one.rotational,
                immediate: all.immediate && one.immediate,
                shared_flush: all.shared_flush && one.shared_flush,
            })
            .expect("an array has at least one member")
    }
}

/// A thing with limits, before there is a device on it.
pub trait HasLimits {
    /// The limits of its device.
    fn limits(&self) -> Limits;
}

impl<T: HasLimits + ?Sized> HasLimits for Arc<T> {
    fn limits(&self) -> Limits {
        T::limits(self)
    }
}

impl<T: HasLimits + ?Sized> HasLimits for Box<T> {
    fn limits(&self) -> Limits {
        T::limits(self)
    }
}

/// For generic types without such a part.
impl HasLimits for Infallible {
    fn limits(&self) -> Limits {
        match *self {}
    }
}
