//! The state of a shard whose requests the first shard of the volume serves; [`super::bridge`] carries them over.

use std::cell::RefCell;

use braid_engine::{Dev, Earlier};
use braid_uring::Remote;

use super::front::Front;

/// Whom a shard follows.
#[derive(Default)]
pub(super) struct Following {
    now: RefCell<Option<Followed>>,
}

struct Followed {
    first: Remote,
    /// The device that the shard serves by itself.
    own: Dev,
}

impl Following {
    /// The first shard, if this one follows it.
    pub(super) fn first(&self) -> Option<Remote> {
        self.now.borrow().as_ref().map(|followed| followed.first.clone())
    }

    /// Has `front` serve `bridge`, what `first` serves. Answers the writes of before; nothing if it follows already:
    /// what it was asked since then `first` knows.
    pub(super) fn begin(&self, front: &Front, first: Remote, bridge: Dev) -> Option<Earlier> {
        let mut now = self.now.borrow_mut();
        if now.is_some() {
            return None;
        }
        let own = front.dev();
        assert_eq!(own.limits().size, bridge.limits().size, "the same volume");
        *now = Some(Followed { first, own });
        Some(front.exchange(bridge))
    }

    /// Has `front` serve what the shard served before.
    pub(super) fn end(&self, front: &Front) {
        if let Some(followed) = self.now.take() {
            front.exchange(followed.own);
        }
    }
}
