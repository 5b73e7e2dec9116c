//! An image that is open: its cluster, its pool, its lock.
//!
//! Invariants
//! * The pointers are those that the libraries gave, and are given back once, in order: image, pool, cluster.
//! * An image that may be written has its exclusive lock, acquired by `rbd_lock_acquire`: from then on librbd does not
//!   hand it over to clients that ask for it.
#![allow(unsafe_code, reason = "calls of librados and librbd")]

use std::ffi::{CString, c_char};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_block::{Errno, Limits};
use rustix::event::{EventfdFlags, eventfd};

use crate::call::{check, whole, within};
use crate::error::RbdError;
use crate::library::{Library, Pointer, Watcher, library};

/// Bit of the feature exclusive-lock, from `rbd/features.h`.
const EXCLUSIVE_LOCK: u64 = 1 << 2;
/// Mode of an exclusive lock, from `rbd/librbd.h`.
const LOCK_MODE_EXCLUSIVE: i32 = 0;
/// Kind of a counter, from `rbd/librbd.h`.
const EVENT_TYPE_EVENTFD: i32 = 2;
/// Longest time for closing or unlocking an image. Its lock ends by itself if the cluster does not answer.
const CLOSING: Duration = Duration::from_secs(10);
/// Most owners and watchers that are asked for.
const MOST: usize = 64;

/// The name of an image, and the way to its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The pool.
    pub pool: String,
    /// The namespace in the pool; empty for the default one.
    pub namespace: String,
    /// The image.
    pub image: String,
    /// The snapshot, if it is one.
    pub snapshot: Option<String>,
    /// Path of the cluster's configuration; `None` for the places where Ceph looks.
    pub conf: Option<String>,
    /// The client's name without `client.`; `None` for `admin`.
    pub id: Option<String>,
}

impl Source {
    /// Returns the image's name as `rbd` takes it.
    #[must_use]
    pub fn name(&self) -> String {
        let namespace = if self.namespace.is_empty() { "" } else { "/" };
        let at = self.snapshot.as_ref().map_or(String::new(), |name| format!("@{name}"));
        format!("{}/{}{namespace}{}{at}", self.pool, self.namespace, self.image)
    }
}

/// An open image.
pub struct Image {
    handles: Handles,
    limits: Limits,
    /// Time that a call may take.
    limit: Duration,
    is_blocklisted: AtomicBool,
}

/// Handles of the libraries; null if not open.
struct Handles {
    library: &'static Library,
    cluster: Pointer,
    pool: Pointer,
    image: Pointer,
    /// Counter by which librbd tells of answers. librbd knows its number, so it stays open until the image is closed.
    events: Option<OwnedFd>,
}

// SAFETY: librados and librbd are made for many threads: handles may be used by any of them, also at once. The pointers
// are not changed after the opening.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}

impl Image {
    /// Opens an image, and takes its exclusive lock unless it is opened `read_only`.
    ///
    /// # Errors
    /// [`RbdError`]; [`RbdError::Late`] if the cluster does not answer within `limit`.
    pub fn open(source: &Source, read_only: bool, limit: Duration) -> Result<Image, RbdError> {
        let library = library()?;
        let source = source.clone();
        // If it is too late, the image is closed again there.
        let opened = within(limit, "open", move || open(library, &source, read_only, limit));
        opened.unwrap_or_else(|error| {
            Err(match error.kind() {
                io::ErrorKind::TimedOut => RbdError::Late { limit },
                _ => RbdError::Thread { errno: error.into() },
            })
        })
    }

    /// Returns size and block sizes, as they were at the opening.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Reads `bytes` from `offset` on, in the call.
    ///
    /// # Errors
    /// The cluster's answer; `UnexpectedEof` behind the end; `TimedOut`.
    pub fn read_at(self: &Arc<Self>, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut read = vec![0; bytes.len()];
        let read = self.in_time(move |Handles { library, image, .. }| {
            let to = read.as_mut_ptr().cast::<c_char>();
            // SAFETY: an open image, and memory that lives until the call returns.
            let count = unsafe { (library.rbd_read)(*image, offset, read.len(), to) };
            whole(count, read.len(), io::ErrorKind::UnexpectedEof).map(|()| read)
        })?;
        bytes.copy_from_slice(&read);
        Ok(())
    }

