//! Which raid10: how many copies of each chunk, and where.
//!
//! ```text
//! bit   18     17     16    15 ....... 8   7 ........ 0
//!     |  far sets  |offset| far copies  | near copies |        number 0x102 is n2, 0x201 is f2,
//!                                                             0x10201 is o2
//! ```
//!
//! Invariant: a [`Raid10Layout`] has at least one near and one far copy, and two copies in all.
//! Whether it fits a number of members is [`Columns::new`]'s to say.
//!
//! Source: Linux `drivers/md/raid10.c` (`setup_geo`); the names are those of `mdadm --layout` and
//! `mdadm --detail`.

use std::fmt;

use crate::LayoutError;

const OFFSET: u32 = 1 << 16;
const FAR_SETS_SHIFT: u32 = 17;

/// The placement of the copies of raid10's chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raid10Layout {
    near: u8,
    far: u8,
    offset: bool,
    far_sets: FarSets,
}

/// Among which members a chunk's far copies stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FarSets {
    /// All of them: what mdadm makes.
    #[default]
    All,
    /// Sets of (members / far copies), bit 17: the first attempt of Linux 3.9, which may put two
    /// copies on one member.
    Divided,
    /// Sets of (near copies × far copies), bit 18.
    Copies,
}

impl Raid10Layout {
    /// mdadm's default: two copies side by side.
    pub const NEAR_2: Raid10Layout =
        Raid10Layout { near: 2, far: 1, offset: false, far_sets: FarSets::All };

    /// The layout of md's number, as superblocks hold it.
    ///
    /// # Errors
    /// A number with unknown bits, no near or no far copy, or only one copy in all.
    pub fn from_number(number: u32) -> Result<Raid10Layout, LayoutError> {
        let refuse = |reason| Err(LayoutError::Raid10 { number, reason });
        let [near, far, ..] = number.to_le_bytes();
        let far_sets = match number >> FAR_SETS_SHIFT {
            0 => FarSets::All,
            1 => FarSets::Divided,
            2 => FarSets::Copies,
            3 => return refuse("bits 17 and 18 exclude each other"),
            _ => return refuse("bits from 19 up have no meaning"),
        };
        match (near, far) {
            (0, _) => return refuse("it has no near copy; the least is 1"),
            (_, 0) => return refuse("it has no far copy; the least is 1"),
            (1, 1) => return refuse("it keeps one copy; raid10 needs at least 2"),
            _ => {}
        }
        Ok(Raid10Layout { near, far, offset: number & OFFSET != 0, far_sets })
    }

    /// md's number, as superblocks hold it.
    #[must_use]
    pub fn number(self) -> u32 {
        let far_sets = match self.far_sets {
            FarSets::All => 0,
            FarSets::Divided => 1,
            FarSets::Copies => 2,
        };
        let offset = if self.offset { OFFSET } else { 0 };
        u32::from(self.near) | u32::from(self.far) << 8 | offset | far_sets << FAR_SETS_SHIFT
    }

    /// Copies that lie side by side.
    #[must_use]
    pub fn near(self) -> usize {
        self.near.into()
    }

    /// The number of times that the near copies are repeated further on.
    #[must_use]
    pub fn far(self) -> usize {
        self.far.into()
    }

    /// True if far copies lie in the next row rather than in the next section of the members.
    #[must_use]
    pub fn is_offset(self) -> bool {
        self.offset
    }

    /// Among which members a chunk's far copies stay.
    #[must_use]
    pub fn far_sets(self) -> FarSets {
        self.far_sets
    }

    /// Copies in all, at least 2.
    #[must_use]
    pub fn copies(self) -> usize {
        self.near() * self.far()
    }
}

impl Default for Raid10Layout {
    fn default() -> Raid10Layout {
        Raid10Layout::NEAR_2
    }
}

impl fmt::Display for Raid10Layout {
    /// As `mdadm --layout` takes it: `n2`, `f2`, `o3`, and beyond it `n2f2`; with `{:#}` as
    /// `mdadm --detail` prints it: `near=2`, `near=2, far=2`. A layout that has no such name, one
    /// with far sets or unusual bits, is its number: `0x40201`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.far_sets != FarSets::All || self.offset && self.far == 1 {
            return write!(f, "{:#x}", self.number());
        }
        let (near, far, between) = match (f.alternate(), self.offset) {
            (true, false) => ("near=", "far=", ", "),
            (true, true) => ("near=", "offset=", ", "),
            (false, false) => ("n", "f", ""),
            (false, true) => ("n", "o", ""),
        };
        match (self.near, self.far) {
            (copies, 1) => write!(f, "{near}{copies}"),
            (1, copies) => write!(f, "{far}{copies}"),
            (nears, fars) => write!(f, "{near}{nears}{between}{far}{fars}"),
        }
    }
}

