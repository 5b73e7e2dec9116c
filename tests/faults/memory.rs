//! Memory that is short, with a file system on the attached volume: volume and writers in one
//! memory cgroup.
//!
//! ```text
//!   writer   dirty pages ──▶ limit reached ──▶ waits until some are written out
//!                                                     │ by
//!   volume   must not wait for the same ◀─────────────┘
//! ```
//!
//! A few rounds; `BRAID_MEMORY_ROUNDS=200` (`make soak-memory`) for as many as one wants.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{LoopDevice, MIB, Mounted, Scratch, Tool, skip_unless_root, skip_without};
use crate::is_redundant;

/// The limit of the cgroup, beyond the memory that the volume has when it is moved into it.
const LIMIT_BYTES: u64 = 160 * MIB;
/// It is generous: it ends operations that hang, and judges nothing.
const PATIENCE: Duration = Duration::from_secs(300);

/// A memory cgroup of this test's own, of whichever version.
struct Cgroup(PathBuf);

impl Cgroup {
    /// None, saying why, where there are none.
    fn new(name: &str, limit: u64) -> Option<Cgroup> {
        let places = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
            ("/sys/fs/cgroup/unified", "memory.max"),
        ];
        for (root, file) in places {
            let folder = Path::new(root).join(format!("braid-test-{}-{name}", std::process::id()));
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let cgroup = Cgroup(folder);
            if std::fs::write(cgroup.0.join(file), limit.to_string()).is_ok() {
                return Some(cgroup);
            }
        }
        println!("skipped: no memory cgroup can be made here");
        None
    }

    fn take_in(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).expect("a process is moved");
    }

    /// The same tool, in it.
    fn within(&self, tool: Tool) -> Tool {
        let command = tool.into_command();
        let enter =
            format!("echo $$ > {} && exec \"$0\" \"$@\"", self.0.join("cgroup.procs").display());
        let mut within = Tool::new("sh").arg("-c").arg(enter).arg(command.get_program());
        for (key, value) in command.get_envs() {
            let key = key.to_str().expect("variables have plain names");
            within = within.env(key, value.unwrap_or_default());
        }
        if let Some(folder) = command.get_current_dir() {
            within = within.folder(folder);
        }
        within.args(command.get_args())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // It goes when its last process has, which may take a moment.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Block devices are members here: files are refused, below.
fn writers_end(level: &str, members: usize) {
    skip_unless_root!();
    skip_without!("mkfs.ext4");
    let rounds = std::env::var("BRAID_MEMORY_ROUNDS").map_or(2, |text| text.parse().unwrap());
    let scratch = Scratch::new();
    let device = |number| LoopDevice::direct(&scratch.sparse(&format!("{number}.img"), 512 * MIB));
    let Some(devices) = (0..members).map(device).collect::<Option<Vec<LoopDevice>>>() else {
        return;
    };
    let members = devices.iter().map(LoopDevice::text);
    let mut create = scratch.braid().args(["create", "v", "--level", level]).args(members);
    if is_redundant(level) {
        create = create.arg("--assume-clean");
    }
    create.run().ok();
    let volume = scratch.up("v", &[]);
    if volume.device.is_none() {
        println!("skipped: volumes cannot be attached here");
        return;
    }
    let Some(cgroup) = Cgroup::new(level, LIMIT_BYTES) else { return };
    cgroup.take_in(volume.pid);
    Tool::new("mkfs.ext4").args(["-q", "-E", "nodiscard"]).arg(volume.device()).run().ok();
    let mounted = Mounted::device(volume.device(), &scratch.join("m"));
    let write = |name: &str, args: &[&str]| {
        let file = format!("of={}", scratch.join(name).display());
        let dd = Tool::new("dd").arg("if=/dev/zero").arg(file).args(args);
        cgroup.within(dd).limit(PATIENCE).run().ok();
    };
    for round in 0..rounds {
        std::thread::scope(|scope| {
            scope.spawn(|| write("m/long", &["bs=1M", "count=300", "conv=fsync"]));
            scope.spawn(|| write("m/short", &["bs=4k", "count=10000"]));
        });
        let faults = volume.status()["page_faults"].as_u64().expect("a count");
        println!("{level}, round {round}: {faults} page faults while serving");
        // One is enough for a deadlock: room in a queue that was allocated and not written yet was.
        assert_eq!(faults, 0, "page faults while serving");
    }
    mounted.unmount();
    volume.down();
}

/// A file system allocates for a member at the expense of the cgroup: the kernel ended volumes for
/// that.
#[test]
fn members_that_are_files_are_attached_under_a_memory_limit_only_if_told_to() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let Some(cgroup) = Cgroup::new("files", 4 * LIMIT_BYTES) else { return };
    ["a.img", "b.img"].iter().for_each(|name| drop(scratch.sparse(name, 32 * MIB)));
    scratch.run(&["create", "v", "--level", "raid1", "a.img", "b.img", "--assume-clean"]).ok();
    let up =
        |options: &[&str]| cgroup.within(scratch.braid().args(["up", "v"]).args(options)).run();
    let outside = scratch.up("v", &[]);
    let is_attached = outside.device.is_some();
    outside.down();
    if !is_attached {
        println!("skipped: volumes cannot be attached here");
        return;
    }
    let said = ["640 MiB", "a.img and another member lie in a file system", "--attach fuse"];
    up(&[]).fails(3, &said);
    // A start without a member is recorded on the others, but not one that is refused.
    std::fs::rename(scratch.join("b.img"), scratch.join("away.img")).unwrap();
    let before = scratch.read("a.img");
    up(&["--degraded"]).fails(3, &["a.img lies in a file system"]);
    assert!(scratch.read("a.img") == before, "a refused start wrote");
    std::fs::rename(scratch.join("away.img"), scratch.join("b.img")).unwrap();
    let told = up(&["--attach", "fuse"]).ok();
    assert!(told.err.contains("640 MiB"), "{told}");
    scratch.run(&["down", "v"]).ok();
    let served = up(&["--attach", "none"]).ok();
    assert!(!served.err.contains("640 MiB"), "{served}");
    scratch.run(&["down", "v"]).ok();
}

