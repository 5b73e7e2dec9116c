//! Machines that break the rules: each is cut off with a reason, and the next one is served.

use crate::machine::{BUFFERS, FEATURES, GUEST, INDIRECT, MEMORY, Machine, NEXT, SIZE, WRITE};
use crate::server::Served;
use crate::{FLUSH, OUT};

/// A machine with one queue does `evil`, and is cut off.
fn cut_off(served: &Served, evil: impl FnOnce(&mut Machine, u32)) -> String {
    let mut machine = Machine::new(&served.socket, FEATURES);
    let queue = machine.start();
    machine.request(queue, 0, (OUT, 0), (BUFFERS, 512, 0));
    evil(&mut machine, queue);
    machine.offer(queue, 0);
    machine.kick(queue);
    assert!(machine.is_closed());
    let end = served.end();
    let mut next = Machine::new(&served.socket, FEATURES);
    let queue = next.start();
    assert_eq!(next.run(queue, (FLUSH, 0), (0, 0, 0)), 0);
    drop(next);
    assert_eq!(served.end(), "the front-end disconnected");
    end
}

#[test]
fn rings_that_break_the_rules_end_the_connection() {
    let served = Served::new(1 << 20);
    let last = GUEST + MEMORY as u64;
    let table = GUEST + BUFFERS as u64;
    type Evil<'a> = Box<dyn FnOnce(&mut Machine, u32) + 'a>;
    let descriptor = |index, descriptor| -> Evil<'_> {
        Box::new(move |machine, queue| machine.describe_buffer(queue, index, descriptor))
    };
    let indirect = |inner, outer| -> Evil<'_> {
        Box::new(move |machine: &mut Machine, queue| {
            machine.put_descriptor(BUFFERS, inner);
            machine.describe_buffer(queue, 0, outer);
        })
    };
    let cases: Vec<(&str, Evil<'_>)> = vec![
        ("the descriptors of a request are a loop", descriptor(1, (GUEST, 512, NEXT, 0))),
        ("descriptor 64 of a table of 64", descriptor(1, (GUEST, 512, NEXT, SIZE))),
        ("are not in the memory of the guest", descriptor(0, (0, 16, NEXT, 1))),
        ("are not in the memory of the guest", descriptor(0, (last - 8, 16, NEXT, 1))),
        ("are not in the memory of the guest", descriptor(1, (last - 1, 512, NEXT, 2))),
        ("are not in the memory of the guest", descriptor(1, (u64::MAX, 512, NEXT, 2))),
        ("are not in the memory of the guest", descriptor(2, (last, 1, WRITE, 0))),
        ("are not in the memory of the guest", descriptor(2, (GUEST, u32::MAX, WRITE, 0))),
        ("without a header or room for its status", descriptor(0, (GUEST, 16, 0, 0))),
        ("without a header or room for its status", descriptor(0, (GUEST, 16, WRITE, 0))),
        ("a buffer to be read behind one", descriptor(1, (GUEST, 16, NEXT | WRITE, 0))),
        ("a table of descriptors of 24 bytes", descriptor(0, (table, 24, INDIRECT, 0))),
        ("a table of descriptors of 0 bytes", descriptor(0, (table, 0, INDIRECT, 0))),
        ("a table of descriptors of 4294967280", descriptor(0, (table, !15, INDIRECT, 0))),
        ("are not in the memory of the guest", descriptor(0, (u64::MAX, 32, INDIRECT, 0))),
        ("inside a table", descriptor(0, (table, 16, INDIRECT | NEXT, 1))),
        ("inside a table", indirect((table, 16, INDIRECT, 0), (table, 16, INDIRECT, 0))),
        ("are a loop", indirect((GUEST, 16, NEXT, 0), (table, 16, INDIRECT, 0))),
        ("descriptor 9 of a table of 1", indirect((GUEST, 16, NEXT, 9), (table, 16, INDIRECT, 0))),
        (
            "requests at once in a queue of 64",
            Box::new(|machine, queue| {
                (0..200).for_each(|_| machine.offer(queue, 0));
            }),
        ),
        ("descriptor 64 of a table of 64", Box::new(|machine, queue| machine.offer(queue, SIZE))),
        ("descriptor 65535", Box::new(|machine, queue| machine.offer(queue, u16::MAX))),
    ];
    let count = cases.len() as u64;
    for (why, evil) in cases {
        let end = cut_off(&served, evil);
        assert!(end.starts_with("queue 0: ") && end.contains(why), "{end:?}, not {why:?}");
    }
    assert_eq!(served.export.counts().protocol_errors, count);
}

