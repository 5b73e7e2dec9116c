//! The constants of kinds of devices.

/// What a device of a kind takes for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Rate of long reads, in bytes per second; at least 1.
    pub read_rate: u64,
    /// Rate of long writes, in bytes per second; at least 1.
    pub write_rate: u64,
    /// Time from a request to its first byte, unless it continues the one before, in
    /// nanoseconds.
    pub latency_ns: u64,
    /// Rate of the bus it hangs on, in bytes per second; 0 for a bus that is never the limit.
    pub bus_rate: u64,
}

/// Every profile, by name.
///
/// `usb-flash`: a USB 2.0 stick of 2008, OCZ Rally2 2GB, as a public test measured one alone:
/// `hdparm -t` 23.38 MB/s, `dd` writing 14.0 MB/s, 3.79 ms a random seek on the faster of two
/// hosts. The rates hold for one request behind the other and so contain what a command costs.
const PROFILES: &[(&str, Profile)] = &[(
    "usb-flash",
    Profile { read_rate: 23_380_000, write_rate: 14_000_000, latency_ns: 3_790_000, bus_rate: 0 },
)];

/// The profile called `name`.
pub fn profile(name: &str) -> Option<Profile> {
    PROFILES.iter().find(|(known, _)| *known == name).map(|(_, profile)| *profile)
}

/// The names of all profiles.
pub fn profile_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}
