//! A remote member whose network is cut and whose server loses its power, by seed.
//!
//! ```text
//!   clients ──▶ RemoteDevice ── pipes ── NBD sessions ──▶ Machine: cached, durable
//!                  ▲               ▲                         ▲
//!                  └───────────────┴── chaos: cut one, cut all, lose the power, be silent
//! ```
//!
//! Invariants
//! * A block reads as what was acknowledged last, or, where a write failed, as one of the possible values.
//! * That holds also after the server lost its power behind the last flush: it keeps any part of what was not flushed.
//!
//! Deliberately absent: a server that carries out requests of a connection that is gone.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use braid_block::{Errno, Extent, Flags, Io, Limits, Op, Payload, Span};
use braid_engine::{Dev, Device, Extents, Pending};
use braid_export_nbd::Export;
use braid_mem::{Buf, Pool};
use braid_nbd::client::ClientNegotiated;
use braid_nbd::protocol::ReplyStyle;
use braid_nbd::protocol::constants::*;
use braid_remote::{Config, Connect, Offer, RemoteDevice, Traffic};

use crate::found::SimClock;
use crate::pipe::Pipe;
use crate::{Handle, Rng, Sim};

const BLOCK: u64 = 512;
/// Blocks of a client, which no other client uses.
const OWN: u64 = 8;
const CLIENTS: u64 = 6;
const SIZE: u64 = OWN * CLIENTS * BLOCK;
/// The longest time for which a ready task waits at once, in nanoseconds.
const DELAY_NS: u64 = 1_000_000;
const DEADLINE: Duration = Duration::from_secs(2);

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Changes that the server carried out.
    pub applied: u64,
    /// Changes that clients asked for.
    pub asked: u64,
    /// Changes that were sent again.
    pub repeated: u64,
    /// Times that the connections came back.
    pub reconnects: u64,
    /// Requests that failed with the deadline.
    pub overdue: u64,
    /// Times that the server lost its power.
    pub crashes: u64,
    /// Blocks that the server said to be zeroes.
    pub holes: u64,
}

/// The contents of a server, from one start to the next.
struct Machine {
    handle: Handle,
    rng: RefCell<Rng>,
    cached: RefCell<Vec<u8>>,
    durable: RefCell<Vec<u8>>,
    applied: Cell<u64>,
}

impl Machine {
    fn started(handle: &Handle, contents: Vec<u8>) -> Rc<Machine> {
        Rc::new(Machine {
            handle: handle.clone(),
            rng: RefCell::new(handle.fork_rng()),
            durable: RefCell::new(contents.clone()),
            cached: RefCell::new(contents),
            applied: Cell::new(0),
        })
    }

    /// Returns what a loss of power leaves: of each block the durable or the cached content.
    fn crashed(&self) -> Vec<u8> {
        let (mut left, cached) = (self.durable.borrow().clone(), self.cached.borrow());
        for (left, cached) in left.chunks_mut(BLOCK as usize).zip(cached.chunks(BLOCK as usize)) {
            if self.rng.borrow_mut().percent(50) {
                left.copy_from_slice(cached);
            }
        }
        left
    }
}

struct Disk(Rc<Machine>);

impl Device for Disk {
    fn limits(&self) -> Limits {
        Limits::new(SIZE, BLOCK as u32)
    }

    /// Carries the request out now, and answers it later.
    fn start(&self, mut io: Io) -> Pending {
        let machine = Rc::clone(&self.0);
        let range = io.span.offset as usize..io.span.end() as usize;
        let mut cached = machine.cached.borrow_mut();
        match io.op {
            Op::Read => {
                let mut from = &cached[range];
                for buf in io.payload.bufs_mut() {
                    let (now, later) = from.split_at(buf.len());
                    buf.copy_from_slice(now);
                    from = later;
                }
            }
            Op::Write => cached[range.clone()].copy_from_slice(&io.payload.to_vec()),
            Op::WriteZeroes => cached[range.clone()].fill(0),
            Op::Discard => {}
            Op::Flush => machine.durable.borrow_mut().clone_from(&cached),
        }
        if io.op.is_modifying() {
            machine.applied.set(machine.applied.get() + 1);
            if io.flags.contains(Flags::FUA) {
                let range = io.span.offset as usize..io.span.end() as usize;
                machine.durable.borrow_mut()[range.clone()].copy_from_slice(&cached[range]);
            }
        }
        drop(cached);
        let pause = machine.rng.borrow_mut().within(1_000..=3_000_000);
        let handle = machine.handle.clone();
        Pending::task(async move {
            handle.sleep(pause).await;
            io.complete(Ok(()))
        })
    }

