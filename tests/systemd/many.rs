//! Many volumes at one boot.

use crate::Site;
use crate::common::MIB;
use crate::machine::{Bus, Disk};

const VOLUMES: usize = 20;
const MEMBERS: usize = 4;

#[test]
fn twenty_volumes_of_four_members_are_there_at_boot() {
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    let name = |volume: usize, role: usize| format!("v{volume}m{role}");
    let (mut disks, mut records) =
        (Vec::new(), "set -e; udevadm settle; mdadm --stop --scan".to_owned());
    for volume in 0..VOLUMES {
        let names: Vec<String> = (0..MEMBERS).map(|role| name(volume, role)).collect();
        let images: Vec<String> = names.iter().map(|name| format!("{name}.img")).collect();
        images.iter().for_each(|image| drop(scratch.sparse(image, 16 * MIB)));
        let images = images.iter().map(String::as_str);
        let volume = format!("v{volume}");
        let create = ["create", &volume, "--level", "raid5", "--assume-clean"];
        scratch.run(&create.into_iter().chain(images).collect::<Vec<_>>()).ok();
        records += "\nbraid assemble";
        names.iter().for_each(|name| {
            records += &format!(" /dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{name}")
        });
        records += &format!(" --as {volume}");
        disks.extend(names.iter().map(|name| Disk { bus: Bus::Scsi, ..Disk::of(scratch, name) }));
    }
    let mut machine = site.boot_with(disks.clone());
    machine.ok(&records);
    machine.power_off();

    let mut machine = site.boot_with(disks);
    let up = format!(
        "test $(systemctl list-units --plain --no-legend --state=active 'braid@*' | wc -l) = {VOLUMES}"
    );
    machine.wait_until("all volumes", &up);
    for volume in 0..VOLUMES {
        let status = machine.status(&format!("v{volume}"));
        assert_eq!(status["state"], "online", "{status}");
    }
    assert_eq!(machine.ok("systemctl --failed --plain --no-legend"), "");
    // Seconds since the kernel began: both are of one clock.
    let mut last = |lines: &str| {
        machine.ok(&format!("{lines} | sort -n | tail -n 1")).parse::<f64>().expect("seconds")
    };
    let member = last("dmesg | sed -n 's/^\\[ *\\([0-9.]*\\)\\].*Attached SCSI disk$/\\1/p'");
    let volume = last(
        "systemctl show -P ActiveEnterTimestampMonotonic 'braid@*' | grep -v '^0*$' | sed 's/......$/.&/'",
    );
    println!(
        "{VOLUMES} volumes of {MEMBERS} members: the last is there {:.1} s after the last member",
        volume - member
    );
    machine.power_off();
}
