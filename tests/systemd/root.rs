//! A guest that boots from ext4 on a mirror of two disks, loses one, and boots again; by an initramfs of
//! initramfs-tools, and then by dracut's, which has systemd in it.
//!
//! ```text
//!   here                                         guest
//!   create, mkfs.ext4 -d, down ──▶ a.img b.img ──▶ Debian, with the package: mkinitramfs ──▶ initrd
//!   its system, mounted: dracut ──▶ initrd
//!                                  a.img b.img ──▶ initrd: braid up ──▶ root file system on it: `init.sh`
//!   examine                    ◀── a.img b.img ◀── read-only, power off
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{MIB, Mounted, Scratch, Tool, skip_unless_root, skip_without};
use crate::machine::{Boot, Disk, PATIENCE, run};
use crate::{Site, assemble};

/// An array of a volume that is not needed to boot.
const OTHER: &str = "1c8f6bb4:0a3b2c4d:5e6f7081:92a3b4c5";

/// The output of a guest, line by line.
struct Said(String);

impl Said {
    /// The text after `what` in the guest's output.
    #[track_caller]
    fn of(&self, what: &str) -> &str {
        let found =
            self.0.lines().find_map(|line| line.trim().strip_prefix(&format!("guest: {what} ")));
        found.unwrap_or_else(|| panic!("the guest said nothing of {what}:\n{}", self.0)).trim()
    }
}

fn put(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder can be made");
    fs::write(path, text).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode can be set");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a file in a folder")).expect("a folder can be made");
    fs::copy(from, to)
        .unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}

/// The future root file system: the program, the libraries that it needs, and a shell.
fn root_folder(scratch: &Scratch) -> PathBuf {
    let root = scratch.join("root");
    for folder in ["dev", "proc", "sys", "run", "tmp", "etc", "bin"] {
        fs::create_dir_all(root.join(folder)).expect("a folder can be made");
    }
    let built = Path::new(env!("CARGO_BIN_EXE_braid"));
    let volume = built.with_file_name("braid-volume");
    let strip = |from: &Path, to: &Path| {
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder can be made");
        Tool::new("strip").arg("-o").arg(to).arg(from).run().ok();
    };
    strip(built, &root.join("usr/bin/braid"));
    strip(&volume, &root.join("usr/libexec/braid/braid-volume"));
    let needs = Tool::new("ldd").args([built, &volume]).run().ok().out;
    // Of several programs, each has a line with its path and a colon above its libraries.
    let paths = needs.split_whitespace().filter(|word| !word.ends_with(':'));
    for library in paths.filter_map(|word| word.strip_prefix('/')) {
        copy(&Path::new("/").join(library), &root.join(library));
    }
    copy(Path::new("/bin/busybox"), &root.join("bin/busybox"));
    put(&root.join("sbin/init"), include_str!("init.sh"), 0o755);
    // systemd changes to nothing that does not say what it is.
    put(&root.join("etc/os-release"), "ID=guest\n", 0o644);
    root
}

/// Two disks with the root file system on a raid1 of them; answers the array's identifier.
fn make_disks(scratch: &Scratch) -> String {
    scratch.sparse("a.img", 96 * MIB);
    scratch.sparse("b.img", 96 * MIB);
    scratch.run(&["create", "root", "--level", "1", "--bitmap", "internal", "a.img", "b.img"]).ok();
    let volume = scratch.up("root", &["--attach", "fuse"]);
    let device = volume.device.clone().expect("a block device");
    Tool::new("mkfs.ext4").args(["-q", "-d"]).arg(root_folder(scratch)).arg(&device).run().ok();
    // Its first resync has ended when a check has.
    scratch.run(&["scrub", "root", "--wait"]).ok();
    let uuid = volume.status()["arrays"][0]["uuid"].as_str().expect("an identifier").to_owned();
    volume.down();
    uuid
}

/// Has Debian make what the machine will be booted with.
fn make_initrd(site: &Site) -> PathBuf {
    let scratch = &site.scratch;
    scratch.sparse("out.img", 256 * MIB);
    let mut machine = site.boot(&["a", "b", "out"]);
    machine.ok(&format!(
        "set -e; {}
         echo root >/etc/braid/initramfs
         printf '[[member]]\\narray = \"{OTHER}\"\\n' >/etc/braid/other.toml
         echo ext4 >>/etc/initramfs-tools/modules
         mkinitramfs -o /tmp/initrd
         dd if=/tmp/initrd of=/dev/disk/by-id/virtio-out bs=1M conv=fsync status=none",
        assemble("root", ["a", "b"])
    ));
    let length = machine.ok("stat -c %s /tmp/initrd").parse().expect("a length");
    machine.power_off();
    let initrd = scratch.join("out.img");
    let file = fs::OpenOptions::new().write(true).open(&initrd).expect("the disk");
    file.set_len(length).expect("the file that it holds");
    initrd
}

