//! braid as a service of a real systemd, its members by a real udev, installed by a real dpkg: in a guest.
//!
//! ```text
//!   here                                      guest: Debian, booted from a disk of its own
//!   scripts/deb.sh ──▶ braid.deb ──▶          dpkg -i
//!   a.img b.img … as disks       ──▶          udev ──▶ 64-braid-assembly.rules ──▶ braid@NAME
//!   disks come and go (QMP)      ──▶          udev ──▶ braid incremental ──▶ the volume's policy
//!   examine                      ◀── a.img …  power off
//! ```
//!
//! The guest is the one in `$BRAID_GUEST`, which `make guest` makes before it runs this; the program that is
//! installed there is `$BINARY`, or that of the tests. What is asserted are states; times are printed.

#[path = "../common/mod.rs"]
mod common;
mod installed;
mod machine;
mod many;
mod monitored;
mod page;
mod plugs;
mod root;
mod sandbox;
mod units;

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use common::{MIB, Scratch, Tool, package};
use machine::{Boot, Debian, Disk, Machine};

/// The setting of a test: a folder, and a guest's system with the package installed.
pub(crate) struct Site {
    pub(crate) scratch: Scratch,
    pub(crate) debian: Debian,
}

impl Site {
    /// None, which is said, where there are no guests.
    pub(crate) fn new() -> Option<Site> {
        let debian = match Debian::find() {
            Ok(debian) => debian,
            Err(why) => {
                println!("skipped: {why}");
                return None;
            }
        };
        let programs = ["qemu-system-x86_64", "qemu-img", "dpkg-deb", "strip", "sha256sum"];
        if let Some(program) = common::first_missing(&programs) {
            println!("skipped: {program} is not installed");
            return None;
        }
        let site = Site { scratch: Scratch::new(), debian };
        site.overlay(&site.installed(), &site.scratch.join("system"));
        Some(site)
    }

    /// The package of the program that is tested.
    pub(crate) fn package(&self, version: &str) -> PathBuf {
        let binary = std::env::var_os("BINARY").filter(|path| !path.is_empty());
        let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_braid").into());
        package(&self.scratch, Path::new(&binary), version)
    }

    fn overlay(&self, base: &Path, image: &Path) {
        let format = if base.ends_with("root.img") { "raw" } else { "qcow2" };
        let create =
            Tool::new("qemu-img").args(["create", "-q", "-f", "qcow2", "-F", format, "-b"]);
        create.arg(base).arg(image).run().ok();
    }

    /// A system's image with this package, which dpkg installed in a guest. It is kept beside the guest's
    /// until there is another package.
    fn installed(&self) -> PathBuf {
        // Tests are processes, and each would make one: a second one under the overlay of the first.
        let making = fs::File::create(self.debian.file("making")).expect("a lock");
        rustix::fs::flock(&making, FlockOperation::LockExclusive).expect("the lock");
        let package = self.package("0.0.1");
        let sum = Tool::new("sha256sum").arg(&package).run().ok().out;
        let made = self.debian.file(&format!("installed-{}", &sum[..16]));
        if made.exists() {
            return made;
        }
        for entry in fs::read_dir(self.debian.file("")).expect("a folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with("installed-") {
                fs::remove_file(entry.path()).expect("it was made here");
            }
        }
        let image = self.scratch.join("installed");
        self.overlay(&self.debian.file("root.img"), &image);
        let deb = as_disk(&self.scratch, "deb", &package);
        let mut machine = self.boot_from(&image, vec![deb]);
        machine.ok(&install(&package));
        machine.power_off();
        let copied = self.debian.file("installing");
        Tool::new("cp").arg(&image).arg(&copied).run().ok();
        fs::rename(copied, &made).expect("it was made here");
        made
    }

    fn boot_from(&self, system: &Path, disks: Vec<Disk>) -> Machine<'_> {
        let boot = Boot {
            initrd: self.debian.file("initrd"),
            append: "root=/dev/vda rw".to_owned(),
            system: Some(system),
            disks,
        };
        Machine::boot(&self.scratch, &self.debian, &boot)
    }

    /// Boots the system with these disks, images of its folder.
    pub(crate) fn boot(&self, disks: &[&str]) -> Machine<'_> {
        self.boot_with(disks.iter().map(|name| Disk::of(&self.scratch, name)).collect())
    }

    /// The same with any disks.
    pub(crate) fn boot_with(&self, disks: Vec<Disk>) -> Machine<'_> {
        self.boot_from(&self.scratch.join("system"), disks)
    }
}

/// A package as a disk: a copy whose end is one of a sector.
pub(crate) fn as_disk(scratch: &Scratch, name: &str, package: &Path) -> Disk {
    let mut bytes = fs::read(package).expect("a package");
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    let disk = Disk::of(scratch, name);
    fs::write(&disk.image, bytes).expect("a disk");
    disk
}

/// The commands that install what [`as_disk`] made a disk `deb` of.
pub(crate) fn install(package: &Path) -> String {
    let length = fs::metadata(package).expect("a package").len();
    format!(
        "udevadm settle; head -c {length} /dev/disk/by-id/virtio-deb >/tmp/braid.deb && dpkg -i /tmp/braid.deb; \
         status=$?; rm /tmp/braid.deb; exit $status"
    )
}

/// A mirror on two images, which the guest sees as disks of that name.
pub(crate) fn mirror(scratch: &Scratch, name: &str, disks: [&str; 2]) {
    let images = disks.map(|disk| format!("{disk}.img"));
    images.iter().for_each(|image| drop(scratch.sparse(image, 64 * MIB)));
    let create = ["create", name, "--level", "raid1", "--assume-clean", "--bitmap", "64K"];
    scratch.run(&[&create[..], &[&images[0], &images[1]]].concat()).ok();
}

/// Has the guest write its record. Before there is one, the array is the kernel's, whose mdadm has it.
pub(crate) fn assemble(name: &str, disks: [&str; 2]) -> String {
    let [a, b] = disks.map(|disk| format!("/dev/disk/by-id/virtio-{disk}"));
    format!("udevadm settle; mdadm --stop --scan; braid assemble {a} {b} --as {name}")
}
