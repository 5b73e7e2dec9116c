//! Questions for block status may each take hundreds of system calls: a client that asks many at once leaves
//! others their turn between a few of them.

mod client;

use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::thread::JoinHandle;

use braid_block::{Io, Limits, Span};
use braid_engine::{Dev, Device, Extents, Pending};
use braid_export_nbd::{Bounds, Overlaps, Server, Visitor};
use braid_mem::Pool;
use braid_nbd::client::encode_request;
use braid_nbd::protocol::{Command, ReplyStyle};
use braid_uring::{Config, Executor, Fd, Interest};

const SIZE: u64 = 1 << 20;
const QUESTIONS: u64 = 200;

/// A device that counts what it is asked.
struct Asked(Rc<Cell<u64>>);

impl Device for Asked {
    fn limits(&self) -> Limits {
        Limits::new(SIZE, 512)
    }

    fn start(&self, io: Io) -> Pending {
        Pending::ready(io.complete(Ok(())))
    }

    fn extents(&self, span: Span) -> Extents {
        self.0.set(self.0.get() + 1);
        Extents::data(span.len)
    }
}

/// Goes through the handshake, asks everything at once, and takes all answers.
fn ask(mut stream: UnixStream) {
    let negotiated = client::greet(&mut stream, ReplyStyle::Structured);
    let command = Command::BlockStatus { offset: 0, length: SIZE, one_extent: false };
    let mode = negotiated.style.header_mode();
    let questions = (0..QUESTIONS)
        .flat_map(|cookie| encode_request(mode, cookie, &command).unwrap().as_bytes().to_vec());
    stream.write_all(&questions.collect::<Vec<u8>>()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    assert!(answers.len() as u64 >= QUESTIONS * 32, "{} bytes of answers", answers.len());
}

#[test]
fn questions_for_block_status_leave_others_their_turn() {
    let executor = Executor::new(Config::default()).unwrap();
    let handle = executor.handle();
    let asked = Rc::new(Cell::new(0));
    let (dev, pool) = (Dev::new(Asked(Rc::clone(&asked))), Pool::new(4 << 20).unwrap());
    let server =
        Server::new(&handle, dev, pool, "x", Bounds::default(), &Overlaps::default(), |_| {})
            .unwrap();
    let clients = [(); 3].map(|()| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        server.connect(OwnedFd::from(ours), Visitor::default());
        std::thread::spawn(move || ask(theirs))
    });
    // Something that can be read at any time: what is answered until this is heard of keeps others waiting.
    let (ready, mut other) = UnixStream::pair().unwrap();
    other.write_all(b"x").unwrap();
    let (ready, counted) = (Fd::new(OwnedFd::from(ready)), Rc::clone(&asked));
    let most = executor.block_on(async move {
        let mut most = 0;
        while !clients.iter().all(JoinHandle::is_finished) {
            let before = counted.get();
            handle.ready(&ready, Interest::Readable).await.unwrap();
            most = most.max(counted.get() - before);
        }
        clients.into_iter().for_each(|client| client.join().unwrap());
        most
    });
    assert_eq!(asked.get(), 3 * QUESTIONS);
    assert!(most <= 2, "{most} questions were answered while others waited");
}
