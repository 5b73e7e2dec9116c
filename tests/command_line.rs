//! The command line as a person and as a script meet it: help, a volume's round trip, JSON, exit
//! statuses. What is refused is in `bad_input`.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::{
    Client, KIB, MIB, RawClient, Scratch, Volume, is_alive, pattern, send_signal, wait_until,
};
use rustix::process::Signal;

#[test]
fn every_command_explains_itself() {
    let scratch = Scratch::new();
    for (command, parts) in [
        (
            &["--help"][..],
            &[
                "Usage: braid [OPTIONS] <COMMAND>",
                "up ",
                "serve ",
                "down ",
                "status ",
                "doctor ",
                "lab ",
                "Exit status: 0 success, 1 failure, 2 wrong usage, 3 refused",
                "raid0(chunk=64K, /dev/sdb, /dev/sdc)",
            ][..],
        ),
        (
            &["up", "--help"],
            &[
                "Usage: braid up [OPTIONS] <STACK|NAME|FILE.toml>",
                "--name <NAME>",
                "--attach <ATTACH>",
                "--nbd <ADDRESS>",
                "--read-only",
                "--force <MEMBER>",
                "--insecure",
                "--foreground",
                "--remember",
                "--accept-members",
                "Options apply to this start only; use",
                "--json",
            ],
        ),
        (
            &["serve", "--help"],
            &[
                "Usage: braid serve [OPTIONS] <STACK>",
                "unix:PATH,users=NAME:NAME=read",
                "--io <IO>",
                "--shards <COUNT>",
                "--quiet",
            ],
        ),
        (&["down", "--help"], &["Usage: braid down [OPTIONS] <NAME>", "--force"]),
        (&["status", "--help"], &["Usage: braid status [OPTIONS] [NAME]", "--json", "--watch"]),
        (&["doctor", "--help"], &["Usage: braid doctor [OPTIONS]", "--json"]),
        (
            &["lab", "--help"],
            &["Usage: braid lab [OPTIONS] <COMMAND>", "presets", "plan", "run", "report"],
        ),
        (
            &["lab", "plan", "--help"],
            &["<FILE.toml|PRESET>", "--baseline <STACK>", "--subject <NAME=STACK>"],
        ),
        (&["lab", "run", "--help"], &["--out <FOLDER>", "--destroy <PATH>"]),
        (&["lab", "report", "--help"], &["<FOLDER>"]),
    ] {
        let output = scratch.run(command).ok();
        for part in parts {
            assert!(output.out.contains(part), "{part:?} is not in {output}");
        }
        assert!(
            !output.out.contains("braid-volume"),
            "the volume's process is not for people: {output}"
        );
        assert!(output.out.lines().all(|line| line.chars().count() <= 100), "narrow: {output}");
    }
    let version = scratch.run(&["--version"]).ok();
    assert!(version.out.starts_with("braid "), "{version}");
}

