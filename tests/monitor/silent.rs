//! A volume that stands still, beside one of which there is something to tell.

use crate::common::{Scratch, Stopped};
use crate::running::{configure, mirror, printed, wait_for, watch};

#[test]
fn what_is_told_of_others_does_not_wait_for_a_volume_that_stands_still() {
    let scratch = Scratch::new();
    let config = configure(&scratch, "interval = \"1s\"\nsettle = \"0\"\n");
    let home = mirror(&scratch, "home");
    let still: Vec<_> = (0..3)
        .map(|number| scratch.up("ram(1M)", &["--name", &format!("a{number}"), "--attach", "none"]))
        .collect();
    let monitor = watch(&scratch, &config, "monitor.log");
    wait_for(&monitor, "NewArray", "home");
    let stopped: Vec<_> = still.iter().map(|one| Stopped::stop(one.pid)).collect();
    // They stand before it in every look.
    scratch.run(&["member", "fail", "home", "home-b.img"]).ok();
    wait_for(&monitor, "Fail", "home");
    let stalled = wait_for(&monitor, "VolumeStalled", "a2");
    assert!(stalled["next"].as_str().is_some_and(|next| next.contains("down a2 --force")));
    // And goes on to be told while they do.
    scratch.run(&["member", "remove", "home", "home-b.img"]).ok();
    scratch.run(&["member", "re-add", "home", "home-b.img"]).ok();
    wait_for(&monitor, "WellAgain", "home");
    drop(stopped);
    wait_for(&monitor, "WellAgain", "a0");
    let of = |event: &str| printed(&monitor).iter().filter(|one| one["event"] == event).count();
    assert_eq!((of("VolumeStalled"), of("Fail")), (3, 1));
    monitor.stop();
    still.into_iter().for_each(|one| one.down());
    home.down();
}
