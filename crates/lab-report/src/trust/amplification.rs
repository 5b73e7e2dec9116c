//! What one byte written to a subject is on its members: at most, and at least.
//!
//! ```text
//!            most                                    least
//! raid1      a copy on each member                   the same
//! raid10     its copies                              the same, less those that are out
//! raid4, 5,  old data and parities read, all of      the members / data members of a whole stripe
//! raid6      them written twice (a log)
//! ```
//!
//! Levels upon levels multiply. What is more than the most was somebody else's; what is less than
//! the least did not reach the members.

use braid_stack::{Node, Stack};

use super::arrangement::{arrangements, parities};
use super::case::TrialCase;
use braid_lab::campaign::Source;

/// What one byte of the subject is on its members, at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Amplification {
    /// Bytes written for a byte written.
    pub(super) written: f64,
    /// Bytes read for a byte written.
    pub(super) read_to_write: f64,
}

/// Of what is no array.
const NONE: Amplification = Amplification { written: 1.0, read_to_write: 0.0 };

/// The most that a trial's healthy subject moves; `None` when its stack is not one.
pub(super) fn most(case: &TrialCase<'_>) -> Option<Amplification> {
    stack_of(case).map_or(Some(NONE), |stack| stack.as_ref().map(most_of))
}

/// The least that a trial's subject writes to its members for a byte, in the state that was asked
/// for.
pub(super) fn least_written(case: &TrialCase<'_>) -> f64 {
    let Some(Some(stack)) = stack_of(case) else { return 1.0 };
    let least = arrangements(&stack, case.workload.setup.health);
    least.iter().map(least_of).reduce(f64::min).unwrap_or(1.0)
}

/// The stack of a subject that is one; `Some(None)` when its expression cannot be read.
fn stack_of(case: &TrialCase<'_>) -> Option<Option<Stack>> {
    match &case.subject?.source {
        Source::Stack(text) | Source::Kernel(text) => Some(text.stack().ok().cloned()),
        _ => None,
    }
}

/// Parity levels read old data and parity, or all the other members, before a small write, and may
/// write everything to a log first.
pub(super) fn most_of(stack: &Stack) -> Amplification {
    let members = stack.members();
    let n = members.len() as f64;
    let below = members.iter().map(most_of).fold(NONE, |a, b| Amplification {
        written: a.written.max(b.written),
        read_to_write: a.read_to_write.max(b.read_to_write),
    });
    let (written, read) = match (&stack.node, parities(stack)) {
        (_, Some(parities)) => (2.0 * (1.0 + parities), n),
        (Node::Raid1(_), _) => (n, 0.0),
        (Node::Raid10(raid10), _) => (raid10.layout.copies() as f64, 0.0),
        // Its superblocks would tell which level it is; a mirror of all of them is the most.
        (Node::Md(_), _) => (6.0_f64.max(n), n),
        _ => (1.0, 0.0),
    };
    Amplification {
        written: written * below.written,
        read_to_write: read + written * below.read_to_write,
    }
}

/// Of an array with `missing` in the places of members that are out, which are written nothing.
pub(super) fn least_of(stack: &Stack) -> f64 {
    if stack.is_missing() {
        return 0.0;
    }
    let members = stack.members();
    let n = members.len() as f64;
    let there: Vec<f64> =
        members.iter().filter(|member| !member.is_missing()).map(least_of).collect();
    let out = n - there.len() as f64;
    let Some(least) = there.iter().copied().reduce(f64::min) else { return 1.0 };
    match (&stack.node, parities(stack)) {
        (_, Some(parities)) => (n - out) / (n - parities).max(1.0) * least,
        (Node::Raid1(_), _) => there.iter().sum(),
        // Of some chunks all the copies that are out are the same chunk's.
        (Node::Raid10(raid10), _) => (raid10.layout.copies() as f64 - out).max(1.0) * least,
        // One of its members may get everything; of `md` nobody knows the level.
        _ => least,
    }
}
