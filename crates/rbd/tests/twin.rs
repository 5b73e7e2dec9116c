//! The device over an image in memory: the same code that runs over librbd.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Errno, Flags, Io, Limits, Op, Payload, Span};
use braid_engine::{Dev, Device};
use braid_mem::Pool;
use braid_rbd::{RbdDevice, Twin};
use braid_uring::{Config, Executor, Failures, Handle};

const SIZE: u64 = 4 << 20;

/// The device of a twin, behind the seam.
struct World {
    twin: Twin,
    dev: Dev,
    pool: Pool,
    failures: Arc<Failures>,
    handle: Handle,
}

fn run<F: Future<Output = ()> + 'static>(test: impl FnOnce(World) -> F) {
    let executor = Executor::new(Config::default()).expect("an executor");
    let handle = executor.handle();
    let twin = Twin::new(SIZE as usize).expect("an image");
    let failures = Arc::new(Failures::default());
    let device =
        RbdDevice::new(twin.queue(), Limits::new(SIZE, 512), Arc::clone(&failures), &handle);
    let dev = Dev::new(device.expect("a device"));
    let pool = Pool::new(8 << 20).expect("memory");
    executor.block_on(test(World { twin, dev, pool, failures, handle }));
}

impl World {
    fn write(&self, offset: u64, len: usize, byte: u8, flags: Flags) -> Io {
        let mut buf = self.pool.get(len).expect("memory");
        buf.fill(byte);
        Io::write(offset, buf, flags)
    }

    async fn read(&self, offset: u64, len: usize) -> Vec<u8> {
        let buf = self.pool.get(len).expect("memory");
        let span = Span::new(offset, len as u64);
        let (op, flags) = (Op::Read, Flags::NONE);
        let io = Io { op, span, flags, payload: Payload::One(buf) };
        let done = self.dev.start(io).await;
        done.result.expect("a read");
        done.payload.to_vec()
    }
}

#[test]
fn what_is_written_is_read_also_in_pieces_and_durably() {
    run(|world| async move {
        for flags in [Flags::NONE, Flags::FUA] {
            world.dev.start(world.write(4096, 8192, 7, flags)).await.result.expect("a write");
        }
        // Two buffers that do not lie side by side.
        let (a, _between, b) = (world.pool.get(4096), world.pool.get(4096), world.pool.get(4096));
        let mut payload = Payload::None;
        for (buf, byte) in [(a, 1), (b, 2)] {
            let mut buf = buf.expect("memory");
            buf.fill(byte);
            payload.append(Payload::One(buf));
        }
        assert_eq!(payload.bufs().len(), 2);
        let span = Span::new(64 << 10, 8192);
        let done = world.dev.start(Io { op: Op::Write, span, flags: Flags::NONE, payload }).await;
        done.result.expect("a write");
        assert_eq!(done.payload.len(), 8192, "the memory comes back");
        let read = world.read(64 << 10, 8192).await;
        assert!(read[..4096] == [1; 4096] && read[4096..] == [2; 4096]);
        assert!(world.read(4096, 8192).await == [7; 8192]);
        let (op, flags, payload) = (Op::WriteZeroes, Flags::FUA, Payload::None);
        let zeroes = Io { op, span: Span::new(4096, 4096), flags, payload };
        world.dev.start(zeroes).await.result.expect("zeroes");
        let read = world.read(4096, 8192).await;
        assert!(read[..4096] == [0; 4096] && read[4096..] == [7; 4096]);
        world.dev.start(Io::flush()).await.result.expect("a flush");
    });
}

#[test]
fn a_cluster_that_is_cut_off_keeps_the_memory_until_it_answers() {
    run(|world| async move {
        let free = world.pool.free_bytes();
        world.twin.hold();
        let mut abandoned = world.dev.start(world.write(0, 4096, 1, Flags::NONE));
        assert!(
            std::future::poll_fn(|cx| std::task::Poll::Ready(
                std::pin::Pin::new(&mut abandoned).poll(cx).is_pending()
            ))
            .await
        );
        drop(abandoned);
        let kept = world.dev.start(world.write(4096, 4096, 2, Flags::NONE));
        world.handle.turn().await;
        assert_eq!(world.pool.free_bytes(), free - 8192, "the cluster has the memory");
        world.twin.release();
        kept.await.result.expect("a write");
        // Both answers have come by one counter.
        assert_eq!(world.pool.free_bytes(), free);
        assert!(world.read(0, 4096).await == [1; 4096], "a request without a claim goes on");
    });
}

#[test]
fn failures_are_passed_on_and_counted() {
    run(|world| async move {
        world.twin.fail(Some(Errno::SHUTDOWN));
        for flags in [Flags::NONE, Flags::FUA] {
            let done = world.dev.start(world.write(0, 512, 1, flags)).await;
            assert_eq!(done.result, Err(Errno::SHUTDOWN));
            assert_eq!(done.payload.len(), 512);
        }
        assert_eq!(world.failures.count(), 2);
        world.twin.fail(None);
        world.dev.start(world.write(0, 512, 1, Flags::NONE)).await.result.expect("a write");
    });
}

#[test]
fn the_task_ends_with_the_device_and_its_last_request() {
    let executor = Executor::new(Config::default()).expect("an executor");
    let handle = executor.handle();
    let ended = Rc::new(Cell::new(false));
    let is_ended = Rc::clone(&ended);
    executor.block_on(async move {
        let twin = Twin::new(SIZE as usize).expect("an image");
        let limits = Limits::new(SIZE, 512);
        let device = RbdDevice::new(twin.queue(), limits, Arc::default(), &handle);
        let device = device.expect("a device");
        twin.hold();
        let pool = Pool::new(1 << 20).expect("memory");
        let buf = pool.get(4096).expect("memory");
        let free = pool.free_bytes();
        let request = device.start(Io::write(0, buf, Flags::NONE));
        drop((request, device));
        handle.turn().await;
        assert_eq!(pool.free_bytes(), free);
        twin.release();
        while pool.free_bytes() == free {
            handle.sleep(std::time::Duration::from_millis(1)).await;
        }
        is_ended.set(true);
    });
    assert!(ended.get());
}
