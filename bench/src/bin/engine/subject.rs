//! The measured subjects: an array behind its interface, and loops that only copy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use braid_bench::{Error, Result};
use braid_block::{Flags, Io, Payload};
use braid_engine::{Dev, InFlight, Pending};
use braid_mem::{Buf, Pool, Region};

use crate::memory::{buffers, take};
use crate::stripes::BareStripes;
use crate::{BLOCK, CHUNK};

pub(crate) const DEPTH: usize = 32;

/// Something that requests a second are counted of.
pub(crate) enum Subject {
    Engine(EngineLoop),
    BareReads(BareReads),
    BareWrites(BareWrites),
    BareStripes(BareStripes),
}

impl Subject {
    /// Bytes of a request.
    pub(crate) fn request(&self) -> u64 {
        match self {
            Subject::Engine(engine) => engine.request,
            Subject::BareReads(_) | Subject::BareWrites(_) => BLOCK,
            Subject::BareStripes(bare) => bare.request(),
        }
    }

    /// The number of places to choose from, each as long as a request.
    pub(crate) fn places(&self) -> u64 {
        let size = match self {
            Subject::Engine(engine) => engine.dev.limits().size,
            Subject::BareReads(bare) => bare.size,
            Subject::BareWrites(bare) => bare.size,
            Subject::BareStripes(bare) => bare.size(),
        };
        size / self.request()
    }

    /// Completes `count` requests.
    pub(crate) fn complete(&mut self, count: u64, place: &mut impl FnMut() -> u64) -> Result<()> {
        match self {
            Subject::Engine(engine) => engine.complete(count, place)?,
            Subject::BareReads(bare) => bare.copy(count, place),
            Subject::BareWrites(bare) => bare.copy(count, place),
            Subject::BareStripes(bare) => bare.run(count, place),
        }
        Ok(())
    }
}

pub(crate) struct EngineLoop {
    dev: Dev,
    write: bool,
    /// Bytes of a request.
    request: u64,
    /// Requests that wait to be issued: the buffers of what completed.
    idle: VecDeque<Payload>,
    in_flight: InFlight<()>,
    /// Everything goes through `in_flight`.
    all_in_flight: bool,
}

impl EngineLoop {
    pub(crate) fn reads(pool: &Pool, dev: Dev, all_in_flight: bool) -> Result<EngineLoop> {
        Ok(EngineLoop { all_in_flight, ..EngineLoop::new(pool, dev, BLOCK, DEPTH)? })
    }

    pub(crate) fn writes(pool: &Pool, dev: Dev) -> Result<EngineLoop> {
        Ok(EngineLoop { write: true, ..EngineLoop::new(pool, dev, BLOCK, DEPTH)? })
    }

    /// Requests of `request` bytes, `depth` of them under way.
    pub(crate) fn long(
        pool: &Pool,
        dev: Dev,
        write: bool,
        request: u64,
        depth: usize,
    ) -> Result<EngineLoop> {
        Ok(EngineLoop { write, ..EngineLoop::new(pool, dev, request, depth)? })
    }

    fn new(pool: &Pool, dev: Dev, request: u64, depth: usize) -> Result<EngineLoop> {
        let idle = buffers(pool, request, depth)?.into_iter().map(Payload::from).collect();
        let in_flight = InFlight::new(depth);
        Ok(EngineLoop { dev, write: false, request, idle, in_flight, all_in_flight: false })
    }

    /// Issues requests, each with the buffer of the one that completed first, until `count`
    /// completed.
    fn complete(&mut self, count: u64, place: &mut impl FnMut() -> u64) -> Result<()> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut done = 0;
        while done < count {
            while let Some(payload) = self.idle.pop_front() {
                let io = match self.write {
                    true => Io::write(place(), payload, Flags::NONE),
                    false => Io::read(place(), payload),
                };
                match self.dev.start(io) {
                    Pending::Ready(Some(completion)) if !self.all_in_flight => {
                        completion.result.map_err(failed)?;
                        done += 1;
                        self.idle.push_back(completion.payload);
                        if done == count {
                            return Ok(());
                        }
                    }
                    pending => self.in_flight.push((), pending),
                }
            }
            while let Poll::Ready(((), completion)) = self.in_flight.poll_next(&mut cx) {
                completion.result.map_err(failed)?;
                done += 1;
                self.idle.push_back(completion.payload);
            }
        }
        Ok(())
    }
}

pub(crate) fn failed(errno: braid_block::Errno) -> Error {
    Error::Unexpected(format!("a request failed: {errno}"))
}

/// Writes a block of `dev` at each multiple of `step`.
pub(crate) fn write_every(dev: &Dev, step: u64) -> Result<()> {
    let pool = Pool::new(1 << 20).map_err(Error::io("buffers"))?;
    let mut payload = Payload::from(take(&pool, BLOCK)?);
    for offset in (0..dev.limits().size).step_by(step as usize) {
        match dev.start(Io::write(offset, payload, Flags::NONE)) {
            Pending::Ready(Some(completion)) => {
                completion.result.map_err(failed)?;
                payload = completion.payload;
            }
            _ => return Err(Error::Unexpected("a RAM disk answers at once".into())),
        }
    }
    Ok(())
}

/// Copies out of members that are striped.
pub(crate) struct BareReads {
    members: Vec<Arc<Region>>,
    buffers: Vec<Buf>,
    next: usize,
    size: u64,
}

impl BareReads {
    pub(crate) fn new(pool: &Pool, members: &[Arc<Region>]) -> Result<BareReads> {
        let size = members.iter().map(|member| member.len() as u64).sum();
        Ok(BareReads {
            members: members.to_vec(),
            buffers: buffers(pool, BLOCK, DEPTH)?,
            next: 0,
            size,
        })
    }

    fn copy(&mut self, count: u64, place: &mut impl FnMut() -> u64) {
        let members = self.members.len() as u64;
        for _ in 0..count {
            let offset = place();
            let chunk = offset / CHUNK;
            let member = &self.members[(chunk % members) as usize];
            let at = chunk / members * CHUNK + offset % CHUNK;
            member.read(at as usize, &mut self.buffers[self.next]);
            self.next = (self.next + 1) % DEPTH;
        }
    }
}

/// Copies into every member, behind its metadata.
pub(crate) struct BareWrites {
    members: Vec<Arc<Region>>,
    buffers: Vec<Buf>,
    next: usize,
    data_offset: u64,
    size: u64,
}

impl BareWrites {
    pub(crate) fn new(
        pool: &Pool,
        members: &[Arc<Region>],
        data_offset: u64,
    ) -> Result<BareWrites> {
        let size = members[0].len() as u64 - data_offset;
        let members = members.to_vec();
        Ok(BareWrites {
            members,
            buffers: buffers(pool, BLOCK, DEPTH)?,
            next: 0,
            data_offset,
            size,
        })
    }

    fn copy(&mut self, count: u64, place: &mut impl FnMut() -> u64) {
        for _ in 0..count {
            let offset = place() + self.data_offset;
            for member in &self.members {
                member.write(offset as usize, &self.buffers[self.next]);
            }
            self.next = (self.next + 1) % DEPTH;
        }
    }
}
