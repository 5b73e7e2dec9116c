//! A resync of members of 64 GiB on which there is next to nothing.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use braid_array::Role;
use braid_array::geometry::{Raid1, Raid10, Raid456};
use braid_block::{Extent, Io, Limits, Op, Span};
use braid_engine::redundant::{Layout, NewMember, Redundant, STRIPE_CACHE, Setup, Speed};
use braid_engine::{Dev, Device, Extents, Pending};
use braid_level::{ParityLayout, ParityLevel, Raid10Layout};
use braid_md::Resync;
use braid_sim::{Handle, Sim};

use crate::world::SimClock;

const SIZE: u64 = 64 << 30;
/// The part of a member that is stored.
const PLACE: Span = Span { offset: 20 << 30, len: 64 << 10 };

/// A disk that stores one place; the rest is a hole.
#[derive(Clone)]
struct Sparse {
    /// On another machine, which is asked for its holes.
    asks: Option<Handle>,
    place: Rc<RefCell<Vec<u8>>>,
    read: Rc<Cell<u64>>,
}

impl Sparse {
    fn new(byte: u8, asks: Option<Handle>) -> Sparse {
        let place = vec![byte; PLACE.len as usize];
        Sparse { asks, place: Rc::new(RefCell::new(place)), read: Rc::default() }
    }

    fn is_stored(&self, at: u64) -> bool {
        let is_empty = self.place.borrow().iter().all(|byte| *byte == 0);
        !is_empty && at >= PLACE.offset && at < PLACE.end()
    }
}

impl Device for Sparse {
    fn limits(&self) -> Limits {
        Limits::new(SIZE, 512)
    }

    fn start(&self, mut io: Io) -> Pending {
        let index = |at: u64| (at - PLACE.offset) as usize;
        if io.op == Op::Read {
            self.read.set(self.read.get() + io.span.len);
            let mut at = io.span.offset;
            for buf in io.payload.bufs_mut() {
                for byte in &mut buf[..] {
                    *byte = if self.is_in_place(at) { self.place.borrow()[index(at)] } else { 0 };
                    at += 1;
                }
            }
        }
        if io.op == Op::Write {
            for (at, byte) in (io.span.offset..).zip(io.payload.to_vec()) {
                assert!(self.is_in_place(at) || byte == 0, "a write of {byte} at {at}");
                if self.is_in_place(at) {
                    self.place.borrow_mut()[index(at)] = byte;
                }
            }
        }
        Pending::ready(io.complete(Ok(())))
    }

    fn extents(&self, span: Span) -> Extents {
        let disk = self.clone();
        match self.asks.clone() {
            None => Extents::Known(self.known(span)),
            Some(handle) => Extents::asked(async move {
                handle.sleep(5_000_000).await;
                disk.known(span)
            }),
        }
    }
}

impl Sparse {
    fn known(&self, span: Span) -> Vec<Extent> {
        if !self.is_stored(PLACE.offset) || span.end() <= PLACE.offset || span.offset >= PLACE.end()
        {
            return vec![Extent::hole(span.len)];
        }
        match span.offset < PLACE.offset {
            true => vec![Extent::hole(PLACE.offset - span.offset)],
            false => vec![Extent::data(span.end().min(PLACE.end()) - span.offset)],
        }
    }

    fn is_in_place(&self, at: u64) -> bool {
        at >= PLACE.offset && at < PLACE.end()
    }
}

fn layouts() -> Vec<Layout> {
    const CHUNK: u64 = 512 << 10;
    let raid10 = Raid10Layout::from_number(0x102).unwrap();
    let parity = |level, members| {
        let layout = ParityLayout::from_number(level, 2).unwrap();
        Layout::Parity(Raid456::new(SIZE, members, CHUNK, level, layout).unwrap())
    };
    vec![
        Layout::Copies(Arc::new(Raid1::new(SIZE, 2).unwrap())),
        Layout::Copies(Arc::new(Raid10::new(SIZE, 4, 64 << 20, raid10).unwrap())),
        parity(ParityLevel::Raid5, 4),
        parity(ParityLevel::Raid6, 5),
    ]
}

#[test]
fn what_no_member_has_stored_is_not_read_and_what_one_has_is() {
    let worlds =
        layouts().into_iter().flat_map(|layout| [0, 1, 2].map(|far| (layout.clone(), far)));
    for (layout, far) in worlds {
        let sim = Sim::new(1);
        sim.be_punctual();
        // The one with data is here or there.
        let asks = |index: usize| (index % 2 == far).then(|| sim.handle());
        let disks: Vec<Sparse> = (0..layout.members())
            .map(|index| Sparse::new(u8::from(index == 0), asks(index)))
            .collect();
        let member = |(number, disk): (u16, &Sparse)| {
            NewMember::unrecorded(number.to_string(), Dev::new(disk.clone()), Role::new(number))
        };
        let array = Redundant::new(Setup {
            members: (0..).zip(&disks).map(member).collect(),
            layout,
            array: None,
            bitmap: None,
            resync: Resync::From(0),
            log: None,
            stripe_cache: STRIPE_CACHE,
            read_only: false,
            clock: Rc::new(SimClock(sim.handle())),
            speed: Speed::default(),
        })
        .unwrap();
        let (handle, mirror) = (sim.handle(), array.clone());
        handle.spawn("array", array.run());
        sim.block_on(async move {
            let handle = handle.clone();
            while mirror.status().resync != Resync::Clean {
                assert!(handle.now() < 60_000_000_000, "{:?}", mirror.status().job);
                handle.sleep(100_000_000).await;
            }
        });
        let read: u64 = disks.iter().map(|disk| disk.read.get()).sum();
        assert!((2 * PLACE.len..64 << 20).contains(&read), "{read} bytes were read");
        let stored = disks.iter().filter(|disk| disk.is_stored(PLACE.offset)).count();
        let zeroed = disks.iter().all(|disk| disk.place.borrow()[0] == 0);
        assert!(stored >= 2 || zeroed, "one member still differs");
    }
}
