//! The evidence of all members: which windows are read, and in which order.
//!
//! ```text
//!   member   ├─head─┤    ├─┤    ├─┤    ├─┤    ├─tail─┤      a small member is read whole
//!   pass 1   anchors: which structures there are
//!   pass 2   facts:   where their tables, chunks and extents are
//!   pass 3   clues:   blocks that say where they belong
//! ```
//!
//! Invariants: at most as many bytes of a member are looked at as the caller says; members are read beside each other; the result does not
//! depend on the number of threads.

use std::ops::Range;
use std::thread;

use crate::evidence::{self, Found, Known};
use crate::{Clue, Examined, Patient, Question, Rows};

/// Bytes of a member that are looked at for an answer of its own.
pub const ALL: u64 = 1536 << 20;
/// Bytes of a member that are looked at to confirm another answer.
pub const QUICK: u64 = 192 << 20;
/// The share of them, as a divisor, that is read from the start of a large member: superblocks, tables and the first
/// files lie there.
const HEAD: u64 = 6;
/// Bytes that are read in one go.
const WINDOW: u64 = 16 << 20;
/// Blocks are looked for at multiples of it.
const UNIT: u64 = 4096;
/// Bytes that a window shares with the next: the longest block that says where it belongs.
const OVERLAP: u64 = 64 << 10;

/// A member, and its ranges that must not be believed.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The member.
    pub patient: &'a Patient,
    /// Ranges without content, in order: what could not be read of an image.
    pub holes: &'a [Range<u64>],
}

