//! The package under a volume that is up: upgraded, refused to go, gone; and what the service manager does.

use crate::{Site, as_disk, assemble, install, mirror};

#[test]
fn a_volume_outlives_an_upgrade_and_is_restarted_when_it_hangs() {
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    mirror(scratch, "home", ["a", "b"]);
    let package = site.package("0.0.2");
    as_disk(scratch, "deb", &package);
    let mut machine = site.boot(&["a", "b", "deb"]);
    let sum = "dd if=/dev/braid/home bs=64k count=16 iflag=direct status=none | sha256sum";
    machine.ok(&format!(
        "set -e; {}
         systemctl start braid@home
         head -c 1M /dev/urandom | dd of=/dev/braid/home bs=64k iflag=fullblock oflag=direct conv=notrunc",
        assemble("home", ["a", "b"])
    ));
    let before = machine.ok(sum);
    let pid = machine.status("home")["pid"].clone();

    let said = machine.ok(&install(&package));
    assert!(said.contains("braid down home && braid up home"), "{said}");
    machine.ok("systemctl is-active braid@home");
    let status = machine.status("home");
    assert_eq!((&status["pid"], &status["program_replaced"]), (&pid, &true.into()), "{status}");
    assert_eq!(machine.ok(sum), before);
    let (code, said) = machine.tell("dpkg --remove braid");
    assert!(code == 1 && said.contains("not removed while volumes are up"), "{said}");
    machine.ok("systemctl is-active braid@home");

    machine.ok("systemctl restart braid@home");
    let status = machine.status("home");
    assert_eq!(status["program_replaced"], false, "{status}");
    assert_ne!(status["pid"], pid);
    assert_eq!(machine.ok(sum), before);

    // A process that does not answer. The limit is shorter than that of the package, to wait less.
    machine.ok("set -e; folder=/run/systemd/system/braid@home.service.d; mkdir -p $folder
         printf '[Service]\\nWatchdogSec=20\\n' >$folder/sooner.conf
         systemctl daemon-reload; systemctl restart braid@home
         kill -STOP $(systemctl show -P MainPID braid@home)");
    machine.wait_until(
        "another process",
        "test $(systemctl show -P NRestarts braid@home) = 1 && systemctl is-active braid@home",
    );
    assert_eq!(machine.ok(sum), before);
    assert_eq!(machine.status("home")["state"], "online");

    let said = machine.ok("systemctl stop braid@home && dpkg --purge braid");
    assert!(said.contains("/etc/braid is not empty"), "{said}");
    machine.ok(
        "test -e /etc/braid/home.toml && ! test -e /usr/lib/udev/rules.d/64-braid-assembly.rules",
    );
    machine.power_off();
}
