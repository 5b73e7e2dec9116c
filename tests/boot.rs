//! Members that come and go: what udev and systemd start, and what comes back by itself.

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use common::{
    LIMIT, LoopDevice, MIB, Output, Scratch, Tool, UpVolume, send_signal, skip_unless_root,
    skip_without, start, wait_until,
};

const REFUSED: i32 = 3;
const SIZE: u64 = 16 * MIB;
const CHUNK: u64 = 64 << 10;

/// A mirror of a.img and b.img, with a bitmap.
fn mirror() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, SIZE);
    }
    let create = ["create", "home", "--level", "raid1", "--assume-clean", "--bitmap", "64K"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    scratch
}

fn up<'a>(scratch: &'a Scratch, options: &[&str]) -> UpVolume<'a> {
    scratch.up("home", &[&["--attach", "none"], options].concat())
}

fn write(volume: &UpVolume<'_>, offset: u64, byte: u8) {
    let mut client = volume.client();
    client.write(offset, &[byte; 4096], false).expect("a write");
    client.flush().expect("a flush");
}

fn unplug(scratch: &Scratch, name: &str) {
    fs::rename(scratch.join(name), scratch.join("away")).expect("it is there");
}

fn plug(scratch: &Scratch, name: &str) {
    fs::rename(scratch.join("away"), scratch.join(name)).expect("it was there");
}

fn is_whole(volume: &UpVolume<'_>) -> bool {
    let array = &volume.status()["arrays"][0];
    array["job"].is_null() && !array["in_sync"].to_string().contains("false")
}

fn wait_until_whole(volume: &UpVolume<'_>) {
    wait_until("the member to be back and filled", || is_whole(volume));
}

fn warnings(volume: &UpVolume<'_>) -> String {
    volume.status()["warnings"].to_string()
}

/// The command that udev runs when a device is gone.
fn gone(scratch: &Scratch, name: &str) -> Output {
    scratch.run(&["incremental", "--fail", name])
}

fn came(scratch: &Scratch, name: &str) -> Output {
    scratch.run(&["incremental", name])
}

/// Parts of both members that were not written are not compared, let alone copied.
#[test]
fn a_member_that_is_plugged_in_again_gets_what_its_bitmap_says() {
    let scratch = mirror();
    let volume = up(&scratch, &[]);
    assert_eq!(volume.status()["re_add"], "auto");
    write(&volume, 0, 1);
    unplug(&scratch, "b.img");
    gone(&scratch, "b.img").ok();
    write(&volume, CHUNK, 2);
    // What a copy of all of it would put right.
    let superblock = scratch.run(&["examine", "a.img", "--json"]).json();
    let data = superblock["members"][0]["superblocks"][0]["data_offset_bytes"].as_u64();
    let place = data.expect("an offset") + 40 * CHUNK;
    scratch.patch("away", place, &[9; 512]);
    plug(&scratch, "b.img");
    wait_until_whole(&volume);
    let log = volume.status()["arrays"][0]["log"].to_string();
    assert!(log.contains("its device went away"), "{log}");
    let there = |name: &str, at: u64| scratch.read(name)[at as usize..][..512].to_vec();
    let data = data.expect("an offset");
    assert_eq!(there("b.img", data + CHUNK), [2; 512], "what was written meanwhile is copied");
    assert_eq!(there("b.img", place), [9; 512], "and nothing else");
    volume.down();
}

#[test]
fn what_an_operator_took_out_does_not_come_back_by_itself() {
    let scratch = mirror();
    let volume = up(&scratch, &[]);
    scratch.run(&["member", "fail", "home", "b.img"]).ok();
    unplug(&scratch, "b.img");
    came(&scratch, "a.img").ok();
    plug(&scratch, "b.img");
    let told = came(&scratch, "b.img").ok();
    assert!(told.out.contains("no member of home is missing that could"), "{told}");
    scratch.run(&["member", "remove", "home", "b.img"]).ok();
    let told = came(&scratch, "b.img").ok();
    assert!(told.out.contains("no member of home is missing that could"), "{told}");
    assert!(!is_whole(&volume));
    scratch.run(&["member", "re-add", "home", "b.img"]).ok();
    wait_until_whole(&volume);
}

