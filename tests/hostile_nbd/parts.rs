//! Clients that write parts of blocks, at the same time, side by side in one block: each finds its own bytes.
//!
//! ```text
//!   bytes    │0000│11111│222│0000000│11│2222222222│ …      stretches of 1 to 3000 bytes, in turn
//!   blocks   │         │         │         │               of 512 bytes: most belong to several clients
//! ```

use std::thread;

use braid_nbd::protocol::Command;
use braid_seed::Rng;

use crate::common::{Client, MIB, Scratch, Volume};

const CLIENTS: usize = 4;
/// Bytes that all of them share.
const SHARED: u64 = 256 << 10;
const ROUNDS: usize = 40;
/// Requests that a client has under way at once.
const DEPTH: usize = 8;

/// A client: where its stretches are, and what is in them.
struct Owner {
    stretches: Vec<(u64, u64)>,
    model: Vec<u8>,
    rng: Rng,
}

impl Owner {
    /// A range in a stretch, and what is to be done with it.
    fn draw(&mut self, index: usize) -> (Command, Vec<u8>) {
        let (from, len) = self.stretches[index];
        let skip = self.rng.below(len);
        let (offset, length) = (from + skip, 1 + self.rng.below(len - skip));
        let at = offset as usize..(offset + length) as usize;
        match self.rng.below(5) {
            0 => {
                self.model[at].fill(0);
                let (fua, no_hole, fast_zero) = (false, false, false);
                (Command::WriteZeroes { offset, length, fua, no_hole, fast_zero }, Vec::new())
            }
            _ => {
                let bytes: Vec<u8> = (0..length).map(|_| self.rng.below(256) as u8).collect();
                self.model[at].copy_from_slice(&bytes);
                (Command::Write { offset, length: length as u32, fua: false }, bytes)
            }
        }
    }

    fn run(&mut self, client: &mut Client) {
        for _ in 0..ROUNDS {
            let first = self.rng.below((self.stretches.len() - DEPTH) as u64) as usize;
            for index in first..first + DEPTH {
                let (command, payload) = self.draw(index);
                client.send(command, &payload).expect("a write can be sent");
            }
            while client.unanswered() > 0 {
                let (_, answer) = client.receive().expect("an answer");
                answer.expect("the write is carried out");
            }
            for index in first..first + DEPTH {
                let (from, len) = self.stretches[index];
                let read = client.read(from, len as u32).expect("a read");
                assert!(read == self.model[from as usize..][..len as usize], "at {from}+{len}");
            }
        }
    }
}

fn owners(seed: u64) -> Vec<Owner> {
    let mut rng = Rng::new(seed);
    let mut owners: Vec<Owner> = (0..CLIENTS as u64)
        .map(|index| Owner {
            stretches: Vec::new(),
            model: vec![0; SHARED as usize],
            rng: Rng::new(seed + 1 + index),
        })
        .collect();
    let (mut at, mut turn) = (0, 0);
    while at < SHARED {
        let len = (1 + rng.below(3000)).min(SHARED - at);
        owners[turn % CLIENTS].stretches.push((at, len));
        (at, turn) = (at + len, turn + 1);
    }
    owners
}

/// Runs all clients at once; then all bytes must be those of the last write of their owner.
fn write_beside_each_other(volume: &Volume) {
    let mut owners = owners(1);
    thread::scope(|scope| {
        for owner in &mut owners {
            let mut client = volume.client();
            scope.spawn(move || owner.run(&mut client));
        }
    });
    let all = volume.client().read(0, SHARED as u32).expect("a read");
    for owner in &owners {
        for (from, len) in &owner.stretches {
            let range = *from as usize..(from + len) as usize;
            assert!(all[range.clone()] == owner.model[range], "{from}+{len} after all");
        }
    }
}

#[test]
fn neighbours_in_a_block_keep_their_bytes() {
    let levels = [
        "raid0(chunk=64K, ram(1M), ram(1M))",
        "raid0(chunk=64K, ./a.img, ./b.img)",
        "raid5(chunk=64K, ./a.img, ./b.img, ./c.img)",
        "cache(size=1M, mode=write-through, ./a.img)",
    ];
    for stack in levels {
        println!("{stack}");
        let scratch = Scratch::new();
        ["a.img", "b.img", "c.img"].iter().for_each(|name| drop(scratch.sparse(name, 4 * MIB)));
        let mut volume = scratch.serve(stack, &["--shards", "2"]);
        write_beside_each_other(&volume);
        volume.assert_serves();
    }
}

/// Trims what is whole blocks, and nothing else; the rest of what is asked is a hint.
#[test]
fn a_trim_of_parts_of_blocks_takes_whole_blocks() {
    let scratch = Scratch::new();
    let volume = scratch.serve("ram(1M)", &[]);
    let mut client = volume.client();
    client.write(0, &[7; 4096], false).unwrap();
    let trim = Command::Trim { offset: 100, length: 1500, fua: false };
    client.request(trim, &[]).unwrap();
    let trim = Command::Trim { offset: 2050, length: 100, fua: false };
    client.request(trim, &[]).unwrap();
    let mut expected = [7; 4096];
    expected[512..1536].fill(0);
    assert_eq!(client.read(0, 4096).unwrap(), expected);
}
