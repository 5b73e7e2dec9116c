//! The rights that the processes of braid keep: a process that was taken over, through a member, a client or a page,
//! can do no more, whether systemd or a person started it.
//!
//! | capability | volume | web | monitor | for |
//! |---|---|---|---|---|
//! | `SYS_ADMIN` | yes | yes | yes | mounts, loop and ublk devices; smartctl on NVMe |
//! | `DAC_OVERRIDE` | yes | yes | yes | members and files of other users, also of later orders |
//! | `SYS_RESOURCE` | yes | yes | | `PR_SET_IO_FLUSHER`, limits |
//! | `SYS_PTRACE` | yes | yes | | the names of processes that use a member or the device |
//! | `IPC_LOCK` | yes | yes | | memory of requests, also of later orders |
//! | `NET_ADMIN` | with NBD | yes | | send buffers of clients |
//! | `NET_BIND_SERVICE` | with NBD | yes | | ports below 1024 |
//! | `SYS_CHROOT` | with a root file system | | | following init into it |
//! | `SYS_RAWIO` | | | yes | smartctl on SCSI |
//! | `FOWNER`, `CHOWN`, `SETUID`, `SETGID` | | | yes | sendmail, programs of the administrator's |
//!
//! The web's are those of the volumes that it starts where there is no service manager. System calls that fail with
//! `EPERM`: [`NEVER`]; in a volume that serves also [`NOT_SERVING`].
//!
//! Invariants
//! * Capabilities are of threads: they are dropped while the process has one. The filter is for all threads.
//! * None of the three gains privileges by a program that it starts, but a monitor that is to start sendmail or a
//!   program of the administrator's, which may be set-user-ID.
//! * A filter refuses no call that the unit of the process allows and the process needs.
//!
//! Absent on purpose: requests of io_uring, which no filter sees (there are none that start programs or mount); a way
//! to switch it off.

use std::io;

use braid_sys::process::{Instruction, filter_calls};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The capabilities of every volume.
const VOLUME: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::SYS_RESOURCE)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::IPC_LOCK);

/// Those of a volume with NBD clients.
const NETWORK: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_BIND_SERVICE);

const MONITOR: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID);

/// System calls that no process of braid needs, nor a program that it starts: other processes' memory, the kernel's
/// code, keys, clocks, names, and ways to other namespaces.
pub const NEVER: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_pivot_root,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// System calls that a volume does not need any more once it serves: programs, mounts, and another root.
pub const NOT_SERVING: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_mount,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
];

/// Flags of `clone` that make namespaces. A filter cannot read those of `clone3`, which fails with `ENOSYS`: C libraries
/// then take `clone`.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// The interface whose calls the lists number (`linux/audit.h`): processors have others beside it, whose calls fail.
const INTERFACE: Option<u32> = match () {
    () if cfg!(target_arch = "x86_64") => Some(0xc000_003e),
    () if cfg!(all(target_arch = "aarch64", target_endian = "little")) => Some(0xc000_00b7),
    () if cfg!(target_arch = "riscv64") => Some(0xc000_00f3),
    () => None,
};

/// The number from which on calls are of x32, an interface within that of x86-64.
const X32: Option<u32> = if cfg!(target_arch = "x86_64") { Some(0x4000_0000) } else { None };

