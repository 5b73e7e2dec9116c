//! Which files own which bytes, by braid and by the kernel, of file systems that the kernel has written.
//!
//! Root and loop devices are needed; without them each test says so and is skipped.

mod command;
#[path = "../common/mod.rs"]
mod common;
mod ext;
mod tree;
mod xfs;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::slice;

use braid_files::{Limits, Owner, ReadAt, Report, owners};

use common::{LoopDevice, Mounted, Scratch, Tool};
use tree::Extent;

/// An image, as the reader wants it.
struct Image(File, u64);

impl Image {
    fn open(path: &Path) -> Image {
        let file = File::open(path).expect("the image can be opened");
        let size = file.metadata().expect("the image has a size").len();
        Image(file, size)
    }
}

impl ReadAt for Image {
    fn size(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }
}

/// Makes a file system in an image of `size` bytes with `mkfs`, has `fill` write files, and compares what the
/// kernel says of each with what is read from the image. None where there are no loop devices.
fn compare(size: u64, mkfs: &[&str], fill: impl FnOnce(&Path)) -> Option<Report> {
    let scratch = Scratch::new();
    let path = scratch.sparse("image", size);
    Tool::new(mkfs[0]).args(&mkfs[1..]).arg(&path).run().ok();
    let device = LoopDevice::attach(&path)?;
    let mounted = Mounted::device(device.path(), &scratch.join("mounted"));
    fill(mounted.point());
    mounted.unmount();
    // What xfs allocates ahead, it frees at the latest then.
    let mounted = Mounted::device(device.path(), &scratch.join("mounted"));
    let expected = tree::extents(mounted.point(), mkfs[0] == "mkfs.xfs");
    let links = tree::links(mounted.point());
    mounted.unmount();
    drop(device);

    let image = Image::open(&path);
    let limits = Limits { pieces: 1 << 20, ..Limits::default() };
    let report =
        owners(&image, slice::from_ref(&(0..size)), &limits).expect("the file system is known");
    assert_eq!(report.notes, [""; 0], "{mkfs:?}");
    let found = of_files(&report);
    for (path, extents) in &expected {
        let shown = String::from_utf8_lossy(path);
        let found = found.get(path).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(found, extents.as_slice(), "{mkfs:?}: {shown}");
    }
    for (path, _) in found.iter().filter(|(path, _)| !expected.contains_key(*path)) {
        let shown = String::from_utf8_lossy(path);
        assert!(links.contains(path), "{mkfs:?}: the kernel knows no blocks of {shown}");
    }
    let nameless = report.files.iter().filter(|(_, names)| names.paths.is_empty());
    let nameless: Vec<_> = nameless.filter(|(_, names)| names.what.is_none()).collect();
    assert!(nameless.is_empty(), "{mkfs:?}: {nameless:?}");
    Some(report)
}

/// The extents of each path.
fn of_files(report: &Report) -> BTreeMap<Vec<u8>, Vec<Extent>> {
    let mut found: BTreeMap<Vec<u8>, Vec<Extent>> = BTreeMap::new();
    for piece in &report.pieces {
        let Owner::File { inode, offset, unwritten } = piece.owner else { continue };
        let len = piece.range.end - piece.range.start;
        for path in &report.files[&inode].paths {
            let extent = Extent { offset, at: piece.range.start, len, unwritten };
            found.entry(path.clone()).or_default().push(extent);
        }
    }
    found.values_mut().for_each(tree::join);
    found
}

/// Bytes with an owner that is `wanted`.
fn bytes_of(report: &Report, wanted: impl Fn(&Owner) -> bool) -> u64 {
    let pieces = report.pieces.iter().filter(|piece| wanted(&piece.owner));
    pieces.map(|piece| piece.range.end - piece.range.start).sum()
}
