//! The values of fields, in words.

use super::facts::layout_text;
use super::fields::{FEATURES, Field, Kind};
use super::written::{Written, old, role, v1};
use super::{Surroundings, text_old, words};
use braid_md::{Features, Uuid};

/// The value of a field in words.
pub(super) fn value(sb: &Written<'_>, around: &Surroundings<'_>, field: &Field) -> String {
    let number = number(sb, field);
    match field.kind {
        Kind::Number => number.to_string(),
        Kind::Signed => signed(number, field).to_string(),
        Kind::Hex => format!("{number:08x}"),
        Kind::SectorsOrAll if signed(number, field) == -1 => "everywhere".to_owned(),
        Kind::Sectors | Kind::SectorsOrAll => sectors(number),
        Kind::SignedSectors => format!("{} sectors", signed(number, field)),
        Kind::Kib => {
            let human = words::human_size(number.wrapping_mul(1024).cast_signed());
            format!("{number} KiB{human}")
        }
        Kind::Text => format!("{:?}", words::printable(sb.slice(field.offset, field.length))),
        Kind::Uuid => Uuid(sb.array(field.offset)).to_string(),
        Kind::Time => time(around, number & v1::SECONDS, number >> 40),
        Kind::OldTime => time(around, number, 0),
        Kind::Level => level(signed(number, field) as i32),
        Kind::Layout => {
            let name = layout_text(sb).map_or(String::new(), |name| format!(" ({name})"));
            format!("{number:#x}{name}")
        }
        Kind::Features => features(sb.features()),
        Kind::BitmapOrPpl => bitmap_or_ppl(sb),
        Kind::DeviceFlags => bits(number, &[(1, "write-mostly"), (2, "failfast")]),
        Kind::OldState => bits(
            number,
            &[
                (old::CLEAN.into(), "clean"),
                (old::ERRORS.into(), "errors"),
                (old::BITMAP_PRESENT.into(), "bitmap"),
            ],
        ),
        Kind::OldEvents => number.to_string(),
        Kind::Reserved => {
            let zero = sb.slice(field.offset, field.length).iter().all(|byte| *byte == 0);
            if zero { "zero".to_owned() } else { "not zero".to_owned() }
        }
    }
}

/// A field's bits as a number without a sign, 0 for fields that are no number.
fn number(sb: &Written<'_>, field: &Field) -> u64 {
    match (field.kind, field.length) {
        (Kind::OldEvents, _) => sb.halves(field.offset / 4),
        (_, 1) => sb.u8(field.offset).into(),
        (_, 2) => sb.u16(field.offset).into(),
        (_, 4) => sb.u32(field.offset).into(),
        (_, 8) => sb.u64(field.offset),
        _ => 0,
    }
}

/// The same with the sign of a field of its width.
fn signed(number: u64, field: &Field) -> i64 {
    let unused = 64 - 8 * field.length.min(8) as u32;
    (number << unused).cast_signed() >> unused
}

fn sectors(count: u64) -> String {
    format!("{count} sectors{}", words::human_size(words::sectors(count)))
}

fn time(around: &Surroundings<'_>, seconds: u64, micros: u64) -> String {
    let micros = if micros == 0 { String::new() } else { format!(" and {micros} µs") };
    format!("{seconds} s: {}{micros}", around.time(seconds))
}

fn level(number: i32) -> String {
    format!("{number} ({})", words::level_name(number).unwrap_or("unknown"))
}

fn features(features: Features) -> String {
    let named = FEATURES.iter().filter(|feature| features.contains(feature.bit));
    let mut names: Vec<String> = named.map(|feature| feature.name.to_owned()).collect();
    if features.unknown().0 != 0 {
        names.push(format!("unknown {:#x}", features.unknown().0));
    }
    in_brackets(features.0.into(), &names)
}

fn bits(number: u64, names: &[(u64, &str)]) -> String {
    let set = names.iter().filter(|(bit, _)| number & bit != 0);
    in_brackets(number, &set.map(|(_, name)| (*name).to_owned()).collect::<Vec<_>>())
}

fn in_brackets(number: u64, names: &[String]) -> String {
    if names.is_empty() {
        format!("{number:#x}")
    } else {
        format!("{number:#x} ({})", names.join(", "))
    }
}

fn bitmap_or_ppl(sb: &Written<'_>) -> String {
    let features = sb.features();
    if !features.contains(Features::BITMAP) && words::has_ppl(features) {
        let (offset, size) = (sb.u16(v1::PPL_OFFSET).cast_signed(), sb.u16(v1::PPL_SIZE));
        return format!("{size} sectors of partial parity log at {offset} sectors");
    }
    let unused = if features.contains(Features::BITMAP) { "" } else { " (not in use)" };
    format!("{} sectors{unused}", sb.i32(v1::BITMAP_OFFSET))
}

/// The meaning of a role's number.
pub(super) fn role_name(number: u16) -> String {
    match number {
        role::SPARE => "spare".to_owned(),
        role::FAULTY => "faulty or missing".to_owned(),
        role::JOURNAL => "journal".to_owned(),
        number => format!("member {number}"),
    }
}

/// An entry of 0.90's table.
pub(super) fn old_disk(sb: &Written<'_>, at: usize) -> String {
    let [number, major, minor, raid_disk] = std::array::from_fn(|index| sb.word(at + index));
    let state = text_old::disk_words(sb.word(at + 4)).join(" ");
    format!("number {number}, device {major}:{minor}, member {raid_disk}, {state}")
}
