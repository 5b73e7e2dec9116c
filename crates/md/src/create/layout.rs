//! Layouts as mdadm's `--layout` spells them, and md's numbers.
//!
//! Source: mdadm's manual page (`--layout`), Linux `drivers/md/raid5.h`, `raid0.h`, `raid10.c`.

use super::CreateError;
use crate::Level;
use crate::assembly::Copies;

/// Where raid5's and raid6's parity goes.
const ROTATIONS: [(&str, &str, u32); 6] = [
    ("left-asymmetric", "la", 0),
    ("right-asymmetric", "ra", 1),
    ("left-symmetric", "ls", 2),
    ("right-symmetric", "rs", 3),
    ("parity-first", "parity-first", 4),
    ("parity-last", "parity-last", 5),
];
/// raid6 alone: as other makers' arrays have it, and with Q always on the last member.
const ROTATIONS_OF_RAID6: [(&str, u32); 8] = [
    ("ddf-zero-restart", 8),
    ("ddf-N-restart", 9),
    ("ddf-N-continue", 10),
    ("left-asymmetric-6", 16),
    ("right-asymmetric-6", 17),
    ("left-symmetric-6", 18),
    ("right-symmetric-6", 19),
    ("parity-first-6", 20),
];
/// What raid0 does where members of unequal sizes leave a second zone.
const ZONES: [(&str, u32); 2] = [("original", 1), ("alternate", 2)];

/// md's number of the layout spelled `text`, or of the default: `n2`, left-symmetric, alternate.
///
/// # Errors
/// [`CreateError::Layout`] if the level has no such layout.
pub fn parse_layout(level: Level, text: Option<&str>) -> Result<u32, CreateError> {
    let refused = |choices: &'static str| {
        let layout = text.unwrap_or_default().to_owned();
        CreateError::Layout { level, layout, choices }
    };
    match (level, text) {
        (Level::Linear | Level::Raid1 | Level::Raid4, None) => Ok(0),
        (Level::Linear | Level::Raid1 | Level::Raid4, Some(_)) => Err(refused("none")),
        (Level::Raid0, text) => {
            let text = text.unwrap_or("alternate");
            let found = ZONES.iter().find(|(name, _)| *name == text);
            found.map(|(_, number)| *number).ok_or_else(|| refused("alternate and original"))
        }
        (Level::Raid5 | Level::Raid6, text) => {
            let text = text.unwrap_or("left-symmetric");
            let shared = ROTATIONS.iter().find(|(name, short, _)| text == *name || text == *short);
            let own =
                ROTATIONS_OF_RAID6.iter().find(|(name, _)| level == Level::Raid6 && text == *name);
            shared
                .map(|(_, _, number)| *number)
                .or(own.map(|(_, number)| *number))
                .ok_or_else(|| refused("left-symmetric, left-asymmetric, right-symmetric, …"))
        }
        (Level::Raid10, text) => parse_copies(text.unwrap_or("n2"))
            .map(Copies::number)
            .ok_or_else(|| refused("n2, f2, o2 and the like, with 2 copies or more")),
    }
}

/// `n2`, `near2`, `near=2`, and so on for `f` and `o`; 2 copies if there is no number.
fn parse_copies(text: &str) -> Option<Copies> {
    let word_end = text.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(text.len());
    let (word, number) = text.split_at(word_end);
    let copies = match number.strip_prefix('=').unwrap_or(number) {
        "" if number.is_empty() => 2,
        digits => digits.parse().ok().filter(|copies| (2..=255).contains(copies))?,
    };
    Some(match word {
        "n" | "near" => Copies { near: copies, far: 1, offset: false },
        "f" | "far" => Copies { near: 1, far: copies, offset: false },
        "o" | "offset" => Copies { near: 1, far: copies, offset: true },
        _ => return None,
    })
}

/// The layout's name, as mdadm prints it; empty where the level has none.
#[must_use]
pub fn layout_name(level: Level, layout: u32) -> String {
    let named = match level {
        Level::Linear | Level::Raid1 | Level::Raid4 => return String::new(),
        Level::Raid0 => ZONES.iter().find(|(_, number)| *number == layout).map(|(name, _)| *name),
        Level::Raid5 | Level::Raid6 => ROTATIONS
            .iter()
            .map(|(name, _, number)| (*name, *number))
            .chain(ROTATIONS_OF_RAID6)
            .find(|(_, number)| *number == layout)
            .map(|(name, _)| name),
        Level::Raid10 => {
            let (near, far) = (layout & 255, layout >> 8 & 255);
            let far_word = if layout >> 16 == 1 { "offset" } else { "far" };
            return match (layout >> 17, near, far) {
                (0, near, 1) => format!("near={near}"),
                (0, 1, far) => format!("{far_word}={far}"),
                (0, near, far) => format!("near={near}, {far_word}={far}"),
                _ => format!("{layout:#x}"),
            };
        }
    };
    named.map_or_else(|| layout.to_string(), str::to_owned)
}
