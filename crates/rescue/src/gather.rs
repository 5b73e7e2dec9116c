//! The evidence of all members: which windows are read, and in which order.
//!
//! ```text
//!   member    ├─head─┤    ├─┤    ├─┤    ├─┤    ├─tail─┤      a small member is read whole
//!   anchors   which structures there are
//!   facts     where their tables, chunks and extents are
//!   facts           ┆ ├┤┆ ├┤ ├┤  ┆ ├┤ ┆                      windows where those must lie, on a large member
//!   clues     blocks that say where they belong, in all of these windows
//! ```
//!
//! The blocks of a large file system that say where they belong are few, and lie together: one window in sixty of an ext4 of
//! some terabytes has any. A structure of S bytes over members of M bytes has its byte V near byte V × M / S of a member,
//! whatever the level, the chunk and the order; so its own facts tell where to look.
//!
//! Invariants: no more bytes of a member are read, all passes together, than a [`Budget`] says; members are read beside each
//! other; the result does not depend on the number of threads.

use std::ops::Range;
use std::thread;

use crate::evidence::{self, Found, Known};
use crate::{Clue, Examined, Patient, Question, Rows};

/// Bytes of a member that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// From its start to its end. They are read three times.
    even: u64,
    /// At the metadata of structures that were found. They are read twice.
    aimed: u64,
}

/// For an answer of its own: 1.5 GiB are read.
pub const ALL: Budget = Budget { even: 304 << 20, aimed: 304 << 20 };
/// To confirm another answer.
pub const QUICK: Budget = Budget { even: 192 << 20, aimed: 0 };
/// The share of them, as a divisor, that is read from the start of a large member: superblocks, tables and the first
/// files lie there.
const HEAD: u64 = 6;
/// Bytes that are read in one go.
const WINDOW: u64 = 16 << 20;
/// Blocks are looked for at multiples of it.
const UNIT: u64 = 4096;
/// Bytes of a window where metadata must lie, of which a part is before that place: the geometry is not known yet.
const AIMED: u64 = 3 << 20;
const BEFORE: u64 = 1 << 20;
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

