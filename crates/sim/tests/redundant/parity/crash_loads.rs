//! Crashes at random moments of random loads: on complete and degraded arrays, with logs of the
//! least size, members whose logs or flushes fail, arrays that were never in sync, and while
//! members come and go.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Errno, Op, Span};
use braid_engine::redundant::{Consistency, LogSetup, Setup};
use braid_md::Level::{Raid4, Raid5, Raid6};
use braid_md::Resync;
use braid_md::stripe_log::{Head, LEAST_AREA};
use braid_md::superblock::Contents;
use braid_sim::{Client, Fault, Load, Oracle, Target, for_each_seed};

use crate::copies::life::Operator;
use crate::parity::crash::{Crash, bearable, fill, some_crash, tiny, without};
use crate::parity::images::{images_with, losses};
use crate::world::{ARRAY, DATA, HEAD, PPL, SUPERBLOCK, Shape, World, pool, rng, superblock_of};

const LOAD: Load = Load { requests: 24, depth: 6, longest: 20, overlapping: true };

/// Those with a log.
const LOGGED: [Shape; 7] = [
    tiny(Raid5, 2, 4, Consistency::Ppl),
    tiny(Raid6, 2, 5, Consistency::Log),
    tiny(Raid4, 0, 3, Consistency::Log),
    tiny(Raid5, 0, 3, Consistency::Ppl),
    tiny(Raid5, 2, 4, Consistency::Log),
    tiny(Raid6, 10, 4, Consistency::Log),
    tiny(Raid5, 3, 5, Consistency::Ppl),
];

/// An array that is written and crashes.
struct Run {
    world: World,
    client: Client,
    crashes: Rc<Cell<u64>>,
}

impl Run {
    /// The array that `images` are, which hold `bytes`. At each event it crashes with a
    /// probability of `percent`, and `may_lose` members with it.
    fn new(
        seed: u64,
        crash: Crash,
        images: &[Option<Vec<u8>>],
        (percent, may_lose): (u64, bool),
    ) -> Run {
        let world = World::with(seed, crash.shape, images, crash.adjust);
        let client = Client {
            dev: world.dev.clone(),
            pool: pool(),
            rng: rng(seed),
            oracle: Rc::clone(&crash.oracle),
        };
        let crashes = Rc::new(Cell::new(0));
        let (disks, mut dice) = (Rc::clone(&world.disks), rng(!seed));
        let counter = Rc::clone(&crashes);
        world.sim.observe(move || {
            if !dice.percent(percent) {
                return;
            }
            counter.set(counter.get() + 1);
            let mut images = some_crash(&disks.borrow(), &mut dice);
            if may_lose && dice.percent(70) {
                let sets = bearable(&crash.shape, &images);
                images = without(&images, &sets[dice.index(sets.len())]);
            }
            let again = dice.index(8) / 5;
            crash.check(seed, &images, again, &mut dice);
        });
        Run { world, client, crashes }
    }

    /// Carries `loads` out; answers how many crashes there were.
    fn finish(self, loads: usize, load: Load) -> u64 {
        let mut client = self.client;
        let (pause, rest) = (self.world.sleep(1), self.world.sleep(8));
        self.world.run(async move {
            for _ in 0..loads {
                let report = client.run(load).await;
                assert!(report.errors.is_empty(), "{:?}", report.errors);
            }
            pause.await;
            rest.await;
        });
        self.crashes.get()
    }
}

/// Bytes for an array, and the oracle of them.
fn content(seed: u64, shape: Shape) -> (Vec<u8>, Crash) {
    let mut bytes = vec![0; shape.size() as usize];
    fill(&mut bytes, &mut rng(seed));
    let oracle = Rc::new(RefCell::new(Oracle::new(&bytes, 512)));
    (bytes, Crash { shape, oracle, was_complete: true, adjust: |_| {}, excused: Vec::new() })
}

