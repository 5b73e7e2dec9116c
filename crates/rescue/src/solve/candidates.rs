//! The patterns that are tried.

use braid_level::{Level, ParityLayout, Raid10Layout};

use super::map::{Map, Pattern};
use super::question::Question;

/// Chunks that are tried unless one is given: powers of two from 4 KiB to 4 MiB.
const CHUNKS: std::ops::RangeInclusive<u32> = 12..=22;
/// Number of members from which on the numbers of roles that are tried are near it.
const MANY: usize = 26;
/// md's numbers of raid10's layouts: n2, f2, o2, n3, f3, o3.
const RAID10: [u32; 6] = [0x102, 0x201, 0x1_0201, 0x103, 0x301, 0x1_0301];

/// Returns the maps of all patterns in question, but for linear and raid1: the simplest first.
pub(super) fn maps(question: &Question) -> Vec<Map> {
    let fixed = &question.fixed;
    let chunks: Vec<u64> =
        fixed.chunk.map_or_else(|| CHUNKS.map(|shift| 1 << shift).collect(), |chunk| vec![chunk]);
    let mut maps = Vec::new();
    for level in [Level::Raid0, Level::Raid4, Level::Raid5, Level::Raid6, Level::Raid10] {
        if fixed.level.is_some_and(|wanted| wanted != level) {
            continue;
        }
        for layout in layouts(level, fixed.layout) {
            for members in widths(question, level, layout) {
                let pattern = |&chunk: &u64| Map::new(Pattern { level, layout, chunk, members });
                maps.extend(chunks.iter().filter_map(pattern));
            }
        }
    }
    maps
}

fn layouts(level: Level, fixed: Option<u32>) -> Vec<u32> {
    match level {
        Level::Raid0 => vec![braid_level::Raid0Layout::default().number()],
        Level::Raid5 | Level::Raid6 | Level::Raid10 if fixed.is_some() => {
            fixed.into_iter().collect()
        }
        Level::Raid5 | Level::Raid6 => {
            let level = level.with_parity();
            level.into_iter().flat_map(ParityLayout::of).map(ParityLayout::number).collect()
        }
        Level::Raid10 => RAID10.to_vec(),
        Level::Linear | Level::Raid1 | Level::Raid4 => vec![0],
    }
}

/// Numbers of roles that are possible: with members that belong elsewhere, and with as many missing as the
/// redundancy allows.
fn widths(question: &Question, level: Level, layout: u32) -> std::ops::RangeInclusive<usize> {
    let there = question.sizes.len();
    if let Some(members) = question.fixed.members {
        return members..=members;
    }
    let most = match level {
        Level::Raid10 => {
            let copies = Raid10Layout::from_number(layout).map_or(1, Raid10Layout::copies);
            if there > MANY { there + copies } else { there * copies }
        }
        _ => there + level.with_parity().map_or(0, |level| level.parities()),
    };
    let least = level.least_members().max(2);
    let least = if there > MANY { there - 2 } else { least };
    least..=most.min(braid_array::MAX_MEMBERS)
}
