//! The export before a virtual machine of our own: requests, hostile rings, requests in flight over a restart.

mod hostile;
mod machine;
mod server;

use std::sync::{Arc, Mutex};

use braid_block::{Flags, Io, Limits, Op};
use braid_engine::{Dev, Device, Pending};
use machine::{BUFFERS, EVENT_IDX, FEATURES, GUEST, INDIRECT, Machine, NEXT, SIZE, WRITE};
use server::Served;

const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const GET_ID: u32 = 8;
const DISCARD: u32 = 11;
const ZEROES: u32 = 13;

/// Bytes that tell of their place.
fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed).collect()
}

/// A segment of a discard.
fn segment(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    let mut bytes = sector.to_le_bytes().to_vec();
    bytes.extend([sectors, flags].map(u32::to_le_bytes).concat());
    bytes
}

#[test]
fn each_request_does_what_the_standard_says() {
    let served = Served::new(1 << 20);
    for features in [FEATURES, FEATURES | EVENT_IDX] {
        let mut machine = Machine::new(&served.socket, features);
        assert_eq!(machine.config()[..8], (2048u64).to_le_bytes());
        let queue = machine.start();
        let (data, back) = (BUFFERS, BUFFERS + (1 << 20));
        let bytes = pattern(64 << 10, features as u8);
        machine.put_bytes(data, &bytes);
        assert_eq!(machine.run(queue, (OUT, 16), (data, 64 << 10, 0)), 0);
        assert_eq!(machine.run(queue, (FLUSH, 0), (0, 0, 0)), 0);
        assert_eq!(machine.run(queue, (IN, 16), (back, 64 << 10, WRITE)), 0);
        assert_eq!(machine.bytes(back, 64 << 10), bytes);
        machine.wait_for_call(queue);

        machine.put_bytes(data, &segment(16, 8, 1));
        assert_eq!(machine.run(queue, (ZEROES, 0), (data, 16, 0)), 0);
        machine.put_bytes(data, &segment(24, 8, 0));
        assert_eq!(machine.run(queue, (DISCARD, 0), (data, 16, 0)), 0);
        assert_eq!(machine.run(queue, (IN, 16), (back, 64 << 10, WRITE)), 0);
        assert_eq!(machine.bytes(back, 4096), [0; 4096]);
        assert_eq!(machine.bytes(back + 8192, 56 << 10), bytes[8192..]);

        assert_eq!(machine.run(queue, (GET_ID, 0), (back, 20, WRITE)), 0);
        assert_eq!(machine.bytes(back, 20), *b"disk\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");

        // Refused, and the queue goes on.
        assert_eq!(machine.run(queue, (OUT, 2048), (data, 512, 0)), 1, "beyond the end");
        assert_eq!(machine.run(queue, (OUT, u64::MAX), (data, 512, 0)), 1, "beyond all numbers");
        assert_eq!(machine.run(queue, (OUT, 0), (data, 100, 0)), 1, "no whole blocks");
        assert_eq!(machine.run(queue, (IN, 0), (data, 512, 0)), 1, "nowhere to read to");
        assert_eq!(machine.run(queue, (99, 0), (0, 0, 0)), 2, "no such request");
        machine.put_bytes(data, &segment(u64::MAX, u32::MAX, 0));
        assert_eq!(machine.run(queue, (DISCARD, 0), (data, 16, 0)), 1);
        assert_eq!(machine.run(queue, (IN, 0), (back, 512, WRITE)), 0);
        assert_eq!(machine.stop(queue), 14);
    }
    assert_eq!(served.export.counts().protocol_errors, 0);
}

/// Keeps what it is asked to change.
struct Witness(Arc<Mutex<Vec<(Op, Flags)>>>);

impl Device for Witness {
    fn limits(&self) -> Limits {
        Limits { discard: true, ..Limits::new(1 << 20, 512) }
    }

    fn start(&self, io: Io) -> Pending {
        self.0.lock().unwrap().push((io.op, io.flags));
        Pending::ready(io.complete(Ok(())))
    }
}

#[test]
fn writes_of_a_guest_that_cannot_flush_are_durable() {
    const CAN_FLUSH: u64 = 1 << 9;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let witness = Witness(Arc::clone(&asked));
    let served = Served::of(move || Dev::new(witness));
    for (features, durable) in [(FEATURES, Flags::NONE), (FEATURES & !CAN_FLUSH, Flags::FUA)] {
        let mut machine = Machine::new(&served.socket, features);
        let (queue, data) = (machine.start(), BUFFERS);
        assert_eq!(machine.run(queue, (OUT, 16), (data, 512, 0)), 0);
        for (kind, may_unmap) in [(ZEROES, 1), (ZEROES, 0), (DISCARD, 0)] {
            machine.put_bytes(data, &segment(16, 8, may_unmap));
            assert_eq!(machine.run(queue, (kind, 0), (data, 16, 0)), 0);
        }
        let expected = [
            (Op::Write, durable),
            (Op::WriteZeroes, durable),
            (Op::WriteZeroes, durable.union(Flags::NO_UNMAP)),
            (Op::Discard, durable),
        ];
        assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), expected);
        machine.stop(queue);
    }
}

