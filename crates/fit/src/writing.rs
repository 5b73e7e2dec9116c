//! The constants that writes determine for flash: its rate, pages, and the units that are rewritten as a whole.
//!
//! All writes go to *slots*: places so far apart that a unit begins at each. The number of slots that can be
//! appended to in turn, before each append costs a unit, is the number of open units. The cost of a write falls
//! with its length, and shows the length of a unit, because the unwritten rest of the unit is copied.

use crate::measured::Request;
use crate::robust::{Estimate, Sum, median, misfit, parts};
use crate::session::{Fault, SMALL, Session, run_of};

/// Slots, and how far apart they are: on small devices half as far.
const SLOTS: u64 = 24;
const STRIDE: u64 = 48 << 20;
/// The least device that can be measured by writing: any less, and slots would still be open when they are
/// written again.
pub(crate) const LEAST: u64 = SLOTS * STRIDE / 2;
/// Lengths of continuing writes in bytes, the longest first so that each begins at a multiple of itself.
const LENGTHS: [u64; 17] = [
    1 << 20,
    512 << 10,
    256 << 10,
    192 << 10,
    128 << 10,
    96 << 10,
    64 << 10,
    48 << 10,
    32 << 10,
    24 << 10,
    16 << 10,
    12 << 10,
    8 << 10,
    4 << 10,
    2 << 10,
    1 << 10,
    512,
];
const EACH: u64 = 3;
/// The length of an append, the number of turns, and the greatest number of slots.
const APPEND: u64 = 16 << 10;
const TURNS: u64 = 5;
const MOST_OPEN: usize = 16;
/// Lengths of the sweep, in KiB: those beyond a third of a slot are left out.
const SWEEP: [u64; 18] = [
    4, 16, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12_288,
    16_384,
];
/// Writes of each length that count.
const COUNTED: usize = 7;
/// The longest page that is looked for.
const MOST_PAGE: u64 = 64 << 10;

/// The results of the writes.
pub(crate) struct Writing {
    /// The cost of a write before its first byte, in nanoseconds; not a constant of a profile, which has one
    /// command cost for reads and writes.
    pub(crate) command: Estimate,
    /// Nanoseconds a byte.
    pub(crate) byte: Estimate,
    /// The same without commands.
    pub(crate) byte_alone: Estimate,
    /// Most bytes of a command, as reading said it or in whole pages.
    pub(crate) transfer_max: Option<u64>,
    /// The bytes that are programmed at once.
    pub(crate) page: u64,
    /// The units; `None` if no write costs more than its own bytes.
    pub(crate) units: Option<Units>,
    /// The time of a read that follows a write at once, in nanoseconds.
    pub(crate) read_after: Estimate,
}

/// The areas that are rewritten as a whole.
pub(crate) struct Units {
    pub(crate) bytes: u64,
    /// The next smaller and the next larger tested length, in bytes, between which it lies.
    pub(crate) between: (u64, u64),
    pub(crate) open: usize,
    /// Nanoseconds a byte that is copied.
    pub(crate) copy: Estimate,
}

/// The distance of slots, and their order.
struct Slots {
    stride: u64,
    order: Vec<u64>,
    next: usize,
}

impl Slots {
    fn new(session: &mut Session<'_>) -> Result<Slots, Fault> {
        if session.size < LEAST {
            let what = "experiments that write";
            return Err(Fault::TooSmall { size: session.size, least: LEAST, what });
        }
        let stride = if session.size >= SLOTS * STRIDE { STRIDE } else { STRIDE / 2 };
        let mut order: Vec<u64> = (0..SLOTS).collect();
        session.rng.shuffle(&mut order);
        Ok(Slots { stride, order, next: 0 })
    }

    /// The start of the next slot.
    fn next(&mut self) -> u64 {
        let slot = self.order[self.next % self.order.len()];
        self.next += 1;
        slot * self.stride
    }
}

