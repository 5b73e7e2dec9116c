//! Volumes as disks of virtual machines: a real guest's file systems, a server that is killed under load, a machine that
//! changes its data while they are written.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../crates/export-vhost/tests/guest/machine.rs"]
mod machine;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{MIB, Random, Scratch, Tool, Volume};
use machine::{BUFFERS, EVENT_IDX, FEATURES, Machine, SIZE, WRITE};

const IN: u32 = 0;
const OUT: u32 = 1;

/// Bytes of each write of the load.
const BLOCK: usize = 4096;
/// Requests in flight at once: each has four descriptors.
const DEPTH: u16 = SIZE / 4;

/// Serves a stack to a machine at `socket`.
#[track_caller]
fn serve<'a>(scratch: &'a Scratch, stack: &str, socket: &Path) -> Volume<'a> {
    let socket = socket.to_str().expect("a path of a test");
    scratch.serve(stack, &["--vhost", socket])
}

/// `klab`, if there is one.
fn klab() -> Option<PathBuf> {
    let named = std::env::var_os("KLAB").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.filter(|path| path.is_file()).or_else(|| common::find_program("klab"))
}

/// A guest: file systems are made, checked and read again, and what is discarded is gone.
const GUEST: &str = r#"
set -e
D=/dev/klab/vu0
mkfs.ext4 -q $D
mkdir -p /tmp/m
mount $D /tmp/m
head -c 20000000 /dev/urandom >/tmp/m/one
cp /tmp/m/one /tmp/m/two
umount /tmp/m
echo 3 >/proc/sys/vm/drop_caches
fsck.ext4 -fn $D
mount $D /tmp/m
cmp /tmp/m/one /tmp/m/two
rm /tmp/m/one
fstrim /tmp/m
umount /tmp/m
blkdiscard -z $D
cmp -n 8000000 $D /dev/zero
echo guest-is-done
"#;

#[test]
fn a_guest_makes_and_checks_a_file_system() {
    let Some(klab) = klab() else { return println!("skipped: there is no klab") };
    let (scratch, size) = (Scratch::new(), 128 * MIB);
    let (one, other) = (scratch.sparse("a.img", size), scratch.sparse("b.img", size));
    let socket = scratch.join("s");
    let stack = format!("raid1({}, {})", one.display(), other.display());
    let volume = serve(&scratch, &stack, &socket);
    let guest = Tool::new(&klab).args(["run", "--timeout", "280", "--vhost-user-blk"]);
    let guest = guest.arg(&socket).args(["--", GUEST]).limit(Duration::from_secs(290)).run();
    if !guest.status.success() && guest.err.contains("not prepared") {
        return println!("skipped: {}", guest.err.trim());
    }
    assert!(guest.out.contains("guest-is-done"), "{guest} {}", volume.errors());
    assert_eq!(volume.errors(), "");
    assert!(volume.stop().success());
    common::assert_same_bytes(&one, &other);
}

/// The data of a write: its round, its place, and bytes that depend on both.
fn data(round: u32, head: u16) -> Vec<u8> {
    let mut bytes = vec![(round as u8).wrapping_mul(37) ^ head as u8; BLOCK];
    bytes[..4].copy_from_slice(&round.to_le_bytes());
    bytes
}

#[test]
fn a_server_that_is_killed_under_load_loses_no_request_and_answers_none_twice() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.sparse("a.img", 8 * MIB), scratch.sparse("b.img", 8 * MIB));
    let stack = format!("raid1({}, {})", one.display(), other.display());
    let socket = scratch.join("s");
    let mut random = Random::new(7);
    let mut volume = serve(&scratch, &stack, &socket);
    let mut machine = Machine::new(&socket, FEATURES | EVENT_IDX);
    let (info, notes) = machine.ask_for_notes();
    machine.tell(32, &info, &[notes.as_fd()]);
    let queue = machine.start();
    for round in 0..12u32 {
        for head in 0..DEPTH {
            let at = BUFFERS + usize::from(head) * BLOCK;
            machine.put_bytes(at, &data(round, head));
            let sector = u64::from(head) * 8 + u64::from(round) * 128;
            machine.request(queue, head * 4, (OUT, sector), (at, BLOCK as u32, 0));
            machine.offer(queue, head * 4);
        }
        machine.kick(queue);
        let before = random.below(u64::from(DEPTH)) as u16;
        let mut answered: Vec<u16> = (0..before).map(|_| machine.answer(queue).0).collect();
        volume.signal(rustix::process::Signal::KILL);
        volume.wait();
        drop(volume);
        volume = serve(&scratch, &stack, &socket);
        machine = machine.reconnected(&socket, FEATURES | EVENT_IDX, (&info, &notes));
        answered.extend((before..DEPTH).map(|_| machine.answer(queue).0));
        answered.sort_unstable();
        let all: Vec<u16> = (0..DEPTH).map(|head| head * 4).collect();
        assert_eq!(answered, all, "round {round}: each once");
        assert!(all.iter().all(|head| machine.status(queue, *head) == 0), "round {round}");
    }
    let back = BUFFERS + (1 << 20);
    for round in 0..12u32 {
        for head in 0..DEPTH {
            let sector = u64::from(head) * 8 + u64::from(round) * 128;
            assert_eq!(machine.run(queue, (IN, sector), (back, BLOCK as u32, WRITE)), 0);
            assert!(machine.bytes(back, BLOCK) == data(round, head), "round {round}, {head}");
        }
    }
    // Nothing is left, and nothing more is answered.
    assert_eq!(machine.stop(queue), u32::from(machine.taken(queue)));
}

/// Members are made from one copy of the data, whatever the machine does to its buffer.
#[test]
fn a_machine_that_changes_its_data_during_a_write_never_makes_members_differ() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.sparse("a.img", 8 * MIB), scratch.sparse("b.img", 8 * MIB));
    let stack = format!("raid1({}, {})", one.display(), other.display());
    let socket = scratch.join("s");
    let volume = serve(&scratch, &stack, &socket);
    let mut machine = Machine::new(&socket, FEATURES);
    let queue = machine.start();
    let again = machine.mapped_again();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut byte = 0u8;
            while !is_over.load(Ordering::Relaxed) {
                byte = byte.wrapping_add(1);
                machine::fill(&again, BUFFERS, &[byte; 64 << 10]);
            }
        });
        for round in 0..100u64 {
            let sector = round * 128;
            assert_eq!(machine.run(queue, (OUT, sector), (BUFFERS, 64 << 10, 0)), 0);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    drop(machine);
    assert!(volume.stop().success());
    common::assert_same_bytes(&one, &other);
}

#[test]
fn a_connected_machine_is_shown_and_a_stale_socket_is_replaced() {
    let scratch = Scratch::new();
    let socket = scratch.join("s");
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket that is left"));
    let path = socket.to_str().expect("a path of a test");
    let volume = scratch.up("ram(1M)", &["--name", "disk", "--attach", "none", "--vhost", path]);
    let export = || volume.status()["exports"][0].clone();
    assert_eq!((&export()["kind"], &export()["address"]), (&"vhost".into(), &path.into()));
    let mut machine = Machine::new(&socket, FEATURES);
    let queue = machine.start();
    assert_eq!(machine.run(queue, (OUT, 0), (BUFFERS, 512, 0)), 0);
    let is_shown = || export()["connections"] == 1 && export()["written_bytes"] == 512;
    common::wait_until("the status to show the machine", is_shown);
    drop(machine);
    common::wait_until("the machine to leave", || export()["connections"] == 0);
}
