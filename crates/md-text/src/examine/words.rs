//! mdadm's ways to say sizes, times, levels and layouts.
//!
//! Source: mdadm 4.2 `util.c` (`human_size`, `human_size_brief`, `print_r10_layout`), `maps.c`.

use std::fmt::Write as _;

use braid_md::Features;

/// ` (15.00 MiB 15.73 MB)`: nothing below 5000 KiB, gigabytes from 2 GiB on, terabytes from 2 TiB.
pub(super) fn human_size(bytes: i64) -> String {
    if bytes < 5000 * 1024 {
        return String::new();
    }
    let (binary, decimal, letter) = hundredths(bytes);
    format!(
        " ({}.{:02} {letter}iB {}.{:02} {letter}B)",
        binary / 100,
        binary % 100,
        decimal / 100,
        decimal % 100
    )
}

/// `15.73MB`: as [`human_size`], the decimal part alone.
pub(super) fn human_size_brief(bytes: i64) -> String {
    if bytes < 5000 * 1024 {
        return String::new();
    }
    let (_, decimal, letter) = hundredths(bytes);
    format!("{}.{:02}{letter}B", decimal / 100, decimal % 100)
}

/// Hundredths of a binary and of a decimal unit, rounded half up as mdadm does it, and the unit.
fn hundredths(bytes: i64) -> (i128, i128, char) {
    let bytes = i128::from(bytes);
    let (binary, decimal, letter) = if bytes < 2 << 30 {
        (1 << 20, 1_000_000, 'M')
    } else if bytes < 2 << 40 {
        (1 << 30, 1_000_000_000, 'G')
    } else {
        (1 << 40, 1_000_000_000_000, 'T')
    };
    ((bytes * 200 / binary + 1) / 2, (bytes / (decimal / 200) + 1) / 2, letter)
}

/// A number of sectors in bytes, as a signed number that wraps like mdadm's: no member is that
/// large, so only what damage wrote can wrap.
pub(super) fn sectors(count: u64) -> i64 {
    count.wrapping_mul(braid_md::SECTOR).cast_signed()
}

/// mdadm's name of a level.
pub(super) fn level_name(number: i32) -> Option<&'static str> {
    Some(match number {
        -100 => "container",
        -5 => "faulty",
        -4 => "multipath",
        -1 => "linear",
        0 => "raid0",
        1 => "raid1",
        4 => "raid4",
        5 => "raid5",
        6 => "raid6",
        10 => "raid10",
        _ => return None,
    })
}

/// mdadm's name of a layout of a level that has names for them; raid10 has none (see [`raid10_layout`]).
pub(super) fn layout_name(level: i32, number: u32) -> Option<&'static str> {
    Some(match (level, number) {
        (0, 0) => "dangerous",
        (0, 1) => "original",
        (0, 2) => "alternate",
        (5 | 6, 0) => "left-asymmetric",
        (5 | 6, 1) => "right-asymmetric",
        (5 | 6, 2) => "left-symmetric",
        (5 | 6, 3) => "right-symmetric",
        (5 | 6, 4) => "parity-first",
        (5 | 6, 5) => "parity-last",
        (6, 8) => "ddf-zero-restart",
        (6, 9) => "ddf-N-restart",
        (6, 10) => "ddf-N-continue",
        (6, 16) => "left-asymmetric-6",
        (6, 17) => "right-asymmetric-6",
        (6, 18) => "left-symmetric-6",
        (6, 19) => "right-symmetric-6",
        (6, 20) => "parity-first-6",
        _ => return None,
    })
}

/// ` near=2`, ` far=2`, ` near=2, offset=2`.
pub(super) fn raid10_layout(number: u32) -> String {
    let (near, far) = (number & 255, number >> 8 & 255);
    let mut text = String::new();
    if near != 1 {
        let _ = write!(text, " near={near}");
    }
    if far != 1 {
        let comma = if near == 1 { "" } else { "," };
        let kind = if number & 0x10000 == 0 { "far" } else { "offset" };
        let _ = write!(text, "{comma} {kind}={far}");
    }
    if near * far == 1 {
        text.push_str("NO REDUNDANCY");
    }
    text
}

