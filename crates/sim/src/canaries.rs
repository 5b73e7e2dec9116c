//! Bugs that are planted, to see that they are found: one for each rule of order.
//!
//! A simulator that finds nothing proves nothing, unless it finds what is known to be there. Each
//! canary is planted alone; seeds of arrays that it [`concerns`] are run until one fails, at most
//! [`BUDGET`].

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use braid_engine::canary::{Canary, plant};
use braid_md::Level;

use crate::campaign::{run_scenario, run_seed};
use crate::draw::{CLOCKS, HALVES, HANGS, MEMORY, ORDERS, SHARDS, WIDE, WORLDS};
use crate::rot;
use crate::scenario::Scenario;
use crate::spec::{Policy, Spec};
use crate::timeline::Timeline;

/// As many seeds may go by before a canary counts as one that survived.
pub const BUDGET: u64 = 4000;

/// The result of a canary.
#[derive(Clone, Debug)]
pub struct Found {
    /// The canary.
    pub canary: Canary,
    /// The first seed that fails with it, how many were run, and how it fails; none if it survived.
    pub by: Option<(u64, u64, String)>,
}

/// Runs seeds from `first` on for each of `canaries`, on `threads`; `told` hears of each.
pub fn hunt(
    canaries: &[Canary],
    first: u64,
    threads: usize,
    told: &(dyn Fn(&Found) + Sync),
) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&canary) = canaries.get(index) else { return };
            let one = Found { canary, by: hunt_one(canary, first) };
            told(&one);
            found.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// True if arrays like this have the part that `canary` breaks.
fn concerns(canary: Canary, spec: &Spec) -> bool {
    match canary {
        Canary::BitmapAfterData | Canary::BitsClearedBeforeFlush | Canary::RetrySkipsBit => {
            spec.policy == Policy::Bitmap
        }
        Canary::BitmapNamedBeforeWritten
        | Canary::BitmapLeftBeforeRecorded
        | Canary::NewChunksForgetBits => {
            matches!(spec.policy, Policy::Resync | Policy::Bitmap)
        }
        Canary::FlushLeavesBehind | Canary::LateWriteLetGo => spec.write_behind() > 0,
        Canary::FirstCopyBelieved | Canary::MemoryInParts | Canary::BranchesNotAwaited => {
            !spec.has_parity()
        }
        Canary::UnprovedWritten => spec.has_parity(),
        Canary::FilledWhileDirty => spec.level == Level::Raid10,
        Canary::OlderHeadLeftOut
        | Canary::TornHeaderIsEnd
        | Canary::OldRecordsOfStripeKept
        | Canary::GroupEndsWithAUnit => spec.policy == Policy::Log,
        Canary::LogNotReplayed
        | Canary::LogForgottenBeforeFence
        | Canary::PartialWriteNotLogged
        | Canary::ZeroesNotLogged => matches!(spec.policy, Policy::Ppl | Policy::Log),
        Canary::ParityWithoutLock | Canary::DoubtfulParityBelieved | Canary::DiscardPassedOn => {
            spec.has_parity()
        }
        _ => true,
    }
}

/// Which seeds are run for `canary` if all are from `first` on.
fn first_for(canary: Canary, first: u64) -> u64 {
    match canary {
        Canary::BitmapNamedBeforeWritten
        | Canary::BitmapLeftBeforeRecorded
        | Canary::NewChunksForgetBits => first | ORDERS,
        Canary::AskedWhileOverdue => first | HANGS,
        Canary::OlderHeadLeftOut => first | CLOCKS,
        Canary::MemoryInParts => first | MEMORY,
        Canary::ShardsNotWaitedFor | Canary::BlocksNotLeased | Canary::BranchesNotAwaited => {
            first | SHARDS
        }
        _ => first,
    }
}

/// The first seed from `first` on whose halves fail with `canary`, and are well without.
fn hunt_in_halves(canary: Canary, first: u64) -> Option<(u64, u64, String)> {
    for (seed, count) in (first | HALVES..).zip(1..=BUDGET) {
        plant(Some(canary));
        let with = run_seed(seed);
        plant(None);
        if let Err(what) = with
            && run_seed(seed).is_ok()
        {
            return Some((seed, count, what));
        }
    }
    None
}

/// The lives before starts with flipped bits in which `canary` shows, if it does in such lives: by their seeds from
/// `first` on.
fn rotten_lives(canary: Canary, first: u64) -> Option<Box<dyn Iterator<Item = u64>>> {
    match canary {
        Canary::EventsClearedAfterBits => Some(Box::new((first | WIDE)..)),
        Canary::OneBitmapBelieved => Some(Box::new((first..).filter(|seed| {
            let (spec, _) = rot::plot(*seed);
            spec.policy == Policy::Bitmap
        }))),
        _ => None,
    }
}

/// The same for a canary that shows in such lives.
fn hunt_in(canary: Canary, lives: impl Iterator<Item = u64>) -> Option<(u64, u64, String)> {
    for (seed, count) in lives.zip(1..=BUDGET) {
        plant(Some(canary));
        let with = rot::run_life(seed);
        plant(None);
        if let Some((_, what)) = with.failed.into_iter().next()
            && rot::run_life(seed).failed.is_empty()
        {
            return Some((seed, count, what));
        }
    }
    None
}

/// The first seed from `first` on that fails with `canary`, and is well without.
fn hunt_one(canary: Canary, first: u64) -> Option<(u64, u64, String)> {
    if let Some(lives) = rotten_lives(canary, first & !WIDE) {
        return hunt_in(canary, lives);
    }
    if canary == Canary::HalfTakenBack {
        return hunt_in_halves(canary, first);
    }
    let worlds = WORLDS.iter().fold(0, |all, world| all | world);
    let first = first_for(canary, first & !WIDE & !worlds);
    let scenarios = (0..).map(|index| Scenario::of(first.wrapping_add(index)));
    let concerned = scenarios.filter(|scenario| concerns(canary, &scenario.spec));
    for (scenario, count) in concerned.zip(1..=BUDGET) {
        let seed = scenario.seed;
        plant(Some(canary));
        let with = run_scenario(&scenario, &Timeline::default());
        plant(None);
        if let Err(what) = with
            && run_scenario(&scenario, &Timeline::default()).is_ok()
        {
            return Some((seed, count, what));
        }
    }
    None
}