    /// Writes `bytes` at `offset`, in the call.
    ///
    /// # Errors
    /// The cluster's answer; `WriteZero` behind the end; `TimedOut`, and the cluster may still carry it out later.
    pub fn write_at(self: &Arc<Self>, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let bytes = bytes.to_vec();
        self.in_time(move |Handles { library, image, .. }| {
            let from = bytes.as_ptr().cast::<c_char>();
            // SAFETY: an open image, and memory that lives until the call returns.
            let count = unsafe { (library.rbd_write)(*image, offset, bytes.len(), from) };
            whole(count, bytes.len(), io::ErrorKind::WriteZero)
        })
    }

    /// Makes durable what was written, in the call.
    ///
    /// # Errors
    /// The cluster's answer; `TimedOut`.
    pub fn flush(self: &Arc<Self>) -> io::Result<()> {
        self.in_time(|Handles { library, image, .. }| {
            // SAFETY: an open image.
            check(unsafe { (library.rbd_flush)(*image) }).map_err(io::Error::from)
        })
    }

    /// Carries `work` out within the time that a call may take.
    fn in_time<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Handles) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let image = Arc::clone(self);
        within(self.limit, "call", move || work(&image.handles))?
    }

    /// Returns why the image cannot be used any more.
    #[must_use]
    pub fn vanished(&self) -> Option<&'static str> {
        if self.is_blocklisted.load(Ordering::Acquire) {
            return Some("the cluster has blocklisted this client");
        }
        let size = self.handles.size().ok()?;
        (size < self.limits.size).then_some("the image was made smaller")
    }

    /// Gives the exclusive lock back, so that the next client need not wait until the cluster misses this one. No request
    /// may be in flight, and none may follow: it would take the lock again. A cluster that does not answer is not waited
    /// for; the lock then ends with the process.
    pub fn unlock(self: &Arc<Self>) {
        if self.limits.read_only {
            return;
        }
        let image = Arc::clone(self);
        // A failure leaves the lock as it is.
        let _ = within(CLOSING, "unlock", move || {
            let Handles { library, image: pointer, .. } = image.handles;
            // SAFETY: an open image, which `image` keeps open until the call returns.
            unsafe { (library.rbd_lock_release)(pointer) };
        });
    }

    /// Notes a failure of a request.
    pub(crate) fn failed(&self, errno: Errno) {
        if errno == Errno::SHUTDOWN {
            self.is_blocklisted.store(true, Ordering::Release);
        }
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.handles.library
    }

    /// Returns the counter by which librbd tells of answers, as a descriptor of its own.
    pub(crate) fn events(&self) -> io::Result<OwnedFd> {
        self.handles.events.as_ref().ok_or(io::ErrorKind::NotConnected)?.try_clone()
    }

    pub(crate) fn pointer(&self) -> Pointer {
        self.handles.image
    }
}

/// Opens an image in the call.
fn open(
    library: &'static Library,
    source: &Source,
    read_only: bool,
    limit: Duration,
) -> Result<Image, RbdError> {
    let (cluster, pool, image) = (null_mut(), null_mut(), null_mut());
    let mut handles = Handles { library, cluster, pool, image, events: None };
    handles.connect(source, limit)?;
    handles.open(source, read_only)?;
    handles.notify().map_err(|errno| RbdError::Open { errno })?;
    if !read_only {
        handles.lock()?;
        // Until the first flush librbd acknowledges no write early. Exports pass flushes on.
        // SAFETY: an open image.
        unsafe { (library.rbd_flush)(handles.image) };
    }
    let size = handles.size().map_err(|errno| RbdError::Open { errno })?;
    if size == 0 || !size.is_multiple_of(512) {
        return Err(RbdError::Size { size });
    }
    let mut unit = 0;
    // SAFETY: an open image, and memory for the answer. If it fails, no size is better than another.
    let _ = unsafe { (library.rbd_get_stripe_unit)(handles.image, &raw mut unit) };
    let mut limits = Limits::new(size, 512);
    limits.physical_block = 4096;
    limits.optimal_io = u32::try_from(unit).unwrap_or(0);
    limits.read_only = read_only;
    Ok(Image { handles, limits, limit, is_blocklisted: AtomicBool::new(false) })
}

