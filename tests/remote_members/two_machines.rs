//! The mirror over two machines of docs/two-machines.md: two network namespaces, a cable with a delay, losses and
//! cuts, and failing over by hand to the far machine and back.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cable::{Cable, End};
use crate::common::{
    MIB, Scratch, Tool, UpVolume, pattern, skip_unless_root, skip_without, start, wait_until,
};

/// The machine of the test's own namespace is *near*; a process in a namespace of its own is *far*.
struct Far {
    holder: Child,
    cable: Option<Cable>,
    /// The folder of the cable's sockets.
    _folder: Scratch,
}

impl Far {
    /// Lays a cable with `delay` one way in each direction; says why if none can be laid.
    fn new(delay: Duration) -> Option<Far> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "600"]).stdout(Stdio::null());
        let holder = start(&mut command).expect("unshare can be started");
        let folder = Scratch::new();
        let path = folder.path().to_owned();
        let mut far = Far { holder, cable: None, _folder: folder };
        wait_until("a namespace", || {
            let own = std::fs::read_link("/proc/self/ns/net").ok();
            let other = std::fs::read_link(format!("/proc/{}/ns/net", far.holder.id())).ok();
            other.is_some() && own != other
        });
        let end = |socat, machine| End {
            socat,
            device: format!("braid{}", far.holder.id() % 100_000),
            address: format!("{}.{machine}/24", far.subnet()),
        };
        let ends = [end(Tool::new("socat"), 1), end(far.enter(&["socat"]), 2)];
        match Cable::lay(&path, delay, ends) {
            Ok(cable) => far.cable = Some(cable),
            Err(why) => {
                println!("skipped: no network of its own can be made here: {}", why.trim());
                return None;
            }
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

    fn cable(&self) -> &Cable {
        self.cable.as_ref().expect("it is laid")
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

/// One way; there and back takes twice as long.
const DELAY: Duration = Duration::from_millis(20);
const ROUND_TRIP: Duration = Duration::from_millis(40);

fn is_whole(volume: &UpVolume<'_>) -> bool {
    let array = &volume.status()["arrays"][0];
    array["in_sync"] == serde_json::json!([true, true]) && array["job"].is_null()
}

/// Random writes of 4 KiB by fio, 32 at a time.
fn fio(scratch: &Scratch, volume: &UpVolume<'_>, more: &[&str]) -> serde_json::Value {
    let job = ["--name=v", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=32"];
    let fio = Tool::new("fio").args(job).args(["--size=8M", "--output-format=json"]).args(more);
    let fio = fio.args(["--output=v.json".to_owned(), format!("--uri={}", volume.uris[0])]);
    fio.folder(scratch.path()).run().ok();
    serde_json::from_slice(&scratch.read("v.json")).expect("fio prints JSON")
}

/// Compares costs with docs/two-machines.md.
fn writes_take_the_way(near: &Scratch, volume: &UpVolume<'_>) {
    let mut client = volume.client();
    let begun = Instant::now();
    client.write(0, &pattern(1, 0, 65536), true).expect("a write");
    assert!(begun.elapsed() >= ROUND_TRIP, "a write takes the way: {:?}", begun.elapsed());
    let round_trip = volume.status()["members"][1]["remote"]["round_trip_us"].as_u64();
    assert!(round_trip >= Some(ROUND_TRIP.as_micros() as u64), "{round_trip:?}");
    // Reads stay on the near machine.
    client.read(0, 65536).expect("a read");
    let io = volume.status()["members"][1]["io"].clone();
    assert_eq!(io["reads"]["count"], 0, "{io}");

    // One at a time would be a write in each round trip; on a busy machine 32 of them are fewer than the way allows.
    let alone = 1.0 / ROUND_TRIP.as_secs_f64();
    let most = 32.0 * alone;
    let written = fio(near, volume, &["--time_based", "--runtime=3"]);
    let rate = written["jobs"][0]["write"]["iops"].as_f64().expect("a rate");
    println!("{rate:.0} writes a second of {most:.0} that the way allows, 32 at a time");
    assert!((alone * 4.0..most * 1.1).contains(&rate), "{rate} writes a second of {most}");
}

#[test]
fn a_cut_and_a_failover_go_as_the_page_says() {
    skip_unless_root!();
    skip_without!("fio", "nbdkit", "nbdinfo", "socat", "unshare", "nsenter");
    let Some(far) = Far::new(DELAY) else { return };
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
    writes_take_the_way(&near, &volume);
    // Lost packets cost time, and nothing else.
    far.cable().lose_one_in(50);
    fio(&near, &volume, &["--io_size=1M", "--verify=crc32c"]);
    far.cable().lose_one_in(0);

    // The network is away for longer than the deadline: near goes on alone, and far is taken back.
    far.cable().cut(true);
    let mut client = volume.client();
    client.write(1 << 20, &pattern(2, 0, 65536), true).expect("a write without the far machine");
    assert_eq!(volume.status()["state"], "degraded");
    far.cable().cut(false);
    wait_until("far to be taken back", || is_whole(&volume));

    // With write-behind, writes are as near's own, and a flush takes the way.
    near.run(&["grow", "home", "--write-behind", "256"]).ok();
    let mut timed = |is_flush: bool, block: u64| {
        let begun = Instant::now();
        let bytes = pattern(4, block, 4096);
        client.write((4 << 20) + block * 4096, &bytes, is_flush).expect("a write");
        begun.elapsed()
    };
    // The first one sets the bit of its chunk.
    let shortest = (0..8).map(|block| timed(false, block)).skip(1).min().expect("there are some");
    assert!(shortest < ROUND_TRIP / 2, "{shortest:?}");
    assert!(timed(true, 9) >= ROUND_TRIP, "what must be durable takes the way");

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
    wait_until("near's device to be filled", || is_whole(&half));
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
    wait_until("both to be in sync", || is_whole(&volume));
    let mut client = volume.client();
    assert_eq!(client.read(2 << 20, 65536).expect("a read"), pattern(3, 0, 65536));
    drop(client);
    volume.down();
}
