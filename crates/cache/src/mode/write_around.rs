//! Writes go to the origin, and invalidate the cached data.

use std::rc::Rc;

use braid_block::{Completion, Io};

use super::at_origin;
use crate::state::CacheState;

/// Carries out a write, zeroing or discard.
pub(crate) async fn change(state: Rc<CacheState>, io: Io) -> Completion {
    let drop = |state: &CacheState, span, _: &mut _, _| {
        state.invalidate(span);
        false
    };
    at_origin::change(state, io, drop).await
}
