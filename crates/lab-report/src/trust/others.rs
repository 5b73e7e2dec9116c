//! Devices that moved more bytes than the trial accounts for: another program used them.
//!
//! ```text
//! tool     claims 256 MiB written
//! target   moved at most 2 x 256 MiB: data and a journal
//!   │ raid5: data, parity, and a log of both
//! members  moved at most 2 x 2 x 2 x 256 MiB, and superblocks and bitmaps
//! ```
//!
//! A device may move more than the claimed bytes for many good reasons (metadata, parity, read-ahead). For each
//! the greatest amount is allowed, so this finds a neighbour that moves as much as the trial itself, but not
//! one that reads a file now and then.

use super::Checked;
use super::bytes::{claims, disks_moved};
use super::case::{TrialCase, mib, stack_of};
use super::levels::{ITSELF, most_of};
use braid_lab::campaign::Health;
use braid_lab::evidence::Moved;
use braid_lab::facts::Place;
use braid_lab::metric::Metric;

/// The ratio of moved over allowed bytes from which another program must have moved some.
const OTHERS: f64 = 1.5;
/// Bytes that a device moves independently of the trial: for mounts, superblocks, bitmaps ...
const SLACK: f64 = 32.0 * 1024.0 * 1024.0;
/// ... and in every second: for logs, journals, clocks. Smaller amounts do not disturb a measurement of more
/// than some MiB/s.
const SLACK_PER_S: f64 = 2.0 * 1024.0 * 1024.0;
/// The kernel's default read-ahead: a buffered request may make this of itself.
const READ_AHEAD: u64 = 128 << 10;
/// Least unit of a device behind a cache or a parity level.
const PAGE: f64 = 4096.0;
/// Writes for a write to a file system: data and at most a journal of it.
const JOURNAL: f64 = 2.0;
/// Writes for a write that an array's bitmap and superblocks may add.
const BITMAP: f64 = 2.0;
/// Bytes of strangers, as a share of the tool's, that are told where the devices' counters cannot
/// say whether they went to the same devices ...
const STRANGERS: f64 = 0.1;
/// ... and the least that are.
const STRANGERS_LEAST: f64 = 64.0 * 1024.0 * 1024.0;

/// Bytes that may be read and written in all of the trial.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    read: f64,
    written: f64,
}

/// Rule `another-writer`.
pub(super) fn check_others(case: &TrialCase<'_>) -> Checked {
    let target = case.target().zip(at_target(case));
    let disks = disks_moved(case).zip(at_disks(case));
    let found = |who, (moved, allowed)| excess(case, who, moved, allowed);
    let of_target = target.and_then(|seen| found("its device", seen));
    match of_target.or_else(|| disks.and_then(|seen| found("the members' disks", seen))) {
        Some(why) => Checked::suspect(why),
        None if disks.is_some() => Checked::Fine,
        None => check_strangers(case, target.is_some()),
    }
}

/// Requests of the whole trial; `None` when the tool counts none.
fn requests(case: &TrialCase<'_>) -> Option<f64> {
    Some(case.get(Metric::Requests)? * case.ramp_factor())
}

/// The requested bytes, or a minimum for each request if that is more; 0 stays 0.
fn at_least(asked: f64, least: f64) -> f64 {
    if asked > 0.0 { asked.max(least) } else { 0.0 }
}

/// The bytes that the tool requested, including its ramp, and that a cache turns them into. `None` if the tool
/// does not report them, or read-ahead could explain any number.
fn at_target(case: &TrialCase<'_>) -> Option<Allowed> {
    let [mut read, mut written] =
        claims(case).map(|claim| claim.map_or(0.0, |claim| claim.with_ramp));
    if read + written <= 0.0 {
        return None;
    }
    if !case.is_direct() {
        let ahead = case.workload.setup.readahead.map_or(READ_AHEAD, |size| size.0).max(READ_AHEAD);
        let requests = requests(case)?;
        // A write of less than a page reads the page first.
        let pages = if written > 0.0 { requests * PAGE } else { 0.0 };
        read = at_least(read, requests * ahead as f64) + pages;
        written = at_least(written, requests * PAGE);
    }
    if !case.is_raw() {
        written *= JOURNAL;
    }
    Some(Allowed { read, written })
}

/// The bytes that the levels turn these into. `None` for arrays that are not healthy.
fn at_disks(case: &TrialCase<'_>) -> Option<Allowed> {
    let at_target = at_target(case).filter(|_| case.workload.setup.health == Health::Healthy)?;
    let most = stack_of(case.subject).map_or(ITSELF, |stack| most_of(&stack));
    let requests = requests(case)?;
    let written = at_least(at_target.written, requests * PAGE);
    // Members may be files behind a cache that reads ahead.
    let read = at_least(at_target.read, requests * READ_AHEAD as f64);
    Some(Allowed { read: read + written * most.read, written: written * most.written * BITMAP })
}

fn excess(case: &TrialCase<'_>, who: &str, moved: Moved, allowed: Allowed) -> Option<String> {
    let slack = SLACK + SLACK_PER_S * case.evidence.span_s.unwrap_or(case.trial.duration_s);
    let directions = [
        ("read", moved.read_bytes as f64, allowed.read),
        ("wrote", moved.written_bytes as f64, allowed.written),
    ];
    let (word, moved, allowed) =
        directions.into_iter().find(|(_, moved, allowed)| *moved > allowed * OTHERS + slack)?;
    let mut why =
        format!("{who} {word} {}, and the trial accounts for {} at most", mib(moved), mib(allowed));
    if let Some((name, bytes)) = case.evidence.strangers.first() {
        why += &format!("; {name} moved {} meanwhile", mib(*bytes as f64));
    }
    Some(why)
}

/// Without the counters of the members' disks the strangers themselves are all there is to see.
fn check_strangers(case: &TrialCase<'_>, is_checked: bool) -> Checked {
    let strangers = case.evidence.strangers.iter().map(|(name, bytes)| (name, *bytes as f64));
    let bytes: f64 = strangers.clone().map(|(_, bytes)| bytes).sum();
    let own: f64 = claims(case).into_iter().flatten().map(|claim| claim.bytes).sum();
    let far_from_disks = case.all_members(|one| matches!(one.place, Place::Memory | Place::Bus(_)));
    if !far_from_disks && bytes >= STRANGERS_LEAST && bytes >= STRANGERS * own {
        let names: Vec<String> =
            strangers.map(|(name, bytes)| format!("{name} ({})", mib(bytes))).collect();
        return Checked::suspect(format!(
            "other programs moved {} to or from storage meanwhile, perhaps on the same devices: {}",
            mib(bytes),
            names.join(", ")
        ));
    }
    let was_looked_at = far_from_disks || is_checked || case.evidence.span_s.is_some();
    if was_looked_at { Checked::Fine } else { Checked::Unknown }
}
