//! One connection of a front-end: its messages, and the queues that they start and stop.
//!
//! ```text
//!   memory, size, addresses, base, kick, enabled ──▶ all there: the queue is started on a shard
//!   base is asked for, disabled, memory is exchanged, or the connection ends ──▶ it is stopped: requests in flight
//!                                                                               are answered, then its base is known
//! ```
//!
//! Invariants
//! * It runs on a thread of its own, which may wait for a front-end, and for queues that stop. Shards wait for neither.
//! * No queue of an earlier connection runs when the next one is accepted.
//! * Each number of a queue, feature and size is checked against what was offered.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError};

use crate::config::{self, MOST_CONFIG, MOST_QUEUES};
use crate::disk::Disk;
use crate::end::{End, QueueFault, Why};
use crate::inflight::{self, Table};
use crate::memory::Memory;
use crate::message::{self, InflightInfo, Message, MessageFault};
use crate::queue::{Call, Setup};
use crate::ring::{Addresses, MOST_DESCRIPTORS, Ring};
use crate::socket;
use crate::stopper::Stopper;

/// A queue as messages have described it.
#[derive(Default)]
struct QueueState {
    size: u32,
    addresses: Option<Addresses>,
    /// Number of its next request.
    base: u16,
    kick: Option<OwnedFd>,
    call: Call,
    enabled: bool,
    running: Option<Running>,
}

/// A queue that a shard serves.
struct Running {
    stopper: Arc<Stopper>,
    ended: Receiver<Result<u16, QueueFault>>,
}

/// The answer to a message.
enum Answer {
    /// An acknowledgement, if it is asked for.
    Done,
    /// The same, of a message that could not be followed.
    Refused,
    Reply(Vec<u8>),
    WithFd(Vec<u8>, OwnedFd),
}

