//! Members that answer in the call, where a small write takes a shorter way.

use std::rc::Rc;

use braid_engine::redundant::{Consistency, MemberState};
use braid_sim::{Client, Load, for_each_seed};

use crate::copies::memory::array;
use crate::parity::conformance::all_shapes;
use crate::parity::images::{Stripes, check_recoverable, check_whole, contents};
use crate::world::{pool, rng};

/// Small writes, and some of several chunks. In two of three runs a member fails, between the writes of data and
/// parity as well as before both.
#[test]
fn small_writes_agree_with_the_oracle_while_a_member_fails() {
    let mut shapes = all_shapes();
    shapes.retain(|shape| shape.consistency != Consistency::Log);
    let name = "parity::memory::small_writes_agree_with_the_oracle_while_a_member_fails";
    for_each_seed(name, 150, |seed| {
        let shape = shapes[seed as usize * 7 % shapes.len()];
        let (world, memories) = array(seed, shape);
        let mut dice = rng(!seed);
        let bad = (!seed.is_multiple_of(3)).then(|| dice.index(shape.members));
        if let Some(bad) = bad {
            memories[bad].good_writes.set(dice.index(120));
        }
        let mut client = Client::new(world.dev.clone(), pool(), rng(seed));
        let oracle = Rc::clone(&client.oracle);
        let (array, pause) = (world.array.clone(), world.sleep(20));
        world.run(async move {
            let load = Load { requests: 200, depth: 4, longest: 10, overlapping: true };
            let report = client.run(load).await;
            assert!(report.errors.is_empty(), "{:?}", report.errors);
            pause.await;
            let status = array.status();
            assert!(!status.active && !status.broken, "{status:#?}");
            for (index, member) in status.members.iter().enumerate() {
                let is_bad = bad == Some(index);
                assert!(is_bad || member.state == MemberState::InSync, "{status:#?}");
            }
        });
        let images: Vec<_> =
            memories.iter().map(|memory| Some(memory.bytes.borrow().clone())).collect();
        match bad {
            None => check_whole(&shape, &images),
            Some(_) => assert!(Stripes::new(&shape, &images).misfits().is_empty(), "misfits"),
        }
        let bytes = contents(&shape, &images);
        oracle.borrow().check_crash(&bytes).unwrap();
        check_recoverable(&shape, &images, &bytes);
    });
}
