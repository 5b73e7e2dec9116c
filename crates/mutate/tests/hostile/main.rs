//! Hostile superblocks, with right checksums: fields of those that the kernel wrote are changed to extremes, and the
//! result goes where `examine` and `up` would take it. None may panic, take two seconds of a processor, or much memory.
//!
//! `BRAID_HOSTILE_TIMES=n` multiplies how many there are: 100 makes 400,000 superblocks and 2,000 sets. The same
//! through the program: `tests/hostile_members.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use braid_md::fuzz::seal;
use braid_md::{Superblock, Version};
use braid_md_text::examine::{self, Surroundings, Written};
use braid_mutate::change_superblock;
use braid_seed::{Rng, commit, first_of_commit};
use braid_sim::Image;
use braid_sim::campaign::{keep_panics, quietly};
use braid_sim::found::carried;
use braid_sim::fuzz::{Got, start};

const SUPERBLOCKS: u64 = 4000;
const SETS: u64 = 20;
/// The most that one may take of a processor, in nanoseconds.
const MOST_CPU_NS: u64 = 2_000_000_000;
/// The most that all may take of memory, in KiB.
const MOST_KIB: u64 = 256 << 10;

fn times() -> u64 {
    std::env::var("BRAID_HOSTILE_TIMES").map_or(1, |text| text.parse().expect("a number"))
}

/// Nanoseconds that this thread was given of a processor.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts them");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// The most memory that this process ever had, in KiB.
fn peak_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux counts it");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Runs `body` for each of `count` seeds; a panic or too much time is a failure, which names the seed.
fn each(count: u64, body: impl Fn(&mut Rng)) {
    keep_panics();
    let first = first_of_commit(&commit());
    let mut longest_ns = 0;
    for seed in first..first + count {
        let before_ns = cpu_ns();
        let result = quietly(|| {
            body(&mut Rng::new(seed));
            Ok(())
        });
        let took_ns = cpu_ns() - before_ns;
        assert!(result.is_ok(), "seed {seed} of commit {}: {result:?}", commit());
        assert!(took_ns < MOST_CPU_NS, "seed {seed} takes {} ms", took_ns / 1_000_000);
        longest_ns = longest_ns.max(took_ns);
    }
    let kib = peak_kib();
    println!(
        "{count}, the longest took {} us of a processor; {kib} KiB at most",
        longest_ns / 1000
    );
    assert!(kib < MOST_KIB, "{kib} KiB");
}

#[test]
fn hostile_superblocks_are_examined() {
    let bases: Vec<(Version, u64, Vec<u8>)> = kept_superblocks();
    each(times() * SUPERBLOCKS, |rng| {
        let (version, size, bytes) = &bases[rng.index(bases.len())];
        let mut bytes = bytes.clone();
        change_superblock(*version == Version::V0_90, &mut bytes, rng);
        seal(*version, &mut bytes);
        let offset = version.superblock_offset(*size).expect("room");
        let parsed = Superblock::parse(*version, offset, *size, &bytes);
        let written = Written::new(*version, &bytes);
        let around = Surroundings::unknown(*size);
        let shown = [
            examine::text(&written, &around),
            examine::explain(&written, &around),
            examine::export(&written),
            examine::brief(&written, true),
            parsed.err().map_or_else(String::new, |why| why.to_string()),
        ];
        let _ = examine::facts(&written, &around);
        let is_raw =
            |text: &String| text.chars().any(|one| one.is_control() && !"\n\t".contains(one));
        assert!(!shown.iter().any(is_raw), "control characters: {shown:?}");
    });
}

#[test]
fn arrays_of_hostile_superblocks_start_or_are_refused() {
    let names = [
        "raid1-2-bitmap",
        "raid1-2-badblocks",
        "raid1-2-v0.90",
        "raid1-2-v1.0-bitmap",
        "raid1-2-recovering",
        "raid10-4-n2",
        "raid10-4-n2-replacing",
        "raid4-3",
        "raid5-3-bitmap",
        "raid5-3-ppl",
        "raid5-3-ppl-dirty",
        "raid5-3-v1.0",
        "raid6-4",
        "raid6-4-1missing",
    ];
    let sets: Vec<Vec<Image>> = names.iter().map(|name| metadata_of(name)).collect();
    let served = std::cell::Cell::new(0);
    each(times() * SETS, |rng| {
        let mut images = sets[rng.index(sets.len())].clone();
        // All say the same, or each says something else.
        let (same, seed) = (rng.percent(70), rng.next_u64());
        for (index, image) in (0..).zip(&mut images) {
            if !same && rng.percent(50) {
                continue;
            }
            let mut own = Rng::new(if same { seed } else { seed ^ index });
            let superblock = carried(image).expect("of the kernel's").superblock;
            let (version, at) = (superblock.version, superblock.super_offset as usize);
            let mut bytes = vec![0; 4096];
            image.read(at, &mut bytes);
            change_superblock(version == Version::V0_90, &mut bytes, &mut own);
            seal(version, &mut bytes);
            image.write(at, &bytes);
        }
        served.set(served.get() + u64::from(start(images) == Got::Served));
    });
    assert!(served.get() > 0, "none was started");
}

/// Superblocks that the kernel wrote, and the sizes of their members.
fn kept_superblocks() -> Vec<(Version, u64, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/md/superblocks");
    let entries = fs::read_dir(folder).expect("testdata");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sb"));
    paths.sort();
    let all = paths.iter().flat_map(|path| {
        let mut bytes = fs::read(path).expect("a superblock");
        bytes.resize(4096, 0);
        let fits = |version: &Version| {
            let offset = version.superblock_offset(16 << 20)?;
            Superblock::parse(*version, offset, 16 << 20, &bytes).ok()?;
            Some((*version, 16 << 20, bytes.clone()))
        };
        Version::ALL.iter().find_map(fits)
    });
    let all: Vec<_> = all.collect();
    assert!(all.len() > 15, "{} superblocks", all.len());
    all
}

/// The members of an array of the kernel's, without their data.
fn metadata_of(name: &str) -> Vec<Image> {
    const TAIL: usize = 256 << 10;
    let golden = braid_golden::named(name);
    let member = |member: &braid_golden::Member| {
        let bytes = golden.expand_member(member.index);
        let mut image = Image::zeroes(bytes.len());
        let front = member.data_offset_bytes.unwrap_or(0) as usize;
        for (start, end) in [(0, front), (bytes.len() - TAIL, bytes.len())] {
            for at in (start..end).step_by(4096).filter(|at| bytes[*at..at + 4096] != [0; 4096]) {
                image.write(at, &bytes[at..at + 4096]);
            }
        }
        image
    };
    golden.present().map(member).collect()
}