/// Bytes that are written in all, at most; and requests that may cost a unit.
pub(crate) fn amount(repetitions: u64) -> (u64, u64) {
    let continuing = repetitions * EACH * LENGTHS.iter().sum::<u64>();
    let warm = (COUNTED + MOST_OPEN + 1) as u64;
    let sweep = warm * SWEEP.iter().map(|kib| kib << 10).sum::<u64>();
    (continuing + sweep, repetitions + warm * SWEEP.len() as u64)
}

pub(crate) fn write(
    session: &mut Session<'_>,
    transfer_max: Option<u64>,
    repetitions: usize,
) -> Result<Writing, Fault> {
    let mut slots = Slots::new(session)?;
    let most = transfer_max.unwrap_or(u64::MAX);
    let open = open_units(session, &mut slots)?;

    let lengths: Vec<u64> = LENGTHS.into_iter().filter(|bytes| *bytes >= session.block).collect();
    let mut runs: Vec<Vec<(u64, f64)>> = Vec::new();
    for _ in 0..repetitions {
        let mut at = slots.next();
        let mut requests = run_of(true, at, lengths[0], 1);
        at += lengths[0];
        for bytes in &lengths {
            requests.extend(run_of(true, at, *bytes, EACH));
            at += bytes * EACH;
        }
        let times = session.run("continuing writes", requests, 0)?;
        let each = times[1..].chunks(EACH as usize).map(median);
        runs.push(lengths.iter().copied().zip(each).collect());
    }
    let sums = |run: &[(u64, f64)], page, most| -> Vec<Sum<2>> {
        run.iter()
            .map(|(bytes, took)| Sum { of: effort(*bytes, most, page), took: *took })
            .collect()
    };
    let pooled: Vec<(u64, f64)> = (lengths.iter().enumerate())
        .map(|(index, bytes)| {
            (*bytes, median(&runs.iter().map(|run| run[index].1).collect::<Vec<_>>()))
        })
        .collect();
    let off = |(page, most): (u64, u64)| {
        let sums = sums(&pooled, page, most);
        misfit(&sums, &parts(&sums))
    };
    let pages = std::iter::successors(Some(session.block), |page| Some(page * 2));
    // Reads say the largest command up to a block or two, and a page more or less in each command of a long
    // write is much: the next whole page is tried as well.
    let whole_pages = |page: u64| {
        let near = (most.saturating_add(page / 2) / page).max(1).saturating_mul(page);
        [(page, most), (page, if near.abs_diff(most) <= 2 * SMALL { near } else { most })]
    };
    let (page, most) = pages
        .take_while(|page| *page <= MOST_PAGE.min(most))
        .flat_map(whole_pages)
        .min_by(|a, b| off(*a).total_cmp(&off(*b)))
        .unwrap_or((session.block, most));
    let found: Vec<[f64; 2]> = runs.iter().map(|run| parts(&sums(run, page, most))).collect();
    let estimate = |values: Vec<f64>| {
        Estimate::of(&values).ok_or(Fault::Nonsense("no repetition was made".to_owned()))
    };
    let command = estimate(found.iter().map(|found| found[0]).collect())?;
    let byte = estimate(found.iter().map(|found| found[1]).collect())?;
    let byte_alone =
        estimate(runs.iter().flatten().map(|(bytes, took)| took / *bytes as f64).collect())?;
    let known = |bytes: u64| {
        let [commands, pages] = effort(bytes, most, page);
        commands * command.value + pages * byte.value
    };
    let units = match open {
        Some(open) => units(session, &mut slots, open, page, known)?,
        None => None,
    };
    let read_after = read_after(session, &mut slots)?;
    let transfer_max = transfer_max.map(|_| most);
    Ok(Writing { command, byte, byte_alone, transfer_max, page, units, read_after })
}

/// Commands and bytes that are programmed for a write of `bytes`.
fn effort(bytes: u64, most: u64, page: u64) -> [f64; 2] {
    let whole = if bytes >= most { bytes / most * most.next_multiple_of(page) } else { 0 };
    let rest = if bytes >= most { bytes % most } else { bytes };
    [bytes.div_ceil(most) as f64, (whole + rest.next_multiple_of(page)) as f64]
}