/// Why a process keeps more rights than it needs.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The kernel refused.
    #[error("{what}: {source}")]
    Refused {
        /// The action.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Reports a process that keeps rights which it does not need. It goes on: serving comes first.
pub fn tell(confined: Result<(), ConfineError>) {
    if let Err(error) = confined {
        eprintln!("braid: this process keeps rights that it does not need: {error}");
    }
}

fn refused(what: &'static str) -> impl Fn(io::Error) -> ConfineError {
    move |source| ConfineError::Refused { what, source }
}

/// Drops the capabilities that a volume will not need. To be called while the process has one thread.
///
/// # Errors
/// The kernel refused.
pub fn begin_volume(serves_network: bool, has_root: bool) -> Result<(), ConfineError> {
    let network = if serves_network { NETWORK } else { CapabilitySet::empty() };
    let root = if has_root { CapabilitySet::SYS_CHROOT } else { CapabilitySet::empty() };
    keep(VOLUME | network | root)?;
    gain_none()
}

/// Refuses system calls, in all threads, that a volume which serves does not need. One that holds the root file system
/// (`has_root`) still follows init into it.
///
/// # Errors
/// The kernel refused.
pub fn serve_volume(has_root: bool) -> Result<(), ConfineError> {
    let is_for_root = |call: &libc::c_long| has_root && *call == libc::SYS_chroot;
    let later = NOT_SERVING.iter().copied().filter(|call| !is_for_root(call));
    refuse(NEVER.iter().copied().chain(later))
}

/// Drops what `braid web` and the volumes that it starts do not need. To be called while the process has one thread.
///
/// # Errors
/// The kernel refused.
pub fn web() -> Result<(), ConfineError> {
    keep(VOLUME | NETWORK)?;
    gain_none()?;
    refuse(NEVER.iter().copied())
}

/// Drops what `braid monitor` and the programs that it starts do not need; `gains` if these may be set-user-ID. To be
/// called while the process has one thread. Without privileges, nothing is dropped where `gains`.
///
/// # Errors
/// The kernel refused.
pub fn monitor(gains: bool) -> Result<(), ConfineError> {
    keep(MONITOR)?;
    let has = rustix::thread::capabilities(None);
    let is_privileged = has.is_ok_and(|has| has.effective.contains(CapabilitySet::SYS_ADMIN));
    match gains {
        false => gain_none()?,
        true if is_privileged => {}
        // The kernel takes no filter of such a process, which has little to give up.
        true => return Ok(()),
    }
    refuse(NEVER.iter().copied())
}

/// Drops all capabilities but `kept`, also for programs that this process starts.
fn keep(kept: CapabilitySet) -> Result<(), ConfineError> {
    let failed = |error: rustix::io::Errno| refused("cannot drop capabilities")(error.into());
    let has = rustix::thread::capabilities(None).map_err(failed)?;
    // Without the right to do so, no program gets capabilities from there, either.
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for one in CapabilitySet::all().difference(kept).iter() {
            // A capability that this kernel does not know is not there.
            match rustix::thread::remove_capability_from_bounding_set(one) {
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
    // A unit has dropped them already, and may not let this process do so.
    if kept.contains(has.permitted | has.inheritable) {
        return Ok(());
    }
    let rest = |set: CapabilitySet| set.intersection(kept);
    let sets = CapabilitySets {
        effective: rest(has.effective),
        permitted: rest(has.permitted),
        inheritable: rest(has.inheritable),
    };
    rustix::thread::set_capabilities(None, sets).map_err(failed)
}

/// Has programs that this process starts gain no privileges.
fn gain_none() -> Result<(), ConfineError> {
    let failed = |error: rustix::io::Errno| refused("cannot set no_new_privs")(error.into());
    rustix::thread::set_no_new_privs(true).map_err(failed)
}

/// Has `calls` fail in all threads.
fn refuse(calls: impl Iterator<Item = libc::c_long>) -> Result<(), ConfineError> {
    let calls: Vec<_> = calls.collect();
    let none = || io::Error::new(io::ErrorKind::Unsupported, "none for this processor");
    let program = program(&calls).ok_or_else(none);
    program
        .and_then(|program| filter_calls(&program))
        .map_err(refused("cannot filter system calls"))
}

/// Returns the filter that has `calls` and new namespaces fail; `None` for a processor without lists. It reads a
/// `struct seccomp_data`: the call's number at 0, the interface at 4, the lower half of the first argument at 16.
///
/// ```text
///   other interface, x32, a call of the list ─────────────▶ EPERM
///   clone3 ───────────────────────────────────────────────▶ ENOSYS
///   clone ──▶ a flag of a namespace ──────────────────────▶ EPERM
///   others ───────────────────────────────────────────────▶ allowed
/// ```
fn program(calls: &[libc::c_long]) -> Option<Vec<Instruction>> {
    // Codes of `linux/bpf_common.h`: load a word; jump if equal, if not below, if a bit is there; return.
    let [load, equal, from, any_bit, give] = [0x20, 0x15, 0x35, 0x45, 0x06];
    let number = |call: libc::c_long| u32::try_from(call).ok();
    let namespaces = NAMESPACES.iter().fold(0, |all, flag| all | flag.cast_unsigned());
    let error = |errno: libc::c_int| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    let jump = |at: usize, to: usize| u8::try_from(to - at - 1).ok();
    let x32 = X32.map(|first| (from, first));
    let listed = calls.iter().map(|call| number(*call).map(|number| (equal, number)));
    let judged = x32.map(Some).into_iter().chain(listed).collect::<Option<Vec<_>>>()?;
    let first = 3;
    let end = first + judged.len();
    // Four instructions judge `clone3` and `clone`, before the answers.
    let [allow, deny, unknown] = [end + 4, end + 5, end + 6];
    let mut program = vec![(load, 0, 0, 4), (equal, 0, jump(1, deny)?, INTERFACE?)];
    program.push((load, 0, 0, 0));
    for (at, (test, value)) in (first..).zip(judged) {
        program.push((test, jump(at, deny)?, 0, value));
    }
    program.push((equal, jump(end, unknown)?, 0, number(libc::SYS_clone3)?));
    program.push((equal, 0, jump(end + 1, allow)?, number(libc::SYS_clone)?));
    program.push((load, 0, 0, 16));
    program.push((any_bit, jump(end + 3, deny)?, 0, namespaces));
    program.push((give, 0, 0, libc::SECCOMP_RET_ALLOW));
    program.push((give, 0, 0, error(libc::EPERM)));
    program.push((give, 0, 0, error(libc::ENOSYS)));
    Some(program)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    /// Set in the process that is confined: what a process gives up, it does not get back.
    const CONFINED: &str = "BRAID_TEST_CONFINED";

    #[test]
    fn a_volume_that_serves_has_threads_and_starts_no_program() {
        if std::env::var_os(CONFINED).is_none() {
            let own = "confine::tests::a_volume_that_serves_has_threads_and_starts_no_program";
            let mut confined = Command::new(std::env::current_exe().unwrap());
            confined.args(["--exact", own, "--nocapture"]).env(CONFINED, "1");
            let output = confined.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        let early = std::thread::spawn(std::thread::park);
        begin_volume(true, false).unwrap();
        let start = Instant::now();
        serve_volume(false).unwrap();
        println!("the filter took {} us", start.elapsed().as_micros());
        let denied = |result: io::Result<()>| {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied);
        };
        denied(Command::new("/bin/true").status().map(drop));
        let flags = rustix::mount::MountFlags::empty();
        denied(rustix::mount::mount("none", "/nowhere", "tmpfs", flags, None).map_err(Into::into));
        early.thread().unpark();
        early.join().unwrap();
        // Thread and file are there as before.
        std::thread::spawn(|| std::fs::read("/proc/self/status").unwrap()).join().unwrap();
    }

    /// Carries out a filter, as far as ours go.
    fn answer(program: &[Instruction], interface: u32, call: u32, argument: u32) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let (code, yes, no, operand) = program[at];
            at += 1;
            let jump = |is_so: bool| usize::from(if is_so { yes } else { no });
            match code {
                0x20 => value = [call, interface, 0, 0, argument][operand as usize / 4],
                0x15 => at += jump(value == operand),
                0x35 => at += jump(value >= operand),
                0x45 => at += jump(value & operand != 0),
                0x06 => return operand,
                other => panic!("{other:#x}"),
            }
        }
    }

    #[test]
    fn a_filter_refuses_what_it_lists_and_allows_the_rest() {
        let Some(own) = INTERFACE else { return };
        let listed: Vec<_> = NEVER.iter().chain(NOT_SERVING).copied().collect();
        let program = program(&listed).unwrap();
        assert!(program.len() < 80, "the kernel tries it for each of its calls: {}", program.len());
        let of = |call: libc::c_long, argument: libc::c_int| {
            answer(&program, own, call.try_into().unwrap(), argument.cast_unsigned())
        };
        let [denied, unknown] =
            [libc::EPERM, libc::ENOSYS].map(|one| 0x5_0000 | one.cast_unsigned());
        listed.iter().for_each(|call| assert_eq!(of(*call, 0), denied, "{call}"));
        for call in 0..600 {
            let expected = match call {
                call if listed.contains(&call) => denied,
                libc::SYS_clone3 => unknown,
                _ => libc::SECCOMP_RET_ALLOW,
            };
            assert_eq!(of(call, libc::CLONE_VM | libc::SIGCHLD), expected, "{call}");
            assert_eq!(answer(&program, own ^ 1, call as u32, 0), denied);
            if let Some(x32) = X32 {
                assert_eq!(answer(&program, own, x32 | call as u32, 0), denied);
            }
        }
        let flags = NAMESPACES.map(|flag| of(libc::SYS_clone, libc::CLONE_VM | flag));
        assert_eq!(flags, [denied; 7]);
        assert_eq!(of(libc::SYS_read, NAMESPACES[0]), libc::SECCOMP_RET_ALLOW);
    }
}
