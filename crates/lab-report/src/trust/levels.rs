//! The greatest rate of an array in units of its members' rates, and the bytes that reach them.
//!
//! ```text
//!                 rate at most               bytes of its members for a byte written
//!                 reading   writing          at least              at most
//! linear, raid0   the sum   the sum          1                     1
//! raid1, raid10   the sum   slowest · d      n / d                 n / d
//! raid4, 5, 6     the sum   slowest · d      n / d: whole stripes  old data and parities read, all of
//!                                                                  them written twice (a log)
//! ```
//!
//! With n members of one size that hold as much as d of them, as computed by `braid-level`. Members that are
//! out write nothing, and delay nothing. Nested levels multiply.

use braid_stack::Stack;

use braid_lab::campaign::Health;
use braid_lab::source::leave_one_out;

/// The greatest number of bytes on the members for one byte written to an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Most {
    /// Bytes written.
    pub(super) written: f64,
    /// Bytes read.
    pub(super) read: f64,
}

/// The factors of a source that is not an array.
pub(super) const ITSELF: Most = Most { written: 1.0, read: 0.0 };

/// The possible arrangements of the array in a trial with such a state, with `missing` for a member that is
/// out; at least one. While a member is filled again there are both, for an unknown time each.
pub(super) fn arrangements(stack: &Stack, health: Health) -> Vec<Stack> {
    let whole = stack.clone();
    let mut short = stack.clone();
    if !leave_one_out(&mut short) {
        return vec![whole];
    }
    match health {
        Health::Healthy | Health::Scrubbing => vec![whole],
        Health::Degraded => vec![short],
        Health::Rebuilding | Health::Story => vec![whole, short],
    }
}

/// The number of data members of a level whose members are all written the same share; `None` of `md`,
/// whose members would have to say it.
fn shared_by(stack: &Stack) -> Option<f64> {
    let shape = stack.shape().filter(|shape| shape.level.is_redundant())?;
    shape.data_members(stack.members().len())
}

/// The highest rate of a stack, from its leaves'. `None` where a leaf's or the level is not known.
pub(super) fn highest_rate(
    stack: &Stack,
    writes: bool,
    leaf: &impl Fn(&Stack) -> Option<f64>,
) -> Option<f64> {
    if stack.members().is_empty() {
        return if stack.is_missing() { Some(0.0) } else { leaf(stack) };
    }
    stack.shape()?;
    let there = stack.members().iter().filter(|member| !member.is_missing());
    let rates: Vec<f64> =
        there.map(|member| highest_rate(member, writes, leaf)).collect::<Option<_>>()?;
    match shared_by(stack).filter(|_| writes) {
        Some(data) => Some(rates.into_iter().reduce(f64::min)? * data),
        None => Some(rates.into_iter().sum()),
    }
}

/// The least that reaches the members of each byte written.
pub(super) fn least_written(stack: &Stack) -> f64 {
    let there = stack.members().iter().filter(|member| !member.is_missing()).map(least_written);
    match shared_by(stack) {
        Some(data) => there.sum::<f64>() / data,
        // One of its members may get all bytes; the level of `md` is unknown.
        None => there.reduce(f64::min).unwrap_or(1.0),
    }
}

/// The most that a byte written is on the members. Parity levels read old data and parities, or all the
/// other members, before a small write, and may write everything to a log first.
pub(super) fn most_of(stack: &Stack) -> Most {
    let members = stack.members();
    if members.is_empty() {
        return ITSELF;
    }
    let n = members.len() as f64;
    let below = members
        .iter()
        .map(most_of)
        .fold(ITSELF, |a, b| Most { written: a.written.max(b.written), read: a.read.max(b.read) });
    let parity = stack.shape().and_then(|shape| shape.level.with_parity());
    let (written, read) = match (parity, stack.shape()) {
        (Some(level), _) => (2.0 * (1.0 + level.parities() as f64), n),
        (None, Some(_)) => (shared_by(stack).map_or(1.0, |data| n / data), 0.0),
        // The superblocks of `md` would tell its level; raid6, or a mirror of all of them, is the most.
        (None, None) => (6.0_f64.max(n), n),
    };
    Most { written: written * below.written, read: read + written * below.read }
}
