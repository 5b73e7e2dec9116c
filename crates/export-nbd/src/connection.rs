//! One connection from its first byte to its last: the handshake, then the session.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_engine::{Dev, Offered};
use braid_mem::{Buf, Pool};
use braid_nbd::handshake::{Admission, Handshake, HandshakeError, Policy, StartTls, Step};
use braid_nbd::protocol::constants::MAX_PAYLOAD_BYTES;
use braid_nbd::protocol::{BlockSize, ExportError, ExportInfo, Exports, Negotiated};
use braid_tls::{Access, Inbox, Secure};

use crate::counters::Counters;
use crate::end::End;
use crate::overlaps::{Lane, Overlaps};
use crate::secure::Lock;
use crate::session::{Parts, Session};
use crate::stop::Stop;
use braid_uring::Stream;

/// The limits of a new connection: its handshake's policy and time, and its eviction for a later one.
pub struct Door {
    policy: Policy,
    limit: Duration,
    closed: Stop,
    is_through: Cell<bool>,
    /// Since when nothing of it is under way; in the handshake since it came.
    idle: Rc<Cell<Option<Instant>>>,
    peer: Option<Peer>,
    read_only: bool,
    is_told: bool,
    lock: Option<Rc<Lock>>,
}

impl Door {
    /// One that is open for `limit`.
    pub fn new(policy: Policy, limit: Duration) -> Door {
        let idle = Rc::new(Cell::new(Some(Instant::now())));
        Door {
            policy,
            limit,
            closed: Stop::default(),
            is_through: Cell::new(false),
            idle,
            peer: None,
            read_only: false,
            is_told: false,
            lock: None,
        }
    }

    /// The same for the client `peer`.
    pub fn of(self, peer: Option<Peer>) -> Door {
        Door { peer, ..self }
    }

    /// The same for a client that may only read, if `read_only`.
    pub(crate) fn limited(self, read_only: bool) -> Door {
        Door { read_only, ..self }
    }

    /// The same for a client that is told of the export's changes, if `is_told`.
    pub(crate) fn told(self, is_told: bool) -> Door {
        Door { is_told, ..self }
    }

    /// The same with TLS, if `lock` is there, which the client must use if it is `required`.
    pub(crate) fn locked(self, lock: Option<Rc<Lock>>, required: bool) -> Door {
        let starttls = match (&lock, required) {
            (None, _) => self.policy.starttls,
            (Some(_), false) => StartTls::Offered,
            (Some(_), true) => StartTls::Required,
        };
        Door { policy: Policy { starttls, ..self.policy }, lock, ..self }
    }

    /// For tests: the same, of which nothing has been under way since `since`.
    #[cfg(test)]
    pub(crate) fn been(self, since: Option<Instant>, is_through: bool) -> Door {
        Door { idle: Rc::new(Cell::new(since)), is_through: Cell::new(is_through), ..self }
    }

    /// The client, unless it came by a Unix socket that only its owner can open.
    pub fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// Ends the connection, when what is under way is answered.
    pub fn close(&self) {
        self.closed.raise();
    }

    /// Returns true if it was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.is_raised()
    }

    /// Returns the time for which the client has had no request in flight at `now`, if so; in its handshake,
    /// the time since its start.
    pub fn idle_for(&self, now: Instant) -> Option<Duration> {
        self.idle.get().map(|since| now.saturating_duration_since(since))
    }

    /// Returns true if the handshake is over.
    pub fn is_through(&self) -> bool {
        self.is_through.get()
    }
}

/// A client whose connections are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The machine at an address.
    Machine(IpAddr),
    /// A user of this machine.
    User(u32),
}

/// A device as an export of NBD: what all of its connections have in common.
#[derive(Clone)]
pub struct Export {
    offered: Offered,
    pool: Pool,
    name: Arc<str>,
    stall: Duration,
    stop: Stop,
    counters: Arc<Counters>,
    lane: Lane,
    /// Requests must be of whole blocks.
    whole_blocks: bool,
    /// Longest payload, in bytes.
    payload: u32,
}

