//! A bus that several devices share: a USB host controller, an ATA channel, a PCI bus.
//!
//! ```text
//! transfers   A ████████          ███ B ███████            reserved so far
//! C wants       |from                                      as much as fits before B, the rest after
//!             A ████████CCCCCCCCCC███ B ███████CCCC
//! ```
//!
//! A bus moves one packet at a time and takes packets of all devices in turn. So a transfer may have any
//! unreserved time, in pieces, and a device that is slower than the bus leaves room for others.

use std::collections::VecDeque;

use crate::constants::{Constants, ProfileError};
use crate::nanoseconds;

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the device to the host: reads.
    In,
    /// From the host to the device: writes.
    Out,
}

/// The constants of a bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusProfile {
    /// Bytes per second from devices; 0 for a bus that is never the limit.
    pub rate_in: u64,
    /// Bytes per second to devices; 0 likewise.
    pub rate_out: u64,
    /// Wait of a command for the bus's protocol, beside its data, in nanoseconds: others may use the bus
    /// meanwhile.
    pub turn_ns: u64,
    /// Bus time of a command beside its data, in nanoseconds.
    pub wrapper_ns: u64,
}

impl BusProfile {
    /// A bus of one rate both ways.
    pub const fn of_rate(rate: u64) -> BusProfile {
        BusProfile { rate_in: rate, rate_out: rate, turn_ns: 0, wrapper_ns: 0 }
    }

    /// USB 2.0: packets in a microframe, and what the protocol adds.
    ///
    /// A device whose buffers hold `ping_every` packets answers the last of them with NYET; the host
    /// then asks with a PING before it sends more (USB 2.0, 8.5.1). A command of mass storage is
    /// three transfers (command, data, status), each of which ends with an interrupt at the next
    /// microframe.
    pub(crate) fn usb(constants: &mut Constants<'_>) -> Result<BusProfile, ProfileError> {
        let microframe_us = constants.positive("microframe_us")?;
        let packet_bytes = constants.positive("packet_bytes")?;
        let packets_in = constants.positive("packets_in")?;
        let packets_out = constants.positive("packets_out")?;
        let ping_every = constants.at_least_zero("ping_every")?;
        let ping_us = constants.at_least_zero("ping_us")?;
        let interrupts = constants.at_least_zero("interrupts")?;
        let most = microframe_us * 60.0 / packet_bytes;
        for (name, packets) in [("packets_in", packets_in), ("packets_out", packets_out)] {
            // 480 Mbit/s are 60 bytes in a microsecond.
            if packets > most {
                let why = format!(
                    "{packets} packets of {packet_bytes} bytes do not fit into {microframe_us} us at 480 Mbit/s: \
                     at most {most:.1}"
                );
                return Err(constants.contradiction(name, why));
            }
        }
        let ping_us = if ping_every > 0.0 { ping_us / ping_every } else { 0.0 };
        let rate = |packet_us: f64| (packet_bytes / packet_us * 1e6) as u64;
        Ok(BusProfile {
            rate_in: rate(microframe_us / packets_in),
            rate_out: rate(microframe_us / packets_out + ping_us),
            turn_ns: (interrupts * microframe_us * 1e3) as u64,
            wrapper_ns: (constants.at_least_zero("wrapper_us")? * 1e3) as u64,
        })
    }

    /// A channel with a rate each way.
    pub(crate) fn channel(constants: &mut Constants<'_>) -> Result<BusProfile, ProfileError> {
        Ok(BusProfile {
            rate_in: constants.positive("rate_in")? as u64,
            rate_out: constants.positive("rate_out")? as u64,
            turn_ns: (constants.at_least_zero("turn_us")? * 1e3) as u64,
            wrapper_ns: 0,
        })
    }
}

/// The schedule of a bus.
#[derive(Clone, Debug, Default)]
pub struct Bus {
    profile: BusProfile,
    /// Reserved stretches of time: in order, apart, none of no length.
    reserved: VecDeque<(u64, u64)>,
}

impl Bus {
    /// Returns an unused bus.
    pub fn new(profile: BusProfile) -> Bus {
        Bus { profile, reserved: VecDeque::new() }
    }

