//! Members that answer in the call, where a write takes a shorter way.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::{Errno, Flags, Io, Limits, Op};
use braid_engine::redundant::MemberState;
use braid_engine::{Dev, Device, Pending};
use braid_sim::{Client, Handle, Load, Sim, for_each_seed};

use crate::world::{
    DATA, PAIR, PAIR_BITMAP, SHAPES, Shape, TRIPLE, World, data_of, filled, pool, rng,
    superblock_of,
};

/// Memory that fails as it is told.
#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) bytes: Rc<RefCell<Vec<u8>>>,
    /// The number of writes to the data that succeed.
    pub(crate) good_writes: Rc<Cell<usize>>,
}

impl Memory {
    fn new(image: Vec<u8>) -> Memory {
        let bytes = Rc::new(RefCell::new(image));
        Memory { bytes, good_writes: Rc::new(Cell::new(usize::MAX)) }
    }

    fn carry_out(&self, io: &mut Io) -> Result<(), Errno> {
        let mut bytes = self.bytes.borrow_mut();
        if io.op.is_modifying() && io.op != Op::Discard && io.span.offset >= DATA {
            match self.good_writes.get().checked_sub(1) {
                Some(left) => self.good_writes.set(left),
                None => return Err(Errno::IO),
            }
        }
        let there = &mut bytes[io.span.offset as usize..io.span.end() as usize];
        match io.op {
            Op::Read => {
                let mut from = &there[..];
                for buf in io.payload.bufs_mut() {
                    let (part, rest) = from.split_at(buf.len());
                    buf.copy_from_slice(part);
                    from = rest;
                }
            }
            Op::Write => there.copy_from_slice(&io.payload.to_vec()),
            Op::WriteZeroes => there.fill(0),
            Op::Flush | Op::Discard => {}
        }
        Ok(())
    }
}

impl Device for Memory {
    fn limits(&self) -> Limits {
        let size = self.bytes.borrow().len() as u64;
        Limits { immediate: true, ..Limits::new(size, 512) }
    }

    fn start(&self, mut io: Io) -> Pending {
        let result = self.carry_out(&mut io);
        Pending::ready(io.complete(result))
    }
}

/// An array of memory.
pub(crate) fn array(seed: u64, shape: Shape) -> (World, Vec<Memory>) {
    let memories: Vec<Memory> = shape.images().into_iter().flatten().map(Memory::new).collect();
    let world = World::with(seed, shape, &shape.images(), |setup| {
        for (member, memory) in setup.members.iter_mut().zip(&memories) {
            member.dev = Dev::new(memory.clone());
        }
    });
    (world, memories)
}

#[test]
fn random_requests_agree_with_the_oracle_while_a_member_fails() {
    let name = "memory::random_requests_agree_with_the_oracle_while_a_member_fails";
    for_each_seed(name, 100, |seed| {
        let shape = Shape::number(seed);
        let (world, memories) = array(seed, shape);
        let bad = rng(seed).index(shape.members);
        memories[bad].good_writes.set(seed as usize / 10 * 7);
        let (mirror, pause) = (world.array.clone(), world.sleep(20));
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        world.run(async move {
            let load = Load { requests: 150, depth: 4, longest: 24, overlapping: true };
            let report = client.run(load).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = mirror.status();
            assert!(!status.active, "{status:#?}");
            for (index, member) in status.members.iter().enumerate() {
                assert!(index == bad || member.state == MemberState::InSync, "{status:#?}");
            }
        });
        if shape.level == braid_md::Level::Raid1 {
            let mut others = memories.iter().enumerate().filter(|(index, _)| *index != bad);
            let first = others.next().unwrap().1.bytes.borrow().clone();
            assert!(others.all(|(_, one)| data_of(&one.bytes.borrow()) == data_of(&first)));
        }
    });
}

