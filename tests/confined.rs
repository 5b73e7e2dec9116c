//! The rights that the processes of braid keep, as the kernel tells them of every thread; and orders to volumes that have
//! given up theirs.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use common::{MIB, Scratch, Tool, send_signal, skip_unless_root, start, wait_until};
use rustix::process::Signal;

/// Capabilities by their numbers in `linux/capability.h`.
const CHOWN: u64 = 1 << 0;
const DAC_OVERRIDE: u64 = 1 << 1;
const FOWNER: u64 = 1 << 3;
const SETGID: u64 = 1 << 6;
const SETUID: u64 = 1 << 7;
const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_ADMIN: u64 = 1 << 12;
const IPC_LOCK: u64 = 1 << 14;
const SYS_RAWIO: u64 = 1 << 17;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const SYS_RESOURCE: u64 = 1 << 24;

const VOLUME: u64 = SYS_ADMIN | DAC_OVERRIDE | SYS_RESOURCE | SYS_PTRACE | IPC_LOCK;
const NETWORK: u64 = NET_ADMIN | NET_BIND_SERVICE;
const MONITOR: u64 = SYS_ADMIN | SYS_RAWIO | DAC_OVERRIDE | FOWNER | CHOWN | SETUID | SETGID;

/// Checks each thread of a process: capabilities, filter, and whether started programs may gain privileges.
#[track_caller]
fn assert_confined(pid: u32, kept: u64, gains: bool) {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it is there");
    for thread in threads.flatten() {
        let status = std::fs::read_to_string(thread.path().join("status"));
        // A thread that has ended meanwhile.
        let Ok(status) = status else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{name} in {status}")).trim_start_matches(':').trim()
        };
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            let has = u64::from_str_radix(field(set), 16).expect("a number");
            assert_eq!(has & !kept, 0, "{set} of {status}");
        }
        assert_eq!(field("Seccomp"), "2", "{status}");
        assert_eq!(field("NoNewPrivs"), if gains { "0" } else { "1" }, "{status}");
    }
}

/// A command that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        send_signal(self.0.id(), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Starts a command that goes on, and waits for its first line.
fn running(tool: Tool) -> Running {
    let mut command = tool.into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = start(&mut command).expect("braid can be started");
    let stdout = child.stdout.take().expect("it is piped");
    let child = Running(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert!(!line.is_empty(), "it has ended");
    child
}

/// Makes a file that another user owns, and only that user may open.
fn of_another(scratch: &Scratch, name: &str) {
    let path = scratch.sparse(name, 16 * MIB);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .and_then(|()| std::os::unix::fs::chown(&path, Some(47_120), Some(47_120)))
        .expect("root may do so");
}

#[test]
fn a_volume_over_nbd_keeps_what_later_orders_need() {
    skip_unless_root!();
    let scratch = Scratch::new();
    ["a.img", "b.img", "c.img"].iter().for_each(|name| of_another(&scratch, name));
    scratch.run(&["create", "v", "--level", "raid1", "a.img", "b.img"]).ok();
    let volume = scratch.up("v", &["--attach", "none"]);
    assert_confined(volume.pid, VOLUME | NETWORK, false);
    let run = |args: &[&str]| scratch.run(args).ok();
    run(&["member", "fail", "v", "b.img"]);
    run(&["member", "remove", "v", "b.img"]);
    run(&["member", "add", "v", "c.img"]);
    wait_until("the copy to the new member", || volume.status()["state"] == "online");
    run(&["scrub", "v", "--wait"]);
    of_another(&scratch, "cache.log");
    let log = scratch.join("cache.log").display().to_string();
    run(&["cache", "attach", "v", &format!("size=4M,mode=write-back,log={log}")]);
    volume.client().write(0, &[7; 4096], true).expect("a write");
    run(&["cache", "detach", "v"]);
    run(&["lock", "v"]);
    run(&["save", "v", "v.image"]);
    run(&["unlock", "v"]);
    assert_confined(volume.pid, VOLUME | NETWORK, false);
    volume.down();
}

#[test]
fn an_attached_volume_without_clients_has_no_right_over_the_network() {
    skip_unless_root!();
    let scratch = Scratch::new();
    of_another(&scratch, "a.img");
    let volume = scratch.up("raid0(a.img, ram(16M))", &["--name", "v", "--attach", "fuse"]);
    assert_confined(volume.pid, VOLUME, false);
    std::fs::read(volume.device()).expect("it is read");
    volume.down();
    let volume = scratch.up("ram(8M)", &["--name", "r", "--attach", "fuse"]);
    scratch.run(&["resize", "r", "16M"]).ok();
    volume.down();
}

#[test]
fn the_monitor_and_the_page_keep_what_their_programs_need() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let web = running(scratch.braid().args(["web", "--listen", "127.0.0.1:0"]));
    assert_confined(web.0.id(), VOLUME | NETWORK, false);
    let monitor = |text: &str, gains: bool| {
        let file = scratch.join("monitor.toml");
        std::fs::write(&file, text).expect("a file");
        let tool = scratch.braid().args(["monitor", "--config"]).arg(&file);
        let mut monitor = tool.into_command();
        let child = Running(start(monitor.stdin(Stdio::null())).expect("it starts"));
        let status = format!("/proc/{}/status", child.0.id());
        wait_until("the monitor's filter", || {
            std::fs::read_to_string(&status).is_ok_and(|text| text.contains("Seccomp:\t2"))
        });
        assert_confined(child.0.id(), MONITOR, gains);
    };
    monitor("", false);
    monitor("[[program]]\npath = \"/bin/true\"\n", true);
}
