//! Shards that have the first one serve: a cache that comes while several serve a volume is on the first, and what
//! is asked of the others crosses over to it.
//!
//! ```text
//!   client of another shard ──▶ its Offered ──▶ Bridge ╌╌bytes╌╌▶ the first shard's Front ──▶ Cache ──▶ origin
//!                                                      ◀╌╌bytes╌╌
//! ```
//!
//! Invariants
//! * A write that crossed holds a permit of the first shard: a wait for earlier writes there includes these writes.
//! * A request that was started is carried out, whether its client is there to hear of it or not.
//! * While a shard follows the first, connections that it is given go on to the first.
//!
//! Deliberately absent: buffers that cross. They are their shard's, so that none needs a lock; the bytes are copied
//! once on either side. New connections have nothing of it.

use braid_block::{Errno, Extent, Flags, Io, Limits, Op, Payload, Span};
use braid_engine::{Dev, Device, Extents, Pending, WritePermit};
use braid_mem::Pool;
use braid_uring::Remote;
use tokio::sync::oneshot;

use super::front::{Front, answered};
use super::shard::{self, Local};
use crate::canary::Canary;

/// The shards of a volume beside the first, as the first reaches them.
#[derive(Clone)]
pub(super) struct Others {
    first: Remote,
    others: Vec<Remote>,
}

impl Others {
    /// Returns the handle for all shards of a volume, which has at least one.
    pub(super) fn new(shards: &[Remote]) -> Others {
        let (first, others) = shards.split_first().expect("a volume has a shard");
        Others { first: first.clone(), others: others.to_vec() }
    }

    /// Has all of them follow the first, and waits until what they wrote before is answered.
    pub(super) async fn follow(&self, limits: Limits) {
        let follow = |other| {
            let (done, waiting) = oneshot::channel();
            let first = self.first.clone();
            shard::call(other, move |handle, local| {
                let bridge = Dev::new(Bridge { first: first.clone(), limits });
                let earlier = local.following.begin(&local.front, first, bridge);
                let handle_of_wait = handle.clone();
                handle.spawn(async move {
                    if let Some(earlier) = earlier
                        && !Canary::FollowsAtOnce.is_planted()
                    {
                        answered(&handle_of_wait, &earlier).await;
                    }
                    // The order may have been given up.
                    let _ = done.send(());
                });
            });
            waiting
        };
        let waiting: Vec<oneshot::Receiver<()>> = self.others.iter().map(follow).collect();
        for one in waiting {
            // One that has ended writes nothing.
            let _ = one.await;
        }
    }

    /// Has all of them serve by themselves again. The first serves the origin itself by now.
    pub(super) fn leave(&self) {
        for other in &self.others {
            shard::call(other, |_, local| local.following.end(&local.front));
        }
    }
}

/// The volume, as the first shard serves it.
struct Bridge {
    first: Remote,
    limits: Limits,
}

impl Device for Bridge {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self, io: Io) -> Pending {
        cross(&self.first, io, |local| {
            let front = local.front.clone();
            move |io| serve(&front, io)
        })
    }

    fn extents(&self, span: Span) -> Extents {
        let first = self.first.clone();
        Extents::asked(async move {
            let (send, receive) = oneshot::channel();
            shard::call(&first, move |handle, local| {
                let dev = local.front.dev();
                handle.spawn(async move {
                    // The client may be gone.
                    let _ = send.send(dev.extents(span).await);
                });
            });
            // There is no answer once the first shard has ended.
            receive.await.unwrap_or_else(|_| vec![Extent::data(span.len)])
        })
    }
}

/// Starts a request on the device that exports offer.
fn serve(front: &Front, io: Io) -> Started {
    // At once, as exports do it: a permit of before an exchange for a write to what is there after it would have
    // each wait for the other where write-back mode begins.
    let has_permit = io.op.is_modifying() && !Canary::CrossedWithoutPermit.is_planted();
    let permit = has_permit.then(|| front.offered().permit());
    (permit, front.dev().start(io))
}

/// A request that was started on the first shard, with its permit there if it needs one.
pub(super) type Started = (Option<WritePermit>, Pending);

