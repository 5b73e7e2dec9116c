//! Places of the bytes of a volume on arrays.
//!
//! ```text
//!   volume   ├────── slice of array 0 ──────┼── slice of array 1 ──┤      linear(slice(…), slice(…))
//! ```

use std::ops::Range;

use braid_stack::{ByteSize, MAX_MEMBERS};

use crate::assemble::{Ranges, inside, joined};

/// A part of one array or of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The array with this index, which has this many bytes.
    Array(usize, u64),
    /// `length` bytes of another place from `start` on, which is no slice itself.
    Slice {
        /// The other place.
        of: Box<Place>,
        /// The first byte.
        start: u64,
        /// The number of bytes.
        length: u64,
    },
    /// Places one after another.
    Linear(Vec<Place>),
    /// Chunks in turn from places of one size.
    Striped {
        /// Bytes of a chunk; not zero.
        chunk: u64,
        /// The places.
        of: Vec<Place>,
    },
}

impl Place {
    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Place::Array(_, size) => *size,
            Place::Slice { length, .. } => *length,
            Place::Linear(parts) | Place::Striped { of: parts, .. } => {
                parts.iter().map(Place::size).sum()
            }
        }
    }

    /// Returns the part of `length` bytes from `start` on; `None` if there are not as many.
    #[must_use]
    pub fn part(&self, start: u64, length: u64) -> Option<Place> {
        let end = start.checked_add(length)?;
        if end > self.size() || length == 0 {
            return None;
        }
        Some(match self {
            _ if length == self.size() => self.clone(),
            Place::Slice { of, start: first, .. } => {
                Place::Slice { of: of.clone(), start: first + start, length }
            }
            _ => Place::Slice { of: Box::new(self.clone()), start, length },
        })
    }

    /// Returns places one after another, neighbours in one place as one.
    #[must_use]
    pub fn linear(parts: Vec<Place>) -> Place {
        let mut joined: Vec<Place> = Vec::new();
        for part in parts {
            if let (
                Some(Place::Slice { of: last, start: from, length: so_far }),
                Place::Slice { of, start, length },
            ) = (joined.last_mut(), &part)
                && last == of
                && *from + *so_far == *start
            {
                *so_far += length;
                continue;
            }
            joined.push(part);
        }
        match joined.len() {
            1 => joined.remove(0),
            _ => Place::Linear(joined),
        }
    }

    /// Returns the array and its byte for a byte of the place, and the number of bytes that follow each other there.
    pub(super) fn locate(&self, at: u64) -> Option<(usize, u64, u64)> {
        match self {
            Place::Array(index, size) => Some((*index, at, size.checked_sub(at)?)),
            Place::Slice { of, start, length } => {
                let left = length.checked_sub(at)?;
                let (index, at, run) = of.locate(start + at)?;
                Some((index, at, run.min(left)))
            }
            Place::Linear(parts) => {
                let mut at = at;
                for part in parts {
                    match at.checked_sub(part.size()) {
                        None => return part.locate(at),
                        Some(left) => at = left,
                    }
                }
                None
            }
            Place::Striped { chunk, of } => {
                let (index, within, count) = (at / chunk, at % chunk, of.len() as u64);
                let part = &of[(index % count) as usize];
                let (index, at, run) = part.locate(index / count * chunk + within)?;
                Some((index, at, run.min(chunk - within)))
            }
        }
    }

    /// Returns the bytes of the place that lie on these bytes of an array.
    #[must_use]
    pub fn on_array(&self, array: usize, ranges: &Ranges) -> Ranges {
        match self {
            Place::Array(index, size) if *index == array => inside(ranges, &(0..*size)),
            Place::Array(..) => Vec::new(),
            Place::Slice { of, start, length } => {
                let found = inside(&of.on_array(array, ranges), &(*start..start + length));
                found.into_iter().map(|range| range.start - start..range.end - start).collect()
            }
            Place::Linear(parts) => {
                let mut found = Vec::new();
                let mut at = 0;
                for part in parts {
                    let of = part.on_array(array, ranges).into_iter();
                    found.extend(of.map(|range| range.start + at..range.end + at));
                    at += part.size();
                }
                joined(found)
            }
            Place::Striped { chunk, of } => {
                let count = of.len() as u64;
                let mut found = Vec::new();
                for (column, part) in (0..).zip(of) {
                    for range in part.on_array(array, ranges) {
                        found.extend(in_chunks(&range, *chunk).map(|piece| {
                            let start = (piece.start / chunk * count + column) * chunk;
                            let start = start + piece.start % chunk;
                            start..start + (piece.end - piece.start)
                        }));
                    }
                }
                joined(found)
            }
        }
    }

    /// The indices of the arrays on which it lies, in order.
    #[must_use]
    pub fn arrays(&self) -> Vec<usize> {
        let mut found = match self {
            Place::Array(index, _) => vec![*index],
            Place::Slice { of, .. } => of.arrays(),
            Place::Linear(parts) | Place::Striped { of: parts, .. } => {
                parts.iter().flat_map(Place::arrays).collect()
            }
        };
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the stack expression that reads it, where `arrays` are those of the arrays.
    #[must_use]
    pub fn expression(&self, arrays: &[String]) -> String {
        let list = |parts: &[Place]| {
            let texts = parts.iter().map(|part| part.expression(arrays));
            texts.collect::<Vec<_>>()
        };
        match self {
            Place::Array(index, _) => arrays[*index].clone(),
            Place::Slice { of, start, length } => {
                let (of, start, length) =
                    (of.expression(arrays), ByteSize(*start), ByteSize(*length));
                format!("slice({of}, offset={start}, length={length})")
            }
            Place::Linear(parts) => {
                let mut texts = list(parts);
                while texts.len() > 1 {
                    let of = |texts: &[String]| format!("linear({})", texts.join(", "));
                    texts = texts.chunks(MAX_MEMBERS).map(of).collect();
                }
                texts.concat()
            }
            Place::Striped { chunk, of } => {
                format!("raid0(chunk={}, {})", ByteSize(*chunk), list(of).join(", "))
            }
        }
    }
}

