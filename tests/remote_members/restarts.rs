//! A remote member whose server is killed and started again under load. BRAID_REMOTE_RESTARTS gives a number of
//! restarts.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Ledger, MIB, Scratch, Tool, skip_without, wait_until};
use crate::far::{Far, member, socket};

const SIZE: u64 = 4 * MIB;

/// Kills the server that `start` starts again and again under load, and compares the contents.
fn restarted(start: impl Fn(&Scratch, &Path) -> Far) {
    let restarts = std::env::var("BRAID_REMOTE_RESTARTS").ok().and_then(|text| text.parse().ok());
    let restarts: u64 = restarts.unwrap_or(5);
    let scratch = Scratch::new();
    let socket = socket(&scratch);
    scratch.sparse("far.img", SIZE);
    let mut far = Some(start(&scratch, &socket));
    let near = scratch.up(&member(&socket, ""), &["--name", "near", "--attach", "none"]);
    let (mut ledger, done) = (Ledger::new(SIZE, 35), AtomicU64::new(0));
    let mut client = near.client();
    let end = client.raw.stream.try_clone().expect("a socket");
    std::thread::scope(|scope| {
        let load = scope.spawn(|| ledger.write_to_the_end(&mut client, &done));
        for _ in 0..restarts {
            let before = done.load(Ordering::Relaxed);
            wait_until("requests to be answered", || done.load(Ordering::Relaxed) > before + 20);
            drop(far.take());
            far = Some(start(&scratch, &socket));
        }
        let before = done.load(Ordering::Relaxed);
        wait_until("requests to be answered", || done.load(Ordering::Relaxed) > before + 20);
        end.shutdown(std::net::Shutdown::Write).expect("the client is connected");
        load.join().expect("the load");
    });
    ledger.check(&mut near.client());
    let status = near.status();
    let remote = &status["members"][0]["remote"];
    println!("{} requests, {remote}", done.load(Ordering::Relaxed));
    assert_eq!(remote["expired"], 0, "{remote}");
    assert!(remote["reconnects"].as_u64() >= Some(restarts), "{remote}");
    near.down();
}

#[test]
fn no_write_is_lost_though_braid_is_killed_at_the_far_end() {
    restarted(|scratch, socket| Far::braid(scratch, "./far.img", socket));
}

#[test]
fn no_write_is_lost_though_nbdkit_is_killed_at_the_far_end() {
    skip_without!("nbdkit");
    restarted(|scratch, socket| {
        let disk = scratch.join("far.img");
        Far::nbdkit(&["file", disk.to_str().expect("a plain name")], socket)
    });
}

#[test]
fn no_write_is_lost_though_qemu_nbd_is_killed_at_the_far_end() {
    skip_without!("qemu-nbd");
    restarted(|scratch, socket| {
        let tool =
            Tool::new("qemu-nbd").args(["--format=raw", "--shared=0", "--persistent", "--socket"]);
        Far::start(tool.arg(socket).arg(scratch.join("far.img")), socket)
    });
}
