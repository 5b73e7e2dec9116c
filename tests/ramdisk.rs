//! RAM disks, as their users meet them: resized, erased, locked, saved and restored while they are up.

mod common;

use std::path::{Path, PathBuf};

use braid_nbd::protocol::{Command, NbdErrno};
use common::{
    Failed, KIB, MIB, Mounted, Scratch, Tool, UpVolume, fill, is_alive, send_signal,
    skip_unless_root, skip_without, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;

const FAILED: i32 = 1;
const USAGE: i32 = 2;
const REFUSED: i32 = 3;

fn ram_of(status: &Value, name: &str) -> u64 {
    status["rams"][0][name].as_u64().unwrap_or_else(|| panic!("{name} in {status:#}"))
}

fn bytes(len: u64, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    fill(&mut bytes, seed, 0);
    bytes
}

/// A volume that is reached over NBD only.
fn up<'a>(scratch: &'a Scratch, stack: &str, name: &str) -> UpVolume<'a> {
    scratch.up(stack, &["--name", name, "--attach", "none"])
}

fn read(volume: &UpVolume<'_>, offset: u64, len: u64) -> Vec<u8> {
    volume.client().read(offset, len as u32).expect("a read")
}

fn write(volume: &UpVolume<'_>, offset: u64, bytes: &[u8]) {
    volume.client().write(offset, bytes, false).expect("a write");
}

fn nbdinfo_size(volume: &UpVolume<'_>) -> u64 {
    let output = Tool::new("nbdinfo").args(["--size", &volume.uris[0]]).run().ok();
    output.out.trim().parse().expect("a number")
}

#[test]
fn a_file_system_lives_through_down_and_up_and_in_an_image() {
    skip_unless_root!();
    skip_without!("mkfs.ext4", "fsck.ext4", "lz4", "cmp");
    let scratch = Scratch::new();
    let content = bytes(3 * MIB, 5);
    std::fs::write(scratch.join("content"), &content).expect("a file");
    let volume = scratch.up("ram(64M, image=v.lz4)", &["--name", "v", "--attach", "fuse"]);
    Tool::new("mkfs.ext4").arg("-q").arg(volume.device()).run().ok();
    let mounted = Mounted::device(volume.device(), &scratch.join("mnt"));
    std::fs::write(mounted.point().join("file"), &content).expect("a file");
    scratch
        .run(&["save", "v", "x.lz4"])
        .fails(REFUSED, &["v is in use", "mounted at", "braid lock v"]);
    mounted.unmount();
    scratch.run(&["save", "v", "x.lz4"]).ok();
    assert!(!scratch.join("v.lz4").exists(), "an image is made at the end");
    volume.down();
    assert!(scratch.join("v.lz4").exists());

    let volume = scratch.up("v", &["--attach", "fuse"]);
    Tool::new("fsck.ext4").arg("-fn").arg(volume.device()).run().ok();
    let mounted = Mounted::device(volume.device(), &scratch.join("mnt"));
    assert!(std::fs::read(mounted.point().join("file")).expect("the file") == content);
    mounted.unmount();
    scratch.run(&["erase", "v"]).ok();
    Tool::new("fsck.ext4").arg("-fn").arg(volume.device()).run().fails(8, &[]);
    scratch.run(&["restore", "v", "x.lz4"]).ok();
    Tool::new("fsck.ext4").arg("-fn").arg(volume.device()).run().ok();
    // What others read of an image is what the device has.
    Tool::new("lz4").args(["-d", "-q", "x.lz4", "raw"]).folder(scratch.path()).run().ok();
    Tool::new("cmp").arg(scratch.join("raw")).arg(volume.device()).run().ok();
    volume.down();
}

