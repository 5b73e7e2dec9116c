//! The loop device on a served volume: use, detachment in peace and by force, and death.

mod support;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use braid_block::Op;
use braid_export_fuse::{Attachment, DetachError};
use support::{Child, Mounted, Served, Wish, over_uring};
use support::{aligned, is_possible, open_direct, pattern, read_at, run, wait_until, write_at};

fn number_of(device: &Path) -> u32 {
    device.to_str().unwrap().strip_prefix("/dev/loop").unwrap().parse().unwrap()
}

#[test]
fn every_block_size_does_direct_io() {
    if !is_possible() {
        return;
    }
    for logical_block in [512, 1024, 2048, 4096] {
        let mut served = Served::new(Wish { logical_block, ..Wish::default() });
        let mut attachment = served.attach();
        let device = attachment.device().unwrap();
        assert!(braid_sys::loop_device::is_direct(number_of(&device)).unwrap());
        let file = open_direct(&device);
        assert_eq!(braid_sys::block::size(&file).unwrap(), 64 << 20);
        assert_eq!(braid_sys::block::logical_block(&file).unwrap(), logical_block);
        let block = logical_block as usize;
        for (index, len) in
            [block, 3 * block, 64 << 10, (1 << 20) + block, 4 << 20].iter().enumerate()
        {
            let at = (index * (8 << 20) + block) as u64;
            let data = pattern(*len, at);
            write_at(&file, &data, at);
            assert!(read_at(&file, *len, at) == data);
        }
        write_at(&file, &pattern(4 << 20, 9), 40 << 20);
        braid_sys::block::discard(&file, 41 << 20, 1 << 20).unwrap();
        braid_sys::block::zero_out(&file, 43 << 20, 4096).unwrap();
        let mut expected = pattern(4 << 20, 9);
        expected[1 << 20..2 << 20].fill(0);
        expected[3 << 20..(3 << 20) + 4096].fill(0);
        assert!(read_at(&file, 4 << 20, 40 << 20) == expected);
        file.sync_all().unwrap();
        assert!(served.trouble.count(Op::Flush) > 0, "a flush comes through");
        assert!(served.trouble.count(Op::WriteZeroes) >= 2);
        drop(file);
        attachment.detach().unwrap();
        assert_eq!(attachment.device(), None);
        assert!(!served.dir.exists());
        served.finish().unwrap();
    }
}

#[test]
fn a_file_system_lives_on_it() {
    if !is_possible() {
        return;
    }
    let mut served = Served::new(Wish { size: 128 << 20, ..Wish::default() });
    served.trouble.slow.store(true, Relaxed);
    let mut attachment = served.attach();
    let device = attachment.device().unwrap();
    let name = device.to_str().unwrap();
    run("mkfs.ext4", &["-q", "-F", name]);
    let mounted = Mounted::new(&device);
    for index in 0..50u64 {
        let data = pattern(1000 * index as usize, index);
        fs::write(mounted.point.join(format!("{index}")), data).unwrap();
    }

    let Err(DetachError::Busy { holders, .. }) = attachment.detach() else { panic!("not refused") };
    let text = holders[0].to_string();
    assert_eq!(text, format!("mounted at {}", mounted.point.display()));

    run("umount", &[mounted.point.to_str().unwrap()]);
    run("fsck.ext4", &["-f", "-n", name]);
    run("mount", &["-o", "ro", name, mounted.point.to_str().unwrap()]);
    for index in 0..50u64 {
        let data = fs::read(mounted.point.join(format!("{index}"))).unwrap();
        assert!(data == pattern(1000 * index as usize, index));
    }
    run("umount", &[mounted.point.to_str().unwrap()]);
    attachment.detach().unwrap();
    served.finish().unwrap();
}

#[test]
fn a_process_that_has_it_open_is_named() {
    if !is_possible() {
        return;
    }
    let mut served = Served::new(Wish::default());
    let mut attachment = served.attach();
    let device = attachment.device().unwrap();
    let stdin = File::open(&device).unwrap();
    let sleeper = Child(Command::new("sleep").arg("100").stdin(stdin).spawn().unwrap());
    let error = attachment.detach().unwrap_err();
    let expected = format!("open by sleep (pid {})", sleeper.0.id());
    assert!(error.to_string().contains(&expected), "{error}");
    drop(sleeper);
    attachment.detach().unwrap();
    served.finish().unwrap();
}

