//! A connection from its first byte to its last: any bytes as all that a client sends, to the real
//! server over a pipe, on a small disk that answers at once, late, or with errors.
//!
//! ```text
//!   data │ settings, dice │ handshake │ requests …            one input is one connection
//!                             │            │
//!        expectation: what a plain reading of these bytes comes to: the greeting and the answers of
//!        the handshake, one reply for each request, the disk's bytes, why the connection ended
//! ```
//!
//! Asserted: the connection ends by itself, whatever comes and in whatever pieces; the disk sees only
//! what it has; each request that came whole has exactly one reply, with the data of the moment at
//! which it was asked; nothing else is sent; all memory comes back.
//!
//! Absent on purpose: the clock (no time limit ever passes), a volume that goes down, and a client
//! that does not read.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use braid_engine::Dev;
use braid_mem::{Buf, Pool};

use super::disk::{Dice, Disk, Settings, Shared};
use super::expect::expect;
use crate::connection::Export;
use crate::end::End;
use braid_uring::Stream;

/// Bytes of memory for all requests: fewer than may be asked for at once.
const MEMORY: usize = 96 << 10;

/// Any bytes as one connection: two of settings, then what the client sends.
pub fn fuzz_session(data: &[u8]) {
    let Some((&[bits, dice], input)) = data.split_first_chunk() else {
        return;
    };
    let settings = Settings::new(bits, dice);
    thread_local!(static POOL: Pool = Pool::new(MEMORY).expect("memory for a small pool"));
    POOL.with(|pool| {
        assert_eq!(pool.free_bytes(), MEMORY, "memory of an earlier connection is missing");
        serve(settings, input, pool);
        assert_eq!(pool.free_bytes(), MEMORY, "memory of this connection is missing");
    });
}

fn serve(settings: Settings, input: &[u8], pool: &Pool) {
    let disk = Rc::new(Disk::new(settings));
    let dev = Dev::new(Shared(Rc::clone(&disk)));
    let export = Export::new(dev, pool.clone(), "v0", Duration::from_secs(10));
    let mut export = export.expect("a device that NBD can describe");
    if settings.is_strange() {
        export = export.of_whole_blocks();
    }
    let expected = expect(&export, &Disk::new(settings), input);
    let pipe = Pipe(Rc::new(Bytes {
        input: input.to_vec(),
        received: Cell::new(0),
        output: RefCell::default(),
        dice: Dice::new(settings.dice),
        pieces: settings.pieces,
    }));
    let inbox = pool.get(if settings.pieces { 4096 } else { 16 << 10 }).expect("a fresh pool");
    let end = run(export.serve(pipe.clone(), inbox), input.len());
    expected.assert_met(&end, &pipe.0.output.borrow(), settings);
    assert!(*disk.bytes.borrow() == expected.contents, "the disk holds something else");
}

/// Polls as often as it is woken, which is a bounded number of times.
fn run(connection: impl Future<Output = End>, bytes: usize) -> End {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let mut connection = pin!(connection);
    let mut turns = 0_u64;
    while woken.0.swap(false, Ordering::Relaxed) {
        if let Poll::Ready(end) = connection.as_mut().poll(&mut cx) {
            return end;
        }
        turns += 1;
        // A request has at least 28 bytes, its reply not much more than the disk, a turn a byte or four.
        assert!(turns < 10_000 + bytes as u64 * 4096, "a connection without an end");
    }
    panic!("the connection waits for nothing that comes");
}

/// The server's end of the connection.
#[derive(Clone)]
struct Pipe(Rc<Bytes>);

struct Bytes {
    input: Vec<u8>,
    received: Cell<usize>,
    output: RefCell<Vec<u8>>,
    dice: Dice,
    pieces: bool,
}

impl Bytes {
    /// Returns true at a moment at which nothing moves.
    fn waits(&self) -> bool {
        self.pieces && self.dice.below(4) == 0
    }

    /// Returns the number of bytes, at most `most`, that move at once.
    fn piece(&self, most: usize) -> usize {
        match self.pieces && most > 0 {
            true if self.dice.below(2) == 0 => 1 + self.dice.below(most.min(40)),
            true => 1 + self.dice.below(most),
            false => most,
        }
    }
}

struct Receiving {
    pipe: Pipe,
    buf: Option<Buf>,
    from: usize,
}

impl Future for Receiving {
    type Output = (io::Result<usize>, Buf);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let bytes = Rc::clone(&self.pipe.0);
        if bytes.waits() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let from = self.from;
        let mut buf = self.buf.take().expect("polled until it is ready");
        let left = &bytes.input[bytes.received.get()..];
        assert!(from < buf.len(), "room to receive");
        let count = bytes.piece(left.len().min(buf.len() - from));
        buf[from..from + count].copy_from_slice(&left[..count]);
        bytes.received.set(bytes.received.get() + count);
        Poll::Ready((Ok(count), buf))
    }
}

impl Stream for Pipe {
    type Receive = Receiving;

    fn receive(&self, buf: Buf, from: usize, _wait_first: bool) -> Receiving {
        Receiving { pipe: self.clone(), buf: Some(buf), from }
    }

    fn receive_whole(&self, buf: Buf, from: usize) -> Receiving {
        self.receive(buf, from, false)
    }

    fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.0.waits() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let whole: usize = parts.iter().map(|part| part.len()).sum();
        let count = self.0.piece(whole);
        let mut left = count;
        for part in parts {
            let taken = left.min(part.len());
            self.0.output.borrow_mut().extend_from_slice(&part[..taken]);
            left -= taken;
        }
        Ok(count)
    }

    fn writable(&self) -> impl Future<Output = io::Result<()>> + 'static {
        let mut waited = false;
        std::future::poll_fn(move |cx| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(Ok(()));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    fn sleep(&self, _duration: Duration) -> impl Future<Output = ()> + 'static {
        std::future::pending()
    }
}
