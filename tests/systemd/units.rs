//! Boot and shutdown: units, mounts on volumes, the last resort.

use crate::common::{Scratch, Tool};
use crate::{Site, assemble, mirror};

#[track_caller]
fn assert_states(scratch: &Scratch, expected: &[(&str, &str)]) {
    for (disk, array) in expected {
        let found = scratch.states(&format!("{disk}.img"));
        assert_eq!(found, ("clean".to_owned(), (*array).to_owned()), "{disk}");
    }
}

#[test]
fn volumes_are_there_at_boot_with_file_systems_on_them_and_clean_after_shutdown() {
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    mirror(scratch, "home", ["a", "b"]);
    mirror(scratch, "pair", ["c", "d"]);
    let mut machine = site.boot(&["a", "b", "c", "d"]);
    machine.ok(&format!(
        "set -e; {}; {}
         systemctl start braid@home
         mkfs.ext4 -q /dev/braid/home
         echo \"/dev/braid/home /home ext4 defaults,nofail,x-systemd.requires=braid@home.service 0 2\" >>/etc/fstab
         systemctl daemon-reload
         systemctl start home.mount
         echo precious >/home/file
         braid up 'ram(8M)' --name cache && braid down cache
         systemctl enable braid@cache",
        assemble("home", ["a", "b"]),
        assemble("pair", ["c", "d"]),
    ));
    // The rule sees it and the volume is up.
    machine.ok("udevadm trigger --action=change /dev/disk/by-id/virtio-d");
    machine.wait_until("the volume of the other two", "systemctl is-active braid@pair");
    machine.power_off();
    assert_states(scratch, &[("a", "AA"), ("b", "AA"), ("c", "AA"), ("d", "AA")]);

    // One disk is missing, and no command is given.
    let mut machine = site.boot(&["a", "b", "c"]);
    machine.wait_until("the mount", "mountpoint -q /home");
    assert_eq!(machine.ok("cat /home/file"), "precious");
    assert_eq!(machine.status("home")["state"], "online");
    machine.ok("systemctl is-active braid@home braid@cache");
    let entered = |unit: &str| format!("systemctl show -P ActiveEnterTimestampMonotonic {unit}");
    let order = format!("test $({}) -lt $({})", entered("braid@home"), entered("home.mount"));
    machine.ok(&order);
    machine.wait_until("the last resort", "systemctl is-active braid@pair");
    assert_eq!(machine.status("pair")["state"], "degraded");
    let journal = machine
        .ok("journalctl -b -o short-monotonic -u braid@pair -u braid-last-resort@pair.timer");
    assert!(journal.contains("Wait for more members of the braid volume pair"), "{journal}");
    assert!(!machine.ok("cat /proc/mdstat || true").contains("md1"), "the kernel took it");
    machine.ok("echo again >>/home/file");
    machine.power_off();
    assert_states(scratch, &[("a", "AA"), ("b", "AA"), ("c", "A."), ("d", "AA")]);
    // It was unmounted before its volume ended.
    let content = scratch.braid().args(["cat", "md(a.img, b.img)"]).into_command();
    let file = std::fs::File::create(scratch.join("content")).expect("a file");
    let ended = { content }.stdout(file).status().expect("braid can be started");
    assert!(ended.success());
    let said = Tool::new("dumpe2fs").arg("-h").arg(scratch.join("content")).run().ok().out;
    assert!(
        said.lines().any(|line| line.starts_with("Filesystem state:") && line.ends_with(" clean")),
        "{said}"
    );
    assert!(!said.contains("needs_recovery"), "{said}");
}
