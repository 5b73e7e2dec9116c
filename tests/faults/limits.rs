//! Processes with little room: few descriptors, small files, a run folder that others may write to.

use std::os::unix::fs::PermissionsExt;

use crate::common::{
    Client, Failed, MIB, Output, Scratch, Tool, Volume, pattern, start, wait_until,
};

/// `braid` under a limit of the shell's, such as `-n 48`.
fn limited(scratch: &Scratch, limit: &str, args: &[&str]) -> Tool {
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    Tool::new("bash")
        .args(["-c", &script, env!("CARGO_BIN_EXE_braid")])
        .args(args)
        .env("BRAID_RUN_DIR", scratch.run_folder())
        .env("BRAID_CONFIG_DIR", scratch.join("config"))
        .env("BRAID_STATE_DIR", scratch.join("state"))
        .env("BASH_ENV", "")
        .folder(scratch.path())
}

#[test]
fn a_volume_that_nobody_could_connect_to_does_not_come_up() {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..12).map(|index| format!("./m{index}.img")).collect();
    names.iter().for_each(|name| drop(scratch.sparse(name, MIB)));
    let stack = format!("raid0(chunk=64K, {})", names.join(", "));
    let up = |limit: &str| -> Output {
        let args = ["up", &stack, "--name", "v", "--attach", "none", "--shards", "1"];
        limited(&scratch, limit, &args).run()
    };
    up("-n 48").fails(1, &["48 files may be open at once", "next: `ulimit -n 4096`"]);
    assert!(!scratch.run_folder().join("v.sock").exists());
    // A limit that may be raised is raised.
    up("-Sn 20").ok();
    Client::connect(&scratch.run_folder().join("v.nbd")).expect("there is room").flush().unwrap();
    scratch.run(&["down", "v"]).ok();
}

#[test]
fn a_file_that_may_not_grow_is_the_member_s_failure() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 16 * MIB);
    let socket = scratch.join("s.nbd");
    let address = format!("unix:{}", socket.display());
    // Of KiB.
    let mut command =
        limited(&scratch, "-f 1024", &["serve", "./a.img", "--nbd", &address, "--quiet"])
            .into_command();
    let child = start(&mut command).expect("bash can be started");
    let mut volume = Volume::adopt(&scratch, child, &socket);
    let mut client = Client::connect_patiently(&socket);
    let bytes = pattern(1, 0, 4096);
    match client.write(8 * MIB, &bytes, false) {
        Err(Failed::Answered(_)) => {}
        other => panic!("the member may have no bytes there: {other:?}"),
    }
    client.write(4096, &bytes, true).expect("the rest of it is as it was");
    assert!(client.read(4096, 4096).unwrap() == bytes);
    volume.assert_serves();
}

#[test]
fn a_run_folder_that_others_may_write_to_is_refused() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let folder = scratch.run_folder();
    std::fs::create_dir(&folder).unwrap();
    let set_mode = |mode| {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o777);
    let up = ["up", "./a.img", "--name", "v", "--attach", "none"];
    scratch.run(&up).fails(3, &["others may write to", "next: chmod 700"]);
    set_mode(0o700);
    // A file of another user is not written through a link of any user.
    let precious = scratch.file("precious", 4096, 3);
    for name in ["v.json", "v.json.new"] {
        std::os::unix::fs::symlink(&precious, folder.join(name)).unwrap();
    }
    let volume = scratch.up("./a.img", &up[2..]);
    volume.down();
    assert!(scratch.read("precious") == pattern(3, 0, 4096));
    std::os::unix::fs::symlink(&precious, folder.join("v.log")).unwrap();
    scratch.run(&up).fails(1, &["cannot open the log"]);
    wait_until("nothing is up", || !folder.join("v.sock").exists());
}
