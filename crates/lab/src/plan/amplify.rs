//! How much of what is written to a stack reaches each of its members.

use std::collections::BTreeMap;

use braid_stack::Stack;

use crate::campaign::Source;
use crate::facts::members_of;

/// Each member as written in the campaign, with the bytes that it gets for one byte written to
/// the subject, in the mean over long writes. A member that stands twice gets both shares.
pub(super) fn members_share(source: &Source) -> BTreeMap<String, f64> {
    let mut shares = BTreeMap::new();
    match source {
        Source::Stack(text) | Source::Kernel(text) => match Stack::parse(text) {
            Ok(stack) => add_shares(&stack, 1.0, &mut shares),
            // The campaign was checked before it was planned.
            Err(_) => return shares,
        },
        _ => {
            for member in members_of(source) {
                *shares.entry(member.text().to_owned()).or_insert(0.0) += 1.0;
            }
        }
    }
    shares
}

fn add_shares(stack: &Stack, share: f64, shares: &mut BTreeMap<String, f64>) {
    let members = stack.members();
    if members.is_empty() {
        *shares.entry(stack.to_string()).or_insert(0.0) += share;
        return;
    }
    let each = share * share_of_one(stack.node.name(), members.len() as f64);
    for member in members {
        add_shares(member, each, shares);
    }
}

/// What one of `n` members gets of each byte. Whole stripes; smaller writes to parity cost more.
fn share_of_one(level: &str, n: f64) -> f64 {
    match level {
        "raid1" => 1.0,
        "raid10" => (2.0 / n).min(1.0),
        "raid4" | "raid5" => 1.0 / (n - 1.0).max(1.0),
        "raid6" => 1.0 / (n - 2.0).max(1.0),
        _ => 1.0 / n,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(text: &str) -> Vec<(String, f64)> {
        members_share(&Source::Stack(text.to_owned())).into_iter().collect()
    }

    #[test]
    fn mirrors_get_all_and_stripes_a_part() {
        assert_eq!(shares("raid1(./a, ./b)"), [("./a".into(), 1.0), ("./b".into(), 1.0)]);
        assert_eq!(shares("raid0(./a, ./b)"), [("./a".into(), 0.5), ("./b".into(), 0.5)]);
        let nested = shares("raid0(raid1(./a, ./b), raid1(./c, ./d))");
        assert_eq!(nested.len(), 4);
        assert!(nested.iter().all(|(_, share)| *share == 0.5));
        assert_eq!(shares("raid5(./a, ./b, ./c)")[0].1, 0.5);
    }
}
