//! A full file system under the image files of an array: writes fail, and nothing that was
//! acknowledged before or since changes.
//!
//! ```text
//!   tmpfs of 20 MiB   m0 m1 m2 (m3): sparse, 24 MiB each      full after a few hundred writes
//!   a block           old ── write ✓ ──▶ new                  must be new
//!                     old ── write ✗ (ENOSPC) ──▶ ?           may be old or new, sector by sector
//! ```

use crate::common::{
    Client, Failed, KIB, MIB, Mounted, Random, Scratch, is_alive, pattern, skip_unless_root,
    wait_until,
};

const SECTOR: u64 = 512;

/// The permitted versions of each sector of the volume, by the writes to it.
struct Books {
    versions: Vec<Vec<u64>>,
}

impl Books {
    fn bytes(version: u64, sector: u64) -> Vec<u8> {
        match version {
            0 => vec![0; SECTOR as usize],
            version => pattern(version, sector * SECTOR, SECTOR),
        }
    }

    /// Checks every sector that can be read.
    #[track_caller]
    fn check(&self, client: &mut Client, when: &str) {
        let step = 64 * KIB;
        let mut unread = 0;
        for offset in (0..self.versions.len() as u64 * SECTOR).step_by(step as usize) {
            let length = step.min(self.versions.len() as u64 * SECTOR - offset);
            let found = match client.read(offset, length as u32) {
                Ok(found) => found,
                Err(Failed::Answered(_)) => {
                    unread += 1;
                    continue;
                }
                Err(Failed::Gone(error)) => panic!("the connection should go on: {error}"),
            };
            for (index, bytes) in found.chunks(SECTOR as usize).enumerate() {
                let sector = offset / SECTOR + index as u64;
                let may_be = &self.versions[sector as usize];
                assert!(
                    may_be.iter().any(|version| bytes == Books::bytes(*version, sector)),
                    "{when}: sector {sector} is none of its versions {may_be:?}"
                );
            }
        }
        println!("{when}: {unread} stretches could not be read");
    }
}

fn on_a_full_disk(level: &str, members: usize, seed: u64) {
    skip_unless_root!();
    let scratch = Scratch::new();
    let Some(disk) = Mounted::tmpfs(&scratch.join("disk"), 20 * MIB) else { return };
    let names: Vec<String> = (0..members).map(|index| format!("disk/m{index}.img")).collect();
    names.iter().for_each(|name| drop(scratch.sparse(name, 24 * MIB)));
    let create = scratch.braid().args(["create", "v", "--level", level]).args(&names);
    let create = if level == "raid1" { create } else { create.args(["--chunk", "16K"]) };
    create.arg("--assume-clean").run().ok();
    let volume = scratch.up("v", &["--attach", "none"]);
    let mut client = volume.client();
    let mut books = Books { versions: vec![vec![0]; (client.size() / SECTOR) as usize] };
    let mut random = Random::new(seed);
    let (mut written, mut failed) = (0, 0);
    for version in 1..3000 {
        let count = [1, 2, 8, 16, 32][random.below(5) as usize];
        let first = random.below(books.versions.len() as u64 - count);
        let bytes: Vec<u8> =
            (first..first + count).flat_map(|sector| Books::bytes(version, sector)).collect();
        let result = client.write(first * SECTOR, &bytes, version % 16 == 0);
        for sector in first..first + count {
            let versions = &mut books.versions[sector as usize];
            match &result {
                Ok(()) => *versions = vec![version],
                Err(Failed::Answered(_)) => versions.push(version),
                Err(Failed::Gone(error)) => panic!("the connection should go on: {error}"),
            }
        }
        match result.is_ok() {
            true => written += 1,
            false => failed += 1,
        }
        if failed > 100 {
            break;
        }
    }
    println!("{level}, seed {seed}: {written} writes, {failed} failed");
    assert!(written > 100 && failed > 0, "{written} written, {failed} failed");
    books.check(&mut client, "while it is up");
    // A last flush that cannot be had is said; whatever was acknowledged is on the members.
    let down = volume.try_down(&[]);
    assert!(down.status.success() || down.err.contains("v has ended, but"), "{down}");
    wait_until("the end of the volume's process", || !is_alive(volume.pid));
    // There is room again, and what was left open is made good.
    disk.resize(200 * MIB);
    let up = UpAgain::start(&scratch);
    books.check(&mut Client::connect(&scratch.run_folder().join("v.nbd")).unwrap(), "afterwards");
    drop(up);
    drop(disk);
}

/// The array as it can be started.
struct UpAgain<'a>(&'a Scratch);

impl UpAgain<'_> {
    #[track_caller]
    fn start(scratch: &Scratch) -> UpAgain<'_> {
        scratch.run(&["up", "v", "--degraded", "--attach", "none"]).ok();
        UpAgain(scratch)
    }
}

impl Drop for UpAgain<'_> {
    fn drop(&mut self) {
        let _ = self.0.braid().args(["down", "v", "--force"]).run();
    }
}

#[test]
fn raid1_on_a_full_disk() {
    on_a_full_disk("raid1", 2, 1);
}

#[test]
fn raid10_on_a_full_disk() {
    on_a_full_disk("raid10", 4, 2);
}

#[test]
fn raid4_on_a_full_disk() {
    on_a_full_disk("raid4", 3, 3);
}

#[test]
fn raid5_on_a_full_disk() {
    on_a_full_disk("raid5", 3, 4);
}

#[test]
fn raid6_on_a_full_disk() {
    on_a_full_disk("raid6", 4, 5);
}
