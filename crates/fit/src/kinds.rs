//! Measurements as the constants of each kind of device.

use braid_model::{Profile, ProfileError};

use crate::fitted::Fitted;
use crate::held_out::at_depths;
use crate::reading::Reading;
use crate::robust::Estimate;
use crate::session::{Fault, Ran};
use crate::text;
use crate::turning::{self, Turning};
use crate::writing::Writing;

/// A kind with its constants.
pub(crate) struct Candidate {
    pub(crate) kind: &'static str,
    pub(crate) constants: Vec<Fitted>,
}

impl Candidate {
    /// Its profile of a device of `size` bytes, which is called `label`.
    pub(crate) fn profile(&self, label: &str, size: u64) -> Result<Profile, ProfileError> {
        Profile::parse(&text::profile(self.kind, label, size, &self.constants, &[]))
    }
}

fn seen(name: &'static str, estimate: Estimate, source: &str) -> Fitted {
    Fitted { name, estimate, measured: true, source: source.to_owned() }
}

fn assumed(name: &'static str, value: f64, source: &str) -> Fitted {
    Fitted { name, estimate: Estimate::sure(value), measured: false, source: source.to_owned() }
}

/// Bytes a second of nanoseconds a byte.
fn rate(byte: Estimate) -> Estimate {
    byte.map(|ns| 1e9 / ns.max(1e-6))
}

fn us(time: Estimate) -> Estimate {
    time.map(|ns| ns / 1e3)
}

pub(crate) fn plain(reading: &Reading, writing: Option<&Writing>) -> Candidate {
    let read = rate(reading.byte_alone);
    let write = match writing {
        Some(writing) => {
            seen("write_rate", rate(writing.byte_alone), "continuing writes of all lengths")
        }
        None => assumed("write_rate", read.value, "not measured; assumed equal to read_rate"),
    };
    let constants = vec![
        seen("read_rate", read, "continuing reads of all lengths"),
        write,
        seen("latency_us", us(reading.jump), "random reads less continuing ones"),
        assumed("bus_rate", 0.0, "not measured apart: the rates contain the bus"),
    ];
    Candidate { kind: "plain", constants }
}

pub(crate) fn flash(reading: &Reading, writing: Option<&Writing>) -> Candidate {
    let read = rate(reading.byte);
    let command = "continuing reads: what does not grow with their length; contains the bus";
    let settle = "random reads at once, less those after a rest of 20 ms";
    let mut constants = vec![
        seen("command_us", us(reading.command), command),
        seen("settle_us", us(reading.settle), settle),
        seen("random_us", us(reading.jump), "random reads after a rest, less continuing ones"),
        match writing.map_or(reading.transfer_max, |writing| writing.transfer_max) {
            Some(most) => seen(
                "transfer_max",
                Estimate { value: most as f64, low: most as f64, high: (most + 4095) as f64 },
                "the length of reads at which a second command begins",
            ),
            None => {
                assumed("transfer_max", f64::from(1 << 20), "no second command seen up to 1 MiB")
            }
        },
        seen("read_rate", read, "continuing reads: what grows with their length"),
    ];
    match writing {
        Some(writing) => constants.extend(written(writing)),
        None => {
            let none = "not measured; assumed that nothing is rewritten beyond a page of 4 KiB";
            let sizes = ["page_bytes", "erase_block_bytes", "unit_bytes"];
            let equal = "not measured; assumed equal to read_rate";
            constants.push(assumed("write_rate", read.value, equal));
            constants.extend(sizes.map(|name| assumed(name, 4096.0, none)));
            constants.push(assumed("copy_rate", read.value, equal));
            constants.push(assumed("open_units", 1.0, "not measured; assumed one"));
        }
    }
    let cycles = "no measurement shows it; data sheets of MLC NAND";
    constants.push(assumed("endurance_cycles", 10_000.0, cycles));
    Candidate { kind: "usb-flash", constants }
}

