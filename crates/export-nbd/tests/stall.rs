//! A client that falls silent inside a request is cut off after the limit; one that is idle
//! between two requests is not, until another one needs its place.

use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use braid_device::Ram;
use braid_engine::Dev;
use braid_export_nbd::{Bounds, End, Overlaps, Server, Visitor};
use braid_mem::Pool;
use braid_uring::{Config, Executor, Mode};

/// Fixed newstyle, no zeroes, and the default export by its name.
const HELLO: &[u8] = b"\x00\x00\x00\x03IHAVEOPT\x00\x00\x00\x01\x00\x00\x00\x00";
/// A read of 512 bytes at 0 with the cookie "ABCDEFGH".
const READ: &[u8] = b"\x25\x60\x95\x13\x00\x00\x00\x00ABCDEFGH\
    \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00";

/// Connects to the server and takes the handshake's answers.
fn greet(mut stream: UnixStream) -> UnixStream {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(HELLO).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

fn on(mode: Mode) {
    let Ok(executor) = Executor::new(Config { mode, ..Config::default() }) else {
        println!("skipped {mode:?}: this machine forbids it");
        return;
    };
    let handle = executor.handle();
    let pool = Pool::new(4 << 20).unwrap();
    let dev = Dev::new(Ram::new(1 << 20).unwrap().device());
    let bounds = Bounds { connections: 4, stall: Duration::from_millis(600), ..Bounds::default() };
    let server =
        Server::new(&handle, dev, pool, "ram", bounds, &Overlaps::default(), |_| {}).unwrap();
    let pairs = [(); 2].map(|()| UnixStream::pair().unwrap());
    let [idle, silent] = pairs.map(|(ours, theirs)| {
        server.connect(OwnedFd::from(ours), Visitor::default());
        theirs
    });
    let clients = std::thread::spawn(move || {
        let (mut idle, mut silent) = (greet(idle), greet(silent));
        silent.write_all(&READ[..10]).unwrap();
        assert_eq!(silent.read(&mut [0; 1]).unwrap(), 0, "the connection is closed");
        // Idle for longer than the limit by now.
        idle.write_all(READ).unwrap();
        let mut reply = [1; 16 + 512];
        idle.read_exact(&mut reply).unwrap();
        assert_eq!(&reply[8..16], b"ABCDEFGH");
        assert_eq!(reply[16..], [0; 512]);
    });
    let counters = server.counters();
    executor.block_on(async move {
        while !clients.is_finished() {
            handle.sleep(Duration::from_millis(10)).await;
        }
        clients.join().unwrap();
    });
    assert_eq!(counters.read().protocol_errors, 1);
}

#[test]
fn silence_inside_a_request_ends_the_connection_and_idleness_does_not() {
    on(Mode::Uring);
    on(Mode::Threads);
}

/// A client that is idle keeps its place until others need it.
#[test]
fn idle_clients_give_way_when_there_is_no_room() {
    for mode in [Mode::Uring, Mode::Threads] {
        let Ok(executor) = Executor::new(Config { mode, ..Config::default() }) else {
            println!("skipped {mode:?}: this machine forbids it");
            continue;
        };
        let handle = executor.handle();
        let pool = Pool::new(4 << 20).unwrap();
        let dev = Dev::new(Ram::new(1 << 20).unwrap().device());
        let idle = Duration::from_millis(300);
        let bounds = Bounds { connections: 2, idle, ..Bounds::default() };
        let closed = Rc::new(Cell::new(0));
        let count = Rc::clone(&closed);
        let on_end = move |end: &End| count.set(count.get() + u32::from(matches!(end, End::Idle)));
        let server =
            Server::new(&handle, dev, pool, "ram", bounds, &Overlaps::default(), on_end).unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let connect = move || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            send.send(OwnedFd::from(ours)).unwrap();
            theirs
        };
        let clients = std::thread::spawn(move || {
            let (mut oldest, mut second) = (greet(connect()), greet(connect()));
            // The third waits until the oldest has been idle for so long.
            let mut third = greet(connect());
            assert_eq!(oldest.read(&mut [0; 1]).unwrap(), 0, "the oldest is closed");
            for client in [&mut second, &mut third] {
                client.write_all(READ).unwrap();
                client.read_exact(&mut [1; 16 + 512]).unwrap();
            }
        });
        let counters = server.counters();
        executor.block_on(async move {
            while !clients.is_finished() {
                receive.try_iter().for_each(|fd| server.connect(fd, Visitor::default()));
                handle.sleep(Duration::from_millis(10)).await;
            }
            clients.join().unwrap();
        });
        assert_eq!((counters.read().protocol_errors, closed.get()), (0, 1));
    }
}