#[test]
fn manual_pages_and_completions_know_every_command() {
    let scratch = Scratch::new();
    let page = scratch.run(&["man"]).ok();
    for part in [".TH braid 1", "braid\\-status(1)", "Exit status: 0 success"] {
        assert!(page.out.contains(part), "{part:?} is not in {page}");
    }
    scratch.run(&["man", "--into", "pages"]).fails(1, &["pages: No such file or directory"]);
    std::fs::create_dir(scratch.join("pages")).expect("a folder");
    scratch.run(&["man", "--into", "pages"]).ok();
    let page = String::from_utf8(scratch.read("pages/braid-member-replace.1")).expect("text");
    assert!(page.contains("Copy a working member to another device"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.run(&["completions", shell]).ok();
        for part in ["re-add", "lab", "scrub"] {
            assert!(script.out.contains(part), "{shell}: {part:?} is not in {script}");
        }
        assert!(!script.out.contains("braid-volume"), "{shell}: {script}");
    }
    scratch.run(&["completions", "csh"]).fails(2, &["possible values: bash"]);
}

#[test]
fn wrong_usage_ends_with_2() {
    let scratch = Scratch::new();
    for args in [
        &[][..],
        &["conjure"],
        &["up"],
        &["serve", "ram(1M)"],
        &["serve", "--nbd", "unix:s"],
        &["up", "ram(1M)", "--attach", "glue"],
        &["up", "ram(1M)", "--io", "steam"],
        &["up", "ram(1M)", "--shards", "0"],
        &["up", "ram(1M)", "--shards", "many"],
        &["down"],
        &["status", "a", "b"],
        &["lab"],
        &["lab", "plan", "no-such-preset"],
    ] {
        let output = scratch.run(args);
        assert_eq!(output.code(), 2, "{output}");
        assert!(!output.err.is_empty(), "{output}");
    }
}

#[test]
fn a_volume_goes_up_down_and_up_again() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, 2 * MIB);
    }
    let stack = "raid0(chunk=64K, ./a.img, ./b.img)";
    let bytes = pattern(1, 0, 300 * KIB);
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
    assert_eq!(volume.device, None);
    assert_eq!(volume.uris.len(), 1, "without an address it listens in the run folder");
    volume.client().write(64 * KIB, &bytes, false).unwrap();
    volume.down();
    assert!(!scratch.run_folder().join("v.nbd").exists(), "its socket went with it");
    assert!(!scratch.run_folder().join("v.sock").exists(), "its control socket, too");
    // By its name, by the same stack under its name, and by its record.
    let record = scratch.config_file("v");
    for (target, options) in [
        ("v", &["--attach", "none"][..]),
        (stack, &["--name", "v", "--attach", "none"]),
        (record.to_str().unwrap(), &["--attach", "none"]),
    ] {
        let volume = scratch.up(target, options);
        assert_eq!(volume.name, "v");
        let mut client = volume.client();
        assert_eq!(client.size(), 4 * MIB);
        assert!(client.read(64 * KIB, bytes.len() as u32).unwrap() == bytes, "by {target}");
        volume.down();
    }
}

#[test]
fn volumes_without_a_name_get_one() {
    let scratch = Scratch::new();
    let first = scratch.up("ram(1M)", &["--attach", "none"]);
    let second = scratch.up("ram(1M)", &["--attach", "none"]);
    assert_eq!([first.name.as_str(), second.name.as_str()], ["vol0", "vol1"]);
    let plain = scratch.run(&["up", "ram(1M)", "--attach", "none"]).ok();
    assert!(plain.out.starts_with("nbd+unix:///?socket="), "{plain}");
    assert!(plain.err.contains("the volume is called vol2: `braid down vol2` ends it"), "{plain}");
    let all = scratch.run(&["status"]).ok();
    for name in ["vol0", "vol1", "vol2"] {
        assert!(all.out.contains(&format!("\n{name}    online  1 MiB  ")), "{all}");
    }
    scratch.run(&["down", "vol2"]).ok();
    let json = scratch.run(&["status", "--json"]).ok().json();
    assert_eq!(json["volumes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_record_keeps_what_it_is_told_to_and_other_options_replace_that_for_once() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let address = "unix:own.sock";
    let options = ["--name", "v", "--attach", "none", "--nbd", address, "--io", "threads"];
    scratch.up("./a.img", &[&options[..], &["--remember"]].concat()).down();
    let volume = scratch.up("v", &[]);
    let own = scratch.join("own.sock");
    assert!(volume.uris[0].ends_with(own.to_str().unwrap()), "{:?}", volume.uris);
    assert_eq!(volume.status()["io"], "threads");
    Client::connect(&own).expect("it listens where it was told to");
    volume.down();
    let volume = scratch.up("v", &["--read-only", "--nbd", "unix:other.sock"]);
    assert_eq!(volume.status()["device"]["read_only"], true);
    Client::connect(&scratch.join("other.sock")).expect("it listens where it is told to now");
    volume.down();
}

#[test]
fn status_tells_a_script_everything() {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, MIB);
    }
    let stack = "raid0(chunk=64K, ./a.img, ./b.img)";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none", "--shards", "2"]);
    let mut client = volume.client();
    client.write(0, &pattern(1, 0, 64 * KIB), false).unwrap();
    client.read(0, 4096).unwrap();
    client.flush().unwrap();
    // A reply is counted when its send is known to have ended: a client may have it before.
    wait_until("the count of the last reply", || volume.status()["nbd"]["replies"] == 3);
    let whole = scratch.run(&["status", "v", "--json"]).ok().json();
    assert_eq!(whole["output_version"], 2);
    let status = &whole["volumes"][0];
    assert_eq!(status["output_version"], 2);
    for (key, value) in [("name", "v"), ("state", "online")] {
        assert_eq!(status[key], value, "{status:#}");
    }
    assert!(status["why"].is_null() && status["next"].is_null() && status["attached"].is_null());
    assert_eq!(status["shards"], 2);
    assert!(["uring", "threads"].contains(&status["io"].as_str().unwrap()));
    assert!(is_alive(status["pid"].as_u64().unwrap() as u32));
    let device = &status["device"];
    assert_eq!(device["size_bytes"], 2 * MIB);
    assert_eq!([&device["read_only"], &device["volatile"]], [false, false]);
    let nbd = &status["nbd"];
    assert_eq!(nbd["connections"], 1);
    assert_eq!(nbd["connections_accepted"], 1);
    assert_eq!([&nbd["requests"], &nbd["replies"]], [3, 3]);
    assert_eq!([&nbd["errors"], &nbd["protocol_errors"]], [0, 0]);
    assert_eq!([&nbd["written_bytes"], &nbd["read_bytes"]], [64 * KIB, 4096]);
    for key in ["receives", "sends"] {
        assert!(nbd[key].as_u64() > Some(0), "{key} in {nbd:#}");
    }
    for (member, name) in status["members"].as_array().unwrap().iter().zip(["a.img", "b.img"]) {
        assert!(member["member"].as_str().unwrap().ends_with(name));
        assert_eq!(member["size_bytes"], MIB);
        assert_eq!(member["failures"], 0);
        assert!(member["last_failure"].is_null());
    }
    let plain = scratch.run(&["status", "v"]).ok();
    for part in ["volume: v", "state: online", "size: 2 MiB", "a.img", "1 connected; 3 requests"] {
        assert!(plain.out.contains(part), "{part:?} is not in {plain}");
    }
    assert!(!plain.out.contains('\u{1b}'), "a pipe gets plain lines: {plain}");
}

