//! Damage anywhere in a log: the log is refused, or no flushed data are lost.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io, Limits};
use braid_cache::log::format::{BLOCK, Header, OriginId, RING_START, Superblock};
use braid_cache::{
    Cache, Config, LogError, LogSetup, Replayed, Rot, WriteBackConfig, WriteBackStatus, least_log,
};
use braid_engine::Dev;
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_sim::found::SimClock;
use braid_sim::{Image, Sim, SimDisk};

const SIZE: u64 = 64 * BLOCK;
/// Longer than the idle time after which a cache drains.
const REST_NS: u64 = 700_000_000;

/// Actions of a cache before a power failure.
enum Step {
    /// Writes these blocks with this byte, and flushes.
    Write(std::ops::Range<u64>, u8),
    /// Waits until all data are drained.
    Rest,
    /// Shuts down.
    Down,
}

/// State of the devices of a cache after a power failure.
#[derive(Clone)]
struct CrashImages {
    origin: Image,
    log: Image,
    /// Last flushed byte of each block, and the byte before the last flush.
    flushed: BTreeMap<u64, u8>,
    before: BTreeMap<u64, u8>,
    /// Number of records of the last generation that were written before the last flush.
    earlier: u64,
}

fn blank() -> CrashImages {
    CrashImages {
        origin: Image::zeroes(SIZE as usize),
        log: Image::zeroes(least_log(BLOCK) as usize),
        flushed: BTreeMap::new(),
        before: BTreeMap::new(),
        earlier: 0,
    }
}

struct World {
    sim: Sim,
    origin: SimDisk,
    log: SimDisk,
    cache: Cache,
}

fn world(images: &CrashImages, is_forced: bool) -> World {
    let sim = Sim::new(1);
    sim.be_prompt(1_000);
    let handle = sim.handle();
    let of = |name, image: &Image| {
        let limits = Limits::new(image.len() as u64, 512);
        SimDisk::with_contents(&handle, name, limits, image.clone())
    };
    let (origin, log) = (of("origin", &images.origin), of("log", &images.log));
    let config = Config {
        size: SIZE,
        block: BLOCK,
        mode: CacheMode::WriteBack,
        policy: CachePolicy::S3Fifo,
        sequential_cutoff: None,
    };
    let setup = LogSetup {
        dev: Dev::new(log.clone()),
        origin: OriginId { size: SIZE, digest: [7; 16] },
        text: "origin".to_owned(),
        uuid: [u8::from(is_forced) + 1; 16],
        is_forced,
        is_live: false,
        given_up: None,
    };
    let more = WriteBackConfig {
        dirty: SIZE,
        age: Duration::from_secs(600),
        drain: None,
        clock: Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO }),
        log: Some(setup),
    };
    let cache = Cache::write_back(Dev::new(origin.clone()), config, more).expect("memory");
    World { sim, origin, log, cache }
}

/// Runs a cache on `images`.
fn life(images: &CrashImages, steps: &'static [Step]) -> CrashImages {
    let World { sim, origin, log, cache } = world(images, false);
    let (handle, mut next) = (sim.handle(), images.clone());
    let mut next = sim.block_on(async move {
        cache.restart().await.expect("a sound log");
        handle.spawn("cache", cache.run().expect("write-back"));
        let dev = Dev::new(cache.clone());
        let pool = Pool::new(1 << 20).expect("memory");
        for step in steps {
            match step {
                Step::Write(blocks, byte) => {
                    next.before.clone_from(&next.flushed);
                    next.earlier = writes(cache.write_back_status());
                    for block in blocks.clone() {
                        let mut buf = pool.get(BLOCK as usize).expect("memory");
                        buf.fill(*byte);
                        let io = Io::write(block * BLOCK, buf, Flags::NONE);
                        dev.start(io).await.result.expect("a write");
                        next.flushed.insert(block, *byte);
                    }
                    dev.start(Io::flush()).await.result.expect("a flush");
                }
                Step::Rest => handle.sleep(REST_NS).await,
                Step::Down => cache.shut_down().await.expect("its end"),
            }
        }
        next
    });
    (next.origin, next.log) = (origin.durable(), log.durable());
    next
}

fn writes(status: Option<WriteBackStatus>) -> u64 {
    status.and_then(|status| status.log).map_or(0, |log| log.writes)
}