#[test]
fn a_volume_that_asks_says_who_is_back_and_the_command() {
    let scratch = mirror();
    let volume = up(&scratch, &["--re-add", "ask"]);
    unplug(&scratch, "b.img");
    gone(&scratch, "b.img").ok();
    write(&volume, 0, 1);
    plug(&scratch, "b.img");
    wait_until("the volume to say so", || warnings(&volume).contains("b.img is back"));
    let status = volume.status();
    let next = format!("`braid member re-add home {}`", scratch.join("b.img").display());
    assert!(status["next"].to_string().contains(&next), "{status}");
    assert_eq!(status["re_add"], "ask");
    assert!(!is_whole(&volume));
    scratch.run(&["member", "re-add", "home", "b.img"]).ok();
    wait_until_whole(&volume);
    wait_until("nothing more to be said", || warnings(&volume) == "[]");
}

#[test]
fn a_member_that_comes_late_is_taken_in_and_policies_are_remembered() {
    let scratch = mirror();
    up(&scratch, &["--re-add", "never", "--remember"]).down();
    unplug(&scratch, "b.img");
    let volume = up(&scratch, &["--degraded"]);
    assert_eq!(volume.status()["re_add"], "never");
    plug(&scratch, "b.img");
    came(&scratch, "b.img").ok();
    assert!(!is_whole(&volume));
    volume.down();
    unplug(&scratch, "b.img");
    let volume = up(&scratch, &["--re-add", "auto"]);
    write(&volume, 0, 1);
    plug(&scratch, "b.img");
    wait_until_whole(&volume);
}

#[test]
fn a_member_that_flaps_is_left_out() {
    let scratch = mirror();
    let volume = up(&scratch, &[]);
    for round in 0..3 {
        unplug(&scratch, "b.img");
        gone(&scratch, "b.img").ok();
        write(&volume, 0, round);
        plug(&scratch, "b.img");
        wait_until_whole(&volume);
    }
    unplug(&scratch, "b.img");
    gone(&scratch, "b.img").ok();
    plug(&scratch, "b.img");
    wait_until("the volume to say so", || warnings(&volume).contains("it is left out"));
    let status = volume.status();
    assert!(status["arrays"][0]["log"].to_string().contains("4 times within an hour"), "{status}");
    assert!(status["next"].to_string().contains("braid member re-add home"), "{status}");
    assert!(!is_whole(&volume));
    scratch.run(&["member", "re-add", "home", "b.img"]).ok();
    wait_until_whole(&volume);
}

/// A device that really dies under load: another volume's, taken away by force.
#[test]
fn a_block_device_that_dies_and_comes_again_under_another_number() {
    skip_unless_root!();
    let scratch = Scratch::new();
    scratch.sparse("a.img", SIZE);
    scratch.sparse("disk.img", SIZE);
    let disk = || scratch.up("linear(./disk.img)", &["--name", "disk", "--attach", "fuse"]);
    let link = |target: &Path| {
        let path = scratch.join("b.dev");
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).expect("a link");
    };
    let inner = disk();
    link(inner.device());
    let create = ["create", "home", "--level", "raid1", "--assume-clean", "--bitmap", "64K"];
    scratch.run(&[&create[..], &["a.img", "b.dev"]].concat()).ok();
    let volume = up(&scratch, &[]);
    write(&volume, 0, 1);
    scratch.run(&["down", "disk", "--force"]).ok();
    std::mem::forget(inner);
    wait_until("the member to fail", || {
        write(&volume, CHUNK, 2);
        volume.status()["arrays"][0]["members"].to_string().contains("faulty")
    });
    write(&volume, 2 * CHUNK, 3);
    let inner = disk();
    link(inner.device());
    wait_until_whole(&volume);
    scratch.run(&["scrub", "home", "--wait"]).ok();
    volume.down();
    inner.down();
}

#[test]
fn an_array_is_started_when_its_last_member_comes() {
    let scratch = mirror();
    let before = (scratch.read("a.img"), scratch.read("b.img"));
    unplug(&scratch, "b.img");
    let told = came(&scratch, "a.img").ok();
    assert!(told.out.contains("a.img attached to home, not enough to start safely"), "{told}");
    assert!(told.out.contains("next: braid incremental --run-last-resort home"), "{told}");
    scratch.run(&["status", "home"]).fails(1, &["home"]);
    plug(&scratch, "b.img");
    let looks = ["incremental", "--export", "--no-start", "b.img"];
    let export = scratch.run(&looks).ok().out;
    for line in ["BRAID_OWNER=braid\n", "BRAID_VOLUME=home\n"] {
        assert!(export.contains(line), "{export}");
    }
    let told = scratch.run(&["incremental", "--no-start", "b.img"]).ok();
    assert!(told.out.contains("attached to home, which can be started"), "{told}");
    assert!((scratch.read("a.img"), scratch.read("b.img")) == before, "looking writes nothing");
    // As udev may call it for several members at the same time.
    std::thread::scope(|scope| {
        for name in ["a.img", "b.img"] {
            scope.spawn(|| came(&scratch, name).ok());
        }
    });
    let told = came(&scratch, "b.img").ok();
    assert!(told.out.contains("b.img is of home, which is up: "), "{told}");
    let status = scratch.run(&["status", "home", "--json"]).ok().json();
    assert_eq!(status["volumes"][0]["state"], "online", "{status}");
    scratch.run(&["down", "home"]).ok();
}

