//! The memory of a guest, mapped here.
//!
//! ```text
//!   addresses of the guest       |<------- region ------->|      |<-- region -->|
//!   addresses of the front-end      |<------- region ------->|   (of the rings)
//!   mapping of the file      | page | page | page | page |
//!                            '-front-'
//! ```
//!
//! Invariants
//! * Each access is inside one mapping: offsets are checked before, and by the mapping again.
//! * The guest may change all of this memory at any time. Bytes are copied out once, and the copy is judged and used.
//! * A mapping lives as long as a ring or a request has it, also when the front-end has sent another table.
//!
//! Deliberately absent: memory that a front-end makes shorter while it is mapped. The kernel answers an access to that
//! with SIGBUS, which ends the process; a guest cannot do so, and a front-end has the volume in its hands.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Most regions of a guest.
pub(crate) const MOST_REGIONS: usize = 8;

/// Size of a page of the kernel, in bytes.
const PAGE: u64 = 4096;

/// A region as a front-end describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionInfo {
    /// Address in the guest.
    pub(crate) guest: u64,
    /// Length in bytes.
    pub(crate) size: u64,
    /// Address in the front-end.
    pub(crate) user: u64,
    /// Offset in the file.
    pub(crate) offset: u64,
}

/// The fault of a table of regions, or of an address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MemoryFault {
    /// A region that is empty, or reaches beyond the largest address.
    #[error("a region of {} bytes at {:#x} of the guest", .0.size, .0.guest)]
    Region(RegionInfo),
    /// Two regions have an address in common.
    #[error("two regions have the address {0:#x} of the guest")]
    Overlap(u64),
    /// The file cannot be mapped.
    #[error("a region of {} bytes cannot be mapped: {why}", .info.size)]
    Mapping {
        /// The region.
        info: RegionInfo,
        /// The reason.
        why: String,
    },
    /// No region has these bytes.
    #[error("{len} bytes at {address:#x} are not in the memory of the guest")]
    Outside {
        /// The first address.
        address: u64,
        /// Length in bytes.
        len: u64,
    },
}

/// A region that is mapped.
#[derive(Debug)]
pub(crate) struct Region {
    mapping: MmapRegion,
    /// Bytes of the mapping before the region: files are mapped by whole pages.
    front: u64,
    info: RegionInfo,
}

impl Region {
    fn map(info: RegionInfo, file: File) -> Result<Region, MemoryFault> {
        let has_end = |start: u64| start.checked_add(info.size).is_some();
        if info.size == 0 || ![info.guest, info.user, info.offset].into_iter().all(has_end) {
            return Err(MemoryFault::Region(info));
        }
        let fault = |why: String| MemoryFault::Mapping { info, why };
        let front = info.offset % PAGE;
        // As large as an offset plus a size, which have an end.
        let length = usize::try_from(front + info.size).map_err(|_| MemoryFault::Region(info))?;
        let at = FileOffset::new(file, info.offset - front);
        let mapping =
            MmapRegion::from_file(at, length).map_err(|error| fault(error.to_string()))?;
        Ok(Region { mapping, front, info })
    }

    /// Returns the place in the mapping of the byte `within` of the region.
    fn place(&self, within: u64) -> usize {
        // At most the mapping's length, which is a `usize`.
        usize::try_from(self.front + within).unwrap_or(usize::MAX)
    }
}

/// The memory of a guest.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Vec<Arc<Region>>,
}

impl Memory {
    /// Maps the regions of a table.
    ///
    /// # Errors
    /// A malformed region, regions that overlap, or a file that the kernel does not map.
    pub(crate) fn map(
        table: impl IntoIterator<Item = (RegionInfo, File)>,
    ) -> Result<Memory, MemoryFault> {
        let mut regions: Vec<Arc<Region>> = Vec::new();
        for (info, file) in table {
            let region = Region::map(info, file)?;
            let is_apart = |other: &Arc<Region>| {
                let other = other.info;
                info.guest >= other.guest + other.size || other.guest >= info.guest + info.size
            };
            if !regions.iter().all(is_apart) {
                return Err(MemoryFault::Overlap(info.guest));
            }
            regions.push(Arc::new(region));
        }
        Ok(Memory { regions })
    }

