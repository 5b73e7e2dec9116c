//! The sandboxes of the units: the exposure of each, and volumes that work in them.

use crate::machine::Machine;
use crate::{Site, assemble, mirror};

/// An NBD client: writes a sector over the Unix socket or the TCP port that it is given, and reads it back.
const CLIENT: &str = r#"cat >/run/client <<'END'
use strict; use IO::Socket::INET; use IO::Socket::UNIX;
my ($at) = @ARGV;
my $s = $at =~ m{/} ? IO::Socket::UNIX->new(Peer => $at) : IO::Socket::INET->new(PeerAddr => "127.0.0.1:$at");
die "$at: $!" unless $s;
sub take { my ($n, $b) = ($_[0], ""); while (length $b < $n) { sysread($s, $b, $n - length $b, length $b) or die "end" } $b }
take(18) =~ /^NBDMAGICIHAVEOPT/ or die "greeting";
print $s pack("N", 3), "IHAVEOPT", pack("NN", 1, 0); take(10);
print $s pack("NnnQ>Q>N", 0x25609513, 0, 1, 7, 512, 512), "x" x 512; take(16);
print $s pack("NnnQ>Q>N", 0x25609513, 0, 0, 8, 512, 512); take(16);
take(512) eq "x" x 512 or die "not what was written";
END"#;

/// Asserts the exposure of a unit, in tenths.
#[track_caller]
fn assert_exposed_by_no_more(machine: &mut Machine<'_>, unit: &str, most: u32) {
    let said = machine
        .ok(&format!("systemd-analyze security --no-pager --threshold={most} {unit} | tail -n 1"));
    println!("{said}");
}

#[test]
fn units_have_what_they_need_and_no_more() {
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    mirror(scratch, "home", ["a", "b"]);
    let mut machine = site.boot(&["a", "b"]);
    machine.ok(CLIENT);
    machine.ok(&format!(
        "set -e; {}
         for name in plain once; do braid up 'ram(8M)' --name $name --attach none --remember; braid down $name; done
         braid up 'ram(8M)' --name net --attach none --nbd tcp:10809 --remember; braid down net
         braid up 'ram(8M)' --name both --nbd tcp:10812 --remember; braid down both
         systemctl daemon-reload
         systemctl start braid@home braid@plain braid@net braid@both",
        assemble("home", ["a", "b"])
    ));
    let fixed = ["braid-monitor", "braid-scrub", "braid-scrub-continue", "braid-web"];
    for unit in
        fixed.iter().chain(&["braid-last-resort@home", "braid@home", "braid@plain", "braid@net"])
    {
        assert_exposed_by_no_more(&mut machine, &format!("{unit}.service"), 35);
    }
    assert_exposed_by_no_more(&mut machine, "braid@both.service", 40);
    machine.ok("perl /run/client 10812 && dd if=/dev/braid/both of=/dev/null bs=1M");

    // A volume without network: its block device, and its Unix socket.
    machine.ok(
        "set -e; mkfs.ext4 -q /dev/braid/home; mount /dev/braid/home /mnt; echo precious >/mnt/file; umount /mnt
         mount /dev/braid/home /mnt; grep precious /mnt/file; umount /mnt",
    );
    machine.ok(
        "braid scrub home --wait && systemctl restart braid@home && systemctl is-active braid@home",
    );
    machine.ok("perl /run/client /run/braid/plain.nbd");
    machine.ok("perl /run/client 10809");

    // TCP for one start, of a volume whose record names none.
    machine.ok("test -e /run/systemd/generator/braid@once.service.d/50-no-network.conf
         BRAID_UP_BY=service braid up once --attach none --nbd tcp:10810");
    machine.ok("systemctl is-active braid@once && perl /run/client 10810");

    // A device for one start, of a volume whose record wants none: it is seen by all, and goes again.
    machine.ok("test -e /run/systemd/generator/braid@once.service.d/50-no-mounts.conf
         systemctl stop braid@once && BRAID_UP_BY=service braid up once --attach fuse
         dd if=/dev/braid/once of=/dev/null bs=1M && braid down once --force && test ! -e /dev/braid/once");

    // systemd has not read a record again that was edited: the start is refused, with the command.
    machine.ok("systemctl stop braid@plain && sed -i '/^stack/a nbd = [\"tcp:10811\"]' /etc/braid/plain.toml");
    let (status, _) = machine.tell("systemctl start braid@plain");
    assert_eq!(status, 1);
    let journal = machine.ok("systemctl stop braid@plain; journalctl -b -u braid@plain");
    assert!(journal.contains("cannot listen on tcp:127.0.0.1:10811"), "{journal}");
    assert!(journal.contains("systemctl daemon-reload"), "{journal}");
    machine.ok("systemctl daemon-reload && systemctl start braid@plain && perl /run/client 10811");
    machine.power_off();
}
