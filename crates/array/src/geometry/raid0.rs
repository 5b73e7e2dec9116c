//! RAID 0: chunks dealt to the members in turn; over unequal members, in zones.
//!
//! ```text
//!            member 0   member 1   member 2        (sizes: 2, 4, 3 chunks)
//! zone 0   |    0     |    1     |    2     |      all three, up to the end of the smallest
//!          |    3     |    4     |    5     |
//! zone 1              |    6     |    7     |      the two that have more
//! zone 2              |    8     |                 the one that has still more
//! ```
//!
//! md has two layouts for zones after the first. *Alternate* (above) starts each zone at its
//! first member. *Original* continues to count chunks from the start of the array: chunk `c`
//! lies on member `c mod (members of the zone)` of its zone, so a zone's rows may be rotated.
//! With equal members there is one zone and the two are the same. An array whose layout was not
//! recorded cannot be told apart by looking at it, which is why md records it since Linux 5.4.
//!
//! Source: Linux `drivers/md/raid0.c` (`create_strip_zones`, `find_zone`, `map_sector`).

use braid_level::{Level, Raid0Layout};

use super::{Geometry, GeometryError, Run, usable_sizes};
use crate::{ArrayByte, MemberByte, Role};

/// Chunks dealt to the members in turn.
#[derive(Clone, Debug)]
pub struct Raid0 {
    chunk: u64,
    layout: Raid0Layout,
    members: usize,
    zones: Vec<Zone>,
}

#[derive(Clone, Debug)]
struct Zone {
    /// First byte of the zone in the array, and the first behind it.
    start: u64,
    end: u64,
    /// First byte of the zone on each of its members.
    member_start: u64,
    /// The members that reach into the zone, in the order given.
    members: Vec<Role>,
}

impl Raid0 {
    /// `sizes` are the members' in bytes, of which whole chunks of `chunk` bytes are used;
    /// `block` is their largest logical block, in bytes.
    ///
    /// # Errors
    /// A chunk that [`Level::refuses_chunk`] or that is no multiple of `block`; no member, too many, or
    /// one smaller than a chunk.
    pub fn new(
        sizes: &[u64],
        chunk: u64,
        layout: Raid0Layout,
        block: u32,
    ) -> Result<Raid0, GeometryError> {
        if let Some(needs) = Level::Raid0.refuses_chunk(chunk) {
            return Err(GeometryError::Chunk { level: Level::Raid0, chunk, needs });
        }
        if !chunk.is_multiple_of(block.into()) {
            return Err(GeometryError::PartOfBlock { chunk, block });
        }
        let sizes = usable_sizes(sizes, chunk)?;
        Ok(Raid0 { chunk, layout, members: sizes.len(), zones: zones(&sizes) })
    }

    /// Chunk size in bytes.
    pub fn chunk(&self) -> u64 {
        self.chunk
    }

    #[inline]
    fn zone_of(&self, offset: u64) -> &Zone {
        // Nearly every array has one zone; nearly all of any array lies in its first.
        let first = &self.zones[0];
        if offset < first.end {
            return first;
        }
        &self.zones[self.zones.partition_point(|zone| zone.end <= offset)]
    }
}

/// One zone for each distinct size, from the smallest up.
fn zones(sizes: &[u64]) -> Vec<Zone> {
    let mut heights = sizes.to_vec();
    heights.sort_unstable();
    heights.dedup();
    let mut start = 0;
    let mut member_start = 0;
    heights
        .into_iter()
        .map(|height| {
            let members: Vec<Role> = Role::all(sizes.len())
                .zip(sizes)
                .filter(|&(_, &size)| size >= height)
                .map(|(member, _)| member)
                .collect();
            let end = start + (height - member_start) * members.len() as u64;
            let zone = Zone { start, end, member_start, members };
            start = end;
            member_start = height;
            zone
        })
        .collect()
}

