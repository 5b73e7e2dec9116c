//! Disks below members, by a program that pretends to be smartctl.

use std::path::{Path, PathBuf};

use crate::common::{MIB, Scratch, Tool, UpVolume, wait_until};
use crate::running::{Running, configure, printed, script, wait_for};

/// The output of smartctl.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../monitor/testdata/smart");

/// A disk of this machine, to be read only; `None`, with the reason printed, if there is none that may be.
fn disk(scratch: &Scratch) -> Option<(PathBuf, UpVolume<'_>)> {
    let blocks = std::fs::read_dir("/sys/block").ok()?.flatten();
    let disks = blocks.filter(|block| block.path().join("device").exists());
    for path in disks.map(|block| Path::new("/dev").join(block.file_name())) {
        let stack = format!("file({})", path.display());
        let options = ["--name", "disk", "--attach", "none", "--read-only"];
        match UpVolume::start(scratch, &stack, &options) {
            Ok(volume) => return Some((path, volume)),
            Err(output) => println!("{} cannot be read: {}", path.display(), output.err.trim()),
        }
    }
    println!("skipped: no disk of this machine can be read");
    None
}

/// `smartctl` from now on.
fn pretend(scratch: &Scratch, text: &str) {
    std::fs::create_dir_all(scratch.join("bin")).expect("a folder");
    script(scratch, "bin/smartctl", text);
}

/// `braid` that finds it.
fn braid(scratch: &Scratch) -> Tool {
    let path = std::env::var("PATH").unwrap_or_default();
    scratch.braid().env("PATH", format!("{}:{path}", scratch.join("bin").display()))
}

#[test]
fn a_disk_that_fails_is_told_of_by_status_monitor_and_metrics() {
    let scratch = Scratch::new();
    let Some((path, volume)) = disk(&scratch) else { return };
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let status = |json: bool| {
        let tool = braid(&scratch).args(["status", "disk"]);
        if json { tool.arg("--json").run().ok() } else { tool.run().ok() }
    };
    pretend(&scratch, &format!("cat {GOLDEN}/ata-well.json"));
    let well = status(true).json()["volumes"][0]["members"][0]["disk"].clone();
    assert_eq!((&well["disk"], &well["absent"]), (&name.clone().into(), &serde_json::Value::Null));
    assert_eq!(
        (&well["smart"]["passed"], &well["smart"]["power_on_hours"]),
        (&true.into(), &26_733.into())
    );
    assert!(!status(false).out.contains("smartctl"), "of a disk that is well nothing is said");

    let config = configure(&scratch, "interval = \"1s\"\nsettle = \"0\"\ndisks = \"1s\"\n");
    let tool = braid(&scratch).args(["monitor", "--json", "--config", &config]);
    let monitor = Running::start(tool, scratch.join("monitor.log"));
    wait_for(&monitor, "NewArray", "disk");
    pretend(&scratch, &format!("cat {GOLDEN}/ata-failing.json; exit 216"));
    let failing = wait_for(&monitor, "DiskFailing", "disk");
    let next = format!("`braid member replace disk {} DEVICE`", path.display());
    assert!(failing["next"].as_str().is_some_and(|text| text.contains(&next)), "{failing}");
    assert!(failing["what"].as_str().is_some_and(|text| text.contains(&name)), "{failing}");
    let warning = wait_for(&monitor, "SmartWarning", "disk");
    assert!(
        warning["what"].as_str().is_some_and(|text| text.contains("3946 sectors")),
        "{warning}"
    );

    let text = status(false).out;
    assert!(
        text.contains(&format!("disk {name} fails: its overall health is: failed\n")),
        "{text}"
    );
    assert!(text.contains(&next), "{text}");
    // A scrape asks no disk: it has what the monitor found.
    pretend(&scratch, "exec sleep 1000");
    let metrics = braid(&scratch).arg("metrics").run().ok().out;
    let member = format!("{{volume=\"disk\",member=\"{}\"}}", path.display());
    for sample in [
        format!("braid_member_smart_failing{member} 1"),
        format!("braid_member_smart_pending_sectors{member} 64"),
        format!("braid_member_smart_temperature_limit_celsius{member} 60"),
    ] {
        assert!(metrics.contains(&sample), "{sample} is not in {metrics}");
    }
    // A smartctl that hangs is not waited for, and what was said stands.
    let text = status(true);
    let hangs = &text.json()["volumes"][0]["members"][0]["disk"];
    assert!(
        hangs["absent"].as_str().is_some_and(|why| why.contains("did not end within")),
        "{hangs}"
    );
    wait_until("the monitor's own question", || {
        let known = std::fs::read_to_string(scratch.join("state/disks.json")).unwrap_or_default();
        known.contains("did not end within")
    });
    // A look that sees what is new comes after that.
    let later = scratch.up("ram(1M)", &["--name", "later", "--attach", "none"]);
    wait_for(&monitor, "NewArray", "later");
    let told = |event: &str| printed(&monitor).iter().filter(|one| one["event"] == event).count();
    assert_eq!((told("DiskFailing"), told("WellAgain")), (1, 0), "it is as it was said last");
    pretend(&scratch, &format!("cat {GOLDEN}/ata-well.json"));
    wait_for(&monitor, "WellAgain", "disk");
    monitor.stop();
    later.down();

    // Started once, it waits for what the disks say.
    pretend(&scratch, &format!("cat {GOLDEN}/nvme-worn.json; exit 8"));
    let once = braid(&scratch).args(["monitor", "--oneshot", "--config", &config]).run();
    once.fails(1, &["DiskFailing on disk", "spare blocks run out"]);
    volume.down();
}

