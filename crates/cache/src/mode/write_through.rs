//! Writes go to the origin, and are then cached.

use std::rc::Rc;

use braid_block::{Completion, Io, Payload, Span};

use super::at_origin;
use crate::state::CacheState;

/// Carries out a write, zeroing or discard.
pub(crate) async fn change(state: Rc<CacheState>, io: Io) -> Completion {
    at_origin::change(state, io, insert).await
}

fn insert(state: &CacheState, span: Span, payload: &mut Payload, is_long: bool) -> bool {
    if is_long {
        // A long run updates cached blocks and inserts no others.
        state.renew(span, payload);
        return false;
    }
    state.insert_data(span, payload, true)
}
