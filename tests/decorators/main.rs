//! Devices in front of a device: parts, unreadable ranges. Arrays above them; and that nothing is written to members
//! that are only read.

#[path = "../common/mod.rs"]
mod common;
mod holes;
mod shared;

use std::os::unix::fs::PermissionsExt;

use common::{KIB, Scratch, Tool};

/// Size of a member in bytes.
const MEMBER: u64 = 256 * KIB;
/// Bytes of a chunk of the arrays here.
const CHUNK: u64 = 4 * KIB;

/// Writes a map of `size` bytes with these holes, in bytes.
fn write_map(scratch: &Scratch, name: &str, size: u64, holes: &[(u64, u64)]) {
    let mut text = "# Mapfile. Created by GNU ddrescue version 1.27\n0x0 + 1\n".to_owned();
    let mut at = 0;
    let mut add = |from: u64, to: u64, state: &str| {
        if from < to {
            text += &format!("0x{from:08X}  0x{:08X}  {state}\n", to - from);
        }
    };
    for (start, length) in holes {
        add(at, *start, "+");
        add(*start, start + length, "-");
        at = start + length;
    }
    add(at, size, "+");
    std::fs::write(scratch.join(name), text).expect("a map");
}

/// Makes the members m0, m1, … of an array, whose content is returned.
fn array(scratch: &Scratch, level: &str, members: usize) -> Vec<u8> {
    let names: Vec<String> = (0..members).map(|one| format!("./m{one}")).collect();
    names.iter().for_each(|name| drop(scratch.sparse(name, MEMBER)));
    let volume = scratch.serve(&format!("{level}{})", names.join(", ")), &[]);
    let size = volume.client().size();
    scratch.file("content", size, 7);
    Tool::new("nbdcopy").arg("--flush").arg(scratch.join("content")).arg(volume.uri()).run().ok();
    assert!(volume.stop().success());
    // Whatever opens a member to write fails from here on, unless it is root's.
    for name in &names {
        let read_only = std::fs::Permissions::from_mode(0o444);
        std::fs::set_permissions(scratch.join(name), read_only).expect("a member");
    }
    scratch.read("content")
}

/// The content of all members, to be compared with what it is later.
fn members(scratch: &Scratch, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|one| scratch.read(&format!("m{one}"))).collect()
}

/// The output of `braid cat`, in bytes.
fn cat(scratch: &Scratch, stack: &str) -> Vec<u8> {
    let copy = format!("\"$0\" cat '{stack}' > copy");
    shell(scratch, &copy).run().ok();
    scratch.read("copy")
}

/// A shell in the folder, with braid as `$0`.
fn shell(scratch: &Scratch, command: &str) -> Tool {
    Tool::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_braid")])
        .env("BRAID_CONFIG_DIR", scratch.join("config"))
        .folder(scratch.path())
}