/// Carries `io` over to the first shard. `target` is called there, and what it returns starts the request.
pub(super) fn cross<S: FnOnce(Io) -> Started + 'static>(
    first: &Remote,
    mut io: Io,
    target: impl FnOnce(&Local) -> S + Send + 'static,
) -> Pending {
    let (send, receive) = oneshot::channel();
    let crossing = Crossing::of(&io);
    shard::call(first, move |handle, local| {
        let (start, pool) = (target(local), local.pool.clone());
        handle.spawn(async move {
            let answer = crossing.carry_out(start, &pool).await;
            // The client may be gone.
            let _ = send.send(answer);
        });
    });
    Pending::task(async move {
        // There is no answer once the first shard has ended.
        let answer = receive.await.unwrap_or(Err(Errno::SHUTDOWN));
        let result = answer.map(|bytes| {
            let mut rest = &bytes[..];
            if io.op == Op::Read {
                for buf in io.payload.bufs_mut() {
                    let (part, behind) = rest.split_at(buf.len());
                    buf.copy_from_slice(part);
                    rest = behind;
                }
            }
        });
        io.complete(result)
    })
}

/// A request on its way to the first shard.
struct Crossing {
    op: Op,
    span: Span,
    flags: Flags,
    /// Returns the crossing of a write.
    bytes: Vec<u8>,
}

impl Crossing {
    fn of(io: &Io) -> Crossing {
        let bytes = if io.op == Op::Write { io.payload.to_vec() } else { Vec::new() };
        let flags = if Canary::CrossedFlagsLost.is_planted() { Flags::NONE } else { io.flags };
        Crossing { op: io.op, span: io.span, flags, bytes }
    }