#[test]
fn an_attached_disk_grows_under_a_mounted_file_system_and_is_locked() {
    skip_unless_root!();
    skip_without!("mkfs.ext4", "e2fsck", "resize2fs", "blockdev");
    let scratch = Scratch::new();
    let volume = scratch.up("ram(32M)", &["--name", "v", "--attach", "fuse"]);
    let device = volume.device().to_owned();
    Tool::new("mkfs.ext4").arg("-q").arg(&device).run().ok();
    let mounted = Mounted::device(&device, &scratch.join("mnt"));
    scratch.run(&["resize", "v", "96M"]).ok();
    let size = Tool::new("blockdev").arg("--getsize64").arg(&device).run().ok();
    assert_eq!(size.out.trim(), (96 * MIB).to_string());
    mounted.unmount();
    Tool::new("e2fsck").arg("-fp").arg(&device).run().ok();
    Tool::new("resize2fs").arg(&device).run().ok();
    let mounted = Mounted::device(&device, &scratch.join("mnt"));
    let content = bytes(48 * MIB, 6);
    std::fs::write(mounted.point().join("large"), &content).expect("there is room for it now");

    scratch.run(&["lock", "v"]).fails(REFUSED, &["v is in use", "mounted at", "--force"]);
    mounted.unmount();
    scratch.run(&["lock", "v"]).ok();
    let mounted = Mounted::device(&device, &scratch.join("mnt"));
    assert!(std::fs::read(mounted.point().join("large")).expect("the file") == content);
    let error = std::fs::write(mounted.point().join("more"), b"x").expect_err("read-only for all");
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    mounted.unmount();
    let text = scratch.run(&["status", "v"]).ok();
    assert!(text.out.contains(", locked"), "{text}");
    scratch.run(&["unlock", "v"]).ok();
    let mounted = Mounted::device(&device, &scratch.join("mnt"));
    std::fs::write(mounted.point().join("more"), b"x").expect("it is written again");
    mounted.unmount();
    scratch.run(&["lock", "v"]).ok();
    let read_only = |device: &Path| {
        let output = Tool::new("blockdev").arg("--getro").arg(device).run().ok();
        output.out.trim() == "1"
    };
    assert!(read_only(&device));
    volume.down();
    let number = device.file_name().expect("a device has a name");
    // Unless another program has it already.
    let is_free = || !Path::new("/sys/block").join(number).join("loop").exists();
    assert!(!is_free() || !read_only(&device) || !is_free(), "its next user can write to it");
}

#[test]
fn a_disk_that_is_read_only_is_attached_and_read() {
    skip_unless_root!();
    let scratch = Scratch::new();
    for stack in ["ram(4M)", "raid0(ram(4M), model(usb-flash, size=4M))"] {
        let volume = scratch.up(stack, &["--name", "v", "--attach", "fuse", "--read-only"]);
        let device = volume.device.clone().expect("a block device");
        let output = Tool::new("blockdev").arg("--getro").arg(&device).run().ok();
        assert_eq!(output.out.trim(), "1");
        let bytes = std::fs::read(&device).expect("it is read");
        assert!(bytes.len() as u64 >= 4 * MIB && bytes.iter().all(|byte| *byte == 0));
        volume.down();
        scratch.run(&["forget", "v"]).ok();
    }
}

