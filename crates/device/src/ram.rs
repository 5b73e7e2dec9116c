//! A RAM disk: sparse anonymous memory.
//!
//! Requests are carried out at once, by copying. Memory is taken from the kernel when it is
//! first written and given back when whole pages are discarded; which granules were ever written
//! is kept in a bitmap, so that a client can skip what is empty.
//!
//! ```text
//! region   |  64 KiB  |  64 KiB  |  64 KiB  | …
//! written  |    1     |    0     |    1     | …      0: reads as zeroes
//! ```
//!
//! Invariants
//! * A disk never moves and never becomes less than was mapped: a device that was made before
//!   [`Ram::resize`] goes on with the size that it was made with, and reaches no memory that is
//!   not the disk's.
//! * Behind the disk's end nothing is written.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_block::{Extent, Flags, Io, Limits, Op, Span};
use braid_engine::{Device, Extents, Pending};
use braid_mem::{Pages, Region};

/// Bytes that one bit of the bitmap stands for.
const GRANULE: u64 = 64 << 10;

/// The memory of a RAM disk.
#[derive(Clone, Debug)]
pub struct Ram {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    region: Region,
    written: Vec<AtomicU64>,
    /// Bytes of the disk: what devices that are made from now on have.
    size: AtomicU64,
    options: RamOptions,
}

/// Options of a RAM disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamOptions {
    /// Smallest unit that can be addressed, in bytes: 512 to 4096, a power of two.
    pub logical_block: u32,
    /// All of its memory is taken when it is made, and kept whatever is discarded.
    pub preallocate: bool,
    /// It is never swapped out.
    pub lock: bool,
    /// Which pages it takes.
    pub pages: Pages,
    /// Bytes that it can be resized to; what is less than its size reserves nothing.
    pub most: u64,
}

impl Default for RamOptions {
    fn default() -> RamOptions {
        RamOptions {
            logical_block: 512,
            preallocate: false,
            lock: false,
            pages: Pages::Usual,
            most: 0,
        }
    }
}

/// The reason why a RAM disk cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RamError {
    /// No bytes, or a part of a logical block.
    #[error("{size} bytes are not whole blocks of {logical_block}")]
    Size {
        /// Bytes that were asked for.
        size: u64,
        /// Bytes of a block.
        logical_block: u32,
    },
    /// There is no such memory.
    #[error("{0}")]
    Map(io::Error),
    /// Memory cannot be taken now.
    #[error("{0}")]
    Populate(io::Error),
    /// Memory cannot be locked.
    #[error("{0}")]
    Lock(io::Error),
    /// Data lies behind the new end.
    #[error("data lies behind the new end, up to byte {end}")]
    Data {
        /// End of the last granule with data.
        end: u64,
    },
}

impl From<RamError> for io::Error {
    fn from(error: RamError) -> io::Error {
        match error {
            RamError::Map(error) | RamError::Populate(error) | RamError::Lock(error) => error,
            RamError::Size { .. } | RamError::Data { .. } => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
        }
    }
}

impl Ram {
    /// A disk of `size` bytes, all zeroes, of which none are taken yet.
    ///
    /// # Errors
    /// As [`Ram::with`].
    pub fn new(size: u64) -> Result<Ram, RamError> {
        Ram::with(size, RamOptions::default())
    }

    /// A disk of `size` bytes, all zeroes.
    ///
    /// # Errors
    /// An invalid size, or no memory of that kind that may be locked.
    pub fn with(size: u64, options: RamOptions) -> Result<Ram, RamError> {
        let none = |_| RamError::Map(io::ErrorKind::OutOfMemory.into());
        check_size(size, options.logical_block)?;
        let len = usize::try_from(size).map_err(none)?;
        let most = usize::try_from(options.most.max(size)).map_err(none)?;
        // First the region: a size that no machine has is refused by the kernel here. Where addresses
        // are limited, a disk that cannot grow is better than none.
        let region = Region::reserve(len, most, options.pages)
            .or_else(|_| Region::reserve(len, len, options.pages))
            .map_err(RamError::Map)?;
        let words = (region.most() as u64).div_ceil(GRANULE).div_ceil(64);
        let written = (0..words).map(|_| AtomicU64::new(0)).collect();
        let size = AtomicU64::new(size);
        let ram = Ram { shared: Arc::new(Shared { region, written, size, options }) };
        ram.take_from(0)?;
        Ok(ram)
    }