/// The heap of requests is there before the device is: small chunks and many members take the most of it.
#[test]
fn requests_of_every_size_and_depth_take_no_page_fault() {
    skip_unless_root!();
    skip_without!("fio");
    let scratch = Scratch::new();
    let names: Vec<String> = (0..12).map(|number| format!("{number}.img")).collect();
    names.iter().for_each(|name| drop(scratch.sparse(name, 32 * MIB)));
    let levels = [("raid6", 12, "4K"), ("raid5", 4, "512K"), ("raid10", 4, "4K")];
    for (level, members, chunk) in levels {
        let options = ["create", "v", "--level", level, "--chunk", chunk, "--assume-clean"];
        let given = names[..members].iter().map(String::as_str);
        let forced = names[..members].iter().flat_map(|name| ["--force", name.as_str()]);
        let create = scratch.braid().args(options).args(given).args(forced);
        create.run().ok();
        let volume = scratch.up("v", &[]);
        if volume.device.is_none() {
            println!("skipped: volumes cannot be attached here");
            return;
        }
        for (kind, block, depth) in
            [("randwrite", "4k", "512"), ("randrw", "64k", "128"), ("randwrite", "1m", "64")]
        {
            let fio = Tool::new("fio").args(["--name=x", "--direct=1", "--ioengine=libaio"]);
            let fio = fio.args(["--time_based", "--runtime=1", "--size=24M"]);
            let fio = fio.arg(format!("--filename={}", volume.device().display()));
            let fio = fio.arg(format!("--rw={kind}")).arg(format!("--bs={block}"));
            fio.arg(format!("--iodepth={depth}")).limit(PATIENCE).run().ok();
        }
        let faults = volume.status()["page_faults"].as_u64().expect("a count");
        assert_eq!(faults, 0, "page faults of {level} while serving");
        volume.down();
        scratch.run(&["forget", "v"]).ok();
    }
}

