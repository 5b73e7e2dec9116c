//! ext2, ext3 and ext4 in the forms that mke2fs makes.

use std::path::Path;

use braid_files::{Limits, Owner, owners};

use super::common::{MIB, Scratch, Tool, skip_unless_root, skip_without};
use super::{Image, bytes_of, compare, tree};

/// Compares a file system that mke2fs makes with these options.
fn check(options: &[&str], fill: impl FnOnce(&Path)) {
    skip_unless_root!();
    skip_without!("mke2fs", "filefrag");
    let mkfs = [&["mke2fs", "-q", "-F"], options].concat();
    let Some(report) = compare(96 * MIB, &mkfs, fill) else { return };
    let unknown = report.pieces.iter().filter(|piece| piece.owner == Owner::Unknown);
    let unknown: Vec<_> = unknown.collect();
    // The rest of a cluster has no owner.
    let has_clusters = options.contains(&"-C");
    assert!(has_clusters || unknown.is_empty(), "{options:?}: {unknown:?}");
    assert!(bytes_of(&report, |owner| *owner == Owner::Free) > MIB);
    let is_tree = |owner: &Owner| matches!(owner, Owner::OfFile { what, .. } if *what != "extended attributes");
    assert!(bytes_of(&report, is_tree) > 0, "{options:?}: no file is in many pieces");
}

#[test]
fn old_file_systems_with_block_maps() {
    check(&["-t", "ext2", "-b", "1024"], tree::fill);
    check(&["-t", "ext3", "-b", "4096", "-I", "128"], tree::fill);
    check(&["-t", "ext2", "-r", "0", "-b", "2048"], tree::fill);
}

#[test]
fn ext4_as_it_is_made() {
    check(&["-t", "ext4"], tree::fill_all);
    check(&["-t", "ext4", "-b", "4096"], tree::fill_all);
}

#[test]
fn ext4_with_other_groups() {
    check(&["-t", "ext4", "-b", "1024", "-O", "^64bit,^flex_bg,^metadata_csum"], tree::fill_all);
    check(&["-t", "ext4", "-b", "1024", "-O", "meta_bg,^resize_inode"], tree::fill_all);
    check(
        &["-t", "ext4", "-b", "1024", "-g", "1024", "-O", "sparse_super2,^resize_inode"],
        tree::fill_all,
    );
    check(
        &["-t", "ext4", "-b", "1024", "-O", "^sparse_super,^resize_inode,uninit_bg,^metadata_csum"],
        tree::fill_all,
    );
}

#[test]
fn ext4_with_more_features() {
    check(
        &["-t", "ext4", "-O", "inline_data,ea_inode,mmp,orphan_file", "-I", "512"],
        tree::fill_all,
    );
    check(&["-t", "ext4", "-b", "1024", "-O", "bigalloc,large_dir", "-C", "8192"], tree::fill_all);
}

#[test]
fn quota_files_are_metadata() {
    skip_without!("mke2fs");
    let scratch = Scratch::new();
    let path = scratch.sparse("image", 16 * MIB);
    std::fs::create_dir_all(scratch.join("from/a/b")).expect("a folder can be made");
    scratch.file("from/a/b/c", 10_000, 1);
    let mke2fs = Tool::new("mke2fs").args(["-q", "-F", "-t", "ext4", "-O", "quota,project"]);
    mke2fs.arg("-I512").arg("-d").arg(scratch.join("from")).arg(&path).run().ok();
    let report =
        owners(&Image::open(&path), &[0..MIB, MIB..16 * MIB], &Limits::default()).expect("ext4");
    let count = |owner: Owner| report.pieces.iter().filter(|piece| piece.owner == owner).count();
    assert!(count(Owner::Metadata("quota")) > 0 && count(Owner::Metadata("journal")) > 0);
    assert_eq!((count(Owner::Unknown), &report.notes[..]), (0, &[][..]));
    let files: Vec<_> = report.files.values().flat_map(|names| &names.paths).collect();
    let expected =
        ["/", "/lost+found", "/a", "/a/b", "/a/b/c"].map(|path| path.as_bytes().to_vec());
    assert_eq!(files, expected.iter().collect::<Vec<_>>());
}