#[test]
fn what_stays_incomplete_is_started_as_a_last_resort_if_its_record_allows() {
    let scratch = mirror();
    unplug(&scratch, "b.img");
    let config = scratch.config_file("home");
    let record = fs::read_to_string(&config).expect("a record");
    let waits = record.replace("last-resort = \"degraded\"", "last-resort = \"wait\"");
    assert_ne!(waits, record, "the record says what it does");
    fs::write(&config, waits).expect("a record");
    let last = ["incremental", "--run-last-resort", "home"];
    scratch.run(&last).fails(REFUSED, &["home waits for its members", "braid up home --degraded"]);
    let told = came(&scratch, "a.img").ok();
    assert!(!told.out.contains("next:"), "{told}");
    fs::write(&config, record).expect("a record");
    let told = scratch.run(&last).ok();
    assert!(told.out.contains("home has been started"), "{told}");
    let status = scratch.run(&["status", "home", "--json"]).ok().json();
    assert_eq!(status["volumes"][0]["state"], "degraded", "{status}");
    plug(&scratch, "b.img");
    let volumes = || scratch.run(&["status", "home", "--json"]).ok().json()["volumes"][0].clone();
    wait_until("the late member to be in", || volumes()["state"] == "online");
    scratch.run(&["down", "home"]).ok();
}

/// Members by links, as below /dev/disk/by-id: the one that is there is not the one that is missing, too.
#[test]
fn a_member_that_is_known_by_a_link_does_not_stand_for_another() {
    skip_unless_root!();
    let scratch = mirror();
    let links = ["disk-a", "disk-b"];
    let plugged = |index: usize| {
        let image = scratch.join(["a.img", "b.img"][index]);
        let device = LoopDevice::attach(&image)?;
        let link = scratch.join(links[index]);
        std::os::unix::fs::symlink(device.path(), &link).expect("a link");
        Some(device)
    };
    let (Some(first), Some(second)) = (plugged(0), plugged(1)) else { return };
    fs::remove_file(scratch.config_file("home")).expect("its record");
    scratch.run(&["assemble", links[0], links[1], "--as", "linked"]).ok();
    drop(second);
    fs::remove_file(scratch.join(links[1])).expect("a link");
    for by in [links[0], first.text()] {
        let told = came(&scratch, by).ok();
        assert!(told.out.contains("attached to linked, not enough to start safely"), "{told}");
    }
    let volume = scratch.up("linked", &["--attach", "none", "--degraded"]);
    assert_eq!(volume.status()["state"], "degraded");
    volume.down();
}

#[test]
fn what_no_record_names_is_the_kernel_s() {
    let scratch = mirror();
    fs::remove_file(scratch.config_file("home")).expect("a record");
    let before = scratch.read("a.img");
    let told = came(&scratch, "a.img").ok();
    assert!(told.out.contains("left to the kernel"), "{told}");
    let export = scratch.run(&["incremental", "--export", "a.img"]).ok().out;
    assert!(export.starts_with("BRAID_OWNER=kernel\n"), "{export}");
    scratch.sparse("blank.img", SIZE);
    scratch.run(&["incremental", "blank.img"]).fails(1, &["blank.img carries no md superblock"]);
    scratch.run(&["incremental", "--fail", "a.img"]).fails(1, &["a.img is no member of a volume"]);
    assert!(scratch.read("a.img") == before);
    // Two records are no answer.
    scratch.run(&["assemble", "a.img", "b.img", "--as", "one"]).ok();
    scratch.run(&["assemble", "a.img", "b.img", "--as", "two"]).ok();
    came(&scratch, "a.img").fails(REFUSED, &["is of two volumes: one and two"]);
}

