//! Members that redundancy relates, where no block says where it belongs: encrypted volumes, images of machines.
//!
//! ```text
//!   rows at equal distances from the starts of the data        of all members           conclusion
//!   all sectors equal                                          copies                   raid1
//!   the sum of all sectors is zero                             P = the sum of the data  raid4, raid5
//!   the sum of all but one is zero, of another one elsewhere   Q is the other           raid6
//! ```
//!
//! A row of content without structure decides: 64 bits vanish by chance once in 2^64. Data offsets that differ are
//! found with the first bytes of one row: the sums of all choices for one half of the members meet those of the other.
//!
//! Deliberately absent: the order of the members, the chunk and the layout. P is the same for every order.

use std::collections::BTreeMap;
use std::fmt;

use super::fill::OFFSETS;
use super::question::Rows;

const SECTOR: usize = 512;
/// Rows that are compared, and those of them that have to agree.
const ROWS: u64 = 48;
const LEAST_ROWS: u32 = 6;
/// Bytes at the end of a member that its superblock may take, and those by which small data offsets differ.
const MARGIN: u64 = 2 << 20;
/// Members up to which offsets that differ, and members that do not belong, are sought.
const MOST_MEMBERS: usize = 12;

/// The kind of redundancy that relates members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// All hold the same: raid1.
    Copies,
    /// One of them is the sum of the others, in each row: raid4 or raid5.
    OneParity,
    /// One of them is the sum of all but one, and that one changes or not: raid6.
    TwoParities,
}

/// Members that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// The kind of their redundancy.
    pub redundancy: Redundancy,
    /// The members, each with its data offset in bytes. All offsets may be larger by one same number.
    pub members: Vec<(usize, u64)>,
    /// Number of rows that agree; none differs.
    pub rows: u32,
}

impl fmt::Display for Related {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.redundancy {
            Redundancy::Copies => "copies of each other (raid1)",
            Redundancy::OneParity => "data and parity (raid4 or raid5)",
            Redundancy::TwoParities => "data and two parities (raid6)",
        };
        let members: Vec<String> = self
            .members
            .iter()
            .map(|(member, offset)| format!("{member} from byte {offset}"))
            .collect();
        let (members, rows) = (members.join(", "), self.rows);
        write!(
            f,
            "the order of members {members}: in {rows} rows they hold {kind}, which is the same in any order"
        )
    }
}

/// Finds the members that redundancy relates; `None` if there are fewer than two, or no row with content agrees.
pub fn related(sizes: &[u64], rows: &dyn Rows) -> Option<Related> {
    let equal = |offset: u64| (0..sizes.len()).map(|member| (member, offset)).collect::<Vec<_>>();
    let places = places(sizes);
    if let Some(related) = judge(equal(0), &places, rows) {
        return Some(related);
    }
    if sizes.len() > MOST_MEMBERS {
        return None;
    }
    // A row in which all members have content finds them; the others confirm it.
    let tried = places.iter().step_by(3);
    tried
        .flat_map(|place| sums_to_zero(sizes.len(), *place, rows))
        .find_map(|members| judge(members, &places, rows))
}

/// Finds the redundancy of all members together whose data begin at one byte, from rows all over them; `None` if there is
/// none, or members differ in places.
pub(super) fn sums(sizes: &[u64], rows: &dyn Rows) -> Option<Redundancy> {
    let least = sizes.iter().copied().min().unwrap_or(0);
    // Heads of members hold superblocks.
    let end = least.saturating_sub(MARGIN);
    let places: Vec<u64> = (1..=ROWS)
        .map(|index| (end / 16 + end / 16 * 15 / ROWS * (index - 1)) / 4096 * 4096)
        .collect();
    let members = (0..sizes.len()).map(|member| (member, 0)).collect();
    judge(members, &places, rows).map(|related| related.redundancy)
}

