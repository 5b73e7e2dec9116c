//! Files that `rescue copy` takes out of file systems that the kernel has written, compared byte for byte and attribute
//! for attribute; file systems that lie; copies that were interrupted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::common::{
    LoopDevice, MIB, Mounted, Output, Scratch, Tool, skip_unless_root, skip_without,
};
use crate::refusal;
use crate::tree;

const OFFSET: u64 = MIB;

/// The attributes and the content of a name.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    links: u64,
    size: u64,
    modified: (i64, i64),
    content: Vec<u8>,
}

/// All names below a folder, but for special files. Folders have as many links and bytes as their file system likes.
fn entries(point: &Path) -> BTreeMap<PathBuf, Entry> {
    let mut found = BTreeMap::new();
    let mut todo = vec![PathBuf::new()];
    while let Some(path) = todo.pop() {
        for entry in fs::read_dir(point.join(&path)).expect("a folder can be read") {
            let path = path.join(entry.expect("an entry can be read").file_name());
            let full = point.join(&path);
            let data = full.symlink_metadata().expect("a name has attributes");
            let is_folder = data.is_dir();
            let content = match data.mode() & 0o170_000 {
                0o100_000 => fs::read(&full).expect("a file can be read"),
                0o120_000 => fs::read_link(&full).expect("a link").as_os_str().as_bytes().to_vec(),
                0o040_000 => Vec::new(),
                _ => continue,
            };
            let entry = Entry {
                mode: data.mode(),
                owner: (data.uid(), data.gid()),
                links: if is_folder { 0 } else { data.nlink() },
                size: if is_folder { 0 } else { data.size() },
                modified: (data.mtime(), data.mtime_nsec()),
                content,
            };
            if is_folder {
                todo.push(path.clone());
            }
            found.insert(path, entry);
        }
    }
    found
}

#[track_caller]
fn assert_same(found: &BTreeMap<PathBuf, Entry>, expected: &BTreeMap<PathBuf, Entry>) {
    for (path, entry) in expected {
        let Some(copy) = found.get(path) else { panic!("{} was not copied", path.display()) };
        let attributes = |one: &Entry| (one.mode, one.owner, one.links, one.size, one.modified);
        assert_eq!(attributes(copy), attributes(entry), "{}", path.display());
        assert!(copy.content == entry.content, "{} has another content", path.display());
    }
    for path in found.keys() {
        assert!(expected.contains_key(path), "{} is too much", path.display());
    }
}

/// Makes a raid1 of two members whose content is `image`, and a case of it.
fn members(scratch: &Scratch, image: &Path) {
    let size = image.metadata().expect("the image is there").len();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, OFFSET + size + MIB);
    }
    let create = ["create", "v", "--level", "raid1", "--data-offset", "1M", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    for name in ["a.img", "b.img"] {
        let dd = Tool::new("dd").arg(format!("if={}", image.display()));
        let dd = dd.arg(format!("of={}", scratch.join(name).display()));
        dd.args(["bs=1M", "seek=1", "conv=notrunc,sparse"]).run().ok();
    }
    scratch.run(&["rescue", "scan", "home", "a.img", "b.img"]).ok();
}

fn copy(scratch: &Scratch) -> Output {
    scratch.run(&["rescue", "copy", "home", "--to", "out/"])
}

/// Things that `tree` does not make: special files, odd modes, owners and times.
fn fill(point: &Path) {
    tree::fill_all(point);
    Tool::new("mkfifo").arg(point.join("a pipe")).run().ok();
    fs::write(point.join("of another"), b"content").expect("there is room");
    Tool::new("chown").args(["1234:70000", "--"]).arg(point.join("of another")).run().ok();
    Tool::new("chmod").arg("6711").arg(point.join("of another")).run().ok();
    Tool::new("chmod").arg("1770").arg(point.join("folder 7")).run().ok();
    let touch = Tool::new("touch").args(["-d", "2100-03-04 05:06:07.123456789"]);
    touch.arg(point.join("folder 7/some")).run().ok();
    Tool::new("touch").args(["-d", "1960-03-04 05:06:07.5"]).arg(point.join("empty")).run().ok();
}

