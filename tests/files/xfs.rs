//! xfs in the forms that mkfs.xfs makes.

use std::path::Path;

use braid_files::{Limits, Owner, ReadAt, Report, owners};

use super::common::{MIB, Scratch, Tool, skip_unless_root, skip_without};
use super::{Image, bytes_of, compare, of_files, tree};

/// Compares a file system that mkfs.xfs makes with these options.
fn check(options: &[&str], fill: impl FnOnce(&Path)) {
    skip_unless_root!();
    skip_without!("mkfs.xfs", "filefrag", "xfs_bmap");
    let mkfs = [&["mkfs.xfs", "-q", "-f"], options].concat();
    if let Some(report) = compare(320 * MIB, &mkfs, fill) {
        judge(options, &report);
    }
}

fn judge(options: &[&str], report: &Report) {
    let unknown = report.pieces.iter().filter(|piece| piece.owner == Owner::Unknown);
    assert_eq!(unknown.collect::<Vec<_>>(), [] as [&_; 0], "{options:?}");
    assert!(bytes_of(report, |owner| *owner == Owner::Free) > MIB);
    for wanted in ["extent tree", "extended attributes"] {
        let is_there =
            |owner: &Owner| matches!(owner, Owner::OfFile { what, .. } if *what == wanted);
        assert!(bytes_of(report, is_there) > 0, "{options:?}: no {wanted}");
    }
}

#[test]
fn xfs_as_it_is_made() {
    check(&[], tree::fill_all);
    check(&["-b", "size=1024", "-n", "size=8192", "-d", "agcount=3"], tree::fill_all);
}

#[test]
fn xfs_with_other_features() {
    check(&["-m", "rmapbt=1,reflink=0", "-i", "size=1024,nrext64=1"], tree::fill_all);
    check(&["-m", "finobt=0,reflink=0,inobtcount=0,bigtime=0", "-i", "sparse=0"], tree::fill_all);
}

/// Kernels of today do not mount it: mkfs.xfs copies files, which are compared with what is there.
#[test]
fn xfs_of_version_4() {
    skip_without!("mkfs.xfs");
    let scratch = Scratch::new();
    let file = scratch.file("from", 50_000, 3);
    let mut prototype = "/\n0 0\nd--755 0 0\nfolder d--755 0 0\n".to_owned();
    (0..900).for_each(|index| {
        prototype += &format!("an-entry-with-a-name-{index} ---644 0 0 /dev/null\n")
    });
    prototype += &format!("$\nfile ---644 0 0 {}\n$\n", file.display());
    std::fs::write(scratch.join("prototype"), prototype).expect("there is room");
    for types in ["ftype=0", "ftype=1"] {
        let path = scratch.sparse("image", 320 * MIB);
        let mkfs = Tool::new("mkfs.xfs").args(["-q", "-f", "-m", "crc=0", "-n", types, "-p"]);
        mkfs.arg(scratch.join("prototype")).arg(&path).run().ok();
        let image = Image::open(&path);
        let report = owners(&image, &[0..MIB, MIB..320 * MIB], &Limits::default()).expect("xfs");
        assert_eq!(bytes_of(&report, |owner| *owner == Owner::Unknown), 0, "{types}");
        let found = of_files(&report);
        let [extent] = found[b"/file".as_slice()][..] else { panic!("the file is in one piece") };
        let mut bytes = vec![0; 50_000];
        image.read_at(extent.at, &mut bytes).expect("it is there");
        assert!(bytes == scratch.read("from") && extent.offset == 0, "{types}: {extent:?}");
        assert!(
            found[b"/folder".as_slice()].len() > 1,
            "{types}: the directory has several blocks"
        );
    }
}

#[test]
fn shared_extents_have_several_owners() {
    let share = |point: &Path| {
        tree::fill_all(point);
        let copy = Tool::new("cp").arg("--reflink=always").arg(point.join("in pieces"));
        copy.arg(point.join("copy")).run().ok();
    };
    check(&["-m", "reflink=1"], share);
}