impl Geometry for Raid0 {
    fn size(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.end)
    }

    fn members(&self) -> usize {
        self.members
    }

    #[inline]
    fn locate(&self, offset: ArrayByte) -> Run {
        let offset = offset.get();
        let zone = self.zone_of(offset);
        let width = zone.members.len() as u64;
        let in_zone = offset - zone.start;
        let chunk_in_zone = in_zone / self.chunk;
        let within = in_zone - chunk_in_zone * self.chunk;
        let row = chunk_in_zone / width;
        // A zone starts at a whole chunk of the array, so both layouts agree on `within`.
        let column = match self.layout {
            Raid0Layout::Alternate => chunk_in_zone - row * width,
            Raid0Layout::Original => (offset / self.chunk) % width,
        };
        Run {
            role: zone.members[column as usize],
            offset: MemberByte::new(zone.member_start + row * self.chunk + within),
            len: self.chunk - within,
        }
    }

    fn stripe(&self) -> u64 {
        self.chunk * self.zones[0].members.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1024;

    fn member_of_each_chunk(sizes: &[u64], layout: Raid0Layout) -> Vec<u16> {
        let chunk = 4 * K;
        let sizes: Vec<u64> = sizes.iter().map(|size| size * chunk).collect();
        let raid0 = Raid0::new(&sizes, chunk, layout, 512).unwrap();
        (0..raid0.size() / chunk)
            .map(|index| raid0.locate(ArrayByte::new(index * chunk)).role.get())
            .collect()
    }

    #[test]
    fn zones_are_dealt_as_the_picture_shows() {
        let members = member_of_each_chunk(&[2, 4, 3], Raid0Layout::Alternate);
        assert_eq!(members, [0, 1, 2, 0, 1, 2, 1, 2, 1]);
    }

    #[test]
    fn the_original_layout_counts_from_the_start_of_the_array() {
        // Zone 1 starts at chunk 3, which is odd: its rows begin with the second member.
        assert_eq!(member_of_each_chunk(&[1, 2, 2], Raid0Layout::Original), [0, 1, 2, 2, 1]);
        assert_eq!(member_of_each_chunk(&[1, 2, 2], Raid0Layout::Alternate), [0, 1, 2, 1, 2]);
    }

    #[test]
    fn chunks_need_not_be_powers_of_two() {
        let raid0 = Raid0::new(&[120 * K; 3], 12 * K, Raid0Layout::default(), 4096).unwrap();
        assert_eq!(raid0.size(), 360 * K);
        assert_eq!(raid0.stripe(), 36 * K);
        let run = raid0.locate(ArrayByte::new(37 * K));
        assert_eq!(run, Run { role: Role::new(0), offset: MemberByte::new(13 * K), len: 11 * K });
    }

    #[test]
    fn chunks_may_be_as_large_as_md_has_them() {
        for chunk in [512, 2 * K, 65 << 20, 512 << 30] {
            let raid0 = Raid0::new(&[chunk * 3; 2], chunk, Raid0Layout::default(), 512).unwrap();
            assert_eq!(raid0.locate(ArrayByte::new(chunk * 3)).role, Role::new(1));
        }
    }

    #[test]
    fn bad_chunks_are_refused_with_their_values() {
        for chunk in [0, 768, (512 << 30) + 512] {
            let error = Raid0::new(&[1 << 41; 2], chunk, Raid0Layout::default(), 512);
            let error = error.unwrap_err();
            assert!(matches!(error, GeometryError::Chunk { chunk: given, .. } if given == chunk));
        }
        let (chunk, block) = (6 * K, 4096);
        let error = Raid0::new(&[1 << 30; 2], chunk, Raid0Layout::default(), block);
        assert_eq!(error.unwrap_err(), GeometryError::PartOfBlock { chunk, block });
        let error = Raid0::new(&[1 << 20, 60 * K], 64 * K, Raid0Layout::default(), 512);
        assert_eq!(
            error.unwrap_err(),
            GeometryError::TooSmall { member: 1, size: 60 * K, least: 64 * K }
        );
    }
}
