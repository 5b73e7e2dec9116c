//! Planted misuse: a proof of another array, or of an earlier state, is refused.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use braid_array::Role;
use braid_array::geometry::Raid1;
use braid_block::{Io, Limits};
use braid_md::{BadBlocks, Resync};

use super::core::Core;
use super::layout::SyncByte;
use super::log::{self, LogSetup};
use super::{Layout, MemberState, NewMember, Redundant, STRIPE_CACHE, Setup, Speed};
use crate::{Clock, Dev, Device, Pending};

const SIZE: u64 = 1 << 20;

struct Memory;

impl Device for Memory {
    fn limits(&self) -> Limits {
        Limits::new(SIZE, 512)
    }

    fn start(&self, io: Io) -> Pending {
        Pending::ready(io.complete(Ok(())))
    }
}

struct NoTime;

impl Clock for NoTime {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn unix_time(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::pending())
    }
}

/// Returns a member that answers at once, with a role or as a spare.
pub(super) fn member(number: u32, role: Option<Role>) -> NewMember {
    NewMember {
        label: number.to_string(),
        dev: Dev::new(Memory),
        data_offset: 0,
        number,
        role,
        replacement: false,
        state: if role.is_some() { MemberState::InSync } else { MemberState::Spare },
        by_bitmap: false,
        write_mostly: false,
        superblock: None,
        bad_blocks: BadBlocks::new(4096, 0).expect("a log of bad blocks"),
    }
}

/// Returns a raid1 of three members without superblocks, which answer at once.
pub(super) fn array() -> Rc<Core> {
    let geometry = Raid1::new(SIZE, 3).expect("a raid1");
    let setup = Setup {
        layout: Layout::Copies(std::sync::Arc::new(geometry)),
        members: (0..3).map(|role| member(role, Some(Role::nth(role as usize)))).collect(),
        array: None,
        bitmap: None,
        resync: Resync::Clean,
        log: None,
        stripe_cache: STRIPE_CACHE,
        read_only: false,
        clock: Rc::new(NoTime),
        speed: Speed::default(),
    };
    Rc::clone(&Redundant::new(setup).expect("memory").inner.core)
}

/// Returns the output of `future`, which waits for nothing.
pub(super) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("members that answer at once let nothing wait"),
    }
}

/// Asserts that `misuse` is refused with these `words`.
pub(super) fn assert_refused(words: &str, misuse: impl FnOnce()) {
    let panic = catch_unwind(AssertUnwindSafe(misuse)).expect_err("misuse that passes");
    let said = match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a panic with words")).to_owned(),
    };
    assert!(said.contains(words), "{said}");
}

const OTHER: &str = "a proof of another array";

#[test]
fn published() {
    let (one, other) = (array(), array());
    one.forget_bitmap(now(one.publish()).expect("it runs"));
    assert_refused(OTHER, || one.forget_bitmap(now(other.publish()).expect("it runs")));
    let earlier = now(one.publish()).expect("it runs");
    one.publisher.require();
    one.publisher.name_bitmap();
    assert_refused("a proof of 2 changes, not of 3", || one.forget_bitmap(earlier));
    assert!(one.published().is_none(), "a change is not on the members");
    one.forget_bitmap(now(one.fence()).expect("it runs"));
}

#[test]
fn durable() {
    let (one, other) = (array(), array());
    let log = log::new(one.id, LogSetup::Partial { signature: 1 }, 3);
    log.forget(now(one.settle()).expect("it runs"));
    assert_refused(OTHER, || log.forget(now(other.settle()).expect("it runs")));
    let begun = one.flushes.begun();
    let later = now(one.settle()).expect("it runs");
    later.check(one.id, begun);
    assert_refused("a proof of the flush 3, after 3 others", || {
        later.check(one.id, one.flushes.begun());
    });
    assert_refused(OTHER, || later.check(other.id, begun));
}

#[test]
fn recorded_frontier() {
    let (one, other) = (array(), array());
    let frontier =
        |core: &Rc<Core>| now(core.recorded_frontier()).expect("it runs").expect("clean");
    let proof = frontier(&one);
    proof.check(one.id, &one.publisher);
    assert_refused(OTHER, || frontier(&other).check(one.id, &one.publisher));
    one.agreement.differ_from(SyncByte::new(0));
    let _published = now(one.publish()).expect("it runs");
    assert_refused("a proof of another frontier", || proof.check(one.id, &one.publisher));
}