#[test]
fn a_disk_is_resized_while_it_is_up_and_clients_see_it_when_they_come_again() {
    skip_without!("nbdinfo");
    let scratch = Scratch::new();
    let options = ["--name", "v", "--attach", "none", "--shards", "2"];
    let volume = scratch.up("ram(8M)", &options);
    let mut client = volume.client();
    client.write(8 * MIB - 4096, &[7; 4096], false).expect("a write");
    let grown = scratch.run(&["resize", "v", "20M"]).ok();
    assert!(grown.out.contains("connect again"), "{grown}");
    assert_eq!(nbdinfo_size(&volume), 20 * MIB);
    let beyond = Command::Read { offset: 8 * MIB, length: 4096, dont_fragment: false };
    assert_eq!(client.refusal(beyond, &[]), NbdErrno::Inval, "who was there keeps the size");
    assert_eq!(client.read(8 * MIB - 4096, 4096).expect("a read"), [7; 4096]);
    scratch.run(&["resize", "v", "8M"]).fails(REFUSED, &["v is in use", "NBD client"]);
    drop(client);
    // Both shards know of it.
    for at in [8, 12, 16, 19] {
        assert_eq!(read(&volume, at * MIB, 4096), [0; 4096]);
        write(&volume, at * MIB, &[at as u8; 4096]);
    }
    scratch
        .run(&["resize", "v", "19M"])
        .fails(REFUSED, &["data lies behind the new end", "next: "]);
    assert_eq!(read(&volume, 19 * MIB, 4096), [19; 4096]);
    let whole = 19 * MIB..20 * MIB;
    let trim = Command::Trim { offset: whole.start, length: MIB, fua: false };
    volume.client().request(trim, &[]).expect("a discard");
    scratch.run(&["resize", "v", "19M"]).ok();
    assert_eq!(nbdinfo_size(&volume), 19 * MIB);
    scratch.run(&["resize", "v", "19M"]).ok();
    scratch.run(&["resize", "v", "20M"]).ok();
    assert_eq!(read(&volume, 19 * MIB, MIB), vec![0; MIB as usize]);
    assert_eq!(ram_of(&volume.status(), "size_bytes"), 20 * MIB);
    volume.down();
    let volume = scratch.up("v", &options[2..]);
    assert_eq!(nbdinfo_size(&volume), 20 * MIB, "the size is remembered");
}

#[test]
fn a_lock_refuses_writes_while_fio_runs() {
    skip_without!("fio", "nbdinfo");
    let scratch = Scratch::new();
    let volume = scratch.up("ram(32M)", &["--name", "v", "--attach", "none", "--shards", "2"]);
    let uri = volume.uris[0].clone();
    let fio = std::thread::spawn(move || {
        Tool::new("fio")
            .args(["--name=w", "--ioengine=nbd", "--rw=randwrite", "--bsrange=512-256k"])
            .args(["--size=32M", "--time_based", "--runtime=60", "--iodepth=16", "--numjobs=2"])
            .arg(format!("--uri={uri}"))
            .run()
    });
    let written = || volume.status()["nbd"]["written_bytes"].as_u64().unwrap_or(0);
    wait_until("fio's writes", || written() > 4 * MIB);
    scratch.run(&["lock", "v"]).ok();
    let before = read(&volume, 0, 16 * MIB);
    let output = fio.join().expect("fio was waited for");
    assert!(!output.status.success(), "its writes are refused: {output}");
    assert!(read(&volume, 0, 16 * MIB) == before, "nothing was written after the lock");
    let mut client = volume.client();
    assert!(client.is_read_only(), "who comes now is told");
    let zeroes = Command::WriteZeroes {
        offset: 0,
        length: 4096,
        fua: false,
        no_hole: false,
        fast_zero: false,
    };
    assert_eq!(client.refusal(zeroes, &[]), NbdErrno::Perm);
    let status = volume.status();
    assert_eq!(status["device"]["locked"], true, "{status:#}");
    for order in [&["erase", "v"][..], &["resize", "v", "64M"], &["restore", "v", "x"]] {
        scratch.run(order).fails(REFUSED, &["v is locked", "braid unlock v"]);
    }
    drop(client);
    scratch.run(&["lock", "v"]).ok();
    scratch.run(&["save", "v", "x.lz4"]).ok();
    scratch.run(&["unlock", "v"]).ok();
    scratch.run(&["unlock", "v"]).ok();
    write(&volume, 0, &[1; 4096]);
    volume.down();
}