/// The parts of a range that lie in one chunk each.
fn in_chunks(range: &Range<u64>, chunk: u64) -> impl Iterator<Item = Range<u64>> {
    let (mut at, end) = (range.start, range.end);
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let piece = at..end.min((at / chunk + 1) * chunk);
            at = piece.end;
            piece
        })
    })
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "these are ranges of bytes")]
mod tests {
    use super::*;

    const CHUNK: u64 = 4096;

    fn slice(array: usize, start: u64, length: u64) -> Place {
        Place::Array(array, 100 * CHUNK).part(start, length).expect("it is inside")
    }

    /// Two stripes of three chunks, then two chunks of the second array.
    fn mixed() -> Place {
        let of = [(0, 8), (1, 0), (0, 20)]
            .map(|(array, chunk)| slice(array, chunk * CHUNK, 2 * CHUNK))
            .to_vec();
        let striped = Place::Striped { chunk: CHUNK, of };
        Place::linear(vec![striped, slice(1, 50 * CHUNK, CHUNK), slice(1, 51 * CHUNK, CHUNK)])
    }

    #[test]
    fn every_byte_is_found_and_found_again() {
        let place = mixed();
        assert_eq!(place.size(), 8 * CHUNK);
        assert_eq!(place.arrays(), [0, 1]);
        for at in (0..place.size()).step_by(512) {
            let (array, offset, run) = place.locate(at).expect("it is inside");
            assert!((512..=2 * CHUNK).contains(&run));
            let range = offset..offset + 512;
            assert_eq!(place.on_array(array, &vec![range]), [at..at + 512]);
        }
        assert_eq!(place.locate(place.size()), None);
        assert_eq!(place.locate(CHUNK).map(|found| (found.0, found.1)), Some((1, 0)));
        let part = place.part(5 * CHUNK, 2 * CHUNK).expect("it is inside");
        assert_eq!(part.on_array(1, &vec![0..100 * CHUNK]), [CHUNK..2 * CHUNK]);
        assert_eq!(part.part(0, 3 * CHUNK), None);
    }

    #[test]
    fn the_expression_is_one_that_is_read() {
        let text = mixed().expression(&["a.img".to_owned(), "b.img".to_owned()]);
        let expected = "linear(raid0(chunk=4K, slice(a.img, offset=32K, length=8K), \
                        slice(b.img, offset=0, length=8K), slice(a.img, offset=80K, length=8K)), \
                        slice(b.img, offset=200K, length=8K))";
        assert_eq!(text, expected);
        braid_stack::Stack::parse_to_read(&text).expect("an expression");
        let many = Place::Linear((0..1000).map(|at| slice(0, at % 2 * CHUNK, CHUNK)).collect());
        braid_stack::Stack::parse_to_read(&many.expression(&["a.img".to_owned()]))
            .expect("no level has too many members");
    }
}