#[test]
fn a_service_manager_hears_that_it_is_ready_lives_and_ends() {
    let scratch = mirror();
    let path = scratch.join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    let args = ["up", "home", "--foreground", "--attach", "none"];
    let tool = scratch.braid().args(args).env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "50000");
    let mut command = tool.into_command();
    let mut child = start(command.stdout(Stdio::null())).expect("braid can be started");
    let heard = || {
        let mut bytes = [0; 256];
        let count = socket.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    assert!(heard().starts_with("READY=1\nSTATUS=md("));
    assert_eq!(heard(), "WATCHDOG=1");
    assert_eq!(heard(), "WATCHDOG=1");
    send_signal(child.id(), Signal::TERM);
    wait_until("the end to be said", || heard() == "STOPPING=1");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn arrays_of_a_mdadm_conf_are_taken_over() {
    let scratch = mirror();
    let home = scratch.config_file("home");
    let taken = fs::read_to_string(&home).expect("a record");
    fs::remove_file(&home).expect("a record");
    let line = scratch.run(&["examine", "--brief", "a.img", "b.img"]).ok().out;
    let line = line.replace(" /dev/md/home ", " /dev/md/mirror ");
    let folder = scratch.path().display();
    let conf = format!(
        "# as administrators have it\nDEVICE {folder}/*.img\n{line}   spares=0 spare-group=g\n\
         ARRAY <ignore> UUID=1c8f6bb4:0a3b2c4d:5e6f7081:92a3b4c5\n"
    );
    fs::write(scratch.join("mdadm.conf"), conf).expect("a file");
    let before = scratch.read("a.img");
    let plan = scratch.run(&["assemble", "--mdadm-conf", "mdadm.conf", "--plan"]).ok();
    assert!(plan.out.contains("line 3: ") && plan.out.contains("would be written"), "{plan}");
    assert!(!scratch.config_file("mirror").exists());
    let told = scratch.run(&["assemble", "--mdadm-conf", "mdadm.conf"]).ok();
    let uuid = line.split("UUID=").nth(1).and_then(|rest| rest.split(' ').next()).expect("a UUID");
    assert!(told.out.contains(&format!("ARRAY <ignore> UUID={}", uuid.trim())), "{told}");
    let record = fs::read_to_string(scratch.config_file("mirror")).expect("a record");
    let (record, group) = (record.replace("spare-group = \"g\"\n", ""), record);
    assert_ne!(record, group, "the group is taken over, too");
    assert_eq!(record, taken, "as if it had been created here");
    assert!(scratch.read("a.img") == before, "members are not written");
    let told = came(&scratch, "a.img").ok();
    assert!(told.out.contains("attached to mirror, which has been started"), "{told}");
    let status = scratch.run(&["status", "mirror", "--json"]).ok().json();
    assert_eq!(status["volumes"][0]["spare_group"], "g");
    scratch.run(&["down", "mirror"]).ok();
    fs::write(scratch.join("mdadm.conf"), "ARRAY /dev/md0 UUID=12\n").expect("a file");
    scratch.run(&["assemble", "--mdadm-conf", "mdadm.conf"]).fails(2, &["line 1", "is no UUID"]);
    // What has no end is not read to its end.
    scratch.run(&["assemble", "--mdadm-conf", "/dev/zero"]).fails(1, &["more than 16 MiB"]);
    let away = format!("DEVICE {folder}/*.none\n{line}");
    fs::write(scratch.join("mdadm.conf"), away).expect("a file");
    let missing = ["line 2: no member of it is there"];
    scratch.run(&["assemble", "--mdadm-conf", "mdadm.conf"]).fails(1, &missing);
}

#[test]
fn lines_for_mdadm_conf_are_mdadm_s() {
    skip_without!("mdadm");
    let scratch = mirror();
    for name in ["c.img", "d.img", "e.img"] {
        scratch.sparse(name, SIZE);
    }
    let members = ["c.img", "d.img", "--spare", "e.img"];
    let create = ["create", "other", "--level", "raid1", "--assume-clean"];
    scratch.run(&[&create[..], &members].concat()).ok();
    let all = ["a.img", "b.img", "c.img", "d.img", "e.img"];
    for verbose in [&[][..], &["--verbose"]] {
        let options = [&["--brief"], verbose].concat();
        let ours = scratch.run(&[&["examine"], &options[..], &all].concat()).ok().out;
        let mdadm = Tool::new("mdadm").arg("--examine").args(&options).args(all);
        let theirs = mdadm.folder(scratch.path()).run().ok().out;
        assert_eq!(ours, theirs);
    }
}

/// The verdict of systemd about the units that a package installs, with a program in place of braid's. The
/// rights of a service must not grow: tenths of the exposure that `systemd-analyze security` counts.
#[test]
fn systemd_takes_the_units() {
    skip_without!("systemd-analyze");
    let scratch = Scratch::new();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let mut units = Vec::new();
    for entry in fs::read_dir(packaging).expect("the units").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".service") && !name.ends_with(".timer") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a unit");
        let unit = scratch.join(&name);
        fs::write(&unit, text.replace("/usr/bin/braid", "/bin/true")).expect("a file");
        if name.ends_with(".service") && name != "braid@.service" {
            assert_exposed_by_no_more(&unit, 35);
        }
        units.push(unit);
    }
    assert_eq!(units.len(), 9, "{units:?}");
    let verified = Tool::new("systemd-analyze").args(["verify", "--man=no"]).args(&units).run();
    // Where no systemd runs it has nothing but the files, which is what is asked about.
    assert_eq!((verified.err.trim(), verified.code()), ("", 0), "{verified}");

    // A volume's unit, with the network and without it.
    let home = scratch.join("braid@home.service");
    fs::copy(scratch.join("braid@.service"), &home).expect("a unit");
    assert_exposed_by_no_more(&home, 40);
    fs::create_dir(scratch.join("records")).expect("a folder");
    let record = |more: &str| {
        let text = format!("stack = \"ram(1M)\"\n{more}");
        fs::write(scratch.join("records/home.toml"), text).expect("a record");
    };
    record("");
    assert_eq!(without(&scratch, "network", scratch.path()), ["home"]);
    assert_exposed_by_no_more(&home, 35);
    fs::remove_dir_all(scratch.join("braid@home.service.d")).expect("a folder");

    // With the network, and nothing that it mounts.
    record("attach = \"none\"\nnbd = [\"tcp:10809\"]\n");
    assert_eq!(without(&scratch, "network", scratch.path()), [""; 0]);
    assert_eq!(without(&scratch, "mounts", scratch.path()), ["home"]);
    assert_exposed_by_no_more(&home, 35);
}

