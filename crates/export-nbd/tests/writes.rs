//! Permits of writes that are under way, and the answer to a write that is carried out in parts.

mod client;

use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use braid_block::{Errno, Flags, Io, Limits, Op};
use braid_engine::{Dev, Device, Offered, Pending};
use braid_export_nbd::{Bounds, Overlaps, Server, Visitor};
use braid_mem::Pool;
use braid_nbd::client::encode_request;
use braid_nbd::protocol::{Command, ReplyStyle};
use braid_uring::{Config, Executor, Handle};

const SIZE: u64 = 1 << 20;
const EIO: u32 = 5;

/// A device that answers reads at once, and what modifies as its test has it do.
#[derive(Clone)]
struct Slow {
    handle: Handle,
    /// The request under way, of those that modify.
    asked: Rc<RefCell<Option<(Op, Flags)>>>,
    is_released: Rc<Cell<bool>>,
}

impl Device for Slow {
    fn limits(&self) -> Limits {
        Limits::new(SIZE, 512)
    }

    fn start(&self, io: Io) -> Pending {
        if io.op == Op::Read {
            return Pending::ready(io.complete(Ok(())));
        }
        self.asked.replace(Some((io.op, io.flags)));
        let this = self.clone();
        Pending::task(async move {
            wait(&this.handle, || this.is_released.take()).await;
            io.complete(Ok(()))
        })
    }
}

/// A device that answers at once, the first write with an error.
#[derive(Clone, Default)]
struct FailsOnce(Rc<Cell<usize>>);

impl Device for FailsOnce {
    fn limits(&self) -> Limits {
        Limits { immediate: true, ..Limits::new(SIZE, 512) }
    }

    fn start(&self, io: Io) -> Pending {
        self.0.set(self.0.get() + 1);
        let result = if self.0.get() == 1 { Err(Errno::IO) } else { Ok(()) };
        Pending::ready(io.complete(result))
    }
}

async fn wait(handle: &Handle, is_so: impl Fn() -> bool) {
    while !is_so() {
        handle.sleep(Duration::from_millis(1)).await;
    }
}

/// Asks for each of `commands` when the one before is answered; returns their errors.
fn ask(mut stream: UnixStream, commands: Vec<Command>) -> Vec<u32> {
    let negotiated = client::greet(&mut stream, ReplyStyle::Simple);
    let mut errors = Vec::new();
    for command in commands {
        let request = encode_request(negotiated.style.header_mode(), 1, &command).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        if let Command::Write { length, .. } = command {
            stream.write_all(&vec![1; length as usize]).unwrap();
        }
        let mut reply = [0; 16];
        stream.read_exact(&mut reply).unwrap();
        errors.push(u32::from_be_bytes(reply[4..8].try_into().unwrap()));
    }
    errors
}

/// Serves what is `offered` to a client that asks for `commands`.
fn serve(
    handle: &Handle,
    offered: &Offered,
    commands: Vec<Command>,
) -> (Server, JoinHandle<Vec<u32>>) {
    let (offered, pool) = (offered.clone(), Pool::new(4 << 20).unwrap());
    let overlaps = Overlaps::default();
    let server =
        Server::new(handle, offered, pool, "x", Bounds::default(), &overlaps, |_| {}).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    server.connect(OwnedFd::from(ours), Visitor::default());
    (server, std::thread::spawn(move || ask(theirs, commands)))
}

/// An order that locks the volume, or puts a cache in front of it, waits for the permits of the writes before.
#[test]
fn what_modifies_holds_a_permit_until_it_is_answered() {
    let executor = Executor::new(Config::default()).unwrap();
    let handle = executor.handle();
    let (asked, is_released) = Default::default();
    let slow = Slow { handle: handle.clone(), asked, is_released };
    let offered = Offered::from(Dev::new(slow.clone()));
    let (fua, no_hole, fast_zero) = (true, false, false);
    let (mut commands, mut expected) = (Vec::new(), Vec::new());
    // Whole blocks, and a part of one.
    for (offset, length) in [(0, 4096), (100, 50)] {
        commands.push(Command::Write { offset, length, fua });
        let length = length.into();
        commands.push(Command::WriteZeroes { offset, length, fua, no_hole, fast_zero });
        let zeroes = if offset == 0 { Op::WriteZeroes } else { Op::Write };
        expected.extend([Op::Write, zeroes].map(|op| (op, Flags::FUA)));
    }
    commands.push(Command::Trim { offset: 0, length: 4096, fua });
    expected.push((Op::Discard, Flags::FUA));
    let (_server, client) = serve(&handle, &offered, commands);
    let errors = executor.block_on(async move {
        for expected in expected {
            wait(&handle, || slow.asked.borrow().is_some()).await;
            assert_eq!(slow.asked.take(), Some(expected));
            assert!(!offered.is_quiet(), "{expected:?} is under way");
            slow.is_released.set(true);
        }
        wait(&handle, || offered.is_quiet() && client.is_finished()).await;
        client.join().unwrap()
    });
    assert_eq!(errors, [0; 5]);
}

#[test]
fn a_write_in_parts_fails_if_one_of_them_does() {
    let executor = Executor::new(Config::default()).unwrap();
    let (handle, device) = (executor.handle(), FailsOnce::default());
    let offered = Offered::from(Dev::new(device.clone()));
    let write = Command::Write { offset: 0, length: SIZE as u32, fua: false };
    let (_server, client) = serve(&handle, &offered, vec![write; 2]);
    let errors = executor.block_on(async move {
        wait(&handle, || client.is_finished()).await;
        client.join().unwrap()
    });
    assert_eq!(errors, [EIO, 0]);
    assert!(device.0.get() > 4, "{} parts of two writes", device.0.get());
}

/// It is locked when the client is there: the client was not told that the export is read-only.
#[test]
fn nothing_modifies_a_locked_volume() {
    const EPERM: u32 = 1;
    let executor = Executor::new(Config::default()).unwrap();
    let handle = executor.handle();
    let (asked, is_released) = Default::default();
    let slow = Slow { handle: handle.clone(), asked, is_released };
    let offered = Offered::from(Dev::new(slow.clone()));
    let (fua, no_hole, fast_zero) = (false, false, false);
    let mut commands = vec![Command::Flush, Command::Trim { offset: 0, length: 4096, fua }];
    for (offset, length) in [(0, 4096), (100, 50)] {
        commands.push(Command::Write { offset, length, fua });
        let length = length.into();
        commands.push(Command::WriteZeroes { offset, length, fua, no_hole, fast_zero });
    }
    let (_server, client) = serve(&handle, &offered, commands);
    let errors = executor.block_on(async move {
        wait(&handle, || slow.asked.borrow().is_some()).await;
        assert_eq!(slow.asked.take(), Some((Op::Flush, Flags::NONE)));
        offered.set_locked(true);
        slow.is_released.set(true);
        wait(&handle, || slow.asked.borrow().is_some() || client.is_finished()).await;
        assert_eq!(slow.asked.take(), None, "it reached the volume");
        client.join().unwrap()
    });
    assert_eq!(errors, [0, EPERM, EPERM, EPERM, EPERM, EPERM]);
}

#[test]
fn planted_faults_are_found() {
    braid_canary::hunt(braid_export_nbd::canary::Canary::ALL, file!());
}
