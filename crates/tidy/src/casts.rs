//! Casts that can lose a number.
//!
//! clippy's `cast_possible_truncation` knows the types. Of the 137 casts that it names in mem, block, array,
//! parity, md and engine 63 are `u64 as usize`, which loses nothing on the 64 bits that braid runs on, and
//! which cannot be told apart for it. So this reads text: it names `as` to an integer of 32 bits or fewer,
//! 81 in the same crates, among them some that widen a smaller one.

use crate::Rule;
use crate::panics::counted;
use crate::ratchet::ratchet;
use crate::source::{Source, shipped_files};

const RULE: Rule = Rule {
    name: "no `as` to an integer of 32 bits or fewer",
    why: "`as` drops the high bits without a word. A sector number, a role or a length that is cut \
          names another place on a user's disk.",
    comply: "`u32::from` where nothing can be lost, `u32::try_from` with an error or a reason where \
             something can, `to_le_bytes` to take a number apart.",
};

const NARROW: [&str; 6] = ["u8", "u16", "u32", "i8", "i16", "i32"];

pub(crate) fn narrow(file: &Source) -> Vec<usize> {
    let is_narrow = |at: &usize| {
        let word = file.code[at + 4..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
        word.is_some_and(|word| NARROW.contains(&word))
    };
    file.code.match_indices(" as ").map(|(at, _)| at).filter(is_narrow).collect()
}

#[test]
fn casts_lose_nothing() {
    RULE.hold(&counted(shipped_files(), narrow, &ratchet().narrow, "narrow casts"));
}

#[test]
fn a_narrow_cast_is_found() {
    let found = |text| narrow(&Source::new("p", "a.rs", text)).len();
    assert_eq!(found("let a = b as u32; let c = d as u8 as i16;"), 3);
    assert_eq!(found("let a = b as u64; use x as u8_of; // c as u8"), 0);
}