#[test]
fn a_crash_of_a_random_load_with_any_loss() {
    let name = "parity::crash_loads::a_crash_of_a_random_load_with_any_loss";
    let crashes = Cell::new(0);
    for_each_seed(name, 14, |seed| {
        let shape = LOGGED[seed as usize % LOGGED.len()];
        let (bytes, mut crash) = content(seed, shape);
        let sets = losses(shape.members, shape.stripes().parities());
        let missing = &sets[(seed as usize / LOGGED.len()) * 5 % sets.len()];
        crash.was_complete = missing.is_empty();
        let images = without(&images_with(&shape, &bytes), missing);
        let run = Run::new(seed, crash, &images, (5, true));
        crashes.set(crashes.get() + run.finish(1, LOAD));
    });
    assert!(crashes.get() > 100 || is_one_seed(), "{} crashes", crashes.get());
}

/// Without a log, a crash is survived by arrays that are complete and stay so.
#[test]
fn a_crash_of_a_complete_array_without_a_log() {
    let name = "parity::crash_loads::a_crash_of_a_complete_array_without_a_log";
    for_each_seed(name, 8, |seed| {
        let consistency = [Consistency::Resync, Consistency::Bitmap][seed as usize % 2];
        let (level, layout, members) =
            [(Raid4, 0, 4), (Raid5, 2, 4), (Raid6, 2, 5), (Raid6, 18, 4)][seed as usize / 2 % 4];
        let shape = tiny(level, layout, members, consistency);
        let (bytes, crash) = content(seed, shape);
        let images = images_with(&shape, &bytes);
        Run::new(seed, crash, &images, (4, false)).finish(1, LOAD);
    });
}

/// The least log there can be: a record of one chunk, so that every write has others retired.
#[test]
fn records_are_retired_all_the_time() {
    fn small(setup: &mut Setup) {
        if let Some(LogSetup::Records { area, .. }) = &mut setup.log {
            *area = LEAST_AREA;
        }
    }
    let name = "parity::crash_loads::records_are_retired_all_the_time";
    for_each_seed(name, 6, |seed| {
        let logged = LOGGED.iter().filter(|shape| shape.consistency == Consistency::Log);
        let shape = *logged.clone().nth(seed as usize % logged.count()).unwrap();
        let (bytes, mut crash) = content(seed, shape);
        crash.adjust = small;
        let mut images = images_with(&shape, &bytes);
        change_heads(&mut images, |head| head.area = LEAST_AREA);
        Run::new(seed, crash, &images, (4, true)).finish(1, LOAD);
    });
}

/// The least partial parity log: a header and a chunk.
#[test]
fn groups_wait_for_each_other() {
    let name = "parity::crash_loads::groups_wait_for_each_other";
    for_each_seed(name, 8, |seed| {
        let shape = tiny(Raid5, [0, 2][seed as usize % 2], 4, Consistency::Ppl);
        let (bytes, crash) = content(seed, shape);
        let mut images = images_with(&shape, &bytes);
        change_superblocks(&mut images, |superblock| {
            superblock.ppl = Some(((PPL - SUPERBLOCK) as i64, 8 << 10));
        });
        let load = Load { requests: 30, depth: 12, longest: 4, overlapping: true };
        Run::new(seed, crash, &images, (4, true)).finish(1, load);
    });
}

/// A member's log, or its flushes, or all of its writes fail, once or from then on.
#[test]
fn a_crash_while_a_member_fails() {
    let name = "parity::crash_loads::a_crash_while_a_member_fails";
    for_each_seed(name, 14, |seed| {
        let shape = LOGGED[seed as usize % LOGGED.len()];
        let (bytes, crash) = content(seed, shape);
        let images = images_with(&shape, &bytes);
        let run = Run::new(seed, crash, &images, (4, true));
        let mut choices = rng(seed);
        let disk = run.world.disk(choices.index(shape.members));
        let log = Span::new(PPL, DATA - PPL);
        let data = Span::new(DATA, shape.member_size);
        let target = match choices.index(4) {
            0 => Target::op(Op::Write).touching(log),
            1 => Target::op(Op::Flush),
            2 => Target::op(Op::Write).touching(data),
            _ => Target::op(Op::Write).touching(Span::new(SUPERBLOCK, 512)),
        };
        let from = choices.below(60);
        let many = if choices.percent(50) { 1 } else { 1000 };
        for index in from..from + 12 * many {
            disk.faults().add(Target { index: Some(index), ..target }, Fault::Error(Errno::IO));
        }
        run.finish(1, LOAD);
    });
}

