//! A virtual machine of our own: the front-end's messages, and a driver of virtqueues in memory that both sides map.

// Each test target uses its own part of this module.
#![allow(dead_code)]

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Addresses of the memory: in the guest, and in the front-end.
pub(crate) const GUEST: u64 = 0x1000_0000;
const USER: u64 = 0x7000_0000_0000;
pub(crate) const MEMORY: usize = 4 << 20;
/// Descriptors of each queue.
pub(crate) const SIZE: u16 = 64;

/// Offsets in the memory of one queue.
const QUEUE: usize = 0x10000;
const AVAILABLE: usize = 0x4000;
const USED: usize = 0x8000;
/// The start of buffers.
pub(crate) const BUFFERS: usize = 0x10_0000;

pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
pub(crate) const INDIRECT: u16 = 4;

pub(crate) const FEATURES: u64 = 1 << 9 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 28 | 1 << 30 | 1 << 32;
pub(crate) const EVENT_IDX: u64 = 1 << 29;

/// A descriptor: address, length, flags, next.
pub(crate) type Descriptor = (u64, u32, u16, u16);

pub(crate) struct Machine {
    pub(crate) stream: UnixStream,
    pub(crate) file: File,
    pub(crate) memory: MmapRegion,
    queues: Vec<Driver>,
}

struct Driver {
    kick: File,
    call: File,
    available: u16,
    used: u16,
}

/// Writes to memory that others use.
pub(crate) fn fill(memory: &MmapRegion, at: usize, bytes: &[u8]) {
    memory.get_slice(at, bytes.len()).unwrap().copy_from(bytes);
}

/// Makes memory for a machine.
fn memory() -> File {
    let fd = rustix::fs::memfd_create("machine", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&fd, MEMORY as u64).unwrap();
    File::from(fd)
}

fn event() -> File {
    File::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap())
}

impl Machine {
    /// Connects, and shares its memory.
    pub(crate) fn new(socket: &Path, features: u64) -> Machine {
        Machine::with(socket, features, memory())
    }

    /// The same with memory of before.
    pub(crate) fn with(socket: &Path, features: u64, file: File) -> Machine {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let at = FileOffset::new(file.try_clone().unwrap(), 0);
        let memory = MmapRegion::from_file(at, MEMORY).unwrap();
        let machine = Machine { stream, file, memory, queues: Vec::new() };
        machine.tell(3, &[], &[]);
        let offered = machine.ask_u64(1);
        assert_eq!(features & !offered, 0, "{offered:#x}");
        machine.tell(2, &features.to_ne_bytes(), &[]);
        let protocol = machine.ask_u64(15);
        machine.tell(16, &protocol.to_ne_bytes(), &[]);
        let table = [1, GUEST, MEMORY as u64, USER, 0].map(u64::to_ne_bytes).concat();
        machine.tell(5, &table, &[machine.file.as_fd()]);
        machine
    }

    pub(crate) fn send(&self, request: u32, flags: u32, body: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut bytes = [request, flags, body.len() as u32].map(u32::to_ne_bytes).concat();
        bytes.extend_from_slice(body);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let parts = [IoSlice::new(&bytes)];
        // A server that has closed is found out by the answer.
        let _ = sendmsg(&self.stream, &parts, &mut control, SendFlags::NOSIGNAL);
    }

    /// Sends a message, and waits for its acknowledgement once that is agreed on.
    pub(crate) fn tell(&self, request: u32, body: &[u8], fds: &[BorrowedFd<'_>]) {
        let asks = ![2, 3, 16].contains(&request);
        self.send(request, if asks { 9 } else { 1 }, body, fds);
        if asks {
            let (reply, _) = self.reply().unwrap();
            assert_eq!(reply, 0u64.to_ne_bytes(), "message {request}");
        }
    }

    pub(crate) fn ask(&self, request: u32, body: &[u8]) -> (Vec<u8>, Option<OwnedFd>) {
        self.send(request, 1, body, &[]);
        self.reply().unwrap()
    }

    fn ask_u64(&self, request: u32) -> u64 {
        u64::from_ne_bytes(self.ask(request, &[]).0.try_into().unwrap())
    }

    fn reply(&self) -> Option<(Vec<u8>, Option<OwnedFd>)> {
        let mut header = [0; 12];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [std::io::IoSliceMut::new(&mut header)];
        let got = recvmsg(&self.stream, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
        let mut fd = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                fd = fds.last();
            }
        }
        if got.bytes < header.len() {
            return None;
        }
        assert_eq!(header[4], 5, "the flags of a reply");
        let mut body = vec![0; u32::from_ne_bytes(*header.last_chunk().unwrap()) as usize];
        (&self.stream).read_exact(&mut body).unwrap();
        Some((body, fd))
    }

