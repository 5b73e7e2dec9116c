//! One shard's part of the export: queues that are served from the device of the shard.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use braid_block::Limits;
use braid_engine::Offered;
use braid_mem::Pool;
use braid_uring::Handle;

use crate::end::QueueFault;
use crate::queue::{Queue, Setup};
use crate::stopper::Stopper;

/// A reading of [`Counters`].
pub type Counts = braid_status::ExportCounts;

/// Counts of one shard, or of one socket.
pub type Counters = braid_status::Shared<Counts>;

/// One shard's end of an export: the queues that it serves.
#[derive(Clone)]
pub struct Server {
    inner: Rc<ServerInner>,
}

struct ServerInner {
    handle: Handle,
    offered: Offered,
    pool: Pool,
    counters: Arc<Counters>,
    queues: RefCell<Vec<Arc<Stopper>>>,
    is_stopped: Cell<bool>,
}

impl Server {
    /// Serves queues from what is `offered`, with memory of `pool`.
    pub fn new(handle: &Handle, offered: impl Into<Offered>, pool: Pool) -> Server {
        let inner = ServerInner {
            handle: handle.clone(),
            offered: offered.into(),
            pool,
            counters: Arc::default(),
            queues: RefCell::default(),
            is_stopped: Cell::new(false),
        };
        Server { inner: Rc::new(inner) }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.inner.counters)
    }

    /// Returns the limits of the device that is offered now.
    pub fn limits(&self) -> Limits {
        self.inner.offered.limits()
    }

    /// Queues that are served now.
    pub fn open_queues(&self) -> usize {
        self.inner.queues.borrow().len()
    }

    /// Takes no more requests; answers those that are in flight.
    pub fn stop(&self) {
        self.inner.is_stopped.set(true);
        self.inner.queues.borrow().iter().for_each(|queue| queue.stop());
    }

    /// Serves a queue in a task of its own. `ended` hears of its end, `failed` is called at once when it has a fault.
    pub(crate) fn serve(
        &self,
        setup: Setup,
        ended: Sender<Result<u16, QueueFault>>,
        failed: impl FnOnce() + 'static,
    ) {
        let inner = Rc::clone(&self.inner);
        let stopper = Arc::clone(&setup.stopper);
        if inner.is_stopped.get() {
            stopper.stop();
        }
        let (offered, pool) = (inner.offered.clone(), inner.pool.clone());
        let queue = Queue::new(&inner.handle, offered, pool, self.counters(), setup);
        inner.queues.borrow_mut().push(Arc::clone(&stopper));
        self.inner.handle.spawn(async move {
            let result = match queue {
                Ok(queue) => queue.run(failed).await,
                Err(fault) => Err(fault),
            };
            inner.queues.borrow_mut().retain(|other| !Arc::ptr_eq(other, &stopper));
            // The connection may have ended with its thread.
            let _ = ended.send(result);
        });
    }
}