/// Starts a cache on `images`. Returns the result, and the content of the origin.
fn restart(images: &CrashImages, is_forced: bool) -> (Result<Replayed, LogError>, Image) {
    let World { sim, origin, cache, .. } = world(images, is_forced);
    let restarted = sim.block_on(async move { cache.restart().await });
    (restarted.map(|replayed| replayed.expect("a log")), origin.durable())
}

fn has(image: &Image, block: u64, byte: u8) -> bool {
    image.piece((block * BLOCK) as usize, BLOCK as usize).iter().all(|one| *one == byte)
}

/// Returns the current superblock, and the records of its generation in the ring: offset and
/// header, in order.
fn parsed(log: &Image) -> (Superblock, Vec<(u64, Header)>) {
    let block = |offset: u64| log.piece(offset as usize, BLOCK as usize);
    let superblocks =
        [0, BLOCK].map(|at| Superblock::parse(block(at), log.len() as u64).expect("sound"));
    let newest = superblocks.into_iter().max_by_key(|one| one.written).expect("two");
    let offsets = (RING_START..newest.area).step_by(BLOCK as usize);
    let header = |at| Some((at, Header::parse_any(block(at), &newest.life).ok()?));
    let headers = offsets.filter_map(header).collect();
    (newest, headers)
}

use Step::{Down, Rest, Write};

const FLUSHES: &[Step] = &[
    Write(0..1, 1),
    Write(8..9, 2),
    Write(16..17, 3),
    Write(8..9, 4),
    Write(24..26, 5),
    Write(0..1, 6),
];
const LARGE: &[Step] = &[Write(0..8, 1), Write(3..10, 2), Write(20..21, 3), Write(30..36, 4)];
const CLOSED: &[Step] = &[Write(0..4, 9), Write(2..3, 8), Down];
const ROUND: &[Step] = &[
    Write(0..7, 1),
    Rest,
    Write(7..14, 2),
    Rest,
    Write(14..21, 3),
    Rest,
    Write(0..5, 4),
    Write(5..9, 5),
    Write(9..10, 6),
    Write(2..3, 7),
];

/// Returns logs of every kind: with one flush or many, several generations, past the end of the
/// ring, closed.
fn logs() -> Vec<(&'static str, CrashImages)> {
    let closed = life(&blank(), CLOSED);
    vec![
        ("new", life(&blank(), &[])),
        ("one flush", life(&blank(), &FLUSHES[..1])),
        ("flushes", life(&blank(), FLUSHES)),
        ("large", life(&blank(), LARGE)),
        ("after one that was closed", life(&closed, FLUSHES)),
        ("after one that was not", life(&life(&blank(), LARGE), FLUSHES)),
        ("round", life(&blank(), ROUND)),
        ("closed", closed),
    ]
}

/// Returns damages of a block as offset and new bytes: all fields, some of the rest, the whole
/// block.
fn damages(block: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let is_header = block.starts_with(b"braidwb");
    let dense = if is_header { 0..160 } else { 0..0 };
    let places = dense.chain((0..BLOCK as usize).step_by(if is_header { 256 } else { 1024 }));
    let bit = |at: usize| (at, vec![block[at] ^ 1 << (at % 8)]);
    let whole = [0, 0xff].map(|byte| (0, vec![byte; BLOCK as usize]));
    places
        .map(bit)
        .chain(whole)
        .filter(|(at, bytes)| block[*at..][..bytes.len()] != bytes[..])
        .collect()
}

