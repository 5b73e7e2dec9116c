//! Bytes that a tool claims against bytes that the devices moved: fewer, and a cache answered. Where no
//! device can be asked, sizes say whether one could have.
//!
//! ```text
//! tool     claims 256 MiB read
//!   │ page cache of the file system or of the device   <── answers without the device
//! target   loop3 moved 3 MiB
//!   │ the subject: braid, md, a loop device            <── a cache below the subject
//! members  vda moved 3 MiB
//! ```
//!
//! A tool counts no byte of its ramp, and the devices do; the members of an array with copies or
//! parity move more than its device. Both are expected of them, at least.
//!
//! Devices that moved more than was claimed are the matter of `others.rs`.

use super::Checked;
use super::case::{TrialCase, mib, percent, stack_of};
use super::levels::{arrangements, least_written};
use braid_lab::evidence::Moved;
use braid_lab::facts::Place;
use braid_lab::metric::Metric;

/// Share of the claimed bytes below which the number is the cache's: with half of the bytes from
/// memory a rate is at least doubled.
const CACHED: f64 = 0.5;
/// Share below which it is off by more than the noise of storage. Direct I/O moves all bytes, and
/// buffered I/O that misses the cache too.
const PARTLY_CACHED: f64 = 0.9;
/// The least rate of a ramp, as a part of the measured rate: a warm-up or a neighbour may slow the ramp down,
/// and the tool does not count its bytes in it.
const LEAST_IN_RAMP: f64 = 0.5;
/// Claims below this are too few to be compared with a device's counters.
const LEAST_CLAIM: f64 = 1024.0 * 1024.0;
/// The factor by which the data must exceed a cache: at twice its size, half of random requests still hit it.
const CACHE_ROOM: u64 = 2;
/// The ratio of claimed over existing bytes from which some bytes must have been used twice.
const REREAD: f64 = 1.1;

/// The claim of a tool for one direction, and the witness's name for it.
pub(super) struct Claim {
    pub(super) bytes: f64,
    /// The same, plus the bytes in the ramp at the same rate.
    pub(super) with_ramp: f64,
    pub(super) word: &'static str,
    pub(super) of: fn(Moved) -> u64,
}

impl Claim {
    /// The least that the tool did in all.
    fn least(&self) -> f64 {
        self.bytes + LEAST_IN_RAMP * (self.with_ramp - self.bytes)
    }
}

/// Reading and writing.
pub(super) fn claims(case: &TrialCase<'_>) -> [Option<Claim>; 2] {
    let ramp = case.ramp_factor();
    let claim = |metric, word, of: fn(Moved) -> u64| {
        case.get(metric).map(|bytes| Claim { bytes, with_ramp: bytes * ramp, word, of })
    };
    [
        claim(Metric::BytesRead, "read", |moved| moved.read_bytes),
        claim(Metric::BytesWritten, "written", |moved| moved.written_bytes),
    ]
}

/// The sum of the bytes that all members' disks moved; `None` if a member is not on a disk, so that the
/// expected amount is unknown.
pub(super) fn disks_moved(case: &TrialCase<'_>) -> Option<Moved> {
    let members = &case.evidence.members;
    let are_disks = case.all_members(|one| matches!(one.place, Place::Disk(_)));
    let add = |sum: Moved, one: Moved| Moved {
        read_bytes: sum.read_bytes.saturating_add(one.read_bytes),
        written_bytes: sum.written_bytes.saturating_add(one.written_bytes),
        ..sum
    };
    members.iter().filter(|_| are_disks).map(|(_, moved)| *moved).reduce(add)
}

/// Rule `page-cache`.
pub(super) fn check_page_cache(case: &TrialCase<'_>) -> Checked {
    let mut checked = Checked::Unknown;
    for claim in claims(case).into_iter().flatten().filter(|claim| claim.bytes >= LEAST_CLAIM) {
        match check_claim(case, &claim) {
            Checked::Unknown => {}
            Checked::Fine => checked = Checked::Fine,
            found => return found,
        }
    }
    if checked == Checked::Unknown { check_sizes(case) } else { checked }
}

