//! The end of a volume's process during a load of writes: asked for, or not.

use std::sync::atomic::{AtomicU64, Ordering};

use braid_nbd::protocol::Command;
use rustix::process::Signal;

use crate::common::{Ledger, MIB, Random, Scratch, Volume, drivers, pattern, wait_until};

const STACK: &str = "raid0(chunk=16K, ./a.img, ./b.img, ./c.img)";
const SIZE: u64 = 6 * MIB;
/// Ends of a process for each signal.
const ROUNDS: u64 = 12;

fn with_members() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a.img", "b.img", "c.img"] {
        scratch.sparse(name, 2 * MIB);
    }
    scratch
}

/// Serves as soon as the members are free: writes of a killed process may still be on their way
/// to them, and keep them locked.
fn serve_again<'a>(scratch: &'a Scratch, options: &[&str]) -> Volume<'a> {
    let mut volume = None;
    wait_until("the members to be free", || match scratch.try_serve(STACK, options) {
        Ok(served) => {
            volume = Some(served);
            true
        }
        Err(output) => {
            assert!(output.err.contains("in use"), "{output}");
            false
        }
    });
    volume.expect("waited for")
}

/// Lets a load run against a volume and sends `signal` at a seeded count of acknowledged writes;
/// then compares. Round after round on the same members.
fn end_by(signal: Signal, is_graceful: bool) {
    let scratch = with_members();
    let drivers = drivers();
    let mut random = Random::new(signal.as_raw() as u64);
    let mut ledger = Ledger::new(SIZE, 1);
    for round in 0..ROUNDS {
        let driver = drivers[round as usize % drivers.len()];
        let mut volume = serve_again(&scratch, &["--io", driver]);
        let mut client = volume.client();
        let done = AtomicU64::new(0);
        // From before the first acknowledgement to some hundreds later.
        let moment = random.below(300);
        std::thread::scope(|scope| {
            scope.spawn(|| ledger.write_to_the_end(&mut client, &done));
            wait_until("the moment", || done.load(Ordering::Relaxed) >= moment);
            volume.signal(signal);
        });
        let status = volume.wait();
        assert_eq!(status.success(), is_graceful, "round {round}: {status} {}", volume.errors());
        drop(volume);
        let volume = serve_again(&scratch, &["--io", driver]);
        println!("{signal:?}, round {round}, {driver}, at {moment}");
        ledger.check(&mut volume.client());
        assert!(volume.stop().success());
    }
}

#[test]
fn terminated_during_writes() {
    end_by(Signal::TERM, true);
}

#[test]
fn interrupted_during_writes() {
    end_by(Signal::INT, true);
}

#[test]
fn killed_during_writes() {
    end_by(Signal::KILL, false);
}

#[test]
fn taken_down_during_writes() {
    let scratch = with_members();
    let mut ledger = Ledger::new(SIZE, 2);
    let mut random = Random::new(2);
    for round in 0..4 {
        let volume = scratch.up(STACK, &["--name", "v", "--attach", "none"]);
        let mut client = volume.client();
        let done = AtomicU64::new(0);
        let moment = random.below(300);
        std::thread::scope(|scope| {
            scope.spawn(|| ledger.write_to_the_end(&mut client, &done));
            wait_until("the moment", || done.load(Ordering::Relaxed) >= moment);
            volume.down();
        });
        let volume = scratch.up("v", &["--attach", "none"]);
        println!("round {round}, at {moment}");
        ledger.check(&mut volume.client());
        volume.down();
    }
}

/// ```text
///   client   W W W W W W C ──▶ ✓ of C ─────────────▶ ✓ ✓ ✓ ✓ ✓ ✓ closed
///   signal                            TERM
///   member    slow: few of the writes have ended
/// ```
#[test]
fn what_is_under_way_is_answered_before_the_end() {
    for driver in drivers() {
        let scratch = Scratch::new();
        let stack = "model(usb-flash, size=16M)";
        let mut volume = scratch.serve(stack, &["--io", driver]);
        let mut client = volume.client();
        let bytes = pattern(1, 0, 512 << 10);
        let writes: u64 = 6;
        for index in 0..writes {
            let command = Command::Write { offset: index << 20, length: 512 << 10, fua: false };
            client.send(command, &bytes).unwrap();
        }
        // A hint is answered as soon as it is read: by then the server has all that came before.
        let hint = client.send(Command::Cache { offset: 0, length: 512 }, &[]).unwrap();
        let mut answered = 0;
        loop {
            let (cookie, answer) = client.receive().unwrap();
            answer.expect("nothing is wrong with these requests");
            if cookie == hint {
                break;
            }
            answered += 1;
        }
        println!("{driver}: {answered} of {writes} were answered when the signal was sent");
        volume.signal(Signal::TERM);
        while let Ok((_, answer)) = client.receive() {
            answer.expect("a write that was under way");
            answered += 1;
        }
        assert!(volume.wait().success(), "{}", volume.errors());
        assert_eq!(answered, writes, "{driver}");
    }
}

#[test]
fn an_idle_client_does_not_hold_the_end_up() {
    let scratch = with_members();
    let mut volume = scratch.serve(STACK, &[]);
    let mut idle = volume.client();
    idle.read(0, 4096).unwrap();
    volume.signal(Signal::TERM);
    assert!(volume.wait().success());
    idle.raw.assert_closed();
}
