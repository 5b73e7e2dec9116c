//! The mirror over two machines of docs/two-machines.md: two network namespaces, a cable with a delay, cuts, and
//! failing over by hand to the far machine and back.

use std::process::{Child, Command, Stdio};

use crate::common::{
    MIB, Output, Scratch, Tool, pattern, skip_unless_root, skip_without, start, wait_until,
};

/// The machine of the test's own namespace is *near*; a process in a namespace of its own is *far*.
struct Far {
    holder: Child,
    cable: String,
    /// The cable has a delay: this kernel has netem.
    is_delayed: bool,
}

impl Far {
    /// Lays a cable with `delay` one way in each direction, or without where the kernel has no netem; says why if no
    /// cable can be laid.
    fn new(number: u32, delay: &str) -> Option<Far> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "600"]).stdout(Stdio::null());
        let holder = start(&mut command).expect("unshare can be started");
        let cable = format!("braid{}x{number}", std::process::id() % 100_000);
        let mut far = Far { holder, cable, is_delayed: false };
        wait_until("a namespace", || {
            let own = std::fs::read_link("/proc/self/ns/net").ok();
            let other = std::fs::read_link(format!("/proc/{}/ns/net", far.holder.id())).ok();
            other.is_some() && own != other
        });
        let subnet = far.subnet();
        let pid = far.holder.id().to_string();
        let near = |args: &[&str]| Tool::new("ip").args(args).run();
        let peer = format!("{}f", far.cable);
        let laid = [
            near(&["link", "add", &far.cable, "type", "veth", "peer", "name", &peer]),
            near(&["link", "set", &peer, "netns", &pid, "name", "cable"]),
            near(&["addr", "add", &format!("{subnet}.1/24"), "dev", &far.cable]),
            near(&["link", "set", &far.cable, "up"]),
            far.run(&["ip", "addr", "add", &format!("{subnet}.2/24"), "dev", "cable"]),
            far.run(&["ip", "link", "set", "cable", "up"]),
            far.run(&["ip", "link", "set", "lo", "up"]),
        ];
        if let Some(failed) = laid.iter().find(|output| !output.status.success()) {
            println!("skipped: no network of its own can be made here: {}", failed.err.trim());
            return None;
        }
        let netem = |device| ["tc", "qdisc", "add", "dev", device, "root", "netem", "delay", delay];
        let own = netem(&far.cable);
        far.is_delayed = Tool::new(own[0]).args(&own[1..]).run().status.success()
            && far.run(&netem("cable")).status.success();
        if !far.is_delayed {
            println!("this kernel has no netem: the cable has no delay");
        }
        Some(far)
    }

    /// Addresses that a network for tests may use, told apart by the process.
    fn subnet(&self) -> String {
        let pid = self.holder.id();
        format!("198.{}.{}", 18 + pid / 256 % 2, pid % 256)
    }

    fn enter(&self, args: &[&str]) -> Tool {
        let pid = self.holder.id().to_string();
        Tool::new("nsenter").args(["--net", "--target", &pid, "--"]).args(args)
    }

    /// Runs a program on the far machine.
    fn run(&self, args: &[&str]) -> Output {
        self.enter(args).run()
    }

    /// Cuts the cable, or joins it.
    fn set_cable(&self, state: &str) {
        Tool::new("ip").args(["link", "set", &self.cable, state]).run().ok();
    }

    /// Exports a file of the far machine.
    fn export(&self, disk: &str) -> Exporting {
        let address = format!("{}.2", self.subnet());
        let tool = self.enter(&["nbdkit", "--foreground", "--ipaddr", &address, "file", disk]);
        let mut command = tool.into_command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Exporting(start(&mut command).expect("nbdkit can be started"));
        let uri = format!("nbd://{address}");
        wait_until("nbdkit to listen", || {
            Tool::new("nbdinfo").args(["--size", &uri]).run().status.success()
        });
        server
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ =
            Command::new("ip").args(["link", "del", &self.cable]).stderr(Stdio::null()).status();
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A server of the far machine: killed when dropped.
struct Exporting(Child);

impl Drop for Exporting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_cut_and_a_failover_go_as_the_page_says() {
    skip_unless_root!();
    skip_without!("nbdkit", "nbdinfo", "ip", "tc", "unshare", "nsenter");
    let Some(far) = Far::new(1, "5ms") else { return };
    // A folder each: the machines share no records.
    let (near, there) = (Scratch::new(), Scratch::new());
    near.sparse("sda", 64 * MIB);
    let disk = there.sparse("far.img", 64 * MIB);
    let disk = disk.to_str().expect("a plain name");
    let server = far.export(disk);
    let member = format!("nbd(nbd://{}.2, deadline=2s)", far.subnet());
    let create = ["create", "home", "--level", "1", "--bitmap", "1M", "--assume-clean"];
    near.run(&[&create[..], &["sda", &member, "--write-mostly", &member]].concat()).ok();
    let volume = near.up("home", &["--attach", "none"]);
    let is_whole = |status: serde_json::Value| {
        let array = &status["arrays"][0];
        array["in_sync"] == serde_json::json!([true, true]) && array["job"].is_null()
    };
    let mut client = volume.client();
    client.write(0, &pattern(1, 0, 65536), true).expect("a write");
    let round_trip = volume.status()["members"][1]["remote"]["round_trip_us"].as_u64();
    assert!(round_trip >= Some(if far.is_delayed { 10_000 } else { 1 }), "{round_trip:?}");
    // Reads stay on the near machine.
    client.read(0, 65536).expect("a read");
    let io = volume.status()["members"][1]["io"].clone();
    assert_eq!(io["reads"]["count"], 0, "{io}");

    // The network is away for longer than the deadline: near goes on alone, and far is taken back.
    far.set_cable("down");
    client.write(1 << 20, &pattern(2, 0, 65536), true).expect("a write without the far machine");
    assert_eq!(volume.status()["state"], "degraded");
    far.set_cable("up");
    wait_until("far to be taken back", || is_whole(volume.status()));

    // Failing over by hand: near is down, its half is started on far, and given back by the bitmap.
    drop(client);
    volume.down();
    drop(server);
    let half =
        there.up(&format!("md({disk})"), &["--name", "home", "--attach", "none", "--degraded"]);
    let mut client = half.client();
    assert_eq!(client.read(1 << 20, 65536).expect("a read"), pattern(2, 0, 65536));
    client.write(2 << 20, &pattern(3, 0, 65536), true).expect("a write on far");
    drop(client);
    let old = near.join("sda");
    there.run(&["member", "add", "home", old.to_str().expect("a plain name")]).ok();
    wait_until("near's device to be filled", || is_whole(half.status()));
    let written = half.status()["members"].as_array().expect("members").iter().find_map(|one| {
        let is_it = one["member"] == old.to_str().expect("a plain name");
        is_it.then(|| one["io"]["written_bytes"].as_u64()).flatten()
    });
    println!("{written:?} bytes written to near's device");
    assert!(written.is_some_and(|bytes| bytes < 4 * MIB), "{written:?}");
    half.down();

    // And back: near runs it again with the far member.
    let _server = far.export(disk);
    let volume = near.up("home", &["--attach", "none"]);
    wait_until("both to be in sync", || is_whole(volume.status()));
    let mut client = volume.client();
    assert_eq!(client.read(2 << 20, 65536).expect("a read"), pattern(3, 0, 65536));
    drop(client);
    volume.down();
}
