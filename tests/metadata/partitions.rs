//! Members in partitions of images, as `dd` makes them of the disks of a NAS. sfdisk and fdisk make the
//! tables; mdadm, where it is installed, reads the partition by itself.

use std::io::Write;
use std::path::Path;

use crate::common::{MIB, Scratch, Tool, pattern, skip_without};
use crate::{FAILED, REFUSED, Unchanged};

const DISKS: [&str; 3] = ["d1.img", "d2.img", "d3.img"];

/// The disks get this table, as sfdisk reads it.
fn disks(scratch: &Scratch, size: u64, table: &str) {
    for name in DISKS {
        let disk = scratch.sparse(name, size);
        let script = scratch.join("table");
        std::fs::write(&script, table).expect("a script");
        let shell = format!("sfdisk --quiet {} <{}", disk.display(), script.display());
        Tool::new("sh").args(["-c", &shell]).run().ok();
        std::fs::remove_file(script).expect("a script");
    }
}

/// A NAS: system, swap and data on each disk.
const NAS: &str = "label: gpt\nsize=8M\nsize=2M\nsize=40M\n";

fn parts(number: u32) -> Vec<String> {
    DISKS.iter().map(|disk| format!("part({disk}, {number})")).collect()
}

fn create(scratch: &Scratch, name: &str, number: u32, options: &[&str]) {
    let parts = parts(number);
    let members: Vec<&str> = parts.iter().map(String::as_str).collect();
    let create = ["create", name, "--level", "raid5", "--assume-clean"];
    scratch.run(&[&create[..], options, &["--"], &members].concat()).ok();
}

/// The bytes of each disk in front of its third partition, and behind it.
fn around(scratch: &Scratch) -> Vec<Vec<u8>> {
    let of = |name: &&str| {
        let bytes = scratch.read(name);
        [&bytes[..(11 * MIB) as usize], &bytes[(51 * MIB) as usize..]].concat()
    };
    DISKS.iter().map(of).collect()
}

#[test]
fn arrays_on_partitions_of_images_are_made_found_and_served() {
    skip_without!("sfdisk");
    let scratch = Scratch::new();
    disks(&scratch, 60 * MIB, NAS);
    let before = around(&scratch);
    create(&scratch, "data", 3, &[]);
    let written = pattern(1, 0, MIB);
    let volume = scratch.up("data", &["--attach", "none"]);
    volume.client().write(0, &written, true).expect("a write");
    let status = volume.status();
    assert!(status["stack"].to_string().contains("part("), "{status:#}");
    volume.down();
    assert!(before == around(&scratch), "nothing but the partitions was written");
    // The second array of the same disks, then neither is known any more.
    create(&scratch, "system", 1, &["--metadata", "1.0"]);
    std::fs::remove_file(scratch.config_file("data")).expect("a record");
    std::fs::remove_file(scratch.config_file("system")).expect("a record");
    let folder = scratch.path().to_str().expect("plain names");
    let found = scratch.run(&["assemble", "--in", folder]).ok().out;
    for number in [1, 3] {
        let line = format!("{}, {number}), in sync", scratch.join("d2.img").display());
        assert!(found.contains(&line), "{line} in {found}");
    }
    let unchanged = Unchanged::since_now(&scratch);
    let stack = format!("md({})", parts(3).join(", "));
    let cat = scratch.braid().args(["cat", &stack, "--length", "1M"]).run();
    assert_eq!(cat.status.code(), Some(0), "{}", cat.err);
    let examined = scratch.run(&["examine", "part(d1.img, 3)"]).ok().out;
    assert!(examined.contains("Array Size"), "{examined}");
    unchanged.holds("reading");
    let volume = scratch.up(&stack, &["--name", "nas", "--attach", "none"]);
    assert!(volume.client().read(0, MIB as u32).expect("a read") == written);
    volume.down();
    // The array is that volume's, whatever it is called itself.
    let assembled = scratch.run(&["assemble", "--in", folder, "--name", "data"]).ok();
    assert!(assembled.out.contains("next: braid up nas"), "{assembled}");
    let volume = scratch.up("nas", &["--attach", "none"]);
    assert!(volume.client().read(0, MIB as u32).expect("a read") == written);
    volume.down();
}

/// mdadm's output about the partition alone equals braid's about the part.
#[test]
fn mdadm_reads_the_partition_as_the_part_is_read() {
    skip_without!("sfdisk", "mdadm");
    let scratch = Scratch::new();
    disks(&scratch, 60 * MIB, NAS);
    for (version, number) in [("1.2", 3), ("1.0", 1), ("0.90", 3)] {
        std::fs::remove_file(scratch.config_file("data")).ok();
        let members = parts(number);
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        let options = ["--level", "raid1", "--metadata", version, "--assume-clean"];
        let force: Vec<&str> = members.iter().flat_map(|part| ["--force", part]).collect();
        scratch.run(&[&["create", "data"], &options[..], &force, &["--"], &members].concat()).ok();
        let bytes = scratch.read("d1.img");
        let (start, len) = if number == 3 { (11 * MIB, 40 * MIB) } else { (MIB, 8 * MIB) };
        let alone = scratch.join("alone");
        let range = start as usize..(start + len) as usize;
        std::fs::write(&alone, &bytes[range]).expect("a file");
        let mdadm = Tool::new("mdadm").arg("--examine").arg(&alone).run().ok().out;
        let part = scratch.run(&["examine", &format!("part(d1.img, {number})")]).ok().out;
        let body = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(body(&part), body(&mdadm), "{version}");
        std::fs::remove_file(&alone).expect("a file");
    }
}

