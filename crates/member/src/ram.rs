//! RAM disks.

use std::io;
use std::rc::Rc;

use braid_block::Limits;
use braid_device::{Metered, Ram, RamError, RamOptions};
use braid_engine::{Dev, Device};
use braid_mem::{HUGE_PAGE, Pages};
use braid_uring::ExecutorClock;

use crate::kind::{Kind, MemberError, OnShard};

/// Bytes of memory that the machine can give without swapping (`MemAvailable`); all if it does not say.
pub fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}

/// Makes a RAM disk that can be resized to `most` bytes.
pub(crate) fn open(ram: &braid_stack::Ram, most: u64) -> Result<Ram, MemberError> {
    let size = ram.size.bytes();
    // What is to be there at once must be free now: the kernel would end a process for it.
    if ram.preallocate && !ram.huge && available_memory() < size {
        let source = RamError::Populate(io::ErrorKind::OutOfMemory.into());
        return Err(MemberError::Memory { what: ram.to_string(), source });
    }
    let options = RamOptions {
        logical_block: u32::try_from(ram.logical_block.bytes()).unwrap_or(512),
        preallocate: ram.preallocate,
        lock: ram.lock,
        pages: if ram.huge { Pages::Pool } else { Pages::Usual },
        most,
    };
    Ram::with(size, options).map_err(|source| match (&source, ram.huge) {
        (RamError::Lock(_), _) => MemberError::Lock { what: ram.to_string(), source },
        (RamError::Map(_), true) => MemberError::HugePages {
            what: ram.to_string(),
            pages: size.div_ceil(HUGE_PAGE as u64),
            source,
        },
        _ => MemberError::Memory { what: ram.to_string(), source },
    })
}

impl Kind for Ram {
    fn limits(&self) -> Limits {
        Device::limits(&self.device())
    }

    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev> {
        let tasks = Rc::new(ExecutorClock::new(shard.handle));
        Ok(Dev::new(Metered::new(self.device(), shard.label, shard.tally, tasks, None)))
    }

    fn ram(&self) -> Option<&Ram> {
        Some(self)
    }
}
