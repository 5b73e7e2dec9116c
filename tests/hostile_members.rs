//! Hostile members through the program: superblocks that the kernel wrote, with fields changed to extremes under a
//! right checksum. `examine` shows them, `assemble --plan` judges them, `up` serves or refuses arrays of them. None may
//! panic, take two seconds of a processor, or much memory. The same without processes: `crates/mutate/tests/hostile`.
//!
//! `BRAID_HOSTILE_TIMES=n` multiplies how many there are: 100 makes 400,000 superblocks and 2,000 sets.
//! `BRAID_HOSTILE_SEED=n` is the seed of the first; the commit's if not set.

#[path = "common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use braid_golden::Golden;
use braid_md::Version;
use braid_md::detect::find;
use braid_md::fuzz::seal;
use braid_mutate::change_superblock;
use braid_seed::{Rng, commit, first_of_commit};
use braid_sys::process::children;
use common::{Output, Scratch, UpVolume, cpu_ns_of, with_files_open};

/// Images that one call of the program is given.
const IMAGES: usize = 200;
const CALLS: u64 = 20;
const SETS: u64 = 20;
/// The most that a call, or a volume, may take of a processor, in nanoseconds.
const MOST_CPU_NS: u64 = 2_000_000_000;
/// The most that a process may take of memory, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// A member of the kernel's, without its data.
struct Member {
    size: u64,
    version: Version,
    /// The place of its superblock, in bytes.
    at: u64,
    superblock: Vec<u8>,
    /// The blocks of its metadata that are not zero, and their places.
    blocks: Vec<(u64, Vec<u8>)>,
}

impl Member {
    fn of(golden: &Golden) -> impl Iterator<Item = Member> {
        const BLOCK: usize = 4096;
        const TAIL: usize = 256 << 10;
        golden.present().filter_map(|member| {
            let bytes = golden.expand_member(member.index);
            let read = &mut |at: u64, buffer: &mut [u8]| {
                buffer.copy_from_slice(&bytes[at as usize..][..buffer.len()]);
                Ok(())
            };
            let mut found = find(bytes.len() as u64, read).expect("bytes can be read");
            let found = found.pop()?;
            let front = member.data_offset_bytes.unwrap_or(0) as usize;
            let places = (0..front).chain(bytes.len() - TAIL..bytes.len()).step_by(BLOCK);
            let block = |at: usize| (at as u64, bytes[at..at + BLOCK].to_vec());
            let blocks = places.map(block).filter(|(_, block)| block.iter().any(|byte| *byte != 0));
            Some(Member {
                size: bytes.len() as u64,
                version: found.version,
                at: found.offset,
                superblock: found.bytes,
                blocks: blocks.collect(),
            })
        })
    }

    /// Its superblock, changed.
    fn hostile(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.superblock.clone();
        change_superblock(self.version == Version::V0_90, &mut bytes, rng);
        seal(self.version, &mut bytes);
        bytes
    }

    /// Makes an image of it.
    fn write(&self, scratch: &Scratch, name: &str) {
        let write = || {
            let file = File::create(scratch.join(name))?;
            file.set_len(self.size)?;
            self.blocks.iter().try_for_each(|(at, block)| file.write_all_at(block, *at))
        };
        with_files_open(write).expect("an image can be made");
    }
}

/// The observations about all processes.
#[derive(Default)]
struct Seen {
    /// The seed of the last process.
    seed: u64,
    longest_ns: u64,
    largest_bytes: u64,
    /// The number of times that a command ended with a status.
    ends: BTreeMap<(String, i32), u64>,
}

impl Seen {
    /// Records the time and the end of a call of the program.
    fn call(&mut self, seed: u64, what: &str, call: impl FnOnce() -> Output) -> Output {
        self.seed = seed;
        let before = children().expect("Linux counts it").cpu_ns;
        let output = call();
        let after = children().expect("Linux counts it");
        self.took(seed, what, after.cpu_ns - before, after.peak_bytes);
        *self.ends.entry((what.to_owned(), output.code())).or_default() += 1;
        assert!((0..=3).contains(&output.code()), "seed {seed}: {output}");
        assert!(!output.err.contains("panicked"), "seed {seed}: {output}");
        let shown = output.out.chars().chain(output.err.chars());
        let raw = shown.filter(|one| one.is_control() && !"\n\t".contains(*one)).count();
        assert_eq!(raw, 0, "seed {seed}: control characters: {output}");
        output
    }

