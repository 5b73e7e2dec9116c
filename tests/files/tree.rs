//! Files of all kinds, and what the kernel says of where they lie.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::XattrFlags;

use super::common::{Tool, with_files_open};

/// Bytes of a file that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) unwritten: bool,
}

/// Puts extents in order, and joins those that follow one another in the file and on the volume.
pub(super) fn join(extents: &mut Vec<Extent>) {
    extents.sort_unstable();
    let mut joined: Vec<Extent> = Vec::new();
    for extent in extents.drain(..) {
        match joined.last_mut() {
            Some(last)
                if (last.offset + last.len, last.at + last.len, last.unwritten)
                    == (extent.offset, extent.at, extent.unwritten) =>
            {
                last.len += extent.len;
            }
            _ => joined.push(extent),
        }
    }
    *extents = joined;
}

/// Writes files that lie in many ways.
pub(super) fn fill(point: &Path) {
    with_files_open(|| {
        let write = |name: &str, len: usize| {
            fs::write(point.join(name), vec![name.len() as u8 + 1; len]).expect("there is room");
        };
        for folder in 0..120 {
            let folder = format!("folder {folder}");
            fs::create_dir_all(point.join(&folder).join("deep/deeper")).expect("there is room");
            write(&format!("{folder}/some"), 3000);
            write(&format!("{folder}/deep/deeper/more"), 20_000);
        }
        let many = point.join("a directory with many entries");
        fs::create_dir(&many).expect("there is room");
        for index in 0..2500 {
            let name = format!("an entry whose name is longer than those of others {index}");
            let file = File::create(many.join(name)).expect("there is room");
            if index % 50 == 0 {
                file.write_all_at(&[1; 100], 0).expect("there is room");
            }
        }
        write("empty", 0);
        write("linked", 9000);
        fs::hard_link(point.join("linked"), point.join("folder 7/deep/other name"))
            .expect("a link");
        let odd = point.join(OsStr::from_bytes(b"line\nbreak \xff ' \""));
        fs::write(odd, [7; 5000]).expect("there is room");
        symlink("short", point.join("short link")).expect("a link");
        symlink("long/".repeat(150), point.join("long link")).expect("a link");
        let sparse = File::create(point.join("sparse")).expect("there is room");
        for at in [0, 50_000, 3 << 20, (5 << 20) + 100, 90 << 20] {
            sparse.write_all_at(&[5; 1500], at).expect("there is room");
        }
        // Every other of many small files leaves holes for what comes then.
        let small: Vec<PathBuf> =
            (0..1200).map(|index| point.join(format!("small {index}"))).collect();
        small.iter().for_each(|path| fs::write(path, [3; 1024]).expect("there is room"));
    });
    Tool::new("sync").arg("--file-system").arg(point).run().ok();
    with_files_open(|| {
        for index in (0..1200).step_by(2) {
            fs::remove_file(point.join(format!("small {index}"))).expect("it is there");
        }
        // Written in pieces from the end, each durable before the next: the allocator cannot join them.
        for name in ["in pieces", "in other pieces"] {
            let file = File::create(point.join(name)).expect("there is room");
            for piece in (0..150).rev() {
                file.write_all_at(&[9; 4096], piece * 12_288).expect("there is room");
                if piece % 3 == 0 {
                    file.sync_data().expect("it can be made durable");
                }
            }
        }
    });
}

/// Reserves room that is not written.
pub(super) fn reserve(point: &Path) {
    let path = point.join("reserved");
    Tool::new("fallocate").args(["--length", "300000"]).arg(&path).run().ok();
    let write = || File::options().write(true).open(&path)?.write_all_at(&[1; 5000], 100_000);
    with_files_open(write).expect("there is room");
}

/// All that, reserved room and attributes.
pub(super) fn fill_all(point: &Path) {
    fill(point);
    reserve(point);
    for (name, len) in [("linked", 600), ("sparse", 3000)] {
        let (path, value) = (point.join(name), vec![7; len]);
        // One of 3000 bytes does not fit into a block of 1 KiB.
        let set = rustix::fs::setxattr(&path, "user.some", &value, XattrFlags::empty());
        assert!(set.is_ok() || len == 3000, "{name}: {set:?}");
    }
}

/// All paths below a point, from there.
fn walk(point: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        let full = point.join(&path);
        if full.is_dir() && !full.is_symlink() {
            let entries = fs::read_dir(&full).expect("a directory can be read");
            paths.extend(entries.map(|entry| path.join(entry.expect("an entry").file_name())));
        }
        next += 1;
    }
    paths
}

/// A path as the file system's root has it.
fn absolute(path: &Path) -> Vec<u8> {
    [b"/", path.as_os_str().as_bytes()].concat()
}

/// The symbolic links, of whose blocks the kernel says nothing.
pub(super) fn links(point: &Path) -> BTreeSet<Vec<u8>> {
    let paths = walk(point).into_iter().filter(|path| point.join(path).is_symlink());
    paths.map(|path| absolute(&path)).collect()
}

/// The places of files and directories according to the kernel, by their paths from the root. For directories
/// of xfs only another program knows them.
pub(super) fn extents(point: &Path, is_xfs: bool) -> BTreeMap<Vec<u8>, Vec<Extent>> {
    let paths = walk(point).into_iter().filter(|path| !point.join(path).is_symlink());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.partition(|path| is_xfs && point.join(path).is_dir());
    let mut found = BTreeMap::new();
    for some in files.chunks(400) {
        let full = some.iter().map(|path| point.join(path));
        let output = Tool::new("filefrag").args(["-v", "-b1"]).args(full).run();
        let text = output.ok().out;
        let mut sections = text.split("File size of ").skip(1);
        for path in some {
            let section = sections.next().expect("filefrag tells of each file");
            let mut extents: Vec<Extent> = section.lines().filter_map(extent).collect();
            join(&mut extents);
            found.insert(absolute(path), extents);
        }
    }
    for path in folders {
        let output = Tool::new("xfs_bmap").arg("-v").arg(point.join(&path)).run().ok();
        let mut extents: Vec<Extent> = output.out.lines().filter_map(sectors).collect();
        join(&mut extents);
        found.insert(absolute(&path), extents);
    }
    found
}

/// A line such as `0: [0..7]: 96..103 0 (96..103) 8`, in sectors.
fn sectors(line: &str) -> Option<Extent> {
    let fields: Vec<&str> =
        line.split([':', ' ', '[', ']']).filter(|field| !field.is_empty()).collect();
    let bounds = |field: &str| {
        let (first, last) = field.split_once("..")?;
        Some((first.parse::<u64>().ok()? * 512, (last.parse::<u64>().ok()? + 1) * 512))
    };
    let (offset, _) = bounds(fields.get(1)?)?;
    let (at, end) = bounds(fields.get(2)?)?;
    Some(Extent { offset, at, len: end - at, unwritten: false })
}

/// A line such as `0:   0..  4095:  8192..  12287:  4096:  last,eof`.
fn extent(line: &str) -> Option<Extent> {
    let fields: Vec<&str> = line.split(':').map(str::trim).collect();
    let start = |field: &str| field.split("..").next()?.trim().parse().ok();
    fields.first()?.parse::<u64>().ok()?;
    let flags = *fields.last()?;
    let extent = Extent {
        offset: start(fields.get(1)?)?,
        at: start(fields.get(2)?)?,
        len: fields.get(3)?.parse().ok()?,
        unwritten: flags.contains("unwritten"),
    };
    (!flags.contains("inline")).then_some(extent)
}