    /// Returns the wait of a command beside its data, in nanoseconds.
    pub(crate) fn turn_ns(&self) -> u64 {
        self.profile.turn_ns
    }

    /// Reserves the transfer of a command of `bytes`, not before `from_ns`, and answers its end. What ended
    /// before `now_ns` is forgotten: no later call may have an earlier `from_ns` than this `now_ns`.
    pub(crate) fn reserve(
        &mut self,
        now_ns: u64,
        from_ns: u64,
        bytes: u64,
        direction: Direction,
    ) -> u64 {
        let rate = match direction {
            Direction::In => self.profile.rate_in,
            Direction::Out => self.profile.rate_out,
        };
        if rate == 0 || bytes == 0 {
            return from_ns;
        }
        while self.reserved.front().is_some_and(|(_, end)| *end <= now_ns) {
            self.reserved.pop_front();
        }
        let mut left = nanoseconds(bytes, rate) + self.profile.wrapper_ns;
        let mut at = from_ns;
        let mut index = self.reserved.partition_point(|(_, end)| *end <= from_ns);
        loop {
            let next = self.reserved.get(index).copied();
            let room = next.map_or(u64::MAX, |(start, _)| start.saturating_sub(at));
            let taken = left.min(room);
            if taken > 0 {
                index = self.insert(index, at, at + taken);
                left -= taken;
                at += taken;
            }
            if left == 0 {
                return at;
            }
            let (_, end) = self.reserved[index];
            at = at.max(end);
            index += 1;
        }
    }

    /// Inserts a free stretch before `index`, joined with its neighbours, and answers the index of
    /// the first stretch that is not behind it any more: the one that it joined, or its successor.
    fn insert(&mut self, index: usize, start: u64, end: u64) -> usize {
        let joins_before = index > 0 && self.reserved[index - 1].1 == start;
        let joins_after = self.reserved.get(index).is_some_and(|next| next.0 == end);
        match (joins_before, joins_after) {
            (true, true) => {
                self.reserved[index - 1].1 = self.reserved[index].1;
                self.reserved.remove(index);
                index - 1
            }
            (true, false) => {
                self.reserved[index - 1].1 = end;
                index
            }
            (false, true) => {
                self.reserved[index].0 = start;
                index
            }
            (false, false) => {
                self.reserved.insert(index, (start, end));
                index + 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 1 byte a nanosecond.
    const BUS: BusProfile = BusProfile::of_rate(1_000_000_000);

    #[test]
    fn a_transfer_takes_the_time_that_others_left() {
        let mut bus = Bus::new(BUS);
        assert_eq!(bus.reserve(0, 100, 50, Direction::In), 150);
        assert_eq!(bus.reserve(0, 200, 50, Direction::In), 250);
        assert_eq!(bus.reserve(0, 120, 70, Direction::In), 270);
        assert_eq!(bus.reserve(0, 0, 100, Direction::Out), 100);
        assert_eq!(bus.reserve(0, 0, 1, Direction::In), 271);
        assert_eq!(bus.reserved, [(0, 271)]);
    }

    #[test]
    fn a_bus_without_a_rate_is_never_the_limit() {
        let mut bus = Bus::new(BusProfile::default());
        assert_eq!(bus.reserve(0, 7, 1 << 40, Direction::In), 7);
    }

    proptest! {
        /// No two transfers at once, each as long as its bytes take, and no time is left unused
        /// that a transfer could have had: against a table of nanoseconds.
        #[test]
        fn reservations_are_those_of_a_table(
            transfers in prop::collection::vec((0usize..200, 1u64..40, 0usize..10), 1..40),
        ) {
            let mut bus = Bus::new(BUS);
            let (mut table, mut now) = (vec![false; 4000], 0);
            for (from, bytes, later) in transfers {
                now += later;
                let from = now + from;
                let (mut at, mut left) = (from, bytes);
                while left > 0 {
                    if !table[at] {
                        table[at] = true;
                        left -= 1;
                    }
                    at += 1;
                }
                prop_assert_eq!(bus.reserve(now as u64, from as u64, bytes, Direction::In), at as u64);
                prop_assert!(bus.reserved.iter().zip(bus.reserved.iter().skip(1)).all(|(a, b)| a.1 < b.0));
            }
        }
    }
}
