//! Servers that return as something else, or break the protocol: clear errors, and nothing lost.

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};

use crate::common::{MIB, Scratch, Tool, pattern, skip_without, wait_until};
use crate::far::{Far, member, socket};

#[test]
fn a_server_that_returns_as_less_than_it_was_is_not_used() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    let disk = scratch.sparse("far.img", 8 * MIB);
    let disk = disk.to_str().expect("a plain name");
    let far = Far::nbdkit(&["file", disk], &socket);
    let near =
        scratch.up(&member(&socket, ", deadline=60s"), &["--name", "near", "--attach", "none"]);
    near.client().write(0, &pattern(7, 0, 4096), true).expect("a write");
    let mut last = far;
    for (args, why) in [
        (
            vec!["file", disk, "--filter=truncate", "truncate=4M"],
            "has 4194304 bytes now; it had 8388608",
        ),
        (vec!["--readonly", "file", disk], "is read-only now"),
        (
            vec!["--filter=blocksize-policy", "file", disk, "blocksize-minimum=4096"],
            "its blocks are larger",
        ),
        (vec!["--filter=nozero", "file", disk], "it cannot write zeroes"),
    ] {
        drop(last);
        last = Far::nbdkit(&args, &socket);
        wait_until(why, || near.status()["warnings"].to_string().contains(why));
    }
    drop(last);
    // One that breaks the protocol.
    std::fs::remove_file(&socket).expect("a socket");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let hostile = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the member");
        // It may be gone by then.
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2 and more");
    });
    hostile.join().expect("the server");
    wait_until("the reason", || {
        near.status()["warnings"].to_string().contains("not a newstyle NBD server")
    });
    std::fs::remove_file(&socket).expect("a socket");
    // As it was: the request that waits is answered.
    let mut client = near.client();
    let _far = Far::nbdkit(&["file", disk], &socket);
    assert_eq!(client.read(0, 4096).expect("a read"), pattern(7, 0, 4096));
    near.down();
}

/// Returns the ranges that are data, of all that a client at `socket` is told about holes.
fn data(socket: &Path) -> Vec<(u64, u64)> {
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let map = Tool::new("nbdinfo").args(["--map", "--json", &uri]).run().ok().out;
    let map: serde_json::Value = serde_json::from_str(&map).expect("JSON");
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let extents = map.as_array().expect("extents").iter();
    let data = extents.filter(|extent| number(&extent["type"]) == 0);
    data.map(|extent| (number(&extent["offset"]), number(&extent["length"]))).collect()
}

/// Servers of three kinds, and what lies over them: a client copies only what is stored on the other machine.
#[test]
fn holes_of_a_server_are_passed_on() {
    skip_without!("nbdkit", "qemu-nbd", "nbdinfo");
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    let disk = scratch.sparse("far.img", 64 * MIB);
    let path = disk.to_str().expect("a plain name");
    // Closed at once: a file that another program has open is no member.
    let open = || std::fs::File::options().write(true).open(&disk).expect("a file");
    let put = |place| open().write_all_at(&pattern(7, place, 64 << 10), place).expect("room");
    [MIB, 40 * MIB].into_iter().for_each(put);
    let stored = [(MIB, 64 << 10), (40 * MIB, 64 << 10)];
    let qemu = || {
        let args = ["--format=raw", "--persistent", "--shared=0", "--socket"];
        Far::start(Tool::new("qemu-nbd").args(args).arg(&socket).arg(path), &socket)
    };
    let servers: [(&str, &dyn Fn() -> Far); 3] = [
        ("nbdkit", &|| Far::nbdkit(&["file", path], &socket)),
        ("braid", &|| Far::braid(&scratch, path, &socket)),
        ("qemu-nbd", &qemu),
    ];
    for (name, server) in servers {
        let far = server();
        let near = scratch.up(&member(&socket, ""), &["--name", "near", "--attach", "none"]);
        assert_eq!(data(&near.socket()), stored, "{name}");
        // The other writes beside us: nothing is kept from the last question.
        put(9 * MIB);
        assert_eq!(data(&near.socket()), [stored[0], (9 * MIB, 64 << 10), stored[1]], "{name}");
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(open(), hole, 9 * MIB, 64 << 10).expect("a hole");
        near.down();
        drop(far);
    }
    let _far = servers[0].1();
    scratch.sparse("near.img", 64 * MIB);
    let stack = format!("raid0(near.img, {}, chunk=64K)", member(&socket, ""));
    let near = scratch.up(&stack, &["--name", "both", "--attach", "none"]);
    let twice = |(at, len)| (2 * at + (64 << 10), len);
    assert_eq!(data(&near.socket()), stored.map(twice));
    near.down();
}

