//! Devices that behave as a profile says.

use std::io;
use std::rc::Rc;

use braid_block::Limits;
use braid_device::{Buses, Metered, Modelled, RamError};
use braid_engine::Dev;
use braid_model::Timetable;
use braid_uring::ExecutorClock;

use crate::kind::{Kind, MemberError, OnShard};
use crate::profile;

/// Makes the device that a `model(PROFILE, …)` is.
pub(crate) fn open(model: &braid_stack::Model, buses: &mut Buses) -> Result<Modelled, MemberError> {
    let profile::Modelled { profile, of_bus } = profile::modelled(model)?;
    let size = model.size.bytes();
    let device = Timetable::new(&profile.kind, size).expect("a modelled member is a device");
    Modelled::new(size, device, of_bus, model.bus.as_deref(), buses)
        .map_err(RamError::Map)
        .map_err(|source| MemberError::Memory { what: model.to_string(), source })
}

impl Kind for Modelled {
    fn limits(&self) -> Limits {
        self.limits()
    }

    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev> {
        let tasks = Rc::new(ExecutorClock::new(shard.handle));
        Ok(Dev::new(Metered::new(self.device(shard.handle), shard.label, shard.tally, tasks, None)))
    }
}
