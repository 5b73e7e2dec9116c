//! Caches of a volume that is up: attached, taken off, given more memory or less, another mode.
//!
//! ```text
//!   attach   control thread: memory ──▶ shard: a cache that holds nothing, offered in place of the device
//!                                              writes of before are answered ──▶ it begins to hold
//!   detach   write-back mode is closed ──▶ the origin is offered again ──▶ the memory goes
//! ```
//!
//! Invariants
//! * Clients are not delayed, except for writes while write-back mode is closed.
//! * The stack describes the offered device from the moment of the exchange, even if the client has gone; and
//!   no other order begins before the one that was begun is through.

use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use braid_block::Errno;
use braid_cache::{Cache, Config, Memory, Rules};
use braid_engine::{Dev, Device};
use braid_level::CacheMode;
use braid_stack::{ByteSize, Node, Rate, Stack};
use braid_uring::{ExecutorClock, Handle, Remote};

use super::bridge::Others;
use super::build::AtCache;
use super::front::answered;
use super::live::Live;
use super::media::config_of;
use super::options::OpenOptions;
use super::promises;
use super::shard::Local;
use super::spec::Spec;
use super::to_shard::Orders;
use super::to_write_back::{self, ToWriteBack};
use super::warm::Warm;
use crate::control::{Answer, CacheOrder, ErrorCode, apply, one_cache};
use crate::failure::Failure;
use crate::why::{Why, given_up};

/// Time limit of an order: dirty blocks may have to be drained to a slow disk.
const PATIENCE: Duration = Duration::from_secs(600);

/// The stack as it is by now.
pub(super) struct Caching {
    name: String,
    stack: Arc<Mutex<Stack>>,
    is_changing: Arc<AtomicBool>,
    /// Options with which the stack was opened.
    options: OpenOptions,
    /// Caches are on the first shard; the others follow it while it has one in front of the volume.
    others: Others,
}

/// The change of the stack by an order that is being carried out.
struct Change {
    stack: Arc<Mutex<Stack>>,
    before: Stack,
    after: Stack,
    is_changing: Arc<AtomicBool>,
    /// The shards that follow a cache.
    others: Others,
}

impl Change {
    /// It is offered now.
    fn is_there(&self) {
        *self.stack.lock().unwrap_or_else(PoisonError::into_inner) = self.after.clone();
    }

    /// It is not offered any more.
    fn is_undone(&self) {
        *self.stack.lock().unwrap_or_else(PoisonError::into_inner) = self.before.clone();
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        self.is_changing.store(false, Ordering::Release);
    }
}

impl Caching {
    /// For a volume that came up as `spec` says, on these shards.
    pub(super) fn new(spec: &Spec, shards: &[Remote]) -> Caching {
        let stack = Arc::new(Mutex::new(spec.stack.clone()));
        // Nothing that was named again then is meant now.
        let options = OpenOptions { forced: Vec::new(), ..spec.open_options() };
        let others = Others::new(shards);
        Caching { name: spec.name.clone(), stack, is_changing: Arc::default(), options, others }
    }