#[test]
fn a_mount_in_another_namespace_is_found() {
    if !is_possible() {
        return;
    }
    let mut served = Served::new(Wish::default());
    let mut attachment = served.attach();
    let device = attachment.device().unwrap();
    run("mkfs.ext4", &["-q", "-F", device.to_str().unwrap()]);
    let point = tempfile::tempdir().unwrap();
    let script = "mount --make-rprivate / && mount \"$0\" \"$1\" && echo up && exec sleep 100";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(&device).arg(point.path());
    let mut child = Child(command.stdout(Stdio::piped()).spawn().unwrap());
    wait_for_line(&mut child);
    let error = attachment.detach().unwrap_err().to_string();
    let expected = format!("/proc/{}/root{}", child.0.id(), point.path().display());
    assert!(error.contains(&expected), "{error}");
    drop(child);
    // The namespace goes with its last process, and its mounts a moment later.
    wait_until("the mount to go", || attachment.detach().is_ok());
    served.finish().unwrap();
}

fn wait_for_line(child: &mut Child) -> String {
    use std::io::{BufRead, BufReader};
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn force_saves_what_a_mounted_file_system_holds() {
    if !is_possible() {
        return;
    }
    let mut served = Served::new(Wish::default());
    let mut attachment = served.attach();
    let device = attachment.device().unwrap();
    run("mkfs.ext4", &["-q", "-F", device.to_str().unwrap()]);
    let mounted = Mounted::new(&device);
    fs::write(mounted.point.join("file"), pattern(1 << 20, 3)).unwrap();
    let forced = attachment.detach_force();
    assert!(forced.saved && forced.released, "{forced:?}");
    assert_eq!(forced.unmounted, std::slice::from_ref(&mounted.point));
    assert!(!served.dir.exists());
    // The same memory again: what was in the page cache has arrived.
    let ram = served.ram.clone();
    served.finish().unwrap();
    let image = image_of(&ram);
    run("fsck.ext4", &["-f", "-n", image.path().to_str().unwrap()]);
    let dump = ["-R", "cat file", image.path().to_str().unwrap()];
    let output = Command::new("debugfs").args(dump).output().unwrap();
    assert!(output.stdout == pattern(1 << 20, 3));
}

fn image_of(ram: &braid_device::Ram) -> tempfile::NamedTempFile {
    use braid_block::Io;
    let (device, image) =
        (braid_engine::Dev::new(ram.device()), tempfile::NamedTempFile::new().unwrap());
    let pool = braid_mem::Pool::new(1 << 20).unwrap();
    for at in (0..device.limits().size).step_by(1 << 20) {
        let pending = device.start(Io::read(at, pool.get(1 << 20).unwrap()));
        let braid_engine::Pending::Ready(Some(completion)) = pending else { panic!() };
        image.as_file().write_all_at(&completion.payload.to_vec(), at).unwrap();
    }
    image
}

#[test]
fn force_while_a_file_on_it_is_open() {
    if !is_possible() {
        return;
    }
    let mut served = Served::new(Wish::default());
    let mut attachment = served.attach();
    let device = attachment.device().unwrap();
    run("mkfs.ext4", &["-q", "-F", device.to_str().unwrap()]);
    let mounted = Mounted::new(&device);
    let open = File::create(mounted.point.join("file")).unwrap();
    open.write_all_at(&[7; 5000], 0).unwrap();
    let start = Instant::now();
    let forced = attachment.detach_force();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(!forced.saved && !forced.released, "{forced:?}");
    assert!(!served.dir.exists());
    served.finish().unwrap();
    // What is written now is lost, with an error; the device goes with the last descriptor.
    let failed = open.write_all_at(&[7; 5000], 8192).and_then(|()| open.sync_all());
    assert!(failed.is_err());
    drop(open);
    let gone = PathBuf::from(format!("/sys/block/loop{}/loop", number_of(&device)));
    wait_until("the device to go", || {
        let file = fs::read_to_string(gone.join("backing_file"));
        file.ok().as_deref() != Some("/volume\n")
    });
}

#[test]
fn force_while_the_volume_does_not_answer() {
    if !is_possible() {
        return;
    }
    let mut served = Served::new(Wish::default());
    let mut attachment = served.attach();
    let device = attachment.device().unwrap();
    run("mkfs.ext4", &["-q", "-F", device.to_str().unwrap()]);
    let mounted = Mounted::new(&device);
    fs::write(mounted.point.join("file"), pattern(1 << 20, 3)).unwrap();
    served.trouble.stuck.store(true, Relaxed);
    let start = Instant::now();
    let forced = attachment.detach_force();
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
    assert!(!forced.saved && forced.released, "{forced:?}");
    assert!(!served.dir.exists());
    served.trouble.stuck.store(false, Relaxed);
    served.finish().unwrap();
}

const CHILD_DIR: &str = "BRAID_TEST_SERVE_AT";

/// Not a test: the process that another one kills.
#[test]
fn serve_until_killed() {
    let Some(dir) = std::env::var_os(CHILD_DIR).map(PathBuf::from) else { return };
    let scratch = tempfile::tempdir_in(dir.parent().unwrap()).unwrap();
    let mut served = Served::at(&dir, Wish::default(), scratch);
    let attachment = served.attach();
    eprintln!("{}", attachment.device().unwrap().display());
    // Its parent kills it; without a parent there is nothing more to read.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn what_a_killed_process_leaves_is_cleared_away() {
    if !is_possible() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("mount");
    let mut command = Command::new(std::env::current_exe().unwrap());
    let child = match over_uring() {
        true => "attached::serve_until_killed",
        false => "serve_until_killed",
    };
    command.args(["--exact", child, "--nocapture"]).env(CHILD_DIR, &dir);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stderr = child.stderr.take();
    let child = Child(child);
    let device = {
        use std::io::{BufRead, BufReader};
        let mut lines = BufReader::new(stderr.unwrap()).lines().map_while(Result::ok);
        lines.find(|line| line.starts_with("/dev/loop")).map(PathBuf::from)
    };
    let device = device.expect("the child attached its volume");
    let file = open_direct(&device);
    write_at(&file, &[7; 4096], 0);
    drop(child);

    let (memory, start) = aligned(4096);
    assert!(file.write_at(&memory[start..start + 4096], 0).is_err(), "an error, no hang");
    drop(file);
    let mut left = Attachment::find(&dir).unwrap().expect("a dead mount");
    assert_eq!(left.device(), Some(device));
    let forced = left.detach_force();
    assert!(forced.released, "{forced:?}");
    assert!(!dir.exists());
    assert!(Attachment::find(&dir).unwrap().is_none());
}

/// As at boot: the kernel gives the same free number to all callers until one has it.
#[test]
fn many_come_at_the_same_time() {
    if !is_possible() {
        return;
    }
    const MANY: usize = 32;
    let folder = tempfile::tempdir().unwrap();
    let begin = std::sync::Barrier::new(MANY);
    let attach = |index: usize| {
        let file = File::create_new(folder.path().join(index.to_string()))?;
        file.set_len(1 << 20)?;
        let setup = braid_sys::loop_device::Setup {
            block_size: 4096,
            read_only: true,
            read_ahead: 0,
            name: "many",
        };
        begin.wait();
        braid_sys::loop_device::attach(&file, setup)
    };
    let results: Vec<std::io::Result<u32>> = std::thread::scope(|scope| {
        let attach = &attach;
        let threads: Vec<_> = (0..MANY).map(|index| scope.spawn(move || attach(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for number in results.iter().flatten() {
        braid_sys::loop_device::detach(*number, || true).unwrap();
    }
    let mut numbers: Vec<u32> = results.into_iter().map(|result| result.unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), MANY);
}

#[test]
fn the_read_ahead_is_what_was_asked_and_does_not_stay() {
    if !is_possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = File::create_new(folder.path().join("file")).unwrap();
    file.set_len(1 << 20).unwrap();
    let read_ahead = |path: &str| {
        let answer = Command::new("blockdev").args(["--getra", path]).output().unwrap();
        String::from_utf8(answer.stdout).unwrap().trim().parse::<u64>().unwrap() * 512
    };
    for (asked, is) in [(0, 128 << 10), (3 << 20, 3 << 20)] {
        let setup = braid_sys::loop_device::Setup {
            block_size: 512,
            read_only: false,
            read_ahead: asked,
            name: "ahead",
        };
        let number = braid_sys::loop_device::attach(&file, setup).unwrap();
        let path = braid_sys::loop_device::path(number);
        assert_eq!(read_ahead(&path), is);
        // While it is open no other caller gets it.
        let held = File::open(&path).unwrap();
        braid_sys::loop_device::detach(number, || true).unwrap();
        assert_eq!(read_ahead(&path), 128 << 10);
        drop(held);
    }
}