impl Raid10Layout {
    /// The layout that `text` is: what [`fmt::Display`] prints in both forms, mdadm's other
    /// spellings (`near`, `near2`, `n=2`; two copies where no number is given), and md's number.
    #[must_use]
    pub fn from_name(text: &str) -> Option<Raid10Layout> {
        let number = parse_number(text).or_else(|| parse_names(text))?;
        Raid10Layout::from_number(number).ok()
    }

    /// True if mdadm makes such arrays: with copies of one kind.
    #[must_use]
    pub fn has_one_kind(self) -> bool {
        self.far_sets == FarSets::All && (self.near == 1) != (self.far == 1)
    }
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The number of `n2`, `far=2`, `n2f2`, `near=2, far=2`; each kind of copy once, near ones first.
fn parse_names(text: &str) -> Option<u32> {
    let (near, rest) = parse_copies(text, &["near", "n"])?;
    let rest = match near {
        Some(_) => rest.strip_prefix(", ").unwrap_or(rest),
        None => rest,
    };
    let (far, rest) = parse_copies(rest, &["far", "f"])?;
    let (offset, rest) = match far {
        Some(_) => (None, rest),
        None => parse_copies(rest, &["offset", "o"])?,
    };
    let kind = if offset.is_some() { OFFSET } else { 0 };
    let copies = |given: Option<u8>| u32::from(given.unwrap_or(1));
    let number = copies(near) | copies(far.or(offset)) << 8 | kind;
    (rest.is_empty() && !text.ends_with(' ')).then_some(number)
}

/// The number behind one of `names` at the start of `text`, 2 if there is none, and the rest;
/// `None` if what follows the name is no number of copies.
fn parse_copies<'a>(text: &'a str, names: &[&str]) -> Option<(Option<u8>, &'a str)> {
    let Some(behind) = names.iter().find_map(|name| text.strip_prefix(name)) else {
        return Some((None, text));
    };
    let digits = behind.strip_prefix('=').unwrap_or(behind);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() && rest.len() == behind.len() {
        return Some((Some(2), rest));
    }
    Some((Some(digits.parse().ok()?), rest))
}

/// Which member each column of a row is on, in each repetition of the row: there is one for each
/// far copy.
#[derive(Clone, Debug)]
pub struct Columns {
    layout: Raid10Layout,
    width: usize,
    /// Index: repetition × width + column.
    members: Vec<u16>,
    /// The inverse: repetition × width + member.
    columns: Vec<u16>,
}

impl Columns {
    /// The columns of an array of `width` members, at most 65,536.
    ///
    /// # Errors
    /// A layout by which two chunks meet in one place, or two copies on one member; fewer members
    /// than copies.
    pub fn new(layout: Raid10Layout, width: usize) -> Result<Columns, LayoutError> {
        let refuse = |reason| LayoutError::Raid10 { number: layout.number(), reason };
        if layout.copies() > width {
            return Err(refuse("it keeps more copies than there are members"));
        }
        if layout.is_offset() && layout.far() > 1 && !width.is_multiple_of(layout.near()) {
            // md continues near copies that do not fit the row one row further, where another
            // chunk's far copies are.
            return Err(refuse(
                "md puts two chunks in one place when near copies of the offset layout do not divide the members",
            ));
        }
        let mut members: Vec<u16> = (0u16..).take(width).collect();
        for index in width..width * layout.far() {
            let before = usize::from(members[index - width]);
            members.push(next_member(layout, width, before) as u16);
        }
        let columns = invert(&members, width)
            .ok_or_else(|| refuse("md puts two chunks in one place with so many members"))?;
        let columns = Columns { layout, width, members, columns };
        if !columns.are_copies_apart() {
            return Err(refuse("md puts two copies on one member with so many members"));
        }
        Ok(columns)
    }

    /// The member that has `column` of the rows of `repetition`.
    #[inline]
    #[must_use]
    pub fn member(&self, repetition: usize, column: usize) -> u16 {
        self.members[repetition * self.width + column]
    }

    /// The column that `member` has of the rows of `repetition`.
    #[inline]
    #[must_use]
    pub fn column(&self, repetition: usize, member: usize) -> usize {
        self.columns[repetition * self.width + member].into()
    }