#[test]
fn a_volume_has_the_memory_that_it_is_given_or_does_not_come_up() {
    let scratch = Scratch::new();
    let up = |name: &str, memory: &str| {
        let options = ["up", "ram(1M)", "--attach", "none", "--name", name, "--memory", memory];
        scratch.run(&options)
    };
    up("v", "1M").fails(3, &["needs up to", "of memory, and may have 1 MiB", "--memory "]);
    up("v", "256M").ok();
    let status = scratch.run(&["status", "v", "--json"]).ok();
    let status: serde_json::Value = serde_json::from_str(&status.out).expect("JSON");
    let bytes = |key: &str| status["volumes"][0][key].as_u64().expect("bytes");
    assert!(bytes("memory_most_bytes") <= 256 * MIB);
    assert!((1..=bytes("memory_most_bytes")).contains(&bytes("memory_kept_bytes")));
    scratch.run(&["down", "v"]).ok();
}

/// ```text
///   ram(256M)   mkfs ─▶ some MiB   a file of 100 MiB ─▶ more   deleted, fstrim ─▶ some MiB again
/// ```
#[test]
fn an_attached_ram_disk_gives_back_what_is_discarded() {
    skip_unless_root!();
    skip_without!("mkfs.ext4");
    skip_without!("fstrim");
    let scratch = Scratch::new();
    let volume = scratch.up("ram(256M)", &["--name", "v"]);
    if volume.device.is_none() {
        println!("skipped: volumes cannot be attached here");
        return;
    }
    let resident = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", volume.pid)).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        line.split_whitespace().nth(1).expect("KiB").parse::<u64>().expect("KiB") << 10
    };
    let before = resident();
    Tool::new("mkfs.ext4").arg("-q").arg(volume.device()).run().ok();
    let empty = resident() - before;
    assert!(empty < 80 * MIB, "mkfs, which discards all of it, took {} MiB", empty / MIB);
    let mounted = Mounted::device(volume.device(), &scratch.join("m"));
    let file = scratch.join("m/f");
    Tool::new("dd")
        .args(["if=/dev/zero", "bs=1M", "count=100", "conv=fsync"])
        .arg(format!("of={}", file.display()))
        .run()
        .ok();
    let full = resident() - before;
    assert!(full > 100 * MIB, "{} MiB", full / MIB);
    std::fs::remove_file(file).unwrap();
    Tool::new("sync").arg("-f").arg(mounted.point()).run().ok();
    Tool::new("fstrim").arg(mounted.point()).run().ok();
    let trimmed = resident().saturating_sub(before);
    assert!(trimmed < full - 80 * MIB, "{} of {} MiB after fstrim", trimmed / MIB, full / MIB);
    mounted.unmount();
    volume.down();
}

#[test]
fn a_limit_on_memory_is_said() {
    skip_unless_root!();
    let Some(cgroup) = Cgroup::new("said", 100 * MIB) else { return };
    let doctor = Tool::new(env!("CARGO_BIN_EXE_braid")).arg("doctor");
    let told = cgroup.within(doctor).run().ok();
    let line = told.out.lines().find(|line| line.contains("100 MiB"));
    assert!(line.is_some_and(|line| line.contains("limited")), "{told}");
}

#[test]
fn linear_under_a_memory_limit() {
    writers_end("linear", 2);
}

#[test]
fn raid0_under_a_memory_limit() {
    writers_end("raid0", 2);
}

#[test]
fn raid1_under_a_memory_limit() {
    writers_end("raid1", 2);
}

#[test]
fn raid10_under_a_memory_limit() {
    writers_end("raid10", 4);
}

#[test]
fn raid4_under_a_memory_limit() {
    writers_end("raid4", 3);
}

#[test]
fn raid5_under_a_memory_limit() {
    writers_end("raid5", 3);
}

#[test]
fn raid6_under_a_memory_limit() {
    writers_end("raid6", 4);
}