#[test]
fn members_that_are_no_disks_say_so_and_doctor_says_whether_disks_can_be_asked() {
    let scratch = Scratch::new();
    pretend(&scratch, "touch \"$0.asked\"");
    scratch.sparse("a.img", MIB);
    let volume = scratch.up("linear(a.img, ram(1M))", &["--name", "v", "--attach", "none"]);
    let status = braid(&scratch).args(["status", "v", "--json"]).run().ok().json();
    let why = |member: usize| status["volumes"][0]["members"][member]["disk"]["absent"].clone();
    assert_eq!(why(0), "it is no disk, nor a partition of one");
    assert_eq!(why(1), "it is in memory");
    assert!(!scratch.join("bin/smartctl.asked").exists());
    let all = braid(&scratch).args(["status", "--json"]).run().ok().json();
    assert!(all["volumes"][0]["members"][0]["disk"].is_null(), "disks are asked of one volume");
    let doctor = braid(&scratch).arg("doctor").run().ok();
    let smartctl = scratch.join("bin/smartctl").display().to_string();
    assert!(doctor.out.contains(&format!("SMART  ok       {smartctl} asks")), "{doctor}");
    volume.down();
}

#[test]
fn a_scrape_has_what_the_monitor_found_and_asks_no_disk() {
    let scratch = Scratch::new();
    pretend(&scratch, "touch \"$0.asked\"");
    let path = scratch.sparse("a.img", MIB).display().to_string();
    let volume = scratch.up(&path, &["--name", "v", "--attach", "none"]);
    let state = scratch.join("state");
    std::fs::create_dir_all(&state).expect("a folder");
    let found = serde_json::json!({ &path: {
        "disk": "sdx", "kernel_errors": 7,
        "smart": {"seen": 1000, "pending_sectors": 64, "percentage_used": 103, "failing": ["it is worn"],
            "warnings": ["a", "b"], "temperature_limit_celsius": 60},
    }});
    std::fs::write(state.join("disks.json"), found.to_string()).expect("a state");
    let metrics = || braid(&scratch).arg("metrics").run().ok();
    let text = metrics().out;
    let member = format!("{{volume=\"v\",member=\"{path}\"}}");
    for (name, value) in [
        ("smart_failing", "1"),
        ("smart_warnings", "2"),
        ("smart_seen_timestamp_seconds", "1000"),
        ("smart_pending_sectors", "64"),
        ("smart_used_ratio", "1.03"),
        ("smart_temperature_limit_celsius", "60"),
        ("disk_kernel_errors", "7"),
    ] {
        let sample = format!("braid_member_{name}{member} {value}\n");
        assert!(text.contains(&sample), "{sample} is not in {text}");
    }
    assert!(!text.contains("braid_member_smart_media_errors"), "what a disk does not say is no 0");
    assert!(!scratch.join("bin/smartctl.asked").exists());
    std::fs::write(state.join("disks.json"), "[").expect("a state");
    let output = metrics();
    assert!(output.err.contains("disks is left out"), "{output}");
    assert!(
        output.out.contains("braid_volume_up{volume=\"v\"} 1") && !output.out.contains("smart")
    );
    volume.down();
}
