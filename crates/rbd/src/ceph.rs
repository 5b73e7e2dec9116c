//! Requests to an image by `rbd_aio_…`, and the memory that librbd works on.
//!
//! ```text
//!   submit: the memory moves into a slot ──▶ rbd_aio_…, with the slot's number ──▶ ... ──▶ take: it moves out again
//! ```
//!
//! Invariants
//! * From the call until its completion was polled, the payload and the array of its pieces lie in a slot and nothing of
//!   braid reads, writes, moves or frees their bytes: a slot is private, and a buffer's bytes stay where they are when the
//!   buffer moves.
//! * What the completion carries is the number of its slot, never a pointer to it.
//! * A queue that is dropped with requests in flight leaks their memory: librbd may still use it.
#![allow(unsafe_code, reason = "calls of librbd, which works on memory of the pool")]

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::Arc;

use braid_block::{Errno, Io, Op, Payload};
use braid_mem::Buf;
use slab::Slab;

use crate::call::errno_of;
use crate::device::{Done, Queue};
use crate::image::Image;
use crate::library::Pointer;

/// Answers that are taken at once, as librbd counts them.
const MOST: libc::c_int = 64;
/// Answers that are taken at once.
const BATCH: usize = 64;

/// Requests to an image.
pub struct CephQueue {
    image: Arc<Image>,
    slots: RefCell<Slab<Slot>>,
    done: RefCell<Vec<Done>>,
}

struct Slot {
    id: u32,
    op: Op,
    payload: Payload,
    /// Pieces of a payload with several, of which librbd keeps the address.
    pieces: Box<[libc::iovec]>,
}

impl CephQueue {
    /// Makes the queue of an image, which has one.
    #[must_use]
    pub fn new(image: Arc<Image>) -> CephQueue {
        CephQueue { image, slots: RefCell::default(), done: RefCell::default() }
    }

    /// Starts the request in the slot `key`.
    fn start(&self, key: usize, offset: u64, len: u64) -> Result<(), Errno> {
        let (library, image) = (self.image.library(), self.image.pointer());
        let mut completion: Pointer = null_mut();
        let argument = std::ptr::without_provenance_mut(key);
        // SAFETY: the argument is a number that is only handed back; no callback; memory for the answer.
        let made =
            unsafe { (library.rbd_aio_create_completion)(argument, None, &raw mut completion) };
        if made < 0 {
            return Err(Errno::from_raw(-made));
        }
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[key];
        let count = i32::try_from(slot.pieces.len()).map_err(|_| Errno::INVAL)?;
        let bytes = usize::try_from(len).map_err(|_| Errno::INVAL)?;
        let pieces = slot.pieces.as_ptr();
        let one = slot.payload.bufs_mut().first_mut();
        // SAFETY: an open image and a completion of this request. The memory (one buffer, or the pieces, which lie on the
        // heap) is the slot's until the completion is polled; see the header. Nothing else refers to a buffer that is
        // read into, and one that is written from may be shared only to be read.
        let result = unsafe {
            match (slot.op, one) {
                (Op::Read, Some(buf)) if count == 0 => {
                    let to = buf.as_mut_ptr().cast();
                    (library.rbd_aio_read)(image, offset, bytes, to, completion)
                }
                (Op::Write, Some(buf)) if count == 0 => {
                    let from = buf.as_ptr().cast();
                    (library.rbd_aio_write)(image, offset, bytes, from, completion)
                }
                (Op::Read, _) => (library.rbd_aio_readv)(image, pieces, count, offset, completion),
                (Op::Write, _) => {
                    (library.rbd_aio_writev)(image, pieces, count, offset, completion)
                }
                (Op::Flush, _) => (library.rbd_aio_flush)(image, completion),
                (Op::Discard, _) => (library.rbd_aio_discard)(image, offset, len, completion),
                (Op::WriteZeroes, _) => {
                    (library.rbd_aio_write_zeroes)(image, offset, bytes, completion, 0, 0)
                }
            }
        };
        if result < 0 {
            // SAFETY: the request was refused, so the completion is ours alone.
            unsafe { (library.rbd_aio_release)(completion) };
            return Err(Errno::from_raw(-result));
        }
        Ok(())
    }

    /// Takes a slot out, whose request librbd has no more to do with.
    fn end(&self, key: usize, answer: isize) -> Done {
        let slot = self.slots.borrow_mut().remove(key);
        let len = slot.payload.len();
        let result = match usize::try_from(answer) {
            Err(_) => Err(errno_of(answer)),
            // What is behind the end of an image that was made smaller.
            Ok(read) if slot.op == Op::Read && read as u64 != len => Err(Errno::IO),
            Ok(_) => Ok(()),
        };
        if let Err(errno) = result {
            self.image.failed(errno);
        }
        Done { id: slot.id, result, payload: slot.payload }
    }
}

impl Queue for CephQueue {
    fn submit(&self, id: u32, io: Io) {
        let Io { op, span, mut payload, .. } = io;
        let bufs = payload.bufs_mut();
        let piece = |buf: &mut Buf| libc::iovec {
            iov_base: if op == Op::Read { buf.as_mut_ptr() } else { buf.as_ptr().cast_mut() }
                .cast(),
            iov_len: buf.len(),
        };
        let pieces =
            if bufs.len() > 1 { bufs.iter_mut().map(piece).collect() } else { Box::default() };
        let key = self.slots.borrow_mut().insert(Slot { id, op, payload, pieces });
        if let Err(errno) = self.start(key, span.offset, span.len) {
            let done = self.end(key, -isize::try_from(errno.raw()).unwrap_or(isize::MAX));
            self.done.borrow_mut().push(done);
        }
    }

    fn take(&self, done: &mut Vec<Done>) {
        done.append(&mut self.done.borrow_mut());
        let (library, image) = (self.image.library(), self.image.pointer());
        loop {
            let mut batch: [Pointer; BATCH] = [null_mut(); BATCH];
            // SAFETY: an open image, and an array of as many completions, of which the answer says how many are set.
            let count = unsafe { (library.rbd_poll_io_events)(image, batch.as_mut_ptr(), MOST) };
            let count = usize::try_from(count).unwrap_or(0);
            for completion in &batch[..count] {
                // SAFETY: a completion that is complete, and is released once. Its request is over: librbd has let go of
                // the memory before it hands the completion out.
                let (key, answer) = unsafe {
                    let key = (library.rbd_aio_get_arg)(*completion).addr();
                    let answer = (library.rbd_aio_get_return_value)(*completion);
                    (library.rbd_aio_release)(*completion);
                    (key, answer)
                };
                done.push(self.end(key, answer));
            }
            if count < BATCH {
                return;
            }
        }
    }

    fn events(&self) -> io::Result<OwnedFd> {
        self.image.events()
    }
}

impl Drop for CephQueue {
    fn drop(&mut self) {
        // librbd may still read and write this memory.
        self.slots.get_mut().drain().for_each(std::mem::forget);
    }
}