/// A client that was there before the lock: its writes are refused one by one, and the connection stays
/// in step, also for files with arrays below.
#[test]
fn any_volume_is_locked_and_who_was_connected_goes_on_reading() {
    let scratch = Scratch::new();
    for (index, stack) in ["raid1(a.img, b.img)", "linear(a.img, b.img)", "cache(size=1M, a.img)"]
        .into_iter()
        .enumerate()
    {
        scratch.file("a.img", 4 * MIB, 1);
        scratch.file("b.img", 4 * MIB, 1);
        let name = format!("v{index}");
        let volume = up(&scratch, stack, &name);
        let mut client = volume.client();
        client.write(0, &[1; 4096], false).expect("a write");
        scratch.run(&["lock", &name]).ok();
        for _ in 0..3 {
            let refused = Command::Write { offset: 0, length: 64 * 1024, fua: false };
            assert_eq!(client.refusal(refused, &[2; 64 << 10]), NbdErrno::Perm, "{stack}");
            assert_eq!(client.read(0, 4096).expect("a read"), [1; 4096], "{stack}");
        }
        scratch.run(&["unlock", &name]).ok();
        client.write(0, &[3; 4096], true).expect("a write");
        drop(client);
        let image = format!("{name}.lz4");
        scratch.run(&["save", &name, &image]).ok();
        write(&volume, MIB, &[9; 4096]);
        let before = read(&volume, 0, 2 * MIB);
        scratch.run(&["restore", &name, &image]).fails(REFUSED, &["has data", "--force"]);
        assert!(read(&volume, 0, 2 * MIB) == before);
        scratch.run(&["restore", &name, &image, "--force"]).ok();
        let after = read(&volume, 0, 2 * MIB);
        assert!(after != before && after[..4096] == [3; 4096], "{stack}");
        scratch.run(&["erase", &name]).fails(REFUSED, &["is no RAM disk", "next: "]);
        scratch.run(&["resize", &name, "8M"]).fails(REFUSED, &["is no RAM disk", "braid grow"]);
        volume.down();
    }
}

#[test]
fn what_is_erased_or_discarded_is_given_back() {
    let scratch = Scratch::new();
    let volume = up(&scratch, "ram(16M)", "v");
    write(&volume, 0, &bytes(8 * MIB, 3));
    let status = volume.status();
    assert_eq!(ram_of(&status, "used_bytes"), 8 * MIB, "{status:#}");
    wait_until("memory to be taken", || ram_of(&volume.status(), "allocated_bytes") >= 8 * MIB);
    let client = volume.client();
    scratch.run(&["erase", "v"]).fails(REFUSED, &["an NBD client is connected", "--force"]);
    assert_eq!(ram_of(&volume.status(), "used_bytes"), 8 * MIB);
    scratch.run(&["erase", "v", "--force"]).ok();
    drop(client);
    assert_eq!(ram_of(&volume.status(), "used_bytes"), 0);
    wait_until("memory to be given back", || ram_of(&volume.status(), "allocated_bytes") == 0);
    assert!(read(&volume, 0, 8 * MIB).iter().all(|byte| *byte == 0));
    volume.down();
}

