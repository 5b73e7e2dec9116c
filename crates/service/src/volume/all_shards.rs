//! All shards of a volume together: clients' writes kept out of every one, another device given to every
//! one; and its content, through the first.
//!
//! Invariant: every call ends, with an error where a shard does not answer in time.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use braid_block::{Flags, Io, Span};
use braid_engine::Dev;
use braid_engine::redundant::Redundant;
use braid_mem::Pool;
use braid_member::Member;
use braid_uring::{Handle, Remote};

use super::shard::{self, Local};

/// Time limit for writes in flight to complete, and for a piece to be read or written.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between two looks at the writes in flight.
const RETRY: Duration = Duration::from_millis(1);

/// Pieces of which a RAM disk knows whether they were written, in bytes.
const GRANULE: u64 = 64 << 10;

/// A piece of content: where, how long, and its bytes; none for a hole.
pub(super) type Piece = (u64, usize, Option<Vec<u8>>);

pub(super) struct AllShards {
    remotes: Vec<Remote>,
}

impl AllShards {
    pub(super) fn new(remotes: Vec<Remote>) -> AllShards {
        AllShards { remotes }
    }

    /// Lets no writes of clients in, or lets them again.
    pub(super) fn set_locked(&self, locked: bool) {
        for remote in &self.remotes {
            shard::call(remote, move |_, local| local.front.offered().set_locked(locked));
        }
    }

    /// Lets no more writes of clients in, and waits until those under way are answered.
    pub(super) fn lock_and_wait(&self) -> io::Result<()> {
        self.on_each(|handle, local, done| {
            let (handle, offered) = (handle.clone(), local.front.offered().clone());
            offered.set_locked(true);
            handle.clone().spawn(async move {
                while !offered.is_quiet() {
                    handle.sleep(RETRY).await;
                }
                send(&done, ());
            });
        })
        .map(drop)
    }

    /// Has no pass of an array run, and waits until none does; how far they got is recorded.
    pub(super) fn hold_passes(&self) -> io::Result<()> {
        let held = self.on_each(|handle, local, done| {
            let arrays: Vec<Redundant> = local.arrays.iter().map(|one| one.array.clone()).collect();
            handle.spawn(async move {
                let mut result = Ok(());
                for array in arrays {
                    let held = array.hold_passes().await;
                    result = result.and(held.map_err(io::Error::other));
                }
                send(&done, result);
            });
        });
        held?.into_iter().collect()
    }

    /// Lets passes go on where they were.
    pub(super) fn let_passes_go_on(&self) {
        for remote in &self.remotes {
            shard::call(remote, |_, local| {
                local.arrays.iter().for_each(|one| one.array.let_passes_go_on());
            });
        }
    }

    /// Offers the RAM disk `leaf`, which was resized, with the size that it has now.
    pub(super) fn exchange(&self, leaf: &Arc<Member>) -> io::Result<()> {
        let leaf = Arc::clone(leaf);
        let done = self.on_each(move |handle, local, done| {
            let exchanged =
                leaf.device(handle, &local.pool).map(|dev| drop(local.front.exchange(dev)));
            send(&done, exchanged);
        });
        done?.into_iter().collect()
    }

    /// Returns true if any of the first `size` bytes is not in a hole.
    pub(super) fn has_data(&self, size: u64) -> io::Result<bool> {
        self.on_first(move |_, local, done| {
            let dev = local.front.dev();
            let mut offset = 0;
            while offset < size {
                let rest = Span::new(offset, size - offset);
                let extents = dev.extents(rest).without_asking(rest.len);
                if extents.iter().any(|extent| !extent.zero) {
                    return send(&done, Ok(true));
                }
                offset += extents.iter().map(|extent| extent.len).sum::<u64>();
            }
            send(&done, Ok(false));
        })
    }

