//! The simulation itself: its clock, its choices, its disks, and what it says when it fails.

use std::cell::RefCell;
use std::rc::Rc;

use braid_array::geometry::Raid0;
use braid_block::{Errno, Flags, Io, Limits, Op, Span};
use braid_engine::{Array, Dev, Device, join_all};
use braid_level::Raid0Layout;
use braid_mem::Pool;
use braid_sim::{Client, Fault, Load, Rng, Sim, SimDisk, Target};

const LIMITS: Limits = Limits::new(64 << 10, 512);

fn disk(sim: &Sim) -> (SimDisk, Dev, Pool) {
    let disk = SimDisk::new(&sim.handle(), "disk", LIMITS);
    (disk.clone(), Dev::new(disk), Pool::new(1 << 20).unwrap())
}

fn write(pool: &Pool, offset: u64, byte: u8) -> Io {
    let mut buf = pool.get(512).unwrap();
    buf.fill(byte);
    Io::write(offset, buf, Flags::NONE)
}

#[test]
fn the_clock_jumps_from_event_to_event() {
    let sim = Sim::new(1);
    let handle = sim.handle();
    let order = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&order);
    sim.block_on(async move {
        for seconds in [3, 1, 2] {
            let (task, order) = (handle.clone(), Rc::clone(&order));
            handle.spawn(format!("sleeper {seconds}"), async move {
                task.sleep(seconds * 1_000_000_000).await;
                order.borrow_mut().push((seconds, task.now()));
            });
        }
        handle.sleep(10_000_000_000).await;
        assert_eq!(handle.now(), 10_000_000_000);
    });
    let second = 1_000_000_000;
    assert_eq!(*seen.borrow(), [(1, second), (2, 2 * second), (3, 3 * second)]);
}

#[test]
fn which_ready_task_runs_next_is_drawn() {
    let order_of = |seed| {
        let sim = Sim::new(seed);
        let (handle, order) = (sim.handle(), Rc::new(RefCell::new(Vec::new())));
        let seen = Rc::clone(&order);
        sim.block_on(async move {
            for number in 0..10 {
                let order = Rc::clone(&order);
                handle.spawn("racer", async move { order.borrow_mut().push(number) });
            }
            handle.sleep(1).await;
        });
        seen.take()
    };
    assert_eq!(order_of(1), order_of(1));
    assert_ne!(order_of(1), order_of(2));
}

#[test]
fn a_deadlock_names_the_seed_and_what_is_pending() {
    let sim = Sim::new(77);
    let (disk, dev, pool) = disk(&sim);
    disk.faults().add(Target::index(1), Fault::NotBefore(u64::MAX));
    let stuck = sim.try_block_on(async move {
        dev.start(write(&pool, 0, 1)).await.result.unwrap();
        dev.start(Io::read(4096, pool.get(512).unwrap())).await.result.unwrap();
    });
    let text = stuck.unwrap_err().to_string();
    for part in ["seed 77 at ", "deadlock", "task 0: main", "disk #1 Read 4096+512", "under way"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn tasks_that_run_in_circles_are_reported() {
    let sim = Sim::new(5);
    let stuck = sim.try_block_on(std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        std::task::Poll::<()>::Pending
    }));
    assert!(stuck.unwrap_err().livelock);
}

#[test]
fn a_simulation_that_ends_lets_go_of_everything() {
    /// A request that is abandoned spawns a task that waits for it; so does this.
    struct Spawns(braid_sim::Handle, Option<Rc<()>>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let (kept, task) = (self.1.take(), self.0.clone());
            self.0.spawn("late", async move {
                task.sleep(1).await;
                drop(kept);
            });
        }
    }

    let kept = Rc::new(());
    let sim = Sim::new(3);
    let late = Spawns(sim.handle(), Some(Rc::clone(&kept)));
    let (handle, inside) = (sim.handle(), Rc::clone(&kept));
    let (_, dev, pool) = disk(&sim);
    sim.block_on(async move {
        let task = handle.clone();
        handle.spawn("sleeper", async move {
            let pending = dev.start(write(&pool, 0, 1));
            task.sleep(u64::MAX).await;
            drop((pending, inside));
        });
        handle.sleep(100).await;
    });
    drop(sim);
    drop(late);
    assert_eq!(Rc::strong_count(&kept), 1);
}