/// Rows in the last eighth of the smallest member, or of what it has left behind the largest data offset: heads of
/// members hold superblocks, and nothing before their data agrees. The last are first.
fn places(sizes: &[u64]) -> Vec<u64> {
    let least = sizes.iter().copied().min().unwrap_or(0);
    let large = least.saturating_sub(OFFSETS[3] + MARGIN);
    let end = if large > least / 2 { large } else { least.saturating_sub(MARGIN) };
    let place = |index| (end - end / 8 / ROWS * index) / 4096 * 4096;
    (0..ROWS).map(place).collect()
}

/// Compares rows of members; `None` if too few hold content, or one does not agree.
fn judge(members: Vec<(usize, u64)>, places: &[u64], rows: &dyn Rows) -> Option<Related> {
    let (mut copies, mut one, mut two, mut all) = (0, 0, 0, 0);
    for place in places {
        let sector = |(member, offset): &(usize, u64)| rows.read(*member, place + offset, SECTOR);
        let Some(sectors) = members.iter().map(sector).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let mut sum = vec![0; SECTOR];
        sectors.iter().for_each(|sector| braid_parity::xor_into(&mut sum, sector));
        if sectors.iter().filter(|sector| sector.iter().any(|byte| *byte != 0)).count() < 2 {
            continue;
        }
        all += 1;
        copies += u32::from(sectors.iter().all(|sector| *sector == sectors[0]));
        one += u32::from(sum.iter().all(|byte| *byte == 0));
        two += u32::from(sectors.contains(&sum));
    }
    let redundancy = match members.len() {
        2.. if copies == all => Redundancy::Copies,
        3.. if one == all => Redundancy::OneParity,
        4.. if two == all => Redundancy::TwoParities,
        _ => return None,
    };
    (all >= LEAST_ROWS).then_some(Related { redundancy, members, rows: all })
}

/// Returns the choices of members and data offsets for which the first bytes of a row vanish: the largest sets first,
/// and of these the smallest offsets.
fn sums_to_zero(members: usize, place: u64, rows: &dyn Rows) -> Vec<Vec<(usize, u64)>> {
    // For each member the offsets that may be its own with the first bytes there.
    let word = |member: usize, offset: u64| {
        let bytes = rows.read(member, place + offset, 8)?;
        Some((offset, u64::from_le_bytes(bytes.try_into().ok()?)))
    };
    let choices = |member: usize| OFFSETS.iter().filter_map(move |offset| word(member, *offset));
    let half = |range: std::ops::Range<usize>| {
        let mut sums: Vec<(u64, Vec<(usize, u64)>)> = vec![(0, Vec::new())];
        for member in range {
            let choices: Vec<(u64, u64)> = choices(member).filter(|(_, word)| *word != 0).collect();
            let with = sums.iter().flat_map(|(sum, chosen)| {
                choices.iter().map(move |(offset, word)| {
                    (sum ^ word, chosen.iter().copied().chain([(member, *offset)]).collect())
                })
            });
            let with: Vec<(u64, Vec<(usize, u64)>)> = with.collect();
            sums.extend(with);
        }
        sums
    };
    let mut by_sum: BTreeMap<u64, Vec<Vec<(usize, u64)>>> = BTreeMap::new();
    for (sum, chosen) in half(0..members / 2) {
        by_sum.entry(sum).or_default().push(chosen);
    }
    let mut found: Vec<Vec<(usize, u64)>> = Vec::new();
    for (sum, chosen) in half(members / 2..members) {
        let meeting = by_sum.get(&sum).into_iter().flatten();
        found.extend(meeting.map(|first| first.iter().chain(&chosen).copied().collect()));
    }
    found.retain(|chosen: &Vec<(usize, u64)>| chosen.len() > 1);
    let total = |chosen: &Vec<(usize, u64)>| chosen.iter().map(|(_, offset)| offset).sum::<u64>();
    found.sort_by_key(|chosen| (std::cmp::Reverse(chosen.len()), total(chosen)));
    found.truncate(64);
    found
}
