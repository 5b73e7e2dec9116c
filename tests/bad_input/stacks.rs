//! Expressions, numbers and addresses that make no sense.

use crate::common::{MIB, Scratch, Tool};
use crate::{FAILED, REFUSED, USAGE, refuses};

#[test]
fn an_expression_that_cannot_be_read_is_drawn() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    for (stack, drawing) in [
        (
            "raid0(./a.img, ram(1M)",
            "column 23: `)` is missing for `raid0(`\n  raid0(./a.img, ram(1M)\n                        ^\n",
        ),
        ("raid(./a.img)", "column 1: `raid` is not a level\n  raid(./a.img)\n  ^^^^"),
        (
            "raid0(chnk=4K, ./a.img)",
            "column 7: `raid0` has no parameter `chnk`\n  raid0(chnk=4K, ./a.img)\n        ^^^^",
        ),
        ("linear(./a.img,, ram(1M))", "column 16: found `,` where a member or a value is needed"),
        ("ram(1X)", "column 5: `size` cannot be `1X`"),
        ("ram(0)", "column 5: `size` cannot be zero"),
        ("raid5(./a.img)", "column 1: `raid5` needs at least 2 members, not 1"),
        (
            "raid6(ram(1M), missing, missing, missing)",
            "column 34: 3 members of `raid6` are missing; it can do without 2",
        ),
        ("raid5(layout=n2, ./a.img, ram(1M))", "column 14: `n2` is not a layout"),
        ("raid4(chunk=12K, ./a.img, ram(1M))", "column 13: `chunk` 12K is not a power of two"),
        (
            "cache(./a.img, ram(1M))",
            "column 1: `cache` needs the memory that it may take: size=SIZE",
        ),
        ("linear(\"./a.img)", "the quote is not closed"),
    ] {
        refuses(&scratch, stack, &[], USAGE, &["this stack cannot be read", drawing]);
    }
    refuses(&scratch, "raid0(chnk=4K, ./a.img)", &[], USAGE, &["did you mean `chunk=`?"]);
    let empty = scratch.run(&["serve", "", "--nbd", "unix:s"]);
    empty.fails(USAGE, &["column 1: the expression is empty"]);
}

#[test]
fn chunks_that_cannot_be() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    scratch.file("b.img", MIB, 2);
    for (chunk, part) in [
        ("0", "`chunk` cannot be zero"),
        ("5000", "`chunk` 5000 is not a multiple of 4K\n"),
        ("2K", "`chunk`"),
        ("128M", "`chunk` 128M is outside 4K to 64M"),
    ] {
        let stack = format!("raid0(chunk={chunk}, ./a.img, ./b.img)");
        refuses(&scratch, &stack, &[], USAGE, &["column 13: ", part]);
    }
    // Whether it fits is known when the members are.
    let stack = "raid0(chunk=2M, ./a.img, ./b.img)";
    let part = "raid0: member 0 has 1048576 bytes, less than the 2097152 that one chunk needs";
    refuses(&scratch, stack, &[], FAILED, &[part]);
}

#[test]
fn a_window_that_is_not_in_the_file() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    for stack in ["file(./a.img, offset=2M)", "file(./a.img, offset=512K, length=1M)"] {
        refuses(&scratch, stack, &[], FAILED, &["cannot open", "a.img"]);
    }
}

#[test]
fn models_and_memory_that_are_not_there() {
    let scratch = Scratch::new();
    let parts = ["there is no model called \"floppy\"", "there are: ", "usb-flash"];
    refuses(&scratch, "model(floppy, size=1M)", &[], USAGE, &parts);
    let right = include_str!("../../crates/model/profiles/rally2.toml");
    let bus = include_str!("../../crates/model/profiles/usb2-ich9.toml");
    for (name, text) in [
        ("short.toml", right.replacen("\nread_rate", "\n#", 1)),
        ("range.toml", right.replacen("\nread_rate = [", "\nread_rate = [-", 1)),
        ("bus.toml", bus.to_owned()),
    ] {
        assert_ne!(text, right);
        std::fs::write(scratch.join(name), text).expect("a file");
    }
    for (stack, parts) in [
        (
            "model(./none, size=1M)",
            ["/none cannot be read: No such file", "next: `braid model fit DEVICE"],
        ),
        (
            "raid1(ram(1M), model(short.toml, size=1M))",
            ["/short.toml is no profile: read_rate is missing", "next: correct"],
        ),
        (
            "model(range.toml, size=1M)",
            ["/range.toml is no profile: read_rate is -", "next: correct"],
        ),
        (
            "model(bus.toml, size=1M)",
            ["/bus.toml, …): it is of kind bus, no device", "next: `braid model show"],
        ),
        (
            "model(barracuda-500, size=1M, read=1M/s)",
            ["model(barracuda-500, …): a disk has zones", "next: `braid model show"],
        ),
    ] {
        refuses(&scratch, stack, &[], USAGE, &parts);
    }
    let parts = ["ram(1P) is more than the", "memory that this machine has"];
    refuses(&scratch, "ram(1P)", &[], REFUSED, &parts);
    let both = "linear(ram(512T), ram(512T))";
    refuses(&scratch, both, &[], REFUSED, &["the memory of this stack is more than"]);
}

