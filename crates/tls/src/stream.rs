//! A stream inside TLS, over any other stream.
//!
//! ```text
//!   inner.receive ──▶ inbox (ciphertext) ──feed──▶ channel ──read──▶ the reader's buffer
//!   inner.try_send ◀── records of up to 16 KiB, many with one call ◀── channel ◀── parts of messages
//! ```
//!
//! Invariants
//! * The inbox is empty when the inner stream is asked for more, so that it has room.
//! * A send is complete when the inner stream has taken all of its records.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use braid_mem::Buf;
use braid_uring::Stream;

use crate::{Channel, Inbox};

struct State {
    channel: Channel,
    inbox: Inbox,
}

impl State {
    /// Decrypts as much as is there, and as `into` has room for. Returns the number of bytes, 0 at the connection's end, and
    /// `None` if nothing has come.
    fn fill(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let mut filled = 0;
        loop {
            match self.channel.read(&mut into[filled..]) {
                Ok(Some(0)) => return Ok(Some(filled)),
                Ok(Some(count)) => filled += count,
                Ok(None) if !self.inbox.has_unparsed() => return Ok((filled > 0).then_some(filled)),
                Ok(None) => {
                    let taken = self.channel.feed(self.inbox.bytes()).map_err(io::Error::other)?;
                    if taken == 0 {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    self.inbox.consume(taken);
                }
                Err(error) => return Err(error),
            }
            if filled == into.len() {
                return Ok(Some(filled));
            }
        }
    }

    /// Feeds received bytes up to the handshake's end: those of options behind it are left for the first receive.
    fn feed_handshake(&mut self) -> Result<(), String> {
        while self.inbox.has_unparsed() && self.channel.is_handshaking() {
            match self.channel.feed(self.inbox.bytes()) {
                Ok(0) => return Err("bytes behind the end of the connection".to_owned()),
                Ok(taken) => self.inbox.consume(taken),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// Why a handshake of TLS failed.
#[derive(Debug, thiserror::Error)]
pub enum ShakeError {
    /// The other side ended the connection.
    #[error("the connection ended in the handshake of TLS")]
    Ended,
    /// The other side is not accepted, or breaks the protocol.
    #[error("{0}")]
    Tls(String),
    /// The connection failed.
    #[error("{0}")]
    Failed(#[from] io::Error),
}

/// A connection inside TLS. Clones are the same connection.
pub struct Secure<S> {
    inner: S,
    state: Rc<RefCell<State>>,
}

impl<S: Clone> Clone for Secure<S> {
    fn clone(&self) -> Secure<S> {
        Secure { inner: self.inner.clone(), state: Rc::clone(&self.state) }
    }
}

impl<S: Stream> Secure<S> {
    /// Returns the connection of `channel` over `inner`, which receives ciphertext into `inbox`.
    pub fn new(inner: S, channel: Channel, inbox: Buf) -> Secure<S> {
        let inbox = Inbox::new(inbox);
        Secure { inner, state: Rc::new(RefCell::new(State { channel, inbox })) }
    }

    /// Carries out TLS's handshake. The caller limits its time.
    ///
    /// # Errors
    /// The other side ended the connection, is not accepted, or breaks the protocol; the connection failed.
    pub async fn shake(&self) -> Result<(), ShakeError> {
        loop {
            self.flush().await?;
            if !self.state.borrow().channel.is_handshaking() {
                return Ok(());
            }
            let receive = self.state.borrow_mut().inbox.receive(&self.inner);
            let (result, buf) = receive.await;
            let count = result?;
            let fed = {
                let mut state = self.state.borrow_mut();
                state.inbox.received(buf, count);
                if count == 0 {
                    return Err(ShakeError::Ended);
                }
                state.feed_handshake()
            };
            if let Err(error) = fed {
                // The alert says why; a client that is gone need not hear it.
                let _ = self.try_flush();
                return Err(ShakeError::Tls(error));
            }
        }
    }

    /// Returns the DNS names of the client's certificate.
    pub fn peer_names(&self) -> Vec<String> {
        self.state.borrow().channel.peer_names()
    }

    /// Tells the client that nothing more comes, if that can be sent at once.
    pub fn end(&self) {
        self.state.borrow_mut().channel.end();
        let _ = self.try_flush();
    }

    fn try_flush(&self) -> io::Result<()> {
        self.state.borrow_mut().channel.flush(|parts| self.inner.try_send(parts))
    }

    async fn flush(&self) -> io::Result<()> {
        loop {
            match self.try_flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.inner.writable().await?;
                }
                result => return result,
            }
        }
    }
}

/// A receive under way.
pub struct Receive<S: Stream> {
    secure: Secure<S>,
    buf: Option<Buf>,
    from: usize,
    inner: Option<S::Receive>,
}

impl<S: Stream> Future for Receive<S> {
    type Output = (io::Result<usize>, Buf);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Receive { secure, buf, from, inner } = self.get_mut();
        loop {
            if let Some(receive) = inner {
                let Poll::Ready((result, bytes)) = Pin::new(receive).poll(cx) else {
                    return Poll::Pending;
                };
                *inner = None;
                let count = result.as_ref().map_or(0, |count| *count);
                secure.state.borrow_mut().inbox.received(bytes, count);
                // The end of the connection, or its failure: NBD's messages tell whether it comes too early.
                if count == 0 {
                    return Poll::Ready((result, buf.take().expect("polled until it is ready")));
                }
            }
            let into = buf.as_mut().expect("polled until it is ready");
            let filled = secure.state.borrow_mut().fill(&mut into[*from..]);
            // Alerts, and the answer to a change of keys. They leave with the next reply if there is no room.
            if secure.state.borrow().channel.wants_write() {
                let _ = secure.try_flush();
            }
            match filled.transpose() {
                Some(result) => {
                    return Poll::Ready((result, buf.take().expect("it was there just now")));
                }
                None => *inner = Some(secure.state.borrow_mut().inbox.receive(&secure.inner)),
            }
        }
    }
}

impl<S: Stream> Stream for Secure<S> {
    type Receive = Receive<S>;

    fn receive(&self, buf: Buf, from: usize, _wait_first: bool) -> Receive<S> {
        Receive { secure: self.clone(), buf: Some(buf), from, inner: None }
    }

    fn receive_whole(&self, buf: Buf, from: usize) -> Receive<S> {
        self.receive(buf, from, false)
    }

    fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.state.borrow_mut().channel.send(parts, |records| self.inner.try_send(records))
    }

    fn writable(&self) -> impl Future<Output = io::Result<()>> + 'static {
        let inner = self.inner.clone();
        async move { inner.writable().await }
    }

    fn turn(&self) -> impl Future<Output = ()> + 'static {
        let inner = self.inner.clone();
        async move { inner.turn().await }
    }

    fn prefer_sleep(&self) {
        self.inner.prefer_sleep();
    }

    fn close(&self) {
        self.inner.close();
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        let inner = self.inner.clone();
        async move { inner.sleep(duration).await }
    }
}
