//! Calls of librbd: in a thread of their own, for a limited time; and their answers.

use std::io;
use std::sync::mpsc::channel;
use std::time::Duration;

use braid_block::Errno;

/// Carries `work` out in a thread called braid-rbd-`name`, since calls of librbd last as long as the cluster does not
/// answer. What `work` holds is dropped before the result is there: the caller's process may end then.
///
/// # Errors
/// `TimedOut` after `limit`: the work goes on, and its result is dropped. No thread.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (answer, answered) = channel();
    let run = move || {
        let _ = answer.send(work());
    };
    std::thread::Builder::new().name(format!("braid-rbd-{name}")).spawn(run)?;
    answered.recv_timeout(limit).map_err(|_| io::ErrorKind::TimedOut.into())
}

/// Returns whether an answer is the `len` bytes that were asked for; fewer are the error `short`.
pub(crate) fn whole(answer: isize, len: usize, short: io::ErrorKind) -> io::Result<()> {
    match usize::try_from(answer) {
        Ok(count) if count == len => Ok(()),
        Ok(_) => Err(short.into()),
        Err(_) => Err(io::Error::from(errno_of(answer))),
    }
}

/// Returns the result of a call that answers a negative error number.
pub(crate) fn check(result: i32) -> Result<(), Errno> {
    if result < 0 { Err(Errno::from_raw(-result)) } else { Ok(()) }
}

/// Returns the error of a negative answer.
pub(crate) fn errno_of(answer: isize) -> Errno {
    Errno::from_raw(i32::try_from(-answer).unwrap_or(libc::EIO))
}