    /// Knows every block of zeroes.
    fn extents(&self, span: Span) -> Extents {
        let cached = self.0.cached.borrow();
        let blocks = cached[span.offset as usize..span.end() as usize].chunks(BLOCK as usize);
        let extents = blocks.map(|block| match block.iter().all(|byte| *byte == 0) {
            true => Extent::hole(BLOCK),
            false => Extent::data(BLOCK),
        });
        Extents::Known(extents.collect())
    }
}

/// The network, and what is behind it.
struct World {
    handle: Handle,
    rng: RefCell<Rng>,
    machine: RefCell<Rc<Machine>>,
    is_up: Cell<bool>,
    is_silent: Cell<bool>,
    pipes: RefCell<Vec<Pipe>>,
    applied: Cell<u64>,
}

impl World {
    fn cut(&self) {
        self.pipes.borrow_mut().drain(..).for_each(|pipe| pipe.cut());
    }

    fn crash(&self) {
        self.cut();
        let left = self.machine.borrow().crashed();
        self.applied.set(self.applied.get() + self.machine.borrow().applied.get());
        *self.machine.borrow_mut() = Machine::started(&self.handle, left);
    }

    /// Lets something fail.
    async fn fail(&self, told: &RefCell<Told>) {
        let draw = |range| self.rng.borrow_mut().within(range);
        match draw(0..=9) {
            0..=3 => self.cut(),
            4 | 5 => {
                let one = {
                    let mut pipes = self.pipes.borrow_mut();
                    let index = draw(0..=1_000) as usize % pipes.len().max(1);
                    (index < pipes.len()).then(|| pipes.swap_remove(index))
                };
                one.iter().for_each(Pipe::cut);
            }
            6..=8 => {
                told.borrow_mut().crashes += 1;
                self.is_up.set(false);
                self.crash();
                self.handle.sleep(draw(0..=1_000_000_000)).await;
                self.is_up.set(true);
            }
            _ => {
                self.is_silent.set(true);
                self.cut();
                self.handle.sleep(draw(0..=5_000_000_000)).await;
                self.is_silent.set(false);
            }
        }
    }
}

struct Network(Rc<World>);

impl Connect for Network {
    type Stream = Pipe;

    fn connect(&self, limit: Duration) -> impl Future<Output = io::Result<Pipe>> + 'static {
        let world = Rc::clone(&self.0);
        async move {
            let pause = world.rng.borrow_mut().within(500_000..=5_000_000);
            world.handle.sleep(pause).await;
            if world.is_silent.get() {
                world.handle.sleep(limit.as_nanos() as u64).await;
                return Err(io::ErrorKind::TimedOut.into());
            }
            if !world.is_up.get() {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (client, server) = Pipe::pair(&world.handle);
            let dev = Dev::new(Disk(Rc::clone(&world.machine.borrow())));
            let pool = Pool::new(1 << 20)?;
            let export = Export::new(dev, pool, "m", Duration::from_secs(60));
            let export = export.map_err(io::Error::other)?;
            let inbox = Buf::apart(16 << 10)?;
            world.pipes.borrow_mut().push(server.clone());
            world.handle.spawn("a session", async move {
                drop(export.serve(server.clone(), inbox).await);
                server.close();
            });
            Ok(client)
        }
    }
}

/// The possible values of a client's blocks.
struct Expected(Vec<Vec<u8>>);