#[test]
fn addresses_that_are_none() {
    let scratch = Scratch::new();
    for address in ["", "a.sock", "unix:", "tcp:", "tcp:somewhere:1", "tcp:127.0.0.1:99999"] {
        let text = format!("{address:?} is no address: unix:PATH, unix:PATH,users=");
        refuses(&scratch, "ram(1M)", &["--nbd", address], USAGE, &[&text]);
    }
    let folder = ["cannot listen on unix:", "No such file or directory"];
    let nowhere = format!("unix:{}/no/folder/s", scratch.path().display());
    refuses(&scratch, "ram(1M)", &["--nbd", &nowhere], FAILED, &folder);
    let long = format!("unix:{}/{}", scratch.path().display(), "x".repeat(120));
    refuses(&scratch, "ram(1M)", &["--nbd", &long], FAILED, &["cannot listen on unix:"]);
}

#[test]
fn tcp_beyond_the_loopback_must_be_insisted_on() {
    let scratch = Scratch::new();
    for address in ["tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:0"] {
        let parts = ["can be reached from other machines", "without TLS", "--insecure"];
        refuses(&scratch, "ram(1M)", &["--nbd", address], REFUSED, &parts);
    }
    // With the option it listens; on the loopback it does without.
    scratch.serve("ram(1M)", &["--nbd", "tcp:0.0.0.0:0", "--insecure"]).assert_serves();
    scratch.serve("ram(1M)", &["--nbd", "tcp:127.0.0.1:0"]).assert_serves();
}

#[test]
fn a_socket_s_path_that_is_taken() {
    let scratch = Scratch::new();
    scratch.file("notes", 100, 1);
    let notes = format!("unix:{}", scratch.join("notes").display());
    let parts = ["notes exists and is not a socket", "choose another path"];
    refuses(&scratch, "ram(1M)", &["--nbd", &notes], FAILED, &parts);
    let mut volume = scratch.serve("ram(1M)", &[]);
    let taken = format!("unix:{}", volume.socket().display());
    let parts = ["the socket of a server that runs", "choose another path"];
    refuses(&scratch, "ram(1M)", &["--nbd", &taken], FAILED, &parts);
    volume.assert_serves();
    // One that a killed server left is replaced.
    let left = volume.socket().to_owned();
    volume.signal(rustix::process::Signal::KILL);
    volume.wait();
    assert!(left.exists(), "a killed server cannot remove its socket");
    let _second = scratch.serve("ram(1M)", &["--nbd", &taken]);
    crate::common::Client::connect(&left).expect("the second one listens there");
}

#[test]
fn names_that_cannot_be() {
    let scratch = Scratch::new();
    let long = "x".repeat(41);
    for name in ["", ".", "..", ".hidden", "-v", "a/b", "../a", "a b", "naïve", long.as_str()] {
        let option = format!("--name={name}");
        let text = "cannot name a volume: 1 to 40 letters, digits";
        scratch.run(&["serve", "ram(1M)", "--nbd=unix:s", &option]).fails(USAGE, &[text]);
        scratch.run(&["up", "ram(1M)", "--attach=none", &option]).fails(USAGE, &[text]);
        scratch.run(&["down", "--", name]).fails(USAGE, &[text]);
        scratch.run(&["status", "--", name]).fails(USAGE, &[text]);
    }
    assert!(!scratch.join("s").exists());
}

#[test]
fn a_folder_of_sockets_that_is_somebody_else_s() {
    crate::common::skip_unless_root!();
    let scratch = Scratch::new();
    let folder = scratch.run_folder();
    std::fs::create_dir(&folder).unwrap();
    Tool::new("chown").arg("65534").arg(&folder).run().ok();
    let output = scratch.run(&["up", "ram(1M)", "--name", "v", "--attach", "none"]);
    output.fails(REFUSED, &["belongs to another user", "next: set BRAID_RUN_DIR"]);
}
