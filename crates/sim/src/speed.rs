//! The speed of the simulation relative to the wall clock: a raid5 of four modelled USB sticks on one bus,
//! under a load of reads and writes.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use braid_block::{Flags, Io, Limits};
use braid_engine::redundant::Speed;
use braid_engine::{Dev, InFlight};
use braid_md::{Level, Version};
use braid_model::{Bus, BusProfile, Timetable, profile};

use crate::executor::Outcome;
use crate::found::{self, Frame};
use crate::spec::{Policy, Spec};
use crate::verify::{Process, pool};
use crate::{Rng, Sim, SimDisk, Timing};

/// The measured figures.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Virtual time.
    pub simulated: Duration,
    /// Time on the wall.
    pub wall: Duration,
    /// Requests of clients.
    pub requests: u64,
}

impl Measured {
    /// Seconds simulated in a second.
    pub fn ratio(&self) -> f64 {
        self.simulated.as_secs_f64() / self.wall.as_secs_f64()
    }
}

/// Carries out `requests` of 4 KiB to 64 KiB, eight at a time, two of three of them writes.
///
/// # Errors
/// A request failed, or the simulation got stuck.
pub fn measure(requests: u64) -> Result<Measured, String> {
    let spec = Spec {
        level: Level::Raid5,
        layout: 2,
        members: 4,
        chunk: 64 << 10,
        member_size: 16 << 20,
        policy: Policy::Log,
        version: Version::V1_2,
    };
    let stick = profile("usb-flash").ok_or("no profile for USB sticks")?;
    let device = Timetable::new(&stick.kind, spec.member_size).ok_or("a stick is a device")?;
    let begun = Instant::now();
    let process = Process::default();
    let sim = Sim::new(1);
    let handle = sim.handle();
    let bus = Rc::new(RefCell::new(Bus::new(BusProfile::default())));
    let disks: Vec<SimDisk> = (0..spec.members)
        .map(|role| {
            let image = spec.disk(role, &[], |_| {});
            let limits = Limits::new(image.len() as u64, 512);
            let disk = SimDisk::with_contents(&handle, found::label(role), limits, image);
            disk.set_timing(Timing::new(device.clone(), Rc::clone(&bus)));
            disk
        })
        .collect();
    let images: Vec<_> = disks.iter().map(|disk| Some(disk.contents())).collect();
    let there = found::look(&images)?;
    let assembled = found::assemble(&there).map_err(|why| why.to_string())?;
    let unix_start = Duration::from_secs(1_700_000_000);
    let frame = Frame { handle: &handle, unix_start, speed: Speed::default(), nonce: 1 };
    let array = found::build(&assembled, &frame, &disks);
    process.of(&array);
    let outcome = sim.run_until(async move {
        array.restart().await.map_err(|why| why.to_string())?;
        handle.spawn("array", array.run());
        load(&Dev::new(array), requests).await?;
        Ok::<u64, String>(handle.now())
    });
    let simulated_ns = match outcome {
        Outcome::Done(result) => result?,
        Outcome::Halted => return Err("it was halted".to_owned()),
        Outcome::Stuck(stuck) => return Err(stuck.to_string()),
    };
    let simulated = Duration::from_nanos(simulated_ns);
    Ok(Measured { simulated, wall: begun.elapsed(), requests })
}

async fn load(dev: &Dev, requests: u64) -> Result<(), String> {
    let mut rng = Rng::new(7);
    let mut under_way = InFlight::new(8);
    let mut left = requests;
    while left > 0 || !under_way.is_empty() {
        while left > 0 && !under_way.is_full() {
            left -= 1;
            let len = rng.within(1..=16) * 4096;
            let offset = rng.below((dev.limits().size - len) / 4096) * 4096;
            let buf = pool().get_wait(len as usize).await;
            let io = match rng.percent(67) {
                true => Io::write(offset, buf, Flags::NONE),
                false => Io::read(offset, buf),
            };
            under_way.push((), dev.start(io));
        }
        let ((), done) = std::future::poll_fn(|cx| under_way.poll_next(cx)).await;
        done.result.map_err(|errno| errno.to_string())?;
    }
    Ok(())
}