impl<'a> Source<'a> {
    /// A member that was examined.
    #[must_use]
    pub fn of(examined: &'a Examined) -> Source<'a> {
        Source { patient: &examined.patient, holes: &examined.holes }
    }
}

/// The evidence of the members.
#[derive(Debug)]
pub struct Gathered {
    /// The structures that were found.
    pub known: Vec<Known>,
    /// The question for the solver. Its anchors are those of `known`, in the same order.
    pub question: Question,
}

/// Gathers the evidence of all members, of which `most` bytes each are read: [`ALL`] or [`QUICK`].
#[must_use]
pub fn gather(sources: &[Source<'_>], most: u64) -> Gathered {
    let mut known = Vec::new();
    for found in of_each(sources, |source| {
        windows_of(source, most, |bytes, at| {
            evidence::anchors(bytes, at).into_iter().map(|(_, one)| one)
        })
    }) {
        evidence::gather(&mut known, found);
    }
    // One member after the other: what is learned of one contradicts what another says, or agrees with it.
    for source in sources {
        windows_of(source, most, |bytes, _| {
            evidence::learn(bytes, &mut known);
            None::<()>
        });
    }
    let mut found: Vec<Vec<Found>> = of_each(sources, |source| {
        let mut found = windows_of(source, most, |bytes, at| evidence::clues(bytes, at, &known));
        found.sort_unstable();
        found.dedup_by_key(|one| (one.anchor, one.at, one.place));
        evidence::settle(&mut found);
        found
    });
    evidence::choose(&mut found);
    let clue = |member: usize, found: &Found| Clue {
        member,
        at: found.at,
        anchor: found.anchor,
        place: found.place,
        length: found.length,
    };
    let question = Question {
        sizes: sources.iter().map(|source| source.patient.size()).collect(),
        anchors: known.iter().map(Known::anchor).collect(),
        clues: found
            .iter()
            .enumerate()
            .flat_map(|(member, found)| found.iter().map(move |one| clue(member, one)))
            .filter(|clue| !is_of_member(clue, &known[clue.anchor], sources[clue.member].patient))
            .collect(),
        holes: sources.iter().map(|source| source.holes.to_vec()).collect(),
        scanned: sources.iter().map(|source| windows(source.patient.size(), most)).collect(),
        ..Question::default()
    };
    Gathered { known, question }
}

/// True for a partition table of the member itself, which says nothing of an array: it lies in its own place, and is
/// as large as the member.
fn is_of_member(clue: &Clue, known: &Known, member: &Patient) -> bool {
    let is_table = matches!(known, Known::Gpt(_));
    is_table && clue.at == clue.place && known.anchor().size == Some(member.size())
}

/// The windows of a member of `size` bytes, at most `most` bytes together: offset and length.
fn windows(size: u64, most: u64) -> Vec<(u64, u64)> {
    let pieces = |from: u64, to: u64| {
        let starts = (from..to).step_by(usize::try_from(WINDOW).expect("a window is some MiB"));
        starts.map(move |at| (at, WINDOW.min(to - at)))
    };
    if size <= most {
        return pieces(0, size).collect();
    }
    let head = most / HEAD / WINDOW * WINDOW;
    let spread = (most - head) / WINDOW - 1;
    let between = size - head - WINDOW;
    let middle = (1..=spread).map(|index| {
        let at = head
            + u64::try_from(u128::from(between) * u128::from(index) / u128::from(spread + 1))
                .expect("it is below the size");
        (at / UNIT * UNIT, WINDOW)
    });
    let tail = (size - WINDOW) / UNIT * UNIT;
    pieces(0, head).chain(middle).chain([(tail, size - tail)]).collect()
}

/// Calls `look` with each window of a member, and collects its answers.
fn windows_of<T, I: IntoIterator<Item = T>>(
    source: &Source<'_>,
    most: u64,
    mut look: impl FnMut(&[u8], u64) -> I,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut bytes = Vec::new();
    let size = source.patient.size();
    for (at, length) in windows(size, most) {
        let length = (length + OVERLAP).min(size - at);
        bytes.resize(usize::try_from(length).expect("a window is some MiB"), 0);
        source.patient.read_around(at, &mut bytes, &mut Vec::new());
        let behind = source.holes.partition_point(|hole| hole.end <= at);
        for hole in source.holes[behind..].iter().take_while(|hole| hole.start < at + length) {
            let within = |byte: u64| {
                usize::try_from(byte.clamp(at, at + length) - at).expect("a window is some MiB")
            };
            bytes[within(hole.start)..within(hole.end)].fill(0);
        }
        found.extend(look(&bytes, at));
    }
    found
}

/// Asks `work` of each member, in as many threads as there are processors.
fn of_each<T: Send>(sources: &[Source<'_>], work: impl Fn(&Source<'_>) -> T + Sync) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(sources.len().max(1));
    let work = &work;
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let one = |first: usize| {
            scope.spawn(move || {
                let mine = sources.iter().enumerate().skip(first).step_by(threads);
                mine.map(|(index, source)| (index, work(source))).collect::<Vec<_>>()
            })
        };
        let running: Vec<_> = (0..threads).map(one).collect();
        running
            .into_iter()
            .flat_map(|one| one.join().expect("a thread that does not panic"))
            .collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, found)| found).collect()
}

impl Rows for [Source<'_>] {
    fn read(&self, member: usize, at: u64, length: usize) -> Option<Vec<u8>> {
        let source = self.get(member)?;
        let end = at.checked_add(length as u64)?;
        let behind = source.holes.partition_point(|hole| hole.end <= at);
        if source.holes.get(behind).is_some_and(|hole| hole.start < end) {
            return None;
        }
        let mut bytes = vec![0; length];
        source.patient.read(at, &mut bytes).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_large_members_reach_their_end() {
        let sizes = [4096, WINDOW + 5, ALL, ALL + 1, 4 << 40, 100 << 40];
        for (size, most) in sizes.iter().flat_map(|size| [(*size, ALL), (*size, QUICK)]) {
            let windows = windows(size, most);
            let read: u64 = windows.iter().map(|(_, length)| length).sum();
            assert!(read <= most + UNIT && read >= size.min(most - 2 * WINDOW), "{size}: {read}");
            assert_eq!(windows.last().map(|(at, length)| at + length), Some(size));
            assert!(windows.iter().all(|(at, _)| at % UNIT == 0), "{size}");
            assert!(windows.windows(2).all(|two| two[0].0 < two[1].0), "{size}");
        }
    }
}
