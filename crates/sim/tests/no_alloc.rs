//! The path of a small request allocates nothing: counted, not believed.
//!
//! A 4 KiB request inside one chunk is measured in the steady state (after a warm-up that lets
//! every table reach its size), on arrays of RAM, where it is done at once, and of files, where
//! it goes through the executor.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use allocation_counter::measure;
use braid_array::geometry::{Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{Mirrored, Role};
use braid_block::{Completion, Flags, Io};
use braid_device::{Access, Deadline, File, Metered, Ram, Tally};
use braid_engine::redundant::{Layout, NewMember, Redundant, STRIPE_CACHE, Setup, Speed};
use braid_engine::{Array, Dev, InFlight, Pending};
use braid_level::{ParityLayout, ParityLevel, Raid0Layout, Raid10Layout};
use braid_md::Resync;
use braid_mem::Pool;
use braid_sim::found::StoppedClock;
use braid_uring::{Config, Executor, ExecutorClock, Mode};

const MEMBER: u64 = 1 << 20;
const CHUNK: u64 = 64 << 10;
const IO: usize = 4096;

fn raid0(members: Vec<Dev>) -> Dev {
    let geometry = Raid0::new(&[MEMBER; 4], CHUNK, Raid0Layout::default(), 4096).unwrap();
    Dev::new(Array::new(geometry, members))
}

fn linear(members: Vec<Dev>) -> Dev {
    Dev::new(Array::new(Linear::new(&[MEMBER; 4], 4096).unwrap(), members))
}

/// Members without superblocks, in roles as they come.
fn mirror(geometry: Arc<dyn Mirrored>, members: Vec<Dev>) -> Dev {
    redundant(Layout::Copies(geometry), members)
}

fn parity(level: ParityLevel, members: Vec<Dev>) -> Dev {
    let geometry =
        Raid456::new(2 * MEMBER, members.len(), CHUNK, level, ParityLayout::LeftSymmetric);
    redundant(Layout::Parity(geometry.unwrap()), members)
}

fn redundant(layout: Layout, members: Vec<Dev>) -> Dev {
    let member =
        |(role, dev): (usize, Dev)| NewMember::unrecorded(role.to_string(), dev, Role::nth(role));
    let setup = Setup {
        layout,
        members: members.into_iter().enumerate().map(member).collect(),
        array: None,
        bitmap: None,
        resync: Resync::Clean,
        log: None,
        stripe_cache: STRIPE_CACHE,
        read_only: false,
        clock: Rc::new(StoppedClock),
        speed: Speed::default(),
    };
    Dev::new(Redundant::new(setup).unwrap())
}

fn raid10(members: Vec<Dev>) -> Dev {
    let geometry = Raid10::new(2 * MEMBER, 4, CHUNK, Raid10Layout::NEAR_2).unwrap();
    mirror(Arc::new(geometry), members)
}

type Join = fn(Vec<Dev>) -> Dev;

const ARRAYS: [(&str, Join); 2] = [("raid0", raid0), ("linear", linear)];

/// They read and write at once over memory, and are as large as the requests ask for.
fn with_redundancy() -> [(&'static str, Dev); 8] {
    let members = |count, size| -> Vec<Dev> {
        (0..count).map(|_| Dev::new(Ram::new(size).unwrap().device())).collect()
    };
    let raid1 = mirror(Arc::new(Raid1::new(4 * MEMBER, 2).unwrap()), members(2, 4 * MEMBER));
    let small = |level, count| parity(level, members(count, 2 * MEMBER));
    [
        ("raid1", raid1),
        ("raid10", raid10(members(4, 2 * MEMBER))),
        ("raid4", small(ParityLevel::Raid4, 4)),
        ("raid5 of three", small(ParityLevel::Raid5, 3)),
        ("raid5", small(ParityLevel::Raid5, 4)),
        ("raid5 of 32", small(ParityLevel::Raid5, 32)),
        ("raid6 of four", small(ParityLevel::Raid6, 4)),
        ("raid6", small(ParityLevel::Raid6, 6)),
    ]
}

/// Request number `index`: over all members, chunks and offsets in chunks; every other writes.
fn request(index: u64, pool: &Pool) -> Io {
    let offset = index * 7 * IO as u64 % (4 * MEMBER);
    let buf = pool.get(IO).expect("a pool with room");
    match index % 2 {
        0 => Io::read(offset, buf),
        _ => Io::write(offset, buf, Flags::NONE),
    }
}

fn ram_members() -> Vec<Dev> {
    (0..4).map(|_| Dev::new(Ram::new(MEMBER).unwrap().device())).collect()
}

fn assert_done(completion: &Completion) {
    assert_eq!((completion.result, completion.payload.len()), (Ok(()), IO as u64));
}

#[test]
fn a_request_to_memory_allocates_nothing() {
    let arrays = ARRAYS.map(|(name, array)| (name, array(ram_members())));
    for (name, dev) in arrays.into_iter().chain(with_redundancy()) {
        let pool = Pool::new(1 << 20).unwrap();
        let run = |count| {
            for index in 0..count {
                let Pending::Ready(Some(done)) = dev.start(request(index, &pool)) else {
                    panic!("{name} over memory does not answer at once");
                };
                assert_done(&done);
            }
        };
        run(10);
        assert_eq!(measure(|| run(1000)).count_total, 0, "{name}");
    }
}

#[test]
fn requests_to_memory_in_flight_allocate_nothing() {
    for (name, array) in ARRAYS {
        let (dev, pool) = (array(ram_members()), Pool::new(1 << 20).unwrap());
        let mut inflight = InFlight::new(32);
        let mut cx = Context::from_waker(Waker::noop());
        let mut run = |count| {
            for index in 0..count {
                while inflight.is_full() {
                    let Poll::Ready((_, done)) = inflight.poll_next(&mut cx) else { panic!() };
                    assert_done(&done);
                }
                inflight.push(index, dev.start(request(index, &pool)));
            }
        };
        run(100);
        assert_eq!(measure(|| run(1000)).count_total, 0, "{name}");
    }
}

/// Allocations of `count` requests to an array of files, `depth` under way at once, and of what
/// is around them (a task, a table of slots).
fn count_on_files(executor: &Executor, dev: &Dev, pool: &Pool, depth: usize, count: u64) -> u64 {
    let (dev, pool) = (dev.clone(), pool.clone());
    let load = async move {
        let mut inflight = InFlight::new(depth);
        let mut next = 0;
        while next < count || !inflight.is_empty() {
            while next < count && !inflight.is_full() {
                inflight.push(next, dev.start(request(next, &pool)));
                next += 1;
            }
            let (_, done) = poll_fn(|cx| inflight.poll_next(cx)).await;
            assert_done(&done);
        }
    };
    measure(|| executor.block_on(load)).count_total
}

#[test]
fn requests_to_files_through_io_uring_allocate_nothing() {
    let executor = match Executor::new(Config { mode: Mode::Uring, ..Config::default() }) {
        Ok(executor) => executor,
        Err(error) => return println!("skipped, no io_uring on this machine: {error}"),
    };
    let directory = tempfile::tempdir().unwrap();
    for (name, array) in ARRAYS {
        let pool = Pool::new(1 << 20).unwrap();
        let member = |index: usize| {
            let path = directory.path().join(format!("{name}{index}"));
            std::fs::File::create(&path).unwrap().set_len(MEMBER).unwrap();
            let file = File::open(&path, Access::Exclusive, 0, None).unwrap();
            let device = file.device(&executor.handle(), &pool).unwrap();
            let failures = std::sync::Arc::clone(file.failures());
            let deadline = Some(Deadline { limit: Duration::from_secs(30), failures });
            let tally = Tally::default();
            let tasks = Rc::new(ExecutorClock::new(&executor.handle()));
            Dev::new(Metered::new(device, "a", &tally, tasks, deadline))
        };
        let dev = array((0..4).map(member).collect());
        for depth in [1, 16] {
            let count = |requests| count_on_files(&executor, &dev, &pool, depth, requests);
            count(100);
            // What is around the requests is the same for few and for many; a table that meets
            // its largest batch late may still grow.
            let (few, many) = (count(100), count(600));
            assert!(many < few + 5, "{name}, {depth} under way: {few} for 100, {many} for 600");
        }
    }
}

/// The count above can fail: a request that crosses chunks takes memory.
#[test]
fn the_counter_counts() {
    let (dev, pool) = (raid0(ram_members()), Pool::new(1 << 20).unwrap());
    let crossing = || drop(dev.start(Io::read(CHUNK - 4096, pool.get(8192).unwrap())));
    assert!(measure(crossing).count_total > 0);
    assert_eq!(measure(|| drop(Rc::new(1))).count_total, 1);
}
