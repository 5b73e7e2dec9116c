//! The place of a stack's first bytes on its members: the bytes that each member gets when they are written
//! once. Pure; sizes of leaves are an argument.
//!
//! ```text
//!   raid0(a, b), chunk 1, of 4:   a 1 . 3 .       a 2, b 2
//!                                 b . 2 . 4
//!   linear(a, b), a holds 4:      a 1 2 3 4       a 4, b 1
//! ```
//!
//! In whole stripes: of a part of a stripe each member gets the same. Superblocks, bitmaps and logs are not
//! counted, and a member's bytes are taken to be its first. `braid-level` defines the levels.

use std::collections::BTreeMap;

use braid_level::size::round_down;
use braid_level::{Level, Shape};
use braid_stack::{Node, Stack};

/// The known sizes of leaves, in bytes.
pub(super) type Sizes<'s> = &'s dyn Fn(&Stack) -> Option<u64>;

/// Returns the bytes of a stack, without superblocks; `None` if they depend on an unknown leaf, or on the
/// members' metadata (`md`).
pub(super) fn capacity(stack: &Stack, sizes: Sizes<'_>) -> Option<u64> {
    let members = stack.members();
    if members.is_empty() {
        return sizes(stack);
    }
    let member = |member: &Stack| match member.is_missing() {
        true => Some(None),
        false => capacity(member, sizes).map(Some),
    };
    let members: Vec<Option<u64>> = members.iter().map(member).collect::<Option<_>>()?;
    stack.shape()?.size_over(&members)
}

/// Returns the bytes that each leaf gets when the first `bytes` are written once, by its text. A leaf that
/// occurs twice gets both.
pub(super) fn spread(stack: &Stack, bytes: u64, sizes: Sizes<'_>) -> BTreeMap<String, u64> {
    let mut shares = BTreeMap::new();
    add(stack, bytes, sizes, &mut shares);
    shares
}

/// Returns the number of members of a linear array beyond its first `bytes`, and the number of all; `None` for
/// another level. A leaf without a size in its text is taken to hold `each`; no file is read.
pub fn unreached(stack: &Stack, bytes: u64, each: Option<u64>) -> Option<(usize, usize)> {
    if stack.shape()?.level != Level::Linear {
        return None;
    }
    let sizes = |leaf: &Stack| size_that_is_said(leaf).or(each);
    capacity(stack, &sizes)?;
    let shares = divide(stack, bytes, &sizes);
    Some((shares.iter().filter(|share| **share == 0).count(), shares.len()))
}

/// Returns the size of a leaf if its text has it.
pub(super) fn size_that_is_said(leaf: &Stack) -> Option<u64> {
    match &leaf.node {
        Node::Ram(ram) => Some(ram.size.0),
        Node::Model(model) => Some(model.size.0),
        Node::File(file) => file.length.map(|length| length.0),
        _ => None,
    }
}

fn add(stack: &Stack, bytes: u64, sizes: Sizes<'_>, shares: &mut BTreeMap<String, u64>) {
    if stack.is_missing() {
        return;
    }
    let members = stack.members();
    if members.is_empty() {
        *shares.entry(crate::facts::leaf_text(stack)).or_default() += bytes;
        return;
    }
    for (member, bytes) in members.iter().zip(divide(stack, bytes, sizes)) {
        add(member, bytes, sizes, shares);
    }
}

