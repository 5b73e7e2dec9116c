//! Input that must be refused: members, stacks, addresses, names and records that would lead to lost data or to
//! a volume that its user did not mean.
//!
//! Each refusal is checked for three things: its exit status, its message (the refused input, the reason, and
//! the next command), and that no byte of any file was changed. Members are tried with `braid serve` and with
//! `braid up`, which check them in different processes.
//!
//! | status | meaning                                              |
//! |--------|------------------------------------------------------|
//! | 1      | tried, and it did not work                           |
//! | 2      | makes no sense as it was typed, or as it was written |
//! | 3      | a safety rule says no                                |

#[path = "../common/mod.rs"]
mod common;
mod members;
mod names;
mod stacks;
mod volumes;

use std::collections::BTreeMap;
use std::path::PathBuf;

use common::{Output, Scratch, UpVolume, with_files_open};

const FAILED: i32 = 1;
const USAGE: i32 = 2;
const REFUSED: i32 = 3;

/// Every regular file in the scratch folder, with its bytes.
fn contents(scratch: &Scratch) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(scratch.path()).expect("the scratch folder can be listed");
    let files = entries.filter_map(|entry| {
        let entry = entry.expect("the scratch folder can be listed");
        // `serve` logs what the test looks at.
        let is_member = !entry.file_name().to_string_lossy().ends_with(".log");
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        (is_member && is_file).then(|| entry.path())
    });
    files
        .map(|path| {
            let bytes = with_files_open(|| std::fs::read(&path)).expect("a member can be read");
            (path, bytes)
        })
        .collect()
}

/// Checks that a stack is refused by `serve` and by `up`, with `code` and each of `parts` in the
/// message, and that nothing was changed.
#[track_caller]
fn refuses(scratch: &Scratch, stack: &str, options: &[&str], code: i32, parts: &[&str]) {
    let before = contents(scratch);
    let check = |how: &str, output: Output| {
        output.fails(code, parts);
        let after = contents(scratch);
        assert!(before.keys().eq(after.keys()), "{how} {stack}: a file was made or removed");
        for (path, bytes) in &before {
            assert!(after[path] == *bytes, "{how} {stack}: {} was changed", path.display());
        }
    };
    match scratch.try_serve(stack, options) {
        Ok(_) => panic!("`serve {stack}` should be refused"),
        Err(output) => check("serve", output),
    }
    let options: Vec<&str> = ["--name", "refused", "--attach", "none"]
        .into_iter()
        .chain(options.iter().copied())
        .collect();
    match UpVolume::start(scratch, stack, &options) {
        Ok(_) => panic!("`up {stack}` should be refused"),
        Err(output) => check("up", output),
    }
    assert!(!scratch.config_file("refused").exists(), "nothing that was refused is remembered");
    scratch.run(&["status", "refused"]).fails(FAILED, &["no volume called refused is up"]);
}
