//! A device that behaves like a modelled one, in wall time.
//!
//! Contents are a RAM disk's; completions come when the model's timetable says. Devices of the
//! same bus name share that bus's timetable, in whatever shard or array they are.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use braid_block::{Io, Limits, Op};
use braid_engine::{Device, Extents, Pending};
use braid_model::{Answer, Bus, BusProfile, CommandQueue, Timetable, Work};
use braid_uring::Handle;

use crate::{Ram, RamDevice};

/// The contents and the timetable of a modelled device.
#[derive(Clone, Debug)]
pub struct Modelled {
    ram: Ram,
    schedule: Arc<Schedule>,
}

#[derive(Debug)]
struct Schedule {
    queue: Mutex<CommandQueue>,
    bus: Arc<Mutex<Bus>>,
    /// Time 0 of the timetables.
    epoch: Instant,
}

/// The buses of a volume, by name.
#[derive(Debug)]
pub struct Buses {
    named: BTreeMap<String, Arc<Mutex<Bus>>>,
    epoch: Instant,
}

impl Default for Buses {
    fn default() -> Buses {
        Buses { named: BTreeMap::new(), epoch: Instant::now() }
    }
}

impl Modelled {
    /// A device of `size` bytes that takes the time of `device`, on the bus called `bus` (or
    /// one of its own). The first device of a bus says what it is.
    ///
    /// # Errors
    /// As [`Ram::new`].
    pub fn new(
        size: u64,
        device: Timetable,
        of_bus: BusProfile,
        bus: Option<&str>,
        buses: &mut Buses,
    ) -> io::Result<Modelled> {
        let make = || Arc::new(Mutex::new(Bus::new(of_bus)));
        let bus = match bus {
            Some(name) => Arc::clone(buses.named.entry(name.to_owned()).or_insert_with(make)),
            None => make(),
        };
        let queue = Mutex::new(CommandQueue::new(device));
        let schedule = Arc::new(Schedule { queue, bus, epoch: buses.epoch });
        Ok(Modelled { ram: Ram::new(size)?, schedule })
    }

    /// Capacity and block sizes.
    pub fn limits(&self) -> Limits {
        self.ram.device().limits()
    }

    /// A device for the shard of `handle`.
    pub fn device(&self, handle: &Handle) -> ModelledDevice {
        ModelledDevice {
            ram: self.ram.device(),
            schedule: Arc::clone(&self.schedule),
            handle: handle.clone(),
        }
    }
}

impl Schedule {
    /// Takes a request in that comes now.
    fn ask(&self, work: Work) -> u64 {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        // The time is taken behind the lock: no request is older than one that came before it.
        queue.ask(self.now_ns(), work)
    }

    /// Waits until a request is done.
    async fn until_done(&self, number: u64, handle: &Handle) {
        loop {
            let (until_ns, is_done) = match self.answer(number) {
                Answer::Done(at_ns) => (at_ns, true),
                Answer::Waits(at_ns) => (at_ns, false),
            };
            handle.sleep_until(self.epoch + Duration::from_nanos(until_ns)).await;
            if is_done {
                return;
            }
        }
    }

    fn answer(&self, number: u64) -> Answer {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bus = self.bus.lock().unwrap_or_else(PoisonError::into_inner);
        queue.answer(&mut bus, self.now_ns(), number)
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

/// A modelled device as one shard sees it.
pub struct ModelledDevice {
    ram: RamDevice,
    schedule: Arc<Schedule>,
    handle: Handle,
}

impl Device for ModelledDevice {
    fn limits(&self) -> Limits {
        Limits { immediate: false, ..self.ram.limits() }
    }

    fn start(&self, io: Io) -> Pending {
        let work = match io.op {
            Op::Read => Work::Read { offset: io.span.offset, bytes: io.span.len },
            Op::Write => Work::Write { offset: io.span.offset, bytes: io.span.len },
            Op::Flush | Op::Discard | Op::WriteZeroes => Work::Command,
        };
        let (schedule, number) = (Arc::clone(&self.schedule), self.schedule.ask(work));
        // The contents change when the request starts: what overlaps in time has no order.
        let done = self.ram.start(io);
        let handle = self.handle.clone();
        Pending::task(async move {
            schedule.until_done(number, &handle).await;
            done.await
        })
    }

    fn extents(&self, span: braid_block::Span) -> Extents {
        self.ram.extents(span)
    }
}