impl Handles {
    fn connect(&mut self, source: &Source, limit: Duration) -> Result<(), RbdError> {
        let library = self.library;
        let id_text = source.id.as_deref().unwrap_or("admin");
        let id = text(id_text, "id")?;
        let conf = source.conf.as_deref().map(|conf| text(conf, "conf")).transpose()?;
        let pool = text(&source.pool, "the pool")?;
        let namespace = text(&source.namespace, "the namespace")?;
        let seconds = text(&limit.as_secs().max(1).to_string(), "the limit")?;
        let failed = |errno| RbdError::Connect { id: id_text.to_owned(), errno };
        // SAFETY: strings with their ends, which are copied, and memory for the answer.
        check(unsafe { (library.rados_create)(&raw mut self.cluster, id.as_ptr()) })
            .map_err(failed)?;
        let path = conf.as_ref().map_or(std::ptr::null(), |conf| conf.as_ptr());
        // SAFETY: a cluster, and a path or null.
        let read = check(unsafe { (library.rados_conf_read_file)(self.cluster, path) });
        read.map_err(|errno| {
            let conf = source.conf.clone().unwrap_or_else(|| "/etc/ceph/ceph.conf".to_owned());
            RbdError::Configuration { conf, errno }
        })?;
        // SAFETY: a cluster, and strings with their ends. The default would be to try for five minutes.
        let set = unsafe {
            (library.rados_conf_set)(
                self.cluster,
                c"client_mount_timeout".as_ptr(),
                seconds.as_ptr(),
            )
        };
        check(set).map_err(failed)?;
        // SAFETY: a cluster that is configured.
        check(unsafe { (library.rados_connect)(self.cluster) }).map_err(failed)?;
        // SAFETY: a cluster that is connected, a string with its end, and memory for the answer.
        let made = unsafe {
            (library.rados_ioctx_create)(self.cluster, pool.as_ptr(), &raw mut self.pool)
        };
        check(made).map_err(|errno| RbdError::Pool { pool: source.pool.clone(), errno })?;
        // SAFETY: an open pool, and a string with its end.
        unsafe { (library.rados_ioctx_set_namespace)(self.pool, namespace.as_ptr()) };
        Ok(())
    }

    fn open(&mut self, source: &Source, read_only: bool) -> Result<(), RbdError> {
        let name = text(&source.image, "the image")?;
        let snapshot = source.snapshot.as_deref();
        let snapshot = snapshot.map(|name| text(name, "the snapshot")).transpose()?;
        if snapshot.is_some() && !read_only {
            return Err(RbdError::Snapshot);
        }
        let snapshot = snapshot.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        let library = self.library;
        let open = if read_only { library.rbd_open_read_only } else { library.rbd_open };
        // SAFETY: an open pool, strings with their ends or null, and memory for the answer.
        let opened = unsafe { open(self.pool, name.as_ptr(), &raw mut self.image, snapshot) };
        if let Err(errno) = check(opened) {
            self.image = null_mut();
            return Err(RbdError::Open { errno });
        }
        Ok(())
    }

