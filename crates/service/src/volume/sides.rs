//! Parts of a volume's exports on one shard.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use braid_export_nbd::Stop;

/// Parts of an export on a shard, beside tasks that end by themselves when it is taken down.
pub(super) trait Side: Any {
    /// Takes no more requests.
    fn stop(&self);

    /// Clients whose requests are still being answered.
    fn clients(&self) -> usize;
}

/// The sides of all exports on one shard. Cheap to clone, all clones are the same.
#[derive(Clone, Default)]
pub(super) struct Sides {
    all: Rc<RefCell<Vec<Rc<dyn Side>>>>,
    stopped: Stop,
}

impl Sides {
    /// Adds the side of one more export.
    pub(super) fn add(&self, side: impl Side) {
        self.all.borrow_mut().push(Rc::new(side));
    }

    /// The side of the export whose sides have this type.
    pub(super) fn get<T: Side + Clone>(&self) -> Option<T> {
        let all = self.all.borrow();
        all.iter().find_map(|side| (&**side as &dyn Any).downcast_ref::<T>().cloned())
    }

    /// Has all of them take no more requests.
    pub(super) fn stop(&self) {
        self.all.borrow().iter().for_each(|side| side.stop());
        self.stopped.raise();
    }

    /// Waits until they are stopped.
    pub(super) async fn stopped(&self) {
        self.stopped.wait().await;
    }

    /// Clients whose requests are still being answered.
    pub(super) fn clients(&self) -> usize {
        self.all.borrow().iter().map(|side| side.clients()).sum()
    }
}
