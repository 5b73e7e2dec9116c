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

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_block::{Extent, Flags, Io, Limits, Op, Span};
use braid_engine::{Device, Pending};
use braid_mem::{Advice, Region};

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
}

impl Ram {
    /// A disk of `size` bytes, all zeroes, of which none are taken yet.
    ///
    /// # Errors
    /// `EINVAL` if `size` is 0 or not a multiple of 512; else what `mmap` answers.
    pub fn new(size: u64) -> io::Result<Ram> {
        let len = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
        if len == 0 || !len.is_multiple_of(512) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // First the region: a size that no machine has is refused by the kernel here.
        let region = Region::new(len, Advice::SparseHuge)?;
        let words = size.div_ceil(GRANULE).div_ceil(64);
        let written = (0..words).map(|_| AtomicU64::new(0)).collect();
        Ok(Ram { shared: Arc::new(Shared { region, written }) })
    }

    /// A device on this memory.
    pub fn device(&self) -> RamDevice {
        RamDevice { shared: Arc::clone(&self.shared) }
    }

    /// Bytes of granules that were written and not discarded since.
    pub fn used_bytes(&self) -> u64 {
        let granules: u32 =
            self.shared.written.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum();
        (u64::from(granules) * GRANULE).min(self.shared.region.len() as u64)
    }
}

/// A RAM disk as one shard sees it.
pub struct RamDevice {
    shared: Arc<Shared>,
}

impl Device for RamDevice {
    fn limits(&self) -> Limits {
        Limits {
            physical_block: 4096,
            volatile: true,
            immediate: true,
            ..Limits::new(self.shared.region.len() as u64, 512)
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

    fn extents(&self, span: Span) -> Vec<Extent> {
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
        extents
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
            for granule in span.offset.div_ceil(GRANULE)..span.end() / GRANULE {
                self.word(granule).fetch_and(!bit(granule), Ordering::Relaxed);
            }
        }
        self.shared.region.zero(span.offset as usize, span.len as usize, keep);
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
            device.extents(whole),
            [Extent::hole(hole), Extent::data(GRANULE), Extent::hole((1 << 20) - hole - GRANULE)]
        );
        assert_eq!(ram.used_bytes(), GRANULE);
        drop(device.start(Io::discard(whole, Flags::NONE)));
        assert_eq!(device.extents(whole), [Extent::hole(1 << 20)]);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Ram::new(0).is_err());
        assert!(Ram::new(1000).is_err());
        assert!(Ram::new(!511).is_err());
    }
}
