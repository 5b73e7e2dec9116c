//! Rot in md's own areas: one flipped bit in every sector of superblock, bitmap, bad-block log, partial parity log
//! and stripe log of every member, each before a start of its own.
//!
//! ```text
//!   a short life ──▶ crash, or shut down ──▶ images of the members
//!                                              │  for each sector of each area of each member:
//!                                              ├─ a bit is flipped ──▶ start ──▶ judged
//!                                              ├─ a set bit is flipped ──▶ …
//!                                              ╵
//!   judged well: a refusal that names the member, and then the others start without it
//!                a start, in which all is as promised, at rest and without any members that may be lost
//! ```
//!
//! A sector is flipped twice: at any bit, and at one of those that are set, so that sparse areas lose entries, too.
//! [`story`] has what the members went through.
//!
//! Deliberately absent: rot that cannot be told, which `docs/durability.md` lists with the reasons. An entry of a
//! bad-block log that became another sound one is excused at its place, and a record of a stripe log after a crash of
//! a degraded array; the only copy of a bitmap, and the partial parity log after such a crash, are not flipped.

mod judge;
pub(crate) mod story;

use braid_md::{Level, Version};

use crate::draw::WIDE;
use crate::exhaust::tiny;
use crate::found::{carried, label};
use crate::share::share;
use crate::spec::{FIRST_PAGE, Policy, Spec};
use crate::verify::begin;
use crate::{Image, Rng, quiet};
use judge::{End, Judge};
use story::Left;
pub(crate) use story::Story;

/// After as many failures the rest of a life is left.
const MOST_OF_A_LIFE: usize = 3;
/// A sector, in bytes.
const SECTOR: u64 = 512;

/// Counts of lives and starts.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Lives before.
    pub lives: u64,
    /// Starts with a flipped bit.
    pub flips: u64,
    /// Starts of these that were refused.
    pub refused: u64,
    /// Starts of these without the member.
    pub without: u64,
    /// Those that went wrong: the life's seed, and how.
    pub failed: Vec<(u64, String)>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.lives += other.lives;
        self.flips += other.flips;
        self.refused += other.refused;
        self.without += other.without;
        self.failed.extend(other.failed);
    }
}

/// Every kind of array that has something to rot: level, policy and version, as small as they go.
pub fn kinds() -> Vec<Spec> {
    let shapes = [
        (Level::Raid1, 0, 2),
        (Level::Raid1, 0, 3),
        (Level::Raid10, 0x102, 3),
        (Level::Raid10, 0x102, 4),
        (Level::Raid4, 0, 3),
        (Level::Raid5, 2, 3),
        (Level::Raid6, 2, 4),
    ];
    let policies = [Policy::Resync, Policy::Bitmap, Policy::Ppl, Policy::Log];
    let mut kinds = Vec::new();
    for (level, layout, members) in shapes {
        for policy in policies {
            for version in Version::ALL {
                let is_there = match policy {
                    Policy::Resync | Policy::Bitmap => true,
                    Policy::Ppl => level == Level::Raid5 && version != Version::V0_90,
                    Policy::Log => {
                        matches!(level, Level::Raid4 | Level::Raid6) && !version.is_at_end()
                    }
                };
                if is_there {
                    kinds.push(Spec { version, ..tiny(level, layout, members, policy) });
                }
            }
        }
    }
    kinds
}

/// Returns the number of lives in which each kind goes through each story.
pub fn turn() -> u64 {
    (kinds().len() * Story::COUNT) as u64
}

/// Runs `lives` lives from seed `first` on, with each flip after each; on `threads`. Stops after 20 that go wrong.
pub fn rot_everywhere(first: u64, lives: u64, threads: usize) -> Tally {
    let job = |index| run_life(first.wrapping_add(index));
    share(threads, lives, job, |tally: &mut Tally, one| {
        tally.add(one);
        tally.failed.len() < 20
    })
}

/// The array and the story of a life.
pub(crate) fn plot(seed: u64) -> (Spec, Story) {
    if seed & WIDE != 0 {
        let spec = Spec {
            member_size: FIRST_PAGE + (64 << 10),
            ..tiny(Level::Raid1, 0, 3, Policy::Bitmap)
        };
        return (spec, Story::Replaced);
    }
    let kinds = kinds();
    let spec = kinds[(seed % kinds.len() as u64) as usize];
    (spec, Story::of(&spec, seed / kinds.len() as u64))
}