    /// Takes and locks what is to be, from byte `from` on.
    fn take_from(&self, from: usize) -> Result<(), RamError> {
        let Shared { region, options, .. } = &*self.shared;
        if options.lock {
            region.lock_on_fault().map_err(RamError::Lock)?;
        }
        if options.preallocate {
            region.populate_from(from).map_err(RamError::Populate)?;
        }
        Ok(())
    }

    /// A device on this memory, of the size that it has now.
    pub fn device(&self) -> RamDevice {
        RamDevice { shared: Arc::clone(&self.shared), size: self.size() }
    }

    /// Bytes of the disk.
    pub fn size(&self) -> u64 {
        self.shared.size.load(Ordering::Relaxed)
    }

    /// Bytes that [`Ram::resize`] can give it.
    pub fn most(&self) -> u64 {
        self.shared.region.most() as u64
    }

    /// Returns the options.
    pub fn options(&self) -> RamOptions {
        self.shared.options
    }

    /// Bytes of granules that were written and not discarded since.
    pub fn used_bytes(&self) -> u64 {
        let granules: u32 =
            self.shared.written.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        (u64::from(granules) * GRANULE).min(self.size())
    }

    /// Bytes of memory that the kernel holds for it; see [`Region::allocated`].
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn allocated_bytes(&self) -> io::Result<u64> {
        self.shared.region.allocated()
    }

    /// Makes the whole disk read as zeroes and frees its memory. No write may be in flight.
    pub fn erase(&self) {
        let device = self.device();
        device.zero(Span::new(0, self.size()), false);
        // The last granule may be a part of one.
        device.forget(0..self.size().next_multiple_of(GRANULE));
    }

    /// Changes the size of the disk; earlier devices keep theirs. No write may be in flight while the disk
    /// shrinks, and calls must not overlap.
    ///
    /// # Errors
    /// There is not enough memory, free or reserved, or there are data behind the new end. The disk is
    /// unchanged then.
    pub fn resize(&self, size: u64) -> Result<(), RamError> {
        let Shared { region, options, .. } = &*self.shared;
        check_size(size, options.logical_block)?;
        let old = self.size();
        if size > old {
            let len = usize::try_from(size)
                .map_err(|_| RamError::Map(io::ErrorKind::OutOfMemory.into()))?;
            region.grow(len).map_err(RamError::Map)?;
            // What was mapped and could not be taken stays behind the end.
            self.take_from(old as usize)?;
        } else if size < old {
            if let Some(end) = self.data_behind(size) {
                return Err(RamError::Data { end });
            }
            // No granule behind is marked; pages of zeroes that were written with the wish to keep them
            // are given back.
            region.zero(size as usize, (old - size) as usize, false);
        }
        self.shared.size.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the end of the data behind byte `from`; none if there are none.
    fn data_behind(&self, from: u64) -> Option<u64> {
        let device = self.device();
        let size = self.size();
        let last = (from / GRANULE..size.div_ceil(GRANULE))
            .rev()
            .find(|granule| device.is_written(granule * GRANULE))?;
        let end = (last * GRANULE + GRANULE).min(size);
        if last * GRANULE >= from {
            return Some(end);
        }
        // The end cuts this granule: what it holds may all be before.
        let mut rest = vec![0; (end - from) as usize];
        self.shared.region.read(from as usize, &mut rest);
        let data = rest.iter().rposition(|byte| *byte != 0)?;
        Some(from + data as u64 + 1)
    }
}

fn check_size(size: u64, logical_block: u32) -> Result<(), RamError> {
    match size != 0 && size.is_multiple_of(logical_block.into()) {
        true => Ok(()),
        false => Err(RamError::Size { size, logical_block }),
    }
}

/// A RAM disk as one shard sees it.
pub struct RamDevice {
    shared: Arc<Shared>,
    /// Bytes.
    size: u64,
}

impl Device for RamDevice {
    fn limits(&self) -> Limits {
        Limits {
            physical_block: 4096,
            volatile: true,
            immediate: true,
            unmaps_zeroes: !self.shared.options.preallocate,
            ..Limits::new(self.size, self.shared.options.logical_block)
        }
    }

    #[inline]
    fn start(&self, mut io: Io) -> Pending {
        match io.op {
            Op::Read => self.read(&mut io),
            Op::Write => self.write(&io),
            Op::Flush => {}
            Op::Discard => self.zero(io.span, false),
            Op::WriteZeroes => self.zero(io.span, io.flags.contains(Flags::NO_UNMAP)),
        }
        Pending::ready(io.complete(Ok(())))
    }

