//! When a device that does one request at a time, over a bus that it may share, is done. A remote one does several.
//!
//! ```text
//! device 0   |latency|........ medium ........|..... continues .....|
//! bus                |== transfer ==|
//! device 1   |latency|.............. medium ..............|
//! bus                               |== transfer ==|
//! ```
//!
//! Schedules are kept, not clocks: a caller that is woken late loses nothing while requests are
//! queued, so the rates hold however coarse its timers are. Requests are served in the order in
//! which they are given, and the `now` of a call is not before that of an earlier one. Which one a device
//! with a command queue wants next, of those that wait, is asked of [`Timetable::next_of`] first.

use crate::bus::Bus;
use crate::disk::{Disk, DiskState, Order};
use crate::flash::{Flash, FlashState, Wear};
use crate::place::{Place, Work};
use crate::plain::{Plain, Ram};
use crate::profile::Kind;
use crate::remote::{Remote, RemoteState};

/// The schedule of one device.
#[derive(Clone, Debug)]
pub struct Timetable {
    free_at_ns: u64,
    /// Busy time, except for a disk, whose medium has it.
    busy_ns: u64,
    /// End of the last request: a request that begins there continues it.
    position: Option<(bool, u64)>,
    order: Order,
    device: Device,
}

#[derive(Clone, Debug)]
enum Device {
    Plain(Plain),
    Flash(Flash, FlashState),
    Disk(Disk, DiskState),
    Ram(Ram),
    Remote(Remote, RemoteState),
}

impl From<Plain> for Timetable {
    fn from(plain: Plain) -> Timetable {
        Timetable::over(Device::Plain(plain))
    }
}

impl Timetable {
    /// A device of `size` bytes that is free at time 0; `None` for a kind that is no device.
    pub fn new(kind: &Kind, size: u64) -> Option<Timetable> {
        Some(Timetable::over(match kind {
            Kind::Plain(plain) => Device::Plain(*plain),
            Kind::Flash(flash) => Device::Flash(*flash, FlashState::default()),
            Kind::Disk(disk) => Device::Disk(*disk, DiskState::new(size)),
            Kind::Ram(ram) => Device::Ram(*ram),
            Kind::Remote(remote) => Device::Remote(*remote, RemoteState::default()),
            Kind::Bus(_) | Kind::Host(_) => return None,
        }))
    }

    fn over(device: Device) -> Timetable {
        Timetable { free_at_ns: 0, busy_ns: 0, position: None, order: Order::default(), device }
    }

    /// When it takes the next request.
    pub fn free_at_ns(&self) -> u64 {
        self.free_at_ns
    }

    /// Returns the busy time with reads and writes, for a disk's medium also behind its cache; and the part of
    /// it in which a disk's head sought, or waited for its place to come round; in nanoseconds.
    pub fn busy_ns(&self) -> (u64, u64) {
        match &self.device {
            Device::Disk(_, state) => state.busy_ns(),
            Device::Remote(_, state) => (state.busy_ns, 0),
            Device::Plain(_) | Device::Flash(..) | Device::Ram(_) => (self.busy_ns, 0),
        }
    }

    /// Returns the number of the oldest waiting requests from which it chooses; 1 if it takes them in their
    /// order.
    pub fn queue_depth(&self) -> usize {
        match &self.device {
            Device::Disk(disk, _) => disk.queue_depth,
            _ => 1,
        }
    }

    /// True if it takes requests before earlier ones are done, whose times it then answers in any order.
    pub fn overlaps(&self) -> bool {
        matches!(self.device, Device::Remote(..))
    }

    /// Which of the requests that wait, the oldest first, it takes at `now_ns`, when it is free.
    pub fn next_of(&mut self, now_ns: u64, waiting: impl Iterator<Item = Work>) -> usize {
        let Device::Disk(disk, state) = &mut self.device else { return 0 };
        disk.write_behind(state, now_ns);
        let before_a_command = waiting.map_while(|work| disk.wait_ns(state, now_ns, work));
        self.order.next(disk.queue_depth, before_a_command)
    }

    /// When all that its write cache holds at `now_ns` is on the medium; `now_ns` if there is nothing.
    pub fn drained_ns(&mut self, now_ns: u64) -> u64 {
        match &mut self.device {
            Device::Disk(disk, state) => now_ns + disk.drained_ns(state, now_ns),
            _ => now_ns,
        }
    }

    /// Bytes of its write cache, 0 where there is none.
    pub fn write_cache(&self) -> u64 {
        match &self.device {
            Device::Disk(disk, _) => disk.write_cache,
            _ => 0,
        }
    }

    /// Has its write cache take `bytes` at most, and answers what it takes then: one of few bytes is full sooner, and
    /// as fast then as one of many. 0 where there is none.
    pub fn limit_write_cache(&mut self, bytes: u64) -> u64 {
        let Device::Disk(disk, _) = &mut self.device else { return 0 };
        disk.write_cache = disk.write_cache.min(bytes);
        disk.write_cache
    }

