//! Settings of a process that the kernel waits for when it writes back memory.
//!
//! Such a process must not wait for the memory that only its own progress can free: it is told
//! apart (`PR_SET_IO_FLUSHER`), and takes no page fault (`braid-mem` sees to that). Source: prctl(2),
//! kernel commit 8d19f1c8e193.

use std::io;

use crate::check;

/// `linux/prctl.h`.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// Tells the kernel that this process is part of a storage path: its allocations never start
/// write-back that could wait for itself, and it is throttled less.
///
/// # Errors
/// `EPERM` without `CAP_SYS_RESOURCE`; `EINVAL` before Linux 5.6.
pub fn set_io_flusher() -> io::Result<()> {
    // SAFETY: a call without pointers.
    check(unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) }).map(drop)
}

/// The limit on locked memory in bytes; `None` if there is none.
///
/// # Errors
/// None is documented for valid arguments.
pub fn locked_memory_limit() -> io::Result<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes an rlimit at the address of a live one.
    check(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) })?;
    Ok((limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur))
}

/// Lifts the limit on open files to its hard maximum, and answers it.
///
/// # Errors
/// None is documented for valid arguments.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes an rlimit at the address of a live one.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads an rlimit at the address of a live one.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) })?;
    Ok(limit.rlim_cur)
}

/// Has writes beyond the limit on file sizes fail with `EFBIG` instead of ending this process
/// (`SIGXFSZ`).
///
/// # Errors
/// None is documented for valid arguments.
pub fn ignore_file_size_signal() -> io::Result<()> {
    // SAFETY: no handler is installed, so nothing runs when the signal comes.
    match unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Starts a new session, so that a terminal that closes does not end this process.
///
/// # Errors
/// `EPERM` if this process leads a process group already.
pub fn new_session() -> io::Result<()> {
    // SAFETY: a call without pointers.
    check(unsafe { libc::setsid() }).map(drop)
}

/// An instruction of the kernel's packet filters (`struct sock_filter`): code, jumps if true and if false, operand.
pub type Instruction = (u16, u8, u8, u32);

/// Has a filter judge the system calls of all threads of this process, and of the programs that it starts. Mitigations
/// of the processor's faults stay as they are (`SECCOMP_FILTER_FLAG_SPEC_ALLOW`).
///
/// # Errors
/// `EACCES` without `CAP_SYS_ADMIN` where a started program may gain privileges; `EINVAL` for a program that is none, or a
/// kernel without filters; `EBUSY` where a thread has a filter of its own.
pub fn filter_calls(program: &[Instruction]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> =
        program.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k }).collect();
    let invalid = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let len = u16::try_from(filter.len()).map_err(invalid)?;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    let operation = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel copies `len` instructions from a live vector that has as many, and checks them.
    let thread = unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const program) };
    match thread {
        0 => Ok(()),
        1.. => Err(io::Error::from_raw_os_error(libc::EBUSY)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Processor time that this process has used, user and system, in nanoseconds.
///
/// # Errors
/// None is documented for valid arguments.
pub fn cpu_time_ns() -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a timespec at the address of a live one.
    check(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) })?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The resources of the processes that were children of this one, have ended, and were waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Children {
    /// Processor time of all, user and system, in nanoseconds.
    pub cpu_ns: u64,
    /// Memory of the largest at its largest, in bytes.
    pub peak_bytes: u64,
}

/// The resources of this process's children and their descendants.
///
/// # Errors
/// None is documented for valid arguments.
pub fn children() -> io::Result<Children> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes a rusage at the address of a live one.
    check(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) })?;
    // SAFETY: it has integers only, and all zeroes is one.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Ok(Children {
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        peak_bytes: usage.ru_maxrss as u64 * 1024,
    })
}
