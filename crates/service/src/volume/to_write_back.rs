//! Write-back mode of a volume that is up: its log is checked, locked, opened, and what is offered exchanged for the
//! same cache with that mode.
//!
//! ```text
//!   control thread: log ──probe, lock──▶ shard: log opened ──▶ offered; changes of the data wait
//!                                               writes of before are answered ──▶ it begins
//! ```
//!
//! Invariant: what a log holds is never written to an origin that is in use: such a log is refused.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use braid_block::Limits;
use braid_cache::Cache;
use braid_engine::{Dev, Device};
use braid_uring::{ExecutorClock, Handle};

use super::admission::{admit, is_log};
use super::bridge::Others;
use super::build::build;
use super::cache_log::{self, WriteBack, next_of_log};
use super::front::{Front, answered};
use super::media::Media;
use super::options::OpenOptions;
use crate::canary::Canary;
use crate::control::ErrorCode;
use crate::failure::Failure;
use crate::refusal::said;

/// The setup of write-back mode.
pub(super) struct ToWriteBack {
    write_back: WriteBack,
    /// The log, locked.
    media: Option<Arc<Media>>,
}

impl ToWriteBack {
    /// Opens the log of `cache`, in front of an origin with these limits and this identity.
    ///
    /// # Errors
    /// The log cannot be one, or cannot be used.
    pub(super) fn open(
        cache: &braid_stack::Cache,
        origin: Limits,
        identity: &str,
        options: &OpenOptions,
    ) -> Result<Option<ToWriteBack>, Failure> {
        let Some(write_back) = WriteBack::new(cache, identity, options) else { return Ok(None) };
        let Some(log) = cache.log() else {
            return Ok(Some(ToWriteBack { write_back, media: None }));
        };
        let paths: Vec<PathBuf> = log.member_names().into_iter().map(|(name, _)| name).collect();
        let accepted: Vec<PathBuf> = paths.into_iter().filter(|path| is_log(path)).collect();
        let refused = |why: String| {
            let next = "another file or device as log=; or `braid down`, and `braid up` with it in the stack";
            unfit_log(log, why).next(next)
        };
        admit(log, &accepted, options).map_err(|refusal| said(&refusal))?;
        let media = Media::open(log, options).map_err(|error| refused(error.to_string()))?;
        if media.has_state() {
            return Err(refused("it is an array or a cache itself".to_owned()));
        }
        let limits = media.limits();
        if let Some(why) = cache_log::unfit(limits, Some(origin), cache.block.bytes()) {
            return Err(refused(why));
        }
        Ok(Some(ToWriteBack { write_back, media: Some(Arc::new(media)) }))
    }

    /// The log as it is written.
    pub(super) fn log(&self) -> String {
        self.write_back.log_text.clone()
    }

    /// Returns the locked medium of the log.
    pub(super) fn media(&self) -> Option<Arc<Media>> {
        self.media.clone()
    }

    /// `cache` in write-back mode, which has yet to begin.
    ///
    /// # Errors
    /// No memory, no descriptor.
    pub(super) fn cache(&self, cache: &Cache, handle: &Handle) -> io::Result<Cache> {
        let log = self.media.as_ref().map(|media| build(media, handle, false, None)).transpose()?;
        let clock = Rc::new(ExecutorClock::new(handle));
        let more = self.write_back.config(&cache.origin(), log.map(|log| log.dev), clock, true)?;
        cache.to_write_back(more)
    }
}

/// Has `cache` begin, with what `log` calls its log. `is_offered` is called when it is offered.
///
/// # Errors
/// Then it is not offered, or writes through.
pub(super) async fn begin(
    cache: &Cache,
    log: &str,
    handle: &Handle,
    front: &Front,
    others: &Others,
    is_offered: impl FnOnce(),
) -> Result<(), Failure> {
    if let Err(error) = cache.restart().await {
        return Err(unfit_log(log, &error).next(next_of_log(&error, log)));
    }
    let earlier = front.exchange(Dev::new(cache.clone()));
    handle.spawn(cache.run().expect("it is to be in write-back mode"));
    is_offered();
    others.follow(cache.limits()).await;
    if !Canary::BeginsAtOnce.is_planted() {
        answered(handle, &earlier).await;
    }
    cache.begin_write_back().await.map_err(|errno| {
        Failure::failed(format!(
            "a client went away in the middle of a write ({errno}), and it may still arrive at any time: \
             writes go through, as before"
        ))
        .next("`braid down`, and `braid up` with mode=write-back")
    })
}

fn unfit_log(log: impl Display, why: impl Display) -> Failure {
    Failure::refused(format!("{log} cannot be the log: {why}")).code(ErrorCode::LogUnfit)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use braid_block::Io;
    use braid_cache::{Config, WriteBackConfig};
    use braid_engine::Pending;
    use braid_level::{CacheMode, CachePolicy};
    use braid_uring::Executor;

    use super::*;

    struct Ready;

    impl Device for Ready {
        fn limits(&self) -> Limits {
            Limits::new(1 << 20, 512)
        }

        fn start(&self, io: Io) -> Pending {
            Pending::ready(io.complete(Ok(())))
        }
    }

    /// A write that was let through before may reach the origin after one that is held, and drained, by then.
    #[test]
    fn write_back_begins_when_the_writes_before_are_answered() {
        let executor = Executor::new(braid_uring::Config::default()).expect("an executor");
        let handle = executor.handle();
        let config = Config {
            size: 64 << 10,
            block: 4096,
            mode: CacheMode::WriteThrough,
            policy: CachePolicy::S3Fifo,
            sequential_cutoff: None,
        };
        let through = Cache::new(Dev::new(Ready), config).expect("memory");
        let (clock, age) = (Rc::new(ExecutorClock::new(&handle)), Duration::from_secs(60));
        let more = WriteBackConfig { dirty: 64 << 10, age, drain: None, clock, log: None };
        let cache = through.to_write_back(more).expect("memory");
        let front = Front::new(Dev::new(through), None, ExecutorClock::new(&handle));
        let others = Others::new(&[handle.remote()]);
        executor.block_on(async move {
            let permit = front.offered().permit();
            let (begun, changes) = (Rc::new(Cell::new(false)), front.offered().changes());
            let (has_begun, waiting) = (Rc::clone(&begun), handle.clone());
            let (served, beginning) = (front.clone(), cache.clone());
            handle.spawn(async move {
                let begun = begin(&beginning, "none", &waiting, &served, &others, || ()).await;
                assert!(begun.is_ok());
                has_begun.set(true);
            });
            let turn = || handle.sleep(Duration::from_millis(1));
            while front.offered().changes() == changes {
                turn().await;
            }
            for _ in 0..10 {
                turn().await;
                assert_eq!(cache.config().mode, CacheMode::WriteThrough);
            }
            drop(permit);
            while !begun.get() {
                turn().await;
            }
            assert_eq!(cache.config().mode, CacheMode::WriteBack);
        });
    }
}
