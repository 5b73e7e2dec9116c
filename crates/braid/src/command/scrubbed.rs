//! What a scrub found, in words: for `scrub --wait` and for `status`.

use crate::control::ArrayStatus;

/// How many places are named.
const PLACES: usize = 8;

/// What the last pass of `array` found, in one line: bytes that `differ`, or `differed`.
pub(super) fn found(array: &ArrayStatus, mismatch_bytes: u64, differ: &str) -> String {
    let parity = array.has_parity();
    if mismatch_bytes == 0 {
        return if parity { "data and parity agree" } else { "all copies agree" }.to_owned();
    }
    let places: Vec<String> =
        array.mismatch_offsets.iter().take(PLACES).map(ToString::to_string).collect();
    let more = if array.mismatch_offsets.len() > PLACES { ", …" } else { "" };
    let of = if parity { " of each member's data" } else { "" };
    let mut text = format!("{mismatch_bytes} bytes {differ}, at {}{more}{of}", places.join(", "));
    for suspect in &array.suspects {
        let member = match &suspect.member {
            Some(member) => format!("{member} (role {})", suspect.role),
            None => format!("role {}", suspect.role),
        };
        text = format!("{text}; {member} alone explains {} of them", suspect.bytes);
    }
    if array.unexplained_bytes > 0 {
        text = format!("{text}; no member alone explains {}", array.unexplained_bytes);
    }
    text
}

/// What `--repair` would do about it.
pub(super) fn repair_in_words(array: &ArrayStatus) -> &'static str {
    match array.level.as_str() {
        "raid4" | "raid5" => "makes parity fit the data: which of the two was right is not known",
        "raid6" => "writes what the member that explains a mismatch should have; the rest stays",
        _ => "makes the copies the same as the first",
    }
}
