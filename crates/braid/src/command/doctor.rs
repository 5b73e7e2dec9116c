//! `braid doctor`: what this machine offers, and what to do about what it lacks.
//!
//! Reading only: nothing is loaded, mounted or set.

mod others;

use std::fs;
use std::path::Path;

use braid_export_fuse::{QUEUES_PARAMETER, queues_are_offered};
use braid_stack::ByteSize;
use serde::Serialize;

use super::owners::{self, Owned};
use crate::cli;
use braid_service::cgroup;
use braid_service::control::{OUTPUT_VERSION, TlsStatus};
use braid_service::failure::Failure;
use braid_service::places::Places;
use braid_service::record::Record;

/// Locked memory that a volume wants: buffers of requests, the program, a reserve of heap.
const WANTED_LOCK: u64 = 256 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// There, and used.
    Ok,
    /// Works, but less well.
    Limited,
    /// Not there; something else is used.
    Missing,
    /// Two would take the same.
    Conflict,
}

#[derive(Serialize)]
struct Finding {
    what: &'static str,
    verdict: Verdict,
    /// The finding.
    found: String,
    /// The remedy.
    advice: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, found: impl Into<String>) -> Finding {
        Finding { what, verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    fn lacking(
        what: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Finding {
        Finding { what, verdict, found: found.into(), advice: Some(advice.into()) }
    }
}

pub(super) fn doctor(options: &cli::Doctor) -> Result<(), Failure> {
    let mut findings = vec![
        kernel(),
        user(),
        io_uring(),
        fuse(),
        loop_device(),
        ublk(),
        nbd(),
        memory_lock(),
        memory_limit(),
        io_flusher(),
        huge_pages(),
        smartctl(),
        tools(),
    ];
    findings.extend(certificates());
    findings.extend(others::findings());
    findings.extend(arrays());
    if options.json {
        println!(
            "{}",
            serde_json::json!({ "output_version": OUTPUT_VERSION, "findings": findings })
        );
        return Ok(());
    }
    for finding in &findings {
        let mark = match finding.verdict {
            Verdict::Ok => "ok",
            Verdict::Limited => "limited",
            Verdict::Missing => "missing",
            Verdict::Conflict => "conflict",
        };
        println!("{:>14}  {mark:<8} {}", finding.what, finding.found);
        if let Some(advice) = &finding.advice {
            println!("{:>14}  {:<8} -> {advice}", "", "");
        }
    }
    Ok(())
}

/// Returns the state of the certificates that the records of volumes name.
fn certificates() -> Vec<Finding> {
    let places = Places::from_environment();
    let finding = |name: String| {
        // A record that cannot be read is told of with the arrays.
        let record = Record::read(&places.config_file(&name)).ok()?;
        let lacking = |found: String, advice: Option<String>| Finding {
            what: "TLS",
            verdict: Verdict::Limited,
            found: format!("{name}: {found}"),
            advice,
        };
        match record.tls.examine() {
            Ok(None) => None,
            Ok(Some(TlsStatus { warning: Some(warning), .. })) => Some(lacking(warning, None)),
            Ok(Some(tls)) => Some(Finding::ok("TLS", format!("{name}: {}", tls.in_words()))),
            Err(refusal) => {
                let failure = refusal.failure();
                Some(lacking(failure.why, failure.next))
            }
        }
    };
    match places.configured_names() {
        Ok(names) => names.into_iter().filter_map(finding).collect(),
        Err(failure) => vec![Finding {
            what: "TLS",
            verdict: Verdict::Limited,
            found: failure.why,
            advice: failure.next,
        }],
    }
}

/// Returns the owners of this machine's md arrays.
fn arrays() -> Vec<Finding> {
    let finding = |owned: Owned| Finding {
        what: "md array",
        verdict: if owned.is_conflict { Verdict::Conflict } else { Verdict::Ok },
        found: owned.found,
        advice: owned.advice,
    };
    match owners::owners(&Places::from_environment()) {
        Ok(all) => all.into_iter().map(finding).collect(),
        Err(failure) => vec![Finding::lacking(
            "md arrays",
            Verdict::Limited,
            format!("cannot be looked for: {}", failure.text()),
            "as root",
        )],
    }
}

fn kernel() -> Finding {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    Finding::ok("kernel", format!("Linux {release}"))
}

fn user() -> Finding {
    if rustix::process::geteuid().is_root() {
        return Finding::ok("user", "root: volumes can become block devices");
    }
    Finding::lacking(
        "user",
        Verdict::Limited,
        "not root: volumes are served over NBD on a Unix socket",
        "run as root to attach a volume as a block device",
    )
}

fn io_uring() -> Finding {
    let config = braid_uring::Config { mode: braid_uring::Mode::Uring, ..Default::default() };
    let Err(error) = braid_uring::Executor::new(config) else {
        return Finding::ok("io_uring", "allowed, and used");
    };
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let advice = match disabled.trim() {
        "0" | "" => {
            "a seccomp filter (of a container?) or an old kernel forbids it: allow \
                     io_uring_setup, io_uring_enter and io_uring_register"
        }
        _ => "sysctl kernel.io_uring_disabled=0",
    };
    let found = format!("not to be had ({error}): threads do its work, with more processor time");
    Finding::lacking("io_uring", Verdict::Limited, found, advice)
}

fn fuse() -> Finding {
    if fs::File::options().read(true).write(true).open("/dev/fuse").is_ok() {
        let found = "/dev/fuse can be opened. The kernel passes O_DSYNC of the file behind a volume's device on, and \
                     not RWF_DSYNC of one write: on the device both count";
        return match queues_are_offered() {
            Some(true) => Finding::ok("FUSE", format!("{found}. Requests come through io_uring")),
            Some(false) => {
                let more =
                    format!("FUSE over io_uring is turned off (`echo Y > {QUEUES_PARAMETER}`)");
                Finding::ok("FUSE", format!("{found}. {more}"))
            }
            None => Finding::ok("FUSE", found),
        };
    }
    Finding::lacking(
        "FUSE",
        Verdict::Missing,
        "/dev/fuse is missing or may not be opened: no block device by way of it",
        "modprobe fuse; in a container, pass the device /dev/fuse in",
    )
}

fn loop_device() -> Finding {
    if fs::File::options().read(true).write(true).open("/dev/loop-control").is_ok() {
        return Finding::ok("loop", "/dev/loop-control can be opened");
    }
    Finding::lacking(
        "loop",
        Verdict::Missing,
        "/dev/loop-control is missing or may not be opened",
        "modprobe loop, as root; in a container, pass /dev/loop-control and /dev/loop* in",
    )
}

fn ublk() -> Finding {
    match braid_service::volume::ublk_ability() {
        Ok(()) => Finding::ok("ublk", "used to attach volumes (`--attach auto`)"),
        Err(why) => Finding::lacking(
            "ublk",
            Verdict::Missing,
            format!("{why}: FUSE and loop are used instead"),
            "nothing needed; modprobe ublk_drv where the kernel has it (6.5 or later)",
        ),
    }
}

fn nbd() -> Finding {
    if Path::new("/dev/nbd0").exists() {
        return Finding::ok(
            "nbd",
            "/dev/nbd0 is there: `--attach nbd` and `nbd-client` can be used",
        );
    }
    Finding::lacking(
        "nbd",
        Verdict::Missing,
        "no /dev/nbd0: neither `--attach nbd` nor `nbd-client` works here (serving NBD needs nothing)",
        "nothing needed; modprobe nbd where the kernel has it",
    )
}

fn memory_lock() -> Finding {
    match braid_sys::process::locked_memory_limit() {
        Ok(None) => Finding::ok("locked memory", "without limit"),
        Ok(Some(limit)) if limit >= WANTED_LOCK => {
            Finding::ok("locked memory", format!("up to {:#}", ByteSize(limit)))
        }
        // Root locks whatever the limit says (CAP_IPC_LOCK).
        Ok(Some(_)) if rustix::process::geteuid().is_root() => {
            Finding::ok("locked memory", "as much as needed (root)")
        }
        Ok(Some(limit)) => Finding::lacking(
            "locked memory",
            Verdict::Limited,
            format!(
                "up to {:#}: buffers may be paged out, and volumes are attached only if told to \
                 (--attach fuse)",
                ByteSize(limit)
            ),
            "LimitMEMLOCK=infinity in the service, or `ulimit -l unlimited`",
        ),
        Err(error) => Finding::lacking(
            "locked memory",
            Verdict::Limited,
            format!("the limit cannot be read: {error}"),
            "`ulimit -l` shows it",
        ),
    }
}

/// A file system allocates for a process at the expense of its cgroup, and waits for room there.
fn memory_limit() -> Finding {
    match cgroup::memory_limit() {
        None => Finding::ok("memory", "no limit is set for this process and others together"),
        Some(limit) => Finding::lacking(
            "memory",
            Verdict::Limited,
            format!(
                "{:#} for this process and others in its cgroup: writers to an attached volume whose \
                 members are files can cause the kernel to kill it for lack of memory",
                ByteSize(limit)
            ),
            "start volumes outside of that cgroup (systemctl start braid@NAME), or give them block \
             devices as members (losetup --direct-io=on makes one of a file)",
        ),
    }
}

/// `PR_SET_IO_FLUSHER` needs `CAP_SYS_RESOURCE`, which a container's root often lacks.
fn io_flusher() -> Finding {
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    if effective & CAP_SYS_RESOURCE != 0 {
        return Finding::ok(
            "I/O flusher",
            "the kernel can be told which processes serve its block devices",
        );
    }
    Finding::lacking(
        "I/O flusher",
        Verdict::Limited,
        "without CAP_SYS_RESOURCE, an attached volume makes up for it: its memory is there before it \
         serves, and threads of its own wait for members",
        "nothing needed, but for volumes with RAM in them, which take memory as they are written; \
         that capability makes those safe, too",
    )
}

fn huge_pages() -> Finding {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let setting = fs::read_to_string(path).unwrap_or_default();
    if setting.contains("[never]") || setting.is_empty() {
        return Finding::lacking(
            "huge pages",
            Verdict::Limited,
            "off: RAM disks use small pages, and more processor time",
            format!("echo madvise > {path}"),
        );
    }
    Finding::ok("huge pages", "used for RAM disks")
}

fn smartctl() -> Finding {
    match braid_monitor::find_smartctl() {
        Some(path) => Finding::ok("SMART", format!("{} asks disks how they are", path.display())),
        None => Finding::lacking(
            "SMART",
            Verdict::Missing,
            "no smartctl: neither `braid status` nor `braid monitor` says when a disk counts errors",
            "apt-get install smartmontools",
        ),
    }
}

fn tools() -> Finding {
    let missing: Vec<&str> =
        [("fio", "fio"), ("nbdinfo", "libnbd-bin"), ("mkfs.ext4", "e2fsprogs")]
            .into_iter()
            .filter(|(tool, _)| !is_installed(tool))
            .map(|(_, package)| package)
            .collect();
    if missing.is_empty() {
        return Finding::ok("tools", "the laboratory's are installed");
    }
    let packages = missing.join(" ");
    Finding::lacking(
        "tools",
        Verdict::Limited,
        format!("the laboratory lacks: {packages}"),
        format!("apt-get install {packages}"),
    )
}

fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(tool).is_file())
}