fn check(size: u64, mkfs: &[&str]) {
    skip_unless_root!();
    skip_without!("mke2fs", "mkfs.xfs");
    let scratch = Scratch::new();
    let path = scratch.sparse("image", size);
    Tool::new(mkfs[0]).args(&mkfs[1..]).arg(&path).run().ok();
    let Some(device) = LoopDevice::attach(&path) else { return };
    let mounted = Mounted::device(device.path(), &scratch.join("mounted"));
    fill(mounted.point());
    let expected = entries(mounted.point());
    mounted.unmount();
    drop(device);
    members(&scratch, &path);
    let copied = copy(&scratch).ok();
    assert!(copied.out.contains("all are good"), "{copied}");
    assert!(copied.out.contains("Devices, pipes and sockets are not made: 1."), "{copied}");
    assert_same(&entries(&scratch.join("out")), &expected);
    let sparse = scratch.join("out/sparse").metadata().expect("it is there");
    assert!(sparse.blocks() * 512 < sparse.size() / 4, "a sparse file was filled");
    let listed = scratch.run(&["rescue", "files", "home", "--json"]).ok();
    let lines = listed.out.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<serde_json::Value> = lines.collect();
    let (summary, lines) = lines.split_last().expect("a summary");
    assert_eq!((&summary["lost"], &summary["doubtful"]), (&0.into(), &0.into()), "{summary}");
    // The root and the pipe are listed, too.
    assert_eq!(lines.len(), expected.len() + 2, "{mkfs:?}");
    for (path, entry) in &expected {
        let name = format!("/{}", path.to_string_lossy());
        let line = lines.iter().find(|line| line["path"] == name);
        let line = line.unwrap_or_else(|| panic!("{name} is not listed"));
        assert_eq!(
            (&line["state"], &line["mode"]),
            (&"good".into(), &(entry.mode & 0o7777).into())
        );
    }
}

#[test]
fn files_of_ext4_are_copied_as_they_are() {
    check(160 * MIB, &["mke2fs", "-q", "-F", "-t", "ext4"]);
    check(
        160 * MIB,
        &["mke2fs", "-q", "-F", "-t", "ext4", "-O", "inline_data,ea_inode", "-I", "512"],
    );
}

#[test]
fn files_of_xfs_are_copied_as_they_are() {
    check(400 * MIB, &["mkfs.xfs", "-q", "-f"]);
    check(400 * MIB, &["mkfs.xfs", "-q", "-f", "-b", "size=1024", "-n", "size=8192"]);
}

/// Makes a file system, writes to it, and copies its image while it is mounted: changes are in the journal alone.
fn dirty(scratch: &Scratch, size: u64, mkfs: &[&str]) -> Option<BTreeMap<PathBuf, Entry>> {
    let path = scratch.sparse("image", size);
    Tool::new(mkfs[0]).args(&mkfs[1..]).arg(&path).run().ok();
    let device = LoopDevice::attach(&path)?;
    let mounted = Mounted::device(device.path(), &scratch.join("mounted"));
    let point = mounted.point();
    let sync = || drop(Tool::new("sync").arg("--file-system").arg(point).run().ok());
    for round in 0..3 {
        let folder = point.join(format!("folder {round}"));
        fs::create_dir(&folder).expect("there is room");
        for index in 0..400 {
            let name = format!("a long name of a file in round {round}: {index}");
            fs::write(folder.join(name), vec![round; 3000]).expect("there is room");
        }
        sync();
        // Blocks of directories are freed, revoked, and become those of files.
        if round > 0 {
            fs::remove_dir_all(point.join(format!("folder {}", round - 1))).expect("it is there");
        }
        fs::write(point.join(format!("file {round}")), vec![round + 7; 2 << 20]).expect("room");
        sync();
    }
    let expected = entries(point);
    fs::copy(&path, scratch.join("copy")).expect("there is room");
    mounted.unmount();
    members(scratch, &scratch.join("copy"));
    Some(expected)
}

