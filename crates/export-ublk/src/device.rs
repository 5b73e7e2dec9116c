//! A device at the driver: `struct ublksrv_ctrl_dev_info`, and the commands that change it.
//!
//! ```text
//!             add ──▶ Dead ──start──▶ Live ──the server died──▶ Quiesced
//!                      │               ▲ └──stop──▶ Dead           │
//!                      │               └── end_recovery ◀── begin_recovery
//!                      └──────────────────── delete ◀──────────────┘
//! ```
//!
//! Invariant: a device is known again by its tag, 64 bits that the driver keeps for servers. The tag is a sum of the
//! path of the volume's folder, so neither the number of the device nor a file must survive.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use braid_block::Limits;
use braid_uring::ublk::{Call, call};

use crate::params::{self, Known};
use crate::request::MAX_DATA;

/// Bytes of `struct ublksrv_ctrl_dev_info`.
const LEN: usize = 64;
/// Most bytes of a request: [`MAX_DATA`], as the driver is told.
const MOST_BYTES: u32 = 1 << 20;
const _: () = assert!(MOST_BYTES as usize == MAX_DATA);
/// The folder with an entry for each device.
const DEVICES: &str = "/sys/class/ublk-char";

/// Time limit for commands that wait for nothing but the driver.
const SHORT: Duration = Duration::from_secs(10);
/// Time limit for commands that wait until requests are answered.
const LONG: Duration = Duration::from_secs(30);
/// Time limit for commands that make the block device, and read partitions of it. Members answer or fail long before. A
/// process that ended meanwhile would leave that reading, and a lock of the driver, for good.
const START_LIMIT: Duration = Duration::from_secs(600);

/// Time limit for the driver to notice that a server died: the time-out of requests twice, since it starts anew for those
/// that were looked at just before, and some more.
const NOTICE: Duration = Duration::from_secs(70);

/// Tags of a queue: as a loop device has, which is what clients expect.
const DEPTH: u16 = 128;

/// `'u'`.
const TYPE: u32 = 0x75;

const fn number(direction: u32, number: u32) -> u32 {
    // `_IOC` of linux/ioctl.h: direction, size of the argument, type, number.
    direction << 30 | 32 << 16 | TYPE << 8 | number
}
const READ: u32 = 2;
const BOTH: u32 = 3;
const ADD: u32 = number(BOTH, 0x04);
const DELETE: u32 = number(BOTH, 0x05);
const START: u32 = number(BOTH, 0x06);
const STOP: u32 = number(BOTH, 0x07);
const SET_PARAMS: u32 = number(BOTH, 0x08);
const GET_PARAMS: u32 = number(READ, 0x09);
const GET_INFO: u32 = number(READ, 0x02);
const BEGIN_RECOVERY: u32 = number(BOTH, 0x10);
const END_RECOVERY: u32 = number(BOTH, 0x11);
const GET_FEATURES: u32 = number(READ, 0x13);
const UPDATE_SIZE: u32 = number(BOTH, 0x15);

const USER_RECOVERY: u64 = 1 << 3;
const REISSUE: u64 = 1 << 4;
const USER_COPY: u64 = 1 << 7;
const CAN_UPDATE_SIZE: u64 = 1 << 10;

/// Abilities of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u64);

impl Features {
    /// Asks the driver.
    ///
    /// # Errors
    /// `ENOENT` without the driver; `EOPNOTSUPP` of one before Linux 6.5; no permission, or no io_uring.
    pub fn read() -> io::Result<Features> {
        let mut bytes = [0; 8];
        command(GET_FEATURES, u32::MAX, 0, &mut bytes, SHORT)?;
        Ok(Features(u64::from_ne_bytes(bytes)))
    }

    /// Returns true if the driver copies data of requests on demand, which this crate is built on.
    pub fn can_copy(self) -> bool {
        self.0 & USER_COPY != 0
    }

    /// Returns true if a device can outlive its server.
    pub fn can_recover(self) -> bool {
        self.0 & USER_RECOVERY != 0 && self.0 & REISSUE != 0
    }
}

/// Returns a known fault of the driver in the kernel `release`, as `uname -r` prints it.
pub fn known_fault(release: &str) -> Option<&'static str> {
    (release.starts_with("6.17.") && release.contains("azure"))
        .then_some("adding a device crashes this kernel (actions/runner-images#14175)")
}