/// Constants of flash that only writes show.
fn written(writing: &Writing) -> Vec<Fitted> {
    let (write, page) = (rate(writing.byte), writing.page as f64);
    let length = Estimate { value: page, low: page / 2.0 + 1.0, high: page };
    let mut constants = vec![
        seen("write_rate", write, "continuing writes: what grows with their length"),
        seen("page_bytes", length, "the length below which writes cost no less"),
    ];
    constants.extend(match &writing.units {
        Some(units) => {
            let (low, high) = (units.between.0 as f64, units.between.1 as f64);
            let bytes = Estimate { value: units.bytes as f64, low, high };
            let block = "not seen apart from the unit; assumed equal to it";
            let unit = "the length of writes from which on none costs more than its bytes";
            let copied = "random writes of up to a quarter of a unit: what they leave of it";
            let open = "places that are appended to in turn without a unit for each";
            [
                assumed("erase_block_bytes", bytes.value, block),
                seen("unit_bytes", bytes, unit),
                seen("copy_rate", rate(units.copy), copied),
                seen("open_units", Estimate::sure(units.open as f64), open),
            ]
        }
        None => {
            let none = "no write cost more than its bytes: no unit, which a unit of a page says";
            let copied = "nothing was copied; assumed equal to write_rate";
            [
                assumed("erase_block_bytes", page, none),
                assumed("unit_bytes", page, none),
                assumed("copy_rate", write.value, copied),
                assumed("open_units", 16.0, "as many as were tried"),
            ]
        }
    });
    constants
}

pub(crate) fn disk(
    reading: &Reading,
    turning: &Turning,
    cache: Option<Estimate>,
    wrote: bool,
) -> Candidate {
    let ms = |time: Estimate| time.map(|ns| ns / 1e6);
    let [track, average, full] = turning.seeks;
    let [outer, inner] = turning.rates;
    let inner = Estimate { value: inner.value.min(outer.value), ..inner };
    let constants = vec![
        seen(
            "rpm",
            turning.rpm,
            "reading one place again and again, or how much short jumps differ",
        ),
        seen(
            "seek_track_ms",
            ms(track),
            "the shortest of many jumps of each distance: their curve at none",
        ),
        seen("seek_average_ms", ms(average), "the same curve, over uniform distances"),
        seen("seek_full_ms", ms(full), "the same curve, over all"),
        seen(
            "outer_rate",
            outer,
            "continuing reads of 256 KiB in five zones: their line at the beginning",
        ),
        seen("inner_rate", inner, "the same line at the end"),
        seen(
            "command_us",
            us(reading.command),
            "continuing reads: what does not grow with their length",
        ),
        match cache {
            Some(cache) => {
                seen("write_cache", cache, "random writes until each waits for the medium")
            }
            None if wrote => assumed(
                "write_cache",
                turning::WRITTEN as f64,
                "no write waited for the medium: as much as was written",
            ),
            None => assumed(
                "write_cache",
                0.0,
                "not measured; assumed none: a write costs what a read does",
            ),
        },
    ];
    Candidate { kind: "disk", constants }
}

/// Depths of a disk's queue that are told apart.
const QUEUES: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Among how many requests a disk chooses, if its other constants are those of `disk`: with which depth the model
/// takes as long as was measured with several reads under way. The least of depths that are equally near.
pub(crate) fn queue_depth(disk: &Candidate, size: u64, record: &[Ran]) -> Result<Fitted, Fault> {
    let seen = |value: usize| {
        let source = "random reads with up to 32 under way: the model that takes as long";
        seen("queue_depth", Estimate::sure(value as f64), source)
    };
    let mut best: Option<(f64, usize)> = None;
    for depth in QUEUES {
        let mut constants = disk.constants.clone();
        constants.push(seen(depth));
        let candidate = Candidate { kind: disk.kind, constants };
        // What is no disk with one depth is none with another: that is said where kinds are compared.
        let Ok(profile) = candidate.profile("", size) else { break };
        let off = at_depths(&profile, size, record)?;
        if best.is_none_or(|(least, _)| off < least) {
            best = Some((off, depth));
        }
    }
    Ok(seen(best.map_or(1, |(_, depth)| depth)))
}
