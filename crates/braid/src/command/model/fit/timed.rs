//! A device by direct I/O, timed by the system's clock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use braid_fit::{Batch, Measured, Request, Timing};

use super::super::super::direct::{Direct, Memory};
use super::others::Processors;

/// A device that is measured.
pub(super) struct Timed {
    device: Direct,
    began: Instant,
    processors: Processors,
    /// Memory for each request that is under way at once.
    memory: Vec<Memory>,
}

impl Timed {
    pub(super) fn new(device: Direct) -> Timed {
        let (began, processors) = (Instant::now(), Processors::watch());
        Timed { device, began, processors, memory: vec![Memory::default()] }
    }
}

impl Measured for Timed {
    fn size(&self) -> u64 {
        self.device.size
    }

    fn block(&self) -> u64 {
        self.device.block
    }

    fn processor_waits(&self) -> f64 {
        self.processors.waits()
    }

    fn run(&mut self, batch: &Batch) -> Result<Vec<Timing>, String> {
        let (device, began) = (&self.device, self.began);
        let depth = batch.depth.max(1);
        if self.memory.len() < depth {
            self.memory.resize_with(depth, Memory::default);
        }
        let longest = batch.requests.iter().map(|request| request.bytes).max().unwrap_or(0);
        let longest = usize::try_from(longest).map_err(|error| error.to_string())?;
        for memory in &mut self.memory[..depth] {
            memory.aligned(longest);
        }
        let now = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let timed = |memory: &mut Memory, request: &Request| -> Result<Timing, String> {
            if batch.pause_ns > 0 {
                std::thread::sleep(Duration::from_nanos(batch.pause_ns));
            }
            let Request { write, offset, bytes } = *request;
            let start_ns = now();
            let done = match write {
                true => device.write(memory, offset, bytes, false),
                false => device.read(memory, offset, bytes),
            };
            done.map_err(|error| {
                let what = if write { "write" } else { "read" };
                format!("a {what} of {bytes} bytes at {offset}: {error}")
            })?;
            Ok(Timing { start_ns, end_ns: now() })
        };
        if depth == 1 {
            let memory = &mut self.memory[0];
            return batch.requests.iter().map(|request| timed(memory, request)).collect();
        }
        // A thread for each that is under way; each takes the next request when it is free.
        let next = AtomicUsize::new(0);
        let done = Mutex::new(vec![Ok(Timing { start_ns: 0, end_ns: 0 }); batch.requests.len()]);
        std::thread::scope(|scope| {
            for memory in &mut self.memory[..depth] {
                scope.spawn(|| {
                    while let Some((index, request)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        batch.requests.get(index).map(|request| (index, request))
                    } {
                        let timing = timed(memory, request);
                        done.lock().expect("no thread panics with the lock")[index] = timing;
                    }
                });
            }
        });
        done.into_inner().expect("no thread panics with the lock").into_iter().collect()
    }
}
