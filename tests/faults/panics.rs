//! A panic of a shard: the volume ends, its device goes, and its exit status and log say why.

use crate::common::{MIB, Mounted, Scratch, Tool, UpVolume, is_alive, wait_until};

/// The variable that makes a volume's first shard panic when the file is created.
const HOOK: &str = "BRAID_PLANTED_PANIC";
const SAID: &str = "a shard panicked: a panic was planted";

/// A healthy mirror called v, which has the hook; the file that makes it panic.
fn mirror(scratch: &Scratch) -> (UpVolume<'_>, std::path::PathBuf) {
    let members = ["a.img", "b.img"];
    members.iter().for_each(|name| drop(scratch.sparse(name, 32 * MIB)));
    let create = scratch.braid().args(["create", "v", "--level", "raid1"]).args(members);
    create.arg("--assume-clean").run().ok();
    let trigger = scratch.join("trigger");
    let up = scratch.braid().args(["up", "v", "--nbd"]);
    let up = up.arg(format!("unix:{}", scratch.run_folder().join("v.nbd").display()));
    (UpVolume::start_by(scratch, up.env(HOOK, &trigger)).unwrap(), trigger)
}

#[test]
fn a_panic_ends_the_volume_and_takes_its_device_away() {
    let scratch = Scratch::new();
    let (volume, trigger) = mirror(&scratch);
    let mut client = volume.client();
    client.write(0, &[7; 4096], true).unwrap();
    let mounted = volume.device.clone().map(|device| {
        Tool::new("mkfs.ext4").args(["-q", "-E", "nodiscard"]).arg(&device).run().ok();
        Mounted::device(&device, &scratch.join("m"))
    });
    let held = mounted.as_ref().map(|_| std::fs::File::create(scratch.join("m/f")).unwrap());
    std::fs::write(&trigger, "").unwrap();
    wait_until("the end of the volume's process", || !is_alive(volume.pid));
    assert!(client.flush().is_err(), "there is no answer");
    let log = std::fs::read_to_string(scratch.run_folder().join("v.log")).unwrap();
    assert!(log.contains(SAID), "{log}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&scratch.join("m").display().to_string()), "{mounts}");
    drop((held, mounted));
    // What was acknowledged is there, and nothing of the last life is in the way.
    let again = scratch.up("v", &["--attach", "none"]);
    assert_eq!(again.status()["warnings"], serde_json::json!([]), "its device had been taken away");
    again.down();
}

#[test]
fn a_panic_is_a_failure_by_the_exit_status() {
    let scratch = Scratch::new();
    let trigger = scratch.join("trigger");
    std::fs::write(&trigger, "").unwrap();
    let serve = scratch.braid().args(["serve", "ram(1M)", "--nbd"]);
    let serve = serve.arg(format!("unix:{}", scratch.join("s").display()));
    let output = serve.env(HOOK, &trigger).run();
    assert_eq!(output.status.code(), Some(1), "{output}");
    assert!(output.err.contains(SAID) && output.err.contains("next: `braid up`"), "{output}");
}
