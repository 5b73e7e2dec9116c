//! The memory of what is measured: members that work as RAM disks do, and buffers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use braid_bench::{Error, Result};
use braid_block::{Io, Limits, Op};
use braid_engine::{Device, Pending};
use braid_mem::{Buf, Pool, Region};

use crate::CHUNK;

/// A member that works as a RAM disk does.
pub(crate) struct Member {
    region: Arc<Region>,
    /// Which chunks were written: the disk keeps account of that.
    written: Vec<AtomicU64>,
}

impl Member {
    pub(crate) fn new(region: &Arc<Region>) -> Member {
        let words = (region.len() as u64).div_ceil(CHUNK).div_ceil(64);
        let written = (0..words).map(|_| AtomicU64::new(0)).collect();
        Member { region: Arc::clone(region), written }
    }

    #[inline]
    fn mark_written(&self, first: u64, last: u64) {
        for chunk in first / CHUNK..=last / CHUNK {
            let (word, bit) = (&self.written[(chunk / 64) as usize], 1 << (chunk % 64));
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }
}

impl Device for Member {
    fn limits(&self) -> Limits {
        let size = self.region.len() as u64;
        Limits { volatile: true, immediate: true, ..Limits::new(size, 512) }
    }

    #[inline]
    fn start(&self, mut io: Io) -> Pending {
        let mut offset = io.span.offset as usize;
        match io.op {
            Op::Read => {
                for buf in io.payload.bufs_mut() {
                    self.region.read(offset, buf);
                    offset += buf.len();
                }
            }
            Op::Write => {
                for buf in io.payload.bufs() {
                    self.region.write(offset, buf);
                    offset += buf.len();
                }
                self.mark_written(io.span.offset, io.span.end() - 1);
            }
            Op::Flush | Op::Discard | Op::WriteZeroes => {}
        }
        Pending::ready(io.complete(Ok(())))
    }
}

pub(crate) fn buffers(pool: &Pool, len: u64, count: usize) -> Result<Vec<Buf>> {
    (0..count).map(|_| take(pool, len)).collect()
}

/// A buffer that was written, so that it is memory of its own.
pub(crate) fn take(pool: &Pool, len: u64) -> Result<Buf> {
    let mut buf =
        pool.get(len as usize).ok_or_else(|| Error::Unexpected("the buffers are spent".into()))?;
    buf.fill(0xb5);
    Ok(buf)
}
