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

use std::collections::BTreeMap;
use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

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

/// Numbers of system calls of the x32 interface, which kernels may have beside the usual ones: this bit, with the usual
/// number or with one of these.
#[cfg(target_arch = "x86_64")]
const X32: (libc::c_long, &[(libc::c_long, libc::c_long)]) = (
    0x4000_0000,
    &[
        (libc::SYS_execve, 520),
        (libc::SYS_ptrace, 521),
        (libc::SYS_kexec_load, 528),
        (libc::SYS_process_vm_readv, 539),
        (libc::SYS_process_vm_writev, 540),
        (libc::SYS_execveat, 545),
    ],
);

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
    /// There are no filters for this processor.
    #[error("no filter of system calls: {0}")]
    Filter(#[from] seccompiler::BackendError),
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
/// called while the process has one thread.
///
/// # Errors
/// The kernel refused; for a user that is not root also where `gains`.
pub fn monitor(gains: bool) -> Result<(), ConfineError> {
    keep(MONITOR)?;
    if !gains {
        gain_none()?;
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
    let failed = refused("cannot filter system calls");
    let install = |program: &BpfProgram| {
        let instructions: Vec<_> =
            program.iter().map(|one| (one.code, one.jt, one.jf, one.k)).collect();
        braid_sys::process::filter_calls(&instructions).map_err(&failed)
    };
    install(&refusal(calls)?)?;
    let clone3 = [(i64::from(libc::SYS_clone3), Vec::new())].into();
    install(&compile(clone3, libc::ENOSYS)?)
}

/// The filter that has `calls` fail with `EPERM`, and new namespaces.
fn refusal(calls: impl Iterator<Item = libc::c_long>) -> Result<BpfProgram, ConfineError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in calls {
        rules.insert(call, Vec::new());
        #[cfg(target_arch = "x86_64")]
        {
            let (bit, others) = X32;
            let other = others.iter().find(|(usual, _)| *usual == call);
            rules.insert(bit | other.map_or(call, |(_, other)| *other), Vec::new());
        }
    }
    let flag = |flag: libc::c_int| {
        let flag = u64::from(flag.cast_unsigned());
        let is_set = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, is_set, flag)?;
        SeccompRule::new(vec![condition])
    };
    let flags = NAMESPACES.into_iter().map(flag).collect::<Result<Vec<_>, _>>()?;
    #[cfg(target_arch = "x86_64")]
    rules.insert(X32.0 | libc::SYS_clone, flags.clone());
    rules.insert(libc::SYS_clone, flags);
    compile(rules, libc::EPERM)
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, ConfineError> {
    let processor = std::env::consts::ARCH.try_into()?;
    let fails = SeccompAction::Errno(error.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, fails, processor)?;
    Ok(filter.try_into()?)
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
        println!("the filters took {} us", start.elapsed().as_micros());
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

    #[test]
    fn calls_are_refused_by_all_their_numbers() {
        let program = refusal([libc::SYS_execve].into_iter()).unwrap();
        let is_named = |number: libc::c_long| program.iter().any(|one| i64::from(one.k) == number);
        assert!(is_named(libc::SYS_execve) && is_named(libc::SYS_clone));
        #[cfg(target_arch = "x86_64")]
        assert!(is_named(0x4000_0000 | 520) && is_named(0x4000_0000 | libc::SYS_clone));
    }
}