    /// Waits until the server closes the connection.
    pub(crate) fn is_closed(&self) -> bool {
        let mut rest = Vec::new();
        match (&self.stream).read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    pub(crate) fn config(&self) -> Vec<u8> {
        let mut body = [0u32, 60, 0].map(u32::to_ne_bytes).concat();
        body.resize(72, 0);
        self.ask(24, &body).0[12..].to_vec()
    }

    /// Describes the next queue, without starting it.
    pub(crate) fn describe(&mut self, base: u16) -> u32 {
        let queue = self.queues.len() as u32;
        let number = |value: u32| [queue, value].map(u32::to_ne_bytes).concat();
        let user = USER + queue as u64 * QUEUE as u64;
        self.tell(8, &number(SIZE.into()), &[]);
        self.tell(10, &number(base.into()), &[]);
        let addresses = [user, user + USED as u64, user + AVAILABLE as u64, 0];
        let mut body = [queue, 0].map(u32::to_ne_bytes).concat();
        body.extend(addresses.map(u64::to_ne_bytes).concat());
        self.tell(9, &body, &[]);
        let driver = Driver { kick: event(), call: event(), available: base, used: base };
        self.tell(13, &u64::from(queue).to_ne_bytes(), &[driver.call.as_fd()]);
        self.queues.push(driver);
        queue
    }

    /// Has the server make memory for notes of requests in flight. Returns their description, too.
    pub(crate) fn ask_for_notes(&self) -> (Vec<u8>, OwnedFd) {
        let mut info = [0u64; 2].map(u64::to_ne_bytes).concat();
        info.extend([1u16, SIZE].map(u16::to_ne_bytes).concat());
        info.resize(24, 0);
        let (info, notes) = self.ask(31, &info);
        (info, notes.expect("memory for the notes"))
    }

    /// The same machine, with its first queue, at another server.
    pub(crate) fn reconnected(
        mut self,
        socket: &Path,
        features: u64,
        (info, notes): (&[u8], &OwnedFd),
    ) -> Machine {
        let file = self.file.try_clone().unwrap();
        let mut next = Machine::with(socket, features, file);
        next.tell(32, info, &[notes.as_fd()]);
        let driver = self.queues.swap_remove(0);
        next.describe(driver.used);
        next.queues[0].available = driver.available;
        next.enable(0);
        next
    }

    /// Number of the next request of a queue.
    pub(crate) fn taken(&self, queue: u32) -> u16 {
        self.queues[queue as usize].available
    }

    /// Another mapping of its memory.
    pub(crate) fn mapped_again(&self) -> MmapRegion {
        let at = FileOffset::new(self.file.try_clone().unwrap(), 0);
        MmapRegion::from_file(at, MEMORY).unwrap()
    }

    /// Starts a queue that was described.
    pub(crate) fn enable(&self, queue: u32) {
        let kick = &self.queues[queue as usize].kick;
        self.tell(12, &u64::from(queue).to_ne_bytes(), &[kick.as_fd()]);
        self.tell(18, &[queue, 1].map(u32::to_ne_bytes).concat(), &[]);
    }

    pub(crate) fn start(&mut self) -> u32 {
        let queue = self.describe(0);
        self.enable(queue);
        queue
    }

    /// Stops a queue. Returns the number of its next request.
    pub(crate) fn stop(&self, queue: u32) -> u32 {
        let (body, _) = self.ask(11, &[queue, 0].map(u32::to_ne_bytes).concat());
        u32::from_ne_bytes(*body.last_chunk().unwrap())
    }

    pub(crate) fn put_bytes(&self, at: usize, bytes: &[u8]) {
        fill(&self.memory, at, bytes);
    }

    pub(crate) fn bytes(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory.get_slice(at, len).unwrap().copy_to(&mut bytes[..]);
        bytes
    }

    pub(crate) fn load(&self, at: usize) -> u16 {
        self.memory.as_volatile_slice().load(at, Ordering::SeqCst).unwrap()
    }

    pub(crate) fn store(&self, at: usize, value: u16) {
        self.memory.as_volatile_slice().store(value, at, Ordering::SeqCst).unwrap();
    }

    /// Offset of a part of a queue.
    pub(crate) fn available_at(queue: u32, offset: usize) -> usize {
        queue as usize * QUEUE + AVAILABLE + offset
    }

    pub(crate) fn used_at(queue: u32, offset: usize) -> usize {
        queue as usize * QUEUE + USED + offset
    }

    pub(crate) fn put_descriptor(&self, at: usize, (address, len, flags, next): Descriptor) {
        let mut bytes = address.to_le_bytes().to_vec();
        bytes.extend(len.to_le_bytes());
        bytes.extend([flags, next].map(u16::to_le_bytes).concat());
        self.put_bytes(at, &bytes);
    }

    /// Writes descriptor number `index` of a queue.
    pub(crate) fn describe_buffer(&self, queue: u32, index: u16, descriptor: Descriptor) {
        self.put_descriptor(queue as usize * QUEUE + 16 * usize::from(index), descriptor);
    }

    /// Makes the chain at `head` available, without a kick.
    pub(crate) fn offer(&mut self, queue: u32, head: u16) {
        let driver = &mut self.queues[queue as usize];
        let slot = usize::from(driver.available % SIZE);
        driver.available = driver.available.wrapping_add(1);
        let available = driver.available;
        self.store(Machine::available_at(queue, 4 + 2 * slot), head);
        self.store(Machine::available_at(queue, 2), available);
    }

    pub(crate) fn kick(&self, queue: u32) {
        (&self.queues[queue as usize].kick).write_all(&1u64.to_ne_bytes()).unwrap();
    }

    /// A request of three descriptors from `head` on, whose header is at the place of its number.
    pub(crate) fn request(
        &self,
        queue: u32,
        head: u16,
        (kind, sector): (u32, u64),
        (data, len, flags): (usize, u32, u16),
    ) {
        let at = Machine::header_at(queue, head);
        let mut header = [kind, 0].map(u32::to_le_bytes).concat();
        header.extend(sector.to_le_bytes());
        // A status that no server writes.
        header.push(0xee);
        self.put_bytes(at, &header);
        let header = GUEST + at as u64;
        let status = (header + 16, 1, WRITE, 0);
        if len == 0 {
            self.describe_buffer(queue, head, (header, 16, NEXT, head + 1));
            return self.describe_buffer(queue, head + 1, status);
        }
        self.describe_buffer(queue, head, (header, 16, NEXT, head + 1));
        let data = GUEST + data as u64;
        self.describe_buffer(queue, head + 1, (data, len, NEXT | flags, head + 2));
        self.describe_buffer(queue, head + 2, status);
    }

    pub(crate) fn header_at(queue: u32, head: u16) -> usize {
        0x8_0000 + queue as usize * 0x1000 + usize::from(head) * 32
    }

    pub(crate) fn status(&self, queue: u32, head: u16) -> u8 {
        self.bytes(Machine::header_at(queue, head) + 16, 1)[0]
    }

    /// Waits for the next answer. Returns its head and length.
    pub(crate) fn answer(&mut self, queue: u32) -> (u16, u32) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let used = self.queues[queue as usize].used;
        while !self.has_answer(queue) {
            assert!(Instant::now() < deadline, "no answer");
            std::thread::yield_now();
        }
        let entry = self.bytes(Machine::used_at(queue, 4 + 8 * usize::from(used % SIZE)), 8);
        self.queues[queue as usize].used = used.wrapping_add(1);
        let [a, b, _, _, c, d, e, f] = entry[..] else { panic!("eight bytes") };
        (u16::from_le_bytes([a, b]), u32::from_le_bytes([c, d, e, f]))
    }

    /// Returns true if there is an answer that was not taken.
    pub(crate) fn has_answer(&self, queue: u32) -> bool {
        self.load(Machine::used_at(queue, 2)) != self.queues[queue as usize].used
    }

    /// Returns false if the server said that it looks by itself.
    pub(crate) fn wants_kicks(&self, queue: u32) -> bool {
        self.load(Machine::used_at(queue, 0)) & 1 == 0
    }

    /// Carries out one request at head 0. Returns its status.
    pub(crate) fn run(&mut self, queue: u32, command: (u32, u64), data: (usize, u32, u16)) -> u8 {
        self.request(queue, 0, command, data);
        self.offer(queue, 0);
        self.kick(queue);
        assert_eq!(self.answer(queue).0, 0);
        self.status(queue, 0)
    }

    /// Waits for an interrupt.
    pub(crate) fn wait_for_call(&self, queue: u32) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while (&self.queues[queue as usize].call).read(&mut [0; 8]).is_err() {
            assert!(Instant::now() < deadline, "no interrupt");
            std::thread::yield_now();
        }
    }
}
