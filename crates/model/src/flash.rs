//! USB flash: commands, pages, and allocation units that are rewritten as a whole.
//!
//! ```text
//! unit 7   |..old..|new new new|        |     open: what is appended costs its bytes
//!                   ▲ written from here
//!          |── copied when it was opened ──|
//!                               |── copied when it is closed for another unit ──|
//! ```
//!
//! A stick of that time does one command at a time, which moves at most `transfer_max` bytes (what the
//! kernel gives it: drivers/usb/storage sets 240 sectors). Its map has an entry for each *allocation
//! unit* of several erase blocks. A write that appends to an open unit programs its pages. Any other
//! write needs a new unit: what is before it is copied, and of the unit that is closed for it, what
//! had not been written again. So 64 KiB anywhere cost a whole unit, in pieces or at once.
//!
//! Deliberately absent: garbage collection in the background, and contents that compress.

use std::collections::VecDeque;

use crate::bus::Bus;
use crate::constants::{Constants, ProfileError};
use crate::nanoseconds;
use crate::place::Place;

/// The constants of a stick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flash {
    /// Overhead of a command before its first byte, in nanoseconds.
    pub command_ns: u64,
    /// Time from the end of a non-sequential read until the device takes the next command, in nanoseconds.
    pub settle_ns: u64,
    /// Extra time of a non-sequential read, in nanoseconds.
    pub random_ns: u64,
    /// Most bytes of a command.
    pub transfer_max: u64,
    /// Bytes per second of the medium, reading.
    pub read_rate: u64,
    /// Bytes per second of the medium, programming.
    pub write_rate: u64,
    /// Size of a programmed page, in bytes.
    pub page_bytes: u64,
    /// Size of an erased block, in bytes.
    pub erase_block_bytes: u64,
    /// The allocation unit, in bytes.
    pub unit_bytes: u64,
    /// Bytes per second that the stick copies within itself.
    pub copy_rate: u64,
    /// Number of units that may be open.
    pub open_units: usize,
    /// Number of erases that a block endures.
    pub endurance_cycles: f64,
}

impl Flash {
    pub(crate) fn of(constants: &mut Constants<'_>) -> Result<Flash, ProfileError> {
        let flash = Flash {
            command_ns: (constants.at_least_zero("command_us")? * 1e3) as u64,
            settle_ns: (constants.at_least_zero("settle_us")? * 1e3) as u64,
            random_ns: (constants.at_least_zero("random_us")? * 1e3) as u64,
            transfer_max: constants.positive("transfer_max")? as u64,
            read_rate: constants.positive("read_rate")? as u64,
            write_rate: constants.positive("write_rate")? as u64,
            page_bytes: constants.positive("page_bytes")? as u64,
            erase_block_bytes: constants.positive("erase_block_bytes")? as u64,
            unit_bytes: constants.positive("unit_bytes")? as u64,
            copy_rate: constants.positive("copy_rate")? as u64,
            open_units: constants.positive("open_units")? as usize,
            endurance_cycles: constants.positive("endurance_cycles")?,
        };
        let multiples = [
            ("erase_block_bytes", flash.erase_block_bytes, "page_bytes", flash.page_bytes),
            ("unit_bytes", flash.unit_bytes, "erase_block_bytes", flash.erase_block_bytes),
        ];
        for (name, whole, of, part) in multiples {
            if part == 0 || whole == 0 || whole % part != 0 {
                let why = format!("{whole} is no multiple of {of}, which is {part}");
                return Err(constants.contradiction(name, why));
            }
        }
        if flash.open_units == 0 || flash.transfer_max < 512 {
            let (name, why) = if flash.open_units == 0 {
                ("open_units", "one unit at least is open".to_owned())
            } else {
                ("transfer_max", "a command moves a sector at least: 512 bytes".to_owned())
            };
            return Err(constants.contradiction(name, why));
        }
        Ok(flash)
    }

