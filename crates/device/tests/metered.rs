//! A leaf that does not answer: the results of its requests, and the time of the next request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_block::{Completion, Errno, Flags, Io, Limits};
use braid_device::{Deadline, Metered, Stopwatch, Tally};
use braid_engine::{Dev, Device, Pending};
use braid_mem::Pool;
use braid_uring::{Config, Executor, ExecutorClock, Failures, Handle};

const LIMIT: Duration = Duration::from_millis(400);

/// A medium, and what it does with its requests.
#[derive(Default)]
struct Medium {
    hangs: Cell<bool>,
    /// Number of requests that found the medium hanging.
    waits: Cell<u64>,
    /// Received requests, and answered ones.
    asked: RefCell<Vec<u64>>,
    answered: RefCell<Vec<u64>>,
}

struct Stubborn {
    medium: Rc<Medium>,
    handle: Handle,
}

impl Device for Stubborn {
    fn limits(&self) -> Limits {
        Limits::new(1 << 20, 512)
    }

    fn start(&self, io: Io) -> Pending {
        let (medium, handle) = (Rc::clone(&self.medium), self.handle.clone());
        medium.asked.borrow_mut().push(io.span.offset);
        Pending::task(async move {
            handle.sleep(Duration::from_millis(1)).await;
            while medium.hangs.get() {
                medium.waits.set(medium.waits.get() + 1);
                handle.sleep(Duration::from_millis(1)).await;
            }
            medium.answered.borrow_mut().push(io.span.offset);
            io.complete(Ok(()))
        })
    }
}

struct World {
    dev: Dev,
    medium: Rc<Medium>,
    tally: Tally,
    failures: Arc<Failures>,
    pool: Pool,
    handle: Handle,
}

impl World {
    fn write(&self, offset: u64) -> Pending {
        let mut buf = self.pool.get(512).expect("memory");
        buf.fill(7);
        self.dev.start(Io::write(offset, buf, Flags::NONE))
    }

    fn read(&self, offset: u64) -> Pending {
        self.dev.start(Io::read(offset, self.pool.get(1024).expect("memory")))
    }
}

fn in_a_world<F: Future<Output = ()> + 'static>(
    deadline: Option<Duration>,
    f: impl FnOnce(World) -> F,
) {
    let executor = Executor::new(Config::default()).expect("an executor");
    let handle = executor.handle();
    let medium = Rc::<Medium>::default();
    let (tally, failures) = (Tally::default(), Arc::<Failures>::default());
    let deadline = deadline.map(|limit| Deadline { limit, failures: Arc::clone(&failures) });
    let device = Stubborn { medium: Rc::clone(&medium), handle: handle.clone() };
    let tasks = Rc::new(ExecutorClock::new(&handle));
    let dev = Dev::new(Metered::new(device, "a", &tally, tasks, deadline));
    let pool = Pool::new(1 << 20).expect("memory");
    executor.block_on(f(World { dev, medium, tally, failures, pool, handle }));
}

#[test]
fn what_is_answered_in_time_is_counted() {
    in_a_world(Some(LIMIT), |world| async move {
        let (write, read) = (world.write(512), world.read(0));
        assert_eq!(world.tally.read().in_flight, 2);
        assert_eq!((write.await.result, read.await.result), (Ok(()), Ok(())));
        assert_eq!(world.dev.start(Io::flush()).await.result, Ok(()));
        let counted = world.tally.read();
        assert_eq!((counted.read_bytes, counted.written_bytes), (1024, 512));
        assert_eq!((counted.in_flight, counted.overdue, counted.timeouts), (0, 0, 0));
        for times in [&counted.reads, &counted.writes, &counted.flushes] {
            assert_eq!(times.count, 1);
            assert!(times.sum_us >= 1_000, "{times:?}");
        }
    });
}

#[test]
fn devices_that_are_offered_one_after_the_other_count_together() {
    in_a_world(None, |world| async move {
        let tally = Tally::default();
        let watch = Stopwatch::new(&tally, Rc::new(ExecutorClock::new(&world.handle)));
        let (before, after) = (watch.in_front_of(world.dev.clone()), watch.in_front_of(world.dev));
        let mut buf = world.pool.get(512).expect("memory");
        buf.fill(7);
        let write = before.start(Io::write(0, buf, Flags::NONE));
        let read = after.start(Io::read(0, world.pool.get(512).expect("memory")));
        assert_eq!(tally.read().in_flight, 2);
        assert_eq!((write.await.result, read.await.result), (Ok(()), Ok(())));
        assert_eq!(before.start(Io::flush()).await.result, Ok(()));
        let counted = tally.read();
        assert_eq!(counted.in_flight, 0);
        for times in [&counted.reads, &counted.writes, &counted.flushes] {
            assert_eq!(times.count, 1);
            assert!(times.sum_us >= 1_000, "{times:?}");
        }
        // What the volume asks for itself is no client's.
        assert_eq!(world.tally.read().reads.count, 1);
    });
}

