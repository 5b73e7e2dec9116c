//! A guest that boots from ext4 on a braid raid1 over two disks, loses one, and boots again.
//!
//! ```text
//!   here                                              guest (qemu, a real kernel)
//!   create, mkfs.ext4 -d, down  ──▶ a.img b.img ──▶   initramfs: hook of packaging/, braid up
//!   mkinitramfs with the hooks  ──▶ initrd      ──▶   root file system on the volume: `init.sh`
//!   examine                     ◀── a.img b.img ◀──   read-only, power off
//! ```
//!
//! The kernel is the one in `$BRAID_GUEST`: a folder with `vmlinuz`, `config` and `lib/modules/VERSION`.
//! `make guest` fetches one and runs this.

#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{MIB, Scratch, Tool, find_program, skip_without};

/// With a processor that is emulated, beside other tests.
const BOOT: Duration = Duration::from_secs(400);
const DISK: u64 = 96 * MIB;
/// An array of a volume that is not needed to boot.
const OTHER: &str = "1c8f6bb4:0a3b2c4d:5e6f7081:92a3b4c5";

/// The guest's kernel, and what belongs to it.
struct Kernel {
    folder: PathBuf,
    version: String,
}

impl Kernel {
    fn find() -> Result<Kernel, String> {
        let folder = std::env::var_os("BRAID_GUEST").filter(|path| !path.is_empty());
        let folder = folder
            .map(PathBuf::from)
            .ok_or("$BRAID_GUEST names no kernel: `make guest` fetches one")?;
        let modules = folder.join("lib/modules");
        let entries =
            fs::read_dir(&modules).map_err(|error| format!("{}: {error}", modules.display()))?;
        let version = entries.flatten().find_map(|entry| entry.file_name().into_string().ok());
        Ok(Kernel { version: version.ok_or("no modules")?, folder })
    }
}

/// What the guest said, line by line.
struct Said(String);