#[test]
fn requests_complete_in_any_order() {
    let sim = Sim::new(9);
    let (disk, dev, pool) = disk(&sim);
    let requests = (0..20).map(|index| dev.start(write(&pool, index * 512, index as u8)));
    let all = join_all(requests.collect());
    sim.block_on(all);
    let ends: Vec<_> = disk.trace().iter().map(|record| record.end.unwrap().0).collect();
    assert!(!ends.is_sorted());
    assert_eq!(disk.completed(), 20);
}

#[test]
fn faults_befall_the_requests_they_name() {
    let sim = Sim::new(4);
    let (disk, dev, pool) = disk(&sim);
    let faults = disk.faults();
    faults.add(Target::op(Op::Flush), Fault::Error(Errno::IO));
    faults.add(Target::op(Op::Write).touching(Span::new(512, 512)), Fault::Error(Errno::NOSPC));
    faults.add(Target::index(2), Fault::NotBefore(1_000_000_000));
    let handle = sim.handle();
    sim.block_on(async move {
        assert_eq!(dev.start(Io::flush()).await.result, Err(Errno::IO));
        assert_eq!(dev.start(write(&pool, 512, 1)).await.result, Err(Errno::NOSPC));
        assert_eq!(dev.start(write(&pool, 0, 1)).await.result, Ok(()));
        assert!(handle.now() >= 1_000_000_000);
    });
}

/// As of a page cache: no later flush makes good what a failed one lost.
#[test]
fn what_a_failed_flush_lost_stays_lost() {
    let sim = Sim::new(6);
    let (disk, dev, pool) = disk(&sim);
    disk.faults().add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 1);
    let done = sim.block_on(async move {
        dev.start(write(&pool, 0, 1)).await.result.unwrap();
        let failed = dev.start(Io::flush()).await.result;
        dev.start(write(&pool, 512, 1)).await.result.unwrap();
        (failed, dev.start(Io::flush()).await.result)
    });
    assert_eq!(done, (Err(Errno::IO), Ok(())));
    assert_eq!(disk.contents().to_vec()[0], 1, "a read still shows it");
    let image = disk.crash_image(&mut Rng::new(0)).to_vec();
    assert_eq!((image[0], image[512]), (0, 1));
}

#[test]
fn extents_of_a_disk_tell_zeroes_from_data() {
    let sim = Sim::new(6);
    let (disk, dev, pool) = disk(&sim);
    let write = dev.start(write(&pool, 1024, 1));
    sim.block_on(write).result.unwrap();
    let kinds: Vec<_> =
        sim.block_on(disk.extents(Span::new(512, 2048))).iter().map(|e| (e.len, e.zero)).collect();
    assert_eq!(kinds, [(512, true), (512, false), (1024, true)]);
}

/// The traces of the members under a random load.
fn trace_of(seed: u64) -> String {
    let sim = Sim::new(seed);
    let new = |index| SimDisk::new(&sim.handle(), format!("disk{index}"), LIMITS);
    let disks: Vec<SimDisk> = (0..3).map(new).collect();
    let raid0 = Raid0::new(&[64 << 10; 3], 4096, Raid0Layout::default(), 512).unwrap();
    let members = disks.iter().cloned().map(Dev::new).collect();
    let dev = Dev::new(Array::new(raid0, members));
    let mut client = Client::new(dev, Pool::new(4 << 20).unwrap(), sim.handle().fork_rng());
    sim.block_on(async move {
        let load = Load { requests: 100, depth: 8, longest: 30, overlapping: true };
        client.run(load).await;
    });
    let traces: Vec<String> = disks.iter().map(SimDisk::render_trace).collect();
    traces.join("\n")
}

#[test]
fn a_seed_is_a_run() {
    let first = trace_of(1);
    assert!(first.lines().count() > 100);
    assert_eq!(first, trace_of(1));
    assert_ne!(first, trace_of(2));
}