    /// Bytes per second of one long run.
    pub(crate) fn long_rate(&self, write: bool) -> f64 {
        let rate = if write { self.write_rate } else { self.read_rate };
        let ns = self.command_ns + nanoseconds(self.transfer_max, rate);
        self.transfer_max as f64 / (ns.max(1) as f64 / 1e9)
    }

    /// One command, of at most `transfer_max` bytes: when it is done.
    pub(crate) fn command(&self, state: &mut FlashState, bus: &mut Bus, at: &Place) -> u64 {
        let jump = if at.write || at.continues { 0 } else { self.random_ns };
        let ready = at.begin_ns + self.command_ns + bus.turn_ns() + jump;
        let transferred = bus.reserve(at.now_ns, ready, at.bytes, at.direction());
        let medium = if at.write {
            let programmed = state.write(self, at.offset, at.bytes);
            nanoseconds(programmed.pages, self.write_rate)
                + nanoseconds(programmed.copied, self.copy_rate)
        } else {
            nanoseconds(at.bytes, self.read_rate)
        };
        transferred.max(ready + medium)
    }
}

/// The wear of a device by its writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Bytes that the host wrote.
    pub written: u64,
    /// Bytes that were programmed: pages in whole, and what was copied.
    pub programmed: u64,
    /// Bytes that were erased: allocation units in whole.
    pub erased: u64,
}

impl Wear {
    /// Bytes programmed for each byte written; 1 for a device that was not written.
    pub fn amplification(&self) -> f64 {
        if self.written == 0 { 1.0 } else { self.programmed as f64 / self.written as f64 }
    }
}

/// An open unit.
#[derive(Clone, Copy, Debug)]
struct Open {
    unit: u64,
    /// Up to where it has been written anew, from its beginning.
    written: u64,
}

/// The state of a stick.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlashState {
    /// The open units, the one that was written last at the back.
    open: VecDeque<Open>,
    wear: Wear,
}

/// The work of the medium for a write, in bytes.
struct Programmed {
    pages: u64,
    copied: u64,
}

impl FlashState {
    pub(crate) fn wear(&self) -> Wear {
        self.wear
    }

    fn write(&mut self, flash: &Flash, offset: u64, bytes: u64) -> Programmed {
        let (mut pages, mut copied) = (0, 0);
        let (mut at, end) = (offset, offset + bytes);
        while at < end {
            let unit = at / flash.unit_bytes;
            let part_end = end.min((unit + 1) * flash.unit_bytes);
            copied += self.append(flash, unit, at % flash.unit_bytes, part_end - at);
            pages += (part_end - at).next_multiple_of(flash.page_bytes);
            at = part_end;
        }
        self.wear.written += bytes;
        self.wear.programmed += pages + copied;
        Programmed { pages, copied }
    }

    /// Writes `bytes` of `unit` from `within` on, and answers how much had to be copied.
    fn append(&mut self, flash: &Flash, unit: u64, within: u64, bytes: u64) -> u64 {
        let place = self.open.iter().position(|open| open.unit == unit);
        let mut copied = 0;
        match place.and_then(|index| self.open.remove(index)) {
            // What is skipped is copied; what was written already cannot be written again in place.
            Some(open) if within >= open.written => copied += within - open.written,
            Some(open) => copied += flash.unit_bytes - open.written + self.begin(flash, within),
            None => {
                if self.open.len() == flash.open_units {
                    let closed = self.open.pop_front();
                    copied += closed.map_or(0, |open| flash.unit_bytes - open.written);
                }
                copied += self.begin(flash, within);
            }
        }
        let written = within + bytes;
        if written < flash.unit_bytes {
            self.open.push_back(Open { unit, written });
        }
        copied
    }

    /// Takes an erased unit, of which everything before `within` is copied.
    fn begin(&mut self, flash: &Flash, within: u64) -> u64 {
        self.wear.erased += flash.unit_bytes;
        within
    }
}
