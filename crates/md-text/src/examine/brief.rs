//! The lines of `mdadm --examine --brief`: an `ARRAY` line for mdadm.conf.
//!
//! Source: mdadm 4.2 `super1.c` (`brief_examine_super1`), `super0.c` (`brief_examine_super0`), `lib.c`
//! (`print_escape`, `print_quoted`), `Examine.c` for spares and devices.

use std::fmt::Write as _;

use super::written::{Written, old, role, v1};
use super::{text_old, words};
use braid_md::Uuid;

/// `6`: active and in sync, in the state of a disk of 0.90.
const IN_SYNC: u32 = 1 << 2;

/// The line for the array that this superblock is of; `verbose` with its level and number of members.
#[must_use]
pub fn brief(sb: &Written<'_>, verbose: bool) -> String {
    let level = words::level_name(sb.level());
    let disks = sb.raid_disks().cast_signed();
    if sb.is_old() {
        let minor = sb.word(old::MD_MINOR).cast_signed();
        let facts = match verbose {
            true => format!(" level={} num-devices={disks}", level.unwrap_or("-unknown-")),
            false => String::new(),
        };
        return format!("ARRAY /dev/md{minor}{facts} UUID={}\n", text_old::uuid_text(sb));
    }
    let mut line = "ARRAY ".to_owned();
    let name = words::printable(sb.slice(v1::SET_NAME, 32));
    if !name.is_empty() {
        let own = name.split_once(':').map_or(&*name, |(_host, own)| own);
        let plain = own.replace([' ', '\t'], "_").replace('/', "-");
        // Writing to a string does not fail.
        let _ = write!(line, "/dev/md/{plain} ");
    }
    if let (true, Some(level)) = (verbose, level) {
        let _ = write!(line, " level={level}");
    }
    let version = match sb.u64(v1::SUPER_OFFSET) {
        0..=4 => "1.1",
        5..=8 => "1.2",
        _ => "1.0",
    };
    let _ = write!(line, " metadata={version} ");
    if verbose {
        let _ = write!(line, "num-devices={disks} ");
    }
    let _ = write!(line, "UUID={}", Uuid(sb.array(v1::SET_UUID)));
    if !name.is_empty() {
        let _ = write!(line, " name={}", quoted(&name));
    }
    line.push('\n');
    line
}

/// True if mdadm counts this member among the array's spares: it has no role.
#[must_use]
pub fn counts_as_spare(sb: &Written<'_>) -> bool {
    if sb.is_old() {
        // Number, major, minor, role, state.
        return sb.word(old::THIS_DISK + 4) & IN_SYNC == 0;
    }
    sb.role() > role::MAX
}

/// As a word of mdadm.conf.
fn quoted(text: &str) -> String {
    match (text.contains([' ', '\t']), text.contains('\'')) {
        (false, _) => text.to_owned(),
        (true, false) => format!("'{text}'"),
        (true, true) => format!("\"{text}\""),
    }
}