    /// The stack, with the caches that it has now.
    pub(super) fn stack(&self) -> Stack {
        self.stack.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The stack that an order would make of it.
    ///
    /// # Errors
    /// The order does not suit the stack.
    pub(super) fn after(&self, order: &CacheOrder) -> Result<Stack, Failure> {
        apply(order, &self.stack(), &self.name)
    }

    /// Tells if an order is being carried out still, though its giver may have had an answer.
    pub(super) fn is_changing(&self) -> bool {
        self.is_changing.load(Ordering::Acquire)
    }

    /// Carries out an order, if none is being carried out on the volume as a whole.
    pub(super) fn carry_out(&self, live: &Live, orders: &Orders, order: &CacheOrder) -> Answer {
        let _one = live.try_hold()?;
        let before = self.stack();
        let after = apply(order, &before, &self.name)?;
        // An order whose client has gone may still be under way.
        if self.is_changing.swap(true, Ordering::AcqRel) {
            return Err(Why::CacheChanging { volume: self.name.clone() }.into());
        }
        let (stack, is_changing) = (Arc::clone(&self.stack), Arc::clone(&self.is_changing));
        let others = self.others.clone();
        let change = Change { stack, before: before.clone(), after, is_changing, others };
        match order {
            CacheOrder::Attach { .. } => self.attach(live, orders, &before, change),
            CacheOrder::Detach => self.detach(orders, change),
            CacheOrder::Resize { bytes } => self.resize(live, orders, &before, change, *bytes),
            CacheOrder::Mode { .. } => self.set_mode(live, orders, change),
            CacheOrder::Drain { bytes_per_second } => {
                self.set_drain(orders, change, *bytes_per_second)
            }
        }
    }

    fn attach(&self, live: &Live, orders: &Orders, before: &Stack, change: Change) -> Answer {
        let (name, limits) = (self.name.clone(), live.limits());
        let Node::Cache(cache) = &change.after.node else { return no_cache(&name) };
        let (config, text) = (config_of(cache), change.after.to_string());
        let others = promises::of_others(&self.name).saturating_add(before.memory());
        promises::check(cache.size, &text, others).map_err(|error| error.failure())?;
        let identity = live.media().identity_of(cache.origin());
        let warm = Warm::open(cache, &identity).map_err(|error| {
            Failure::refused(error).next("another warm=PATH").code(ErrorCode::WarmUnfit)
        })?;
        let warm = warm.map(Arc::new);
        let to = ToWriteBack::open(cache, limits, &identity, &self.options)?;
        orders.begin()?;
        // It may keep completed writes in this process, now or in a later mode.
        live.keep_inside().map_err(|error| {
            Failure::failed(format!("{name} cannot note that it has a cache: {error}"))
        })?;
        let memory = whole(config.size, config.block)
            .and_then(|size| memory(live, orders, 0, size))
            .map_err(|error| no_memory(cache.size, &error))?;
        orders.carry_out(
            PATIENCE,
            |_, _| Ok(()),
            move |handle, local, (), answer| {
                // It is in write-back mode when that begins.
                let mode = if to.is_some() { CacheMode::WriteThrough } else { config.mode };
                let attached = Cache::attach(local.front.dev(), Config { mode, ..config }, memory);
                let cache = match attached {
                    Ok(cache) => cache,
                    Err(error) => return send(&answer, Err(Failure::failed(error))),
                };
                cache.time_origin(Rc::new(ExecutorClock::new(handle)), Rules::default());
                let done = format!("{name} has a cache of {:#} now", ByteSize(config.size));
                if let Some(to) = to {
                    let at = AtCache { text, log: to.log(), cache, warm, log_media: to.media() };
                    return begin_write_back(handle, local, &to, at, change, done, answer);
                }
                let earlier = local.front.exchange(Dev::new(cache.clone()));
                let at = AtCache {
                    text,
                    log: String::new(),
                    cache: cache.clone(),
                    warm,
                    log_media: None,
                };
                local.caches.borrow_mut().push(at);
                change.is_there();
                let waiting = handle.clone();
                handle.spawn(async move {
                    change.others.follow(cache.limits()).await;
                    answered(&waiting, &earlier).await;
                    cache.begin();
                    drop(change);
                    send(&answer, Ok(done));
                });
            },
        )
    }

    fn detach(&self, orders: &Orders, change: Change) -> Answer {
        let name = self.name.clone();
        let (drop_later, dropped) = channel();
        let lost = name.clone();
        let check = move |_: &Handle, local: &Local| {
            local.caches.borrow().last().cloned().ok_or_else(|| no_cache(&lost))
        };
        let answer = orders.carry_out(PATIENCE, check, move |handle, local, at, answer| {
            let caches = Rc::clone(&local.caches);
            let (waiting, front) = (handle.clone(), local.front.clone());
            handle.spawn(async move {
                if let Err(errno) = at.cache.close().await {
                    return send(&answer, not_drained(name, errno));
                }
                let earlier = front.exchange(at.cache.origin());
                change.others.leave();
                caches.borrow_mut().pop();
                change.is_there();
                answered(&waiting, &earlier).await;
                // The client may have given up: then the memory is dropped here.
                let _ = drop_later.send(at.cache.end());
                drop(change);
                let text = format!("{name} has no cache in front of it any more");
                send(&answer, Ok(text));
            });
        });
        drop(dropped.try_recv());
        answer
    }

    fn resize(
        &self,
        live: &Live,
        orders: &Orders,
        before: &Stack,
        change: Change,
        bytes: u64,
    ) -> Answer {
        let name = self.name.clone();
        let Some((old, new)) = one_cache(before).zip(one_cache(&change.after)) else {
            return no_cache(&name);
        };
        let (block, is_larger, text) = (new.block.bytes(), bytes > old.size.bytes(), text_of(new));
        let mut more = Memory::default();
        if is_larger {
            let others = before.memory() - old.size.bytes();
            let others = promises::of_others(&self.name).saturating_add(others);
            promises::check(new.size, &text, others).map_err(|error| error.failure())?;
            let sizes =
                whole(old.size.bytes(), block).and_then(|is| Ok((is, whole(bytes, block)?)));
            orders.begin()?;
            more = sizes
                .and_then(|(is, wish)| memory(live, orders, is, wish))
                .map_err(|error| no_memory(new.size, &error))?;
        }
        let checked = name.clone();
        let check = move |_: &Handle, local: &Local| match &local.caches.borrow()[..] {
            [at] if at.cache.can_resize(bytes) => Ok(()),
            [_] => Err(Err(Why::CacheDirty { volume: checked, bytes }.into())),
            _ => Err(no_cache(&checked)),
        };
        let (drop_later, dropped) = channel();
        let answer = orders.carry_out(PATIENCE, check, move |_, local, (), answer| {
            let mut caches = local.caches.borrow_mut();
            let [at] = &mut caches[..] else { return send(&answer, no_cache(&name)) };
            let Some(rest) = at.cache.resize(bytes, more) else {
                return send(&answer, Err(Why::CacheDirty { volume: name, bytes }.into()));
            };
            at.text = text;
            change.is_there();
            // As above.
            let _ = drop_later.send(rest);
            drop(change);
            let text = format!("the cache of {name} has {:#} now", ByteSize(bytes));
            send(&answer, Ok(text));
        });
        drop(dropped.try_recv());
        answer
    }

    fn set_drain(&self, orders: &Orders, change: Change, rate: Option<u64>) -> Answer {
        let name = self.name.clone();
        let Some(new) = one_cache(&change.after) else { return no_cache(&name) };
        let text = text_of(new);
        orders.carry_out(PATIENCE, has_one(&name), move |_, local, (), answer| {
            let mut caches = local.caches.borrow_mut();
            let [at] = &mut caches[..] else { return send(&answer, no_cache(&name)) };
            if !at.cache.set_drain(rate) {
                return send(&answer, no_cache(&name));
            }
            at.text = text;
            change.is_there();
            drop(change);
            let held = match rate {
                Some(rate) => format!("is drained at up to {:#} while there is time", Rate(rate)),
                None => "is drained as fast as it goes".to_owned(),
            };
            send(&answer, Ok(format!("what is dirty in the cache of {name} {held}")));
        })
    }

    fn set_mode(&self, live: &Live, orders: &Orders, change: Change) -> Answer {
        let name = self.name.clone();
        let Some(new) = one_cache(&change.after) else { return no_cache(&name) };
        let (mode, text) = (new.mode, text_of(new));
        let identity = live.media().identity_of(new.origin());
        let to = ToWriteBack::open(new, live.limits(), &identity, &self.options)?;
        orders.carry_out(PATIENCE, has_one(&name), move |handle, local, (), answer| {
            let caches = Rc::clone(&local.caches);
            let [at] = &caches.borrow().clone()[..] else { return send(&answer, no_cache(&name)) };
            let cache = at.cache.clone();
            let done = format!("the cache of {name} is {mode} now");
            if let Some(to) = to {
                let (log, log_media) = (to.log(), to.media());
                let at = AtCache { text, log, log_media, ..at.clone() };
                return begin_write_back(handle, local, &to, at, change, done, answer);
            }
            handle.spawn(async move {
                if let Err(errno) = cache.close().await {
                    return send(&answer, not_drained(name, errno));
                }
                cache.set_mode(mode);
                if let [at] = &mut caches.borrow_mut()[..] {
                    at.text = text;
                    at.log.clear();
                    at.log_media = None;
                }
                change.is_there();
                drop(change);
                send(&answer, Ok(done));
            });
        })
    }
}

/// Has the cache of `at`, which is offered or not, begin write-back mode, in front of all else.
fn begin_write_back(
    handle: &Handle,
    local: &Local,
    to: &ToWriteBack,
    at: AtCache,
    change: Change,
    done: String,
    answer: Sender<Answer>,
) {
    let cache = match to.cache(&at.cache, handle) {
        Ok(cache) => cache,
        Err(error) => return send(&answer, Err(Failure::failed(error))),
    };
    let (waiting, offered, caches) =
        (handle.clone(), local.front.clone(), Rc::clone(&local.caches));
    handle.spawn(async move {
        let before = (offered.dev(), caches.borrow().clone());
        let others = change.others.clone();
        let log = at.log.clone();
        let is_offered = || {
            let mut caches = caches.borrow_mut();
            // The same cache, as it was.
            caches.retain(|one| !one.cache.is_same(&cache));
            caches.push(AtCache { cache: cache.clone(), ..at });
            change.is_there();
        };
        let begun =
            to_write_back::begin(&cache, &log, &waiting, &offered, &others, is_offered).await;
        if begun.is_err() {
            offered.exchange(before.0);
            if before.1.is_empty() {
                others.leave();
            }
            caches.replace(before.1);
            change.is_undone();
        }
        drop(change);
        send(&answer, begun.map(|()| done));
    });
}

/// Whole blocks of `size` bytes, as memory is counted.
fn whole(size: u64, block: u64) -> io::Result<usize> {
    usize::try_from(size / block * block).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// Allocates what a cache of `is` bytes lacks to be one of `wish`, while the client waits for it and the volume is not
/// told to end. Until it is there, nothing is changed.
fn memory(live: &Live, orders: &Orders, is: usize, wish: usize) -> io::Result<Memory> {
    Memory::to_grow(is, wish, &|| orders.is_waiting() && !live.is_to_end())
}

/// As a status shows it.
fn text_of(cache: &braid_stack::Cache) -> String {
    Node::Cache(cache.clone()).to_string()
}

/// Returns the check that the shard has one cache, as the stack says.
fn has_one(name: &str) -> impl FnOnce(&Handle, &Local) -> Result<(), Answer> + Send + 'static {
    let name = name.to_owned();
    move |_, local| match local.caches.borrow().len() {
        1 => Ok(()),
        _ => Err(no_cache(&name)),
    }
}

fn no_cache(name: &str) -> Answer {
    Err(Why::CacheLost { volume: name.to_owned() }.into())
}

fn no_memory(size: ByteSize, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::Interrupted {
        let text = "the order was given up before anything was changed: the volume is to end, or the client that \
                    gave it has gone";
        return given_up(text);
    }
    Why::NoMemory { bytes: size.bytes(), error: error.to_string() }.into()
}

fn not_drained(volume: String, errno: Errno) -> Answer {
    Err(Why::NotDrained { volume, error: errno.to_string() }.into())
}

fn send(to: &Sender<Answer>, answer: Answer) {
    // The receiver may have given up.
    let _ = to.send(answer);
}
