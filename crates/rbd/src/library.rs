//! The functions of librados and librbd, by `dlopen`, so that braid needs no Ceph to be built or started.
//!
//! Invariants
//! * The libraries are opened once and never closed: their threads outlive every image.
//! * The types below are those of `rados/librados.h` and `rbd/librbd.h` of Ceph 15 and later. These functions have not
//!   changed since; one that is missing is an error, not a crash.
#![allow(unsafe_code, reason = "symbols of shared libraries become functions")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::error::RbdError;

/// A pointer of the libraries: a cluster, a pool, an image or a completion.
pub(crate) type Pointer = *mut c_void;

/// The callback of a completion, which is not used: completions are polled.
type Callback = Option<extern "C" fn(Pointer, Pointer)>;

/// A watcher of an image, as `rbd_watchers_list` gives it.
#[repr(C)]
pub(crate) struct Watcher {
    pub(crate) address: *mut c_char,
    pub(crate) id: i64,
    pub(crate) cookie: u64,
}

macro_rules! library {
    ($($library:ident { $($name:ident: fn($($argument:ty),*) $(-> $answer:ty)?;)* })*) => {
        /// The functions that are used.
        pub(crate) struct Library {
            $($(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*)*
        }

        impl Library {
            fn load() -> Result<Library, RbdError> {
                $(let $library = open(stringify!($library))?;)*
                Ok(Library {
                    $($($name: {
                        let found = symbol($library, concat!(stringify!($name), "\0"))?;
                        // SAFETY: the symbol is a function of the type that the library's header declares, and the
                        // library stays open.
                        unsafe {
                            std::mem::transmute::<
                                Pointer,
                                unsafe extern "C" fn($($argument),*) $(-> $answer)?,
                            >(found)
                        }
                    },)*)*
                })
            }
        }
    };
}

library! {
    rados {
        rados_create: fn(*mut Pointer, *const c_char) -> c_int;
        rados_conf_read_file: fn(Pointer, *const c_char) -> c_int;
        rados_conf_set: fn(Pointer, *const c_char, *const c_char) -> c_int;
        rados_connect: fn(Pointer) -> c_int;
        rados_shutdown: fn(Pointer);
        rados_ioctx_create: fn(Pointer, *const c_char, *mut Pointer) -> c_int;
        rados_ioctx_set_namespace: fn(Pointer, *const c_char);
        rados_ioctx_destroy: fn(Pointer);
    }
    rbd {
        rbd_open: fn(Pointer, *const c_char, *mut Pointer, *const c_char) -> c_int;
        rbd_open_read_only: fn(Pointer, *const c_char, *mut Pointer, *const c_char) -> c_int;
        rbd_close: fn(Pointer) -> c_int;
        rbd_get_size: fn(Pointer, *mut u64) -> c_int;
        rbd_get_features: fn(Pointer, *mut u64) -> c_int;
        rbd_get_stripe_unit: fn(Pointer, *mut u64) -> c_int;
        rbd_lock_acquire: fn(Pointer, c_int) -> c_int;
        rbd_lock_release: fn(Pointer) -> c_int;
        rbd_lock_get_owners: fn(Pointer, *mut c_int, *mut *mut c_char, *mut usize) -> c_int;
        rbd_lock_get_owners_cleanup: fn(*mut *mut c_char, usize);
        rbd_watchers_list: fn(Pointer, *mut Watcher, *mut usize) -> c_int;
        rbd_watchers_list_cleanup: fn(*mut Watcher, usize);
        rbd_read: fn(Pointer, u64, usize, *mut c_char) -> isize;
        rbd_write: fn(Pointer, u64, usize, *const c_char) -> isize;
        rbd_flush: fn(Pointer) -> c_int;
        rbd_set_image_notification: fn(Pointer, c_int, c_int) -> c_int;
        rbd_poll_io_events: fn(Pointer, *mut Pointer, c_int) -> c_int;
        rbd_aio_create_completion: fn(Pointer, Callback, *mut Pointer) -> c_int;
        rbd_aio_get_arg: fn(Pointer) -> Pointer;
        rbd_aio_get_return_value: fn(Pointer) -> isize;
        rbd_aio_release: fn(Pointer);
        rbd_aio_read: fn(Pointer, u64, usize, *mut c_char, Pointer) -> c_int;
        rbd_aio_readv: fn(Pointer, *const libc::iovec, c_int, u64, Pointer) -> c_int;
        rbd_aio_write: fn(Pointer, u64, usize, *const c_char, Pointer) -> c_int;
        rbd_aio_writev: fn(Pointer, *const libc::iovec, c_int, u64, Pointer) -> c_int;
        rbd_aio_flush: fn(Pointer, Pointer) -> c_int;
        rbd_aio_discard: fn(Pointer, u64, u64, Pointer) -> c_int;
        rbd_aio_write_zeroes: fn(Pointer, u64, usize, Pointer, c_int, c_int) -> c_int;
    }
}

/// Returns the libraries, which are loaded by the first call.
///
/// # Errors
/// [`RbdError::NoLibrary`], with the package that has it. A later call tries again.
pub(crate) fn library() -> Result<&'static Library, RbdError> {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let library = Library::load()?;
    Ok(LIBRARY.get_or_init(|| library))
}

/// Opens a library for good.
fn open(name: &str) -> Result<Pointer, RbdError> {
    let file: &CStr = if name == "rbd" { c"librbd.so.1" } else { c"librados.so.2" };
    // SAFETY: a string with its end. The library's constructors run, which is what loading Ceph's client means.
    let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(RbdError::NoLibrary { why: failure() }) } else { Ok(handle) }
}

/// Returns the address of a function; `name` ends with a zero.
fn symbol(library: Pointer, name: &str) -> Result<Pointer, RbdError> {
    // SAFETY: an open library, and a string that ends with a zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
    if found.is_null() { Err(RbdError::NoLibrary { why: failure() }) } else { Ok(found) }
}

/// Returns the text of the last failure of this thread's `dlopen` or `dlsym`.
fn failure() -> String {
    // SAFETY: the answer is null, or a string that lives until the next such call of this thread; it is copied here.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "it has no such function".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}