#[test]
fn all_that_is_under_way_is_answered_and_nothing_more_is_asked_until_the_medium_is_through() {
    in_a_world(Some(LIMIT), |world| async move {
        let World { medium, tally, handle, .. } = &world;
        medium.hangs.set(true);
        let start = Instant::now();
        let (write, read) = (world.write(512), world.read(1024));
        let completions = braid_engine::join_all(vec![write, read]).await;
        assert!(start.elapsed() >= LIMIT, "{:?}", start.elapsed());
        let lens = completions.iter().map(|Completion { result, payload }| {
            assert_eq!(*result, Err(Errno::TIMEDOUT));
            payload.len()
        });
        assert_eq!(lens.collect::<Vec<_>>(), [512, 1024], "memory in place of what the medium has");
        let counted = tally.read();
        assert_eq!((counted.in_flight, counted.overdue, counted.timeouts), (2, 2, 2));
        // A write that lands late must not land on this one.
        assert_eq!(world.write(512).await.result, Err(Errno::TIMEDOUT));
        assert_eq!(*medium.asked.borrow(), [512, 1024]);
        assert_eq!(world.failures.count(), 3);
        medium.hangs.set(false);
        while tally.read().overdue > 0 {
            handle.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(medium.answered.borrow().len(), 2, "it is asked again before it is through");
        assert_eq!(world.write(2048).await.result, Ok(()));
        assert_eq!(tally.read().in_flight, 0);
    });
}

/// The process stands still, as a machine that is suspended does: the medium may have stood still with it.
#[test]
fn time_in_which_the_process_stood_still_does_not_count() {
    in_a_world(Some(LIMIT), |world| async move {
        let World { medium, handle, .. } = &world;
        medium.hangs.set(true);
        let write = world.write(0);
        let (freed, timer) = (Rc::clone(medium), handle.clone());
        handle.spawn(async move {
            timer.sleep(Duration::from_millis(5)).await;
            std::thread::sleep(3 * LIMIT);
            timer.sleep(LIMIT / 8).await;
            freed.hangs.set(false);
        });
        assert_eq!(write.await.result, Ok(()));
        assert_eq!(medium.asked.borrow().len(), 1);
    });
}

#[test]
fn without_a_deadline_it_is_waited_for() {
    in_a_world(None, |world| async move {
        let World { medium, handle, .. } = &world;
        medium.hangs.set(true);
        let write = world.write(512);
        let (hangs, sleeper) = (Rc::clone(medium), handle.clone());
        handle.spawn(async move {
            // Time is tested here: a deadline would have passed.
            sleeper.sleep(LIMIT * 2).await;
            hangs.hangs.set(false);
        });
        assert_eq!(write.await.result, Ok(()));
    });
}

#[test]
fn what_nobody_waits_for_is_under_way_until_the_medium_is_through() {
    in_a_world(None, |world| async move {
        let World { medium, tally, handle, .. } = &world;
        medium.hangs.set(true);
        drop(world.write(512));
        while medium.waits.get() < 2 {
            handle.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(tally.read().in_flight, 1);
        medium.hangs.set(false);
        while tally.read().in_flight > 0 {
            handle.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(*medium.answered.borrow(), [512]);
    });
}

#[test]
fn whoever_is_slow_to_ask_gets_what_the_medium_answered() {
    in_a_world(Some(LIMIT), |world| async move {
        let (mut write, late) = (Box::pin(world.write(512)), world.handle.clone());
        // Polled once, as by a task that has other work.
        std::future::poll_fn(|cx| {
            let _ = write.as_mut().poll(cx);
            std::task::Poll::Ready(())
        })
        .await;
        // Time is tested here: the deadline passes.
        late.sleep(LIMIT * 2).await;
        assert_eq!(write.await.result, Ok(()));
        assert_eq!(world.tally.read().timeouts, 0);
    });
}

#[test]
fn planted_faults_are_found() {
    braid_canary::hunt(braid_device::canary::Canary::ALL, file!());
}
