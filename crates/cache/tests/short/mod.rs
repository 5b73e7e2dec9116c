//! Short lives of caches of each kind: write-through and write-back, with a log and without, in front of a disk and
//! of arrays. One request of one disk fails, or a bit of the disks' images flips.
//!
//! ```text
//!   life 1   some requests, a flush                           the power fails, or the cache shuts down
//!   life 2   a replay of the log, some requests, a shutdown   one of these requests of the disks fails
//!   life 3   a start without failures: the origin has the flushed data
//! ```

mod everywhere;

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use braid_block::{Errno, Flags, Io, Op, Span};
use braid_cache::{Config, least_log};
use braid_engine::Dev;
use braid_level::{CacheMode, CachePolicy};
use braid_mem::Pool;
use braid_seed::Rng;
use braid_sim::rot::flips_of;
use braid_sim::{Client, Fault, Image, Load, Oracle, Outcome, SimDisk, Target};

use crate::worlds::{CrashImages, SIZE, Shape, World, caught, origin, try_restart};

/// Number of kinds of caches: three modes, in front of a disk and of each array.
const KINDS: u64 = 3 * (1 + origin::ARRAYS.len() as u64);

const BLOCK: u64 = 4096;

/// A request that fails in the second life.
#[derive(Clone, Copy, Debug)]
struct Failure {
    /// Number of the disk: those of the origin, then the log's.
    disk: usize,
    /// Number of the request, from 0.
    request: u64,
    /// All later requests of the disk fail, too.
    lasts: bool,
}

/// A bit that flips.
#[derive(Debug)]
struct Rot {
    /// Number of the disk of the origin; `None` for the log.
    disk: Option<usize>,
    /// Offset in bytes.
    at: u64,
    bit: u32,
}

fn flip(image: &mut Image, rot: &Rot) {
    let mut byte = [0];
    image.read(rot.at as usize, &mut byte);
    image.write(rot.at as usize, &[byte[0] ^ 1 << rot.bit]);
}

/// Sectors of the last record of a life that ends by a power failure, in bytes of the cache.
const LAST: Range<u64> = 0..BLOCK;

/// Writes and flushes [`LAST`], so that the last record of the log has only that.
async fn last_record(client: &mut Client) -> Result<(), String> {
    let data = vec![0xa5; BLOCK as usize];
    let mut buf = client.pool.get_wait(data.len()).await;
    buf.copy_from_slice(&data);
    let span = Span::new(LAST.start, BLOCK);
    let token = client.oracle.borrow_mut().begin_write(span, Some(&data));
    let written = client.dev.start(Io::write(span.offset, buf, Flags::NONE)).await.result;
    client.oracle.borrow_mut().end_write(token, written.is_ok(), false);
    let began = client.oracle.borrow_mut().begin_flush();
    let flushed = client.dev.start(Io::flush()).await.result;
    client.oracle.borrow_mut().end_flush(began);
    written.and(flushed).map_err(|errno| format!("the last record: {errno}"))
}

/// A cache after its first life.
struct Begun {
    seed: u64,
    shape: Shape,
    left: CrashImages,
    oracle: Oracle,
}

/// The end of a life.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Down,
    Power,
}

