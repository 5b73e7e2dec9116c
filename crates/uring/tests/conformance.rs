//! The duties of every driver: the same tests on io_uring and on threads.

use std::cell::Cell;
use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_block::{Errno, Payload};
use braid_mem::{Buf, Pool};
use braid_uring::{Config, Executor, Failures, Fd, Handle, Interest, Mode, Workers};

/// Runs `body` on each driver that this machine has.
fn on_both<F: Future<Output = ()> + 'static>(body: impl Fn(Handle) -> F) {
    let kinds = [
        (Mode::Uring, Workers::Kernel),
        (Mode::Uring, Workers::Own),
        (Mode::Threads, Workers::Kernel),
        (Mode::Threads, Workers::Own),
    ];
    for (mode, workers) in kinds {
        match Executor::new(Config { mode, workers, ..Config::default() }) {
            Ok(executor) => executor.block_on(body(executor.handle())),
            Err(error) => println!("skipped {mode:?}: {error}"),
        }
    }
}

fn filled(pool: &Pool, len: usize, byte: u8) -> Buf {
    let mut buf = pool.get(len).unwrap();
    buf.fill(byte);
    buf
}

fn file() -> Fd {
    Fd::new(tempfile::tempfile().unwrap().into())
}

fn pair() -> (Fd, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Fd::new(OwnedFd::from(ours)), theirs)
}

/// ```text
///   descriptor 1 (a shard)    write ✓   flush ✗   flush ✗            the kernel would say ✓
///   descriptor 2 (another)                        flush ✗            it has told 1
///   brought up anew                                          flush ✓
/// ```
#[test]
fn after_a_flush_that_failed_all_fail() {
    on_both(|handle| async move {
        // A pipe cannot be flushed; then a file takes its place under the same number.
        let (_reader, writer) = std::io::pipe().unwrap();
        let good = tempfile::tempfile().unwrap();
        let number = writer.as_raw_fd();
        let failures = Arc::<Failures>::default();
        let fd = Fd::counted(writer.into(), Arc::clone(&failures));
        assert_eq!(failures.lost(), None);
        let failed = handle.sync(&fd).await.result;
        assert_eq!(failed, Err(Errno::INVAL));
        // SAFETY: both are open descriptors of this test's own; `fd` owns the second from now on.
        assert_eq!(unsafe { libc::dup2(good.as_raw_fd(), number) }, number);
        let another = Fd::counted(good.try_clone().unwrap().into(), Arc::clone(&failures));
        for one in [&fd, &another] {
            assert_eq!(handle.sync(one).await.result, failed, "what was lost stays lost");
        }
        assert_eq!((failures.lost(), failures.count()), (failed.err(), 3));
        let anew = Fd::counted(good.into(), Arc::default());
        assert_eq!(handle.sync(&anew).await.result, Ok(()));
    });
}

#[test]
fn what_is_written_is_read_from_one_buffer_and_from_many() {
    on_both(|handle| async move {
        let pool = Pool::new(1 << 20).unwrap();
        let fd = file();
        let mut gathered = Payload::None;
        for (len, byte) in [(4096, 1), (512, 2), (10_000, 3)] {
            gathered.append(filled(&pool, len, byte).into());
        }
        let expected = gathered.to_vec();
        let done = handle.write_at(&fd, 512, gathered, false).await;
        assert_eq!((done.result, done.payload.len()), (Ok(()), 14_608));
        assert_eq!(handle.sync(&fd).await.result, Ok(()));
        let done = handle.read_at(&fd, 512, filled(&pool, 14_608, 0).into()).await;
        assert_eq!(done.result, Ok(()));
        assert_eq!(done.payload.to_vec(), expected);
        let durable = handle.write_at(&fd, 0, filled(&pool, 512, 9).into(), true).await;
        assert_eq!(durable.result, Ok(()));
    });
}

#[test]
fn a_file_that_ends_early_is_an_error_and_gives_the_buffer_back() {
    on_both(|handle| async move {
        let pool = Pool::new(1 << 20).unwrap();
        let fd = file();
        handle.write_at(&fd, 0, filled(&pool, 1000, 1).into(), false).await.result.unwrap();
        let done = handle.read_at(&fd, 0, filled(&pool, 4096, 0).into()).await;
        assert_eq!((done.result, done.payload.len()), (Err(Errno::IO), 4096));
        let read_only = Fd::new(std::fs::File::open("/dev/null").unwrap().into());
        let done = handle.write_at(&read_only, 0, filled(&pool, 512, 1).into(), false).await;
        assert_eq!((done.result, done.payload.len()), (Err(Errno::from_raw(9)), 512));
    });
}

#[test]
fn many_operations_run_at_once() {
    on_both(|handle| async move {
        let pool = Pool::new(8 << 20).unwrap();
        let fd = file();
        let write = |index: u64| {
            let payload = filled(&pool, 4096, index as u8).into();
            handle.write_at(&fd, index * 4096, payload, false)
        };
        // More than the submission queue holds.
        for done in braid_engine::join_all((0..1000).map(write).collect()).await {
            done.result.unwrap();
        }
        let read = |index: u64| handle.read_at(&fd, index * 4096, pool.get(4096).unwrap().into());
        let all = braid_engine::join_all((0..1000).map(read).collect()).await;
        for (index, done) in all.iter().enumerate() {
            assert!(done.payload.to_vec().iter().all(|byte| *byte == index as u8));
        }
    });
}

#[test]
fn a_dropped_operation_keeps_its_memory_until_it_is_done() {
    on_both(|handle| async move {
        let pool = Pool::new(64 << 10).unwrap();
        let fd = file();
        drop(handle.write_at(&fd, 0, filled(&pool, 64 << 10, 5).into(), false));
        let buf = pool.get_wait(64 << 10).await;
        assert_eq!(buf.len(), 64 << 10);
    });
}