/// `most` is in tenths.
#[track_caller]
fn assert_exposed_by_no_more(unit: &Path, most: u32) {
    let analyze = ["security", "--no-pager", "--offline=true"];
    let threshold = format!("--threshold={most}");
    Tool::new("systemd-analyze").args(analyze).arg(threshold).arg(unit).run().ok();
}

/// Runs the generator over the records in `records`, with systemd's folders in `units`. Returns the volumes whose units
/// have no `what`, in `made`.
#[track_caller]
fn without(scratch: &Scratch, what: &str, made: &Path) -> Vec<String> {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    Tool::new(packaging.join("system-generators/braid"))
        .env("BRAID_CONFIG_DIR", scratch.join("records"))
        .env("BRAID_RUN_DIR", scratch.join("starts"))
        .env("SYSTEMD_UNIT_PATH", scratch.join("units"))
        .arg(made)
        .run()
        .ok();
    let volume = |name: &str| {
        let name = name.strip_prefix("braid@")?.strip_suffix(".service.d")?;
        let drop_in = made.join(format!("braid@{name}.service.d/50-no-{what}.conf"));
        drop_in.exists().then(|| name.to_owned())
    };
    let entries = fs::read_dir(made).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| volume(entry.file_name().to_str()?)).collect();
    names.sort();
    names
}

/// The same, in a folder of its own for each turn.
#[track_caller]
fn made(scratch: &Scratch, what: &str, turn: u32) -> Vec<String> {
    let made = scratch.join(&format!("made{turn}"));
    fs::create_dir(&made).expect("a folder");
    without(scratch, what, &made)
}

