//! The state of stripes after a crash, and the required recovery: shared by the tests of crashes.
//!
//! ```text
//!   run        ──e──e──e──e──e──▶      e: a request took effect, or completed
//!                    ╲
//!   images            ✕ ── members lost with it ──▶ assembled, restarted ──▶ read all: what the
//!                            (as many as parity                │              oracle allows
//!                             makes up for)                    ╲
//!                                                    images      ✕ ── … again, some times
//! ```
//!
//! The promise of each log for a crash, together with the loss of members up to the number of parities, is
//! [`Crash::may_be_anything`]: every block has its durable content or one of the later versions, except
//!
//! * with partial parity (raid5), non-durable blocks (by a flush or FUA) of a member that is missing after the
//!   crash: their rows have the old or the new parity, and old or new data beside it. The time of the loss does
//!   not matter: before the write or with the crash. All other data in these rows is right;
//! * with records, the same blocks if every data column of the row was being written at once by a complete
//!   array: such rows have no unwritten data to keep, and their records contain only their number;
//! * without a log, all data in rows of the write is at risk as well: only complete arrays survive a crash.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_array::Geometry;
use braid_array::geometry::Column;
use braid_block::{Flags, Io, Op, Span};
use braid_engine::Dev;
use braid_engine::redundant::{Consistency, Setup};
use braid_md::{Level, Resync};
use braid_sim::{Oracle, Rng, Sim, SimDisk};

use crate::parity::images::{Stripes, losses};
use crate::world::{Assembly, Shape, World, images_of, parity, pool};

/// Arrays of so few bytes that a crash can be tried at every moment.
pub(crate) const fn tiny(
    level: Level,
    layout: u32,
    members: usize,
    consistency: Consistency,
) -> Shape {
    Shape { chunk: 4 << 10, member_size: 12 << 10, ..parity(level, layout, members, consistency) }
}

/// An array at the moment of a crash.
#[derive(Clone)]
pub(crate) struct Crash {
    pub(crate) shape: Shape,
    /// Its possible content.
    pub(crate) oracle: Rc<RefCell<Oracle>>,
    /// True if it had all of its members when it was written.
    pub(crate) was_complete: bool,
    /// The last change of the setup before a restart.
    pub(crate) adjust: fn(&mut Setup),
    /// AUDIT: blocks that may have any content after an earlier crash.
    pub(crate) excused: Vec<u64>,
}

impl Crash {
    /// Restarts the array that `images` are, has up to `again` crashes follow while it is
    /// restarted, and checks what it holds, and that it would without further members.
    pub(crate) fn check(
        &self,
        seed: u64,
        images: &[Option<Vec<u8>>],
        again: usize,
        dice: &mut Rng,
    ) -> Vec<u8> {
        let sim = Sim::new(seed);
        let world = World::before_restart(sim, self.shape, images, self.adjust);
        let may_crash = Rc::new(Cell::new(again > 0));
        if again > 0 {
            let (disks, mut crash) = (Rc::clone(&world.disks), self.clone());
            let readable = world.array.status().in_sync;
            crash.excused = (0..self.shape.size())
                .step_by(512)
                .filter(|offset| self.may_be_anything(*offset, &readable))
                .collect();
            let (may_crash, mut dice) = (Rc::clone(&may_crash), dice.fork());
            world.sim.observe(move || {
                if may_crash.get() && dice.percent(6) {
                    let images = some_crash(&disks.borrow(), &mut dice);
                    crash.check(seed.wrapping_add(1), &images, again - 1, &mut dice);
                }
            });
        }
        if let Err(why) = world.restart() {
            panic!("it is not restarted: {why}");
        }
        let dev = world.dev.clone();
        let readable = world.array.status().in_sync;
        let contents = world.run(async move { read_all(&dev).await });
        may_crash.set(false);
        if let Err(mismatch) = self
            .oracle
            .borrow()
            .check_crash_but(&contents, |offset| self.may_be_anything(offset, &readable))
        {
            panic!("after a crash {mismatch}: {:#?}", world.array.status());
        }
        self.check_redundancy(&world, &contents, dice);
        contents
    }

    /// True if the block at `offset` may have any content, if these roles can be read after a crash now (see
    /// the module's head).
    fn may_be_anything(&self, offset: u64, readable: &[bool]) -> bool {
        if self.excused.binary_search(&offset).is_ok() {
            return true;
        }
        let geometry = self.shape.stripes();
        let (stripe, within) = (offset / geometry.stripe(), offset % geometry.stripe());
        let (column, row) = (within / geometry.chunk(), within % geometry.chunk());
        let oracle = self.oracle.borrow();
        if readable[geometry.role_of(stripe, Column::Data(column as usize)).index()]
            || oracle.is_settled(offset)
        {
            return false;
        }
        let in_row = |index: u64| stripe * geometry.stripe() + index * geometry.chunk() + row;
        let is_whole_row = || {
            let mut columns = 0..geometry.data() as u64;
            self.was_complete && columns.all(|index| !oracle.is_settled(in_row(index)))
        };
        match self.shape.consistency {
            Consistency::Ppl => true,
            Consistency::Log => is_whole_row(),
            Consistency::Resync | Consistency::Bitmap => false,
        }
    }

