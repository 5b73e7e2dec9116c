//! The commands that work on members while no volume runs: `examine`, `create`, `assemble`,
//! `wipe`, `undo`, `cat`.
//!
//! Outside judges: mdadm, which examines files as it does devices (skipped where it is not
//! installed), and the golden arrays, which the kernel made and mdadm described.
//!
//! Whatever is refused, planned or read leaves every byte of every member as it was: see
//! [`Unchanged`].

#[path = "../common/mod.rs"]
mod common;

mod assembling;
mod bad_blocks;
mod codes;
mod coming_back;
mod creation;
mod golden;
mod honest;
mod itself;
mod layouts;
mod living;
mod missed;
mod moved;
mod nested;
mod older;
mod parity;
mod partitions;
mod planned;
mod recorded;
mod sets;
mod superblocks;
mod symptoms;
mod undoing;
mod write_hole;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use braid_md::superblock::{Contents, SUPERBLOCK_BYTES};
use braid_md::{BadBlocks, Features, Superblock, detect};
use common::{MIB, Output, Scratch, with_files_open};

const FAILED: i32 = 1;
const USAGE: i32 = 2;
const REFUSED: i32 = 3;

/// The size of most members.
const SIZE: u64 = 6 * MIB;

/// All files of a scratch folder and of the folders in it, as they were.
struct Unchanged<'a> {
    scratch: &'a Scratch,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl<'a> Unchanged<'a> {
    fn since_now(scratch: &'a Scratch) -> Unchanged<'a> {
        Unchanged { scratch, before: contents(scratch) }
    }

    /// Checks that no file was made, removed or changed.
    #[track_caller]
    fn holds(&self, what: &str) {
        let after = contents(self.scratch);
        let (before, after): (Vec<_>, Vec<_>) =
            (self.before.iter().collect(), after.iter().collect());
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.0, after.0, "{what}: a file was made or removed");
            assert!(before.1 == after.1, "{what}: {} was changed", before.0.display());
        }
        assert_eq!(before.len(), after.len(), "{what}: a file was made or removed");
    }
}

fn contents(scratch: &Scratch) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut folders = vec![scratch.path().to_owned()];
    let mut files = BTreeMap::new();
    // A volume that is up keeps copies of its superblocks there, at a time of its own.
    let run = std::fs::read_dir(scratch.run_folder()).into_iter().flatten().flatten();
    let is_up = run.map(|entry| entry.path()).any(|path| path.extension() == Some("sock".as_ref()));
    let copies = scratch.join("state/superblocks");
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a folder can be listed").path();
            let kind = std::fs::metadata(&path).expect("a file").file_type();
            if kind.is_dir() && !(is_up && path == copies) {
                folders.push(path);
            } else if kind.is_file() {
                let bytes = with_files_open(|| std::fs::read(&path)).expect("a file can be read");
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// Runs a command that must fail with `code` and `parts` in its message, and change nothing.
#[track_caller]
fn refuses(scratch: &Scratch, args: &[&str], code: i32, parts: &[&str]) -> Output {
    let unchanged = Unchanged::since_now(scratch);
    let output = scratch.run(args).fails(code, parts);
    unchanged.holds(&output.command);
    output
}

/// Members of these names with a pattern of their own on each, so that what is put back is seen.
fn members(scratch: &Scratch, names: &[&str]) {
    for (seed, name) in names.iter().enumerate() {
        scratch.file(name, SIZE, 100 + seed as u64);
    }
}

/// The superblock of a member.
fn superblock(scratch: &Scratch, name: &str) -> Superblock {
    let file = File::open(scratch.join(name)).expect("a member");
    let size = file.metadata().expect("a member").len();
    let found = detect::find(size, &mut |offset, buf| file.read_exact_at(buf, offset));
    let found = found.expect("a member can be read");
    detect::choose(&found).expect("a superblock").superblock.clone()
}

/// Changes a member's superblock, with a new checksum.
fn edit(scratch: &Scratch, name: &str, change: impl FnOnce(&mut Contents)) {
    let mut superblock = superblock(scratch, name).into_contents();
    change(&mut superblock);
    let mut bytes = superblock.encode();
    bytes.resize(SUPERBLOCK_BYTES, 0);
    scratch.patch(name, superblock.super_offset, &bytes);
}

/// Enters `len` bytes from `offset` of a member's data in its bad-block log, as a kernel leaves it that
/// could not read them.
fn list_as_bad(scratch: &Scratch, name: &str, offset: u64, len: u64) {
    list_all_as_bad(scratch, name, [(offset, len)]);
}

/// The same of several places.
fn list_all_as_bad(scratch: &Scratch, name: &str, places: impl IntoIterator<Item = (u64, u64)>) {
    let place = superblock(scratch, name);
    let at = place.bad_block_log.expect("a place for a log");
    let mut log = BadBlocks::new(at.size, at.shift).expect("a log");
    for (offset, len) in places {
        log.insert(place.data_offset + offset, len).expect("room");
    }
    let start = place.super_offset.checked_add_signed(at.offset).expect("a place");
    scratch.patch(name, start, &log.encode());
    edit(scratch, name, |one| one.features = one.features.union(Features::BAD_BLOCKS));
}

/// The fate of a member on a bad day.
#[derive(Clone, Copy, Debug)]
enum Unusable {
    Gone,
    Blank,
    CutOff,
    Short,
    Damaged,
    Folder,
}

impl Unusable {
    /// Each, and what is said of it.
    const ALL: [(Unusable, &'static str); 6] = [
        (Unusable::Gone, "it does not exist"),
        (Unusable::Blank, "carries no md superblock"),
        (Unusable::CutOff, "goes beyond"),
        (Unusable::Short, "it has 100 B"),
        (Unusable::Damaged, "the checksum is"),
        (Unusable::Folder, "it is a directory"),
    ];

    fn make(self, scratch: &Scratch, name: &str) {
        let remove = || std::fs::remove_file(scratch.join(name)).expect("a member");
        match self {
            Unusable::Gone => remove(),
            Unusable::Blank => {
                remove();
                scratch.sparse(name, SIZE);
            }
            Unusable::CutOff => scratch.resize(name, SIZE / 2),
            Unusable::Short => scratch.resize(name, 100),
            Unusable::Damaged => scratch.patch(name, 4096 + 72, &[3]),
            Unusable::Folder => {
                remove();
                std::fs::create_dir(scratch.join(name)).expect("a folder");
            }
        }
    }
}