/// Writes a file of the generator's folders.
fn put(scratch: &Scratch, name: &str, text: &str) {
    let path = scratch.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

#[test]
fn volumes_that_may_listen_on_tcp_keep_the_network() {
    let scratch = Scratch::new();
    let put = |name: &str, text: &str| put(&scratch, name, text);
    let mut turns = 0..;
    let mut without = || made(&scratch, "network", turns.next().expect("a number"));
    assert_eq!(without(), [""; 0], "no record");
    let record = "stack = \"ram(1M)\"\n";
    for name in ["home", "home-2", "pair", "unix"] {
        put(&format!("records/{name}.toml"), record);
    }
    put("records/unix.toml", &format!("{record}nbd = [\"unix:/run/x\"]\n"));
    put("records/tcp.toml", &format!("{record}nbd = [\n  \"unix:/run/x\",\n  \"tcp:[::1]:1\"]\n"));
    put("records/monitor.toml", "interval = \"5s\"\n");
    assert_eq!(without(), ["home", "home-2", "pair", "unix"]);
    // What is asked for one start, as JSON or as variables.
    put("starts/home.spec", r#"{"nbd":["tcp:10809"]}"#);
    put("starts/pair.start", "BRAID_UP_OPTIONS=--nbd=tcp:1\n");
    assert_eq!(without(), ["home-2", "unix"]);
    fs::remove_dir_all(scratch.join("starts")).expect("a folder");

    // Drop-ins of one volume, of those whose names begin alike, and of all.
    let other = "[Service]\nWatchdogSec=20\nEnvironment=BRAID_UP_OPTIONS=--degraded\n";
    put("units/braid@home.service.d/other.conf", other);
    assert_eq!(without(), ["home", "home-2", "pair", "unix"]);
    let options = "[Service]\nEnvironment=\"BRAID_UP_OPTIONS=--nbd tcp:1\"\n";
    put("units/braid@home.service.d/options.conf", options);
    assert_eq!(without(), ["pair", "unix"], "`home` begins `home-2`, too");
    put(
        "units/braid@pai.service.d/elsewhere.conf",
        "[Service]\nEnvironmentFile=-/etc/default/braid\n",
    );
    assert_eq!(without(), ["unix"]);
    put("units/braid@.service.d/options.conf", "[Service]\nExecStart=\nExecStart=/bin/true\n");
    assert_eq!(without(), [""; 0]);
    fs::remove_dir_all(scratch.join("units")).expect("a folder");
    // A unit in place of the package's may do anything.
    put("units/braid@unix.service", "[Service]\nExecStart=/bin/true\n");
    assert_eq!(without(), ["home", "home-2", "pair"]);
    put("units/braid@.service", "[Service]\nExecStart=/bin/true\n");
    assert_eq!(without(), [""; 0]);
}

#[test]
fn volumes_that_may_be_attached_keep_their_mounts() {
    let scratch = Scratch::new();
    let put = |name: &str, text: &str| put(&scratch, name, text);
    let mut turns = 0..;
    let mut without = || made(&scratch, "mounts", turns.next().expect("a number"));
    for (name, attach) in [("auto", "auto"), ("fuse", "fuse"), ("home", "none"), ("net", "none")] {
        let text = format!("stack = \"ram(1M)\"\nattach = \"{attach}\"\nnbd = [\"tcp:1\"]\n");
        put(&format!("records/{name}.toml"), &text);
    }
    put("records/unsaid.toml", "stack = \"ram(1M)\"\n");
    assert_eq!(without(), ["home", "net"]);
    // Starts that ask for a device, and one that asks for none.
    put("starts/home.spec", r#"{"name":"home","attach":"auto"}"#);
    put("starts/net.spec", r#"{"name":"net","attach":"none"}"#);
    assert_eq!(without(), ["net"]);
    put("starts/net.start", "BRAID_UP_OPTIONS=--attach=fuse\n");
    assert_eq!(without(), [""; 0]);
    fs::remove_dir_all(scratch.join("starts")).expect("a folder");
    let options = "[Service]\nEnvironment=\"BRAID_UP_OPTIONS=--attach fuse\"\n";
    put("units/braid@net.service.d/options.conf", options);
    assert_eq!(without(), ["home"]);
}

/// The property from which udev makes the link `/dev/braid/NAME`, for fstab; also if the volume is a member of
/// another one.
#[test]
fn udev_is_told_which_volume_a_block_device_is_of() {
    skip_unless_root!();
    let scratch = mirror();
    let volume = match UpVolume::start(&scratch, "home", &["--attach", "fuse"]) {
        Ok(volume) => volume,
        Err(output) => return println!("skipped: it is not attached here: {}", output.err.trim()),
    };
    let device = volume.device().display().to_string();
    let asked = || scratch.run(&["incremental", "--export", "--no-start", &device]);
    assert_eq!(asked().ok().out, "BRAID_EXPORT=home\n");
    scratch
        .run(&["create", "outer", "--level", "raid1", "--assume-clean", &device, "missing"])
        .ok();
    let both = asked().ok().out;
    assert!(both.starts_with("BRAID_EXPORT=home\nBRAID_OWNER=braid\n"), "{both}");
}
