//! What is done with a volume as a whole while it is up: locked, erased, resized, saved, restored.
//!
//! ```text
//!   control thread                                   every shard
//!   checks ──▶ begin ──lock──▶ no more writes of clients are let in; those under way are answered
//!                │  ◀─ quiet ─
//!                ▼
//!   works: on the RAM disk itself, or through the first shard's device, piece by piece
//!                │
//!                └──unlock──▶ unless it was locked before          exchange ──▶ a device of another size
//! ```
//!
//! Invariants
//! * One order at a time.
//! * While content is read as a whole, or changed as a whole, no client writes.
//! * What clients would lose is refused, with who they are, unless the order says `force`.
//!
//! Deliberately absent: writes of arrays' own (resync, scrub), which go on in a locked volume: they
//! change nothing that a client sees.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use braid_block::{Flags, Io, Limits, Span};
use braid_device::{Ram, RamError};
use braid_engine::Dev;
use braid_export_fuse::AttachedDevice;
use braid_mem::Pool;
use braid_shell::shell_path;
use braid_stack::{ByteSize, Node};
use braid_uring::{Handle, Remote};

use super::image::{self, Image, ImageError, PIECE};
use super::media::Media;
use super::promises;
use super::shard::{self, Local, Orders};
use super::spec::Spec;
use crate::control::{OrderAnswer, WholeOrder};

/// How long writes that are under way may take to be answered, and a piece to be read or written.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether they are.
const RETRY: Duration = Duration::from_millis(1);
/// What is written of an image, or left a hole, in one piece, in bytes.
const GRAIN: usize = 64 << 10;

/// The whole of a volume, as orders change it.
pub(super) struct Live {
    spec: Spec,
    media: Arc<Media>,
    remotes: Vec<Remote>,
    /// As it came up.
    limits: Limits,
    attached: OnceLock<AttachedDevice>,
    locked: AtomicBool,
    /// Held by the order that is being carried out.
    one: Mutex<()>,
}

/// Why an order was not carried out.
struct No(OrderAnswer);

impl No {
    fn refused(text: impl Into<String>) -> No {
        No(OrderAnswer::refused(text))
    }

    fn failed(text: impl Into<String>) -> No {
        No(OrderAnswer::failed(text))
    }
}

impl From<ImageError> for No {
    fn from(error: ImageError) -> No {
        match error.is_refusal() {
            true => No::refused(error.to_string()),
            false => No::failed(error.to_string()),
        }
    }
}

/// No client writes while this is there; then as before.
pub(super) struct Quiet<'a> {
    live: &'a Live,
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        if !self.live.is_locked() {
            self.live.set_shards_locked(false);
        }
    }
}

/// A volume that was saved: nobody writes to it until this goes, or to its end.
pub(super) struct Sealed<'a> {
    live: &'a Live,
    was_locked: bool,
}

impl Sealed<'_> {
    /// Nobody writes any more.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        self.live.locked.store(self.was_locked, Ordering::Relaxed);
        self.live.set_shards_locked(self.was_locked);
    }
}

impl Live {
    pub(super) fn new(
        spec: &Spec,
        media: &Arc<Media>,
        remotes: Vec<Remote>,
        limits: Limits,
    ) -> Live {
        let live = Live {
            spec: spec.clone(),
            media: Arc::clone(media),
            remotes,
            limits,
            attached: OnceLock::new(),
            locked: AtomicBool::new(false),
            one: Mutex::new(()),
        };
        // Memory that was not opened for reading only does not know that nobody is to write.
        if spec.read_only && !limits.read_only {
            live.locked.store(true, Ordering::Relaxed);
            live.set_shards_locked(true);
        }
        live
    }

    /// It is this block device now, too.
    pub(super) fn set_attached(&self, device: Option<AttachedDevice>) {
        if let Some(device) = device {
            // Once in a life.
            let _ = self.attached.set(device);
        }
    }