/// A spare on a slow disk makes the writing of superblocks take its time.
///
/// ```text
///   idle ──▶ superblocks "clean" under way ─────────────────────▶
///                       write ──▶ must not be answered before "active" is on the members again
/// ```
#[test]
fn no_write_is_answered_while_the_superblocks_say_clean() {
    let name = "memory::no_write_is_answered_while_the_superblocks_say_clean";
    for_each_seed(name, 40, |seed| {
        let shape = [PAIR, PAIR_BITMAP, TRIPLE, SHAPES[4]][seed as usize % 4];
        let (world, memories) = array(seed, shape);
        let spare = world.spare(20);
        let (dev, mirror, handle) = (world.dev.clone(), world.array.clone(), world.sim.handle());
        let mut choices = rng(seed);
        world.run(async move {
            mirror.add(spare).await.unwrap();
            for round in 0..300 {
                // Around the moment when an array at rest is marked clean.
                handle.sleep(choices.within(0..=60_000) * 10_000).await;
                let done = dev.start(Io::write(4096, filled(512, round as u8), Flags::NONE)).await;
                assert_eq!(done.result, Ok(()));
                let status = mirror.status();
                assert!(status.active, "{status:#?}");
                for memory in &memories {
                    let superblock = superblock_of(&memory.bytes.borrow());
                    assert!(!superblock.is_clean(), "round {round}: {}", superblock.events);
                }
            }
        });
    });
}

/// Memory that says that it answers in the call, and is late with one write to the data.
struct Late {
    memory: Memory,
    /// The time of the next write to the data.
    late_ns: Rc<Cell<Option<u64>>>,
    handle: Handle,
}

impl Device for Late {
    fn limits(&self) -> Limits {
        self.memory.limits()
    }

    fn start(&self, mut io: Io) -> Pending {
        let is_data = io.op == Op::Write && io.span.offset >= DATA;
        let Some(late_ns) = self.late_ns.get().filter(|_| is_data) else {
            return self.memory.start(io);
        };
        self.late_ns.set(None);
        let (memory, handle) = (self.memory.clone(), self.handle.clone());
        Pending::task(async move {
            handle.sleep(late_ns).await;
            let result = memory.carry_out(&mut io);
            io.complete(result)
        })
    }
}

/// ```text
///   write A ──▶ copy 0 ── copy 1 is late ───────────────────────▶ both again ──▶ answered
///   write B                   waits, and the array stays active                       B ──▶ answered
/// ```
#[test]
fn a_write_that_a_member_is_late_with_keeps_others_and_clean_away() {
    const LATE_NS: u64 = 30_000_000_000;
    let memories: Vec<Memory> = PAIR.images().into_iter().flatten().map(Memory::new).collect();
    let late_ns = Rc::new(Cell::new(None));
    let sim = Sim::new(1);
    let (memory, handle) = (memories[1].clone(), sim.handle());
    let late = Late { memory, late_ns: Rc::clone(&late_ns), handle };
    let world = World::on(sim, PAIR, &PAIR.images(), |setup| {
        setup.members[0].dev = Dev::new(memories[0].clone());
        setup.members[1].dev = Dev::new(late);
    });
    let (dev, mirror, nearly) = (world.dev.clone(), world.array.clone(), world.sleep(25));
    world.run(async move {
        let write = |byte| dev.start(Io::write(4096, filled(512, byte), Flags::NONE));
        assert_eq!(write(1).await.result, Ok(()));
        late_ns.set(Some(LATE_NS));
        let (late, next) = (write(2), write(3));
        assert!(late_ns.get().is_none(), "the array was active, and asked within the call");
        assert!(!matches!(next, Pending::Ready(_)), "it overtakes the write before it");
        nearly.await;
        assert!(mirror.status().active, "clean, and the copies differ");
        assert_eq!((late.await.result, next.await.result), (Ok(()), Ok(())));
    });
    let data =
        memories.iter().map(|one| one.bytes.borrow()[DATA as usize + 4096..][..512].to_vec());
    assert_eq!(data.collect::<Vec<_>>(), [[3; 512], [3; 512]]);
}