    fn extents(&self, span: Span) -> Extents {
        const MOST: usize = 1024;
        let mut extents: Vec<Extent> = Vec::new();
        let mut offset = span.offset;
        while offset < span.end() && extents.len() < MOST {
            let end = (offset / GRANULE * GRANULE + GRANULE).min(span.end());
            let len = end - offset;
            let extent =
                if self.is_written(offset) { Extent::data(len) } else { Extent::hole(len) };
            match extents.last_mut() {
                Some(last) if last.is_like(&extent) => last.len += len,
                _ => extents.push(extent),
            }
            offset = end;
        }
        Extents::Known(extents)
    }
}

impl RamDevice {
    #[inline]
    fn read(&self, io: &mut Io) {
        let mut offset = io.span.offset as usize;
        for buf in io.payload.bufs_mut() {
            self.shared.region.read(offset, buf);
            offset += buf.len();
        }
    }

    #[inline]
    fn write(&self, io: &Io) {
        let mut offset = io.span.offset as usize;
        for buf in io.payload.bufs() {
            self.shared.region.write(offset, buf);
            offset += buf.len();
        }
        // Behind the copy: beside a discard on another shard, data must never lie where the
        // bitmap says that there is none.
        self.mark_written(io.span);
    }

    fn zero(&self, span: Span, keep: bool) {
        if !keep {
            // Whole granules only: the rest of the first and the last may hold data.
            self.forget(span.offset..span.end());
        }
        let keep = keep || self.shared.options.preallocate;
        self.shared.region.zero(span.offset as usize, span.len as usize, keep);
    }

    /// Marks all granules inside `range` as empty.
    fn forget(&self, range: Range<u64>) {
        for granule in range.start.div_ceil(GRANULE)..range.end / GRANULE {
            self.word(granule).fetch_and(!bit(granule), Ordering::Relaxed);
        }
    }

    #[inline]
    fn mark_written(&self, span: Span) {
        for granule in span.offset / GRANULE..=(span.end() - 1) / GRANULE {
            let word = self.word(granule);
            if word.load(Ordering::Relaxed) & bit(granule) == 0 {
                word.fetch_or(bit(granule), Ordering::Relaxed);
            }
        }
    }

    fn is_written(&self, offset: u64) -> bool {
        let granule = offset / GRANULE;
        self.word(granule).load(Ordering::Relaxed) & bit(granule) != 0
    }