#[test]
fn logical_partitions_and_parts_by_their_bytes_are_members() {
    skip_without!("sfdisk");
    let scratch = Scratch::new();
    let table = "label: dos\nsize=2M\ntype=5\nsize=16M\nsize=16M\n";
    disks(&scratch, 48 * MIB, table);
    create(&scratch, "data", 6, &[]);
    let volume = scratch.up("data", &["--attach", "none"]);
    let written = pattern(2, 0, MIB);
    volume.client().write(0, &written, true).expect("a write");
    volume.down();
    // Where the sixth partition begins, by sfdisk.
    let dump = Tool::new("sfdisk").arg("--json").arg(scratch.join("d1.img")).run().ok().out;
    let table: serde_json::Value = serde_json::from_str(&dump).expect("JSON");
    let sixth = &table["partitiontable"]["partitions"][3];
    let bytes = |field: &str| sixth[field].as_u64().expect("a number") * 512;
    let member =
        |disk: &&str| format!("file({disk}, offset={}, length={})", bytes("start"), bytes("size"));
    let stack = format!("md({})", DISKS.iter().map(member).collect::<Vec<_>>().join(", "));
    let volume = scratch.up(&stack, &["--name", "other", "--attach", "none"]);
    assert!(volume.client().read(0, MIB as u32).expect("a read") == written);
    volume.down();
}

#[test]
fn partitions_of_disks_with_sectors_of_4096_bytes_are_found() {
    skip_without!("fdisk");
    let scratch = Scratch::new();
    for (label, letter) in [("gpt", "g"), ("mbr", "o")] {
        let disk = scratch.sparse(&format!("{label}.img"), 64 * MIB);
        let mut child = std::process::Command::new("fdisk")
            .args(["-b", "4096"])
            .arg(&disk)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("fdisk");
        let answers = if label == "mbr" { "n\np\n1\n\n\nw\n" } else { "n\n1\n\n\nw\n" };
        let input = format!("{letter}\n{answers}");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("answers");
        child.wait().expect("fdisk");
        // What an MBR counts in is told by what lies there.
        let start = first_of_4096(&disk, label);
        let ext4 = scratch.sparse("ext4", 16 * MIB);
        Tool::new("mkfs.ext4").arg("-q").arg(&ext4).run().ok();
        scratch.patch(&format!("{label}.img"), start, &scratch.read("ext4")[..MIB as usize]);
        let part = format!("part({label}.img, 1)");
        let expected = ["ext4", "part("];
        scratch.run(&["up", &part, "--name", "x"]).fails(REFUSED, &expected);
    }
}

/// The start of the first partition in the table that fdisk wrote: in sectors of 4096 bytes.
fn first_of_4096(disk: &Path, label: &str) -> u64 {
    let bytes = std::fs::read(disk).expect("an image");
    let at = if label == "gpt" { 2 * 4096 + 32 } else { 446 + 8 };
    let sector = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    assert!(sector > 0, "fdisk made no partition on {}", disk.display());
    u64::from(sector) * 4096
}

/// A superblock of version 0.90 at the end of the last partition looks like one of the whole disk.
#[test]
fn a_superblock_of_the_last_partition_is_not_one_of_the_disk() {
    skip_without!("sfdisk");
    let scratch = Scratch::new();
    disks(&scratch, 33 * MIB, "label: dos\nsize=32M\n");
    create(&scratch, "data", 1, &["--metadata", "0.90"]);
    let unchanged = Unchanged::since_now(&scratch);
    let words = ["that of its partition 1, which ends there", "part("];
    scratch.run(&["examine", "d1.img"]).fails(FAILED, &words);
    scratch.run(&["assemble", "d1.img", "d2.img", "d3.img", "--as", "x"]).fails(FAILED, &words);
    unchanged.holds("what was refused");
    let stack = "md(d1.img, d2.img, d3.img)";
    scratch.run(&["up", stack, "--name", "x", "--attach", "none"]).fails(REFUSED, &words[..1]);
}

#[test]
fn what_is_no_partition_is_said() {
    skip_without!("sfdisk");
    let scratch = Scratch::new();
    disks(&scratch, 60 * MIB, NAS);
    scratch.sparse("empty.img", MIB);
    for (member, words) in [
        ("part(d1.img, 9)", "d1.img: it has no partition 9"),
        ("part(empty.img, 1)", "empty.img: it has no partition table"),
        ("part(gone.img, 1)", "gone.img"),
    ] {
        scratch.run(&["examine", member]).fails(FAILED, &[words]);
        let up = ["up", member, "--name", "x", "--attach", "none"];
        scratch
            .run(&up)
            .fails(REFUSED, &[if member.contains("gone") { "does not exist" } else { words }]);
    }
    scratch.resize("d2.img", 50 * MIB);
    let cut = ["it goes beyond the 52428800 bytes of"];
    scratch.run(&["examine", "part(d2.img, 3)"]).fails(FAILED, &cut);
    // The whole disk has nothing of md's, and its partition has.
    create(&scratch, "data", 1, &[]);
    let words = ["its partition 1 carries one", "braid examine 'part("];
    scratch.run(&["examine", "d1.img"]).fails(FAILED, &words);
}