#[test]
fn a_damaged_or_another_image_is_refused_and_nothing_is_changed() {
    let scratch = Scratch::new();
    let volume = up(&scratch, "ram(4M, image=v.lz4)", "v");
    write(&volume, 0, &bytes(MIB, 3));
    volume.down();
    let image = scratch.read("v.lz4");
    let refused = |why: &str| {
        let before = scratch.read("v.lz4");
        let output = scratch.run(&["up", "v", "--attach", "none"]);
        output.fails(REFUSED, &["the RAM disk is not restored", why, "next: "]);
        assert!(scratch.read("v.lz4") == before);
        scratch.run(&["status", "v"]).fails(FAILED, &["no volume called v is up"]);
    };
    let mut damaged = image.clone();
    damaged[image.len() / 2] ^= 1;
    std::fs::write(scratch.join("v.lz4"), &damaged).expect("an image");
    refused("is damaged");
    std::fs::write(scratch.join("v.lz4"), &image[..image.len() - 8]).expect("an image");
    refused("it ends before its frame does");
    std::fs::write(scratch.join("v.lz4"), "no image").expect("a file");
    refused("does not begin as an LZ4 frame");
    let other = up(&scratch, "ram(2M)", "o");
    scratch.run(&["save", "o", "o.lz4"]).ok();
    std::fs::copy(scratch.join("o.lz4"), scratch.join("v.lz4")).expect("a copy");
    refused("the volume has 4 MiB");

    // The same, of a disk that is up.
    write(&other, 0, &[5; 4096]);
    std::fs::write(scratch.join("x.lz4"), &damaged).expect("an image");
    let output = scratch.run(&["restore", "o", "x.lz4", "--force"]);
    output.fails(REFUSED, &["the volume has 2 MiB", "braid resize o"]);
    scratch.run(&["resize", "o", "4M"]).ok();
    scratch
        .run(&["restore", "o", "x.lz4", "--force"])
        .fails(REFUSED, &["is damaged", "lz4 --test"]);
    assert_eq!(read(&other, 0, 4096), [5; 4096]);
    other.down();
    std::fs::write(scratch.join("v.lz4"), &image).expect("an image");
    let volume = up(&scratch, "v", "v");
    assert!(read(&volume, 0, MIB) == bytes(MIB, 3));
    // A power cut: the image is as it was.
    write(&volume, 0, &[8; 4096]);
    volume.kill();
    assert!(scratch.read("v.lz4") == image);
    let volume = up(&scratch, "v", "v");
    assert!(read(&volume, 0, MIB) == bytes(MIB, 3));
    drop(volume);

    // In the foreground it is the same.
    let volume = scratch.serve("ram(4M, image=s.lz4)", &[]);
    volume.client().write(0, &[8; 4096], false).expect("a write");
    assert!(volume.stop().success());
    let volume = scratch.serve("ram(4M, image=s.lz4)", &[]);
    assert_eq!(volume.client().read(0, 4096).expect("a read"), [8; 4096]);
}

#[test]
fn an_image_that_does_not_fit_keeps_the_volume_up() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let Some(full) = Mounted::tmpfs(&scratch.join("small"), MIB) else { return };
    let volume = up(&scratch, "ram(8M, image=small/v.lz4)", "v");
    write(&volume, 0, &[1; 4096]);
    volume.down();
    let old = scratch.read("small/v.lz4");
    let volume = scratch.up("v", &["--attach", "none"]);
    let content = bytes(4 * MIB, 9);
    write(&volume, 0, &content);
    let message = ["v goes on: what it holds would be lost", "No space left", "braid save v FILE"];
    volume.try_down(&[]).fails(FAILED, &message);
    assert!(read(&volume, 0, 4 * MIB) == content);
    write(&volume, 4 * MIB, &[4; 4096]);
    assert!(scratch.read("small/v.lz4") == old, "the old image stays");
    assert_eq!(std::fs::read_dir(full.point()).expect("a folder").count(), 1);
    // A service manager's signal is answered the same way.
    send_signal(volume.pid, Signal::TERM);
    let log = scratch.run_folder().join("v.log");
    let told = || std::fs::read_to_string(&log).unwrap_or_default().contains("once more within");
    wait_until("a refusal in the log", told);
    assert!(is_alive(volume.pid));
    full.resize(16 * MIB);
    send_signal(volume.pid, Signal::TERM);
    wait_until("the end of the volume's process", || !is_alive(volume.pid));
    drop(volume);

    let volume = scratch.up("v", &["--attach", "none"]);
    assert!(read(&volume, 0, 4 * MIB) == content);
    assert_eq!(read(&volume, 4 * MIB, 4096), [4; 4096]);
    write(&volume, 4 * MIB, &content);
    std::fs::remove_file(scratch.join("small/v.lz4")).expect("it was there");
    full.resize(MIB);
    let lost = volume.try_down(&["--force"]);
    lost.fails(FAILED, &["v has ended", "the content is lost", "No space left"]);
    wait_until("the end of the volume's process", || !is_alive(volume.pid));
}

