//! Orders that need no more words, and can be given now. Pure.

use braid_control::{CacheOrder, Order, Status, WholeOrder};
use serde::Serialize;

use crate::plan::plan;

/// An order that can be given as it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offer {
    /// What a button says.
    pub(crate) label: &'static str,
    /// The member that it is about.
    pub(crate) member: Option<String>,
    pub(crate) order: Order,
}

/// The orders that can be given now as they are, each of which is possible by [`plan`].
pub(crate) fn offers(status: &Status) -> Vec<Offer> {
    let mut all = Vec::new();
    for array in &status.arrays {
        let named = (status.arrays.len() > 1).then(|| array.called.clone());
        for one in &array.members {
            let (member, array) = (one.member.clone(), named.clone());
            let about = Some(member.clone());
            all.push(Offer {
                label: "Take out",
                member: about.clone(),
                order: Order::Fail { member: member.clone(), array: array.clone() },
            });
            all.push(Offer {
                label: "Remove",
                member: about,
                order: Order::Remove { member, array },
            });
        }
        for left in &array.left_out {
            let order = Order::Add {
                member: left.member.clone().into(),
                force: false,
                again: left.by_bitmap,
                array: named.clone(),
            };
            all.push(Offer { label: "Take in again", member: Some(left.member.clone()), order });
        }
    }
    let scrub = |repair, cancel| Order::Scrub { repair, force: false, cancel, array: None };
    let runs = status.arrays.iter().any(|array| array.requested.is_some());
    let whole = |label, order| Offer { label, member: None, order };
    if !runs {
        all.push(whole("Check copies", scrub(false, false)));
        all.push(whole("Check and repair", scrub(true, false)));
    }
    all.push(whole("End the scrub", scrub(false, true)));
    all.push(whole("Detach the cache", Order::Cache(CacheOrder::Detach)));
    all.push(whole("Lock", Order::Whole(WholeOrder::Lock { force: false })));
    all.push(whole("Unlock", Order::Whole(WholeOrder::Unlock)));
    all.push(whole("Erase", Order::Whole(WholeOrder::Erase { force: false })));
    all.retain(|offer| plan(status, &offer.order).possible);
    all
}