#[test]
fn status_of_nothing() {
    let scratch = Scratch::new();
    let plain = scratch.run(&["status"]).ok();
    assert_eq!(plain.out.trim(), "no volumes are up");
    let json = scratch.run(&["status", "--json"]).ok().json();
    let none =
        serde_json::json!({ "output_version": 2, "health": "ok", "volumes": [], "unanswered": [] });
    assert_eq!(json, none);
}

#[test]
fn memory_is_called_volatile() {
    let scratch = Scratch::new();
    let volume = scratch.up("linear(ram(1M), ram(2M))", &["--name", "v", "--attach", "none"]);
    assert_eq!(volume.status()["device"]["volatile"], true);
    let plain = scratch.run(&["status", "v"]).ok();
    assert!(plain.out.contains("3 MiB, blocks of 512 bytes, in memory only"), "{plain}");
}

#[test]
fn serve_tells_where_it_listens_and_ends_on_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let scratch = Scratch::new();
        scratch.sparse("a.img", MIB);
        let mut volume = scratch.serve("./a.img", &["--nbd", "tcp:127.0.0.1:0"]);
        assert!(volume.uri().starts_with("nbd+unix:///?socket="), "{}", volume.uri());
        volume.assert_serves();
        wait_until("a warning", || volume.errors().contains("every user of this machine"));
        assert!(!volume.errors().contains("unix:/"), "{}", volume.errors());
        assert!(volume.socket().exists());
        volume.signal(signal);
        let status = volume.wait();
        assert!(status.success(), "{signal:?}: {status} {}", volume.errors());
        assert!(!volume.socket().exists(), "its socket went with it");
    }
}