    pub(super) fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed)
    }

    /// What holds for the volume now.
    pub(super) fn limits(&self) -> Limits {
        match self.media.ram() {
            Some(ram) => Limits { size: ram.size(), ..self.limits },
            None => self.limits,
        }
    }

    /// The file that the content is kept in between two lives.
    pub(super) fn image(&self) -> Option<&Path> {
        match &self.spec.stack.node {
            Node::Ram(ram) => ram.image.as_deref().map(Path::new),
            _ => None,
        }
    }

    /// Carries out an order, if its giver is still there when it begins.
    pub(super) fn carry_out(&self, order: &WholeOrder, orders: &Orders) -> OrderAnswer {
        let _one = match self.one.try_lock() {
            Ok(one) => one,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return OrderAnswer::refused(format!(
                    "another order is being carried out on {}\n  next: again, when it is done",
                    self.spec.name
                ));
            }
        };
        let begin = || match orders.begin() {
            true => Ok(()),
            false => Err(No::failed("whoever gave the order has gone")),
        };
        let done = match order {
            WholeOrder::Lock { force } => self.lock(*force, begin),
            WholeOrder::Unlock => self.unlock(begin),
            WholeOrder::Erase { force } => self.erase(*force, begin),
            WholeOrder::Resize { bytes, promised } => self.resize(*bytes, *promised, begin),
            WholeOrder::Save { file, force } => self.save(file, *force, begin),
            WholeOrder::Restore { file, force } => self.restore(file, *force, begin),
        };
        done.map_or_else(|No(answer)| answer, OrderAnswer::done)
    }

    fn lock(&self, force: bool, begin: impl Fn() -> Result<(), No>) -> Result<String, No> {
        let name = &self.spec.name;
        if self.is_locked() {
            return Ok(format!("{name} is locked already"));
        }
        let holders = self.holders()?;
        if !holders.is_empty() && !force {
            return Err(No::refused(format!(
                "{name} is in use, and what is on it would get errors when it writes:\n  {}\n  next: \
                 unmount or close it (what was locked can be mounted again, for reading); or `braid \
                 lock {name} --force`",
                holders.join("\n  ")
            )));
        }
        begin()?;
        if let Some(device) = self.attached.get() {
            device.set_read_only(true).map_err(|error| not_told(&error))?;
        }
        let quiet = self.quiet()?;
        self.flush().map_err(|error| {
            No::failed(format!("what was written last could not be made durable: {error}"))
        })?;
        self.locked.store(true, Ordering::Relaxed);
        drop(quiet);
        Ok(format!("{name} is locked: nobody can write to it"))
    }

    fn unlock(&self, begin: impl Fn() -> Result<(), No>) -> Result<String, No> {
        let name = &self.spec.name;
        if self.spec.read_only {
            return Err(No::refused(format!(
                "{name} was brought up with --read-only\n  next: `braid down {name}`, then `braid up \
                 {name}` without it"
            )));
        }
        if !self.is_locked() {
            return Ok(format!("{name} is not locked"));
        }
        begin()?;
        self.locked.store(false, Ordering::Relaxed);
        self.set_shards_locked(false);
        if let Some(device) = self.attached.get() {
            device.set_read_only(false).map_err(|error| not_told(&error))?;
        }
        Ok(format!(
            "{name} is unlocked: it can be written to; NBD clients that came meanwhile connect again"
        ))
    }

    fn erase(&self, force: bool, begin: impl Fn() -> Result<(), No>) -> Result<String, No> {
        let name = &self.spec.name;
        let Some(ram) = self.media.ram() else {
            return Err(No::refused(format!(
                "{name} is no RAM disk, and nothing else is erased here\n  next: `blkdiscard` or \
                 `mkfs` on its device; `braid wipe MEMBER` removes superblocks of an array that is \
                 down"
            )));
        };
        self.refuse_locked()?;
        self.refuse_users("erase", force)?;
        begin()?;
        let quiet = self.quiet()?;
        let used = ram.used_bytes();
        ram.erase();
        drop(quiet);
        Ok(format!("{name} is erased: {:#} of data are gone", ByteSize(used)))
    }

    fn resize(
        &self,
        bytes: u64,
        promised: u64,
        begin: impl Fn() -> Result<(), No>,
    ) -> Result<String, No> {
        let name = &self.spec.name;
        let (Some(ram), Node::Ram(told)) = (self.media.ram(), &self.spec.stack.node) else {
            return Err(No::refused(format!(
                "{name} is no RAM disk, and only these are resized\n  next: for an array with \
                 superblocks `braid grow {name} --size SIZE`; else `braid down {name}` and a stack of \
                 other members"
            )));
        };
        let (old, wish) = (ram.size(), ByteSize(bytes));
        if bytes == old {
            return Ok(format!("{name} has {wish:#} already"));
        }
        self.refuse_locked()?;
        if bytes > old && !told.overcommit {
            promises::check(wish, &format!("{wish:#} for {name}"), promised)
                .map_err(|error| No::refused(error.to_string()))?;
        }
        begin()?;
        let quiet = match bytes < old {
            false => None,
            true => {
                // Who was told of the old size could ask for what is no more.
                self.refuse_users("resize", false)?;
                let quiet = self.quiet()?;
                self.refuse_users("resize", false)?;
                Some(quiet)
            }
        };
        ram.resize(bytes).map_err(|error| self.not_resized(ram, wish, &error))?;
        // First every shard is through with what it began before the disk was longer.
        self.on_each(|_, _, done| send(&done, ()))?;
        let device = ram.clone();
        self.on_each(move |_, local, done| {
            local.offered.exchange(Dev::new(device.device()));
            send(&done, ());
        })?;
        drop(quiet);
        let mut text = format!("{name} has {wish:#} now");
        if let Some(device) = self.attached.get() {
            device.refresh_size().map_err(|error| {
                No::failed(format!(
                    "{text}, but its device does not have that size yet: {error}\n  next: `losetup \
                     --set-capacity` on it"
                ))
            })?;
        }
        if self.connections()? > 0 {
            text += ": NBD clients that are connected see that when they connect again";
        }
        Ok(text)
    }

    fn not_resized(&self, ram: &Ram, wish: ByteSize, error: &RamError) -> No {
        let name = &self.spec.name;
        let refused =
            |why: String| No::refused(format!("{name} is not resized to {wish:#}: {why}"));
        match error {
            RamError::Data { end } => refused(format!(
                "data lies behind the new end, up to byte {end}\n  next: move it (`resize2fs`, for \
                 instance) and discard the rest, or `braid erase {name}`"
            )),
            RamError::Size { logical_block, .. } => refused(format!(
                "that is no multiple of its blocks of {logical_block} bytes\n  next: a size that is"
            )),
            _ if wish.bytes() > ram.most() => refused(format!(
                "it can have up to {:#} in this life\n  next: `braid save {name} FILE`, `braid down \
                 {name}`, a larger one, and `braid restore`",
                ByteSize(ram.most())
            )),
            error => No::failed(format!(
                "{name} is not resized to {wish:#}: {error}\n  next: `braid doctor`, or a smaller size"
            )),
        }
    }

    fn save(
        &self,
        file: &Path,
        force: bool,
        begin: impl Fn() -> Result<(), No>,
    ) -> Result<String, No> {
        let name = &self.spec.name;
        let users = self.users()?;
        if !users.is_empty() && !self.is_locked() && !self.limits.read_only {
            return Err(No::refused(format!(
                "{name} is in use, and an image of it while it is written would be none:\n  {}\n  next: \
                 unmount or close it; or `braid lock {name}`, then `braid save`, then `braid unlock \
                 {name}`",
                users.join("\n  ")
            )));
        }
        begin()?;
        let len = self.save_to(file, force).map_err(|error| self.with_next(error, file))?;
        Ok(format!(
            "{name} is saved: {:#} of content in {:#}, {}",
            ByteSize(self.limits().size),
            ByteSize(len),
            file.display()
        ))
    }

    fn restore(
        &self,
        file: &Path,
        force: bool,
        begin: impl Fn() -> Result<(), No>,
    ) -> Result<String, No> {
        let name = &self.spec.name;
        if self.limits.read_only {
            return Err(No::refused(format!("{name} is read-only")));
        }
        self.refuse_locked()?;
        self.refuse_users("restore", force)?;
        begin()?;
        let quiet = self.quiet()?;
        if !force && self.has_data()? {
            return Err(No::refused(format!(
                "{name} has data, which would be overwritten\n  next: `braid save {name} FILE` keeps \
                 it; `braid restore {name} {} --force` overwrites it",
                shell_path(file)
            )));
        }
        self.restore_from(file).map_err(|error| self.with_next(error, file))?;
        drop(quiet);
        Ok(format!("{name} is restored from {}", file.display()))
    }

    fn with_next(&self, error: ImageError, file: &Path) -> No {
        let name = &self.spec.name;
        let next = match &error {
            ImageError::Exists { .. } => {
                format!("another FILE; or `braid save {name} {} --force`", shell_path(file))
            }
            ImageError::Size { .. } if self.media.ram().is_some() => {
                format!("`braid resize {name} SIZE` gives it the image's size")
            }
            ImageError::WriteVolume(_) => {
                format!("a part of it may be written: `braid erase {name}`, or restore it again")
            }
            ImageError::Damaged { .. } | ImageError::NoImage { .. } => {
                format!("another image; `lz4 --test {}` looks at this one", shell_path(file))
            }
            _ => return No::from(error),
        };
        let No(answer) = No::from(error);
        No(OrderAnswer { text: format!("{}\n  next: {next}", answer.text), ..answer })
    }

    /// The content as an image, while nobody writes; answers its length.
    pub(super) fn save_to(&self, file: &Path, replace: bool) -> Result<u64, ImageError> {
        let _quiet = self
            .quiet()
            .map_err(|No(answer)| ImageError::ReadVolume(io::Error::other(answer.text)))?;
        image::save(file, replace, self.limits().size, |offset, len| self.read(offset, len))
    }

    /// The content of an image, which is verified before. The caller keeps clients from writing.
    pub(super) fn restore_from(&self, file: &Path) -> Result<(), ImageError> {
        Image::verify(file, self.limits().size)?.restore(|offset, bytes| {
            let mut pieces = Vec::new();
            for (index, grain) in bytes.chunks(GRAIN).enumerate() {
                let at = offset + (index * GRAIN) as u64;
                let is_hole = grain.iter().all(|byte| *byte == 0);
                pieces.push((at, grain.len(), (!is_hole).then(|| grain.to_vec())));
            }
            self.write(pieces)
        })?;
        self.flush().map_err(ImageError::WriteVolume)
    }

    /// Saves the content to its image, and lets clients write no more: what they wrote after that would
    /// be lost. Without an image nothing is done.
    pub(super) fn save_image(&self) -> Result<Option<Sealed<'_>>, ImageError> {
        let Some(image) = self.image().filter(|_| !self.spec.read_only) else { return Ok(None) };
        let sealed = Sealed { live: self, was_locked: self.locked.swap(true, Ordering::Relaxed) };
        self.save_to(image, true)?;
        Ok(Some(sealed))
    }

    /// Waits for the order that is being carried out, and lets none begin.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        self.one.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_locked(&self) -> Result<(), No> {
        let name = &self.spec.name;
        match self.is_locked() {
            false => Ok(()),
            true => Err(No::refused(format!(
                "{name} is locked: nothing of it is changed\n  next: `braid unlock {name}`"
            ))),
        }
    }

    fn refuse_users(&self, verb: &str, force: bool) -> Result<(), No> {
        let name = &self.spec.name;
        let users = self.users()?;
        if users.is_empty() || force {
            return Ok(());
        }
        let or = match verb {
            "resize" => String::new(),
            _ => format!("; or the same with --force, if {verb} is meant all the same"),
        };
        Err(No::refused(format!(
            "{name} is in use:\n  {}\n  next: unmount or close it{or}",
            users.join("\n  ")
        )))
    }

    /// Who could write, or sees what is written.
    fn users(&self) -> Result<Vec<String>, No> {
        let mut users = self.holders()?;
        match self.connections()? {
            0 => {}
            1 => users.push("an NBD client is connected".to_owned()),
            count => users.push(format!("{count} NBD clients are connected")),
        }
        Ok(users)
    }

    /// Who has the block device.
    fn holders(&self) -> Result<Vec<String>, No> {
        let Some(device) = self.attached.get() else { return Ok(Vec::new()) };
        let holders = device.holders().map_err(|error| No::failed(error.to_string()))?;
        Ok(holders.iter().map(ToString::to_string).collect())
    }

    fn connections(&self) -> Result<usize, No> {
        let counts = self.on_each(|_, local, done| send(&done, local.server.open_connections()))?;
        Ok(counts.iter().sum())
    }

    /// Lets no more writes of clients in, and waits until those under way are answered.
    fn quiet(&self) -> Result<Quiet<'_>, No> {
        let quiet = Quiet { live: self };
        self.on_each(|handle, local, done| {
            let (handle, offered) = (handle.clone(), local.offered.clone());
            offered.set_locked(true);
            handle.clone().spawn(async move {
                while !offered.is_quiet() {
                    handle.sleep(RETRY).await;
                }
                send(&done, ());
            });
        })?;
        Ok(quiet)
    }

    fn set_shards_locked(&self, locked: bool) {
        for remote in &self.remotes {
            shard::call(remote, move |_, local| local.offered.set_locked(locked));
        }
    }

    /// What `f` sends, of every shard.
    fn on_each<T: Send + 'static>(
        &self,
        f: impl Fn(&Handle, &Local, Sender<T>) + Clone + Send + 'static,
    ) -> Result<Vec<T>, No> {
        let (send, receive) = channel();
        for remote in &self.remotes {
            let (f, send) = (f.clone(), send.clone());
            shard::call(remote, move |handle, local| f(handle, local, send));
        }
        drop(send);
        let deadline = Instant::now() + PATIENCE;
        let answer = |_| {
            let left = deadline.saturating_duration_since(Instant::now());
            receive.recv_timeout(left).map_err(|_| {
                No::failed(format!(
                    "the volume was not through with what is under way within {} s\n  next: `braid \
                     status {}`",
                    PATIENCE.as_secs(),
                    self.spec.name
                ))
            })
        };
        (0..self.remotes.len()).map(answer).collect()
    }

    /// Whether anything reads as something else than a hole.
    fn has_data(&self) -> Result<bool, No> {
        if let Some(ram) = self.media.ram() {
            return Ok(ram.used_bytes() > 0);
        }
        let size = self.limits().size;
        let has = self.on_first(move |_, local, done| {
            let dev = local.offered.dev();
            let mut offset = 0;
            while offset < size {
                let extents = dev.extents(Span::new(offset, size - offset));
                if extents.iter().any(|extent| !extent.zero) {
                    return send(&done, Ok(true));
                }
                offset += extents.iter().map(|extent| extent.len).sum::<u64>();
            }
            send(&done, Ok(false));
        });
        has.map_err(|error| No::failed(error.to_string()))
    }

    /// Reads a piece of the volume; none if it is a hole.
    fn read(&self, offset: u64, len: usize) -> io::Result<Option<Vec<u8>>> {
        debug_assert!(len <= PIECE);
        self.on_first(move |handle, local, done| {
            let (dev, pool) = (local.offered.dev(), local.pool.clone());
            let span = Span::new(offset, len as u64);
            handle.spawn(async move { send(&done, read(&dev, &pool, span).await) });
        })
    }

    /// Writes pieces of the volume; what has no bytes becomes a hole.
    fn write(&self, pieces: Vec<(u64, usize, Option<Vec<u8>>)>) -> io::Result<()> {
        self.on_first(move |handle, local, done| {
            let (dev, pool) = (local.offered.dev(), local.pool.clone());
            handle.spawn(async move {
                let mut result = Ok(());
                for (offset, len, bytes) in pieces {
                    let io = match bytes {
                        None => Io::write_zeroes(Span::new(offset, len as u64), Flags::NONE),
                        Some(bytes) => {
                            let mut buf = pool.get_wait(len).await;
                            buf.copy_from_slice(&bytes);
                            Io::write(offset, buf, Flags::NONE)
                        }
                    };
                    result = result.and(dev.start(io).await.result);
                }
                send(&done, result.map_err(io::Error::from));
            });
        })
    }

    fn flush(&self) -> io::Result<()> {
        self.on_first(|handle, local, done| {
            let dev = local.offered.dev();
            handle.spawn(async move {
                let flushed = dev.start(Io::flush()).await.result;
                send(&done, flushed.map_err(io::Error::from));
            });
        })
    }

    /// What `f` sends, of the first shard.
    fn on_first<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Handle, &Local, Sender<io::Result<T>>) + Send + 'static,
    ) -> io::Result<T> {
        let (send, receive) = channel();
        shard::call(&self.remotes[0], move |handle, local| f(handle, local, send));
        receive.recv_timeout(PATIENCE).unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }
}

async fn read(dev: &Dev, pool: &Pool, span: Span) -> io::Result<Option<Vec<u8>>> {
    let extents = dev.extents(span);
    if let [extent] = &extents[..]
        && extent.zero
        && extent.len == span.len
    {
        return Ok(None);
    }
    let buf = pool.get_wait(span.len as usize).await;
    let completion = dev.start(Io::read(span.offset, buf)).await;
    completion.result?;
    let mut bytes = Vec::with_capacity(span.len as usize);
    completion.payload.bufs().iter().for_each(|buf| bytes.extend_from_slice(buf));
    Ok(Some(bytes))
}

fn send<T>(to: &Sender<T>, value: T) {
    // Whoever asked may have lost patience.
    let _ = to.send(value);
}

fn not_told(error: &io::Error) -> No {
    No::failed(format!("the kernel could not be told: {error}"))
}
