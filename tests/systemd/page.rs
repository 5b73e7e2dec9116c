//! The page as the service that the package has: what it starts are units of their own.

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::{Site, assemble, mirror};

/// Asks the page for something; answers the body, or the line with the status that is an error.
#[track_caller]
fn ask(machine: &mut Machine<'_>, path: &str, body: &Value) -> String {
    machine.ok(&format!(
        "busybox wget -q -O - --header \"Authorization: Bearer $(cat /var/lib/braid/web-token)\" \
         --header 'Content-Type: application/json' --post-data '{body}' http://127.0.0.1:7374/api/v1/{path} 2>&1 || true"
    ))
}

#[test]
fn the_page_starts_volumes_as_units() {
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    mirror(scratch, "home", ["a", "b"]);
    let mut machine = site.boot(&["a", "b"]);
    machine.ok(&format!("{} && systemctl start braid-web", assemble("home", ["a", "b"])));
    machine.wait_until("the token", "test -s /var/lib/braid/web-token");
    machine.wait_until("the page", "busybox wget -q -O /dev/null http://127.0.0.1:7374/");

    let said = ask(&mut machine, "volumes", &json!({"up": {"name": "home"}}));
    assert!(said.contains("/dev/loop"), "{said}");
    let memory = json!({"up": {"stack": "ram(8M)", "name": "memory", "attach": "none"}});
    let said = ask(&mut machine, "volumes", &memory);
    assert!(said.contains("memory.nbd"), "{said}");
    for volume in ["home", "memory"] {
        let pid = machine.status(volume)["pid"].to_string();
        assert_eq!(machine.ok(&format!("systemctl show -P MainPID braid@{volume}")), pid);
    }
    machine.ok(
        "test -e /etc/braid/memory.toml && ! ls /run/braid | grep -E '[.](start|spec|outcome)$'",
    );

    // What is up already is left as it is; what is refused is said, and not tried again.
    let said = ask(&mut machine, "volumes", &json!({"up": {"name": "home"}}));
    assert!(said.contains("home is up already"), "{said}");
    let absent = json!({"up": {"stack": "raid0(/none/a, /none/b)", "name": "absent"}});
    let said = ask(&mut machine, "volumes", &absent);
    assert!(said.contains("HTTP/1.1 4") || said.contains("HTTP/1.1 5"), "{said}");
    let (_, state) = machine.tell("systemctl show -P ActiveState braid@absent");
    assert!(["inactive", "failed"].contains(&state.as_str()), "{state}");

    // Every user may open the device, though the volume's process may do little; and its users are shown.
    machine.ok(
        "mkfs.ext4 -q /dev/braid/home && mount /dev/braid/home /mnt && echo precious >/mnt/file",
    );
    let (code, said) = machine.tell("braid down home");
    assert!(code == 3 && said.contains("/mnt"), "{code} {said}");
    machine.ok("umount /mnt; sleep 1000 </dev/braid/home >/dev/null 2>&1 & echo $! >/run/sleeps");
    let (code, said) = machine.tell("braid down home");
    assert!(code == 3 && said.contains("sleep"), "{code} {said}");
    machine.ok("kill $(cat /run/sleeps)");

    // Volumes go on without the page, which takes them down when it is back.
    machine.ok("systemctl restart braid-web && systemctl is-active braid@home braid@memory");
    machine.wait_until("the page again", "busybox wget -q -O /dev/null http://127.0.0.1:7374/");
    ask(&mut machine, "volumes/memory/stop", &json!({}));
    machine.wait_until("its end", "! systemctl is-active braid@memory");
    machine.ok("systemctl start braid-scrub && braid down home --force");
    machine.power_off();
}