#[test]
fn no_more_is_promised_than_there_is() {
    let scratch = Scratch::new();
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("Linux");
    let total: u64 = meminfo.split_whitespace().nth(1).expect("a number").parse().expect("kB");
    let most = format!("{}M", total >> 10);
    let half = format!("{}M", (total >> 11) + 64);
    let options = ["--attach", "none", "--name"];
    let output = scratch.run(&[&["up", "ram(16T)"], &options[..], &["v"]].concat());
    output.fails(REFUSED, &["ram(16T) is more than the", "of memory", "overcommit"]);
    let one = up(&scratch, &format!("ram({half})"), "one");
    let two = format!("raid0(ram({half}), ram(1M))");
    let output = scratch.run(&[&["up", &two], &options[..], &["two"]].concat());
    output.fails(REFUSED, &["that other volumes have promised", "is more than the"]);
    let two = up(&scratch, &format!("ram({half}, overcommit)"), "two");
    two.down();
    let three = up(&scratch, "ram(1M)", "three");
    let output = scratch.run(&["resize", "three", &half]);
    output.fails(REFUSED, &["that other volumes have promised"]);
    scratch.run(&["resize", "one", &most]).fails(REFUSED, &["promised"]);
    assert_eq!(ram_of(&three.status(), "size_bytes"), MIB);
    one.down();
    scratch.run(&["resize", "three", &half]).ok();
    three.down();
}

#[test]
fn options_say_what_memory_it_is() {
    skip_without!("nbdinfo");
    let scratch = Scratch::new();
    let volume = up(&scratch, "ram(8M, preallocate, logical_block=4096)", "v");
    let status = volume.status();
    assert!(ram_of(&status, "allocated_bytes") >= 8 * MIB, "{status:#}");
    assert_eq!(ram_of(&status, "used_bytes"), 0);
    assert_eq!(status["device"]["logical_block_bytes"], 4096, "{status:#}");
    let info = Tool::new("nbdinfo").args(["--json", &volume.uris[0]]).run().ok().json();
    assert_eq!(info["exports"][0]["block_size_minimum"], 1, "{info:#}");
    scratch.run(&["resize", "v", "16M"]).ok();
    wait_until("more to be taken", || ram_of(&volume.status(), "allocated_bytes") >= 16 * MIB);
    scratch.run(&["resize", "v", "16385K"]).fails(REFUSED, &["no multiple of its blocks of 4096"]);
    scratch.run(&["erase", "v"]).ok();
    assert!(ram_of(&volume.status(), "allocated_bytes") >= 16 * MIB, "what is preallocated stays");
    let text = scratch.run(&["status", "v"]).ok();
    assert!(text.out.contains("memory taken, preallocated"), "{text}");
    volume.down();

    // Not all of the machine's memory is free.
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("Linux");
    let total = meminfo.split_whitespace().nth(1).expect("a number");
    let stack = format!("ram({total}K, preallocate, overcommit)");
    let output = scratch.run(&["up", &stack, "--name", "p", "--attach", "none"]);
    output.fails(FAILED, &["no memory for ram(", "preallocate", "next: smaller sizes"]);

    // More huge pages than any pool that this machine could have.
    let stack = format!("ram({}M, huge, overcommit)", 1 << 20);
    let output = scratch.run(&["up", &stack, "--name", "h", "--attach", "none"]);
    output.fails(FAILED, &["no memory for ram(1T, huge", "huge pages", "vm.nr_hugepages"]);
}

