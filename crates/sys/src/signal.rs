//! Signals as bytes of a socket, which a thread reads.
//!
//! ```text
//!  kernel ──▶ note, on any thread ──a byte for each listener──▶ Signals::wait
//! ```
//!
//! Invariants: a handler only walks a list that grows at its head, sends without waiting, and leaves `errno` as it was;
//! a listener is never taken off the list, so a handler that is at it reads live memory. Deliberately absent: taking a
//! handler away again. A listener that is dropped keeps one descriptor until the process ends.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::check;

pub use libc::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};

/// One call of [`Signals::catch`].
struct Listener {
    /// Bit N is signal N.
    signals: u64,
    /// The end that handlers send to.
    socket: RawFd,
    next: *mut Listener,
}

/// The newest listener, from which all others are reached.
static NEWEST: AtomicPtr<Listener> = AtomicPtr::new(ptr::null_mut());

/// Signals that arrive, in order. Those beyond some hundred that are not read are lost.
#[derive(Debug)]
pub struct Signals(UnixStream);

impl Signals {
    /// Catches these signals from now on, instead of what they do otherwise. Each listener gets each signal.
    ///
    /// # Errors
    /// No socket pair, or a signal that cannot be caught.
    ///
    /// # Panics
    /// A signal below 1 or above 63.
    pub fn catch(signals: &[libc::c_int]) -> io::Result<Self> {
        let (here, there) = UnixStream::pair()?;
        let listener = Box::into_raw(Box::new(Listener {
            signals: signals.iter().fold(0, |bits, &signal| {
                assert!((1..64).contains(&signal), "signal {signal}");
                bits | 1 << signal
            }),
            socket: there.into_raw_fd(),
            next: ptr::null_mut(),
        }));
        let mut newest = NEWEST.load(Ordering::Acquire);
        loop {
            // SAFETY: the listener is not on the list yet, so this is its only user.
            unsafe { (*listener).next = newest };
            match NEWEST.compare_exchange(newest, listener, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(other) => newest = other,
            }
        }
        for &signal in signals {
            install(signal, note as extern "C" fn(libc::c_int) as libc::sighandler_t)?;
        }
        Ok(Self(here))
    }

    /// Waits for the next signal.
    ///
    /// # Panics
    /// The socket's other end is never closed, so a read that fails is a fault of this program.
    pub fn wait(&self) -> libc::c_int {
        let mut byte = [0];
        (&self.0).read_exact(&mut byte).expect("the end that handlers send to is never closed");
        byte[0].into()
    }

    /// Returns the next signal if one has arrived.
    ///
    /// # Errors
    /// None is documented for a socket of this process.
    pub fn arrived(&self) -> io::Result<Option<libc::c_int>> {
        self.0.set_nonblocking(true)?;
        let mut byte = [0];
        let read = (&self.0).read_exact(&mut byte);
        self.0.set_nonblocking(false)?;
        match read {
            Ok(()) => Ok(Some(byte[0].into())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Readable when a signal has arrived.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Ends this process by a signal, as it would without a handler.
pub fn end_by(signal: libc::c_int) -> ! {
    // A signal whose handler could be installed can have its default back.
    let _ = install(signal, libc::SIG_DFL);
    // SAFETY: a call without pointers.
    unsafe { libc::raise(signal) };
    // A signal that is blocked, or whose default is to go on.
    std::process::abort()
}

fn install(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: of a sigaction all zeros are a value: no flag, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the kernel reads a live sigaction; its handler does only what a handler may (see `note`).
    check(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) }).map(drop)
}

/// Sends the signal to the listeners that want it.
extern "C" fn note(signal: libc::c_int) {
    // SAFETY: the address of this thread's errno is valid while the thread lives.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let byte = signal as u8;
    let mut listener = NEWEST.load(Ordering::Acquire);
    // SAFETY: listeners are never freed, nor changed after they came onto the list.
    while let Some(at) = unsafe { listener.as_ref() } {
        if at.signals >> signal & 1 == 1 {
            // SAFETY: the kernel reads the one byte; send is safe in a handler, and waits for nothing.
            unsafe {
                libc::send(
                    at.socket,
                    (&raw const byte).cast(),
                    1,
                    libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
                )
            };
        }
        listener = at.next;
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    fn raise(signal: libc::c_int) {
        // SAFETY: a call without pointers.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    #[test]
    fn each_listener_gets_its_signals_in_order() {
        let both = Signals::catch(&[libc::SIGUSR1, libc::SIGUSR2]).unwrap();
        let one = Signals::catch(&[libc::SIGUSR2]).unwrap();
        assert_eq!(both.arrived().unwrap(), None);
        drop(Signals::catch(&[libc::SIGUSR1]).unwrap());
        raise(libc::SIGUSR1);
        raise(libc::SIGUSR2);
        assert_eq!((both.wait(), both.wait()), (libc::SIGUSR1, libc::SIGUSR2));
        assert_eq!(one.arrived().unwrap(), Some(libc::SIGUSR2));
        assert_eq!((one.arrived().unwrap(), both.arrived().unwrap()), (None, None));
    }

    #[test]
    fn signals_that_are_not_read_are_lost_and_hold_up_nothing() {
        let unread = Signals::catch(&[libc::SIGURG]).unwrap();
        for _ in 0..10_000 {
            raise(libc::SIGURG);
        }
        assert_eq!(unread.wait(), libc::SIGURG);
    }

    #[test]
    fn a_signal_that_cannot_be_caught_is_an_error() {
        let error = Signals::catch(&[libc::SIGKILL]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn a_process_ends_by_the_signal_that_it_caught() {
        const CHILD: &str = "BRAID_ENDS_BY_A_SIGNAL";
        if std::env::var_os(CHILD).is_some() {
            let _caught = Signals::catch(&[SIGTERM]).unwrap();
            end_by(SIGTERM);
        }
        let name = "signal::tests::a_process_ends_by_the_signal_that_it_caught";
        let program = std::env::current_exe().unwrap();
        let ended = Command::new(program).args(["--exact", name]).env(CHILD, "1").output().unwrap();
        assert_eq!(ended.status.signal(), Some(SIGTERM), "{ended:?}");
    }
}
