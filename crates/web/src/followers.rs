//! Streams of events that are open, as many as there is room for.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Streams at a time: a quarter of the connections, so that they leave room for requests.
pub(crate) const FOLLOWERS: usize = 16;
/// Time for which a stream keeps its place when others need it.
pub(crate) const KEPT: Duration = Duration::from_secs(30);

/// Streams that are open, the oldest first.
#[derive(Default)]
pub(crate) struct Followers(Mutex<VecDeque<(Instant, AbortHandle)>>);

impl Followers {
    /// Begins one more at `now`. When there are [`FOLLOWERS`] the oldest is ended; none is begun if that is not
    /// older than [`KEPT`].
    pub(crate) fn begin<T>(
        &self,
        now: Instant,
        begin: impl FnOnce() -> (T, AbortHandle),
    ) -> Option<T> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, stream)| !stream.is_finished());
        if open.len() >= FOLLOWERS {
            let is_old = |(since, _): &mut (Instant, _)| now.duration_since(*since) >= KEPT;
            open.pop_front_if(is_old)?.1.abort();
        }
        let (begun, stream) = begin();
        open.push_back((now, stream));
        Some(begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stream_makes_room_when_it_has_had_its_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (followers, start) = (Followers::default(), Instant::now());
            let begin = |now| {
                followers.begin(now, || {
                    let task = tokio::spawn(std::future::pending::<()>());
                    let handle = task.abort_handle();
                    (task, handle)
                })
            };
            let mut open: Vec<_> = (0..FOLLOWERS).map(|_| begin(start).unwrap()).collect();
            assert!(begin(start + KEPT / 2).is_none());
            open.push(begin(start + KEPT).expect("the oldest makes room"));
            assert!(open.remove(0).await.unwrap_err().is_cancelled());
            assert!(open.iter().all(|stream| !stream.is_finished()));
            open.remove(3).abort();
            tokio::task::yield_now().await;
            assert!(begin(start).is_some(), "one that has ended has no place");
        });
    }
}