impl Expected {
    fn check(&mut self, block: u64, found: &[u8]) -> Result<(), String> {
        let first = found[0];
        let possible = &mut self.0[block as usize];
        if !possible.contains(&first) || found.iter().any(|byte| *byte != first) {
            return Err(format!("block {block} is {first}, and may be {possible:?}"));
        }
        *possible = vec![first];
        Ok(())
    }
}

struct Client {
    handle: Handle,
    dev: Dev,
    rng: Rng,
    number: u64,
    told: Rc<RefCell<Told>>,
    expected: Rc<RefCell<Expected>>,
}

impl Client {
    async fn run(mut self, requests: u64) -> Result<(), String> {
        for turn in 0..requests {
            let first = self.rng.below(OWN);
            let count = 1 + self.rng.below(OWN - first);
            let value = (1 + turn % 250) as u8;
            match self.rng.below(12) {
                0 => drop(self.dev.start(Io::flush()).await),
                1 | 2 => self.change(first, count, 0, true).await,
                3 | 4 => self.ask(first, count).await?,
                5..=8 => self.change(first, count, value, false).await,
                _ => self.read(first).await?,
            }
        }
        Ok(())
    }

    async fn change(&mut self, first: u64, count: u64, value: u8, is_zeroing: bool) {
        let block = self.number * OWN + first;
        let flags = if self.rng.percent(20) { Flags::FUA } else { Flags::NONE };
        let span = Span::new(block * BLOCK, count * BLOCK);
        let io = if is_zeroing {
            Io::write_zeroes(span, flags)
        } else {
            let mut buf = Buf::apart(span.len as usize).expect("memory");
            buf.fill(value);
            Io::write(span.offset, Payload::One(buf), flags)
        };
        self.told.borrow_mut().asked += 1;
        let result = self.dev.start(io).await.result;
        if result.is_err() {
            self.pause().await;
        }
        let mut expected = self.expected.borrow_mut();
        for possible in &mut expected.0[block as usize..(block + count) as usize] {
            match result {
                Ok(()) => *possible = vec![value],
                Err(_) => possible.push(value),
            }
        }
    }

    /// Asks for holes: none may hold anything else than zeroes.
    async fn ask(&mut self, first: u64, count: u64) -> Result<(), String> {
        let mut block = self.number * OWN + first;
        let extents = self.dev.extents(Span::new(block * BLOCK, count * BLOCK)).await;
        for extent in extents {
            for block in block..block + extent.len / BLOCK {
                self.told.borrow_mut().holes += u64::from(extent.zero);
                if extent.zero {
                    self.expected.borrow_mut().check(block, &[0])?;
                }
            }
            block += extent.len / BLOCK;
        }
        Ok(())
    }

    /// Waits, as a program does that failed.
    async fn pause(&self) {
        self.handle.sleep(500_000_000).await;
    }

    async fn read(&mut self, first: u64) -> Result<(), String> {
        let block = self.number * OWN + first;
        let payload = Payload::One(Buf::apart(BLOCK as usize).expect("memory"));
        let done = self.dev.start(Io::read(block * BLOCK, payload)).await;
        match done.result {
            Ok(()) => self.expected.borrow_mut().check(block, &done.payload.to_vec()),
            Err(Errno::TIMEDOUT) => {
                self.pause().await;
                Ok(())
            }
            Err(error) => Err(format!("a read failed with {error}")),
        }
    }
}

/// Lives through `failures` failures with `requests` requests of each client.
///
/// # Errors
/// A promise was broken.
pub fn live(seed: u64, requests: u64, failures: u64) -> Result<Told, String> {
    let sim = Sim::new(seed);
    // A task that is kept waiting for longer than a deadline proves nothing about it.
    sim.be_prompt(DELAY_NS);
    let handle = sim.handle();
    sim.block_on(async move { run(&handle, requests, failures).await })
}