    /// Carries it out on the first shard; answers what was read.
    async fn carry_out(
        self,
        start: impl FnOnce(Io) -> Started,
        pool: &Pool,
    ) -> Result<Vec<u8>, Errno> {
        let Crossing { op, span, flags, bytes } = self;
        let mut payload = Payload::None;
        if op.has_data() {
            let len = usize::try_from(span.len).map_err(|_| Errno::INVAL)?;
            let mut buf = pool.get_wait(len).await;
            if op == Op::Write {
                buf.copy_from_slice(&bytes);
            }
            payload = Payload::One(buf);
        }
        let (permit, pending) = start(Io { op, span, flags, payload });
        let _permit = permit.filter(|_| !Canary::PermitGivenBackEarly.is_planted());
        let done = pending.await;
        done.result.map(|()| if op == Op::Read { done.payload.to_vec() } else { Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{OnceCell, RefCell};
    use std::pin::{Pin, pin};
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use braid_uring::Handle;

    use super::*;
    use crate::volume::front::tests::Steps;
    use crate::volume::shard::tests::Serving;

    /// Keeps what it is asked for, and whether a permit was held then.
    #[derive(Clone, Default)]
    struct Witness {
        front: Rc<OnceCell<Front>>,
        asked: Rc<RefCell<Vec<(Op, Flags, bool)>>>,
    }

    impl Device for Witness {
        fn limits(&self) -> Limits {
            Limits::new(1 << 20, 512)
        }

        fn start(&self, io: Io) -> Pending {
            let is_held = !self.front.get().expect("it is served").offered().is_quiet();
            self.asked.borrow_mut().push((io.op, io.flags, is_held));
            Pending::ready(io.complete(Ok(())))
        }
    }

    #[test]
    fn what_crosses_keeps_its_flags_and_writes_hold_a_permit() {
        let (witness, pool) = (Witness::default(), Pool::new(1 << 20).expect("memory"));
        let front = Front::new(Dev::new(witness.clone()), None, Steps::default());
        assert!(witness.front.set(front.clone()).is_ok());
        let memory = || pool.get(512).expect("memory");
        let no_unmap = Flags::FUA.union(Flags::NO_UNMAP);
        for io in [
            Io::read(0, memory()),
            Io::write(0, memory(), Flags::FUA),
            Io::write_zeroes(Span::new(0, 512), no_unmap),
            Io::discard(Span::new(0, 512), Flags::NONE),
            Io::flush(),
        ] {
            let mut crossing = pin!(Crossing::of(&io).carry_out(|io| serve(&front, io), &pool));
            let answer = crossing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let read = if io.op == Op::Read { 512 } else { 0 };
            assert!(matches!(answer, Poll::Ready(Ok(bytes)) if bytes.len() == read));
        }
        let expected = [
            (Op::Read, Flags::NONE, false),
            (Op::Write, Flags::FUA, true),
            (Op::WriteZeroes, no_unmap, true),
            (Op::Discard, Flags::NONE, true),
            (Op::Flush, Flags::NONE, false),
        ];
        assert_eq!(*witness.asked.borrow(), expected);
    }

    /// A device that is asked, and fails when it may.
    #[derive(Clone, Default)]
    struct Slow {
        is_asked: Arc<AtomicBool>,
        is_free: Arc<AtomicBool>,
    }

    impl Slow {
        fn shard(&self) -> Serving {
            let this = self.clone();
            Serving::new(move |handle| Dev::new(SlowOn(this, handle.clone())))
        }
    }

    struct SlowOn(Slow, Handle);

    impl Device for SlowOn {
        fn limits(&self) -> Limits {
            Limits::new(1 << 20, 512)
        }

        fn start(&self, io: Io) -> Pending {
            let (Slow { is_asked, is_free }, handle) = (self.0.clone(), self.1.clone());
            is_asked.store(true, Ordering::Release);
            Pending::task(async move {
                while !is_free.load(Ordering::Acquire) {
                    handle.sleep(Duration::from_millis(1)).await;
                }
                io.complete(Err(Errno::IO))
            })
        }
    }

    fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Turns of a shard, after which what it was to do is done, or waits.
    const TURNS: usize = 10;

    /// ```text
    ///   another shard   |-- write, to the origin itself ----------|
    ///   the first               |-- write-back is to begin: waits-|-- begins
    /// ```
    #[test]
    fn a_shard_follows_when_the_writes_before_are_answered() {
        let slow = Slow::default();
        let (first, other) = (Slow::default().shard(), slow.shard());
        other.on(|handle, local| {
            let permit = local.front.offered().permit();
            let write = local.front.dev().start(Io::discard(Span::new(0, 512), Flags::NONE));
            handle.spawn(async move {
                drop(write.await);
                drop(permit);
            });
        });
        let others = Others::new(&[first.remote.clone(), other.remote.clone()]);
        let mut follow = pin!(others.follow(Limits::new(1 << 20, 512)));
        assert!(poll(follow.as_mut()).is_pending());
        for _ in 0..TURNS {
            assert!(other.on(|_, local| local.following.first().is_some()));
        }
        assert!(poll(follow.as_mut()).is_pending(), "a write of before is under way");
        slow.is_free.store(true, Ordering::Release);
        while poll(follow.as_mut()).is_pending() {
            other.on(|_, _| ());
        }
    }

    #[test]
    fn what_crossed_is_answered_and_lets_its_permit_go_when_it_is_done() {
        let slow = Slow::default();
        let first = slow.shard();
        let is_quiet = || first.on(|_, local| local.front.offered().is_quiet());
        let bridge = Bridge { first: first.remote.clone(), limits: Limits::new(1 << 20, 512) };
        let memory = Pool::new(4096).expect("memory").get(512).expect("memory");
        let mut write = pin!(Dev::new(bridge).start(Io::write(0, memory, Flags::FUA)));
        while !slow.is_asked.load(Ordering::Acquire) {
            first.on(|_, _| ());
        }
        for _ in 0..TURNS {
            assert!(!is_quiet(), "its permit is gone while it is under way");
        }
        assert!(poll(write.as_mut()).is_pending(), "it is answered while it is under way");
        slow.is_free.store(true, Ordering::Release);
        let done = loop {
            if let Poll::Ready(done) = poll(write.as_mut()) {
                break done;
            }
            first.on(|_, _| ());
        };
        assert_eq!(done.result, Err(Errno::IO));
        assert!(is_quiet());
    }
}