/// ```text
///   braid serve … 2>&1 | head -1
/// ```
#[test]
fn a_volume_goes_on_when_nobody_reads_what_it_says() {
    let scratch = Scratch::new();
    let sockets = ["one.sock", "two.sock"].map(|name| scratch.join(name));
    let addresses = sockets.each_ref().map(|socket| format!("unix:{}", socket.display()));
    let tool = scratch.braid().args(["serve", "ram(1M)", "--nbd", &addresses[0], "--nbd"]);
    let mut command = tool.arg(&addresses[1]).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = common::start(&mut command).expect("braid can be started");
    drop((child.stdout.take(), child.stderr.take()));
    let mut volume = Volume::adopt(&scratch, child, &sockets[1]);
    wait_until("the volume", || Client::connect(&sockets[1]).is_ok());
    // It has something to say of this client.
    let mut hostile = RawClient::connect(&sockets[0]).expect("it takes clients");
    hostile.send(&[0xff; 64]).expect("a few bytes find room");
    hostile.assert_closed();
    volume.assert_serves();
    assert!(volume.stop().success());
}

#[test]
fn commands_end_when_nobody_reads_what_they_say() {
    let scratch = Scratch::new();
    let volume = scratch.up("ram(1M)", &["--name", "v", "--attach", "none"]);
    for args in [&["status"][..], &["status", "--watch"], &["doctor"], &["doctor", "--json"]] {
        let mut command = scratch.braid().args(args).into_command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = common::start(&mut command).expect("braid can be started");
        drop(child.stdout.take());
        let mut stderr = child.stderr.take().expect("it is piped");
        let status = Volume::adopt(&scratch, child, &scratch.join("none")).wait();
        let mut err = String::new();
        stderr.read_to_string(&mut err).expect("it has ended");
        assert!(!err.contains("panicked"), "{args:?}: {err}");
        assert!(status.code().is_some_and(|code| code <= 1), "{args:?}: {status}");
    }
    volume.down();
}

#[test]
fn up_in_the_foreground_answers_to_down() {
    let scratch = Scratch::new();
    let command = scratch.braid().args(["up", "ram(1M)", "--name", "v", "--attach", "none"]);
    let command = command.arg("--foreground");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| command.run());
        wait_until("the volume", || scratch.run(&["status", "v"]).status.success());
        wait_until("its record", || scratch.config_file("v").exists());
        scratch.run(&["down", "v"]).ok();
        let output = running.join().expect("it ends").ok();
        assert!(output.out.starts_with("nbd+unix:///?socket="), "{output}");
    });
}

#[test]
fn a_volume_that_was_killed_is_told_and_comes_up_again() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    volume.kill();
    let parts = ["v: its process is gone", "next: `braid down v` removes what it left"];
    scratch.run(&["status", "v"]).fails(1, &parts);
    let down = volume.try_down(&[]).ok();
    assert!(down.err.contains("what it left was removed"), "{down}");
    scratch.run(&["status", "v"]).fails(1, &["no volume called v is up"]);
    // And without `down` in between.
    let volume = scratch.up("v", &["--attach", "none"]);
    volume.kill();
    let again = scratch.up("v", &["--attach", "none"]);
    again.client().flush().unwrap();
    again.down();
}

/// By the machine's shutdown, or because its starter was told to end as well.
#[test]
fn down_removes_the_log_of_a_volume_that_ended_by_itself() {
    let scratch = Scratch::new();
    let volume = scratch.up("ram(1M)", &["--name", "v", "--attach", "none"]);
    send_signal(volume.pid, Signal::TERM);
    wait_until("its end", || !is_alive(volume.pid));
    assert!(scratch.run_folder().join("v.log").exists());
    scratch.run(&["down", "v"]).ok();
    let left: Vec<_> = scratch.run_folder().read_dir().unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    for options in [&[][..], &["--force"]] {
        let again = scratch.run(&[&["down", "v"], options].concat()).ok();
        assert_eq!((&*again.out, &*again.err), ("", "v is down already\n"));
    }
}

#[test]
fn several_that_end_a_volume_at_once_all_succeed() {
    let scratch = Scratch::new();
    for _ in 0..5 {
        let _volume = scratch.up("ram(1M)", &["--name", "v", "--attach", "none"]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| scratch.run(&["down", "v"]).ok());
            }
        });
    }
}

