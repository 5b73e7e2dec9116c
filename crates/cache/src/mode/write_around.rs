//! Writes go to the origin, and what was held of their place is dropped.

use std::rc::Rc;

use braid_block::{Completion, Io};

use super::at_origin;
use crate::held::Held;

/// A write, or what makes zeroes or nothing of a span.
pub(crate) async fn change(held: Rc<Held>, io: Io) -> Completion {
    let drop = |held: &Held, span, _: &mut _, _| {
        held.drop_held(span);
        false
    };
    at_origin::change(held, io, drop).await
}
