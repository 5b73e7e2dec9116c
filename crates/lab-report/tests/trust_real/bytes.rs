//! Caches that answer, and neighbours that move bytes: what the devices' counters say.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use braid_lab::campaign::{FileSystem, Setup, Source};
use braid_lab::evidence::{Evidence, Watch, take};
use braid_lab::metric::{Measured, Metric};
use braid_lab_report::trust::Standing;

use crate::machine::{
    Loop, MIB, Mounted, Server, Stranger, alone, disk_of, has, keep_cached, make_file, run,
    wait_for, watch, with_cache_left_alone,
};
use crate::runs::{Run, dd, fio, fio_for_a_second, found, judged, of, push, workload};

#[test]
fn a_cached_file_behind_a_loop_device() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 32);
    let Some(device) = Loop::attach(&file, true).filter(|_| has("fio", "fio")) else { return };
    let watch = watch(&device, &file);
    let buffered = workload("fio", false, Setup::default());
    let cached = || {
        let _cache = keep_cached(&device.0);
        fio(&watch, &device.0, &["--bs=64k", "--direct=0", "--invalidate=0"])
    };
    let Some(run) = with_cache_left_alone(cached) else { return };
    let finding = found(&buffered, &file, run, "page-cache").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");

    // The same, where no device can be asked.
    let mut blind = cached();
    blind.evidence.target = None;
    blind.evidence.members.clear();
    let finding = found(&buffered, &file, blind, "page-cache").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");

    // Honest: past both caches.
    let direct = workload("fio", true, Setup::default());
    let honest = fio(&watch, &device.0, &["--bs=64k", "--direct=1"]);
    let source = Source::Path(device.0.display().to_string());
    let judgement = judged(&direct, &file, vec![("it", source, vec![honest])]);
    for rule in ["page-cache", "compressible", "rebuilding", "too-short"] {
        assert_eq!(of(&judgement, "it", &direct, rule), None);
    }
    assert_eq!(judgement.unchecked.get("page-cache"), None);
}

/// Read at 32 MiB/s out of 32 MiB: the ramp takes them from the device, the measured second from
/// memory. The device has moved as much as the tool counts, and half of what it read.
#[test]
fn a_cache_that_the_ramp_filled() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 32);
    let Some(device) = Loop::attach(&file, true).filter(|_| has("fio", "fio")) else { return };
    let watch = watch(&device, &file);
    let of = |direct: bool| {
        let how = format!("--direct={}", u8::from(direct));
        let args = ["--bs=64k", "--ramp_time=1s", "--rate=32m", "--invalidate=0", &how];
        // The page cache of the device stays while the device is open, and is dropped after the last close.
        let open = fs::File::open(&device.0).unwrap();
        let mut run = fio(&watch, &device.0, &args);
        drop(open);
        println!("{:?} of {:?}", run.evidence.target, run.measured.samples);
        // The disk below may be busy with something else.
        run.evidence.members.clear();
        found(&workload("fio", direct, Setup::default()), &file, run, "page-cache")
    };
    let Some(finding) = with_cache_left_alone(|| of(false)) else { return };
    let finding = finding.unwrap();
    assert!(finding.why.contains("with its ramp"), "{finding:?}");
    assert_eq!(of(true), None);
}

#[test]
fn a_cache_below_a_loop_device() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    make_file(&file, 32);
    if disk_of(&file).is_empty() {
        println!("skipped: {} is not on a disk", dir.path().display());
        return;
    }
    let Some(device) = Loop::attach(&file, false).filter(|_| has("fio", "fio")) else { return };
    let run = fio(&watch(&device, &file), &device.0, &["--bs=64k", "--direct=1"]);
    // Other programs may read as much from this disk as the trial did.
    let disk = run.evidence.members[0].1.read_bytes as f64;
    if disk > 0.4 * run.measured.get(Metric::BytesRead).unwrap() {
        println!("skipped: the disk is too busy with something else");
        return;
    }
    let finding =
        found(&workload("fio", true, Setup::default()), &file, run, "page-cache").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert!(finding.action.contains("losetup"), "{finding:?}");
}

#[test]
fn writes_that_did_not_reach_the_device() {
    let _turn = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.img");
    fs::File::create(&file).unwrap().set_len(256 * MIB).unwrap();
    let Some(device) = Loop::attach(&file, true) else { return };
    let mounted = Mounted::mount("ext4", "", &device, &dir.path().join("mnt"));
    let watch = Watch { mountpoint: Some(mounted.0.clone()), ..watch(&device, &file) };
    let ext4 = Setup { filesystem: FileSystem::Ext4, ..Setup::default() };
    let workload = workload("dd", false, ext4);
    let write = |name: &str, more: &[&str]| {
        let of = format!("of={}", mounted.0.join(name).display());
        let args = [&["if=/dev/zero", &of, "bs=1M", "count=64"], more].concat();
        dd(&watch, Metric::BytesWritten, 64 * MIB, &args)
    };
    let run = write("unsynced", &[]);
    assert!(run.evidence.mount.as_ref().unwrap().starts_with("ext4 rw"), "{:?}", run.evidence);
    let finding = found(&workload, &file, run, "page-cache").unwrap();
    assert_eq!(finding.standing, Standing::Invalid, "{finding:?}");
    assert!(finding.why.contains("when the clock stopped"), "{finding:?}");
    let synced = write("synced", &["conv=fsync"]);
    let other = synced.evidence.clone();
    assert_eq!(found(&workload, &file, synced, "page-cache"), None, "{other:?}");
}

