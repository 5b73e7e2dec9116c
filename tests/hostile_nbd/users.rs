//! Other users of this machine at a Unix socket that lists them, and one that does not.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use crate::common::{MIB, Output, Scratch, Tool, skip_unless_root, skip_without, wait_until};

const USAGE: i32 = 2;
const REFUSED: i32 = 3;

const WRITER: u32 = 47_110;
const READER: u32 = 47_111;
const STRANGER: u32 = 47_112;

/// A folder that every user may enter.
fn open_folder(scratch: &Scratch) -> String {
    let folder = scratch.join("open");
    std::fs::create_dir(&folder).expect("a folder");
    for path in [scratch.path(), &folder] {
        set_permissions(path, Permissions::from_mode(0o711)).expect("a mode");
    }
    folder.display().to_string()
}

#[test]
fn a_listed_user_has_its_rights_and_a_stranger_is_turned_away() {
    skip_without!("nbdinfo", "nbdcopy");
    skip_unless_root!();
    let scratch = Scratch::new();
    let folder = open_folder(&scratch);
    let address = format!("unix:{folder}/v,users={WRITER}:{READER}=read");
    let options = ["--name", "v", "--attach", "none", "--nbd", &address, "--remember"];
    let volume = scratch.up("ram(8M)", &options);
    let bytes = scratch.file("open/bytes", 8 * MIB, 3);
    set_permissions(&bytes, Permissions::from_mode(0o644)).expect("a mode");
    let bytes = bytes.display().to_string();
    let run = |user: u32, program: &str, args: &[&str]| -> Output {
        Tool::new(program).user(user).folder("/".as_ref()).args(args).run()
    };
    let clients = |uri: &str| {
        let is_read_only = |user| run(user, "nbdinfo", &["--is", "read-only", uri]).code();
        assert_eq!((is_read_only(WRITER), is_read_only(READER), is_read_only(0)), (2, 0, 2));
        run(WRITER, "nbdcopy", &[&bytes, uri]).ok();
        assert!(!run(READER, "nbdcopy", &[&bytes, uri]).status.success());
        assert!(!run(STRANGER, "nbdinfo", &["--size", uri]).status.success());
    };
    clients(&volume.uris[0]);
    let export = &volume.status()["exports"][0];
    assert_eq!(export["users"], serde_json::json!(["47110=write", "47111=read"]));
    assert_eq!((&export["connections"], &export["connections_refused"]), (&0.into(), &1.into()));
    let log = scratch.run_folder().join("v.log");
    let told = format!("nbd: the user with the ID {STRANGER} is not listed");
    wait_until("the log has it", || std::fs::read_to_string(&log).unwrap().contains(&told));
    let text = scratch.run(&["status", "v"]).ok().out;
    assert!(text.contains("users") && text.contains("47110=write, 47111=read"), "{text}");
    volume.down();
    // It is remembered.
    let volume = scratch.up("v", &[]);
    clients(&volume.uris[0]);
}

#[test]
fn users_that_cannot_be_served_are_refused_at_the_start() {
    let scratch = Scratch::new();
    let folder = open_folder(&scratch);
    let serve = |address: String| scratch.run(&["serve", "ram(1M)", "--nbd", &address]);
    let unknown = ["this machine has no user \"no-such-user\"", "next: `getent passwd`"];
    serve(format!("unix:{folder}/v,users=no-such-user")).fails(USAGE, &unknown);
    set_permissions(&folder, Permissions::from_mode(0o700)).expect("a mode");
    let closed = ["the listed users cannot reach the socket", "has mode 700", "chmod go+x"];
    serve(format!("unix:{folder}/v,users={WRITER}")).fails(REFUSED, &closed);
    set_permissions(&folder, Permissions::from_mode(0o777)).expect("a mode");
    let loose = ["every user of this machine can replace the socket", "has mode 777", "chmod o-w"];
    serve(format!("unix:{folder}/v,users={WRITER}")).fails(REFUSED, &loose);
    serve(format!("unix:{folder}/v,users=a=all")).fails(USAGE, &["is no address"]);
}
