//! The entry point for fuzzers: bytes as a message, or as the memory of a guest with a virtqueue in it. A panic is a
//! broken promise.
//!
//! ```text
//!   first byte even   | request 1 | descriptors 1 | payload … |
//!   first byte odd    the memory of a guest: descriptors at 0, the available ring at 1 KiB, the used ring at 2 KiB
//! ```
//!
//! Absent on purpose: sockets, and the device. What a machine of our own does to them is `tests/guest`.

use std::fs::File;

use braid_block::Limits;

use crate::data::copy_out;
use crate::memory::{Memory, RegionInfo};
use crate::message::{HEADER, Header, Message};
use crate::request::{self, Lengths, MOST_DATA, SEGMENT};
use crate::ring::{Addresses, Chain, Ring, total};

/// Memory of the guest, in bytes.
const MEMORY: usize = 8 << 10;
/// Descriptors of the queue.
const SIZE: u16 = 16;
/// Its address in the guest: descriptors reach it with few bytes that are not 0.
const GUEST: u64 = 0x100;

thread_local! {
    static GUESTS: Memory = guest();
}

fn guest() -> Memory {
    let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::CLOEXEC)
        .expect("a file in memory can be made");
    rustix::fs::ftruncate(&fd, MEMORY as u64).expect("its length can be set");
    let info = RegionInfo { guest: GUEST, size: MEMORY as u64, user: 0, offset: 0 };
    Memory::map([(info, File::from(fd))]).expect("it can be mapped")
}

/// Takes any bytes.
///
/// # Panics
/// If a promise is broken.
pub fn fuzz(data: &[u8]) {
    match data.split_first() {
        Some((first, rest)) if first % 2 == 0 => fuzz_message(rest),
        Some((_, rest)) => GUESTS.with(|memory| fuzz_ring(memory, rest)),
        None => {}
    }
}

fn fuzz_message(data: &[u8]) {
    if let Some(header) = data.first_chunk::<HEADER>()
        && let Ok(header) = Header::parse(*header)
    {
        // A payload that was not refused is received.
        assert!(header.len <= crate::message::MOST_PAYLOAD);
    }
    if let [request, fds, body @ ..] = data {
        let message = Message::parse((*request).into(), body, (*fds).into());
        if let Ok(Message::SetMemory(regions)) = message {
            assert!(
                regions.len() == usize::from(*fds) && regions.len() <= crate::message::MOST_FDS
            );
        }
    }
}

fn fuzz_ring(memory: &Memory, data: &[u8]) {
    let mut image = [0; MEMORY];
    image.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
    memory.write(GUEST, &image).expect("it is all there");
    let addresses = Addresses { descriptors: 0, available: 1 << 10, used: 2 << 10 };
    let has_events = data.first().is_some_and(|byte| byte & 1 != 0);
    let ring = Ring::new(memory, SIZE.into(), addresses, 0, has_events);
    let mut ring = ring.expect("a ring inside the memory");
    let limits = Limits::new(1 << 20, 512);
    let mut chain = Chain::default();
    for _ in 0..ring.waiting().unwrap_or(0) {
        let Ok(head) = ring.take() else { return };
        assert!(head < SIZE);
        if ring.collect(memory, head, &mut chain).is_err() {
            return;
        }
        let (given, wanted) = (total(&chain.readable), total(&chain.writable));
        let mut header = [0; request::HEADER];
        if given < header.len() as u64 || wanted == 0 {
            return;
        }
        if copy_out(memory, &chain.readable, 0, &mut header).is_err() {
            return;
        }
        let lengths = Lengths { given: given - header.len() as u64, wanted: wanted - 1 };
        let segment = || {
            let mut segment = [0; SEGMENT];
            let from = request::HEADER as u64;
            copy_out(memory, &chain.readable, from, &mut segment).ok().map(|()| segment)
        };
        if let Ok(command) = request::check(header, lengths, &limits, segment) {
            check_command(command, &limits);
        }
        ring.answer(head, 1).expect("the ring is in the memory");
    }
    ring.must_tell().expect("the ring is in the memory");
}

/// Checks that a command lies on the device, which panics otherwise.
fn check_command(command: request::Command, limits: &Limits) {
    use request::Command;
    let (span, has_data) = match command {
        Command::Read(span) | Command::Write(span) => (span, true),
        Command::Discard(span) | Command::Zeroes { span, .. } => (span, false),
        Command::Flush | Command::Id => return,
    };
    assert!(span.is_within(limits.size) && span.is_aligned(limits.logical_block), "{span}");
    assert!(!has_data || span.len <= MOST_DATA, "{span}");
}