#[test]
fn another_writer_on_the_same_device() {
    let _turn = alone();
    // In memory, so that the writer is fast on a machine whose disk is busy.
    let memory = Path::new("/dev/shm");
    let dir = tempfile::tempdir_in(memory).unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let file = dir.path().join("a.img");
    make_file(&file, 64);
    let Some(device) = Loop::attach(&file, false).filter(|_| has("setsid", "util-linux")) else {
        return;
    };
    let watch = watch(&device, &file);
    let path = device.0.display().to_string();
    let trial = |wait: bool| {
        let before = take(&watch);
        let start = Instant::now();
        let args =
            [format!("if={path}"), "of=/dev/null".into(), "bs=1M".into(), "iflag=direct".into()];
        run(Command::new("dd").args(&args));
        let evidence = wait_for("enough from the other writer", || {
            let evidence = Evidence::between(&before, &take(&watch));
            let written = evidence.target.unwrap().written_bytes as f64;
            // Well above the bytes that a device moves in that time independently of the tool.
            let enough = (64.0 + 8.0 * evidence.span_s.unwrap()) * MIB as f64;
            let seen = !evidence.strangers.is_empty();
            (!wait || written > enough && seen).then_some(evidence)
        });
        let duration_s = start.elapsed().as_secs_f64();
        let mut measured = Measured::default();
        push(&mut measured, Metric::BytesRead, (64 * MIB) as f64);
        push(&mut measured, Metric::Seconds, duration_s);
        let commands = vec![format!("dd {}", args.join(" "))];
        Run { commands, evidence, measured, duration_s, region_bytes: 64 * MIB }
    };
    let workload = workload("dd", true, Setup::default());
    let mut quiet = trial(false);
    // The disk below is this machine's own and may be busy; the loop device is this test's.
    quiet.evidence.members.clear();
    quiet.evidence.strangers.clear();
    assert_eq!(found(&workload, &file, quiet, "another-writer"), None);

    // It ends with this process, even if that is killed.
    let own = std::process::id();
    let write = format!("dd if=/dev/zero of={path} bs=1M count=64 oflag=direct 2>/dev/null");
    let writer = format!("while kill -0 {own} && {write}; do :; done");
    let _stranger = Stranger::start(dir.path(), &writer);
    let disturbed = trial(true);
    let finding = found(&workload, &file, disturbed, "another-writer").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert!(finding.why.contains("its device wrote"), "{finding:?}");
    assert!(finding.why.contains("meanwhile"), "{finding:?}");
}

/// Arrays over image files, served for real and measured past every cache: nothing is doubted that
/// is the array's own doing (copies, parity, logs, reading before writing).
#[test]
fn honest_arrays_are_not_doubted() {
    let _turn = alone();
    let Some(braid) = std::env::var_os("BRAID") else {
        println!("skipped: BRAID names no program that serves arrays");
        return;
    };
    if !has("fio", "fio") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = ["a", "b", "c"].map(|name| {
        let path = dir.path().join(format!("{name}.img"));
        make_file(&path, 48);
        path.display().to_string()
    });
    for level in ["raid0", "raid1", "raid5"] {
        let stack = format!("{level}({})", files.join(", "));
        let socket = dir.path().join(format!("{level}.sock"));
        let mut serve = Command::new(&braid);
        serve.arg("serve").arg(&stack).arg("--nbd").arg(format!("unix:{}", socket.display()));
        let server = Server(serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        wait_for("the server", || braid_lab::nbd::query_size(&uri).ok());
        let watch = Watch {
            members: disk_of(Path::new(&files[0])),
            server_pid: Some(server.0.id()),
            ..Watch::default()
        };
        let uri = format!("--uri={uri}");
        for work in
            [["--rw=read", "--bs=1M"], ["--rw=randwrite", "--bs=4k"], ["--rw=write", "--bs=1M"]]
        {
            let args = ["--ioengine=nbd", "--iodepth=8", "--end_fsync=1", &uri, work[0], work[1]];
            let run = fio_for_a_second(&watch, 32 * MIB, &args);
            println!("{level} {work:?}: {:?} {:?}", run.measured.samples, run.evidence.members);
            let workload = workload("fio", true, Setup::default());
            let subjects = vec![("it", Source::Stack(stack.as_str().into()), vec![run])];
            let judgement = judged(&workload, Path::new(&files[0]), subjects);
            for rule in ["page-cache", "compressible", "rebuilding"] {
                assert_eq!(of(&judgement, "it", &workload, rule), None, "{level} {work:?}");
            }
        }
    }
}