    /// The `len` bytes at the address `user` of the front-end, as rings are named.
    ///
    /// # Errors
    /// They are not in one region.
    pub(crate) fn area_of_user(&self, user: u64, len: u64) -> Result<Area, MemoryFault> {
        let inside = self.regions.iter().find_map(|region| {
            let within = user.checked_sub(region.info.user)?;
            let fits = within.checked_add(len)? <= region.info.size;
            fits.then(|| Area { region: Arc::clone(region), at: region.place(within) })
        });
        inside.ok_or(MemoryFault::Outside { address: user, len })
    }

    /// Gives `each` the pieces of `len` bytes at `address`, which may lie in several regions.
    fn pieces(
        &self,
        mut address: u64,
        len: usize,
        mut each: impl FnMut(&Region, usize, std::ops::Range<usize>) -> Option<()>,
    ) -> Result<(), MemoryFault> {
        let mut done = 0;
        while done < len {
            let outside = || MemoryFault::Outside { address, len: (len - done) as u64 };
            let found = self.regions.iter().find_map(|region| {
                let within = address.checked_sub(region.info.guest)?;
                (within < region.info.size).then_some((region, within))
            });
            let (region, within) = found.ok_or_else(outside)?;
            let there = usize::try_from(region.info.size - within).unwrap_or(usize::MAX);
            let count = there.min(len - done);
            each(region, region.place(within), done..done + count).ok_or_else(outside)?;
            done += count;
            address = address.wrapping_add(count as u64);
        }
        Ok(())
    }

    /// Copies out the bytes at `address`.
    ///
    /// # Errors
    /// They are not in the memory.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let len = into.len();
        self.pieces(address, len, |region, at, part| {
            let into = &mut into[part];
            let slice = region.mapping.get_slice(at, into.len()).ok()?;
            (slice.copy_to(into) == into.len()).then_some(())
        })
    }

    /// Copies `from` to `address`.
    ///
    /// # Errors
    /// The bytes there are not in the memory.
    pub(crate) fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.pieces(address, from.len(), |region, at, part| {
            let from = &from[part];
            region.mapping.get_slice(at, from.len()).ok().map(|slice| slice.copy_from(from))
        })
    }

    /// Checks that `len` bytes at `address` are in the memory.
    ///
    /// # Errors
    /// They are not.
    pub(crate) fn check(&self, address: u64, len: u32) -> Result<(), MemoryFault> {
        self.pieces(address, len as usize, |_, _, _| Some(()))
    }
}

/// A part of a region: a ring, or the table of requests in flight.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    region: Arc<Region>,
    at: usize,
}

/// The end of a ring's memory was not where it was checked to be, or is not aligned as atomic access needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("memory shared with the guest cannot be accessed")]
pub(crate) struct Unreachable;

impl Area {
    /// Maps a file of shared memory.
    ///
    /// # Errors
    /// The kernel does not.
    pub(crate) fn of_file(file: File, offset: u64, size: u64) -> Result<Area, MemoryFault> {
        let region = Region::map(RegionInfo { guest: 0, size, user: 0, offset }, file)?;
        let at = region.place(0);
        Ok(Area { region: Arc::new(region), at })
    }

    /// The same from `offset` on.
    pub(crate) fn from(&self, offset: usize) -> Area {
        Area { region: Arc::clone(&self.region), at: self.at.saturating_add(offset) }
    }

    fn place(&self, offset: usize) -> Result<usize, Unreachable> {
        self.at.checked_add(offset).ok_or(Unreachable)
    }

    /// Loads a number that the other side changes.
    pub(crate) fn load(&self, offset: usize, order: Ordering) -> Result<u16, Unreachable> {
        let slice = self.region.mapping.as_volatile_slice();
        slice.load(self.place(offset)?, order).map(u16::from_le).map_err(|_| Unreachable)
    }

    /// Stores a number that the other side reads.
    pub(crate) fn store(
        &self,
        offset: usize,
        value: u16,
        order: Ordering,
    ) -> Result<(), Unreachable> {
        let slice = self.region.mapping.as_volatile_slice();
        slice.store(value.to_le(), self.place(offset)?, order).map_err(|_| Unreachable)
    }

    /// Copies bytes out.
    pub(crate) fn read<const N: usize>(&self, offset: usize) -> Result<[u8; N], Unreachable> {
        let mut bytes = [0; N];
        let slice = self.region.mapping.get_slice(self.place(offset)?, N);
        slice.map_err(|_| Unreachable)?.copy_to(&mut bytes[..]);
        Ok(bytes)
    }

    /// Copies bytes in.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Unreachable> {
        let slice = self.region.mapping.get_slice(self.place(offset)?, bytes.len());
        slice.map_err(|_| Unreachable)?.copy_from(bytes);
        Ok(())
    }
}
