//! What a scrub found, in words: for `scrub --wait` and for `status`.
//!
//! "They agree" is said only of what was compared: a copy without another one, data whose parity is
//! needed in place of a member, and what nobody could read, agree with nothing.

use braid_level::raid10::Columns;
use braid_level::{Level, Raid10Layout};
use jiff::Timestamp;

use crate::control::{ArrayStatus, ScrubPlaceStatus, ScrubStatus};

/// How many places are named.
const PLACES: usize = 8;

/// What the last pass of `array` found, in one line: bytes that `differ`, or `differed`.
pub(super) fn found(array: &ArrayStatus, scrub: &ScrubStatus, differ: &str) -> String {
    let parity = array.has_parity();
    if scrub.mismatch_bytes == 0 {
        return match (scrub.compared_bytes, parity) {
            (None, _) => "nothing that differed was found".to_owned(),
            (Some(0), _) => "nothing was compared".to_owned(),
            (Some(_), _) if scrub.unread_bytes > 0 || scrub.listed_bytes > 0 => {
                "what was compared agrees".to_owned()
            }
            (_, true) => "data and parity agree".to_owned(),
            (_, false) => "all copies agree".to_owned(),
        };
    }
    let of = if parity { " of each member's data" } else { "" };
    let (bytes, places) = (scrub.mismatch_bytes, listed(&array.mismatch_offsets));
    let mut text = format!("{bytes} bytes {differ}, at {places}{of}");
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

/// How far a scrub in parts is that does not run now, in one line.
pub(super) fn paused(place: &ScrubPlaceStatus) -> String {
    let percent = place.done_bytes as f64 * 100.0 / place.total_bytes.max(1) as f64;
    let since =
        i64::try_from(place.began_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let since = since.map_or(String::new(), |since| since.strftime(" since %Y-%m-%d").to_string());
    let mut text = format!("{} is at {percent:.1} %{since}", place.kind);
    for (bytes, what) in [(place.mismatch_bytes, "differ"), (place.unread_bytes, "cannot be read")]
    {
        if bytes > 0 {
            text = format!("{text}, {bytes} bytes {what} so far");
        }
    }
    format!("{text}; it goes on with the next `braid scrub --for` or `--until`")
}

/// The first places of many.
fn listed(places: &[u64]) -> String {
    let first: Vec<String> = places.iter().take(PLACES).map(ToString::to_string).collect();
    let more = if places.len() > PLACES { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

/// What a scrub left uncompared, a line each; none if it compared all. `array` is as it was when
/// the scrub ended, or has changed since.
pub(super) fn not_compared(
    array: &ArrayStatus,
    scrub: &ScrubStatus,
    has_just_ended: bool,
) -> Vec<String> {
    let mut left = Vec::new();
    match scrub.compared_bytes {
        Some(0) => {
            left.extend(nothing_to_compare(array).or(Some("nothing was compared".to_owned())))
        }
        Some(_) if has_just_ended => left.extend(nothing_to_compare(array)),
        _ => {}
    }
    if scrub.unread_bytes > 0 {
        left.push(format!(
            "{} bytes could not be read and were not compared, at {}",
            scrub.unread_bytes,
            listed(&scrub.unread_offsets)
        ));
    }
    if scrub.listed_bytes > 0 {
        left.push(format!(
            "{} bytes are listed as bad on a member and were not compared there",
            scrub.listed_bytes
        ));
    }
    left
}

/// Why there is nothing to compare all of `array`'s data, or a part of it, with: members are missing.
fn nothing_to_compare(array: &ArrayStatus) -> Option<String> {
    let missing = array.in_sync.iter().filter(|in_sync| !**in_sync).count();
    if missing == 0 {
        return None;
    }
    let level: Level = array.level.parse().ok()?;
    if let Some(level) = level.with_parity() {
        return (missing >= level.parities()).then(|| {
            "nothing was compared: what parity there is stands for the members that are missing"
                .to_owned()
        });
    }
    // Of a raid10 the copies of some chunks may all be there.
    let disks = array.in_sync.len();
    let columns = match level {
        Level::Raid10 => {
            let layout = Raid10Layout::from_number(array.layout_number).ok()?;
            Some(Columns::new(layout, disks).ok()?)
        }
        _ => None,
    };
    let copies_there = |chunk: u64| match &columns {
        Some(columns) => columns.holders(chunk).filter(|role| array.in_sync[*role]).count(),
        None => disks - missing,
    };
    let alone = (0..disks as u64).filter(|chunk| copies_there(*chunk) < 2);
    match alone.count() as u64 {
        0 => None,
        all if all == disks as u64 => {
            Some("nothing was compared: there is one copy only".to_owned())
        }
        some => Some(format!(
            "{some} of {disks} chunks have one copy only and were not compared with anything"
        )),
    }
}

/// What `--repair` would do about it.
pub(super) fn repair_in_words(array: &ArrayStatus) -> &'static str {
    match array.level.as_str() {
        "raid4" | "raid5" => "makes parity fit the data: which of the two was right is not known",
        "raid6" => "writes what the member that explains a mismatch should have; the rest stays",
        _ => "makes the copies the same as the first",
    }
}