    /// Has librbd tell of answers by a counter.
    fn notify(&mut self) -> Result<(), Errno> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let events = eventfd(0, flags).map_err(io::Error::from)?;
        let number = events.as_raw_fd();
        self.events = Some(events);
        // SAFETY: an open image, and an open counter, which is closed after the image.
        check(unsafe {
            (self.library.rbd_set_image_notification)(self.image, number, EVENT_TYPE_EVENTFD)
        })
    }

    fn size(&self) -> Result<u64, Errno> {
        let mut size = 0;
        // SAFETY: an open image, and memory for the answer.
        check(unsafe { (self.library.rbd_get_size)(self.image, &raw mut size) })?;
        Ok(size)
    }

    /// Takes the exclusive lock, unless a client has it that still watches the image. The lock of a client that is gone
    /// is broken by librbd, which has the cluster refuse that client's late writes first.
    fn lock(&self) -> Result<(), RbdError> {
        let mut features = 0;
        // SAFETY: an open image, and memory for the answer.
        check(unsafe { (self.library.rbd_get_features)(self.image, &raw mut features) })
            .map_err(|errno| RbdError::Lock { errno })?;
        if features & EXCLUSIVE_LOCK == 0 {
            return Err(RbdError::NoLock);
        }
        let failed = |errno| RbdError::Lock { errno };
        if let Some(owner) = self.owner().map_err(failed)?
            && self.watchers().map_err(failed)?.iter().any(|watcher| owner.contains(watcher))
        {
            return Err(RbdError::Locked { owner });
        }
        // SAFETY: an open image.
        check(unsafe { (self.library.rbd_lock_acquire)(self.image, LOCK_MODE_EXCLUSIVE) }).map_err(
            |errno| match errno.raw() {
                libc::EROFS | libc::EBUSY => {
                    RbdError::Locked { owner: "another client".to_owned() }
                }
                _ => RbdError::Lock { errno },
            },
        )
    }

    /// Returns the owner of the exclusive lock.
    fn owner(&self) -> Result<Option<String>, Errno> {
        let (mut mode, mut owners, mut count) = (0, [null_mut::<c_char>(); MOST], MOST);
        // SAFETY: an open image, and an array of `count` pointers, of which `count` are set by then.
        let listed = unsafe {
            (self.library.rbd_lock_get_owners)(
                self.image,
                &raw mut mode,
                owners.as_mut_ptr(),
                &raw mut count,
            )
        };
        match check(listed) {
            Err(errno) if errno.raw() == libc::ENOENT => return Ok(None),
            listed => listed?,
        }
        let first = (count > 0).then(|| copied(owners[0]));
        // SAFETY: the pointers that the call above set, once.
        unsafe { (self.library.rbd_lock_get_owners_cleanup)(owners.as_mut_ptr(), count) };
        Ok(first)
    }

    /// Returns the addresses of the clients that have the image open.
    fn watchers(&self) -> Result<Vec<String>, Errno> {
        let mut all = [const { Watcher { address: null_mut(), id: 0, cookie: 0 } }; MOST];
        let mut count = MOST;
        // SAFETY: an open image, and an array of `count` watchers, of which `count` are set by then.
        check(unsafe {
            (self.library.rbd_watchers_list)(self.image, all.as_mut_ptr(), &raw mut count)
        })?;
        let addresses = all[..count.min(MOST)].iter().map(|one| copied(one.address)).collect();
        // SAFETY: the watchers that the call above set, once.
        unsafe { (self.library.rbd_watchers_list_cleanup)(all.as_mut_ptr(), count) };
        Ok(addresses)
    }
}

impl Drop for Handles {
    /// Closes in a thread of its own, for which it waits a while: closing asks the cluster.
    fn drop(&mut self) {
        let Handles { library, cluster, pool, image, .. } = *self;
        let events = self.events.take();
        // This copy is not dropped, which would close again.
        let mut all = ManuallyDrop::new(Handles { library, cluster, pool, image, events });
        // Without a thread it stays open until the process ends.
        let _ = within(CLOSING, "close", move || {
            // SAFETY: pointers that the libraries gave, in the order in which they depend on each other, once: these are
            // the only ones that are left.
            unsafe {
                if !all.image.is_null() {
                    (all.library.rbd_close)(all.image);
                }
                if !all.pool.is_null() {
                    (all.library.rados_ioctx_destroy)(all.pool);
                }
                if !all.cluster.is_null() {
                    (all.library.rados_shutdown)(all.cluster);
                }
            }
            drop(all.events.take());
        });
    }
}

/// Returns the text as the libraries take it.
fn text(text: &str, what: &'static str) -> Result<CString, RbdError> {
    CString::new(text).map_err(|_| RbdError::Text { what })
}

/// Returns a copy of a string of the libraries.
fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a string with its end, which lives until it is given back after this call.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
