//! This machine: its name, its time zone, the time, randomness.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use braid_md::{Timestamp, Uuid};

use crate::failure::{Context, Failure};

/// The machine's name, which mdadm puts before the names of arrays that are made here.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The time.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: since.as_secs(), micros: since.subsec_micros() }
}

/// A new identifier.
///
/// # Errors
/// The kernel has no randomness to give.
pub fn random_uuid() -> Result<Uuid, Failure> {
    let mut bytes = [0; 16];
    // Up to 256 bytes come whole, or not at all.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .context("cannot make a random identifier")?;
    Ok(Uuid(bytes))
}

/// Returns a random number.
///
/// # Errors
/// The kernel has no randomness to give.
pub fn random_number() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}

/// The path of the block device of a major and a minor number, if there is one.
pub fn block_device_name(major: u32, minor: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    let path = PathBuf::from("/dev").join(name);
    path.exists().then(|| path.display().to_string())
}