/// Returns the share of each member in the first `bytes`.
fn divide(stack: &Stack, bytes: u64, sizes: Sizes<'_>) -> Vec<u64> {
    let members = stack.members();
    let width = members.len();
    let data = |shape: Shape| Some((shape, shape.data_members(width)?));
    // No member gets more than all.
    let Some((shape, data)) = stack.shape().and_then(data) else { return vec![bytes; width] };
    if shape.level.is_redundant() {
        let together = (bytes as f64 * width as f64 / data) as u64;
        return (0..width as u64).map(|place| (together + place) / width as u64).collect();
    }
    // An unknown size is taken to be large enough.
    let room = |member| round_down(capacity(member, sizes).unwrap_or(u64::MAX), shape.chunk);
    let rooms: Vec<u64> = members.iter().map(room).collect();
    let mut order: Vec<usize> = (0..width).collect();
    if shape.level == Level::Raid0 {
        order.sort_by_key(|member| rooms[*member]);
    }
    let (mut shares, mut left) = (vec![0; width], bytes);
    for (before, member) in order.into_iter().enumerate() {
        // In a stripe all members that are not full yet get the same; else one is filled after the other.
        let at_once = if shape.level == Level::Raid0 { width - before } else { 1 };
        shares[member] = left.div_ceil(at_once as u64).min(rooms[member]);
        left -= shares[member];
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the size in KiB at the end of a leaf's name: `./a64`.
    fn size(leaf: &Stack) -> Option<u64> {
        let text = leaf.to_string();
        let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.parse::<u64>().ok().map(|kib| kib << 10)
    }

    fn kib(text: &str, kib: u64) -> Vec<(String, u64)> {
        let shares = spread(&Stack::parse(text).unwrap(), kib << 10, &size);
        shares.into_iter().map(|(name, bytes)| (name, bytes >> 10)).collect()
    }

    fn two(a: &str, of_a: u64, b: &str, of_b: u64) -> Vec<(String, u64)> {
        vec![(a.to_owned(), of_a), (b.to_owned(), of_b)]
    }

    #[test]
    fn each_level_puts_its_bytes_where_it_does() {
        assert_eq!(kib("raid1(./a, ./b)", 8), two("./a", 8, "./b", 8));
        assert_eq!(kib("raid0(chunk=4K, ./a, ./b)", 20), two("./a", 10, "./b", 10));
        // A small region lies on the first member alone.
        assert_eq!(kib("linear(./a64, ./b64)", 20), two("./a64", 20, "./b64", 0));
        assert_eq!(kib("linear(./a64, ./b64)", 100), two("./a64", 64, "./b64", 36));
        // The part behind the shorter member's end is on the longer one alone.
        assert_eq!(kib("raid0(chunk=4K, ./a64, ./b16)", 60), two("./a64", 44, "./b16", 16));
        assert_eq!(kib("raid5(chunk=4K, ./a, ./b, ./c)", 16)[0].1, 8);
        assert_eq!(kib("raid6(chunk=4K, ./a, ./b, ./c, ./d)", 16)[0].1, 8);
        let nested = kib("raid0(chunk=4K, raid1(./a, ./b), linear(./c4, ./d))", 16);
        let shares: Vec<u64> = nested.iter().map(|(_, share)| *share).collect();
        assert_eq!(shares, [8, 8, 4, 4]);
    }

    #[test]
    fn copies_are_counted_by_the_layout() {
        let of = |layout: &str, members: &str, bytes| {
            let text = format!("raid10(chunk=4K, layout={layout}, {members})");
            kib(&text, bytes).into_iter().map(|(_, share)| share).collect::<Vec<_>>()
        };
        assert_eq!(of("n3", "./a, ./b, ./c", 12), [12, 12, 12]);
        assert_eq!(of("n2", "./a, ./b, ./c, ./d", 8), [4, 4, 4, 4]);
        assert_eq!(of("f2", "./a, ./b, ./c", 12), [8, 8, 8]);
        assert_eq!(of("o2", "./a, missing, ./c", 12), [8, 8]);
    }

    #[test]
    fn who_is_missing_is_not_written() {
        assert_eq!(kib("raid1(./a, missing)", 8), [("./a".to_owned(), 8)]);
    }

    #[test]
    fn capacity_is_what_the_level_has() {
        let of = |text: &str| capacity(&Stack::parse(text).unwrap(), &size).map(|size| size >> 10);
        assert_eq!(of("linear(./a64, ./b16)"), Some(80));
        assert_eq!(of("raid0(chunk=32K, ./a64, ./b40)"), Some(96));
        assert_eq!(of("raid1(./a64, ./b16, missing)"), Some(16));
        assert_eq!(of("raid10(chunk=4K, layout=n3, ./a12, ./b12, ./c12, ./d12)"), Some(16));
        assert_eq!(of("raid6(chunk=4K, ./a12, ./b12, missing, ./d12)"), Some(24));
        assert_eq!(of("raid0(./a64, ./unknown)"), None);
        assert_eq!(of("md(./a64, ./b64)"), None);
    }

    proptest! {
        /// Without redundancy each byte lies on one member; with copies, on as many as there are copies.
        #[test]
        fn nothing_is_lost_and_nothing_is_made_up(bytes in 0_u64..2_000_000, members in 2_usize..7) {
            let names: Vec<String> = (0..members).map(|index| format!("./{}", index)).collect();
            let names = names.join(", ").replace("./", "./m");
            for (level, copies) in [
                ("linear(", 1),
                ("raid0(chunk=8K, ", 1),
                ("raid1(", members as u64),
                ("raid10(chunk=8K, layout=n2, ", 2),
                ("raid10(chunk=8K, layout=f2, ", 2),
            ] {
                let stack = Stack::parse(&format!("{level}{names})")).unwrap();
                let shares = spread(&stack, bytes, &|_| Some(1 << 30));
                prop_assert_eq!(shares.values().sum::<u64>(), bytes * copies, "{}", level);
            }
        }
    }
}
