//! The number of events in a run.

/// The events in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lives that began.
    pub lives: u64,
    /// Crashes that ended one.
    pub crashes: u64,
    /// Crashes that were tried beside.
    pub probes: u64,
    /// The number of both after which the array was refused, rightly.
    pub refused: u64,
    /// Faults and orders that were placed.
    pub acts: u64,
    /// Virtual time, in nanoseconds.
    pub virtual_ns: u64,
    /// Requests of disks.
    pub disk_requests: u64,
}

impl Report {
    /// Both.
    #[must_use]
    pub fn and(self, other: Report) -> Report {
        Report {
            lives: self.lives + other.lives,
            crashes: self.crashes + other.crashes,
            probes: self.probes + other.probes,
            refused: self.refused + other.refused,
            acts: self.acts + other.acts,
            virtual_ns: self.virtual_ns + other.virtual_ns,
            disk_requests: self.disk_requests + other.disk_requests,
        }
    }
}