impl Begun {
    /// Runs the first life of the cache of `seed`.
    ///
    /// # Errors
    /// What went wrong.
    fn of(seed: u64) -> Result<Begun, String> {
        braid_mem::keep_arenas();
        let mut dice = Rng::new(!seed);
        let (way, place) = (seed % 3, seed / 3 % (1 + origin::ARRAYS.len() as u64));
        let array = place.checked_sub(1).map(|index| origin::ARRAYS[index as usize]);
        let mode = if way == 0 { CacheMode::WriteThrough } else { CacheMode::WriteBack };
        let config = Config {
            size: 8 * BLOCK,
            block: BLOCK,
            mode,
            policy: CachePolicy::S3Fifo,
            sequential_cutoff: None,
        };
        let shape = Shape {
            config,
            dirty: config.size,
            age_us: dice.within(100..=20_000),
            drain: None,
            log: (way == 2).then(|| least_log(BLOCK)),
            array,
            errors: (false, false),
            remembers: true,
            nested: 0,
            requests: dice.within(4..=7) as usize,
            is_timed: false,
            switches: false,
            bursts: 1,
            ..Shape::of(&mut dice)
        };
        let image = |size: u64| Image::zeroes(size as usize);
        let blank = CrashImages {
            origin: origin::zeroes(array),
            log: shape.log.map(image),
            given_up: None,
        };
        let block = if array.is_some() { 512 } else { shape.origin_block };
        let oracle = Oracle::new(&vec![0; SIZE as usize], block);
        let mut begun = Begun { seed, shape, left: blank, oracle };
        let end = if dice.percent(80) { End::Power } else { End::Down };
        let Lived { left, mut oracle, .. } = begun.live(None, end)?;
        match shape.excused(&left.origin, &oracle)? {
            Some(excused) => oracle = excused,
            None => oracle.crash(|_| false),
        }
        (begun.left, begun.oracle) = (left, oracle);
        Ok(begun)
    }

    /// Runs the second life without a failure. Returns the number of requests of each disk.
    ///
    /// # Errors
    /// What went wrong.
    fn count(&self) -> Result<Vec<u64>, String> {
        let lived = self.live(None, End::Down)?;
        self.judge(&lived, None)?;
        Ok(lived.ops.iter().map(|ops| ops.len() as u64).collect())
    }

    /// Runs the second life with `failure`, and the third.
    ///
    /// # Errors
    /// What went wrong.
    fn fail(&self, failure: Failure) -> Result<(), String> {
        let lived = caught(|| self.live(Some(failure), End::Down))?;
        // A disk that fails a flush loses data that later flushes do not cover, and a write-through cache guarantees
        // no more than its origin.
        let ops = &lived.ops[failure.disk];
        let is_flush = ops.get(failure.request as usize) == Some(&Op::Flush);
        let is_bare = self.shape.array.is_none() && failure.disk == 0;
        if is_bare && is_flush && self.shape.config.mode != CacheMode::WriteBack {
            return Ok(());
        }
        self.judge(&lived, Some(failure))
    }

    /// Returns bits to flip after the first life, one per start: two in each block of the log, and two in each sector
    /// of the metadata of each member.
    fn rots(&self) -> Vec<Rot> {
        let mut dice = Rng::new(self.seed);
        let mut rots = Vec::new();
        for (disk, image) in self.left.origin.iter().flatten().enumerate() {
            let flips = braid_sim::rot::flips(image, &mut dice).into_iter();
            rots.extend(flips.map(|(_, at, bit)| Rot { disk: Some(disk), at, bit }));
        }
        if let Some(log) = &self.left.log {
            for start in (0..log.len() as u64).step_by(BLOCK as usize) {
                let flips = flips_of(log, start, BLOCK, &mut dice).into_iter();
                rots.extend(flips.map(|(at, bit)| Rot { disk: None, at, bit }));
            }
        }
        rots
    }

    /// Starts after `rot`. A start may be refused; one without the member is not.
    ///
    /// # Errors
    /// Flushed data are lost.
    fn start_rotten(&self, rot: &Rot) -> Result<(), String> {
        let mut left = self.left.clone();
        let mut oracle = self.oracle.clone();
        let image = match rot.disk {
            Some(disk) => left.origin[disk].as_mut(),
            None => {
                // No later block states that the last record was durable: damage of it may be a torn end.
                oracle.crash(|offset| LAST.contains(&offset));
                left.log.as_mut()
            }
        };
        flip(image.expect("the disk exists"), rot);
        let start = |left: &CrashImages| try_restart(!self.seed, &self.shape, left, &oracle, 0);
        match start(&left) {
            Err(what) if !what.starts_with("after a replay") => {}
            started => return started,
        }
        if let Some(disk) = rot.disk {
            left.origin[disk] = None;
            start(&left).map_err(|what| format!("without the member: {what}"))?;
        }
        Ok(())
    }