#[test]
fn a_journal_that_was_not_replayed_is_replayed_in_memory() {
    skip_unless_root!();
    skip_without!("mke2fs");
    for options in [
        &["-t", "ext4"][..],
        &["-t", "ext3"],
        &["-t", "ext4", "-O", "^64bit,^metadata_csum", "-b", "1024"],
    ] {
        let scratch = Scratch::new();
        let mkfs = [&["mke2fs", "-q", "-F"], options].concat();
        let Some(expected) = dirty(&scratch, 96 * MIB, &mkfs) else { return };
        let incompat = scratch.read("copy")[1024 + 0x60];
        assert_eq!(incompat & 4, 4, "{options:?}: the journal is clean");
        let copied = copy(&scratch).ok();
        assert!(copied.out.contains("all are good"), "{copied}");
        assert_same(&entries(&scratch.join("out")), &expected);
    }
}

#[test]
fn a_log_of_xfs_that_was_not_replayed_is_a_doubt() {
    skip_unless_root!();
    skip_without!("mkfs.xfs");
    let scratch = Scratch::new();
    if dirty(&scratch, 400 * MIB, &["mkfs.xfs", "-q", "-f"]).is_none() {
        return;
    }
    let copied = copy(&scratch);
    assert_eq!(copied.code(), 4, "{copied}");
    assert!(copied.out.contains("bytes of the log of xfs were not replayed"), "{copied}");
}

/// An ext4 with some files, changed by commands of debugfs.
fn hostile(scratch: &Scratch, commands: &[&str]) {
    fs::create_dir_all(scratch.join("from/d/e")).expect("a folder can be made");
    for (name, seed) in
        [("from/one", 1), ("from/two", 2), ("from/d/evil-name-1", 3), ("from/d/e/f", 4)]
    {
        scratch.file(name, 50_000, seed);
    }
    let path = scratch.sparse("image", 16 * MIB);
    let mke2fs = Tool::new("mke2fs").args(["-q", "-F", "-t", "ext4", "-O", "^metadata_csum"]);
    mke2fs.arg("-d").arg(scratch.join("from")).arg(&path).run().ok();
    for command in commands {
        let debugfs = Tool::new("debugfs").args(["-w", "-R", command]).arg(&path);
        let output = debugfs.run().ok();
        assert!(!output.err.contains("not found"), "{command}: {output}");
    }
    let mut image = scratch.read("image");
    // The name climbs out of its directory.
    while let Some(at) = image.windows(11).position(|bytes| bytes == b"evil-name-1") {
        image[at..at + 11].copy_from_slice(b"../../../ev");
    }
    fs::write(&path, image).expect("there is room");
    members(scratch, &path);
}

#[test]
fn file_systems_that_lie_do_no_harm() {
    skip_without!("mke2fs", "debugfs");
    let scratch = Scratch::new();
    hostile(
        &scratch,
        &[
            "ln <2> /d/e/loop",
            "ln /d /d/e/again",
            "copy_inode /one /two",
            "sif /d/e/f size 0x80000000000",
            "symlink /d/way /tmp",
            "ln <8> /journal",
        ],
    );
    let copied = copy(&scratch);
    assert_eq!(copied.code(), 4, "{copied}");
    let report = fs::read_to_string(scratch.join("out.lost")).expect("a report");
    for line in [
        "lost\t\t/d/../../../ev\tno file can have this name",
        "lost\t\t/d/e/loop\tthe directory has another name, or contains itself",
        "lost\t\t/d/e/again\tthe directory has another name, or contains itself",
        "lost\t\t/journal\tinode 8: it is an inode of the file system itself",
        "doubt\t\t/one\tanother file claims the same bytes: one of them is wrong",
        "doubt\t\t/two\tanother file claims the same bytes: one of them is wrong",
    ] {
        assert!(report.contains(line), "{line}: {report}");
    }
    assert!(!scratch.join("ev").exists() && scratch.join("out/d/way").is_symlink());
    let long = scratch.join("out/d/e/f").metadata().expect("it is there");
    assert_eq!((long.size(), long.blocks() < 200), (1 << 43, true));
    let listed = scratch.run(&["rescue", "files", "home"]);
    assert_eq!(listed.code(), 4, "{listed}");
    assert!(listed.out.contains("lost         /d/../../../ev   (no file"), "{listed}");
}

