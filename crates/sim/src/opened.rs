//! Disks as a volume opens its members: each once, behind the deadline that production has.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use braid_device::{Deadline, Metered, Tally};
use braid_engine::{Dev, Tasks};

use crate::found::{SimClock, tidy};
use crate::{Handle, SimDisk};

/// The open disks of a life. All users of a disk have the same device, so that requests that it still has
/// are known.
pub(crate) struct Opened {
    devs: RefCell<Vec<Dev>>,
    tasks: Rc<dyn Tasks>,
    /// Time limit of a request to a disk; `None` for no limit.
    limit: Option<Duration>,
    /// Counts of each disk that was ever open.
    tallies: RefCell<Vec<Tally>>,
}

impl Opened {
    pub(crate) fn new(handle: &Handle, limit: Option<Duration>, disks: &[SimDisk]) -> Rc<Opened> {
        let tasks = Rc::new(SimClock { handle: handle.clone(), unix_start: Duration::ZERO });
        let (devs, tallies) = (RefCell::default(), RefCell::default());
        let opened = Opened { devs, tasks, limit, tallies };
        *opened.devs.borrow_mut() = disks.iter().map(|disk| opened.open(disk)).collect();
        Rc::new(opened)
    }

    /// Disk number `disk`.
    pub(crate) fn dev(&self, disk: usize) -> Dev {
        self.devs.borrow()[disk].clone()
    }

    /// Another disk has this number from now on.
    pub(crate) fn exchange(&self, disk: usize, new: &SimDisk) {
        self.devs.borrow_mut()[disk] = self.open(new);
    }

    /// Returns true if a disk has requests that it has not answered, and with them their memory.
    pub(crate) fn is_asked(&self) -> bool {
        self.tallies.borrow().iter().any(|tally| tally.read().in_flight > 0)
    }

    fn open(&self, disk: &SimDisk) -> Dev {
        let Some(limit) = self.limit else { return tidy(disk.clone()) };
        let deadline = Some(Deadline { limit, failures: Arc::default() });
        let (tasks, tally) = (Rc::clone(&self.tasks), Tally::default());
        self.tallies.borrow_mut().push(tally.clone());
        tidy(Metered::new(disk.clone(), "disk", &tally, tasks, deadline))
    }
}