#[test]
fn memory_that_may_not_be_locked_is_said_to_be_that() {
    skip_unless_root!();
    skip_without!("setpriv", "prlimit");
    let scratch = Scratch::new();
    let braid = scratch.braid().args(["serve", "ram(8M, lock)", "--nbd", "unix:s"]).into_command();
    let serve = |limit: &str| {
        let mut tool = Tool::new("prlimit")
            .args([&format!("--memlock={limit}"), "setpriv", "--bounding-set=-ipc_lock"])
            .args(["--inh-caps=-ipc_lock"])
            .arg(braid.get_program())
            .args(braid.get_args())
            .folder(scratch.path());
        for (key, value) in braid.get_envs() {
            if let (Some(key), Some(value)) = (key.to_str(), value) {
                tool = tool.env(key, value);
            }
        }
        tool.run()
    };
    serve("65536").fails(
        FAILED,
        &["the memory of ram(8M, lock) cannot be locked", "ulimit -l unlimited", "LimitMEMLOCK"],
    );
}

#[test]
fn bad_input_says_what_is_wrong_and_what_to_do() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    let volume = up(&scratch, "ram(4M)", "v");
    let other = scratch.up("ram(4M)", &["--name", "ro", "--attach", "none", "--read-only"]);
    scratch.run(&["save", "v", "there.lz4"]).ok();
    let before = scratch.read("there.lz4");
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["resize", "v", "0"], USAGE, &["a size of 0 bytes", "braid erase v"]),
        (&["resize", "v", "1000"], REFUSED, &["no multiple of its blocks of 512"]),
        (&["resize", "v", "1P"], REFUSED, &["1 PiB for v", "is more than the"]),
        (&["resize", "v", "big"], USAGE, &["big"]),
        (&["resize", "nobody", "8M"], FAILED, &["no volume called nobody is up", "braid status"]),
        (&["lock", "a/b"], USAGE, &["a/b"]),
        (&["save", "v", "there.lz4"], REFUSED, &["exists already", "--force"]),
        (&["save", "v", "no/such/folder"], FAILED, &["cannot be written", "No such file"]),
        (&["save", "v", "/dev/full"], REFUSED, &["exists already"]),
        (&["save", "v", "/dev/full", "--force"], REFUSED, &["is no image", "it is no file"]),
        (&["save", "v", "a.img", "--force"], REFUSED, &["is no image", "next: another FILE"]),
        (&["restore", "v", "missing.lz4"], FAILED, &["cannot be read", "No such file"]),
        (&["restore", "v", "a.img"], REFUSED, &["is no image", "next: "]),
        (&["restore", "v", "."], REFUSED, &["is no image", "it is no file"]),
        (&["unlock", "ro"], REFUSED, &["brought up with --read-only", "braid down ro"]),
        (&["erase", "ro"], REFUSED, &["ro is locked"]),
        (&["restore", "ro", "there.lz4"], REFUSED, &["ro is locked"]),
    ];
    for (args, code, parts) in cases {
        scratch.run(args).fails(*code, parts);
    }
    let nested = ["up", "raid0(ram(1M, image=x), ram(1M))", "--name", "n", "--attach", "none"];
    scratch.run(&nested).fails(REFUSED, &["has an image, but is a part of a stack", "braid save"]);
    assert!(scratch.read("there.lz4") == before);
    assert!(other.client().is_read_only(), "--read-only holds for memory, too");
    scratch.run(&["save", "v", "there.lz4", "--force"]).ok();
    let left: Vec<PathBuf> = std::fs::read_dir(scratch.path())
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_hidden(path))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    other.down();
    volume.down();
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// Two shards, clients that write all the time, and a disk that grows under them: what was written is
/// there, byte for byte.
#[test]
fn a_disk_grows_under_clients_that_write() {
    let scratch = Scratch::new();
    let volume = scratch.up("ram(4M)", &["--name", "v", "--attach", "none", "--shards", "2"]);
    std::thread::scope(|scope| {
        for seed in 0..2u64 {
            let volume = &volume;
            scope.spawn(move || {
                let mut client = volume.client();
                for round in 0..200u64 {
                    let offset = seed * 2 * MIB + round % 32 * 64 * KIB;
                    client
                        .write(offset, &bytes(64 * KIB, round ^ seed << 32), false)
                        .expect("a write");
                }
            });
        }
        for size in [5, 9, 17, 33] {
            scratch.run(&["resize", "v", &format!("{size}M")]).ok();
        }
    });
    for seed in 0..2u64 {
        for round in 168..200u64 {
            let offset = seed * 2 * MIB + round % 32 * 64 * KIB;
            let expected = bytes(64 * KIB, round ^ seed << 32);
            assert!(read(&volume, offset, 64 * KIB) == expected, "{seed} {round}");
        }
    }
    assert_eq!(volume.client().size(), 33 * MIB);
    volume.down();
}

