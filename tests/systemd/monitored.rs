//! The monitor as the service that the package has, with what it may do there: it asks real disks by the real smartctl,
//! and calls a program.

use serde_json::json;

use crate::machine::{Bus, Disk};
use crate::{Site, mirror};

#[test]
fn the_monitor_tells_of_a_disk_that_fails_and_of_a_member() {
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    mirror(scratch, "home", ["a", "b"]);
    let disks = ["a", "b"].map(|name| Disk { bus: Bus::Nvme, ..Disk::of(scratch, name) });
    let mut machine = site.boot_with(disks.to_vec());
    machine.ok("set -e; udevadm settle; mdadm --stop --scan
         braid assemble /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_a /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_b --as home
         systemctl start braid@home
         cat >/usr/local/bin/told-of <<'END'
#!/bin/sh
echo \"$1 $3: $BRAID_WHAT\" >>/run/braid/told-of
END
         chmod 755 /usr/local/bin/told-of
         printf 'interval = \"1s\"\\ndisks = \"2s\"\\n[[program]]\\npath = \"/usr/local/bin/told-of\"\\n' >/etc/braid/monitor.toml
         braid monitor --check
         systemctl start braid-monitor");
    machine.wait_until("the first look", "grep -q '^NewArray' /run/braid/told-of");
    let disk = |status: &serde_json::Value, role: usize| {
        let disk = &status["members"][role]["disk"];
        (disk["smart"]["passed"].clone(), disk["absent"].clone())
    };
    let status = machine.status("home");
    let well = (json!(true), json!(null));
    assert_eq!([disk(&status, 0), disk(&status, 1)], [well.clone(), well.clone()], "{status}");

    // Its reliability is degraded, it says (NVMe base specification, "SMART / Health Information", bit 2).
    machine.set("b", "smart_critical_warning", json!(4));
    machine.wait_until(
        "the disk",
        "grep -q '^DiskFailing .*nvme-QEMU_NVMe_Ctrl_b' /run/braid/told-of",
    );
    let status = machine.status("home");
    let failing = (json!(false), json!(null));
    assert_eq!([disk(&status, 0), disk(&status, 1)], [well, failing], "{status}");
    assert_eq!(status["state"], "online");
    machine.ok("braid member fail home /dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_b");
    machine.wait_until("the member", "grep -q '^Fail .*nvme-QEMU_NVMe_Ctrl_b' /run/braid/told-of");
    let told = machine.ok("cat /run/braid/told-of");
    assert!(!told.contains("Ctrl_a:"), "{told}");
    // It may write what it keeps.
    machine.ok("systemctl is-active braid-monitor && test -s /var/lib/braid/disks.json");
    machine.power_off();
}
