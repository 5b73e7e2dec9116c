//! Connections that are open, as many as there is room for.
//!
//! Invariants
//! * A connection that has not been let in takes no place for long that another one needs, and neither does one that
//!   waits for its client's next request, or for the rest of a request.
//! * A connection with a request under way, or that is sent events, keeps its place.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};

/// Connections at a time. When there are so many, one makes room: [`first_to_go`].
const CONNECTIONS: usize = 64;
/// Connections that have not been let in, before others make room for more.
const STRANGERS: usize = 16;
/// Time without a complete request and without a sent byte of an answer after which a connection counts as idle: a
/// small answer has been taken by then. Parts of a request do not count, or a client that sends a byte now and then
/// would keep its place.
const IDLE: Duration = Duration::from_secs(1);
/// Interval between two looks for room while all connections work.
const LOOKS: Duration = Duration::from_millis(100);

/// State of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Door(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug)]
struct State {
    is_let_in: bool,
    /// Requests that are carried out, and streams that are followed.
    under_way: u32,
    /// When it was opened, a request last ended, or something was last sent.
    moved: Instant,
}

impl Default for Door {
    fn default() -> Door {
        Door(Arc::new(Mutex::new(State { is_let_in: false, under_way: 0, moved: Instant::now() })))
    }
}

impl Door {
    /// Marks the client as let in.
    pub(crate) fn let_in(&self) {
        self.state().is_let_in = true;
    }

    /// Marks the client as let in, with something under way while the answer is held.
    pub(crate) fn open(&self) -> UnderWay {
        self.let_in();
        self.state().under_way += 1;
        UnderWay(self.clone())
    }

    /// Notes that something was sent.
    pub(crate) fn moved(&self) {
        self.state().moved = Instant::now();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something is under way on a connection, which keeps its place.
pub(crate) struct UnderWay(Door);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.moved();
        self.0.state().under_way -= 1;
    }
}

/// Which of these connections makes room at `now`, if one does: the one that was idle longest; or of those that were
/// not let in the oldest, if there are [`STRANGERS`] or none is idle.
fn first_to_go(doors: &[State], now: Instant) -> Option<usize> {
    let all = || doors.iter().enumerate();
    let stranger = all().position(|(_, door)| !door.is_let_in);
    let strangers = all().filter(|(_, door)| !door.is_let_in).count();
    let idle = all().filter(|(_, door)| {
        door.is_let_in && door.under_way == 0 && now.duration_since(door.moved) >= IDLE
    });
    let idle = idle.min_by_key(|(_, door)| door.moved).map(|(index, _)| index);
    if strangers >= STRANGERS { stranger } else { idle.or(stranger) }
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
        loop {
            while self.running.try_join_next().is_some() {}
            self.doors.retain(|(_, running)| !running.is_finished());
            if self.doors.len() < CONNECTIONS {
                return;
            }
            let states: Vec<State> = self.doors.iter().map(|(door, _)| *door.state()).collect();
            if let Some(first) = first_to_go(&states, Instant::now()) {
                self.doors.remove(first).iter().for_each(|(_, running)| running.abort());
            }
            // One that made room, or one that ended; or one is idle by then.
            let _ = timeout(LOOKS, self.running.join_next()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_makes_room_and_one_that_works_never() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let let_in = |under_way, moved| State { is_let_in: true, under_way, moved: at(moved) };
        let stranger = State { is_let_in: false, ..let_in(0, 9) };
        let idle = |moved| let_in(0, moved);
        assert_eq!(first_to_go(&[let_in(1, 0), idle(5), idle(4), let_in(1, 0)], at(9)), Some(2));
        assert_eq!(first_to_go(&[let_in(1, 0), idle(9)], at(9)), None);
        assert_eq!(first_to_go(&[let_in(1, 0), idle(9), stranger], at(9)), Some(2));
        assert_eq!(first_to_go(&[stranger, idle(5), idle(4)], at(9)), Some(2), "it has its time");
        let mut crowd = vec![idle(4)];
        crowd.extend([stranger; STRANGERS]);
        assert_eq!(first_to_go(&crowd, at(9)), Some(1), "a crowd of strangers is their own");
    }
}
