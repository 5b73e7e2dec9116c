//! Orders that need no more words, and that a volume would carry out in its present state. Pure.

use braid_control::{ArrayStatus, CacheOrder, Order, Status, WholeOrder};
use serde::Serialize;

/// An order that can be given as it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offer {
    /// Text of a button.
    pub(crate) label: &'static str,
    /// The member that the order is about.
    pub(crate) member: Option<String>,
    pub(crate) order: Order,
}

/// Returns the orders for the members of an array.
fn of_members(array: &ArrayStatus, named: Option<&String>) -> Vec<Offer> {
    let offer =
        |label, member: &str, order| Offer { label, member: Some(member.to_owned()), order };
    let named = || named.cloned();
    let mut all = Vec::new();
    for one in &array.members {
        let member = || one.member.clone();
        if one.state != "faulty" && !one.needed {
            let order = Order::Fail { member: member(), array: named() };
            all.push(offer("Take out", &one.member, order));
        }
        if matches!(one.state.as_str(), "faulty" | "spare") {
            let order = Order::Remove { member: member(), array: named() };
            all.push(offer("Remove", &one.member, order));
        }
    }
    for left in array.left_out.iter().filter(|_| array.uuid.is_some()) {
        let (member, again) = (left.member.clone().into(), left.by_bitmap);
        let order = Order::Add { member, force: false, again, write_mostly: false, array: named() };
        all.push(offer("Take in again", &left.member, order));
    }
    all
}

/// Returns the orders that can be given now as they are. The volume checks each again when it is given.
pub(crate) fn offers(status: &Status) -> Vec<Offer> {
    let mut all = Vec::new();
    let mut offer = |is_offered: bool, label, order| {
        all.extend(is_offered.then_some(Offer { label, member: None, order }));
    };
    let redundant = || status.arrays.iter().filter(|array| array.is_redundant());
    let is_writable = !status.device.read_only && redundant().next().is_some();
    let scrub = |repair, cancel| Order::Scrub { repair, force: false, cancel, array: None };
    let runs = redundant().any(|array| array.requested.is_some());
    offer(is_writable && !runs, "Check copies", scrub(false, false));
    offer(is_writable && !runs, "Check and repair", scrub(true, false));
    offer(is_writable && runs, "End the scrub", scrub(false, true));
    let locked = status.device.locked;
    let is_ram = !status.rams.is_empty();
    offer(!status.caches.is_empty(), "Detach the cache", Order::Cache(CacheOrder::Detach));
    offer(!locked, "Lock", Order::Whole(WholeOrder::Lock { force: false }));
    offer(locked, "Unlock", Order::Whole(WholeOrder::Unlock));
    offer(is_ram && !locked, "Erase", Order::Whole(WholeOrder::Erase { force: false }));
    let members = redundant().filter(|_| is_writable).flat_map(|array| {
        let named = (status.arrays.len() > 1).then_some(&array.called);
        of_members(array, named)
    });
    members.chain(all).collect()
}