#[test]
fn fallocate_punches_holes() {
    on_both(|handle| async move {
        let pool = Pool::new(1 << 20).unwrap();
        let fd = file();
        handle.write_at(&fd, 0, filled(&pool, 16 << 10, 7).into(), false).await.result.unwrap();
        // FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
        handle.fallocate(&fd, 3, 4096, 4096).await.unwrap();
        let done = handle.read_at(&fd, 4096, filled(&pool, 4096, 1).into()).await;
        assert_eq!(done.payload.to_vec(), [0; 4096]);
    });
}

#[test]
fn sockets_receive_send_and_report_the_end() {
    on_both(|handle| async move {
        let pool = Pool::new(1 << 20).unwrap();
        let (fd, mut peer) = pair();
        assert_eq!(handle.try_send(&fd, &[IoSlice::new(b"ab"), IoSlice::new(b"c")]).unwrap(), 3);
        let mut got = [0; 3];
        peer.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"abc");
        let error = handle.try_recv(&fd, &mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        peer.write_all(b"hello").unwrap();
        let (count, buf) = handle.recv(&fd, pool.get(100).unwrap(), 2, false).await;
        assert_eq!((count.unwrap(), &buf[2..7]), (5, &b"hello"[..]));
        // A receive that waits: the data comes from another thread.
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            peer.write_all(b"later").unwrap();
        });
        let (count, buf) = handle.recv(&fd, buf, 0, true).await;
        assert_eq!((count.unwrap(), &buf[..5]), (5, &b"later"[..]));
        writer.join().unwrap();
        assert_eq!(handle.recv(&fd, buf, 0, false).await.0.unwrap(), 0, "the peer has gone");
    });
}

#[test]
fn a_full_socket_becomes_writable_when_it_is_read() {
    on_both(|handle| async move {
        let (fd, mut peer) = pair();
        let chunk = vec![0u8; 64 << 10];
        let mut sent = 0;
        while let Ok(count) = handle.try_send(&fd, &[IoSlice::new(&chunk)]) {
            sent += count;
        }
        let reader = std::thread::spawn(move || {
            peer.read_exact(&mut vec![0; sent]).unwrap();
            peer
        });
        handle.ready(&fd, Interest::Writable).await.unwrap();
        assert!(handle.try_send(&fd, &[IoSlice::new(&chunk)]).unwrap() > 0);
        drop(reader.join().unwrap());
    });
}

#[test]
fn connections_are_accepted() {
    on_both(|handle| async move {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = Fd::new(OwnedFd::from(UnixListener::bind(&path).unwrap()));
        let client = std::thread::spawn(move || UnixStream::connect(path).unwrap());
        let accepted = Fd::new(handle.accept(&listener).await.unwrap());
        let mut client = client.join().unwrap();
        handle.try_send(&accepted, &[IoSlice::new(b"!")]).unwrap();
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"!");
    });
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    on_both(|handle| async move {
        let order = Rc::new(Cell::new(0));
        let start = Instant::now();
        for (delay, digit) in [(30, 2), (10, 1)] {
            let (sleeper, order) = (handle.clone(), Rc::clone(&order));
            handle.spawn(async move {
                sleeper.sleep_until(start + Duration::from_millis(delay)).await;
                order.set(order.get() * 10 + digit);
            });
        }
        handle.sleep_until(start + Duration::from_millis(50)).await;
        assert_eq!(order.get(), 12);
        assert!(start.elapsed() >= Duration::from_millis(50));
    });
}

#[test]
fn blocking_jobs_and_calls_from_other_threads_come_back() {
    on_both(|handle| async move {
        assert_eq!(handle.blocking(|| Ok(())).await, Ok(()));
        let failed = handle.blocking(|| Err(std::io::Error::from_raw_os_error(28))).await;
        assert_eq!(failed, Err(Errno::NOSPC));
        let remote = handle.remote();
        // What is `!Send` stays here: the call reaches it through a thread-local.
        thread_local!(static CALLED: Cell<bool> = const { Cell::new(false) });
        std::thread::spawn(move || remote.call(|_| CALLED.set(true)));
        while !CALLED.get() {
            handle.sleep(Duration::from_millis(1)).await;
        }
        CALLED.set(false);
    });
}

#[test]
fn an_executor_ends_with_operations_under_way() {
    for mode in [Mode::Uring, Mode::Threads] {
        let Ok(executor) = Executor::new(Config { mode, ..Config::default() }) else {
            println!("skipped {mode:?}: not on this machine");
            continue;
        };
        let handle = executor.handle();
        let (fd, peer) = pair();
        let receiver = handle.clone();
        handle.spawn(async move {
            let pool = Pool::new(4096).unwrap();
            receiver.recv(&fd, pool.get(100).unwrap(), 0, true).await.0.ok();
        });
        let sleeper = handle.clone();
        executor.block_on(async move { sleeper.sleep(Duration::from_millis(5)).await });
        drop(executor);
        drop(peer);
    }
}

#[test]
fn a_call_that_comes_too_late_is_dropped_with_what_it_holds() {
    let executor = Executor::new(Config { mode: Mode::Threads, ..Config::default() }).unwrap();
    let remote = executor.handle().remote();
    let call = || {
        let (send, receive) = std::sync::mpsc::channel();
        remote.call(move |_| send.send(()).unwrap());
        receive
    };
    let before = call();
    drop(executor);
    for late in [before, call()] {
        assert_eq!(late.recv(), Err(std::sync::mpsc::RecvError), "waiters receive the end");
    }
}