    /// The members that hold chunk `chunk` of the array.
    pub fn holders(&self, chunk: u64) -> impl Iterator<Item = usize> {
        let (near, width) = (self.layout.near(), self.width as u64);
        // The columns of a chunk repeat after as many chunks as there are members.
        let first = (chunk % width) as usize * near;
        (first..first + near).flat_map(move |slot| {
            (0..self.layout.far())
                .map(move |repetition| self.member(repetition, slot % self.width).into())
        })
    }

    /// True if the copies of a chunk, wherever in a row it begins, lie on different members.
    fn are_copies_apart(&self) -> bool {
        (0..self.width as u64).all(|chunk| {
            let mut taken = vec![false; self.width];
            self.holders(chunk).all(|member| !std::mem::replace(&mut taken[member], true))
        })
    }
}

/// The member of the next repetition: `near` further, around the members of the set. When sets do
/// not divide the members, the last set has the rest too.
fn next_member(layout: Raid10Layout, width: usize, member: usize) -> usize {
    let size = match layout.far_sets() {
        FarSets::All => width,
        FarSets::Divided => width / layout.far(),
        FarSets::Copies => layout.copies(),
    };
    let rest = width % size;
    let last = width - rest - size;
    let next = member + layout.near();
    // md compares the member after the step. With several near copies that takes some members into
    // a foreign set, which the caller finds out.
    if rest != 0 && next > last {
        last + (next - last) % (size + rest)
    } else {
        member / size * size + next % size
    }
}

/// For each block of `width` numbers below `width`, its inverse; `None` if one comes twice.
fn invert(members: &[u16], width: usize) -> Option<Vec<u16>> {
    let mut columns = vec![None; members.len()];
    for (index, &member) in members.iter().enumerate() {
        let column = (index % width) as u16;
        let place = &mut columns[index - index % width + usize::from(member)];
        if place.replace(column).is_some() {
            return None;
        }
    }
    columns.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_refused_or_comes_back_by_number_and_by_both_names() {
        let mut accepted = 0;
        for high in 0..=16u32 {
            for low in 0..=u32::from(u16::MAX) {
                let number = high << 16 | low;
                let Ok(layout) = Raid10Layout::from_number(number) else { continue };
                accepted += 1;
                assert_eq!(layout.number(), number);
                assert_eq!(Raid10Layout::from_name(&layout.to_string()), Some(layout));
                assert_eq!(Raid10Layout::from_name(&format!("{layout:#}")), Some(layout));
            }
        }
        // 255 × 255 copies but for one near and one far; all or either kind of far sets; or offset.
        assert_eq!(accepted, (255 * 255 - 1) * 3 * 2);
    }

    #[test]
    fn names_are_those_of_mdadm() {
        for (number, short, long) in [
            (0x102, "n2", "near=2"),
            (0x103, "n3", "near=3"),
            (0x201, "f2", "far=2"),
            (0x10301, "o3", "offset=3"),
            (0x202, "n2f2", "near=2, far=2"),
            (0x10202, "n2o2", "near=2, offset=2"),
            (0x40201, "0x40201", "0x40201"),
        ] {
            let layout = Raid10Layout::from_number(number).unwrap();
            assert_eq!((layout.to_string(), format!("{layout:#}")), (short.into(), long.into()));
        }
        for text in ["258", "n", "near", "near2", "n=2"] {
            assert_eq!(Raid10Layout::from_name(text), Some(Raid10Layout::NEAR_2), "{text}");
        }
        assert_eq!(Raid10Layout::default().number(), 0x102);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "n1", "n0", "f256", "x2", "n2n2", "f2n2", "f2o2", "n2,", "n2, ", "near=", "n=",
            "n2 ", "n2x", "256", "0x",
        ] {
            assert_eq!(Raid10Layout::from_name(text), None, "{text:?}");
        }
    }

    #[test]
    fn numbers_without_meaning_are_refused_with_the_reason() {
        for (number, message) in [
            (0x0, "raid10 layout 0x0: it has no near copy; the least is 1"),
            (0x2, "raid10 layout 0x2: it has no far copy; the least is 1"),
            (0x101, "raid10 layout 0x101: it keeps one copy; raid10 needs at least 2"),
            (0x60102, "raid10 layout 0x60102: bits 17 and 18 exclude each other"),
            (0x80102, "raid10 layout 0x80102: bits from 19 up have no meaning"),
        ] {
            assert_eq!(Raid10Layout::from_number(number).unwrap_err().to_string(), message);
        }
    }
}
