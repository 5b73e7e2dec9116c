//! When a device that does one request at a time, over a bus that it shares, is done.
//!
//! ```text
//! device 0   |latency|........ medium ........|..... continues .....|
//! bus                |== transfer ==|
//! device 1   |latency|.............. medium ..............|
//! bus                               |== transfer ==|
//! ```
//!
//! A request starts when the device is free. One that does not continue where the request before
//! it ended waits the latency first. Then the medium takes its time; the transfer starts with
//! the medium, or when the bus is free, and the completion is the later end of the two.
//!
//! Schedules are kept, not clocks: a caller that is woken late loses nothing while requests are
//! queued, so the rates hold however coarse its timers are.

use crate::Profile;

/// What a request moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Bytes from the device.
    Read {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Bytes to the device.
    Write {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// No bytes: a flush, a discard.
    Command,
}

/// The schedule of one device.
#[derive(Clone, Debug)]
pub struct Timetable {
    profile: Profile,
    free_at_ns: u64,
    /// Where the last request ended: what begins there continues it.
    position: Option<(bool, u64)>,
}

/// The schedule of a bus.
#[derive(Clone, Debug, Default)]
pub struct Bus {
    rate: u64,
    free_at_ns: u64,
}

impl Bus {
    /// A bus of `rate` bytes per second; 0 for one that is never the limit.
    pub fn new(rate: u64) -> Bus {
        Bus { rate, free_at_ns: 0 }
    }

    /// Reserves the transfer of `bytes`, not before `from_ns`, and answers its end.
    fn reserve(&mut self, from_ns: u64, bytes: u64) -> u64 {
        if self.rate == 0 {
            return from_ns;
        }
        let start = from_ns.max(self.free_at_ns);
        self.free_at_ns = start + nanoseconds(bytes, self.rate);
        self.free_at_ns
    }
}

impl Timetable {
    /// A device that is free at time 0.
    pub fn new(profile: Profile) -> Timetable {
        Timetable { profile, free_at_ns: 0, position: None }
    }

    /// Takes a request in at `now_ns` and answers when it is done.
    pub fn serve(&mut self, bus: &mut Bus, now_ns: u64, work: Work) -> u64 {
        let (write, offset, bytes) = match work {
            Work::Read { offset, bytes } => (false, offset, bytes),
            Work::Write { offset, bytes } => (true, offset, bytes),
            // It moves nothing and leaves the position as it is.
            Work::Command => {
                self.free_at_ns = now_ns.max(self.free_at_ns) + self.profile.latency_ns;
                return self.free_at_ns;
            }
        };
        let rate = if write { self.profile.write_rate } else { self.profile.read_rate };
        let continues = self.position == Some((write, offset));
        self.position = Some((write, offset + bytes));
        let latency_ns = if continues { 0 } else { self.profile.latency_ns };
        let ready = now_ns.max(self.free_at_ns) + latency_ns;
        let medium_done = ready + nanoseconds(bytes, rate);
        let transfer_done = bus.reserve(ready, bytes);
        self.free_at_ns = medium_done.max(transfer_done);
        self.free_at_ns
    }
}

/// The time that `bytes` take at `rate` bytes per second, rounded up.
fn nanoseconds(bytes: u64, rate: u64) -> u64 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STICK: Profile =
        Profile { read_rate: 20_000_000, write_rate: 10_000_000, latency_ns: 1000, bus_rate: 0 };

    fn read(offset: u64, bytes: u64) -> Work {
        Work::Read { offset, bytes }
    }

    #[test]
    fn one_request_at_a_time() {
        let (mut device, mut bus) = (Timetable::new(STICK), Bus::new(0));
        // 20 MB/s: 50 ns a byte.
        assert_eq!(device.serve(&mut bus, 0, read(0, 100)), 1000 + 5000);
        let write = Work::Write { offset: 100, bytes: 100 };
        assert_eq!(device.serve(&mut bus, 0, write), 6000 + 1000 + 10_000);
        assert_eq!(device.serve(&mut bus, 50_000, Work::Command), 51_000);
    }

    #[test]
    fn what_continues_does_not_wait_for_the_latency() {
        let (mut device, mut bus) = (Timetable::new(STICK), Bus::new(0));
        assert_eq!(device.serve(&mut bus, 0, read(500, 100)), 6000);
        assert_eq!(device.serve(&mut bus, 0, read(600, 100)), 11_000);
        assert_eq!(device.serve(&mut bus, 0, read(800, 100)), 17_000);
    }

    #[test]
    fn two_devices_share_a_bus() {
        // 25 MB/s: 40 ns a byte, less than two of the devices give together.
        let mut bus = Bus::new(25_000_000);
        let mut devices = [Timetable::new(STICK), Timetable::new(STICK)];
        let mut done = 0;
        for round in 0..1000 {
            for device in &mut devices {
                done = device.serve(&mut bus, 0, read(round * 100_000, 100_000));
            }
        }
        let rate = 2000.0 * 100_000.0 / (done as f64 / 1e9);
        assert!((24_900_000.0..=25_000_000.0).contains(&rate), "{rate}");
    }

    proptest! {
        /// No request is done before it came, nor two at once, nor faster than the rates allow.
        #[test]
        fn time_only_goes_forward(
            bus_rate in prop_oneof![Just(0u64), 1_000u64..100_000_000],
            steps in prop::collection::vec(
                (0u64..1_000_000, 0u64..4, 0u64..1_000_000, any::<bool>()), 1..50),
        ) {
            let (mut device, mut bus) = (Timetable::new(STICK), Bus::new(bus_rate));
            let (mut now, mut last) = (0, 0);
            for (wait, offset, bytes, write) in steps {
                now += wait;
                let work = if write { Work::Write { offset, bytes } } else { read(offset, bytes) };
                let done = device.serve(&mut bus, now, work);
                let least = if write { bytes * 100 } else { bytes * 50 };
                prop_assert!(done >= now.max(last) + least);
                last = done;
            }
        }
    }
}
