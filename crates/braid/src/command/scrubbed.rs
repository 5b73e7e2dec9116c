//! Text about the result of a scrub, for `scrub --wait` and for `status`.
//!
//! The text describes the last scrub, even if other passes ran since.
//!
//! Only compared data can agree. A single copy, data reconstructed from parity for a missing
//! member, and unreadable data were not compared.

use braid_level::raid10::Columns;
use braid_level::{Level, Raid10Layout};
use jiff::Timestamp;

use braid_service::control::{
    ArrayStatus, MismatchMember, MismatchStatus, ScrubPlaceStatus, ScrubStatus,
};

/// Maximum number of listed places.
const PLACES: usize = 8;

/// Returns a line with the result of the array's last pass: bytes that `differ`, or `differed`.
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
    let starts: Vec<u64> = scrub.mismatches.iter().map(|place| place.offset_bytes).collect();
    let (bytes, places) = (scrub.mismatch_bytes, listed(&starts, u64::to_string));
    let mut text = format!("{bytes} bytes {differ}, at {places}{of}");
    for suspect in &scrub.suspects {
        let member = called(suspect.role, suspect.member.as_deref());
        let proved = match parity {
            true => format!("alone explains {} of them, if one member is wrong", suspect.bytes),
            false => format!("contradicts most copies in {} of them", suspect.bytes),
        };
        text = format!("{text}; {member} {proved}");
    }
    match scrub.unproved_bytes {
        0 => text,
        unproved => format!("{text}; which member is wrong is not proved of {unproved}"),
    }
}

fn called(role: u16, member: Option<&str>) -> String {
    member.map_or(format!("role {role}"), |member| format!("{member} (role {role})"))
}

/// Which members differ at which bytes, a line for each of the first places, and one for the rest.
pub(super) fn places(array: &ArrayStatus, scrub: &ScrubStatus) -> Vec<String> {
    let shown = &scrub.mismatches[..scrub.mismatches.len().min(PLACES)];
    let place = |place: &MismatchStatus| {
        let at = |from: &u64| format!("{from} to {}", from + place.length_bytes);
        let of_array: Vec<String> = place.array_offsets.iter().map(at).collect();
        let bytes = match &of_array[..] {
            [] => "parity".to_owned(),
            all => format!("bytes {} of the array", all.join(", ")),
        };
        format!("{bytes}: {}", members_of(place, array.has_parity()))
    };
    let mut lines: Vec<String> = shown.iter().map(place).collect();
    let told: u64 = shown.iter().map(|place| place.length_bytes).sum();
    match scrub.mismatch_bytes.saturating_sub(told) {
        0 => {}
        rest => lines.push(format!("{rest} more bytes, which `--json` lists in part")),
    }
    lines
}

/// The members that differ at `place`, in words, each with the offset of its bytes on it.
fn members_of(place: &MismatchStatus, has_parity: bool) -> String {
    let all = |is_meant: &dyn Fn(&&MismatchMember) -> bool| {
        let meant = place.members.iter().filter(is_meant).map(|one| {
            format!("{} from {}", called(one.role, one.member.as_deref()), one.offset_bytes)
        });
        meant.collect::<Vec<_>>().join(", ")
    };
    if place.is_proved() {
        return format!("wrong: {}", all(&|one| one.wrong));
    }
    if has_parity {
        return format!("not proved, one or more of {}", all(&|_| true));
    }
    let groups = place.members.iter().map(|one| one.group).max().map_or(0, |last| last + 1);
    let groups: Vec<String> = (0..groups).map(|group| all(&|one| one.group == group)).collect();
    format!("not proved, {}", groups.join(" against "))
}

/// Returns a line with the progress of a paused scrub.
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
fn listed<T>(places: &[T], in_words: impl Fn(&T) -> String) -> String {
    let first: Vec<String> = places.iter().take(PLACES).map(in_words).collect();
    let more = if places.len() > PLACES { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

/// The first of many places, given by offset and length, each from its first byte to its end.
pub(super) fn ranges(places: &[(u64, u64)]) -> String {
    listed(places, |(offset, len)| format!("{offset} to {}", offset.saturating_add(*len)))
}

/// Returns a line for each kind of data that a scrub did not compare; empty if it compared all.
/// `array` may have changed since the scrub ended.
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
            ranges(&scrub.unread_ranges)
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
