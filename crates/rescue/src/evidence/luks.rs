//! LUKS: both headers of version 2 have their own offset, that of version 1 begins its volume.

use super::bytes::{be16, be64};
use super::sectors;
use crate::clue::{Anchor, Structure};

/// A volume of LUKS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Luks {
    /// 1 or 2.
    pub version: u16,
    uuid: [u8; 16],
}

/// Reads a header, and its place.
pub(super) fn recognise(bytes: &[u8]) -> Option<(Luks, u64)> {
    let is_second = match bytes.first_chunk::<6>()? {
        b"LUKS\xba\xbe" => false,
        b"SKUL\xba\xbe" => true,
        _ => return None,
    };
    let version = be16(bytes, 6)?;
    let uuid = uuid(bytes.get(168..208)?)?;
    let place = match version {
        1 if !is_second => 0,
        2 => {
            let (size, place) = (be64(bytes, 8)?, be64(bytes, 256)?);
            let is_size = size.is_power_of_two() && (0x4000..=0x40_0000).contains(&size);
            let has_name = bytes.get(72..104)?.starts_with(b"sha");
            let is_right = is_size && has_name && place == if is_second { size } else { 0 };
            is_right.then_some(place)?
        }
        _ => return None,
    };
    Some((Luks { version, uuid }, place))
}

/// Reads a UUID in hexadecimal digits, which ends with zeros.
fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let (text, rest) = text.split_at_checked(36)?;
    let text = std::str::from_utf8(text).ok()?;
    let is_text = rest.iter().all(|byte| *byte == 0)
        && text.bytes().zip(0..).all(|(byte, at)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let number = is_text.then(|| u128::from_str_radix(&text.replace('-', ""), 16));
    Some(number?.ok()?.to_be_bytes())
}

impl Luks {
    pub(super) fn anchor(&self) -> Anchor {
        Anchor { structure: Structure::Luks, uuid: self.uuid, size: None }
    }

    pub(super) fn clues(&self, window: &[u8], mut give: impl FnMut(usize, u64, usize)) {
        for (from, bytes) in sectors(window) {
            if let Some((_, place)) = recognise(bytes).filter(|(one, _)| one == self) {
                give(from, place, 512);
            }
        }
    }
}
