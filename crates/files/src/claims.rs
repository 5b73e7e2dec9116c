//! The wanted ranges, and the owner of each piece of them.

use std::collections::BTreeSet;
use std::ops::Range;

/// The owner of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Contents of a file, directory or symbolic link.
    File {
        /// The number of its inode.
        inode: u64,
        /// Bytes from the beginning of the file.
        offset: u64,
        /// Allocated, and read as zeros: what is there does not matter.
        unwritten: bool,
    },
    /// Metadata of one file: its tree of extents, its attributes.
    OfFile {
        /// The number of its inode.
        inode: u64,
        /// In words.
        what: &'static str,
    },
    /// Metadata of the file system, in words.
    Metadata(&'static str),
    /// Not allocated.
    Free,
    /// Behind the end of the file system.
    Outside,
    /// Allocated to nothing that was found, or in damaged metadata.
    Unknown,
}

impl Owner {
    /// The inode, if a file is the owner.
    pub fn inode(&self) -> Option<u64> {
        match self {
            Owner::File { inode, .. } | Owner::OfFile { inode, .. } => Some(*inode),
            _ => None,
        }
    }

    /// The owner of what lies `bytes` further on.
    fn further(self, bytes: u64) -> Owner {
        match self {
            Owner::File { inode, offset, unwritten } => {
                Owner::File { inode, offset: offset.saturating_add(bytes), unwritten }
            }
            other => other,
        }
    }
}

/// Bytes that are owned as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes of the volume.
    pub range: Range<u64>,
    /// The owner.
    pub owner: Owner,
}

pub(crate) struct Claims {
    /// In order, apart from one another, none empty.
    wanted: Vec<Range<u64>>,
    pieces: Vec<Piece>,
    most: usize,
    /// Pieces were left out.
    is_cut: bool,
}

impl Claims {
    pub(crate) fn new(wanted: &[Range<u64>], most: usize) -> Claims {
        let wanted = merged(wanted);
        Claims { wanted, pieces: Vec::new(), most, is_cut: false }
    }

    /// Enters the owner of `range`, of which the wanted pieces are kept.
    pub(crate) fn claim(&mut self, range: Range<u64>, owner: Owner) {
        if range.is_empty() {
            return;
        }
        let first = self.wanted.partition_point(|wanted| wanted.end <= range.start);
        for wanted in self.wanted[first..].iter().take_while(|wanted| wanted.start < range.end) {
            let cut = wanted.start.max(range.start)..wanted.end.min(range.end);
            let piece = Piece { owner: owner.further(cut.start - range.start), range: cut };
            let has_room = self.pieces.len() < self.most;
            match self.pieces.last_mut() {
                Some(last) if goes_on(last, &piece) => last.range.end = piece.range.end,
                _ if has_room => self.pieces.push(piece),
                _ => {
                    self.is_cut = true;
                    return;
                }
            }
        }
    }

    /// The wanted bytes that no owner has claimed, in order.
    pub(crate) fn gaps(&mut self) -> Vec<Range<u64>> {
        self.pieces.sort_by_key(|piece| (piece.range.start, piece.owner));
        self.pieces.dedup();
        let mut gaps = Vec::new();
        let mut pieces = self.pieces.iter().peekable();
        for wanted in &self.wanted {
            let mut at = wanted.start;
            while let Some(piece) = pieces.next_if(|piece| piece.range.start < wanted.end) {
                if piece.range.start > at {
                    gaps.push(at..piece.range.start);
                }
                at = at.max(piece.range.end);
            }
            if at < wanted.end {
                gaps.push(at..wanted.end);
            }
        }
        gaps
    }

    /// The inodes that own something.
    pub(crate) fn inodes(&self) -> BTreeSet<u64> {
        self.pieces.iter().filter_map(|piece| piece.owner.inode()).collect()
    }

    /// Says that pieces were left out, if any were.
    pub(crate) fn note(&self) -> Option<String> {
        let most = self.most;
        let note =
            || format!("the ranges fall into more than {most} pieces: ask for shorter ranges");
        self.is_cut.then(note)
    }

    /// All pieces, in order.
    pub(crate) fn finish(mut self) -> Vec<Piece> {
        self.pieces.sort_by_key(|piece| (piece.range.start, piece.owner));
        let mut joined: Vec<Piece> = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces {
            match joined.last_mut() {
                Some(last) if goes_on(last, &piece) => last.range.end = piece.range.end,
                _ => joined.push(piece),
            }
        }
        joined
    }
}

/// The ranges in order, without empty ones; those that overlap or touch are one.
pub fn merged(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The parts of `range` that lie in `ranges`, which are merged.
pub fn parts_in<'r>(
    range: Range<u64>,
    ranges: &'r [Range<u64>],
) -> impl Iterator<Item = Range<u64>> + 'r {
    let first = ranges.partition_point(|one| one.end <= range.start);
    let inside = ranges[first..].iter().take_while(move |one| one.start < range.end);
    inside.map(move |one| one.start.max(range.start)..one.end.min(range.end))
}

/// True if `piece` follows `last` directly and has the same owner.
fn goes_on(last: &Piece, piece: &Piece) -> bool {
    last.range.end == piece.range.start
        && last.owner.further(last.range.end - last.range.start) == piece.owner
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Owner = Owner::File { inode: 12, offset: 1000, unwritten: false };

    #[test]
    fn claims_are_cut_to_what_is_wanted_and_joined() {
        let mut claims = Claims::new(&[50..60, 10..20, 15..30, 70..70], 10);
        claims.claim(0..12, Owner::Free);
        claims.claim(12..18, FILE);
        claims.claim(18..26, FILE.further(6));
        claims.claim(55..100, Owner::Free);
        assert_eq!(claims.gaps(), [26..30, 50..55]);
        let pieces = claims.finish();
        let of = |range: Range<u64>, owner| Piece { range, owner };
        assert_eq!(pieces, [of(10..12, Owner::Free), of(12..26, FILE), of(55..60, Owner::Free)]);
    }

    #[test]
    fn several_owners_are_told_and_too_many_pieces_are_noted() {
        let mut claims = Claims::new(&[0..50, 50..100], 2);
        claims.claim(0..60, FILE);
        claims.claim(20..40, Owner::OfFile { inode: 13, what: "tree" });
        claims.claim(80..90, Owner::Free);
        assert_eq!(claims.gaps().first(), Some(&(60..100)));
        assert!(claims.note().is_some_and(|note| note.contains("2 pieces")));
        assert_eq!(claims.inodes(), BTreeSet::from([12, 13]));
    }
}