impl Said {
    /// What follows `what` in the guest's words.
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

/// The program without symbols, and the libraries that it needs.
fn program(scratch: &Scratch) -> (PathBuf, Vec<PathBuf>) {
    let program = scratch.join("over/bin/braid");
    fs::create_dir_all(scratch.join("over/bin")).expect("a folder can be made");
    Tool::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_braid")).run().ok();
    let needs = Tool::new("ldd").arg(&program).run().ok().out;
    let paths = needs.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    (program.clone(), paths.collect())
}

/// What will be the root file system.
fn root_folder(scratch: &Scratch) -> PathBuf {
    let root = scratch.join("root");
    for folder in ["dev", "proc", "sys", "run", "tmp", "etc", "bin"] {
        fs::create_dir_all(root.join(folder)).expect("a folder can be made");
    }
    let (program, libraries) = program(scratch);
    copy(&program, &root.join("usr/bin/braid"));
    for library in libraries {
        copy(&library, &root.join(library.strip_prefix("/").expect("it begins with one")));
    }
    copy(Path::new("/bin/busybox"), &root.join("bin/busybox"));
    put(&root.join("sbin/init"), include_str!("init.sh"), 0o755);
    root
}

/// Two disks with the root file system on a raid1 of them; answers the array's identifier.
fn make_disks(scratch: &Scratch, bitmap: &str) -> String {
    scratch.sparse("a.img", DISK);
    scratch.sparse("b.img", DISK);
    scratch.run(&["create", "root", "--level", "1", "--bitmap", bitmap, "a.img", "b.img"]).ok();
    let volume = scratch.up("root", &["--attach", "fuse"]);
    let device = volume.device.clone().expect("a block device");
    Tool::new("mkfs.ext4").args(["-q", "-d"]).arg(root_folder(scratch)).arg(&device).run().ok();
    // Its first resync has ended when a check has.
    scratch.run(&["scrub", "root", "--wait"]).ok();
    let uuid = volume.status()["arrays"][0]["uuid"].as_str().expect("an identifier").to_owned();
    volume.down();
    uuid
}

/// What the machine will be booted with: mkinitramfs with the package's hooks.
fn make_initramfs(scratch: &Scratch, kernel: &Kernel, uuid: &str) {
    let mut record = "stack = \"md(/dev/vda, /dev/vdb)\"\nattach = \"fuse\"\n".to_owned();
    for disk in ["a", "b"] {
        record += &format!(
            "\n[[member]]\npath = \"/dev/vd{disk}\"\nidentity = \"serial disk-{disk}\"\nsize_bytes = {DISK}\n\
             array = \"{uuid}\"\n"
        );
    }
    put(&scratch.join("over/etc/braid/root.toml"), &record, 0o600);
    put(&scratch.join("over/etc/braid/initramfs"), "root\n", 0o644);
    // A volume that is not needed to boot.
    put(
        &scratch.join("over/etc/braid/other.toml"),
        &format!("[[member]]\narray = \"{OTHER}\"\n"),
        0o600,
    );
    copy(
        &kernel.folder.join("config"),
        &scratch.join(&format!("over/boot/config-{}", kernel.version)),
    );
    let conf = scratch.join("conf");
    Tool::new("cp").args(["-r", "/etc/initramfs-tools"]).arg(&conf).run().ok();
    put(
        &conf.join("initramfs.conf"),
        "MODULES=list\nBUSYBOX=y\nCOMPRESS=gzip\nKEYMAP=n\nDEVICE=\nNFSROOT=auto\nRUNSIZE=10%\nFSTYPE=ext4\n",
        0o644,
    );
    put(&conf.join("modules"), "virtio_pci\nvirtio_blk\next4\n", 0o644);
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/initramfs-tools");
    for file in ["hooks/braid", "scripts/local-top/braid"] {
        let text = fs::read_to_string(packaging.join(file)).expect("a file of the package");
        put(&conf.join(file), &text, 0o755);
    }
    // It takes modules, kernel configurations, records and programs from fixed places: laid over
    // these for it alone.
    let script = "set -e; cd \"$1\"\n\
                  for place in /etc /boot; do\n\
                      mount -t overlay -o lowerdir=$1/over$place:$place over $place; done\n\
                  mount -t overlay -o lowerdir=$1/over/bin:/usr/bin over /usr/bin\n\
                  mount -t overlay -o lowerdir=$2/lib:/usr/lib over /usr/lib\n\
                  mkinitramfs -d $1/conf -o $1/initrd $3";
    let made = Tool::new("unshare").args(["-m", "sh", "-ec", script, "sh"]);
    made.arg(scratch.path()).arg(&kernel.folder).arg(&kernel.version).limit(BOOT).run().ok();
    if find_program("mdadm").is_none() {
        return println!("skipped: mdadm is not installed, so it is not in the initramfs");
    }
    let (initrd, unpacked) = (scratch.join("initrd"), scratch.join("unpacked"));
    Tool::new("unmkinitramfs").arg(initrd).arg(&unpacked).run().ok();
    // An early part with the processor's microcode makes it two.
    let conf = ["etc", "main/etc"].map(|etc| unpacked.join(etc).join("mdadm/mdadm.conf"));
    let conf = conf.iter().find_map(|path| fs::read_to_string(path).ok()).expect("mdadm's file");
    for array in [uuid, OTHER] {
        let line = format!("ARRAY <ignore> UUID={array}");
        assert_eq!(conf.lines().filter(|one| *one == line).count(), 1, "{line} in {conf}");
    }
}

/// Boots with these disks until the guest has powered off.
fn boot(scratch: &Scratch, kernel: &Kernel, disks: &[&str], todo: &str) -> Said {
    let append = format!(
        "console=ttyS0 root=/dev/braid/root rootfstype=ext4 rw quiet panic=-1 braid.wait=3 braid.do={todo}"
    );
    let mut guest = Tool::new("qemu-system-x86_64")
        .args(["-M", "q35", "-cpu", "max", "-m", "768", "-smp", "1", "-nographic", "-no-reboot"])
        .args(["-net", "none", "-kernel"])
        .arg(kernel.folder.join("vmlinuz"))
        .arg("-initrd")
        .arg(scratch.join("initrd"))
        .args(["-append", &append]);
    for disk in disks {
        let image = scratch.join(&format!("{disk}.img"));
        guest = guest
            .arg("-drive")
            .arg(format!("if=none,id={disk},file={},format=raw", image.display()))
            .arg("-device")
            .arg(format!("virtio-blk-pci,drive={disk},serial=disk-{disk}"));
    }
    let said = Said(guest.folder(scratch.path()).limit(BOOT).run().ok().out);
    println!(
        "{}",
        said.0.lines().filter(|line| line.contains("guest: ")).collect::<Vec<_>>().join("\n")
    );
    assert_eq!(said.of("root"), "/dev/braid/root ext4");
    assert_eq!(said.of("argv0"), "@braid", "systemd would end it with all others");
    assert_eq!(said.of("ro"), "0");
    said
}

#[test]
fn a_machine_boots_from_a_mirror_loses_a_disk_and_boots_again() {
    let kernel = match Kernel::find() {
        Ok(kernel) => kernel,
        Err(why) => return println!("skipped: {why}"),
    };
    skip_without!("qemu-system-x86_64", "mkinitramfs", "busybox", "mkfs.ext4", "strip", "unshare");
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can mount");
    }
    let scratch = Scratch::new();
    let uuid = make_disks(&scratch, "internal");
    make_initramfs(&scratch, &kernel, &uuid);

    let said = boot(&scratch, &kernel, &["a", "b"], "nothing");
    assert_eq!((said.of("boot"), said.of("in_sync")), ("1", "true,true"));
    // Nobody took the volume down: it was read-only when the power went.
    for disk in ["a.img", "b.img"] {
        assert_eq!(scratch.states(disk), ("clean".to_owned(), "AA".to_owned()), "{disk}");
    }
    let said = boot(&scratch, &kernel, &["b"], "nothing");
    assert_eq!((said.of("boot"), said.of("in_sync")), ("2", "false,true"), "one disk is lost");
    assert_eq!(scratch.states("b.img"), ("clean".to_owned(), ".A".to_owned()));
    // The disk is back. Its path is found where /dev is since init has changed its root.
    let said = boot(&scratch, &kernel, &["a", "b"], "re-add");
    assert_eq!((said.of("boot"), said.of("later")), ("3", "true,true"));
    for disk in ["a.img", "b.img"] {
        assert_eq!(scratch.states(disk), ("clean".to_owned(), "AA".to_owned()), "{disk}");
    }
    let scrubbed = scratch.up("root", &["--attach", "none", "--accept-members"]);
    scratch.run(&["scrub", "root", "--wait"]).ok();
    scrubbed.down();
}