#[test]
fn messages_that_break_the_rules_end_the_connection() {
    let served = Served::new(1 << 20);
    let file = || std::fs::File::open("/dev/zero").unwrap();
    let numbers = |values: &[u64]| values.iter().copied().flat_map(u64::to_ne_bytes).collect();
    let region = |guest, size, offset| numbers(&[1, guest, size, 1 << 40, offset]);
    // A number, a payload, and whether a descriptor comes with it.
    let cases: Vec<(&str, u32, Vec<u8>, bool)> = vec![
        ("message 0, which was not offered", 0, Vec::new(), false),
        ("message 28, which was not offered", 28, Vec::new(), false),
        ("message 1 with 3 bytes", 1, vec![0; 3], false),
        ("message 1 with 1 descriptors", 1, Vec::new(), true),
        ("message 9 with 0 bytes", 9, Vec::new(), false),
        ("message 5 with 0 descriptors", 5, region(0, 1 << 20, 0), false),
        ("a region of 0 bytes", 5, region(0, 0, 0), true),
        ("a region of 4096 bytes", 5, region(u64::MAX, 4096, 0), true),
        ("a region of 4096 bytes", 5, region(0, 4096, u64::MAX - 4095), true),
        ("a message about queue 77", 8, numbers(&[77]), false),
        ("a message about queue 4294967295", 11, numbers(&[0xffff_ffff]), false),
        ("queue 0: a descriptor for its kicks that is no eventfd", 12, numbers(&[0]), true),
        ("queue 0: no descriptor for its kicks", 12, numbers(&[0x100]), false),
        ("features 0x8000000000000000", 2, numbers(&[1 << 63]), false),
        ("notes of 65535 queues", 31, numbers(&[0, 0, 0xffff_ffff]), false),
        ("notes of 16 queues", 32, numbers(&[8, 0, 0x40_0010]), true),
        ("message 24 with", 24, [0u32, 9999, 0].map(u32::to_ne_bytes).concat(), false),
    ];
    for (why, number, body, has_fd) in cases {
        let machine = Machine::new(&served.socket, FEATURES);
        let zero = file();
        let fds = [std::os::fd::AsFd::as_fd(&zero)];
        machine.send(number, 1, &body, if has_fd { &fds } else { &[] });
        assert!(machine.is_closed());
        let end = served.end();
        assert!(end.contains(why), "{end:?}, not {why:?}");
    }
    for flags in [0, 2, 5] {
        let machine = Machine::new(&served.socket, FEATURES);
        machine.send(1, flags, &[], &[]);
        assert!(machine.is_closed() && served.end().starts_with("a message with the flags"));
    }
    // Rings outside the memory, of sizes that overflow, before the queue is started.
    for (size, user) in [(64, 0u64), (64, u64::MAX - 8), (63, 1 << 40), (1 << 31, 1 << 40)] {
        let mut machine = Machine::new(&served.socket, FEATURES);
        let queue = machine.describe(0);
        machine.tell(8, &[queue, size].map(u32::to_ne_bytes).concat(), &[]);
        machine.tell(9, &numbers(&[0, user, user, user, 0]), &[]);
        let kick = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        machine.send(18, 1, &[queue, 1].map(u32::to_ne_bytes).concat(), &[]);
        machine.send(12, 1, &numbers(&[0]), &[std::os::fd::AsFd::as_fd(&kick)]);
        assert!(machine.is_closed());
        assert!(served.end().starts_with("queue 0: "));
    }
    Machine::new(&served.socket, FEATURES);
}