#[test]
fn down_force_ends_a_process_that_does_not_answer() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    let _stopped = common::Stopped::stop(volume.pid);
    volume.try_down(&["--force"]).ok();
    wait_until("the end of the stopped process", || !is_alive(volume.pid));
    // Its member is free again.
    scratch.up("v", &[]).down();
}

/// ```text
///   up v   no such volume is up ── start ── claims the name ── ready
///   up v   no such volume is up ── start ──────────── is late ── refused
/// ```
#[test]
fn of_several_commands_at_once_one_brings_the_volume_up() {
    // In memory: no member stands in the way of a second process. Attached, if that can be.
    for attach in ["none", "auto"] {
        let scratch = Scratch::new();
        let up = || scratch.run(&["up", "ram(1M)", "--name", "v", "--attach", attach]);
        let outputs = std::thread::scope(|scope| {
            let commands = [(); 4].map(|()| scope.spawn(up));
            commands.map(|command| command.join().expect("each command ends"))
        });
        let (ready, late): (Vec<_>, Vec<_>) =
            outputs.into_iter().partition(|output| output.status.success());
        assert_eq!(ready.len(), 1, "--attach {attach}: {late:?}");
        for output in late {
            output.fails(3, &["v is up already", "next: `braid status v`"]);
        }
        scratch.run(&["status", "v"]).ok();
        scratch.run(&["down", "v"]).ok();
    }
}

#[test]
fn doctor_finds_out_what_this_machine_offers() {
    let scratch = Scratch::new();
    let plain = scratch.run(&["doctor"]).ok();
    let json = scratch.run(&["doctor", "--json"]).ok().json();
    assert_eq!(json["output_version"], 2);
    let findings = json["findings"].as_array().expect("a list");
    for what in ["kernel", "io_uring", "FUSE", "loop", "locked memory", "tools"] {
        assert!(plain.out.contains(what), "{what} is not in {plain}");
        let finding = findings.iter().find(|finding| finding["what"] == what);
        let finding = finding.unwrap_or_else(|| panic!("{what} is not in {json:#}"));
        let verdict = finding["verdict"].as_str().expect("a word");
        assert!(["ok", "limited", "missing"].contains(&verdict), "{finding:#}");
        assert_eq!(
            verdict == "ok",
            finding["advice"].is_null(),
            "advice for what lacks: {finding:#}"
        );
    }
}

#[test]
fn the_laboratory_lists_and_plans() {
    let scratch = Scratch::new();
    let presets = scratch.run(&["lab", "presets"]).ok();
    let first = presets.out.split_whitespace().next().expect("there are presets").to_owned();
    scratch.run(&["lab", "plan", &first]).fails(2, &["--baseline STACK", "next: braid lab run"]);
}

#[test]
fn a_socket_is_told_so_that_it_can_be_used_from_any_folder() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", MIB);
    let serve = scratch.braid().args(["serve", "./a.img", "--nbd", "unix:own.sock"]);
    let mut command = serve.into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = common::start(&mut command).expect("braid can be started");
    let mut line = [0; 256];
    let read = child.stdout.take().expect("it is piped").read(&mut line).expect("a line");
    let text = String::from_utf8_lossy(&line[..read]).into_owned();
    let _guard = Volume::adopt(&scratch, child, &scratch.join("own.sock"));
    assert!(text.contains(scratch.join("own.sock").to_str().unwrap()), "{text}");
}

#[test]
fn volumes_of_somebody_else_are_not_none() {
    if !common::is_root() {
        println!("skipped: only root can become somebody else");
        return;
    }
    use std::os::unix::process::CommandExt;
    let scratch = Scratch::new();
    let _volume = scratch.up("ram(1M)", &["--name", "v", "--attach", "none"]);
    std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let program = scratch.join("braid");
    std::fs::copy(env!("CARGO_BIN_EXE_braid"), &program).unwrap();
    for args in [&["status"][..], &["status", "v"], &["mdstat"]] {
        let mut command = std::process::Command::new(&program);
        command.args(args).env("BRAID_RUN_DIR", scratch.run_folder()).uid(65_534).gid(65_534);
        command.current_dir("/").stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = common::start(&mut command).expect("braid can be started");
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {err}");
        assert!(err.contains("Permission denied"), "{args:?}: {err}");
    }
}
