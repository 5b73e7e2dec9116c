//! Nothing is overwritten that was not named, and no device in use: whole campaigns, with a comparison of the
//! bytes before and after.

use std::path::Path;

use super::{Lab, tally};
use crate::common::{
    LoopDevice, MIB, Mounted, Tool, pattern, skip_unless_root, skip_without, with_files_open,
};

/// A file of a pattern; its bytes must be found again.
fn precious(lab: &Lab, name: &str) -> (String, Vec<u8>) {
    let path = lab.scratch.file(name, 16 * MIB, 7);
    (path.display().to_string(), bytes(&path))
}

fn bytes(path: &Path) -> Vec<u8> {
    with_files_open(|| std::fs::read(path)).expect("a member can be read")
}

/// One subject that is only read, one that is written, and nothing else in common.
fn read_and_write(read: &str, written: &str, job: &str) -> String {
    format!(
        "name = \"apart\"\nrepetitions = 2\nruntime_s = 0.2\nregion = \"8M\"\n\
         [[subject]]\nname = \"precious\"\n{read}\nbaseline = true\n\
         [[subject]]\nname = \"scratch\"\n{written}\n\
         [[job]]\n{job}\nop = \"read\"\nsubjects = [\"precious\"]\n\
         [[job]]\n{job}\nop = \"write\"\nsubjects = [\"scratch\"]\n"
    )
}

#[test]
fn what_is_only_read_keeps_its_bytes_whatever_else_is_written() {
    skip_without!("fio");
    for key in ["stack", "path"] {
        let lab = Lab::new();
        let (keep, before) = precious(&lab, "keep.img");
        let scratch = lab.scratch.sparse("a.img", 16 * MIB).display().to_string();
        let text = read_and_write(
            &format!("{key} = \"{keep}\""),
            &format!("{key} = \"{scratch}\""),
            "pattern = \"rand\"",
        );
        let file = lab.campaign(&text);
        let planned = lab.run(&["plan", &file]).ok();
        let written = planned.out.split("\nwritten\n").nth(1).unwrap_or_default();
        assert!(!written.contains("keep.img: 8"), "{planned}");
        let results = lab.results().display().to_string();
        lab.run(&["run", &file, "--out", &results, "--quiet", "--destroy", &scratch]).ok();
        assert_eq!(tally(&lab.results()).measured, 4);
        assert!(bytes(Path::new(&keep)) == before, "{key}: it was written");
        assert!(bytes(Path::new(&scratch)).iter().any(|byte| *byte != 0), "nothing was written");
    }
}

/// The superblocks of a new array, and its resync, are writes of no tool.
#[test]
fn an_array_that_is_only_read_must_be_named() {
    skip_without!("fio");
    for stack in
        ["raid1(KEEP, OTHER)", "raid1(KEEP, missing)", "raid0(ram(16M), raid1(KEEP, ram(16M)))"]
    {
        let lab = Lab::new();
        let (keep, before) = precious(&lab, "keep.img");
        let other = lab.scratch.sparse("other.img", 16 * MIB).display().to_string();
        let stack = stack.replace("KEEP", &keep).replace("OTHER", &other);
        let text = format!(
            "name = \"mirror\"\nrepetitions = 1\nruntime_s = 0.2\nregion = \"4M\"\n\
             [[subject]]\nname = \"array\"\nstack = \"{stack}\"\n[[job]]\npattern = \"seq\"\nop = \"read\"\n"
        );
        let results = lab.results().display().to_string();
        let file = lab.campaign(&text);
        let refused = lab.run(&["run", &file, "--out", &results, "--destroy", &other]);
        refused.fails(3, &[&format!("--destroy {keep}")]);
        assert!(bytes(Path::new(&keep)) == before, "{stack}: it was written");
    }
}

/// A loop device with ext4 on it, mounted, and a file there: the campaign may destroy the device,
/// and must not while it is mounted.
#[test]
fn what_is_mounted_is_not_written_under_its_mount() {
    skip_unless_root!();
    skip_without!("losetup", "mkfs.ext4", "e2fsck", "dd");
    let lab = Lab::new();
    let image = lab.scratch.sparse("disk.img", 64 * MIB);
    let other = lab.scratch.sparse("other.img", 64 * MIB).display().to_string();
    let Some(device) = LoopDevice::attach(&image) else { return };
    Tool::new("mkfs.ext4").args(["-q", "-F"]).arg(device.path()).run().ok();
    let mount = Mounted::device(device.path(), &lab.scratch.join("mounted"));
    let note = mount.point().join("note");
    with_files_open(|| std::fs::write(&note, pattern(3, 0, MIB))).expect("a file can be written");
    Tool::new("sync").run().ok();
    let image = image.display().to_string();
    let subjects = [
        (format!("path = \"{}\"", device.text()), device.text()),
        // The file behind it, and as a member of an array of the kernel's.
        (format!("path = \"{image}\""), image.as_str()),
        (format!("kernel = \"raid0({}, {other})\"", device.text()), device.text()),
        (format!("stack = \"raid0({}, {other})\"", device.text()), device.text()),
    ];
    for (number, (subject, named)) in subjects.into_iter().enumerate() {
        let text = format!(
            "name = \"mounted\"\nrepetitions = 1\nregion = \"8M\"\n\
             [[subject]]\nname = \"it\"\n{subject}\n\
             [[job]]\ntool = \"dd\"\nop = [\"read\", \"write\"]\nsize = \"4M\"\nbs = \"1M\"\n"
        );
        let file = lab.campaign(&text);
        let results = lab.scratch.join(&format!("results{number}")).display().to_string();
        let words = ["run", &file, "--out", &results, "--destroy", named, "--destroy", &other];
        lab.run(&words).fails(3, &["in use", "mounted at", "next: umount"]);
    }
    assert!(bytes(&note) == pattern(3, 0, MIB));
    mount.unmount();
    Tool::new("e2fsck").args(["-f", "-n"]).arg(device.path()).run().ok();
}
