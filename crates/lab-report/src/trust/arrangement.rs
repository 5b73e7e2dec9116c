//! Which members an array has while a trial runs, in the state that was asked for.
//!
//! ```text
//! healthy, scrubbing   all of them
//! degraded             all but the one that was hurt
//! rebuilding, story    both, one after the other, and nobody knows for how long
//! ```
//!
//! A rule that compares with the most (or the least) that an array can do takes the largest (or the
//! smallest) over these.

use braid_stack::Stack;

use braid_lab::campaign::Health;
use braid_lab::source::leave_one_out;

/// How many parities each stripe of a level with parity has; `None` of other levels, and of `md`, whose
/// members would have to say it.
pub(super) fn parities(stack: &Stack) -> Option<f64> {
    Some(stack.shape()?.level.with_parity()?.parities() as f64)
}

/// The array as it is in such a trial, with `missing` for a member that is out; at least one.
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