impl Export {
    /// Exports `offered` under the name `name`; payloads come from `pool`; `stall` limits a client's handshake,
    /// and its wait for the next byte of a request.
    ///
    /// # Errors
    /// A device that NBD cannot describe.
    pub fn new(
        offered: impl Into<Offered>,
        pool: Pool,
        name: &str,
        stall: Duration,
    ) -> Result<Export, ExportError> {
        let (stop, counters) = (Stop::default(), Arc::default());
        let (offered, name) = (offered.into(), name.into());
        let (lane, whole_blocks, payload) = (Overlaps::default().lane(), false, MAX_PAYLOAD_BYTES);
        let export =
            Export { offered, pool, name, stall, stop, counters, lane, whole_blocks, payload };
        export.exports()?;
        Ok(export)
    }

    /// The same beside the exports of other shards, to which `overlaps` belongs, too.
    pub(crate) fn beside(self, overlaps: &Overlaps) -> Export {
        Export { lane: overlaps.lane(), ..self }
    }

    /// The same without requests for parts of blocks.
    pub(crate) fn of_whole_blocks(self) -> Export {
        Export { whole_blocks: true, ..self }
    }

    /// The same with requests of at most `payload` bytes, in whole mebibytes of which there is at least one.
    pub(crate) fn of_payloads(self, payload: usize) -> Export {
        let payload = u32::try_from(payload).unwrap_or(MAX_PAYLOAD_BYTES).min(MAX_PAYLOAD_BYTES);
        Export { payload: (payload >> 20 << 20).max(1 << 20), ..self }
    }

    fn info(&self) -> ExportInfo {
        let mut info = export_of(&self.offered.limits(), &self.name);
        info.block_size.maximum_payload = info.block_size.maximum_payload.min(self.payload);
        if self.whole_blocks {
            info.block_size.minimum = self.offered.limits().logical_block;
        }
        info
    }

    /// Returns the exports for a new client.
    pub(crate) fn exports(&self) -> Result<Exports, ExportError> {
        Exports::new(vec![self.info()])
    }

    /// Raised, no connection takes more requests.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Returns the counters of all connections.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Serves one connection, which receives into `inbox`, to its end.
    pub async fn serve<S: Stream>(&self, stream: S, inbox: Buf) -> End {
        self.serve_by(&Door::new(Policy::default(), self.stall), stream, inbox).await
    }

    /// The same, for one that comes in by `door`.
    pub async fn serve_by<S: Stream>(&self, door: &Door, stream: S, inbox: Buf) -> End {
        self.serve_into(door, stream, Inbox::new(inbox)).await
    }

    /// The same with an inbox that may grow.
    pub(crate) async fn serve_into<S: Stream>(
        &self,
        door: &Door,
        stream: S,
        mut inbox: Inbox,
    ) -> End {
        // What the client hears of in the handshake is what it has for as long as it is there, unless it is told of changes.
        let (dev, changes) = (self.offered.dev(), self.offered.changes());
        let mut info = self.info();
        info.read_only |= door.read_only;
        let opened = {
            let mut limit = pin!(stream.sleep(door.limit));
            let mut closed = pin!(door.closed.wait());
            let mut stopped = pin!(self.stop.wait());
            let mut open = pin!(open(door, info, stream, &mut inbox));
            poll_fn(|cx| {
                if let Poll::Ready(result) = open.as_mut().poll(cx) {
                    return Poll::Ready(result);
                }
                if stopped.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(End::Stopped));
                }
                if closed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(End::GaveWay));
                }
                limit.as_mut().poll(cx).map(|()| Err(End::Stalled(door.limit)))
            })
            .await
        };
        match opened {
            Ok(Opened::Plain(stream, accepted)) => {
                let parts = self.parts(door, stream, (dev, changes), accepted);
                Session::new(parts, inbox).await
            }
            Ok(Opened::Secure(stream, accepted)) => {
                let parts = self.parts(door, stream.clone(), (dev, changes), accepted);
                let end = Session::new(parts, inbox).await;
                stream.end();
                end
            }
            Err(end) => end,
        }
    }

    fn parts<S: Stream>(
        &self,
        door: &Door,
        stream: S,
        (dev, changes): (Dev, u64),
        Accepted { info, negotiated }: Accepted,
    ) -> Parts<S> {
        door.is_through.set(true);
        Parts {
            stream,
            dev,
            changes,
            offered: self.offered.clone(),
            lane: self.lane.clone(),
            pool: self.pool.clone(),
            export: Arc::new(info),
            is_told: door.is_told,
            negotiated,
            stall_limit: self.stall,
            stop: self.stop.clone(),
            closed: door.closed.clone(),
            idle: Rc::clone(&door.idle),
            counters: Arc::clone(&self.counters),
        }
    }
}

