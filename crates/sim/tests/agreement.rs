//! One model, three users: braid's own arrays over modelled members, on the simulator's clock and in wall
//! time, take as long as the estimate says that knows no contents.
//!
//! In wall time requests are kept so many under way that devices are not idle for a client's sake: then a
//! busy machine does not change what the clock says.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::{Duration, Instant};

use braid_array::geometry::{Raid0, Raid1, Raid10, Raid456};
use braid_array::{Mirrored, Role};
use braid_block::{Flags, Io, Limits, Op, Span};
use braid_device::{Buses, Modelled};
use braid_engine::redundant::{
    Layout, MemberState, NewMember, Redundant, STRIPE_CACHE, Setup, Speed,
};
use braid_engine::{Array, Clock, Dev, InFlight};
use braid_level::{ParityLayout, ParityLevel, Raid0Layout, Raid10Layout};
use braid_md::{BadBlocks, Resync};
use braid_mem::Pool;
use braid_model::{Bus, BusProfile, Kind, Timetable, Work, profile};
use braid_predict::{Machine, MemberModel, Merge, Next};
use braid_sim::found::SimClock;
use braid_sim::{Outcome, Rng, Sim, SimDisk};
use braid_uring::{Config, Executor, ExecutorClock, Mode};

const MEMBERS: usize = 4;
const CHUNK: u64 = 64 << 10;
const MEMBER: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Level {
    Raid0,
    Raid1,
    Raid10,
    Raid5,
}

/// Writes or reads at these places, so many at once.
struct Load {
    name: &'static str,
    requests: Vec<(bool, u64, u64)>,
    depth: usize,
}

fn loads(size: u64) -> Vec<Load> {
    let mut rng = Rng::new(5);
    let mut random = |count: u64, bytes: u64, reads: u64| -> Vec<(bool, u64, u64)> {
        (0..count).map(|_| (!rng.percent(reads), rng.below(size / bytes) * bytes, bytes)).collect()
    };
    let long =
        |write: bool, bytes: u64| (0..size / bytes).map(|at| (write, at * bytes, bytes)).collect();
    vec![
        Load { name: "random reads of 4 KiB", requests: random(1000, 4096, 100), depth: 16 },
        Load { name: "random reads of 64 KiB", requests: random(500, 65536, 100), depth: 16 },
        Load { name: "a long read", requests: long(false, 64 << 10), depth: 16 },
        // A multiple of every stripe here, 3 and 4 chunks.
        Load { name: "a long write", requests: long(true, 768 << 10), depth: 2 },
        Load { name: "reads and writes of 16 KiB", requests: random(200, 16384, 70), depth: 8 },
    ]
}

fn stick() -> Kind {
    profile("rally2").unwrap().kind
}

fn usb() -> BusProfile {
    profile("rally2").unwrap().usual_bus()
}

fn estimate(level: Level, load: &Load) -> f64 {
    let sizes = [MEMBER; MEMBERS];
    let layout = match level {
        Level::Raid0 => {
            let raid0 = Raid0::new(&sizes, CHUNK, Raid0Layout::default(), 512).unwrap();
            braid_predict::Layout::Of(Box::new(raid0))
        }
        Level::Raid1 => {
            braid_predict::Layout::Mirrored(Box::new(Raid1::new(MEMBER, MEMBERS).unwrap()))
        }
        Level::Raid10 => braid_predict::Layout::Mirrored(Box::new(raid10())),
        Level::Raid5 => braid_predict::Layout::Parity(raid5()),
    };
    let member = |_| MemberModel { kind: stick(), size: MEMBER, bus: 0 };
    let members: Vec<_> = (0..MEMBERS).map(member).collect();
    let mut machine = Machine::new(layout, &members, &[usb()], u64::MAX).merging(Merge::Nothing);
    let (mut requests, mut under_way) = (load.requests.iter(), 0);
    let mut happened = Vec::new();
    let mut owner = 0;
    loop {
        while under_way < load.depth
            && let Some((write, offset, bytes)) = requests.next()
        {
            (owner, under_way) = (owner + 1, under_way + 1);
            machine.submit(owner, *write, *offset, *bytes);
            machine.unplug();
        }
        if !machine.next(&mut happened) {
            return machine.now_ns() as f64 / 1e9;
        }
        under_way -=
            happened.iter().filter(|next| matches!(next, Next::Moved { left: 0, .. })).count();
    }
}

fn raid10() -> Raid10 {
    Raid10::new(MEMBER, MEMBERS, CHUNK, Raid10Layout::NEAR_2).unwrap()
}

fn raid5() -> Raid456 {
    Raid456::new(MEMBER, MEMBERS, CHUNK, ParityLevel::Raid5, ParityLayout::default()).unwrap()
}

/// braid's array of this level, and what has to be polled beside it.
fn array(level: Level, members: Vec<Dev>, clock: Rc<dyn Clock>) -> (Dev, Option<Redundant>) {
    let layout = match level {
        Level::Raid0 => {
            let raid0 = Raid0::new(&[MEMBER; MEMBERS], CHUNK, Raid0Layout::default(), 512).unwrap();
            return (Dev::new(Array::new(raid0, members)), None);
        }
        Level::Raid1 => {
            Layout::Copies(Rc::new(Raid1::new(MEMBER, MEMBERS).unwrap()) as Rc<dyn Mirrored>)
        }
        Level::Raid10 => Layout::Copies(Rc::new(raid10()) as Rc<dyn Mirrored>),
        Level::Raid5 => Layout::Parity(raid5()),
    };
    let member = |(role, dev): (usize, Dev)| NewMember {
        label: role.to_string(),
        dev,
        data_offset: 0,
        number: role as u32,
        role: Some(Role::nth(role)),
        replacement: false,
        state: MemberState::InSync,
        by_bitmap: false,
        write_mostly: false,
        superblock: None,
        bad_blocks: BadBlocks::new(4096, 0).unwrap(),
    };
    let setup = Setup {
        layout,
        members: members.into_iter().enumerate().map(member).collect(),
        array: None,
        bitmap: None,
        resync: Resync::Clean,
        log: None,
        stripe_cache: STRIPE_CACHE,
        read_only: false,
        clock,
        speed: Speed::default(),
    };
    let redundant = Redundant::new(setup).unwrap();
    (Dev::new(redundant.clone()), Some(redundant))
}

