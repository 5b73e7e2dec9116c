//! The effect of a run on members and buses: their working time, and their wear.

use braid_model::Wear;

use super::Machine;

impl Machine {
    /// The wear by writes of each member that wears.
    pub fn wear(&self) -> impl Iterator<Item = Option<Wear>> + '_ {
        self.members.iter().map(|member| member.device.wear())
    }

    /// The share of the time so far in which each bus moved bytes, from 0 to 1; 0 for one that is never the
    /// limit.
    pub fn bus_shares(&self) -> impl Iterator<Item = f64> + '_ {
        let of = |bytes: u64, rate: u64| if rate == 0 { 0.0 } else { bytes as f64 / rate as f64 };
        self.buses.iter().map(move |bus| {
            let seconds =
                of(bus.moved.0, bus.profile.rate_in) + of(bus.moved.1, bus.profile.rate_out);
            seconds / (self.now_ns.max(1) as f64 / 1e9)
        })
    }

    /// The shares of the time so far in which each member was at work, and in which a disk's head was moving,
    /// from 0 to 1.
    pub fn member_shares(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let share = |ns: u64| (ns as f64 / self.now_ns.max(1) as f64).min(1.0);
        self.members.iter().map(move |member| {
            let (busy_ns, moving_ns) = member.device.busy_ns();
            (share(busy_ns), share(moving_ns))
        })
    }
}
