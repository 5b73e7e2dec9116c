//! The layout of any level, by md's number and by mdadm's name.

use crate::raid10::Columns;
use crate::{Level, ParityLayout, Raid0Layout, Raid10Layout};

/// md's number of the layout that mdadm calls `text`, or of the default: `n2`, left-symmetric,
/// alternate. `None` if the level has no such layout, or mdadm makes none like that.
#[must_use]
pub fn number_of(level: Level, text: Option<&str>) -> Option<u32> {
    match level {
        Level::Linear | Level::Raid1 | Level::Raid4 => text.is_none().then_some(0),
        Level::Raid0 => {
            let layout = text.map_or(Some(Raid0Layout::default()), Raid0Layout::from_name);
            layout.map(Raid0Layout::number)
        }
        Level::Raid5 | Level::Raid6 => {
            let layout = text.map_or(Some(ParityLayout::default()), ParityLayout::from_name)?;
            level.with_parity().is_some_and(|level| layout.suits(level)).then(|| layout.number())
        }
        Level::Raid10 => {
            let layout = text.map_or(Some(Raid10Layout::default()), Raid10Layout::from_name);
            layout.filter(|layout| layout.has_one_kind()).map(Raid10Layout::number)
        }
    }
}

/// The words that `--layout` accepts for a level.
#[must_use]
pub fn choices(level: Level) -> &'static str {
    match level {
        Level::Linear | Level::Raid1 | Level::Raid4 => "none",
        Level::Raid0 => "alternate and original",
        Level::Raid5 | Level::Raid6 => "left-symmetric, left-asymmetric, right-symmetric, …",
        Level::Raid10 => "n2, f2, o2 and the like, with 2 copies or more",
    }
}

/// The layout's name, as mdadm prints it; empty where the level has none, its number where the
/// number has no name.
#[must_use]
pub fn name_of(level: Level, number: u32) -> String {
    let named = match level {
        Level::Linear | Level::Raid1 | Level::Raid4 => return String::new(),
        Level::Raid0 => Raid0Layout::from_number(number).map(|layout| layout.name().to_owned()),
        Level::Raid5 | Level::Raid6 => {
            let layout = ParityLayout::all().find(|layout| layout.number() == number);
            layout.map(|layout| layout.name().to_owned())
        }
        Level::Raid10 => {
            let layout = Raid10Layout::from_number(number).ok();
            return layout.map_or_else(|| format!("{number:#x}"), |layout| format!("{layout:#}"));
        }
    };
    named.unwrap_or_else(|| number.to_string())
}

/// True if md knows the layout with this number, and runs arrays of `raid_disks` members with it. Such an array
/// need not be sound: [`is_sound`].
#[must_use]
pub fn is_known(level: Level, number: u32, raid_disks: u32) -> bool {
    match level {
        Level::Linear | Level::Raid0 | Level::Raid1 | Level::Raid4 => true,
        Level::Raid5 | Level::Raid6 => level
            .with_parity()
            .is_some_and(|level| ParityLayout::from_number(level, number).is_ok()),
        Level::Raid10 => Raid10Layout::from_number(number)
            .is_ok_and(|layout| layout.copies() as u64 <= u64::from(raid_disks)),
    }
}

/// True if the layout with this number gives each byte its own place, and copies lie on different members.
#[must_use]
pub fn is_sound(level: Level, number: u32, raid_disks: u32) -> bool {
    match level {
        Level::Raid0 => number == 0 || Raid0Layout::from_number(number).is_some(),
        Level::Raid10 => Raid10Layout::from_number(number)
            .is_ok_and(|layout| Columns::new(layout, raid_disks as usize).is_ok()),
        _ => is_known(level, number, raid_disks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_as_mdadm_spells_them() {
        for (level, text, number, name) in [
            (Level::Raid10, None, 0x102, "near=2"),
            (Level::Raid10, Some("n3"), 0x103, "near=3"),
            (Level::Raid10, Some("f2"), 0x201, "far=2"),
            (Level::Raid10, Some("o3"), 0x1_0301, "offset=3"),
            (Level::Raid10, Some("near"), 0x102, "near=2"),
            (Level::Raid10, Some("far=3"), 0x301, "far=3"),
            (Level::Raid10, Some("offset2"), 0x1_0201, "offset=2"),
            (Level::Raid5, None, 2, "left-symmetric"),
            (Level::Raid5, Some("la"), 0, "left-asymmetric"),
            (Level::Raid5, Some("parity-last"), 5, "parity-last"),
            (Level::Raid6, Some("ddf-N-restart"), 9, "ddf-N-restart"),
            (Level::Raid6, Some("left-symmetric-6"), 18, "left-symmetric-6"),
            (Level::Raid0, None, 2, "alternate"),
            (Level::Raid0, Some("original"), 1, "original"),
            (Level::Raid1, None, 0, ""),
        ] {
            assert_eq!(number_of(level, text), Some(number), "{level} {text:?}");
            assert_eq!(name_of(level, number), name);
        }
        for (level, text) in [
            (Level::Raid10, "n1"),
            (Level::Raid10, "x2"),
            (Level::Raid10, "n2x"),
            (Level::Raid10, "n2f2"),
            (Level::Raid5, "ddf-N-restart"),
            (Level::Raid0, "left-symmetric"),
            (Level::Raid1, "n2"),
        ] {
            assert_eq!(number_of(level, Some(text)), None, "{level} {text}");
        }
        assert_eq!(name_of(Level::Raid0, 0), "0");
        assert_eq!(name_of(Level::Raid10, 0), "0x0");
    }

    #[test]
    fn far_sets_are_known_and_those_that_put_copies_on_one_member_are_not_sound() {
        for (number, disks, known, sound) in [
            (0x102, 2, true, true),
            (0x103, 2, false, false),
            (0x2_0201, 4, true, true),
            (0x2_0201, 3, true, false),
            (0x4_0201, 5, true, true),
            (0x6_0201, 4, false, false),
        ] {
            assert_eq!(is_known(Level::Raid10, number, disks), known, "{number:#x} {disks}");
            assert_eq!(is_sound(Level::Raid10, number, disks), sound, "{number:#x} {disks}");
        }
        assert!(is_sound(Level::Raid0, 0, 3) && !is_sound(Level::Raid0, 3, 3));
    }
}
