//! Places of members that are lost.

use std::io;
use std::rc::Rc;

use braid_block::Limits;
use braid_device::{Metered, Unreadable};
use braid_engine::{Dev, Device};
use braid_uring::ExecutorClock;

use crate::kind::{Kind, OnShard};

impl Kind for Unreadable {
    fn limits(&self) -> Limits {
        Device::limits(self)
    }

    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev> {
        let tasks = Rc::new(ExecutorClock::new(shard.handle));
        Ok(Dev::new(Metered::new(*self, shard.label, shard.tally, tasks, None)))
    }
}