    /// Returns the end of the data between the bytes `from` and `size` of a RAM disk; `None` if there are none. Zeroes
    /// in a granule that was written are data, but not in the granule that `from` cuts.
    pub(super) fn data_end(&self, from: u64, size: u64) -> io::Result<Option<u64>> {
        if from >= size {
            return Ok(None);
        }
        let whole = from.next_multiple_of(GRANULE).min(size);
        let end = self.on_first(move |_, local, done| {
            let (dev, mut offset, mut end) = (local.front.dev(), whole, None);
            while offset < size {
                let rest = Span::new(offset, size - offset);
                for extent in dev.extents(rest).without_asking(rest.len) {
                    offset += extent.len;
                    end = if extent.zero { end } else { Some(offset) };
                }
            }
            send(&done, Ok(end));
        })?;
        if end.is_some() || from == whole {
            return Ok(end);
        }
        let cut = self.read(from, (whole - from) as usize)?.unwrap_or_default();
        Ok(cut.iter().rposition(|byte| *byte != 0).map(|last| from + last as u64 + 1))
    }

    /// Reads a piece of the volume; none if it is a hole.
    pub(super) fn read(&self, offset: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
        self.on_first(move |handle, local, done| {
            let (dev, pool) = (local.front.dev(), local.pool.clone());
            let span = Span::new(offset, len as u64);
            handle.spawn(async move { send(&done, read(&dev, &pool, span).await) });
        })
    }

    /// Writes pieces of the volume; what has no bytes becomes a hole.
    pub(super) fn write(&self, pieces: Vec<Piece>) -> io::Result<()> {
        self.on_first(move |handle, local, done| {
            let (dev, pool) = (local.front.dev(), local.pool.clone());
            handle.spawn(async move {
                let mut result = Ok(());
                for (offset, len, bytes) in pieces {
                    let io = match bytes {
                        None => Io::write_zeroes(Span::new(offset, len as u64), Flags::NONE),
                        Some(bytes) => {
                            let mut buf = pool.get_wait(len).await;
                            buf.copy_from_slice(&bytes);
                            Io::write(offset, buf, Flags::NONE)
                        }
                    };
                    result = result.and(dev.start(io).await.result);
                }
                send(&done, result.map_err(io::Error::from));
            });
        })
    }

    /// Makes durable what was written.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.on_first(|handle, local, done| {
            let dev = local.front.dev();
            handle.spawn(async move {
                let flushed = dev.start(Io::flush()).await.result;
                send(&done, flushed.map_err(io::Error::from));
            });
        })
    }

    /// Calls `f` on the first shard, and returns the value that `f` sends.
    fn on_first<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Handle, &Local, Sender<io::Result<T>>) + Send + 'static,
    ) -> io::Result<T> {
        let (send, receive) = channel();
        shard::call(&self.remotes[0], move |handle, local| f(handle, local, send));
        receive.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(late()))
    }

    /// Calls `f` on every shard, and returns the values that `f` sends.
    fn on_each<T: Send + 'static>(
        &self,
        f: impl Fn(&Handle, &Local, Sender<T>) + Clone + Send + 'static,
    ) -> io::Result<Vec<T>> {
        let (send, receive) = channel();
        for remote in &self.remotes {
            let (f, send) = (f.clone(), send.clone());
            shard::call(remote, move |handle, local| f(handle, local, send));
        }
        drop(send);
        let deadline = Instant::now() + PATIENCE;
        let answer = |_| {
            let left = deadline.saturating_duration_since(Instant::now());
            receive.recv_timeout(left).map_err(|_| late())
        };
        (0..self.remotes.len()).map(answer).collect()
    }
}

fn late() -> io::Error {
    let text = format!("what is under way was not done within {} s", PATIENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

async fn read(dev: &Dev, pool: &Pool, span: Span) -> io::Result<Option<Vec<u8>>> {
    let extents = dev.extents(span).await;
    if let [extent] = &extents[..]
        && extent.zero
        && extent.len == span.len
    {
        return Ok(None);
    }
    let buf = pool.get_wait(span.len as usize).await;
    let completion = dev.start(Io::read(span.offset, buf)).await;
    completion.result?;
    let mut bytes = Vec::with_capacity(span.len as usize);
    completion.payload.bufs().iter().for_each(|buf| bytes.extend_from_slice(buf));
    Ok(Some(bytes))
}

fn send<T>(to: &Sender<T>, value: T) {
    // The receiver may have given up.
    let _ = to.send(value);
}
