//! The payload of a read whose bytes come from stretches of several members.

use braid_array::Fan;
use braid_block::{Completion, Payload};

/// Returns the parts of `payload` for the stretches of `fan`.
pub(super) fn scatter(fan: &Fan, mut payload: Payload) -> Vec<Payload> {
    let mut parts: Vec<Payload> = Vec::new();
    parts.resize_with(fan.spans.len(), Payload::default);
    for piece in &fan.pieces {
        parts[piece.span].append(payload.take_front(piece.len));
    }
    parts
}

/// Returns the payload of the whole request, from the completions of the stretches of `fan`.
pub(super) fn gather(fan: &Fan, completions: &mut [Completion]) -> Payload {
    let mut payload = Payload::None;
    for piece in &fan.pieces {
        payload.append(completions[piece.span].payload.take_front(piece.len));
    }
    payload
}