    #[inline]
    fn word(&self, granule: u64) -> &AtomicU64 {
        &self.shared.written[(granule / 64) as usize]
    }
}

#[inline]
fn bit(granule: u64) -> u64 {
    1 << (granule % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(device: &RamDevice, span: Span) -> Vec<Extent> {
        device.extents(span).at_once().expect("memory asks nobody")
    }

    #[test]
    fn only_what_was_written_is_allocated() {
        let ram = Ram::new(1 << 20).unwrap();
        let device = ram.device();
        let pool = braid_mem::Pool::new(1 << 20).unwrap();
        let buf = pool.get(4096).unwrap();
        assert!(matches!(
            device.start(Io::write(200_704, buf, Flags::NONE)),
            Pending::Ready(Some(_))
        ));
        let whole = Span::new(0, 1 << 20);
        let hole = 3 * GRANULE;
        assert_eq!(
            known(&device, whole),
            [Extent::hole(hole), Extent::data(GRANULE), Extent::hole((1 << 20) - hole - GRANULE)]
        );
        assert_eq!(ram.used_bytes(), GRANULE);
        drop(device.start(Io::discard(whole, Flags::NONE)));
        assert_eq!(known(&device, whole), [Extent::hole(1 << 20)]);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(matches!(Ram::new(0), Err(RamError::Size { .. })));
        assert!(matches!(Ram::new(1000), Err(RamError::Size { .. })));
        assert!(matches!(Ram::new(!511), Err(RamError::Map(_))));
        let blocks = RamOptions { logical_block: 4096, ..RamOptions::default() };
        assert!(matches!(Ram::with(4096 + 512, blocks), Err(RamError::Size { .. })));
    }

    #[test]
    fn what_is_preallocated_is_there_and_stays() {
        let options =
            RamOptions { preallocate: true, lock: true, most: 4 << 20, ..RamOptions::default() };
        let ram = match Ram::with(1 << 20, options) {
            Err(RamError::Lock(error)) => return println!("skipped: no locked memory: {error}"),
            ram => ram.unwrap(),
        };
        assert!(ram.allocated_bytes().unwrap() >= 1 << 20);
        assert_eq!(ram.used_bytes(), 0);
        drop(ram.device().start(Io::discard(Span::new(0, 1 << 20), Flags::NONE)));
        assert!(ram.allocated_bytes().unwrap() >= 1 << 20);
        ram.resize(2 << 20).unwrap();
        assert!(ram.allocated_bytes().unwrap() >= 2 << 20);
        assert!(matches!(ram.resize(8 << 20), Err(RamError::Map(_))));
        assert_eq!(ram.size(), 2 << 20);
        ram.resize(1 << 20).unwrap();
        assert!(ram.allocated_bytes().unwrap() < 2 << 20, "what is behind the end is given back");
    }

    /// Bytes of the world below: three granules and a half.
    const MOST: u64 = 7 * GRANULE / 2;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, u64, u8),
        Zero(u64, u64, bool),
        Discard(u64, u64),
        Erase,
        Resize(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Ends that meet granules, pages and neither.
        let place = || {
            let unit = prop::sample::select(vec![512u64, 4096, GRANULE / 2, GRANULE]);
            (unit, 0..MOST / 512).prop_map(|(unit, at)| at * 512 / unit * unit)
        };
        let step = prop_oneof![
            4 => (place(), place(), 0u8..4).prop_map(|(from, to, byte)| Step::Write(from, to, byte)),
            1 => (place(), place(), any::<bool>()).prop_map(|(from, to, keep)| Step::Zero(from, to, keep)),
            2 => (place(), place()).prop_map(|(from, to)| Step::Discard(from, to)),
            1 => Just(Step::Erase),
            4 => place().prop_map(|size| Step::Resize(size.max(512))),
        ];
        prop::collection::vec(step, 1..40)
    }

    proptest! {
        /// Whatever is written, discarded, erased and resized in whatever order: the disk reads as a
        /// vector does that goes through the same; shrinks are refused exactly where they would cut data
        /// off; what is told to be a hole is one, and an erased disk holds nothing.
        #[test]
        fn a_disk_reads_as_a_vector_does(steps in steps()) {
            let options = RamOptions { most: MOST, ..RamOptions::default() };
            let ram = Ram::with(GRANULE, options).unwrap();
            let mut oracle = vec![0u8; GRANULE as usize];
            let pool = braid_mem::Pool::new(512 << 10).unwrap();
            for step in steps {
                let device = ram.device();
                let size = oracle.len() as u64;
                let span = |from: u64, to: u64| {
                    let (from, to) = (from.min(to).min(size), from.max(to).min(size));
                    Span::new(from, to - from)
                };
                let mut fill = |span: Span, byte: u8| {
                    oracle[span.offset as usize..span.end() as usize].fill(byte);
                };
                match step {
                    Step::Write(from, to, byte) if !span(from, to).is_empty() => {
                        let span = span(from, to);
                        let mut buf = pool.get(span.len as usize).unwrap();
                        buf.fill(byte);
                        drop(device.start(Io::write(span.offset, buf, Flags::NONE)));
                        fill(span, byte);
                    }
                    Step::Write(..) => {}
                    Step::Zero(from, to, keep) => {
                        let flags = if keep { Flags::NO_UNMAP } else { Flags::NONE };
                        drop(device.start(Io::write_zeroes(span(from, to), flags)));
                        fill(span(from, to), 0);
                    }
                    Step::Discard(from, to) => {
                        drop(device.start(Io::discard(span(from, to), Flags::NONE)));
                        fill(span(from, to), 0);
                    }
                    Step::Erase => {
                        ram.erase();
                        fill(Span::new(0, size), 0);
                        prop_assert_eq!(ram.used_bytes(), 0);
                    }
                    Step::Resize(new) => {
                        let behind = oracle.get(new as usize..).unwrap_or_default();
                        let has_data = behind.iter().any(|byte| *byte != 0);
                        let resized = ram.resize(new);
                        if has_data {
                            prop_assert!(matches!(resized, Err(RamError::Data { .. })), "{resized:?}");
                        }
                        if resized.is_ok() {
                            oracle.resize(new as usize, 0);
                        }
                        // Zeroes that were written count as data where they fill a granule.
                        prop_assert!(resized.is_ok() || new < size && ram.used_bytes() > 0);
                    }
                }
                let device = ram.device();
                let size = oracle.len() as u64;
                prop_assert_eq!((ram.size(), device.limits().size), (size, size));
                let mut read = vec![1; oracle.len()];
                ram.shared.region.read(0, &mut read);
                prop_assert!(read == oracle);
                let mut offset = 0;
                for extent in known(&device, Span::new(0, size)) {
                    let part = &oracle[offset as usize..(offset + extent.len) as usize];
                    prop_assert!(!extent.zero || part.iter().all(|byte| *byte == 0));
                    offset += extent.len;
                }
                prop_assert_eq!(offset, size);
            }
        }
    }
}
