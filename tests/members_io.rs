//! Members that hang, go, or are slower than the others, under the whole program.
//!
//! ```text
//!   volume  ── raid1 ──┬── file
//!                      └── loop device of another volume, whose process is stopped: it hangs
//! ```

mod common;

use std::time::Instant;

use braid_nbd::protocol::NbdErrno;
use serde_json::Value;

use common::{
    Failed, LoopDevice, MIB, Scratch, Stopped, Tool, UpVolume, pattern, skip_unless_root,
    skip_without, wait_until,
};

/// A volume that is a block device here, if that can be.
fn attached<'a>(scratch: &'a Scratch, file: &str) -> Option<UpVolume<'a>> {
    let volume = scratch.up(&format!("./{file}"), &["--name", "below"]);
    if volume.device.is_none() {
        println!("skipped: volumes cannot be attached here");
    }
    volume.device.is_some().then_some(volume)
}

/// The `status` of the member with this path.
fn member(volume: &UpVolume, path: &str) -> Value {
    let status = volume.status();
    let mut members = status["members"].as_array().into_iter().flatten();
    members.find(|one| one["member"] == path).cloned().unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

#[test]
fn what_members_are_asked_for_is_counted() {
    let scratch = Scratch::new();
    scratch.sparse("b.img", MIB);
    let stack = "linear(ram(1M), ./b.img, model(usb-flash, size=1M))";
    let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
    let mut client = volume.client();
    for start in [0, MIB, 2 * MIB] {
        for index in 0..3 {
            client.write(start + index * 8192, &pattern(1, 0, 8192), false).expect("a write");
        }
        assert!(client.read(start, 4096).expect("a read") == pattern(1, 0, 4096));
    }
    client.flush().expect("a flush");
    let status = volume.status();
    let members = status["members"].as_array().expect("members");
    assert_eq!(members.len(), 3);
    for one in members {
        let io = &one["io"];
        assert_eq!((count(&io["writes"]["count"]), count(&io["reads"]["count"])), (3, 1), "{one}");
        assert_eq!((count(&io["written_bytes"]), count(&io["read_bytes"])), (24576, 4096), "{one}");
        assert_eq!(count(&io["flushes"]["count"]), 1, "{one}");
        assert_eq!((count(&io["in_flight"]), count(&io["timeouts"])), (0, 0), "{one}");
        let buckets = io["writes"]["buckets"].as_array().into_iter().flatten();
        assert_eq!(buckets.map(count).sum::<u64>(), 3, "{one}");
    }
    volume.down();
}

/// The volume continues, no answered data is lost, and a late write of the member does no harm.
#[test]
fn a_member_that_hangs_is_taken_out_and_not_taken_in_before_it_has_answered() {
    skip_unless_root!();
    let (two, three) = (&["a.img"][..], &["a.img", "c.img"][..]);
    for (level, files, io) in
        [("raid1", two, "auto"), ("raid5", three, "auto"), ("raid1", two, "threads")]
    {
        let scratch = Scratch::new();
        for name in ["a.img", "b.img", "c.img"] {
            scratch.sparse(name, 16 * MIB);
        }
        let Some(below) = attached(&scratch, "b.img") else { return };
        let device = below.device().to_str().expect("a plain name").to_owned();
        let create = ["create", "v", "--level", level, "--assume-clean"];
        scratch.braid().args(create).args(files).arg(&device).run().ok();
        let options = ["--attach", "none", "--member-deadline", "1s", "--io", io];
        let volume = scratch.up("v", &options);
        let mut client = volume.client();
        for index in 0..8 {
            client.write(index * MIB, &pattern(index, 0, MIB), true).expect("a write");
        }
        let hanging = Stopped::stop(below.pid);
        let start = Instant::now();
        for index in 0..8 {
            client.write(index * MIB, &pattern(index + 100, 0, MIB), true).expect("it goes on");
        }
        println!("{level}, {io}: writes went on for {:?} when a member hung", start.elapsed());
        for index in 0..8 {
            assert!(client.read(index * MIB, 1 << 20).unwrap() == pattern(index + 100, 0, MIB));
        }
        let hung = member(&volume, &device);
        assert!(count(&hung["io"]["overdue"]) > 0, "{hung}");
        assert!(count(&hung["failures"]) > 0, "{hung}");
        let status = volume.status();
        assert_eq!(status["state"], "degraded", "{status}");
        let warnings = status["warnings"].to_string();
        assert!(warnings.contains("no answer within their deadline"), "{warnings}");
        scratch.run(&["member", "remove", "v", &device]).ok();
        let again = scratch.run(&["member", "add", "v", &device]);
        again.fails(3, &["is not taken", "still under way", "wait until it has answered"]);
        drop(hanging);
        wait_until("the member to be taken in again", || {
            scratch.run(&["member", "add", "v", &device]).status.success()
        });
        wait_until("the member to be filled", || volume.status()["state"] == "online");
        scratch.run(&["scrub", "v"]).ok();
        wait_until("the scrub to end", || {
            volume.status()["arrays"][0]["last_scrub"]["kind"] == "check"
        });
        assert_eq!(volume.status()["arrays"][0]["mismatch_bytes"], 0, "{level}");
        for index in 0..8 {
            assert!(client.read(index * MIB, 1 << 20).unwrap() == pattern(index + 100, 0, MIB));
        }
        volume.down();
        below.down();
    }
}

/// It is an I/O error, and over when the member answers again.
#[test]
fn without_redundancy_a_deadline_that_was_asked_for_fails_the_request() {
    skip_unless_root!();
    let scratch = Scratch::new();
    scratch.sparse("b.img", 4 * MIB);
    let Some(below) = attached(&scratch, "b.img") else { return };
    let stack = format!("linear(ram(1M), {})", below.device().display());
    let options = ["--name", "v", "--attach", "none", "--member-deadline", "1s"];
    let volume = scratch.up(&stack, &options);
    let mut client = volume.client();
    client.write(MIB, &pattern(1, 0, MIB), true).expect("a write");
    let hanging = Stopped::stop(below.pid);
    let failed = client.write(MIB, &pattern(2, 0, 4096), true);
    assert!(matches!(failed, Err(Failed::Answered(NbdErrno::Io))), "{failed:?}");
    client.write(0, &pattern(3, 0, 4096), true).expect("the other member is as it was");
    assert_eq!(volume.status()["state"], "failing");
    drop(hanging);
    wait_until("the member to answer", || client.write(MIB, &pattern(4, 0, 4096), true).is_ok());
    assert!(client.read(MIB, 4096).unwrap() == pattern(4, 0, 4096), "not what landed late");
    volume.down();
    below.down();
    // It is remembered as other options are.
    let options = ["--name", "w", "--attach", "none", "--member-deadline", "90s"];
    scratch.up("ram(1M)", &options).down();
    let options = ["--attach", "none", "--member-deadline", "90s", "--remember"];
    scratch.up("w", &options).down();
    let record = std::fs::read_to_string(scratch.config_file("w")).expect("a record");
    assert!(record.contains("member_deadline = \"90s\""), "{record}");
    scratch.run(&["up", "w", "--member-deadline", "5ms"]).fails(2, &["too short"]);
}

/// It receives no requests. The last member with the data is not taken out.
#[test]
fn a_block_device_that_is_gone_is_taken_out() {
    skip_unless_root!();
    skip_without!("losetup");
    let scratch = Scratch::new();
    let [a, b] = ["a.img", "b.img"].map(|name| scratch.sparse(name, 16 * MIB));
    let (Some(first), Some(second)) = (LoopDevice::attach(&a), LoopDevice::attach(&b)) else {
        return;
    };
    let create = ["create", "v", "--level", "raid1", "--assume-clean"];
    scratch.braid().args(create).args([first.text(), second.text()]).run().ok();
    let volume = scratch.up("v", &["--attach", "none"]);
    let vanish = |name: &str, device: &LoopDevice| {
        scratch.resize(name, 0);
        Tool::new("losetup").arg("--set-capacity").arg(device.path()).run().ok();
    };
    let start = Instant::now();
    vanish("b.img", &second);
    wait_until("the member to be taken out", || volume.status()["state"] == "degraded");
    println!("degraded {:?} after its device went", start.elapsed());
    let status = volume.status();
    assert!(status["why"].to_string().contains("its device went away"), "{status}");
    let mut client = volume.client();
    client.write(0, &pattern(1, 0, 4096), true).expect("it goes on");
    vanish("a.img", &first);
    wait_until("the last member to be missed", || {
        volume.status()["warnings"].to_string().contains(&format!("{}: its device", first.text()))
    });
    assert_eq!(volume.status()["arrays"][0]["in_sync"], serde_json::json!([true, false]));
    // Nothing of it can be recorded any more.
    volume.try_down(&["--force"]);
}

#[test]
fn a_member_that_is_slower_than_its_sibling_is_told_and_not_read() {
    let scratch = Scratch::new();
    let model =
        |latency| format!("model(usb-flash, size=16M, read=1G/s, write=1G/s, latency={latency})");
    let stack = format!("raid1({}, {})", model("0.2ms"), model("25ms"));
    let volume = scratch.up(&stack, &["--name", "v", "--attach", "none"]);
    let mut client = volume.client();
    let mut place = 0;
    let mut read = || {
        place = (place + 5 * MIB + 4096) % (16 * MIB);
        client.read(place, 4096).expect("a read");
    };
    let reads = || {
        let status = volume.status();
        count(&status["members"][1]["io"]["reads"]["count"])
    };
    wait_until("the member to be found slow", || {
        (0..20).for_each(|_| read());
        volume.status()["members"][1]["slow"].is_string()
    });
    let status = volume.status();
    let why = status["members"][1]["slow"].as_str().unwrap_or_default();
    assert!(why.contains("in the mean; the other members of raid1 take"), "{why}");
    assert!(status["members"][0]["slow"].is_null(), "{status}");
    assert!(status["warnings"].to_string().contains(why), "{status}");
    wait_until("reads to avoid it", || {
        let before = reads();
        (0..20).for_each(|_| read());
        reads() == before
    });
    volume.down();
}