    /// Checks that parity fits in the parts that the array trusts, that the first content that was read is read
    /// again after the array has come to rest, and that parity fits everywhere then.
    fn check_redundancy(&self, world: &World, contents: &[u8], dice: &mut Rng) {
        if world.array.status().resync == Resync::Clean {
            self.check_parity(world, contents, dice);
        }
        let array = world.array.clone();
        let dev = world.dev.clone();
        let pause = world.sleep(1);
        let (status, then) = world.run(async move {
            pause.await;
            (array.status(), read_all(&dev).await)
        });
        let differing = contents.chunks(512).zip(then.chunks(512)).position(|(a, b)| a != b);
        assert_eq!(differing, None, "what was read once is read again: {status:#?}");
        assert!(status.resync == Resync::Clean && status.job.is_none(), "{status:#?}");
        self.check_parity(world, contents, dice);
    }

    /// Checks that parity fits the content that was read; if members are missing, by losing one more.
    fn check_parity(&self, world: &World, contents: &[u8], dice: &mut Rng) {
        let images = images_of(&world.disks.borrow());
        let stripes = Stripes::new(&self.shape, &images);
        let missing = self.shape.members - stripes.roles_in_sync();
        let misfits = stripes.misfits();
        assert_eq!(misfits, [], "rows with other parity: {:#?}", world.array.status());
        let parities = self.shape.stripes().parities();
        if missing == 0 || missing >= parities {
            return;
        }
        let lost = dice.index(self.shape.members);
        let (found, gone) = Stripes::without(&self.shape, &images, &[lost]).contents();
        assert_eq!(gone, [], "without {lost} too little is left");
        let wrong = found.chunks(512).zip(contents.chunks(512)).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "without {lost}: a block is another: {:#?}", world.array.status());
    }
}

/// A possible result of a crash: for each disk all written data, only the certain data, or for each block a
/// random version.
pub(crate) fn some_crash(disks: &[SimDisk], dice: &mut Rng) -> Vec<Option<Vec<u8>>> {
    let way = dice.index(4);
    let image = |disk: &SimDisk| match if way == 3 { dice.index(3) } else { way } {
        0 => disk.contents().to_vec(),
        1 => disk.durable().to_vec(),
        _ => disk.crash_image(&mut *dice).to_vec(),
    };
    disks.iter().map(image).map(|image| Some(image).filter(|image| !image.is_empty())).collect()
}

/// The members without which what `images` are can still be read, in sets of those that may be
/// lost at once; no loss is the first.
pub(crate) fn bearable(shape: &Shape, images: &[Option<Vec<u8>>]) -> Vec<Vec<usize>> {
    let holders = Assembly::new(images).holders();
    let holder = |role: usize| holders[role].iter().find(|one| one.1 == u64::MAX).map(|one| one.0);
    let there: Vec<usize> = (0..shape.members).filter_map(holder).collect();
    let missing = shape.members - there.len();
    let left = shape.stripes().parities().saturating_sub(missing);
    let sets = losses(there.len(), left);
    sets.into_iter().map(|set| set.into_iter().map(|index| there[index]).collect()).collect()
}

/// The images without these disks.
pub(crate) fn without(images: &[Option<Vec<u8>>], lost: &[usize]) -> Vec<Option<Vec<u8>>> {
    let left = |(index, image): (usize, &Option<Vec<u8>>)| {
        image.clone().filter(|_| !lost.contains(&index))
    };
    images.iter().enumerate().map(left).collect()
}

/// A write whose bytes are drawn, told to the oracle.
pub(crate) async fn write(
    dev: &Dev,
    oracle: &Rc<RefCell<Oracle>>,
    dice: &mut Rng,
    span: Span,
    flags: Flags,
) {
    change(dev, oracle, dice, Op::Write, (span, flags)).await;
}

/// A write whose bytes are drawn, a discard or zeroes, told to the oracle.
pub(crate) async fn change(
    dev: &Dev,
    oracle: &Rc<RefCell<Oracle>>,
    dice: &mut Rng,
    op: Op,
    (span, flags): (Span, Flags),
) {
    let (data, io) = match op {
        Op::Discard => (None, Io::discard(span, flags)),
        Op::WriteZeroes => (Some(vec![0; span.len as usize]), Io::write_zeroes(span, flags)),
        _ => {
            let mut buf = pool().get(span.len as usize).unwrap();
            fill(&mut buf, dice);
            (Some(buf.to_vec()), Io::write(span.offset, buf, flags))
        }
    };
    let token = oracle.borrow_mut().begin_write(span, data.as_deref());
    let done = dev.start(io).await;
    assert_eq!(done.result, Ok(()), "{op:?} of {span}");
    oracle.borrow_mut().end_write(token, true, flags.contains(Flags::FUA));
}

pub(crate) async fn read_all(dev: &Dev) -> Vec<u8> {
    let buf = pool().get(dev.limits().size as usize).unwrap();
    let done = dev.start(Io::read(0, buf)).await;
    assert_eq!(done.result, Ok(()));
    done.payload.to_vec()
}

/// Bytes that tell every block from any other.
pub(crate) fn fill(bytes: &mut [u8], dice: &mut Rng) {
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&dice.next_u64().to_le_bytes()));
}