    /// Takes a request in at `now_ns` and answers when it is done.
    pub fn serve(&mut self, bus: &mut Bus, now_ns: u64, work: Work) -> u64 {
        let (write, offset, bytes) = match work {
            Work::Read { offset, bytes } => (false, offset, bytes),
            Work::Write { offset, bytes } => (true, offset, bytes),
            Work::Command => return self.command(now_ns),
        };
        let continues = self.position == Some((write, offset));
        self.position = Some((write, offset + bytes));
        let begin_ns = now_ns.max(self.free_at_ns);
        let mut at = Place { now_ns, begin_ns, write, offset, bytes, continues };
        let done_ns = match &mut self.device {
            Device::Plain(plain) => plain.serve(bus, &at),
            Device::Ram(ram) => begin_ns + ram.request_ns(write, bytes, continues),
            // It takes the next one before this one is done.
            Device::Remote(remote, state) => return remote.serve(state, bus, &at),
            Device::Disk(disk, state) => disk.serve(state, bus, &at),
            Device::Flash(flash, state) => {
                // A command moves so much and no more.
                while at.bytes > 0 {
                    let part = at.bytes.min(flash.transfer_max);
                    at = Place {
                        begin_ns: flash.command(state, bus, &Place { bytes: part, ..at }),
                        offset: at.offset + part,
                        bytes: at.bytes - part,
                        continues: true,
                        ..at
                    };
                }
                let settle_ns = if write || continues { 0 } else { flash.settle_ns };
                self.free_at_ns = at.begin_ns + settle_ns;
                self.busy_ns += at.begin_ns - begin_ns;
                return at.begin_ns;
            }
        };
        self.free_at_ns = done_ns;
        self.busy_ns += done_ns - begin_ns;
        done_ns
    }

    /// A flush or a discard. It moves nothing and leaves the position as it is.
    fn command(&mut self, now_ns: u64) -> u64 {
        let begin_ns = now_ns.max(self.free_at_ns);
        self.free_at_ns = match &mut self.device {
            Device::Plain(plain) => begin_ns + plain.latency_ns,
            Device::Ram(ram) => begin_ns + ram.call_ns,
            Device::Remote(remote, state) => return remote.command(state, now_ns),
            Device::Flash(flash, _) => begin_ns + flash.command_ns,
            Device::Disk(disk, state) => {
                let begin_ns = begin_ns + disk.command_ns;
                begin_ns + disk.drained_ns(state, begin_ns)
            }
        };
        self.free_at_ns
    }

    /// Returns the wear of a device by its writes; `None` for a device without wear.
    pub fn wear(&self) -> Option<Wear> {
        match &self.device {
            Device::Flash(_, state) => Some(state.wear()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::BusProfile;
    use proptest::prelude::*;

    const STICK: Plain =
        Plain { read_rate: 20_000_000, write_rate: 10_000_000, latency_ns: 1000, bus_rate: 0 };

    fn read(offset: u64, bytes: u64) -> Work {
        Work::Read { offset, bytes }
    }

    fn bus(rate: u64) -> Bus {
        Bus::new(BusProfile::of_rate(rate))
    }

    #[test]
    fn one_request_at_a_time() {
        let (mut device, mut bus) = (Timetable::from(STICK), bus(0));
        // 20 MB/s: 50 ns a byte.
        assert_eq!(device.serve(&mut bus, 0, read(0, 100)), 1000 + 5000);
        let write = Work::Write { offset: 100, bytes: 100 };
        assert_eq!(device.serve(&mut bus, 0, write), 6000 + 1000 + 10_000);
        assert_eq!(device.serve(&mut bus, 50_000, Work::Command), 51_000);
    }

    #[test]
    fn what_continues_does_not_wait_for_the_latency() {
        let (mut device, mut bus) = (Timetable::from(STICK), bus(0));
        assert_eq!(device.serve(&mut bus, 0, read(500, 100)), 6000);
        assert_eq!(device.serve(&mut bus, 0, read(600, 100)), 11_000);
        assert_eq!(device.serve(&mut bus, 0, read(800, 100)), 17_000);
    }

    /// A way of 10 ms, over which 1,000,000 bytes take 10 ms.
    fn far(loss: f64) -> Timetable {
        let remote = Remote {
            read_rate: 100_000_000,
            write_rate: 100_000_000,
            round_trip_ns: 10_000_000,
            server_ns: 1_000_000,
            loss,
            retry_ns: 200_000_000,
        };
        Timetable::new(&Kind::Remote(remote), 1 << 30).expect("a device")
    }

    #[test]
    fn requests_over_a_network_overlap_and_their_bytes_do_not() {
        let (mut device, mut bus) = (far(0.0), bus(0));
        let ms = |device: &mut Timetable, bus: &mut Bus, now: u64, work| {
            device.serve(bus, now * 1_000_000, work).div_ceil(1_000_000)
        };
        let write = |offset| Work::Write { offset, bytes: 1_000_000 };
        assert_eq!(ms(&mut device, &mut bus, 0, write(0)), 10 + 11);
        assert_eq!(ms(&mut device, &mut bus, 1, write(5_000_000)), 20 + 11);
        // The other direction is free, and so is the server.
        assert_eq!(ms(&mut device, &mut bus, 2, read(0, 1_000_000)), 2 + 11 + 10);
        assert_eq!(ms(&mut device, &mut bus, 2, Work::Command), 2 + 11);
        assert_eq!(ms(&mut device, &mut bus, 90, read(0, 1)), 90 + 11 + 1);
        assert!(device.overlaps() && device.free_at_ns() == 0);
    }

    #[test]
    fn lost_packets_are_counted_and_sent_again() {
        let (mut device, mut bus) = (far(0.01), bus(0));
        let all = 0..10_000;
        let slow = all.filter(|at| {
            let now = at * 1_000_000_000;
            device.serve(&mut bus, now, read(at * 1448, 1448)) - now > 200_000_000
        });
        // Each is one packet; a sum of hundredths is not exact.
        assert!(matches!(slow.count(), 99..=100));
    }

    #[test]
    fn two_devices_share_a_bus() {
        // 25 MB/s: 40 ns a byte, less than two of the devices give together.
        let mut bus = bus(25_000_000);
        let mut devices = [Timetable::from(STICK), Timetable::from(STICK)];
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
            let (mut device, mut bus) = (Timetable::from(STICK), bus(bus_rate));
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
