//! A volume whose process does not go on (SIGSTOP: a paused machine, memory that is short, a member
//! that does not answer), and everybody else.
//!
//! ```text
//!   volume h        up ──────────── SIGSTOP ─────────────────────────── SIGCONT ── as it was
//!   other volumes        up, create, assemble, cat, status: they end
//!   orders to h          each says that it was not carried out ──────▶ and is not
//! ```

use std::process::Stdio;

use crate::common::{
    MIB, Mounted, Scratch, Stopped, Tool, UpVolume, skip_unless_root, skip_without, state_of,
    wait_until,
};

/// Waits until the order of the process `pid` has been sent: the process sleeps and holds a connection.
fn wait_until_sent(pid: u32) {
    wait_until("the order to be sent", || {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| file.path().read_link().ok());
        targets.any(|target| target.to_string_lossy().starts_with("socket:"))
            && state_of(pid) == Some('S')
    });
}

/// Everything that one does with other volumes ends.
fn others_go_on(scratch: &Scratch, stopped: &UpVolume) {
    let other = scratch.up("raid1(./c.img, ./d.img)", &["--name", "other", "--attach", "none"]);
    let all = scratch.run(&["status", "--json"]).ok().json();
    assert_eq!(all["volumes"].as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!(all["volumes"][0]["name"], "other");
    assert_eq!(all["unanswered"][0]["name"], stopped.name.as_str());
    let text = scratch.run(&["status"]).ok().out;
    assert!(text.contains("did not answer within 5 s") && text.contains("\nother  "), "{text}");
    let mdstat = scratch.run(&["mdstat"]);
    assert!(mdstat.out.contains("other : active raid1"), "{mdstat}");
    mdstat.fails(1, &[&format!("{}: the volume's process did not answer", stopped.name)]);
    assert_eq!(scratch.run(&["status", "--test"]).code(), 4);
    other.down();
    for command in [
        &["create", "new", "--level", "raid1", "./e.img", "./f.img", "--plan"][..],
        &["cat", "raid1(./e.img, ./f.img)", "--length", "4096"],
        &["examine", "e.img"],
        &["assemble", "--scan", "--plan"],
        &["doctor"],
    ] {
        // Whatever comes of it: it does not wait for the volume that does not go on.
        let ended = scratch.run(command);
        assert!((0..=3).contains(&ended.code()), "{ended}");
    }
}

fn with_members() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "c.img", "d.img", "e.img", "f.img"] {
        scratch.sparse(name, 64 * MIB);
    }
    scratch
}

#[test]
fn an_attached_volume_that_stops_holds_nobody_else_up() {
    skip_unless_root!();
    let scratch = with_members();
    let volume = scratch.up("raid1(./a.img, ./b.img)", &["--name", "held"]);
    if volume.device.is_none() {
        println!("skipped: volumes cannot be attached here");
        return;
    }
    let stopped = Stopped::stop(volume.pid);
    others_go_on(&scratch, &volume);
    drop(stopped);
    volume.down();
}

#[test]
fn a_mounted_volume_that_stops_in_a_write_holds_nobody_else_up() {
    skip_unless_root!();
    skip_without!("mkfs.ext4");
    let scratch = with_members();
    let volume = scratch.up("raid1(./a.img, ./b.img)", &["--name", "held"]);
    if volume.device.is_none() {
        println!("skipped: volumes cannot be attached here");
        return;
    }
    Tool::new("mkfs.ext4").arg("-q").arg(volume.device()).run().ok();
    let mounted = Mounted::device(volume.device(), &scratch.join("m"));
    let file = scratch.join("m/f");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let to = format!("of={}", file.display());
            Tool::new("dd").args(["if=/dev/zero", &to, "bs=1M", "count=30", "conv=fsync"]).run()
        });
        wait_until("the write to be under way", || file.exists());
        let stopped = Stopped::stop(volume.pid);
        others_go_on(&scratch, &volume);
        drop(stopped);
        writer.join().expect("the writer ends").ok();
    });
    mounted.unmount();
    volume.down();
}

#[test]
fn what_was_ordered_of_a_stopped_volume_is_not_carried_out_later() {
    let scratch = with_members();
    let create = ["create", "six", "--level", "raid6", "./a.img", "./b.img", "./c.img", "./d.img"];
    scratch.braid().args(create).arg("--assume-clean").run().ok();
    let volume = scratch.up("six", &["--attach", "none"]);
    let stopped = Stopped::stop(volume.pid);
    std::thread::scope(|scope| {
        let orders: [&[&str]; 7] = [
            &["member", "fail", "six", "a.img"],
            &["member", "fail", "six", "b.img"],
            &["member", "add", "six", "e.img"],
            &["scrub", "six"],
            &["speed", "six", "--max", "1M"],
            &["grow", "six", "--size", "max"],
            &["down", "six"],
        ];
        for order in orders {
            let scratch = &scratch;
            scope.spawn(move || {
                let refused = scratch.run(order);
                refused.fails(1, &["six", "the order was not carried out, and will not be"]);
            });
        }
        // One whose giver is ended by force.
        let fail = scratch.braid().args(["member", "fail", "six", "c.img"]).into_command();
        let mut fail = { fail }.spawn().expect("braid can be started");
        wait_until_sent(fail.id());
        fail.kill().and_then(|()| fail.wait()).expect("it can be ended");
    });
    drop(stopped);
    // By then whatever had been sent is long read.
    scratch.run(&["speed", "six", "--max", "64M"]).ok();
    let status = volume.status();
    assert_eq!(status["state"], "online", "{status}");
    let array = &status["arrays"][0];
    assert_eq!(array["members"].as_array().map(Vec::len), Some(4), "{status}");
    assert_eq!(array["requested"], serde_json::Value::Null);
    assert_eq!(array["last_scrub"], serde_json::Value::Null);
    assert_eq!(array["speed_max_bytes_per_second"], 64 << 20);
    volume.down();
}

#[test]
fn an_order_is_answered_or_said_to_be_unanswered_when_the_process_dies() {
    let scratch = with_members();
    let create = ["create", "six", "--level", "raid6", "./a.img", "./b.img", "./c.img", "./d.img"];
    scratch.braid().args(create).arg("--assume-clean").run().ok();
    let volume = scratch.up("six", &["--attach", "none"]);
    let stopped = Stopped::stop(volume.pid);
    let mut fail = scratch.braid().args(["member", "fail", "six", "a.img"]).into_command();
    let fail = fail.stderr(Stdio::piped()).spawn().expect("braid can be started");
    wait_until_sent(fail.id());
    volume.kill();
    let ended = fail.wait_with_output().expect("the order ends");
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{message}");
    assert!(message.contains("six"), "{message}");
    assert!(message.contains("the order was not carried out, and will not be"), "{message}");
    drop(stopped);
}