#[test]
fn damage_is_refused_or_harms_nothing_that_was_flushed() {
    let (mut refused, mut cut) = (0, 0);
    for (name, images) in logs() {
        let (superblock, headers) = parsed(&images.log);
        let of = |offset: u64| {
            headers.iter().find(|(at, header)| (*at..at + header.record_len()).contains(&offset))
        };
        for at in (0..images.log.len() as u64).step_by(BLOCK as usize) {
            for (within, bytes) in damages(images.log.piece(at as usize, BLOCK as usize)) {
                let mut hurt = images.clone();
                hurt.log.write(at as usize + within, &bytes);
                let (restarted, origin) = restart(&hurt, false);
                let what =
                    format!("{name}: {} bytes at {at} + {within}: {restarted:?}", bytes.len());
                let replayed = match restarted {
                    Ok(replayed) => replayed,
                    Err(LogError::Rotten(rot)) => {
                        refused += 1;
                        let (record, header) = of(at).expect("a record");
                        assert_eq!(rot.offset, *record, "{what}");
                        let known = if at == *record { BLOCK } else { header.record_len() };
                        assert_eq!(rot.len, known, "{what}");
                        assert!(rot.records > 0 && rot.bytes > 0, "{what}");
                        assert!(
                            origin.to_vec() == images.origin.to_vec(),
                            "{what}: it was written"
                        );
                        continue;
                    }
                    Err(_) => panic!("{what}"),
                };
                assert_eq!(replayed.damaged, (at < RING_START).then_some(at), "{what}");
                // No later block states that the records of the last flush were durable: they may
                // be a torn end.
                let is_last = superblock.is_open
                    && of(at).is_some_and(|(_, header)| header.sequence > images.earlier);
                for (block, byte) in &images.flushed {
                    let is_there = has(&origin, *block, *byte);
                    let was = images.before.get(block).copied().unwrap_or(0);
                    assert!(
                        is_there || is_last && has(&origin, *block, was),
                        "{what}: block {block}"
                    );
                    cut += u64::from(!is_there);
                }
            }
        }
    }
    assert!(refused > 1000 && cut > 0, "{refused} refused, {cut} cut off");
}

#[test]
fn a_log_that_is_forced_holds_nothing_any_more() {
    let images = life(&blank(), FLUSHES);
    let (_, headers) = parsed(&images.log);
    let mut hurt = images.clone();
    hurt.log.write((headers[1].0 + BLOCK) as usize, &[0]);
    let (refused, _) = restart(&hurt, false);
    // The first record is intact, and so are the four after the second.
    let rot = Rot { offset: headers[1].0, len: 2 * BLOCK, records: 4, bytes: 7 * BLOCK };
    assert_eq!(refused, Err(LogError::Rotten(rot)));
    let mut both = images.clone();
    both.log.write(100, &[1]);
    both.log.write(BLOCK as usize + 100, &[1]);
    let (refused, _) = restart(&both, false);
    assert!(matches!(refused, Err(LogError::Damaged(_))), "{refused:?}");
    for hurt in [hurt, both] {
        let (forced, origin) = restart(&hurt, true);
        assert!(forced.expect("it is forced").is_new);
        assert!(origin.to_vec() == images.origin.to_vec(), "it was written");
    }
}

/// Converts the log in `images` to version 1, as written by earlier programs.
fn of_version_1(images: &CrashImages) -> CrashImages {
    let mut older = images.clone();
    let (superblock, headers) = parsed(&images.log);
    let mut block = vec![0; BLOCK as usize];
    for at in [0, BLOCK] {
        Superblock { durable: None, ..superblock.clone() }.encode_into(&mut block);
        older.log.write(at as usize, &block);
    }
    for (at, mut header) in headers {
        header.durable = None;
        header.encode_into(&mut block);
        older.log.write(at as usize, &block);
    }
    older
}

#[test]
fn a_log_of_version_1_is_replayed_and_one_superblock_does_not_suffice_there() {
    let images = of_version_1(&life(&blank(), FLUSHES));
    let (replayed, origin) = restart(&images, false);
    assert_eq!(replayed.expect("a sound log").records, 6);
    assert!(images.flushed.iter().all(|(block, byte)| has(&origin, *block, *byte)));
    for (at, bytes) in
        [(0, vec![0; 4096]), (BLOCK, vec![0; 4096]), (80, vec![9]), (BLOCK + 80, vec![9])]
    {
        let mut hurt = images.clone();
        hurt.log.write(at as usize, &bytes);
        let (refused, origin) = restart(&hurt, false);
        assert!(matches!(refused, Err(LogError::Damaged(_))), "{at}: {refused:?}");
        assert!(origin.to_vec() == images.origin.to_vec(), "it was written");
        assert!(restart(&hurt, true).0.expect("it is forced").is_new);
    }
    // Version 1 does not state which records were durable.
    let (_, headers) = parsed(&life(&blank(), FLUSHES).log);
    let mut hurt = images.clone();
    hurt.log.write((headers[1].0 + BLOCK) as usize, &[0]);
    let cut = restart(&hurt, false).0.expect("it may be a torn end");
    assert_eq!((cut.records, cut.is_torn), (1, true));
}
