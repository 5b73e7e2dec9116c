//! Arrays with redundancy whose clients come to two shards: the second one reads and writes the members by itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Client, KIB, MIB, Random, Scratch, UpVolume, pattern, wait_until};

/// Bytes of a place that is written and read at once.
const PIECE: u64 = 4 * KIB;
/// Places of each pair of clients.
const PIECES: u64 = 64;

/// Four clients on two shards write and read while members fail, leave and come back. Each write is over one shard, each
/// read over either, and every read shows the last write.
#[test]
fn reads_on_two_shards_show_every_write_while_members_come_and_go() {
    let layouts: [(&[&str], usize); 3] = [
        (&["--level", "raid1", "--bitmap", "64K"], 3),
        (&["--level", "raid10", "--chunk", "64K"], 4),
        (&["--level", "raid5", "--chunk", "64K"], 4),
    ];
    std::thread::scope(|scope| {
        for (layout, members) in layouts {
            scope.spawn(move || come_and_go(layout, members));
        }
    });
}

fn come_and_go(layout: &[&str], members: usize) {
    let scratch = Scratch::new();
    let names: Vec<String> = (0..members).map(|number| format!("{number}.img")).collect();
    names.iter().for_each(|name| drop(scratch.sparse(name, 8 * MIB)));
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    scratch.run(&[&["create", "home", "--assume-clean"], layout, &all].concat()).ok();
    let volume = UpVolume::start(&scratch, "home", &["--attach", "none", "--shards", "2"])
        .unwrap_or_else(|output| panic!("{output}"));
    assert_eq!(volume.status()["shards"], 2);
    let mut clients: Vec<Client> = (0..4).map(|_| volume.client()).collect();
    let (is_over, turns) = (AtomicBool::new(false), [const { AtomicU64::new(0) }; 2]);
    std::thread::scope(|scope| {
        // Each connection goes to the shard with the fewest: the two of a pair are of different shards.
        for (number, pair) in (0..).zip(clients.chunks_mut(2)) {
            let (turns, is_over) = (&turns[number as usize], &is_over);
            scope.spawn(move || write_and_read(number, pair, turns, is_over));
        }
        let goes_on = || {
            let counts = || turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
            let goals = counts().map(|count| count + 40);
            wait_until("the load to go on", || {
                counts().iter().zip(&goals).all(|(count, goal)| count >= goal)
            });
        };
        for name in all.iter().cycle().take(4) {
            goes_on();
            scratch.run(&["member", "fail", "home", name]).ok();
            goes_on();
            scratch.run(&["member", "remove", "home", name]).ok();
            scratch.run(&["member", "add", "home", name]).ok();
            wait_until("every role has a member in sync", || {
                let in_sync = volume.status()["arrays"][0]["in_sync"].clone();
                let in_sync = in_sync.as_array().expect("a list");
                in_sync.len() == members && in_sync.iter().all(|one| one == true)
            });
        }
        goes_on();
        is_over.store(true, Ordering::Relaxed);
    });
    let agreed = scratch.run(&["scrub", "home", "--wait"]).ok();
    assert!(agreed.out.contains("agree"), "{agreed}");
    drop(clients);
    volume.down();
}

/// Writes to its places over one of the connections or another, and reads them over any.
fn write_and_read(number: u64, pair: &mut [Client], turns: &AtomicU64, is_over: &AtomicBool) {
    let mut dice = Random::new(number);
    // The seed of the last write of each place; 0 for none.
    let mut seeds = [0; PIECES as usize];
    while !is_over.load(Ordering::Relaxed) {
        let place = dice.below(PIECES);
        let offset = (number * PIECES + place) * PIECE;
        let over = dice.below(pair.len() as u64) as usize;
        if dice.below(3) == 0 {
            let seed = dice.next() | 1;
            pair[over].write(offset, &pattern(seed, 0, PIECE), false).expect("a write");
            seeds[place as usize] = seed;
        }
        let expected = match seeds[place as usize] {
            0 => vec![0; PIECE as usize],
            seed => pattern(seed, 0, PIECE),
        };
        for client in &mut *pair {
            let read = client.read(offset, PIECE as u32).expect("a read");
            assert!(read == expected, "place {place} of pair {number}");
        }
        turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// Clients on two shards write the same few stripes at once, of members that answer in the call; copies and parity agree.
#[test]
fn two_shards_write_the_same_stripes_and_members_agree() {
    let stacks = [
        "raid1(ram(8M), ram(8M))",
        "raid10(ram(8M), ram(8M), ram(8M), chunk=16K)",
        "raid5(ram(8M), ram(8M), ram(8M), chunk=16K)",
        "raid6(ram(8M), ram(8M), ram(8M), ram(8M), chunk=16K)",
    ];
    for stack in stacks {
        let scratch = Scratch::new();
        let options = ["--name", "home", "--attach", "none", "--shards", "2"];
        let volume = scratch.up(stack, &options);
        assert_eq!(volume.status()["shards"], 2);
        let mut clients: Vec<Client> = (0..4).map(|_| volume.client()).collect();
        std::thread::scope(|scope| {
            for (seed, client) in (1..).zip(&mut clients) {
                scope.spawn(move || {
                    let mut dice = Random::new(seed);
                    for _ in 0..2000 {
                        // Long ones come in parts.
                        let pieces = if dice.below(20) == 0 { PIECES } else { 1 + dice.below(2) };
                        let (offset, len) = (dice.below(PIECES) * PIECE, pieces * PIECE);
                        let data = pattern(dice.next() | 1, 0, len);
                        client.write(offset, &data, false).expect("a write");
                    }
                });
            }
        });
        let agreed = scratch.run(&["scrub", "home", "--wait"]).ok();
        assert!(agreed.out.contains("agree"), "{stack}: {agreed}");
        drop(clients);
        volume.down();
    }
}