/// The number of slots that can be appended to in turn; `None` if all tested numbers can.
fn open_units(session: &mut Session<'_>, slots: &mut Slots) -> Result<Option<usize>, Fault> {
    let mut alone = 0.0;
    for streams in 1..=MOST_OPEN {
        let places: Vec<u64> = (0..streams).map(|_| slots.next()).collect();
        let turn = |turn: u64| {
            places.iter().map(move |place| Request {
                write: true,
                offset: place + turn * APPEND,
                bytes: APPEND,
            })
        };
        let requests: Vec<Request> = (0..TURNS).flat_map(turn).collect();
        let times = session.run("writes to several places in turn", requests, 0)?;
        let took = median(&times[streams..]);
        if streams == 1 {
            alone = took;
        } else if took > 2.0 * alone {
            return Ok(Some(streams - 1));
        }
    }
    Ok(None)
}

/// The sweep: writes of growing length, each into a slot that is not open; `None` if that is no unit's cost.
fn units(
    session: &mut Session<'_>,
    slots: &mut Slots,
    open: usize,
    page: u64,
    known: impl Fn(u64) -> f64,
) -> Result<Option<Units>, Fault> {
    let mut seen: Vec<(u64, Vec<f64>)> = Vec::new();
    let longest = slots.stride / 3;
    for bytes in SWEEP.map(|kib| kib << 10).into_iter().filter(|bytes| *bytes <= longest) {
        // Those first close what other lengths left open.
        let requests = (0..open + 1 + COUNTED)
            .map(|_| Request { write: true, offset: slots.next(), bytes })
            .collect();
        let times = session.run("writes of growing length", requests, 0)?;
        seen.push((bytes, times[open + 1..].to_vec()));
    }
    let left = |unit: u64, bytes: u64| ((unit - bytes % unit) % unit) as f64;
    let sums = |unit: u64| -> Vec<Sum<2>> {
        let of = |bytes: u64| [known(bytes), left(unit, bytes)];
        seen.iter().map(|(bytes, took)| Sum { of: of(*bytes), took: median(took) }).collect()
    };
    let off = |unit: u64| {
        let sums = sums(unit);
        misfit(&sums, &parts(&sums))
    };
    // Powers of two and three times powers of two: all of them divide the distance of slots.
    let powers = (9..26).map(|power| 1u64 << power);
    let mut candidates: Vec<u64> = powers.flat_map(|power| [power, power / 2 * 3]).collect();
    candidates.retain(|unit| slots.stride.is_multiple_of(*unit) && unit.is_multiple_of(page));
    candidates.sort_unstable();
    let best =
        (0..candidates.len()).min_by(|a, b| off(candidates[*a]).total_cmp(&off(candidates[*b])));
    let Some(at) = best else { return Ok(None) };
    let bytes = candidates[at];
    // Places in turn may have been slow by accident: the shortest unit leaves nothing to copy, and is none.
    let around = |at: usize| candidates.get(at).copied().unwrap_or(bytes);
    // Of short writes nearly all is copying.
    let copies =
        seen.iter().filter(|(length, _)| *length <= bytes / 4).flat_map(|(length, times)| {
            let (known, left) = (known(*length), left(bytes, *length));
            times.iter().map(move |took| (took - known) / left)
        });
    let copy = Estimate::of(&copies.collect::<Vec<_>>()).filter(|copy| copy.value > 0.0);
    let between = (around(at.saturating_sub(1)), around(at + 1));
    Ok(copy.map(|copy| Units { bytes, between, open, copy }))
}

fn read_after(session: &mut Session<'_>, slots: &mut Slots) -> Result<Estimate, Fault> {
    let at = slots.next();
    let mut requests = Vec::new();
    for (turn, read) in session.anywhere(SMALL, 31).into_iter().enumerate() {
        let offset = at + turn as u64 * APPEND;
        requests.extend([Request { write: true, offset, bytes: APPEND }, read]);
    }
    let times = session.run("reads after writes", requests, 0)?;
    let reads: Vec<f64> = times.into_iter().skip(1).step_by(2).collect();
    Estimate::of(&reads).ok_or(Fault::Nonsense("nothing was read".to_owned()))
}
