//! Connections that are open, as many as there is room for.
//!
//! Invariant: who has not been let in takes nobody's place for long: the oldest of them makes room for whoever comes
//! when there is none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::{AbortHandle, JoinSet};

/// Connections at a time. When there are so many, the oldest that has not been let in makes room; when all have,
/// others wait to be accepted.
const CONNECTIONS: usize = 64;

/// Whether a connection has been let in: raised by whoever admits a request of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Door(Arc<AtomicBool>);

impl Door {
    /// Its client may stay.
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Connections that are open.
#[derive(Default)]
pub(crate) struct Open {
    running: JoinSet<()>,
    /// The doors that they came by, the oldest first.
    doors: VecDeque<(Door, AbortHandle)>,
}

impl Open {
    /// One more, which came by `door`.
    pub(crate) fn add(
        &mut self,
        door: Door,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        self.doors.push_back((door, self.running.spawn(connection)));
    }

    /// Waits until there is room for one more.
    pub(crate) async fn has_room(&mut self) {
        while self.running.try_join_next().is_some() {}
        self.doors.retain(|(_, running)| !running.is_finished());
        if self.doors.len() < CONNECTIONS {
            return;
        }
        if let Some(oldest) = self.doors.iter().position(|(door, _)| !door.is_open()) {
            self.doors.remove(oldest).iter().for_each(|(_, running)| running.abort());
        }
        // Whoever it is: the one that made room, or one that ended.
        self.running.join_next().await;
    }
}
