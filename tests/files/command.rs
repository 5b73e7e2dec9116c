//! `braid files`: of stacks, of partitions in them, of volumes that are up, and what it refuses.

use serde_json::Value;

use super::common::{MIB, Scratch, Tool, skip_unless_root, skip_without};

/// A file system of 16 MiB with one file, whose place is told.
fn file_system(scratch: &Scratch, name: &str) -> u64 {
    std::fs::create_dir_all(scratch.join("from/a")).expect("a folder can be made");
    let odd = scratch.join("from/a/odd\u{1b}name");
    std::fs::rename(scratch.file("odd", 20_000, 1), odd).expect("it can be renamed");
    let path = scratch.sparse(name, 16 * MIB);
    let mke2fs = Tool::new("mke2fs").args(["-q", "-F", "-t", "ext4", "-b", "4096", "-d"]);
    mke2fs.arg(scratch.join("from")).arg(&path).run().ok();
    let (content, image) = (scratch.read("from/a/odd\u{1b}name"), scratch.read(name));
    let begins = |block: &[u8]| block == &content[..4096];
    image.chunks(4096).position(begins).expect("the file is there") as u64 * 4096
}

#[test]
fn files_of_a_stack_are_named_and_nothing_is_written() {
    skip_without!("mke2fs");
    let scratch = Scratch::new();
    let at = file_system(&scratch, "a.img");
    std::fs::copy(scratch.join("a.img"), scratch.join("b.img")).expect("there is room");
    let before = scratch.read("a.img");
    let range = format!("{}+1K", at + 5000);
    let told = scratch.run(&["files", "raid1(a.img, b.img)", &range, "1K", "12M"]).ok().out;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "ext4 of 16777216 bytes");
    assert_eq!(lines[1], "  1024+3072: superblock");
    let named = format!("  {}+1024: /a/odd\\u001bname (inode 13), from byte 5000 on", at + 5000);
    assert!(lines.contains(&named.as_str()), "{told}");
    assert!(told.contains("  12582912+4096: free"), "{told}");
    let json: Value = scratch.run(&["files", "--json", "raid1(a.img, b.img)", &range]).ok().json();
    let piece = &json["file_systems"][0]["pieces"][0];
    assert_eq!(piece["file_offset"], 5000, "{json}");
    assert_eq!(piece["paths"][0], "/a/odd\u{1b}name", "{json}");
    assert!(before == scratch.read("a.img") && before == scratch.read("b.img"), "it was written");
}

#[test]
fn files_in_a_partition_are_named_by_bytes_of_the_volume() {
    skip_without!("mke2fs");
    let scratch = Scratch::new();
    let at = file_system(&scratch, "part.img");
    scratch.sparse("disk.img", 24 * MIB);
    // An MBR: two partitions, from 1 MiB and 4 MiB on, of 1 MiB and 16 MiB.
    for (at, start, sectors) in [(446, 2048_u32, 2048_u32), (462, 8192, 32_768)] {
        scratch.patch("disk.img", at + 4, &[0x83]);
        scratch.patch("disk.img", at + 8, &[start.to_le_bytes(), sectors.to_le_bytes()].concat());
    }
    scratch.patch("disk.img", 510, &[0x55, 0xaa]);
    scratch.patch("disk.img", 4 * MIB, &scratch.read("part.img"));
    let range = (4 * MIB + at).to_string();
    let told = scratch.run(&["files", "linear(disk.img)", &range]).ok().out;
    assert!(told.starts_with("partition 2: ext4 of 16777216 bytes\n"), "{told}");
    assert!(told.contains(&format!("  {range}+4096: /a/odd")), "{told}");
    let listed = scratch.run(&["files", "linear(disk.img)"]).ok().out;
    assert!(listed.starts_with("partition 2:\n"), "{listed}");
    assert!(listed.contains("20000 ") && listed.contains(" good         /a/odd"), "{listed}");
    assert!(listed.ends_with("1 files, 20000 bytes; all are good.\n"), "{listed}");
    let outside = scratch.run(&["files", "linear(disk.img)", "22M"]);
    outside.fails(1, &["the bytes lie in no partition of the volume"]);
    scratch.run(&["files", "linear(disk.img)", "1M"]).fails(1, &["partition 1", "no file system"]);
}

#[test]
fn a_volume_that_is_up_is_read_through_its_device() {
    skip_unless_root!();
    skip_without!("mke2fs");
    let scratch = Scratch::new();
    let at = file_system(&scratch, "a.img").to_string();
    std::fs::copy(scratch.join("a.img"), scratch.join("b.img")).expect("there is room");
    let force = ["--force", "a.img", "--force", "b.img"];
    let up = scratch
        .up("raid1(a.img, b.img)", &[&["--name", "v", "--attach", "none"], &force[..]].concat());
    let refused = scratch.run(&["files", "v", &at]);
    refused.fails(3, &["v is up without a block device to read", "next: `braid down v`"]);
    up.down();
    if !std::path::Path::new("/dev/fuse").exists() {
        println!("skipped: there is no /dev/fuse to attach a volume by");
        return;
    }
    let up = scratch
        .up("raid1(a.img, b.img)", &[&["--name", "v", "--attach", "fuse"], &force[..]].concat());
    let told = scratch.run(&["files", "v", &at]).ok().out;
    assert!(told.contains(&format!("  {at}+4096: /a/odd")), "{told}");
    up.down();
}

#[test]
fn a_scrub_names_the_files_of_what_differs() {
    skip_unless_root!();
    skip_without!("mke2fs");
    let scratch = Scratch::new();
    let at = file_system(&scratch, "from.img");
    ["a.img", "b.img"].iter().for_each(|name| drop(scratch.sparse(name, 17 * MIB)));
    let create = ["create", "v", "--level", "raid1", "--data-offset", "1M", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    ["a.img", "b.img"].iter().for_each(|name| scratch.patch(name, MIB, &scratch.read("from.img")));
    scratch.patch("b.img", MIB + at + 4096, &[7; 512]);
    let scrub = ["scrub", "v", "--wait", "--files"];
    let up = scratch.up("v", &["--attach", "none"]);
    scratch.run(&scrub).fails(3, &["v is up without a block device to read"]);
    up.down();
    if !std::path::Path::new("/dev/fuse").exists() {
        println!("skipped: there is no /dev/fuse to attach a volume by");
        return;
    }
    let up = scratch.up("v", &["--attach", "fuse"]);
    let told = scratch.run(&scrub);
    let file = format!("  {}+4096: /a/odd\\u001bname (inode 13), from byte 4096 on", at + 4096);
    assert!(told.out.contains(&file), "{told}");
    told.fails(1, &["4096 bytes differ"]);
    scratch.run(&["scrub", "v", "--repair", "--force", "--wait"]).ok();
    scratch.run(&scrub).ok();
    up.down();
}

#[test]
fn what_cannot_be_told_is_refused() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let parts_of_none =
        ["no file system whose files can be told", "ext2, ext3, ext4, xfs and btrfs"];
    scratch.run(&["files", "linear(a.img)", "0"]).fails(1, &parts_of_none);
    let parts = ["bytes 1044480 to 1052672 are not there", "the volume has 1048576 bytes"];
    scratch.run(&["files", "linear(a.img)", "1020K+8K"]).fails(2, &parts);
    scratch.run(&["files", "linear(a.img)", "4K+0"]).fails(2, &["at least one byte"]);
    scratch.run(&["files", "linear(a.img)"]).fails(1, &parts_of_none);
}
