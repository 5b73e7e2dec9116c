//! Readings of the machine's clock by requests, which are counted.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io};
use braid_device::{Access, File, Metered, Ram, Stopwatch, Tally};
use braid_engine::{Clock, Dev, InFlight, Pending};
use braid_mem::Pool;
use braid_uring::{Config, Executor, ExecutorClock, Handle};

const SIZE: u64 = 1 << 20;

/// Returns `of` behind the meters of a member and of an export.
fn metered(of: impl braid_engine::Device + 'static, handle: &Handle) -> Dev {
    let (tally, clock) = (Tally::default(), Rc::new(ExecutorClock::new(handle)));
    let member = Dev::new(Metered::new(of, "a", &tally, Rc::clone(&clock) as _, None));
    Stopwatch::new(&Tally::default(), clock).in_front_of(member)
}

#[test]
fn what_is_answered_within_a_turn_shares_one_reading_unless_it_is_long() {
    let executor = Executor::new(Config::default()).expect("an executor");
    let handle = executor.handle();
    executor.block_on(async move {
        let dev = metered(Ram::new(SIZE).expect("memory").device(), &handle);
        let pool = Pool::new(1 << 20).expect("memory");
        let carry_out = |len: usize| {
            let buf = pool.get(len).expect("memory");
            let Pending::Ready(Some(done)) = dev.start(Io::write(0, buf, Flags::NONE)) else {
                panic!("memory answers at once");
            };
            assert_eq!(done.result, Ok(()));
        };
        let before = handle.clock_readings();
        (0..100).for_each(|_| carry_out(4096));
        assert!(handle.clock_readings() - before <= 1, "one for all of them");
        let before = handle.clock_readings();
        carry_out(256 << 10);
        assert_eq!(handle.clock_readings() - before, 4, "begin and end, of member and export");
    });
}

#[test]
fn requests_of_a_queue_take_at_most_one_reading_each() {
    const COUNT: u64 = 500;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("member");
    std::fs::File::create(&path).and_then(|file| file.set_len(SIZE)).expect("a file");
    let executor = Executor::new(Config::default()).expect("an executor");
    let handle = executor.handle();
    executor.block_on(async move {
        let pool = Pool::new(1 << 20).expect("memory");
        let file = File::open(&path, Access::Exclusive, 0, None).expect("a member");
        let dev = metered(file.device(&handle, &pool).expect("a device"), &handle);
        let mut in_flight = InFlight::new(32);
        let before = handle.clock_readings();
        for index in 0..COUNT {
            while in_flight.is_full() {
                let ((), done) = poll_fn(|cx| in_flight.poll_next(cx)).await;
                assert_eq!(done.result, Ok(()));
            }
            let buf = pool.get(4096).expect("memory");
            in_flight.push((), dev.start(Io::read(index * 4096 % SIZE, buf)));
        }
        while !in_flight.is_empty() {
            poll_fn(|cx| in_flight.poll_next(cx)).await;
        }
        let readings = handle.clock_readings() - before;
        assert!(readings <= COUNT + 1, "{readings} for {COUNT} requests");
    });
}

#[test]
fn time_goes_on_from_turn_to_turn_and_all_clocks_show_the_same() {
    let executor = Executor::new(Config::default()).expect("an executor");
    let handle = executor.handle();
    executor.block_on(async move {
        let (one, other) = (ExecutorClock::new(&handle), ExecutorClock::new(&handle));
        let before = one.now();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!((one.now(), other.now()), (before, before), "the turn is the same");
        let read = one.reading();
        assert!(read >= before + Duration::from_millis(2));
        assert_eq!(other.now(), read, "what was read is the time of the turn");
        one.sleep(Duration::from_millis(2)).await;
        assert!(other.now() >= read + Duration::from_millis(2));
    });
}
