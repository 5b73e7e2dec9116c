//! Writes go to the origin, and are held.

use std::rc::Rc;

use braid_block::{Completion, Io, Payload, Span};

use super::at_origin;
use crate::held::Held;

/// A write, or what makes zeroes or nothing of a span.
pub(crate) async fn change(held: Rc<Held>, io: Io) -> Completion {
    at_origin::change(held, io, hold).await
}

fn hold(held: &Held, span: Span, payload: &mut Payload, is_long: bool) -> bool {
    if is_long {
        // What is held of a long run stays right; nothing else is held for it.
        held.renew(span, payload);
        return false;
    }
    held.keep(span, payload, true)
}