/// As with a local member, the size is that of the opening until the next start.
#[test]
fn an_export_that_grew_is_used_as_it_was_and_has_its_new_size_at_the_next_start() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    let disk = scratch.sparse("far.img", 8 * MIB);
    let path = disk.to_str().expect("a plain name");
    let far = Far::nbdkit(&["file", path], &socket);
    let up = ["--name", "near", "--attach", "none"];
    let near = scratch.up(&member(&socket, ""), &up);
    near.client().write(0, &pattern(7, 0, 4096), true).expect("a write");
    drop(far);
    let file = std::fs::File::options().write(true).open(&disk).expect("a file");
    file.set_len(16 * MIB).expect("room");
    let far = Far::nbdkit(&["file", path], &socket);
    let mut client = near.client();
    assert_eq!(client.read(0, 4096).expect("a read"), pattern(7, 0, 4096));
    assert_eq!(client.size(), 8 * MIB);
    assert!(client.read(12 * MIB, 4096).is_err(), "behind the end");
    drop(client);
    near.down();
    let near = scratch.up("near", &["--attach", "none"]);
    let mut client = near.client();
    assert_eq!(client.size(), 16 * MIB);
    client.write(12 * MIB, &pattern(8, 0, 4096), true).expect("a write to the new part");
    drop(client);
    near.down();
    drop(far);
}

#[test]
fn a_request_that_waits_is_told_and_fails_at_the_deadline() {
    skip_without!("nbdkit");
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    let far = Far::nbdkit(&["memory", "8M"], &socket);
    let stack = member(&socket, ", deadline=4s");
    let near = scratch.up(&stack, &["--name", "near", "--attach", "none"]);
    let mut client = near.client();
    drop(far);
    let waiting = std::thread::spawn(move || client.write(0, &pattern(1, 0, 4096), false));
    wait_until("the wait to be told", || {
        let told = scratch.run(&["status", "near"]).ok().out;
        told.contains("waits ") && told.contains("fails at 4 s")
    });
    let top = scratch.run(&["top", "near", "--count", "1", "--interval", "1"]).ok().out;
    assert!(
        top.contains("nbd(") && (top.contains("waits ") || top.contains("not connected")),
        "{top}"
    );
    assert!(waiting.join().expect("a client").is_err(), "it fails at the deadline");
}

#[test]
fn addresses_of_every_wrong_kind_are_refused_at_their_place() {
    let scratch = Scratch::new();
    for (uri, at, why) in [
        (
            "http://nas/x",
            "http",
            "an address begins with nbd://, nbds://, nbd+unix:// or nbds+unix://",
        ),
        ("nbd:///x", "/x", "it names no host"),
        ("nbd://nas:0/x", "0/x", "its port is no number from 1 to 65535"),
        ("nbd://nas:x1/y", "x1", "its port is no number from 1 to 65535"),
        ("nbd://::1/x", "::1", "in brackets"),
        ("nbd://me@nas/x", "@nas", "user names are not known"),
        ("nbd://nas/x?tls=on", "?tls", "has no parameters"),
        ("nbd+unix://nas/x?socket=/s", "nas", "a Unix socket has no host"),
        ("nbd+unix:///x?socket=s", "s)", "does not begin with /"),
    ] {
        let stack = format!("nbd({uri})");
        let output = scratch.run(&["cat", &stack]).fails(2, &[why]);
        // A caret stands below the place.
        let lines: Vec<&str> = output.err.lines().collect();
        let shown = lines.iter().position(|line| line.contains(&stack)).expect("the expression");
        let caret = lines[shown + 1].find('^').expect("a caret");
        let place = lines[shown].get(caret..).unwrap_or_default();
        assert!(place.starts_with(at), "{uri}: {place:?}\n{}", output.err);
    }
}