#[test]
fn several_queues_indirect_tables_and_full_rings() {
    let served = Served::new(1 << 20);
    let mut machine = Machine::new(&served.socket, FEATURES | EVENT_IDX);
    let queues: Vec<u32> = (0..4).map(|_| machine.start()).collect();
    for round in 0..40u64 {
        for queue in &queues {
            for head in 0..SIZE / 4 {
                let data = BUFFERS + (*queue as usize * 64 + usize::from(head)) * 4096;
                let sector = (u64::from(*queue) * 16 + u64::from(head)) * 8;
                let index = head * 4;
                machine.put_bytes(data, &pattern(4096, sector as u8 ^ round as u8));
                machine.request(*queue, index, (OUT, sector), (data, 4096, 0));
                machine.offer(*queue, index);
            }
            machine.kick(*queue);
        }
        for queue in &queues {
            for _ in 0..SIZE / 4 {
                let (head, len) = machine.answer(*queue);
                assert_eq!((machine.status(*queue, head), len), (0, 1));
            }
        }
    }
    // Header and data in pieces that end anywhere, in a table of their own.
    let (table, parts) = (BUFFERS + (1 << 20), BUFFERS + (2 << 20));
    let mut header = [IN, 0].map(u32::to_le_bytes).concat();
    header.extend(8u64.to_le_bytes());
    machine.put_bytes(parts, &header);
    let at = |offset: u64| GUEST + parts as u64 + offset;
    let pieces = [
        (at(0), 5, NEXT, 1),
        (at(5), 11, NEXT, 2),
        (at(4096), 4095, NEXT | WRITE, 3),
        (at(8191), 2, NEXT | WRITE, 4),
    ];
    for (index, piece) in pieces.into_iter().enumerate() {
        machine.put_descriptor(table + 16 * index, piece);
    }
    // The last byte of it is the status.
    machine.put_descriptor(table + 64, (at(100), 0, WRITE, 0));
    machine.describe_buffer(0, 0, (GUEST + table as u64, 80, INDIRECT, 0));
    machine.offer(0, 0);
    machine.kick(0);
    assert_eq!(machine.answer(0), (0, 4097));
    assert_eq!(machine.bytes(parts + 4096, 4096), pattern(4096, 8 ^ 39));
    assert_eq!(machine.bytes(parts + 8192, 1), [0]);
}

#[test]
fn a_machine_is_told_of_another_size() {
    let served = Served::new(1 << 20);
    let mut machine = Machine::new(&served.socket, FEATURES);
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    machine.tell(21, &[], &[std::os::fd::AsFd::as_fd(&theirs)]);
    let queue = machine.start();
    assert_eq!(machine.run(queue, (FLUSH, 0), (0, 0, 0)), 0);
    served.export.change(braid_block::Limits::new(1 << 19, 512));
    let mut message = [0; 12];
    std::io::Read::read_exact(&mut &ours, &mut message).unwrap();
    assert_eq!(message, *[2u32, 1, 0].map(u32::to_ne_bytes).concat());
    assert_eq!(machine.config()[..8], (1024u64).to_le_bytes());
}

/// A server that has taken requests and is killed leaves notes, by which the next one carries out what was not answered.
#[test]
fn requests_in_flight_of_a_server_that_was_killed_are_carried_out_once() {
    let served = Served::new(1 << 20);
    let mut machine = Machine::new(&served.socket, FEATURES);
    let (info, notes) = machine.ask_for_notes();
    machine.tell(32, &info, &[std::os::fd::AsFd::as_fd(&notes)]);
    let queue = machine.start();
    assert_eq!(machine.run(queue, (FLUSH, 0), (0, 0, 0)), 0);
    let file = machine.file.try_clone().unwrap();
    drop(machine);

    // What a killed server leaves: heads 3 and 6 were taken, in this order, and 9 was answered before its note was taken
    // back.
    let notes_file = std::fs::File::from(notes.try_clone().unwrap());
    let put = |at: u64, bytes: &[u8]| {
        std::os::unix::fs::FileExt::write_all_at(&notes_file, bytes, at).unwrap();
    };
    for (head, counter) in [(3u64, 7u64), (6, 6), (9, 5)] {
        put(16 + 16 * head, &[1]);
        put(16 + 16 * head + 8, &counter.to_ne_bytes());
    }
    put(12, &9u16.to_ne_bytes());
    let mut machine = Machine::with(&served.socket, FEATURES, file);
    machine.tell(32, &info, &[std::os::fd::AsFd::as_fd(&notes)]);
    let queue = machine.describe(1);
    // The answer of 9.
    let mut entry = 9u32.to_le_bytes().to_vec();
    entry.extend(1u32.to_le_bytes());
    machine.put_bytes(Machine::used_at(queue, 4 + 8), &entry);
    machine.store(Machine::used_at(queue, 2), 2);
    for (head, seed) in [(9, 9), (6, 6), (3, 3)] {
        let data = BUFFERS + usize::from(head) * 4096;
        machine.put_bytes(data, &pattern(4096, seed));
        machine.request(queue, head, (OUT, u64::from(head) * 8), (data, 4096, 0));
        machine.offer(queue, head);
    }
    // One more that was not taken yet.
    machine.request(queue, 12, (FLUSH, 0), (0, 0, 0));
    machine.offer(queue, 12);
    machine.enable(queue);
    let heads: Vec<u16> = (0..4).map(|_| machine.answer(queue).0).collect();
    assert_eq!(heads, [9, 6, 3, 12], "that of before, then in their order");
    assert_eq!(machine.status(queue, 9), 0xee, "not carried out again");
    for head in [3, 6] {
        assert_eq!(machine.status(queue, head), 0);
        let back = BUFFERS + (1 << 20);
        assert_eq!(machine.run(queue, (IN, u64::from(head) * 8), (back, 4096, WRITE)), 0);
        assert_eq!(machine.bytes(back, 4096), pattern(4096, head as u8));
    }
    assert_eq!(machine.stop(queue), 7);
}

#[test]
fn planted_faults_are_found() {
    braid_canary::hunt(braid_export_vhost::canary::Canary::ALL, file!());
}
