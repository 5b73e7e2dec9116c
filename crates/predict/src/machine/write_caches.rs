//! The write caches of a machine's disks.

use super::{Machine, Member};

impl Machine {
    /// Bytes that the write caches of its disks take.
    pub fn write_caches(&self) -> u64 {
        self.members.iter().map(|member| member.device.write_cache()).sum()
    }

    /// Waits until all that write caches hold is on the media, as a flush does.
    ///
    /// # Panics
    /// If anything else is under way.
    pub(crate) fn drain(&mut self) {
        assert!(self.events.is_empty(), "a machine is drained when nothing else is under way");
        let now_ns = self.now_ns;
        let drained = self.members.iter_mut().map(|member| member.device.drained_ns(now_ns));
        self.now_ns = drained.max().unwrap_or(now_ns);
    }

    /// Has the write caches of its disks be so small that requests of `request` bytes fill them soon, and answers
    /// how many fill them all. A cache chooses among as many as its disk's queue is deep: what lies behind twice as
    /// many makes it no faster.
    pub(crate) fn limit_write_caches(&mut self, request: u64) -> u64 {
        let limit = |member: &mut Member| {
            let most = 2 * member.device.queue_depth() as u64 * request;
            member.device.limit_write_cache(most).div_ceil(request)
        };
        self.members.iter_mut().map(limit).sum()
    }
}