async fn carry_out(dev: &Dev, load: &Load, pool: &Pool) {
    let (mut requests, mut under_way) = (load.requests.iter(), InFlight::new(load.depth));
    loop {
        while !under_way.is_full()
            && let Some((write, offset, bytes)) = requests.next()
        {
            let buf = pool.get_wait(*bytes as usize).await;
            let io =
                if *write { Io::write(*offset, buf, Flags::NONE) } else { Io::read(*offset, buf) };
            under_way.push((), dev.start(io));
        }
        if under_way.is_empty() {
            return;
        }
        let ((), done) = poll_fn(|cx| under_way.poll_next(cx)).await;
        done.result.unwrap();
    }
}

/// Seconds on the simulator's clock.
fn simulated(level: Level, load: Load) -> f64 {
    let sim = Sim::new(1);
    let handle = sim.handle();
    let bus = Rc::new(RefCell::new(Bus::new(usb())));
    let disk = |role: usize| {
        let disk = SimDisk::new(&handle, format!("disk{role}"), Limits::new(MEMBER, 512));
        let bus = Rc::clone(&bus);
        let mut timetable = Timetable::new(&stick(), MEMBER).unwrap();
        disk.set_timing(Box::new(move |op, span: Span, now_ns| {
            let (offset, bytes) = (span.offset, span.len);
            let work = match op {
                Op::Read => Work::Read { offset, bytes },
                Op::Write => Work::Write { offset, bytes },
                Op::Flush | Op::Discard | Op::WriteZeroes => Work::Command,
            };
            timetable.serve(&mut bus.borrow_mut(), now_ns, work)
        }));
        Dev::new(disk)
    };
    let members = (0..MEMBERS).map(disk).collect();
    let clock = SimClock { handle: handle.clone(), unix_start: Duration::ZERO };
    let (dev, redundant) = array(level, members, Rc::new(clock));
    let outcome = sim.run_until(async move {
        if let Some(redundant) = redundant {
            handle.spawn("array", redundant.run());
        }
        carry_out(&dev, &load, &Pool::new(64 << 20).unwrap()).await;
        handle.now()
    });
    match outcome {
        Outcome::Done(now_ns) => now_ns as f64 / 1e9,
        Outcome::Halted => panic!("it was halted"),
        Outcome::Stuck(stuck) => panic!("{stuck}"),
    }
}

/// Seconds on the wall.
fn in_wall_time(level: Level, load: Load) -> f64 {
    let executor = Executor::new(Config { mode: Mode::Threads, ..Config::default() }).unwrap();
    let handle = executor.handle();
    let mut buses = Buses::default();
    let member = |_| {
        let timetable = Timetable::new(&stick(), MEMBER).unwrap();
        let modelled = Modelled::new(MEMBER, timetable, usb(), Some("usb2:0"), &mut buses).unwrap();
        Dev::new(modelled.device(&handle))
    };
    let members = (0..MEMBERS).map(member).collect();
    let (dev, redundant) = array(level, members, Rc::new(ExecutorClock::new(&handle)));
    executor.block_on(async move {
        if let Some(redundant) = redundant {
            handle.spawn(redundant.run());
        }
        let begun = Instant::now();
        carry_out(&dev, &load, &Pool::new(64 << 20).unwrap()).await;
        begun.elapsed().as_secs_f64()
    })
}

fn size(level: Level) -> u64 {
    match level {
        Level::Raid0 => 4 * MEMBER,
        Level::Raid1 => MEMBER,
        Level::Raid10 => 2 * MEMBER,
        Level::Raid5 => 3 * MEMBER,
    }
}

#[test]
fn the_estimate_is_what_the_simulated_stack_takes() {
    let mut off = Vec::new();
    for level in [Level::Raid0, Level::Raid1, Level::Raid10, Level::Raid5] {
        for load in loads(size(level)) {
            let (name, estimated) = (load.name, estimate(level, &load));
            let simulated = simulated(level, load);
            let ratio = estimated / simulated;
            if (ratio - 1.0).abs() > 0.05 {
                off.push(format!(
                    "{level:?}, {name}: {estimated:.3} s for {simulated:.3} s, {ratio:.3}"
                ));
            }
        }
    }
    assert!(off.is_empty(), "\n{}", off.join("\n"));
}

/// Some of these in wall time, a second or two each, with so many requests under way that a device has a
/// tenth of a second's worth to do. Who is woken late only ever takes longer, so the best of a few tries is
/// what the model says.
#[test]
fn the_estimate_is_what_the_wall_s_clock_says() {
    for (level, index) in [(Level::Raid0, 2), (Level::Raid1, 1), (Level::Raid5, 3)] {
        let load = || Load { depth: 64, ..loads(size(level)).swap_remove(index) };
        let (name, estimated) = (load().name, estimate(level, &load()));
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            best = best.min(in_wall_time(level, load()));
            assert!(
                best > 0.95 * estimated,
                "{level:?}, {name}: {estimated:.3} s, took {best:.3} s"
            );
            if best < 1.05 * estimated {
                break;
            }
        }
        assert!(best < 1.05 * estimated, "{level:?}, {name}: {estimated:.3} s, took {best:.3} s");
    }
}