/// An array whose parity was never made to fit from the frontier on: a crash does not turn it "clean", and the
/// resync makes all parity fit.
#[test]
fn what_was_never_in_sync_is_not_called_clean() {
    let name = "parity::crash_loads::what_was_never_in_sync_is_not_called_clean";
    for_each_seed(name, 14, |seed| {
        let shape = Shape { member_size: 40 << 10, ..LOGGED[seed as usize % LOGGED.len()] };
        let (bytes, crash) = content(seed, shape);
        let frontier = [0, 0, 4096, 8192, 24 << 10][seed as usize / LOGGED.len() % 5];
        let mut images = images_with(&shape, &bytes);
        spoil_parity(&shape, &mut images, frontier);
        change_superblocks(&mut images, |superblock| {
            superblock.resync = Resync::From(frontier);
        });
        if shape.consistency == Consistency::Log {
            change_heads(&mut images, |head| head.synced = frontier);
        }
        Run::new(seed, crash, &images, (2, false)).finish(2, LOAD);
    });
}

/// Whatever operators do, with live logs.
#[test]
fn a_crash_while_members_come_and_go() {
    let name = "parity::crash_loads::a_crash_while_members_come_and_go";
    for_each_seed(name, 14, |seed| {
        let shape = LOGGED[seed as usize % LOGGED.len()];
        let (bytes, crash) = content(seed, shape);
        let images = images_with(&shape, &bytes);
        let run = Run::new(seed, crash, &images, (2, true));
        let mut operator = Operator::new(&run.world, seed);
        let mut client = run.client;
        let done = Rc::new(Cell::new(false));
        let over = Rc::clone(&done);
        let array = run.world.array.clone();
        run.world.sim.handle().spawn("client", async move {
            for _ in 0..6 {
                let load = Load { requests: 8, depth: 4, longest: 16, overlapping: true };
                let report = client.run(load).await;
                assert!(
                    report.errors.is_empty(),
                    "{:#?} {:?}",
                    array.status().log,
                    report.errors.len()
                );
            }
            over.set(true);
        });
        run.world.run(async move {
            while !done.get() {
                operator.act().await;
                operator.rest().await;
            }
            operator.make_whole().await;
        });
    });
}

/// Has other bytes where the parity of the rows from `frontier` on is.
fn spoil_parity(shape: &Shape, images: &mut [Option<Vec<u8>>], frontier: u64) {
    use braid_array::geometry::Column;
    let geometry = shape.stripes();
    for row in (frontier..shape.member_size).step_by(512) {
        let stripe = row / geometry.chunk();
        for column in [Column::P, Column::Q].into_iter().take(geometry.parities()) {
            let image =
                images[geometry.role_of(stripe, column).index()].as_mut().expect("all are there");
            image[(DATA + row) as usize..][..512].fill(0x77);
        }
    }
}

/// Has every superblock say something else.
pub(crate) fn change_superblocks(
    images: &mut [Option<Vec<u8>>],
    mut change: impl FnMut(&mut Contents),
) {
    for image in images.iter_mut().flatten() {
        let mut superblock = superblock_of(image).into_contents();
        change(&mut superblock);
        let bytes = superblock.encode();
        image[SUPERBLOCK as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
}

/// Has the head of every stripe log say something else.
pub(crate) fn change_heads(images: &mut [Option<Vec<u8>>], mut change: impl FnMut(&mut Head)) {
    for image in images.iter_mut().flatten() {
        let number = superblock_of(image).device_number;
        let mut head = Head::parse(&image[HEAD as usize..], &ARRAY, number, DATA).unwrap();
        change(&mut head);
        image[HEAD as usize..][..4096].copy_from_slice(&head.encode());
    }
}

fn is_one_seed() -> bool {
    std::env::var_os("BRAID_SEED").is_some()
}