fn check_claim(case: &TrialCase<'_>, claim: &Claim) -> Checked {
    let target = case.target().map(|moved| (claim.of)(moved) as f64);
    let disks = disks_moved(case).map(|moved| (claim.of)(moved) as f64);
    let at_disks = claim.least() * least_at_disks(case, claim);
    let (witness, moved, expected) = match (target, disks) {
        (Some(moved), _) => ("its device", moved, claim.least()),
        (None, Some(moved)) => ("the members' disks", moved, at_disks),
        (None, None) => return Checked::Unknown,
    };
    let share = moved / expected;
    if share < PARTLY_CACHED {
        let mut why = format!(
            "the tool claims {} {}{} and {witness} moved {} of them ({})",
            mib(claim.bytes),
            claim.word,
            in_all(claim, expected),
            mib(moved),
            percent(share)
        );
        if claim.word == "written" {
            why += ": the rest was in memory when the clock stopped, or was overwritten there";
        }
        let kept = claim.word == "read" && !case.workload.setup.drop_caches && !case.is_direct();
        if case.is_direct() {
            why += ", although O_DIRECT was asked for";
        } else if kept {
            why += ", with caches kept as asked for";
        }
        return if share < CACHED && !kept { Checked::invalid(why) } else { Checked::suspect(why) };
    }
    match disks.filter(|_| target.is_some()) {
        // The subject itself was asked for every byte, so the number is the subject's; but it is
        // not that of the disks that it stands for.
        Some(moved) if moved / at_disks < CACHED => Checked::suspect(format!(
            "the subject was asked for {}{} and the disks under it moved {} ({}): a cache below it \
             answered",
            mib(claim.bytes),
            in_all(claim, at_disks),
            mib(moved),
            percent(moved / at_disks)
        ))
        .but_do(
            "let the layer below go past the cache too (losetup --direct-io=on), or take a region \
             well above the memory",
        ),
        _ => Checked::Fine,
    }
}

/// The least that the members' disks move of each byte, in the state that was asked for.
fn least_at_disks(case: &TrialCase<'_>, claim: &Claim) -> f64 {
    let stack = stack_of(case.subject).filter(|_| claim.word == "written");
    let arrangements = stack.map(|stack| arrangements(&stack, case.workload.setup.health));
    let least = arrangements.iter().flatten().map(least_written);
    least.reduce(f64::min).unwrap_or(1.0)
}

/// The addition to the claim in the expected amount, for a sentence; empty if there is none.
fn in_all(claim: &Claim, expected: f64) -> String {
    let why = match (claim.with_ramp > claim.bytes, expected > claim.least()) {
        (false, false) => return String::new(),
        (true, false) => "its ramp",
        (false, true) => "copies or parity",
        (true, true) => "its ramp and copies or parity",
    };
    format!(", at least {} with {why},", mib(expected))
}

/// The check without the devices' counters: whether the data fit into memory, and whether some were there when
/// they were requested.
fn check_sizes(case: &TrialCase<'_>) -> Checked {
    let data = case.working_set();
    let Some(memory) = case.evidence.memory_bytes.filter(|_| !case.is_direct()) else {
        return Checked::Unknown;
    };
    if data >= memory.saturating_mul(CACHE_ROOM) {
        return Checked::Fine;
    }
    let mut claims = claims(case).into_iter().flatten();
    let again = claims.find(|claim| data > 0 && claim.bytes > REREAD * data as f64);
    let how = if let Some(claim) = again {
        let bytes = mib(claim.bytes);
        format!("{bytes} {} of them, so some again and again", claim.word)
    } else if case.get(Metric::BonnieRead).is_some() {
        "read back right after they were written".to_owned()
    } else if case.get(Metric::BytesRead).is_some() && !case.workload.setup.drop_caches {
        "caches were not dropped before".to_owned()
    } else {
        return Checked::Unknown;
    };
    Checked::suspect(format!(
        "no device can be asked, and the data are {} and the memory is {}, without O_DIRECT: {how}",
        mib(data as f64),
        mib(memory as f64)
    ))
}
