//! A connection without a socket: bytes both ways, in pieces of random length.
//!
//! ```text
//!   client's end ──bytes──▶ half ──▶ server's end       each half is woken by the other; an end that
//!                ◀── half ◀──bytes──                    is closed ends both directions
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Read};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use braid_export_nbd::Stream;
use braid_mem::Buf;

use crate::{Handle, Rng};

/// Bytes that one direction holds; more than any load has under way.
const ROOM: usize = 4 << 20;

#[derive(Default)]
struct Half {
    bytes: VecDeque<u8>,
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// One end of a connection; clones are the same end.
#[derive(Clone)]
pub(crate) struct Pipe {
    handle: Handle,
    rng: Rc<RefCell<Rng>>,
    incoming: Rc<RefCell<Half>>,
    outgoing: Rc<RefCell<Half>>,
}

impl Pipe {
    /// Both ends of a connection.
    pub(crate) fn pair(handle: &Handle) -> (Pipe, Pipe) {
        let [there, back] = [Rc::<RefCell<Half>>::default(), Rc::default()];
        let rng = Rc::new(RefCell::new(handle.fork_rng()));
        let end = |incoming: &Rc<RefCell<Half>>, outgoing: &Rc<RefCell<Half>>| Pipe {
            handle: handle.clone(),
            rng: Rc::clone(&rng),
            incoming: Rc::clone(incoming),
            outgoing: Rc::clone(outgoing),
        };
        (end(&back, &there), end(&there, &back))
    }

    /// Ends both directions; what was sent can still be received.
    pub(crate) fn close(&self) {
        for half in [&self.incoming, &self.outgoing] {
            let (reader, writer) = {
                let mut half = half.borrow_mut();
                half.closed = true;
                (half.reader.take(), half.writer.take())
            };
            reader.into_iter().chain(writer).for_each(Waker::wake);
        }
    }

    /// Ends both directions, and loses what was sent and not received.
    pub(crate) fn cut(&self) {
        self.incoming.borrow_mut().bytes.clear();
        self.outgoing.borrow_mut().bytes.clear();
        self.close();
    }

    /// Sends all of `bytes`.
    ///
    /// # Errors
    /// The other side has gone.
    pub(crate) async fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_send(&[IoSlice::new(bytes)]) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Receives what is there behind `into`, at least a byte; 0 if the other side has ended.
    pub(crate) async fn receive_some(&self, into: &mut Vec<u8>) -> usize {
        poll_fn(|cx| {
            let mut half = self.incoming.borrow_mut();
            if half.bytes.is_empty() {
                if half.closed {
                    return Poll::Ready(0);
                }
                half.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let count = half.bytes.len();
            into.extend(half.bytes.drain(..));
            let writer = half.writer.take();
            drop(half);
            writer.into_iter().for_each(Waker::wake);
            Poll::Ready(count)
        })
        .await
    }

    /// The number of bytes, of `most`, that go at once.
    fn piece(&self, most: usize) -> usize {
        let mut rng = self.rng.borrow_mut();
        if rng.percent(20) { rng.within(1..=most as u64) as usize } else { most }
    }
}

/// A receive under way.
pub(crate) struct Receiving {
    pipe: Pipe,
    buf: Option<Buf>,
    from: usize,
}

impl Future for Receiving {
    type Output = (io::Result<usize>, Buf);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut half = this.pipe.incoming.borrow_mut();
        if half.bytes.is_empty() && !half.closed {
            half.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let mut buf = this.buf.take().expect("polled until it is ready");
        let count = match half.bytes.len().min(buf.len() - this.from) {
            0 => 0,
            most => this.pipe.piece(most),
        };
        half.bytes.read_exact(&mut buf[this.from..this.from + count]).expect("counted");
        let writer = half.writer.take();
        drop(half);
        writer.into_iter().for_each(Waker::wake);
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
        let mut half = self.outgoing.borrow_mut();
        if half.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let wanted: usize = parts.iter().map(|part| part.len()).sum();
        let most = wanted.min(ROOM - half.bytes.len());
        if most == 0 && wanted > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = if most == 0 { 0 } else { self.piece(most) };
        let mut left = count;
        for part in parts {
            let taken = left.min(part.len());
            half.bytes.extend(&part[..taken]);
            left -= taken;
        }
        let reader = half.reader.take();
        drop(half);
        reader.into_iter().for_each(Waker::wake);
        Ok(count)
    }

    fn writable(&self) -> impl Future<Output = io::Result<()>> + 'static {
        let half = Rc::clone(&self.outgoing);
        poll_fn(move |cx| {
            let mut half = half.borrow_mut();
            if half.closed || half.bytes.len() < ROOM {
                return Poll::Ready(Ok(()));
            }
            half.writer = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    fn close(&self) {
        Pipe::close(self);
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        let handle = self.handle.clone();
        async move { handle.sleep(duration.as_nanos() as u64).await }
    }
}