#[test]
fn a_lock_waits_for_a_write_whose_payload_is_still_coming() {
    let scratch = Scratch::new();
    let volume = up(&scratch, "ram(4M)", "v");
    let mut client = volume.client();
    let payload = bytes(512 * KIB, 4);
    let (early, late) = payload.split_at(300 << 10);
    let write = Command::Write { offset: 0, length: payload.len() as u32, fua: false };
    let cookie = client.send(write, early).expect("a request is taken");
    // What comes behind it on the same connection has its place behind it.
    wait_until("the write", || ram_of(&volume.status(), "used_bytes") > 0);
    std::thread::scope(|scope| {
        let lock = scope.spawn(|| scratch.run(&["lock", "v"]));
        let refused = || {
            let zeroes = Command::Trim { offset: MIB, length: 4096, fua: false };
            volume.client().request(zeroes, &[]).is_err()
        };
        wait_until("new writes are refused", refused);
        assert_eq!(volume.status()["device"]["locked"], false, "one is under way");
        assert!(!lock.is_finished());
        client.raw.send(late).expect("the rest is taken");
        let (answered, answer) = client.receive().expect("an answer");
        assert!(answered == cookie && answer.is_ok(), "{answer:?}");
        lock.join().expect("it was waited for").ok();
    });
    assert!(read(&volume, 0, 512 * KIB) == payload);
}

/// All answered writes are in the image: no write is answered between the last saved byte and the end.
#[test]
fn what_was_answered_before_the_end_is_in_the_image() {
    let scratch = Scratch::new();
    let volume = up(&scratch, "ram(4M, image=v.lz4)", "v");
    for round in 0..6u64 {
        let mut client = volume_client(&scratch, "v");
        let writer = std::thread::spawn(move || {
            let mut last = 0u64;
            for count in 1.. {
                let mut block = [0; 512];
                block[..8].copy_from_slice(&(round << 32 | count).to_le_bytes());
                match client.write(0, &block, false) {
                    Ok(()) => last = round << 32 | count,
                    // Refused while it is saved: perhaps the next one is not.
                    Err(Failed::Answered(_)) => {}
                    Err(_) => break,
                }
            }
            last
        });
        let written = || {
            scratch.run(&["status", "v", "--json"]).json()["volumes"][0]["nbd"]["written_bytes"]
                .as_u64()
                > Some(KIB << 10)
        };
        wait_until("writes", written);
        scratch.run(&["down", "v"]).ok();
        let last = writer.join().expect("a writer ends");
        scratch.run(&["up", "v", "--attach", "none"]).ok();
        let read = volume_client(&scratch, "v").read(0, 512).expect("a read");
        let saved = u64::from_le_bytes(read[..8].try_into().expect("8 bytes"));
        assert!(last > round << 32 && saved == last, "{last:#x} was answered, {saved:#x} is there");
    }
    volume.try_down(&[]).ok();
}

fn volume_client(scratch: &Scratch, name: &str) -> common::Client {
    common::Client::connect(&scratch.run_folder().join(format!("{name}.nbd"))).expect("a client")
}