/// Gathers the evidence of all members, of which as many bytes each are read as `budget` says: [`ALL`] or [`QUICK`].
#[must_use]
pub fn gather(sources: &[Source<'_>], budget: Budget) -> Gathered {
    let sizes: Vec<u64> = sources.iter().map(|source| source.patient.size()).collect();
    let mut scanned: Vec<Windows> = sizes.iter().map(|size| windows(*size, budget.even)).collect();
    let seen =
        of_each(sources, |member, source| windows_of(source, &scanned[member], evidence::anchors));
    let mut known = Vec::new();
    evidence::gather(&mut known, seen.iter().flatten().map(|(_, one)| one.clone()));
    learn(sources, &scanned, &mut known);
    let longest = sizes.iter().copied().max().unwrap_or(0);
    if budget.aimed > 0 && longest > budget.even {
        let places = metadata(&known, &seen, longest, budget.aimed);
        let aimed: Vec<Windows> =
            sizes.iter().zip(&scanned).map(|(size, even)| between(&places, *size, even)).collect();
        learn(sources, &aimed, &mut known);
        for (scanned, aimed) in scanned.iter_mut().zip(aimed) {
            scanned.extend(aimed);
            scanned.sort_unstable();
        }
    }
    let mut found: Vec<Vec<Found>> = of_each(sources, |member, source| {
        let mut found =
            windows_of(source, &scanned[member], |bytes, at| evidence::clues(bytes, at, &known));
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
        sizes,
        anchors: known.iter().map(Known::anchor).collect(),
        clues: found
            .iter()
            .enumerate()
            .flat_map(|(member, found)| found.iter().map(move |one| clue(member, one)))
            .filter(|clue| !is_of_member(clue, &known[clue.anchor], sources[clue.member].patient))
            .collect(),
        holes: sources.iter().map(|source| source.holes.to_vec()).collect(),
        scanned,
        ..Question::default()
    };
    Gathered { known, question }
}

/// Learns from one member after the other: what is learned of one contradicts what another says, or agrees with it.
fn learn(sources: &[Source<'_>], windows: &[Windows], known: &mut [Known]) {
    for (source, windows) in sources.iter().zip(windows) {
        windows_of(source, windows, |bytes, _| {
            evidence::learn(bytes, known);
            None::<()>
        });
    }
}

/// The places on members of `size` bytes at which the metadata of `known` must be, as far as there is room for windows of
/// [`AIMED`] bytes in `most` bytes, evenly chosen, in order. `seen` has for each member where structures lie.
fn metadata(known: &[Known], seen: &[Vec<(u64, Known)>], size: u64, most: u64) -> Vec<u64> {
    let of_each: Vec<Vec<Range<u64>>> = known
        .iter()
        .filter_map(|one| {
            let first = seen.iter().flatten().filter(|(_, other)| other.is_same(one));
            let (at, copy) = first.min_by_key(|(at, _)| *at)?;
            // How many times as long as a member it is.
            let times = one.anchor().size?.div_ceil(size).max(1);
            let start = at.checked_sub(copy.place_of_copy() / times)?;
            let on_member = |place: u64| start.saturating_add(place / times);
            let ranges = one.landmarks().into_iter();
            let ranges =
                ranges.map(|range| on_member(range.start)..on_member(range.end).saturating_add(1));
            Some(ranges.collect::<Vec<_>>()).filter(|ranges| !ranges.is_empty())
        })
        .collect();
    let share = most / AIMED / (of_each.len() as u64).max(1);
    let mut chosen: Vec<u64> = of_each.iter().flat_map(|ranges| spread(ranges, share)).collect();
    chosen.sort_unstable();
    chosen
}

/// At most `most` starts of windows that lie evenly in `ranges`.
fn spread(ranges: &[Range<u64>], most: u64) -> Vec<u64> {
    const STEP: u64 = AIMED - BEFORE;
    let count = |range: &Range<u64>| (range.end - range.start).div_ceil(STEP);
    let all = ranges.iter().map(count).fold(0, u64::saturating_add);
    let most = most.min(all);
    let (mut chosen, mut before) = (Vec::new(), 0_u64);
    for range in ranges {
        let behind = before.saturating_add(count(range));
        // The next of `most` numbers, of windows in all ranges.
        let number = |index: u64| (u128::from(index) * u128::from(all) / u128::from(most)) as u64;
        while (chosen.len() as u64) < most && number(chosen.len() as u64) < behind {
            chosen.push(range.start + (number(chosen.len() as u64) - before) * STEP);
        }
        before = behind;
    }
    chosen
}

/// The windows around `places`, without what the windows `even` have, on a member of `size` bytes.
fn between(places: &[u64], size: u64, even: &[(u64, u64)]) -> Windows {
    let mut windows = Windows::new();
    let mut from = 0;
    for place in places {
        let start = place.saturating_sub(BEFORE).max(from) / UNIT * UNIT;
        let end = (place.saturating_sub(BEFORE) + AIMED).min(size);
        let next = even.partition_point(|(at, length)| at + length <= start);
        let (start, end) = match even.get(next) {
            Some((at, length)) if *at <= start => (at + length, end),
            Some((at, _)) => (start, end.min(*at)),
            None => (start, end),
        };
        if start < end {
            windows.push((start, end - start));
            from = end;
        }
    }
    windows
}

/// True for a partition table of the member itself, which says nothing of an array: it lies in its own place, and is
/// as large as the member.
fn is_of_member(clue: &Clue, known: &Known, member: &Patient) -> bool {
    let is_table = matches!(known, Known::Gpt(_));
    is_table && clue.at == clue.place && known.anchor().size == Some(member.size())
}

/// Windows of a member: offset and length.
type Windows = Vec<(u64, u64)>;

/// The windows of a member of `size` bytes, at most `most` bytes together.
fn windows(size: u64, most: u64) -> Windows {
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
    windows: &[(u64, u64)],
    mut look: impl FnMut(&[u8], u64) -> I,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut bytes = Vec::new();
    let size = source.patient.size();
    for &(at, length) in windows {
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
fn of_each<T: Send>(
    sources: &[Source<'_>],
    work: impl Fn(usize, &Source<'_>) -> T + Sync,
) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(sources.len().max(1));
    let work = &work;
    let mut done: Vec<(usize, T)> = thread::scope(|scope| {
        let one = |first: usize| {
            scope.spawn(move || {
                let mine = sources.iter().enumerate().skip(first).step_by(threads);
                mine.map(|(index, source)| (index, work(index, source))).collect::<Vec<_>>()
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
    fn windows_at_metadata_lie_between_the_others_and_keep_to_the_budget() {
        const GIB: u64 = 1 << 30;
        for size in [ALL.even + 1, 2 * GIB, 40 * GIB, 100 << 40] {
            let even = windows(size, ALL.even);
            let ranges = [0..5, 7 * GIB..7 * GIB + 1, GIB..3 * GIB, size - 1..u64::MAX];
            let mut places = spread(&ranges, ALL.aimed / AIMED);
            assert!(places.iter().all(|place| ranges.iter().any(|range| range.contains(place))));
            places.sort_unstable();
            let aimed = between(&places, size, &even);
            let ends_before = |one: &(u64, u64), next: &(u64, u64)| one.0 + one.1 <= next.0;
            assert!(aimed.windows(2).all(|two| ends_before(&two[0], &two[1])), "{size}");
            let is_apart =
                |one| even.iter().all(|other| ends_before(one, other) || ends_before(other, one));
            assert!(aimed.iter().all(is_apart), "{size}");
            assert!(aimed.iter().all(|(at, length)| at + length <= size && *length > 0), "{size}");
            assert!(aimed.iter().map(|(_, length)| length).sum::<u64>() <= ALL.aimed, "{size}");
        }
        // Few and short ranges have one window each; long ones share what there is.
        assert_eq!(spread(&[0..1, GIB..GIB + 2, 5 * GIB..5 * GIB + 3], 100), [0, GIB, 5 * GIB]);
        assert_eq!(spread(&[0..GIB, 0..0], 2), [0, GIB / 2]);
        assert_eq!(spread(&[], 10), [0; 0]);
    }

    #[test]
    fn windows_of_large_members_reach_their_end() {
        let sizes = [4096, WINDOW + 5, ALL.even, ALL.even + 1, 4 << 40, 100 << 40];
        let budgets = [ALL.even, QUICK.even];
        for (size, most) in sizes.iter().flat_map(|size| budgets.map(|most| (*size, most))) {
            let windows = windows(size, most);
            let read: u64 = windows.iter().map(|(_, length)| length).sum();
            assert!(read <= most + UNIT && read >= size.min(most - 2 * WINDOW), "{size}: {read}");
            assert_eq!(windows.last().map(|(at, length)| at + length), Some(size));
            assert!(windows.iter().all(|(at, _)| at % UNIT == 0), "{size}");
            assert!(windows.windows(2).all(|two| two[0].0 < two[1].0), "{size}");
        }
    }
}