/// A handshake's result.
struct Accepted {
    info: ExportInfo,
    negotiated: Negotiated,
}

/// A connection that is through its handshake.
enum Opened<S: Stream> {
    Plain(S, Accepted),
    Secure(Secure<S>, Accepted),
}

/// The handshake, and that of TLS within it, up to the first request.
async fn open<S: Stream>(
    door: &Door,
    mut info: ExportInfo,
    stream: S,
    inbox: &mut Inbox,
) -> Result<Opened<S>, End> {
    let exports = |info: &ExportInfo| match Exports::new(vec![info.clone()]) {
        Ok(exports) => Ok(Arc::new(exports)),
        Err(error) => Err(End::Failed(io::Error::new(io::ErrorKind::InvalidInput, error))),
    };
    let mut handshake = Handshake::new(exports(&info)?, door.policy);
    let greeting = handshake.greeting().to_vec();
    let negotiated = negotiate(&mut handshake, greeting, &stream, inbox).await?;
    let (None, Some(lock)) = (&negotiated, &door.lock) else {
        // Without a lock, TLS is never agreed on.
        let negotiated = negotiated.ok_or(End::Truncated)?;
        return Ok(Opened::Plain(stream, Accepted { info, negotiated }));
    };
    let secure = lock.accept(stream).await?;
    let access = lock.security.clients.access(&secure.peer_names());
    info.read_only |= access == Access::Read;
    let policy = match access {
        Access::None => Policy { admission: Admission::Forbidden, list: false, ..door.policy },
        Access::Read | Access::Write => door.policy,
    };
    let mut handshake = handshake.secured(exports(&info)?, policy);
    match negotiate(&mut handshake, Vec::new(), &secure, inbox).await? {
        Some(negotiated) => Ok(Opened::Secure(secure, Accepted { info, negotiated })),
        // Inside TLS it is not started again.
        None => Err(End::Truncated),
    }
}

/// Sends `answer`, then takes options up to the first request, or to the start of TLS (`None`).
async fn negotiate<S: Stream>(
    handshake: &mut Handshake,
    mut answer: Vec<u8>,
    stream: &S,
    inbox: &mut Inbox,
) -> Result<Option<Negotiated>, End> {
    // An option may be longer than the inbox: they are collected here.
    let mut input = Vec::new();
    loop {
        send_all(stream, &answer).await?;
        answer.clear();
        let (result, buf) = inbox.receive(stream).await;
        let count = *result.as_ref().unwrap_or(&0);
        inbox.received(buf, count);
        result?;
        match count {
            0 if input.is_empty() => return Err(End::Disconnected),
            0 => return Err(End::Truncated),
            _ => {}
        }
        input.extend_from_slice(inbox.bytes());
        inbox.consume(inbox.bytes().len());
        let progress = handshake.advance(&input, &mut answer);
        input.drain(..progress.consumed);
        match progress.step {
            Step::NeedMore { .. } => {}
            Step::StartTls if input.is_empty() => {
                send_all(stream, &answer).await?;
                return Ok(None);
            }
            Step::StartTls => {
                let bytes = input.len();
                return Err(End::Handshake(HandshakeError::BytesBeforeTls { bytes }));
            }
            Step::Transmission(negotiated) => {
                send_all(stream, &answer).await?;
                inbox.put_back(&input);
                return Ok(Some(negotiated));
            }
            Step::Aborted => {
                // The client may have gone already: it said that it would.
                let _ = send_all(stream, &answer).await;
                return Err(End::Disconnected);
            }
            Step::Fatal(error) => return Err(End::Handshake(error)),
        }
    }
}

async fn send_all<S: Stream>(stream: &S, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_send(&[io::IoSlice::new(bytes)]) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns NBD's description of a device.
fn export_of(limits: &Limits, name: &str) -> ExportInfo {
    let preferred = limits.physical_block.max(4096).next_power_of_two();
    ExportInfo {
        read_only: limits.read_only,
        can_trim: limits.discard,
        can_cache: true,
        rotational: limits.rotational,
        block_size: BlockSize {
            // Parts of blocks are read and written by whole ones.
            minimum: 1,
            preferred: preferred.min(1 << 20),
            ..BlockSize::default()
        },
        ..ExportInfo::new(name, limits.size)
    }
}