/// The same by dracut, which would take a quarter of an hour on an emulated processor: here, with the system of
/// the guest, that [`make_initrd`] has told of the volume, as its root.
fn make_initrd_by_dracut(site: &Site) -> PathBuf {
    let scratch = &site.scratch;
    let (system, raw) = (scratch.join("system"), scratch.join("system.raw"));
    Tool::new("qemu-img").args(["convert", "-O", "raw"]).arg(&system).arg(&raw).run().ok();
    let mounted = Mounted::device(&raw, &scratch.join("mounted"));
    let root = mounted.point();
    let modules = fs::read_dir(root.join("usr/lib/modules")).expect("modules").flatten();
    let version = modules.map(|entry| entry.file_name()).next().expect("a kernel's");
    // It looks for devices, processes and what it runs on.
    let script = "mount -t proc proc /proc; mount -t devtmpfs dev /dev; \
        dracut --no-hostonly --gzip --add-drivers 'ext4 virtio_blk virtio_pci' --kver $0 /initrd";
    Tool::new("unshare")
        .args(["--mount", "--fork", "chroot"])
        .arg(root)
        .args(["sh", "-c", script])
        .arg(&version)
        .limit(PATIENCE)
        .run()
        .ok();
    let initrd = scratch.join("dracut.img");
    copy(&root.join("initrd"), &initrd);
    mounted.unmount();
    initrd
}

/// Boots with these disks until the guest has powered off.
fn boot(site: &Site, initrd: &Path, disks: &[&str], todo: &str) -> Said {
    let boot = Boot {
        initrd: initrd.to_owned(),
        append: format!("root=/dev/braid/root rootfstype=ext4 rw braid.wait=3 braid.do={todo}"),
        system: None,
        disks: disks.iter().map(|name| Disk::of(&site.scratch, name)).collect(),
    };
    let said = Said(run(&site.scratch, &site.debian, &boot));
    let of_guest = said.0.lines().filter(|line| line.contains("guest: "));
    println!("{}", of_guest.collect::<Vec<_>>().join("\n"));
    // systemd says where the link leads to.
    assert!(["/dev/braid/root ext4", "/dev/loop0 ext4"].contains(&said.of("root")));
    assert_eq!(said.of("argv0"), "@braid-volume", "systemd would end it with all others");
    assert_eq!(said.of("ro"), "0");
    said
}

#[track_caller]
fn assert_states(scratch: &Scratch, disks: &[&str], array: &str) {
    for disk in disks {
        assert_eq!(scratch.states(disk), ("clean".to_owned(), array.to_owned()), "{disk}");
    }
}

/// The guest counts its boots from `first`.
fn boots_loses_a_disk_and_boots_again(site: &Site, initrd: &Path, first: u32) {
    let scratch = &site.scratch;
    let nth = |more: u32| (first + more).to_string();
    let said = boot(site, initrd, &["a", "b"], "nothing");
    assert_eq!((said.of("boot"), said.of("in_sync")), (nth(0).as_str(), "true,true"));
    // The volume was not taken down: it was read-only when the power failed.
    assert_states(scratch, &["a.img", "b.img"], "AA");
    let said = boot(site, initrd, &["b"], "nothing");
    assert_eq!(
        (said.of("boot"), said.of("in_sync")),
        (nth(1).as_str(), "false,true"),
        "one disk is lost"
    );
    assert_states(scratch, &["b.img"], ".A");
    // The disk is back. Its path is found where /dev is since init has changed its root.
    let said = boot(site, initrd, &["a", "b"], "re-add");
    assert_eq!((said.of("boot"), said.of("later")), (nth(2).as_str(), "true,true"));
    assert_states(scratch, &["a.img", "b.img"], "AA");
    let scrubbed = scratch.up("root", &["--attach", "none", "--accept-members"]);
    scratch.run(&["scrub", "root", "--wait"]).ok();
    scrubbed.down();
}

#[test]
fn a_machine_boots_from_a_mirror() {
    skip_without!("busybox", "mkfs.ext4", "strip", "unmkinitramfs");
    skip_unless_root!();
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    let uuid = make_disks(scratch);
    let initrd = make_initrd(&site);
    let unpacked = scratch.join("unpacked");
    Tool::new("unmkinitramfs").arg(&initrd).arg(&unpacked).run().ok();
    // An early part with the processor's microcode makes it two.
    let conf = ["etc", "main/etc"].map(|etc| unpacked.join(etc).join("mdadm/mdadm.conf"));
    let conf = conf.iter().find_map(|path| fs::read_to_string(path).ok()).expect("mdadm's file");
    for array in [uuid.as_str(), OTHER] {
        let line = format!("ARRAY <ignore> UUID={array}");
        assert_eq!(conf.lines().filter(|one| *one == line).count(), 1, "{line} in {conf}");
    }
    boots_loses_a_disk_and_boots_again(&site, &initrd, 1);
    boots_loses_a_disk_and_boots_again(&site, &make_initrd_by_dracut(&site), 4);
}