/// State of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no block device.
    Dead,
    /// It serves requests.
    Live,
    /// Its server died: requests wait.
    Quiesced,
    /// A state of a newer driver.
    Other(u16),
}

/// Why a device could not be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The driver is too old.
    #[error(
        "this kernel's ublk driver does not copy data on demand (UBLK_F_USER_COPY): it is older than Linux 6.5"
    )]
    TooOld,
    /// The driver refused.
    #[error("the ublk driver does not add a device: {0}")]
    Driver(io::Error),
}

/// A device of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    number: u32,
    queues: u16,
    depth: u16,
    state: u16,
    pid: i32,
    flags: u64,
    tag: u64,
}

/// Returns the tag of the volume with the folder `path` (FNV-1a).
pub fn tag(path: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    b"braid ".iter().chain(path).fold(0xcbf2_9ce4_8422_2325, step)
}

/// Finds the device with `tag`; `None` if there is none, or no driver.
///
/// # Errors
/// The driver does not tell of a device.
pub fn find(tag: u64) -> io::Result<Option<Device>> {
    for entry in std::fs::read_dir(DEVICES).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("ublkc")?.parse().ok());
        let Some(number) = number else { continue };
        match Device::read(number) {
            Ok(device) if device.tag == tag => return Ok(Some(device)),
            Ok(_) => {}
            // It went away meanwhile.
            Err(error) if error.raw_os_error() == Some(NODEV) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// `ENODEV` and `EBUSY`.
const NODEV: i32 = 19;
const BUSY: i32 = 16;

impl Device {
    /// Adds a device of a volume with `limits`, with at most `queues` queues. If `stays` and the driver can, it outlives
    /// its server.
    ///
    /// # Errors
    /// [`AddError`]; no device is left.
    pub fn add(tag: u64, queues: u16, stays: bool, limits: &Limits) -> Result<Device, AddError> {
        let features = Features::read().map_err(AddError::Driver)?;
        if !features.can_copy() {
            return Err(AddError::TooOld);
        }
        let mut flags = USER_COPY | features.0 & CAN_UPDATE_SIZE;
        if stays && features.can_recover() {
            flags |= USER_RECOVERY | REISSUE;
        }
        let (depth, number, pid) = (DEPTH, u32::MAX, -1);
        let wish = Device { number, queues, depth, state: 0, pid, flags, tag };
        let mut bytes = wish.to_bytes();
        command(ADD, u32::MAX, 0, &mut bytes, SHORT).map_err(AddError::Driver)?;
        let device = Device::of_bytes(&bytes);
        let mut wishes = params::encode(limits);
        let set = command(SET_PARAMS, device.number, 0, &mut wishes, SHORT);
        let set = set.inspect_err(|_| drop(device.delete()));
        set.map(|()| device).map_err(AddError::Driver)
    }

    /// Reads device `number`.
    ///
    /// # Errors
    /// `ENODEV` if there is none.
    pub fn read(number: u32) -> io::Result<Device> {
        let mut bytes = [0; LEN];
        command(GET_INFO, number, 0, &mut bytes, SHORT)?;
        Ok(Device::of_bytes(&bytes))
    }

    fn to_bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.queues.to_ne_bytes());
        put(2, &self.depth.to_ne_bytes());
        put(8, &MOST_BYTES.to_ne_bytes());
        put(12, &self.number.to_ne_bytes());
        put(16, &self.pid.to_ne_bytes());
        put(24, &self.flags.to_ne_bytes());
        put(32, &self.tag.to_ne_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8; LEN]) -> Device {
        let short = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Device {
            queues: short(0),
            depth: short(2),
            state: short(4),
            number: word(12),
            pid: word(16).cast_signed(),
            flags: long(24),
            tag: long(32),
        }
    }

    /// Path of the block device.
    pub fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.number).into()
    }

    /// Path of the device by which it is served.
    pub fn char_path(&self) -> PathBuf {
        format!("/dev/ublkc{}", self.number).into()
    }

    /// Number of its queues.
    pub fn queues(&self) -> u16 {
        self.queues
    }

    /// Number of tags of each queue.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// State when it was read.
    pub fn state(&self) -> State {
        match self.state {
            0 => State::Dead,
            1 => State::Live,
            2 => State::Quiesced,
            other => State::Other(other),
        }
    }

    /// Process that serves it, or served it last.
    pub fn process(&self) -> Option<u32> {
        u32::try_from(self.pid).ok().filter(|pid| *pid > 0)
    }

    /// Returns true if it outlives its server.
    pub fn stays(&self) -> bool {
        self.flags & USER_RECOVERY != 0 && self.flags & REISSUE != 0
    }

    /// Returns true if this crate can serve it.
    pub fn is_servable(&self) -> bool {
        self.flags & USER_COPY != 0 && self.queues > 0 && (1..=4096).contains(&self.depth)
    }

    /// Reads its parameters.
    ///
    /// # Errors
    /// The error of the driver; `InvalidData` if the parameters make no sense.
    pub fn known(&self) -> io::Result<Known> {
        let mut bytes = params::to_read();
        command(GET_PARAMS, self.number, 0, &mut bytes, SHORT)?;
        params::decode(&bytes).ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Makes the block device. All tags of all queues must be waited for, or soon be; requests come before this returns.
    ///
    /// # Errors
    /// The error of the driver; `TimedOut` if that takes more than ten minutes.
    pub fn start(&self) -> io::Result<()> {
        command(START, self.number, u64::from(std::process::id()), &mut [], START_LIMIT)
    }

    /// Prepares a device whose server died for another one. The driver may still be about to notice that death, which is
    /// waited for: if the server had requests of all tags, it looks only when these are half a minute old.
    ///
    /// # Errors
    /// `EBUSY` if a process still has it open; `EINVAL` if an earlier preparation was not followed by
    /// [`Device::end_recovery`]; what else the driver returns.
    pub fn begin_recovery(&self) -> io::Result<()> {
        let deadline = Instant::now() + NOTICE;
        loop {
            match command(BEGIN_RECOVERY, self.number, 0, &mut [], SHORT) {
                Err(error) if error.raw_os_error() == Some(BUSY) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => return other,
            }
        }
    }

    /// Lets the requests of a device go on, as [`Device::start`] does for a new one.
    ///
    /// # Errors
    /// As [`Device::start`].
    pub fn end_recovery(&self) -> io::Result<()> {
        command(END_RECOVERY, self.number, u64::from(std::process::id()), &mut [], START_LIMIT)
    }

    /// Tells clients of another size, if the driver can. Returns false if it cannot.
    ///
    /// # Errors
    /// The error of the driver.
    pub fn update_size(&self, bytes: u64) -> io::Result<bool> {
        if self.flags & CAN_UPDATE_SIZE == 0 {
            return Ok(false);
        }
        command(UPDATE_SIZE, self.number, bytes / 512, &mut [], SHORT).map(|()| true)
    }

    /// Takes the block device away. Requests under way are answered first, if there is a server; if there is none, they
    /// fail.
    ///
    /// # Errors
    /// The error of the driver; `TimedOut` if requests are not answered for half a minute.
    pub fn stop(&self) -> io::Result<()> {
        command(STOP, self.number, 0, &mut [], LONG)
    }

    /// Takes the device away. Its queues must be closed.
    ///
    /// # Errors
    /// As [`Device::stop`].
    pub fn delete(&self) -> io::Result<()> {
        match command(DELETE, self.number, 0, &mut [], LONG) {
            Err(error) if error.raw_os_error() == Some(NODEV) => Ok(()),
            other => other,
        }
    }
}

fn command(
    command: u32,
    device: u32,
    data: u64,
    bytes: &mut [u8],
    limit: Duration,
) -> io::Result<()> {
    call(Call { command, device, data }, bytes, limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_have_the_numbers_of_the_driver() {
        assert_eq!(ADD, 0xc020_7504);
        assert_eq!(GET_FEATURES, 0x8020_7513);
    }

    #[test]
    fn faulty_kernels_are_known() {
        assert!(known_fault("6.17.0-1015-azure").is_some());
        assert!(known_fault("6.17.0-8-generic").is_none() && known_fault("6.12.117").is_none());
    }

    #[test]
    fn tags_differ() {
        assert_ne!(tag(b"/run/braid/a.mount"), tag(b"/run/braid/b.mount"));
        assert_eq!(tag(b""), tag(b""));
    }

    proptest! {
        #[test]
        fn a_device_is_what_its_bytes_say(bytes: [u8; LEN]) {
            let device = Device::of_bytes(&bytes);
            let again = Device::of_bytes(&Device { state: 0, ..device }.to_bytes());
            prop_assert_eq!(again, Device { state: 0, ..device });
        }
    }
}