    /// Starts the cache on the images of `lived`, and compares the origin with the oracle.
    fn judge(&self, lived: &Lived, failure: Option<Failure>) -> Result<(), String> {
        let mut left = lived.left.clone();
        if let Some(Failure { disk, lasts: true, .. }) = failure
            && self.shape.array.is_some()
            && disk < left.origin.len()
        {
            left.origin[disk] = None;
        }
        try_restart(!self.seed, &self.shape, &left, &lived.oracle, 0)
            .map_err(|what| format!("afterwards: {what}"))
    }

    /// Runs a life on the images of the one before, with some requests.
    fn live(&self, failure: Option<Failure>, end: End) -> Result<Lived, String> {
        let Begun { seed, shape, left, oracle } = self;
        let world = World::new(*seed, shape, left)?;
        let World { sim, origin, log, cache, .. } = &world;
        let disks: Vec<SimDisk> = origin.disks.iter().chain(log).cloned().collect();
        if let Some(Failure { disk, request, lasts }) = failure {
            let target = if lasts { Target::since(request) } else { Target::index(request) };
            disks[disk].faults().add(target, Fault::Error(Errno::IO));
        }
        let of_origin = failure.is_some_and(|failure| failure.disk < origin.disks.len());
        // Requests may fail if the origin is a disk. A failure of the log's device may prevent the start, and one of
        // a member after a crash too, as long as the parity is in doubt. The next start succeeds.
        let (may_fail, may_be_refused) =
            (of_origin && shape.array.is_none(), failure.is_some() && !of_origin);
        let is_doubtful = of_origin && shape.array.is_some_and(|spec| spec.has_parity());
        let mut dice = Rng::new(*seed);
        let oracle = Rc::new(RefCell::new(oracle.clone()));
        let dev = Dev::new(cache.clone());
        let pool = Pool::new(4 << 20).expect("memory");
        let mut client = Client { dev, pool, rng: dice.fork(), oracle: Rc::clone(&oracle) };
        let (started, handle, cache) = (origin.start(&sim.handle()), sim.handle(), cache.clone());
        let load = Load { requests: shape.requests, depth: 2, longest: 16, overlapping: true };
        let outcome = sim.run_until(async move {
            match started.await {
                Err(_) if is_doubtful => return Ok(()),
                started => started?,
            }
            match cache.restart().await {
                Ok(_) => {}
                Err(_) if may_fail || may_be_refused => return Ok(()),
                Err(why) => return Err(format!("the cache does not start: {why}")),
            }
            if let Some(run) = cache.run() {
                handle.spawn("cache", run);
            }
            let errors = client.run(load).await.errors;
            let began = client.oracle.borrow_mut().begin_flush();
            let flushed = client.dev.start(Io::flush()).await.result;
            if flushed.is_ok() {
                client.oracle.borrow_mut().end_flush(began);
            }
            if !may_fail && (flushed.is_err() || !errors.is_empty()) {
                return Err(format!("{errors:?}, a flush: {flushed:?}"));
            }
            if end == End::Power {
                return last_record(&mut client).await;
            }
            match cache.shut_down().await {
                Err(errno) if !may_fail => Err(format!("the shutdown: {errno}")),
                _ => Ok(()),
            }
        });
        match outcome {
            Outcome::Done(lived) => lived?,
            Outcome::Halted => {}
            Outcome::Stuck(stuck) => return Err(stuck.to_string()),
        }
        let ops =
            disks.iter().map(|disk| disk.trace().iter().map(|one| one.op).collect()).collect();
        let left = world.crash(false, &mut dice);
        let oracle = oracle.borrow().clone();
        Ok(Lived { left, oracle, ops })
    }
}

/// Result of a life.
struct Lived {
    left: CrashImages,
    oracle: Oracle,
    /// Kinds of the requests of each disk, in order.
    ops: Vec<Vec<Op>>,
}