/// The offer of the simulated server, as [`Export`] describes it.
fn offer() -> Offer {
    let flags = NBD_FLAG_HAS_FLAGS
        | NBD_FLAG_SEND_FLUSH
        | NBD_FLAG_SEND_FUA
        | NBD_FLAG_SEND_WRITE_ZEROES
        | NBD_FLAG_CAN_MULTI_CONN;
    let agreed = ClientNegotiated {
        size_bytes: SIZE,
        transmission_flags: flags,
        style: ReplyStyle::Extended,
        base_allocation: Some(1),
        block_size: None,
    };
    Offer::check(&agreed).expect("a sound offer")
}

async fn run(handle: &Handle, requests: u64, failures: u64) -> Result<Told, String> {
    let world = Rc::new(World {
        handle: handle.clone(),
        rng: RefCell::new(handle.fork_rng()),
        machine: RefCell::new(Machine::started(handle, vec![0; SIZE as usize])),
        is_up: Cell::new(true),
        is_silent: Cell::new(false),
        pipes: RefCell::default(),
        applied: Cell::new(0),
    });
    let traffic: Arc<Traffic> = Arc::default();
    let config = Config {
        export: String::new(),
        offer: offer(),
        connections: 3,
        deadline: DEADLINE,
        read_only: false,
        traffic: Arc::clone(&traffic),
        failures: Arc::default(),
    };
    let clock = Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO });
    let pool = Pool::new(1 << 20).map_err(|error| error.to_string())?;
    let dev = Dev::new(RemoteDevice::new(config, Network(Rc::clone(&world)), clock, pool));
    let told = Rc::new(RefCell::new(Told::default()));
    let blocks = vec![vec![0]; (SIZE / BLOCK) as usize];
    let expected = Rc::new(RefCell::new(Expected(blocks)));
    let (running, broken) = (Rc::new(Cell::new(CLIENTS)), Rc::new(RefCell::new(None)));
    for number in 0..CLIENTS {
        let rng = handle.fork_rng();
        let (told, expected) = (Rc::clone(&told), Rc::clone(&expected));
        let (handle, dev) = (handle.clone(), dev.clone());
        let client = Client { handle, dev, rng, number, told, expected };
        let (running, broken) = (Rc::clone(&running), Rc::clone(&broken));
        world.handle.spawn("a client", async move {
            if let Err(why) = client.run(requests).await {
                broken.borrow_mut().get_or_insert(why);
            }
            running.set(running.get() - 1);
        });
    }
    for _ in 0..failures {
        let pause = world.rng.borrow_mut().within(0..=40_000_000);
        handle.sleep(pause).await;
        world.fail(&told).await;
    }
    while running.get() > 0 {
        handle.sleep(1_000_000).await;
    }
    // All that failed has failed by now: what follows is acknowledged.
    handle.sleep(DEADLINE.as_nanos() as u64 * 8).await;
    if let Some(why) = broken.borrow_mut().take() {
        return Err(why);
    }
    let state = |why: String| format!("{why}; {:?}", traffic.read());
    verify(&dev, &expected).await.map_err(state)?;
    let flushed = dev.start(Io::flush()).await.result;
    flushed.map_err(|error| format!("the last flush failed with {error}"))?;
    world.crash();
    verify(&dev, &expected).await.map_err(|why| format!("behind a loss of power: {why}"))?;
    let counted = traffic.read();
    let mut told = *told.borrow();
    told.applied = world.applied.get() + world.machine.borrow().applied.get();
    (told.repeated, told.reconnects, told.overdue) =
        (counted.repeated, counted.reconnects, counted.overdue);
    match told.applied <= told.asked + told.repeated {
        true => Ok(told),
        false => Err(format!("changes were carried out that no request explains: {told:?}")),
    }
}

async fn verify(dev: &Dev, expected: &RefCell<Expected>) -> Result<(), String> {
    for block in 0..SIZE / BLOCK {
        let payload = Payload::One(Buf::apart(BLOCK as usize).expect("memory"));
        let done = dev.start(Io::read(block * BLOCK, payload)).await;
        done.result.map_err(|error| format!("the last reads failed with {error}"))?;
        expected.borrow_mut().check(block, &done.payload.to_vec())?;
    }
    Ok(())
}
