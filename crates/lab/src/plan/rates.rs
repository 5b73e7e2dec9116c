//! Rates of a subject, as far as the campaign tells: a model's rates are known beforehand, those of an
//! unmeasured device are assumed.
//!
//! ```text
//!   raid0(a, b)   twice the slowest      raid1, linear   the slowest
//!   raid5(a, b, c) twice the slowest     raid10, n = 2   half of the members, times the slowest
//! ```
//!
//! Members on one modelled bus share its rate. The rates are of long requests in sequence; the overhead of a
//! request is not included.

use std::collections::BTreeMap;

use braid_level::Level;
use braid_model::Profile;
use braid_stack::{Model, Node, Stack};

/// Assumed rate of an unmeasured device, in bytes per second. The progress line of a run uses measured times
/// instead.
pub(super) const ASSUMED_RATE: f64 = 100e6;

/// Rates in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    pub(super) read: f64,
    pub(super) write: f64,
    /// True if nothing is assumed.
    pub(super) are_known: bool,
}

impl Rates {
    pub(super) const ASSUMED: Self =
        Self { read: ASSUMED_RATE, write: ASSUMED_RATE, are_known: false };

    /// Returns the rates of a stack; if a rate is assumed, the whole is no faster than one assumed device.
    pub(super) fn of(stack: &Stack) -> Self {
        let mut on_bus: BTreeMap<&str, u32> = BTreeMap::new();
        for leaf in stack.leaves() {
            if let Node::Model(Model { bus: Some(bus), .. }) = &leaf.node {
                *on_bus.entry(bus).or_default() += 1;
            }
        }
        let rates = of(stack, &on_bus);
        let most = if rates.are_known { f64::INFINITY } else { ASSUMED_RATE };
        Self { read: rates.read.min(most), write: rates.write.min(most), ..rates }
    }

    fn times(self, read: f64, write: f64) -> Self {
        Self { read: self.read * read, write: self.write * write, ..self }
    }
}

fn of(stack: &Stack, on_bus: &BTreeMap<&str, u32>) -> Rates {
    let members = stack.members();
    if members.is_empty() {
        return match &stack.node {
            Node::Model(model) => of_model(model, on_bus),
            _ => Rates::ASSUMED,
        };
    }
    let there = members.iter().filter(|member| !member.is_missing());
    let slowest = there.map(|member| of(member, on_bus)).reduce(|one, other| Rates {
        read: one.read.min(other.read),
        write: one.write.min(other.write),
        are_known: one.are_known && other.are_known,
    });
    let Some(slowest) = slowest else { return Rates::ASSUMED };
    let shape = stack.shape().filter(|shape| shape.level != Level::Linear);
    let data = shape.and_then(|shape| shape.data_members(members.len())).unwrap_or(1.0);
    match stack.node {
        Node::Raid10(_) => slowest.times(members.len() as f64, data),
        _ => slowest.times(data, data),
    }
}

/// Returns the profile, if the name or file exists; a run reports its faults.
fn profile_of(model: &Model) -> Option<Profile> {
    match model.profile_file() {
        Some(path) => Profile::parse(&std::fs::read_to_string(path).ok()?).ok(),
        None => braid_model::profile(&model.profile),
    }
}

fn of_model(model: &Model, on_bus: &BTreeMap<&str, u32>) -> Rates {
    let profile = profile_of(model);
    let given = model.overrides;
    let own = profile.as_ref().and_then(Profile::long_rates);
    let rate = |given: Option<braid_stack::Rate>, own: Option<f64>| {
        given.map(|rate| rate.bytes_per_second() as f64).or(own)
    };
    let sharing = model.bus.as_deref().and_then(|bus| on_bus.get(bus)).copied().unwrap_or(1);
    let bus = profile.as_ref().map(Profile::usual_bus).unwrap_or_default();
    let most = |of_bus: u64| {
        let rate = rate(given.bus_rate, Some(of_bus as f64)).filter(|rate| *rate > 0.0);
        rate.map_or(f64::INFINITY, |rate| rate / f64::from(sharing.max(1)))
    };
    match (rate(given.read, own.map(|own| own.0)), rate(given.write, own.map(|own| own.1))) {
        (Some(read), Some(write)) => {
            let (most_in, most_out) = (most(bus.rate_in), most(bus.rate_out));
            Rates { read: read.min(most_in), write: write.min(most_out), are_known: true }
        }
        _ => Rates::ASSUMED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(text: &str) -> (f64, f64, bool) {
        let rates = Rates::of(&Stack::parse(text).unwrap());
        (rates.read, rates.write, rates.are_known)
    }

    #[test]
    fn a_model_is_as_fast_as_it_says_or_its_profile_does() {
        assert_eq!(rates("model(usb-flash, size=1G)"), (23.38e6, 14e6, true));
        assert_eq!(rates("model(usb-flash, size=1G, write=9MB/s)"), (23.38e6, 9e6, true));
        assert_eq!(rates("model(nobody, size=1G)"), (ASSUMED_RATE, ASSUMED_RATE, false));
        assert_eq!(rates("model(./nobody.toml, size=1G)"), (ASSUMED_RATE, ASSUMED_RATE, false));
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        let own = include_str!("../../../model/profiles/usb-flash.toml");
        assert!(own.contains("write_rate = [14_000_000,"), "{own}");
        std::fs::write(&file, own.replace("write_rate = [14_000_000,", "write_rate = [7e6,"))
            .unwrap();
        let of_file = rates(&format!("model({}, size=1G)", file.path().display()));
        assert_eq!(of_file, (23.38e6, 7e6, true));
        assert_eq!(rates("./a"), (ASSUMED_RATE, ASSUMED_RATE, false));
    }

    #[test]
    fn levels_and_buses_make_of_members_what_they_do() {
        let stick = |bus: &str| format!("model(usb-flash, size=1G, read=20MB/s, write=9MB/s{bus})");
        let [alone, shared] = ["", ", bus=b, bus_rate=30MB/s"].map(stick);
        assert_eq!(rates(&format!("raid0({alone}, {alone})")), (40e6, 18e6, true));
        assert_eq!(rates(&format!("raid0({shared}, {shared})")), (30e6, 18e6, true));
        assert_eq!(rates(&format!("raid1({alone}, {alone})")), (20e6, 9e6, true));
        assert_eq!(rates(&format!("raid5({alone}, {alone}, {alone})")), (40e6, 18e6, true));
        assert_eq!(rates(&format!("raid1({alone}, ./a)")), (20e6, 9e6, false));
    }
}
