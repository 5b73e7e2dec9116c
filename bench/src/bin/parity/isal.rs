//! Intel's ISA-L, loaded only if it is needed, so that this crate builds and runs without it.
//!
//! It declares two functions with their types in `isa-l/raid.h`. Their buffers are aligned to 32 bytes, their
//! length is a multiple of 32, and lengths are C's `int`; this module checks all of that, and the number of
//! buffers.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};

use braid_bench::{Error, Result};

/// The library's name, with the version of the interface that is declared here.
const LIBRARY: &CStr = c"libisal.so.2";
const ALIGNMENT: usize = 32;
/// Room for the addresses of a call.
const MAX_BUFFERS: usize = 64;

/// `int f(int vects, int len, void **array)`: sources first, then targets.
type Generate = unsafe extern "C" fn(c_int, c_int, *mut *mut c_void) -> c_int;

/// The two functions. The library stays loaded as long as this process.
pub(crate) struct Isal {
    xor_gen: Generate,
    pq_gen: Generate,
}

impl Isal {
    /// Loads the library.
    ///
    /// # Errors
    /// If it is not installed, or lacks one of the functions.
    pub(crate) fn load() -> Result<Isal> {
        // SAFETY: the name ends with a zero. When the library is loaded, it only selects its functions by the
        // processor.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return Err(Error::MissingTool { tool: "ISA-L (libisal.so.2)", package: "libisal2" });
        }
        let find = |name: &CStr| {
            // SAFETY: the handle is that of a library that was loaded, the name ends with a zero.
            let address = unsafe { libc::dlsym(library, name.as_ptr()) };
            if address.is_null() {
                return Err(Error::Unexpected(format!("ISA-L has no {}", name.to_string_lossy())));
            }
            // SAFETY: this is the type of both functions in version 2 of the library.
            Ok(unsafe { std::mem::transmute::<*mut c_void, Generate>(address) })
        };
        Ok(Isal { xor_gen: find(c"xor_gen")?, pq_gen: find(c"pq_gen")? })
    }

    /// Sets `target` to the XOR of `sources`.
    pub(crate) fn xor(&self, target: &mut [u8], sources: &[&[u8]]) {
        generate(self.xor_gen, sources, [target]);
    }

    /// Sets `p` and `q` to the parity of `sources`.
    pub(crate) fn pq(&self, p: &mut [u8], q: &mut [u8], sources: &[&[u8]]) {
        generate(self.pq_gen, sources, [p, q]);
    }
}

/// Calls `function`, which reads the sources and writes the targets.
fn generate<const N: usize>(function: Generate, sources: &[&[u8]], targets: [&mut [u8]; N]) {
    let count = sources.len() + N;
    let length = targets[0].len();
    assert!(sources.len() >= 2 && count <= MAX_BUFFERS, "{count} buffers");
    assert!(length.is_multiple_of(ALIGNMENT), "{length} bytes");
    let mut addresses = [std::ptr::null_mut(); MAX_BUFFERS];
    let (of_sources, of_targets) = addresses.split_at_mut(sources.len());
    for (address, source) in of_sources.iter_mut().zip(sources) {
        assert_eq!(source.len(), length);
        *address = source.as_ptr().cast_mut().cast::<c_void>();
    }
    for (address, target) in of_targets.iter_mut().zip(targets) {
        assert_eq!(target.len(), length);
        *address = target.as_mut_ptr().cast::<c_void>();
    }
    assert!(addresses.iter().all(|address| address.cast::<u8>().align_offset(ALIGNMENT) == 0));
    let length = c_int::try_from(length).expect("a length that C can say");
    // SAFETY: these are `count` addresses of as many aligned buffers of `length` bytes, which are borrowed for
    // the call: the sources for reading, and the targets, which come last, for writing.
    let status = unsafe { function(count as c_int, length, addresses.as_mut_ptr()) };
    assert_eq!(status, 0, "ISA-L refuses its arguments");
}