/// A connection.
pub(crate) struct Connection<'a> {
    export: &'a Disk,
    stream: UnixStream,
    features: u64,
    protocol: u64,
    memory: Arc<Memory>,
    has_memory: bool,
    table: Option<Table>,
    queues: Vec<QueueState>,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(export: &'a Disk, stream: UnixStream) -> Connection<'a> {
        Connection {
            export,
            stream,
            features: 0,
            protocol: 0,
            memory: Arc::default(),
            has_memory: false,
            table: None,
            queues: (0..MOST_QUEUES).map(|_| QueueState::default()).collect(),
        }
    }

    /// Serves it to its end, and stops its queues.
    pub(crate) fn serve(mut self) -> End {
        let why = loop {
            if let Err(why) = self.step() {
                break why;
            }
        };
        let why = if self.export.is_stopped() { Why::Stopped } else { why };
        let faults: Vec<Why> =
            (0..self.queues.len()).filter_map(|queue| self.stop(queue).err()).collect();
        // A queue with a fault ended the connection.
        let fault = faults.into_iter().next().filter(|_| matches!(why, Why::Disconnected));
        End(fault.unwrap_or(why))
    }

    /// Takes one message, and answers it.
    fn step(&mut self) -> Result<(), Why> {
        let (header, body, files) = socket::receive(&self.stream)?;
        let message = Message::parse(header.request, &body, files.len())?;
        let is_config = matches!(message, Message::GetConfig(..));
        let answer = self.handle(message, files)?;
        self.start_ready()?;
        let request = header.request;
        match answer {
            Answer::Reply(mut reply) if is_config => {
                // The space lies behind what was asked.
                let mut whole = body[..12].to_vec();
                whole.append(&mut reply);
                socket::send(&self.stream, &message::reply(request, &whole), None)?;
            }
            Answer::Reply(body) => {
                socket::send(&self.stream, &message::reply(request, &body), None)?;
            }
            Answer::WithFd(body, fd) => {
                socket::send(&self.stream, &message::reply(request, &body), Some(&fd))?;
            }
            Answer::Done | Answer::Refused
                if header.needs_reply && self.has(message::REPLY_ACK) =>
            {
                let failed = u64::from(matches!(answer, Answer::Refused));
                let body = failed.to_ne_bytes();
                socket::send(&self.stream, &message::reply(request, &body), None)?;
            }
            Answer::Done | Answer::Refused => {}
        }
        Ok(())
    }

    /// Returns true if that feature of the protocol was taken.
    fn has(&self, feature: u64) -> bool {
        self.protocol & feature != 0
    }

    fn handle(&mut self, message: Message, mut files: Vec<File>) -> Result<Answer, Why> {
        let value = |value: u64| Answer::Reply(value.to_ne_bytes().to_vec());
        let features = config::features(&self.export.limits());
        let file = files.pop();
        match message {
            Message::GetFeatures => return Ok(value(features)),
            Message::GetProtocolFeatures => return Ok(value(message::PROTOCOL_FEATURES)),
            Message::GetQueueCount => return Ok(value(MOST_QUEUES.into())),
            Message::SetFeatures(taken) => self.features = offered(taken, features)?,
            Message::SetProtocolFeatures(taken) => {
                self.protocol = offered(taken, message::PROTOCOL_FEATURES)?;
            }
            Message::SetOwner => {}
            Message::ResetOwner => self.stop_all()?,
            Message::SetMemory(regions) => {
                self.stop_all()?;
                files.extend(file);
                self.memory = Arc::new(Memory::map(regions.into_iter().zip(files))?);
                self.has_memory = true;
            }
            Message::SetSize(set) => self.stopped(set.queue)?.size = set.value,
            Message::SetAddresses(queue, addresses) => {
                self.stopped(queue)?.addresses = Some(addresses);
            }
            // Of a split queue 16 bits.
            Message::SetBase(set) => {
                let [low, high, ..] = set.value.to_le_bytes();
                self.stopped(set.queue)?.base = u16::from_le_bytes([low, high]);
            }
            Message::GetBase(queue) => {
                let state = self.stopped(queue)?;
                state.kick = None;
                let base = state.base;
                return Ok(Answer::Reply(message::queue_value(queue, base)));
            }
            Message::SetKick(queue) => {
                let file = file.ok_or(Why::Queue { queue, fault: QueueFault::Polled })?;
                let kick = ready(file, &[EVENTFD], QueueFault::Kick);
                let kick = kick.map_err(|fault| Why::Queue { queue, fault })?;
                self.stopped(queue)?.kick = Some(kick);
            }
            Message::SetCall(queue) => self.set_call(queue, file)?,
            // A fault closes the connection, which says more.
            Message::SetError(queue) => drop(self.queue(queue)?),
            Message::SetEnabled(set) if set.value == 0 => self.stopped(set.queue)?.enabled = false,
            Message::SetEnabled(set) => self.queue(set.queue)?.enabled = true,
            Message::SetBackendChannel => {
                let channel = file.map(|file| UnixStream::from(OwnedFd::from(file)));
                self.export.set_channel(channel);
            }
            Message::GetConfig(offset, len) => return self.config(offset, len),
            // No part of the space can be written.
            Message::SetConfig => return Ok(Answer::Refused),
            Message::GetInflight(info) => return self.make_table(info),
            Message::SetInflight(info) => {
                let Some(file) = file else { return Ok(Answer::Refused) };
                let place = (info.offset, info.len);
                self.table = Some(Table::map(file, place, (info.queues, info.size))?);
            }
        }
        Ok(Answer::Done)
    }

    fn set_call(&mut self, queue: u32, file: Option<File>) -> Result<(), Why> {
        let call = match file {
            None => None,
            Some(file) => {
                // User-mode Linux reads from a pair of sockets.
                let fd = ready(file, &[EVENTFD, "socket:[", "pipe:["], QueueFault::Call);
                Some(File::from(fd.map_err(|fault| Why::Queue { queue, fault })?))
            }
        };
        let state = self.queue(queue)?;
        *state.call.lock().unwrap_or_else(PoisonError::into_inner) = call;
        Ok(())
    }

    fn config(&self, offset: u32, len: u32) -> Result<Answer, Why> {
        let space = config::config(&self.export.limits(), MOST_QUEUES);
        let (start, len) = (offset as usize, len as usize);
        let end = start.checked_add(len).filter(|end| *end <= MOST_CONFIG);
        let part = end.and_then(|end| space.get(start..end));
        let part = part.ok_or(MessageFault::Length { request: 24, len })?;
        Ok(Answer::Reply(part.to_vec()))
    }

    fn make_table(&self, info: InflightInfo) -> Result<Answer, Why> {
        let InflightInfo { queues, size, .. } = info;
        if queues == 0 || queues > MOST_QUEUES || size == 0 || size > MOST_DESCRIPTORS {
            let fault = inflight::InflightFault::Size { queues, size, len: 0 };
            return Err(fault.into());
        }
        let fd = inflight::make(queues, size)?;
        let info = InflightInfo { len: inflight::length(queues, size), offset: 0, ..info };
        Ok(Answer::WithFd(message::inflight_info(info), fd))
    }

    fn queue(&mut self, queue: u32) -> Result<&mut QueueState, Why> {
        let state = self.queues.get_mut(queue as usize);
        state.ok_or(Why::NoQueue(queue, MOST_QUEUES))
    }

    /// The queue of that number, which is not served any more.
    fn stopped(&mut self, queue: u32) -> Result<&mut QueueState, Why> {
        self.queue(queue)?;
        self.stop(queue as usize)?;
        self.queue(queue)
    }

    fn stop_all(&mut self) -> Result<(), Why> {
        (0..self.queues.len()).try_for_each(|queue| self.stop(queue))
    }

    /// Stops a queue, if it is served, and waits for its last answer.
    fn stop(&mut self, queue: usize) -> Result<(), Why> {
        let state = &mut self.queues[queue];
        let Some(running) = state.running.take() else { return Ok(()) };
        running.stopper.stop();
        let ended = running.ended.recv().unwrap_or(Err(QueueFault::Gone));
        let fault = |fault| Why::Queue { queue: number(queue).into(), fault };
        state.base = ended.map_err(fault)?;
        Ok(())
    }

    /// Starts the queues that have everything.
    fn start_ready(&mut self) -> Result<(), Why> {
        let is_enabled = self.features & config::PROTOCOL == 0;
        for index in 0..self.queues.len() {
            let state = &self.queues[index];
            let is_ready = self.has_memory
                && state.running.is_none()
                && state.kick.is_some()
                && state.addresses.is_some()
                && (state.enabled || is_enabled);
            if is_ready {
                let fault = |fault| Why::Queue { queue: number(index).into(), fault };
                let running = self.start(index).map_err(fault)?;
                self.queues[index].running = Some(running);
            }
        }
        Ok(())
    }

    fn start(&self, index: usize) -> Result<Running, QueueFault> {
        let state = &self.queues[index];
        let (Some(kick), Some(addresses)) = (&state.kick, state.addresses) else {
            return Err(QueueFault::Polled);
        };
        let has_events = self.features & config::EVENT_IDX != 0;
        let mut ring = Ring::new(&self.memory, state.size, addresses, state.base, has_events)?;
        let table = self.table.as_ref().filter(|_| self.has(message::INFLIGHT));
        let mut inflight = table.and_then(|table| table.queue(number(index), ring.size()));
        let mut left = Vec::new();
        if let Some(inflight) = &mut inflight {
            let used = ring.next_used();
            left = inflight.take_over(used)?;
            left.retain(|head| *head < ring.size());
            // At most as many as the queue has descriptors.
            let count = u16::try_from(left.len()).unwrap_or(u16::MAX);
            ring.go_on_at(used.wrapping_add(count));
        }
        let stopper = Arc::<Stopper>::default();
        let setup = Setup {
            ring,
            memory: Arc::clone(&self.memory),
            inflight,
            left: left.into(),
            kick: kick.try_clone()?,
            call: Arc::clone(&state.call),
            stopper: Arc::clone(&stopper),
            is_write_through: self.features & config::FLUSH == 0,
            serial: self.export.serial(),
        };
        let (send, ended) = channel();
        let stream = self.stream.try_clone()?;
        self.export.on_shard(index, move |server| {
            let failed = move || {
                // The thread of the connection hears of it.
                let _ = stream.shutdown(std::net::Shutdown::Both);
            };
            server.serve(setup, send, failed);
        });
        Ok(Running { stopper, ended })
    }
}

/// The number of a queue, of which there are at most [`MOST_QUEUES`].
fn number(queue: usize) -> u16 {
    u16::try_from(queue).unwrap_or(u16::MAX)
}

/// Returns the features that a front-end took, all of which were offered.
fn offered(taken: u64, features: u64) -> Result<u64, Why> {
    if taken & !features == 0 { Ok(taken) } else { Err(Why::Features(taken & !features)) }
}

/// The start of what the kernel calls an event counter.
const EVENTFD: &str = "anon_inode:[eventfd]";

/// Returns the descriptor of one of these kinds, by the start of what the kernel calls them, which never blocks: another
/// kind could be readable for ever, or block a shard.
///
/// # Errors
/// `fault` for another kind.
fn ready(file: File, kinds: &[&str], fault: QueueFault) -> Result<OwnedFd, QueueFault> {
    let fd = OwnedFd::from(file);
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    let link = link.to_string_lossy();
    if !kinds.iter().any(|kind| link.starts_with(kind)) {
        return Err(fault);
    }
    rustix::io::ioctl_fionbio(&fd, true).map_err(std::io::Error::from)?;
    Ok(fd)
}