#[test]
fn nothing_is_written_through_a_link() {
    skip_without!("mke2fs", "debugfs");
    let scratch = Scratch::new();
    // Two names that are alike: a link that leads out, then a folder.
    hostile(&scratch, &["symlink /d/e/x-link ../../../outside"]);
    fs::create_dir(scratch.join("outside")).expect("a folder can be made");
    fs::create_dir_all(scratch.join("out")).expect("a folder can be made");
    copy(&scratch);
    std::os::unix::fs::symlink(scratch.join("outside"), scratch.join("link")).expect("a link");
    // A copy that is continued, in whose folder a link was put.
    fs::remove_dir_all(scratch.join("out/d/e")).expect("it is there");
    std::os::unix::fs::symlink(scratch.join("outside"), scratch.join("out/d/e")).expect("a link");
    copy(&scratch);
    assert!(fs::read_dir(scratch.join("outside")).expect("it is there").next().is_none());
}

#[test]
fn an_interrupted_copy_goes_on_and_no_folder_is_written_over() {
    skip_without!("mke2fs", "debugfs");
    let scratch = Scratch::new();
    hostile(&scratch, &[]);
    fs::create_dir(scratch.join("other")).expect("a folder can be made");
    scratch.file("other/mine", 100, 1);
    let refused = scratch.run(&["rescue", "copy", "home", "--to", "other"]);
    refusal(&refused, &["other has files already, and is not of a copy"]);
    assert_eq!(copy(&scratch).code(), 4);
    let before = entries(&scratch.join("out"));
    let report = fs::read_to_string(scratch.join("out.lost")).expect("a report");
    // As a crash leaves it: the mark says less, files behind it are torn, and one before it is missing.
    let (lines, _) = report.rsplit_once("# durable: ").expect("a mark");
    let head = lines.lines().next().expect("a head");
    let torn = format!("{head}\n# durable: 4\nlost\t\t/d/to");
    fs::write(scratch.join("out.lost"), torn).expect("it can be written");
    for name in ["one", "two", "d/e/f"] {
        fs::write(scratch.join("out").join(name), b"torn").expect("it can be written");
    }
    assert_eq!(copy(&scratch).code(), 4);
    assert_same(&entries(&scratch.join("out")), &before);
    assert_eq!(
        fs::read_to_string(scratch.join("out.lost")).expect("a report").lines().count(),
        report.lines().count() + 1
    );
    scratch.patch("b.img", OFFSET + 8 * MIB, b"other content, so another case");
    fs::write(scratch.join("out.lost"), "# of something else\n").expect("it can be written");
    refusal(&copy(&scratch), &["out.lost is there already, and of another copy"]);
}

#[test]
fn a_file_with_bytes_that_no_member_has_is_copied_but_for_them() {
    skip_without!("mke2fs", "debugfs");
    let scratch = Scratch::new();
    hostile(&scratch, &[]);
    let (content, image) = (scratch.read("from/two"), scratch.read("image"));
    let place = image.chunks(1024).position(|block| block == &content[8192..9216]);
    let hole = OFFSET + place.expect("the file is there") as u64 * 1024;
    let size = scratch.read("a.img").len() as u64;
    let rest = hole + 4096;
    let map = format!("0 + 1\n0 {hole} +\n{hole} 4096 -\n{rest} {} +\n", size - rest);
    fs::write(scratch.join("map"), map).expect("a map");
    let maps = ["--map", "a.img=map", "--map", "b.img=map"];
    scratch.run(&[&["rescue", "scan", "home", "a.img", "b.img"][..], &maps].concat()).ok();
    let copied = copy(&scratch);
    assert_eq!(copied.code(), 4, "{copied}");
    let report = fs::read_to_string(scratch.join("out.lost")).expect("a report");
    assert!(report.contains("lost\t8192+4096\t/two\t\n"), "{report}");
    let mut expected = content;
    expected[8192..12_288].fill(0);
    assert!(scratch.read("out/two") == expected, "other bytes");
    assert!(scratch.read("out/one") == scratch.read("from/one"), "another file");
    let lost = scratch.run(&["rescue", "files", "home", "--lost"]);
    assert_eq!(lost.code(), 4, "{lost}");
    assert!(lost.out.contains("lost 4096    /two\n"), "{lost}");
    assert!(!lost.out.contains("/one"), "{lost}");
}
