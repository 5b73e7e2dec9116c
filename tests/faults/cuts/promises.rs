//! The promises to a client about each sector of a volume, and its permitted content after a power cut.
//!
//! ```text
//!   sector   promised   acknowledged   issued        may be found after the cut
//!      0        7            7         7                7
//!      1        5            8         5, 8, 9          5, 8 or 9
//! ```
//!
//! A flush promises all writes that were acknowledged before it was sent; a write with FUA promises itself.
//! Writes in flight never overlap, so the versions of a sector have an order.

use std::ops::Range;

use crate::common::{Random, pattern};

pub(crate) const SECTOR: u64 = 512;
/// The longest write, in sectors: over the ends of chunks.
const LONGEST: u64 = 192;

/// The next step of a client.
pub(crate) enum Step {
    Write {
        sectors: Range<u64>,
        version: u64,
        fua: bool,
    },
    Zeroes {
        sectors: Range<u64>,
        version: u64,
        fua: bool,
    },
    /// With what was acknowledged before, by sector.
    Flush(Vec<u64>),
}

#[derive(Clone, Default)]
struct Sector {
    promised: u64,
    acknowledged: u64,
    /// From the promised one on, with whether it is of zeroes.
    issued: Vec<(u64, bool)>,
}

pub(crate) struct Promises {
    sectors: Vec<Sector>,
    under_way: Vec<Range<u64>>,
    version: u64,
    /// The percentage of flushes among steps, and of FUA among writes.
    flushes: u64,
    forced: u64,
    /// The number of promises, by which a test knows that it tests something.
    pub(crate) given: u64,
}

impl Promises {
    /// The promises for a volume, or its beginning, of `size` bytes that are zeroes. Some loads seldom make
    /// data durable: on members that make a whole file durable at once, each promise hides the defects of
    /// earlier ones.
    pub(crate) fn new(size: u64, random: &mut Random) -> Promises {
        let sector = Sector { issued: vec![(0, true)], ..Sector::default() };
        let sectors = vec![sector; (size / SECTOR) as usize];
        let (flushes, forced) = [(0, 0), (2, 0), (2, 5), (10, 20)][random.below(4) as usize];
        Promises { sectors, under_way: Vec::new(), version: 0, flushes, forced, given: 0 }
    }

    pub(crate) fn draw(&mut self, random: &mut Random) -> Step {
        let chosen = random.below(100);
        if chosen < self.flushes {
            return Step::Flush(self.sectors.iter().map(|sector| sector.acknowledged).collect());
        }
        let count = self.sectors.len() as u64;
        let sectors = loop {
            let longest = [1, 16, LONGEST][random.below(3) as usize];
            let len = 1 + random.below(longest);
            let start = random.below(count - len);
            // Most requests are of whole blocks.
            let align = if random.below(4) == 0 { 1 } else { 8 };
            let sectors = start / align * align..(start + len).next_multiple_of(align).min(count);
            let overlaps =
                |other: &Range<u64>| other.start < sectors.end && sectors.start < other.end;
            if !self.under_way.iter().any(overlaps) {
                break sectors;
            }
        };
        self.version += 1;
        let (version, is_zero) = (self.version, chosen >= 85);
        let fua = random.below(100) < if is_zero { 50 } else { self.forced };
        for sector in &mut self.sectors[sectors.start as usize..sectors.end as usize] {
            sector.issued.push((version, is_zero));
        }
        self.under_way.push(sectors.clone());
        match is_zero {
            true => Step::Zeroes { sectors, version, fua },
            false => Step::Write { sectors, version, fua },
        }
    }

    /// Takes in that a step was answered, well.
    pub(crate) fn answered(&mut self, step: Step) {
        match step {
            Step::Flush(acknowledged) => {
                for (sector, version) in self.sectors.iter_mut().zip(acknowledged) {
                    sector.promise(version);
                }
                self.given += 1;
            }
            Step::Write { sectors, version, fua } | Step::Zeroes { sectors, version, fua } => {
                self.under_way.retain(|other| *other != sectors);
                for sector in &mut self.sectors[sectors.start as usize..sectors.end as usize] {
                    sector.acknowledged = version;
                    if fua {
                        sector.promise(version);
                    }
                }
                self.given += u64::from(fua);
            }
        }
    }

    /// Compares what a volume holds from its beginning on with what may be there. With `only_promised`, sectors
    /// with a write that was not promised may hold anything.
    #[track_caller]
    pub(crate) fn check(&self, found: &[u8], only_promised: bool) {
        let sectors = self.sectors.iter().zip(found.chunks(SECTOR as usize)).enumerate();
        let sectors = sectors.filter(|(_, (sector, _))| !only_promised || sector.issued.len() == 1);
        let wrong: Vec<(u64, u64, u64, &[u8])> = sectors
            .filter(|(index, (sector, found))| {
                !sector.issued.iter().any(|&(version, is_zero)| match is_zero {
                    true => found.iter().all(|byte| *byte == 0),
                    false => *found == contents(*index as u64, version),
                })
            })
            .map(|(index, (sector, found))| {
                let version = u64::from_le_bytes(found[..8].try_into().expect("eight bytes"));
                (index as u64, sector.promised, version, &found[..16])
            })
            .collect();
        let Some((index, promised, version, bytes)) = wrong.first() else { return };
        panic!(
            "{} sectors are lost: sector {index}, of which version {promised} was promised, holds what begins as \
             version {version}: {bytes:?}; all: {:?}",
            wrong.len(),
            wrong.iter().map(|(index, ..)| index).collect::<Vec<_>>()
        );
    }
}

impl Sector {
    fn promise(&mut self, version: u64) {
        self.promised = self.promised.max(version);
        let promised = self.promised;
        self.issued.retain(|(version, _)| *version >= promised);
    }
}

/// A sector of some version: the version, then bytes that tell sector and version.
fn contents(sector: u64, version: u64) -> Vec<u8> {
    let mut bytes = pattern(version << 32, sector * SECTOR, SECTOR);
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// The bytes of a write.
pub(crate) fn bytes_of(sectors: &Range<u64>, version: u64) -> Vec<u8> {
    sectors.clone().flat_map(|sector| contents(sector, version)).collect()
}