    fn took(&mut self, seed: u64, what: &str, cpu_ns: u64, peak_bytes: u64) {
        self.longest_ns = self.longest_ns.max(cpu_ns);
        self.largest_bytes = self.largest_bytes.max(peak_bytes);
        assert!(cpu_ns < MOST_CPU_NS, "seed {seed}: {what} takes {} ms", cpu_ns / 1_000_000);
        assert!(peak_bytes < MOST_BYTES, "seed {seed}: {what} takes {peak_bytes} bytes");
    }

    /// Records the memory and time of a volume's process, by `/proc`.
    fn volume(&mut self, seed: u64, pid: u32) {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the line");
        let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        self.took(seed, "the volume", cpu_ns_of(pid).expect("it lives"), peak_kib << 10);
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        println!("the last one: BRAID_HOSTILE_SEED={}", self.seed);
        let (ms, mib) = (self.longest_ns / 1_000_000, self.largest_bytes >> 20);
        println!("the longest took {ms} ms of a processor, the largest {mib} MiB of memory");
        self.ends
            .iter()
            .for_each(|((what, code), count)| println!("{what}: {code}: {count} times"));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn times() -> u64 {
    number("BRAID_HOSTILE_TIMES").unwrap_or(1)
}

/// So many seeds of the commit.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = number("BRAID_HOSTILE_SEED").unwrap_or_else(|| first_of_commit(&commit()));
    first..first + times() * count
}

#[test]
fn hostile_superblocks_are_shown() {
    let scratch = Scratch::new();
    let bases: Vec<Member> =
        braid_golden::all().iter().filter_map(|golden| Member::of(golden).next()).collect();
    let names: Vec<String> = (0..IMAGES).map(|index| format!("{index}.img")).collect();
    let images: Vec<(&Member, &String)> = bases.iter().cycle().zip(&names).collect();
    images.iter().for_each(|(base, name)| base.write(&scratch, name));
    let ways: [&[&str]; 5] = [
        &["examine"],
        &["examine", "--json"],
        &["examine", "--explain"],
        &["examine", "--export"],
        &["examine", "--brief"],
    ];
    let mut seen = Seen::default();
    for (seed, way) in seeds(CALLS).zip(ways.iter().cycle()) {
        let mut rng = Rng::new(seed);
        for (base, name) in &images {
            scratch.patch(name, base.at, &base.hostile(&mut rng));
        }
        seen.call(seed, &way.join(" "), || scratch.braid().args(*way).args(&names).run());
    }
}

#[test]
fn arrays_of_hostile_members_come_up_or_are_refused() {
    let scratch = Scratch::new();
    let sets: Vec<Vec<Member>> =
        (braid_golden::all().iter().map(|golden| Member::of(golden).collect()))
            .filter(|members: &Vec<Member>| members.len() > 1)
            .collect();
    let mut seen = Seen::default();
    for seed in seeds(SETS) {
        let mut rng = Rng::new(seed);
        let set = &sets[rng.index(sets.len())];
        let names: Vec<String> = (0..set.len()).map(|index| format!("{index}.img")).collect();
        // All say the same, or each says something else.
        let (same, own) = (rng.percent(70), rng.next_u64());
        for ((index, member), name) in (0..).zip(set).zip(&names) {
            member.write(&scratch, name);
            if same || rng.percent(50) {
                let mut rng = Rng::new(if same { own } else { own ^ index });
                scratch.patch(name, member.at, &member.hostile(&mut rng));
            }
        }
        let plan = || scratch.braid().args(["assemble", "--plan"]).args(&names).run();
        seen.call(seed, "assemble --plan", plan);
        let stack = format!("md({})", names.join(", "));
        let options = ["--name", "v", "--attach", "none", "--degraded"];
        let options = &options[..options.len() - usize::from(rng.percent(50))];
        // The record of the one before is of another array.
        let _ = fs::remove_file(scratch.config_file("v"));
        let mut volume = None;
        seen.call(seed, "up", || match UpVolume::start(&scratch, &stack, options) {
            Ok(up) => {
                volume = Some(up);
                scratch.run(&["status", "v"])
            }
            Err(output) => output,
        });
        let Some(volume) = volume else { continue };
        let mut client = volume.client();
        let end = client.size() - 512;
        let _ = (client.read(0, 512), client.read(end, 512));
        if !client.is_read_only() && client.write(end, &[seed as u8; 512], true).is_ok() {
            assert_eq!(client.read(end, 512).ok(), Some(vec![seed as u8; 512]), "seed {seed}");
        }
        drop(client);
        seen.volume(seed, volume.pid);
        seen.call(seed, "down", || volume.try_down(&[]).ok());
    }
    let served = seen.ends.get(&("down".to_owned(), 0)).copied().unwrap_or(0);
    assert!(served > times() * SETS / 10, "only {served} were started");
}
