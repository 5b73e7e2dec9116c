//! Device between clients and a cache that is exchanged.

use braid_block::{Io, Limits};
use braid_engine::{Device, Offered, Pending};

/// Uses the offered device like an export: each write holds a permit until it completes.
pub(crate) struct Front(pub(crate) Offered);

impl Device for Front {
    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn start(&self, io: Io) -> Pending {
        let permit = io.op.is_modifying().then(|| self.0.permit());
        let started = self.0.dev().start(io);
        Pending::task(async move {
            let done = started.await;
            drop(permit);
            done
        })
    }
}