/// One life, with each flip after it. Seeds that have [`WIDE`] are of bitmaps of two pages, and of these few bits are
/// flipped, since a start takes long.
pub fn run_life(seed: u64) -> Tally {
    let mut tally = Tally { lives: 1, ..Tally::default() };
    let (spec, story) = plot(seed);
    let mut rng = Rng::new(seed ^ 0x0b17_f11b);
    let mut fails = |what: &dyn std::fmt::Display, why: String| {
        tally.failed.push((seed, format!("{spec:?}, {story:?}, {what}: {why}")));
        tally.failed.len() >= MOST_OF_A_LIFE
    };
    begin();
    let left = match quiet::quietly(|| story::live(&spec, story, &mut rng)) {
        Ok(left) => left,
        Err(why) => {
            fails(&"the life", why);
            return tally;
        }
    };
    let judge = Judge { spec, left: &left };
    begin();
    let mut dice = rng.fork();
    if let Err(why) = quiet::quietly(|| judge.start_sound(&mut dice)) {
        fails(&"without a flipped bit", why);
        return tally;
    }
    let mut ends = Vec::new();
    for rot in rots(&spec, &left, &mut rng) {
        let mut dice = rng.fork();
        begin();
        match quiet::quietly(|| judge.start(&rot, &mut dice)) {
            Ok(end) => ends.push(end),
            Err(why) => {
                if fails(&rot, why) {
                    break;
                }
            }
        }
    }
    let count = |wanted: End| ends.iter().filter(|end| **end == wanted).count() as u64;
    tally.flips = ends.len() as u64 + tally.failed.len() as u64;
    (tally.refused, tally.without) = (count(End::Refused), count(End::Without));
    tally
}

/// A flipped bit.
struct Rot {
    area: &'static str,
    disk: usize,
    /// In bytes of the disk.
    at: u64,
    bit: u32,
}

impl std::fmt::Display for Rot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Rot { area, disk, at, bit } = self;
        write!(f, "{area} of {}, byte {at}, bit {bit}", label(*disk))
    }
}

/// Returns the flips of each member that is there.
fn rots(spec: &Spec, left: &Left, rng: &mut Rng) -> Vec<Rot> {
    let mut rots = Vec::new();
    for (disk, image) in left.images.iter().enumerate() {
        let flips = image.iter().flat_map(|image| flips(image, rng));
        rots.extend(flips.map(|(area, at, bit)| Rot { area, disk, at, bit }));
    }
    if spec.is_wide() {
        rots.retain(|rot| rot.area == "bitmap" && rng.percent(10));
    }
    rots
}

/// Draws two flips for each sector of each of md's areas on a member; one where no bit is set. Returns for each the
/// area, the byte of the member, and the bit of the byte.
pub fn flips(image: &Image, rng: &mut Rng) -> Vec<(&'static str, u64, u32)> {
    let mut all = Vec::new();
    for (area, start, len) in areas(image) {
        for sector in (start..start + len).step_by(SECTOR as usize) {
            let flips = flips_of(image, sector, SECTOR, rng);
            all.extend(flips.into_iter().map(|(at, bit)| (area, at, bit)));
        }
    }
    all
}

/// Draws two flips in the `len` bytes at `start`: any bit, and one of those that are set, if there is one. Returns for
/// each the byte and the bit.
pub fn flips_of(image: &Image, start: u64, len: u64, rng: &mut Rng) -> Vec<(u64, u32)> {
    let mut bytes = vec![0; len as usize];
    image.read(start as usize, &mut bytes);
    let any = rng.below(len * 8);
    let is_set = |bit: &u64| bytes[(bit / 8) as usize] & 1 << (bit % 8) != 0;
    let set: Vec<u64> = (0..len * 8).filter(is_set).collect();
    let of_set = (!set.is_empty()).then(|| set[rng.index(set.len())]);
    let flips = [Some(any), of_set].into_iter().flatten();
    flips.map(|bit| (start + bit / 8, (bit % 8) as u32)).collect()
}

/// Returns md's own areas on a member: the name of each, its offset, and its size in bytes.
fn areas(image: &Image) -> Vec<(&'static str, u64, u64)> {
    let Ok(carried) = carried(image) else { return Vec::new() };
    let superblock = &carried.superblock;
    let beside = |offset: i64| superblock.super_offset.saturating_add_signed(offset);
    let mut areas = vec![("superblock", superblock.super_offset, 4096)];
    if let (Some(offset), Some(bitmap)) = (superblock.bitmap_offset, &carried.bitmap) {
        areas.push(("bitmap", beside(offset), bitmap.page_count() * 4096));
    }
    if let Some(log) = superblock.bad_block_log {
        areas.push(("bad-block log", beside(log.offset), log.size));
    }
    if let Some((offset, len)) = superblock.ppl {
        areas.push(("partial parity log", beside(offset), len));
    }
    if let Some(head) = &carried.logs.head {
        let start = superblock.data_offset - head.area;
        areas.push(("records", start, head.ring()));
        areas.push(("head", start + head.ring(), head.area - head.ring()));
    }
    areas
}