/// Bytes of the array whose members hold `component` bytes each, as mdadm counts them: without
/// rounding to chunks. `None` where the level does not tell (raid0, linear) or the layout makes
/// no sense.
pub(super) fn array_size(level: i32, layout: u32, disks: u32, component: i64) -> Option<i64> {
    let disks = i128::from(disks);
    let (times, over) = match level {
        1 => (1, 1),
        4 | 5 => (disks - 1, 1),
        6 => (disks - 2, 1),
        10 => (disks, i128::from((layout & 255) * (layout >> 8 & 255))),
        _ => return None,
    };
    if times == 0 || over == 0 {
        return None;
    }
    i64::try_from(i128::from(component) * times / over).ok()
}

/// True if there is a partial parity log, with one entry or with several.
pub(super) fn has_ppl(features: Features) -> bool {
    features.contains(Features::PPL) || features.contains(Features::MULTIPLE_PPLS)
}

/// Text from a disk, made safe for a terminal: up to the first NUL, control characters and what
/// is no UTF-8 escaped.
pub(super) fn printable(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let mut text = String::new();
    for chunk in bytes[..end].utf8_chunks() {
        for char in chunk.valid().chars() {
            if braid_shell::is_odd(char) {
                text.extend(char.escape_default());
            } else {
                text.push(char);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A time as C's `ctime` writes it, without the line's end: `Sat Nov 21 20:14:21 2026`.
///
/// `seconds` since 1970, `utc_offset` seconds by which local time is ahead. Cut to 24 characters
/// as mdadm does it, which only years from 10000 on reach.
#[must_use]
pub fn ctime(seconds: u64, utc_offset: i64) -> String {
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let local = i128::from(seconds) + i128::from(utc_offset);
    let (days, second) = (local.div_euclid(86400), local.rem_euclid(86400));
    let (year, month, day) = civil(days);
    let mut text = format!(
        "{} {}{day:3} {:02}:{:02}:{:02} {year}",
        WEEKDAYS[days.rem_euclid(7) as usize],
        MONTHS[month],
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    text.truncate(24);
    text
}

/// Year, month from 0 and day of the month of a day counted from 1970-01-01.
fn civil(days: i128) -> (i128, usize, i128) {
    // Years start in March here, so that the leap day is their last.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let january_or_february = month >= 10;
    let month = if january_or_february { month - 10 } else { month + 2 };
    (era * 400 + year + i128::from(january_or_february), month as usize, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_and_change_their_unit_at_2_of_the_next() {
        assert_eq!(human_size(5000 * 1024 - 1), "");
        assert_eq!(human_size(5000 * 1024), " (4.88 MiB 5.12 MB)");
        assert_eq!(human_size(15 << 20), " (15.00 MiB 15.73 MB)");
        assert_eq!(human_size((2 << 30) - 1), " (2048.00 MiB 2147.48 MB)");
        assert_eq!(human_size(2 << 30), " (2.00 GiB 2.15 GB)");
        assert_eq!(human_size((2 << 40) - 1), " (2048.00 GiB 2199.02 GB)");
        assert_eq!(human_size(2 << 40), " (2.00 TiB 2.20 TB)");
        assert_eq!(human_size(-1), "");
        assert_eq!(human_size_brief(15 << 20), "15.73MB");
        assert_eq!(human_size_brief(3 << 40), "3.30TB");
    }

    #[test]
    fn times_are_those_of_c() {
        assert_eq!(ctime(0, 0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(0, -3600), "Wed Dec 31 23:00:00 1969");
        assert_eq!(ctime(951_782_400, 0), "Tue Feb 29 00:00:00 2000");
        assert_eq!(ctime(1_795_292_061, 0), "Sat Nov 21 20:14:21 2026");
        assert_eq!(ctime(4_107_542_400, 0), "Mon Mar  1 00:00:00 2100");
        assert_eq!(ctime((1 << 40) - 1, 0), "Mon Feb 20 00:36:15 3681");
    }

    #[test]
    fn layouts_of_raid10() {
        assert_eq!(raid10_layout(0x102), " near=2");
        assert_eq!(raid10_layout(0x201), " far=2");
        assert_eq!(raid10_layout(0x1_0302), " near=2, offset=3");
        assert_eq!(raid10_layout(0x101), "NO REDUNDANCY");
    }

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(printable(b"host:v\0rest"), "host:v");
        assert_eq!(printable(b"a\x1b[2Jb\xff"), "a\\u{1b}[2Jb\\xff");
        assert_eq!(printable("größe".as_bytes()), "größe");
    }
}
