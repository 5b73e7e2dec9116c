//! Doubts about superblocks that look sound: `mdadm --create` may have written them over another array.
//!
//! ```text
//!   blocks that say where they belong ──▶ contradict ──▶ in doubt
//!                                    └──▶ prove the place of each member ──▶ sure
//!   neither: what lies at the start, and is it older than the array? do members have superblocks of another array?
//! ```
//!
//! Invariant: a file system that is younger than the array, or that proves the geometry, is never in doubt for superblocks
//! that an earlier array left behind.
//!
//! Deliberately absent: the geometry of the data, which [`crate::solve()`] finds.

use braid_md::Superblock;

use crate::assemble::{Doubt, Opening, Seat};
use crate::clue::Anchor;
use crate::look::Volume;
use crate::solve::{Fit, Given, Pattern, Question, STARTS, fit};
use crate::{Array, Examined};

/// Places that are more than leftovers or the content of a file.
const ENOUGH: usize = 8;
/// The share of an array, as a divisor, by which the size of a structure that may be its content differs.
const NEAR: u64 = 8;
/// Places that prove where a structure starts.
const LEAST: usize = 4;

/// Contents of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The identifiers of the formats at its start and in its volumes; an empty one for a format that has none.
    pub formats: Vec<String>,
    /// When the oldest file system in it was made, in seconds since 1970.
    pub made: Option<i64>,
    /// The reason for which a file system in it cannot be believed.
    pub broken: Option<String>,
}

impl Content {
    /// The contents of an array on which these volumes lie; it is one of them itself.
    #[must_use]
    pub fn of<'v>(volumes: impl Iterator<Item = &'v Volume>) -> Content {
        let mut content = Content::default();
        for volume in volumes {
            let formats = volume.contains.iter().map(|one| one.uuid.clone().unwrap_or_default());
            content.formats.extend(formats);
            match &volume.made {
                Ok(made) => content.made = content.made.into_iter().chain(*made).min(),
                Err(why) => content.broken = Some(why.clone()),
            }
        }
        content
    }
}

/// Decides whether the superblocks of an array may be others than those of the data. `question` has the evidence of all
/// members.
#[must_use]
pub fn remade(
    members: &[Examined],
    array: &Array,
    opening: &Opening,
    content: &Content,
    question: &Question,
) -> Option<Doubt> {
    let fit = given(array, opening).and_then(|given| fit(question, &given));
    let fit = fit.as_ref().map(|fit| (fit, &question.anchors[fit.anchor]));
    doubt(&Life::of(array, opening, members), content, fit)
}

/// The geometry by the superblocks.
pub(crate) fn given(array: &Array, opening: &Opening) -> Option<Given> {
    let superblock = &array.claimants[opening.freshest].superblock;
    let seat = |seat: &Seat| {
        let one = &array.claimants[seat.claimant];
        (one.member, one.start + one.superblock.data_offset)
    };
    let pattern = Pattern { members: opening.seats.len(), ..Pattern::of(superblock) };
    let used = opening.seats.iter().flatten();
    let used = used.map(|seat| array.claimants[seat.claimant].superblock.used()).min()?;
    let component = if superblock.level.is_redundant() { superblock.component_size } else { used };
    let seats = opening.seats.iter().map(|one| one.as_ref().map(seat)).collect();
    Some(Given { pattern, seats, component })
}

/// The history of an array by its superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    /// When the array was created, in seconds since 1970.
    created: u64,
    /// Size in bytes.
    size: u64,
    /// True if members have superblocks of another array, or of another shape of this one.
    has_others: bool,
}

impl Life {
    fn of(array: &Array, opening: &Opening, members: &[Examined]) -> Life {
        let has_others = opening.seats.iter().flatten().any(|seat| {
            let one = &array.claimants[seat.claimant];
            let mut found = members[one.member].findings.superblocks.iter();
            found.any(|found| {
                let is_here = found.place.start == one.start;
                let is_other = |other: &Superblock| shape(other) != shape(&one.superblock);
                is_here && found.result.as_ref().is_ok_and(is_other)
            })
        });
        let created = array.claimants[opening.freshest].superblock.created.seconds;
        Life { created, size: opening.size, has_others }
    }
}

/// The numbers that are the same in all superblocks of a member.
fn shape(superblock: &Superblock) -> impl PartialEq + use<> {
    let (level, chunk, disks) = (superblock.level, superblock.chunk, superblock.raid_disks);
    (superblock.array_uuid, level, chunk, disks, superblock.data_offset)
}

/// Judges superblocks by the structures that were found. `fit` compares the superblocks with the blocks of a structure.
fn doubt(life: &Life, content: &Content, fit: Option<(&Fit, &Anchor)>) -> Option<Doubt> {
    if let Some((fit, anchor)) = fit
        && let Some(roles) = contradicted(life, content, fit, anchor)
    {
        return Some(Doubt::Contradicted { roles });
    }
    // An offset that is off by as much looks the same.
    if let Some(start) = fit.and_then(|(fit, _)| fit.start).filter(|start| *start > 0)
        && content.formats.is_empty()
    {
        return Some(Doubt::NoTable { start });
    }
    if fit.is_some_and(|(fit, _)| fit.is_proved) {
        return None;
    }
    // A superblock in the place of parity: a sum with other blocks.
    if let Some(why) = &content.broken {
        return Some(Doubt::Broken { why: why.clone() });
    }
    let made = content.made.and_then(|made| u64::try_from(made).ok());
    let older = made.filter(|made| *made < life.created);
    let is_doubtful = older.is_some() || (life.has_others && made.is_none());
    let (at, made) = (life.created, older);
    is_doubtful.then_some(Doubt::Recreated { at, made })
}

/// The roles on whose members blocks lie that belong elsewhere, if their structure is not just something that is left
/// over on the members, or the content of a file.
fn contradicted(life: &Life, content: &Content, fit: &Fit, anchor: &Anchor) -> Option<Vec<usize>> {
    let digits = |text: &str| -> String {
        text.chars()
            .filter(char::is_ascii_hexdigit)
            .map(|digit| digit.to_ascii_lowercase())
            .collect()
    };
    let uuid: String = anchor.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    if fit.places == 0 {
        // Before the data, or behind them: what is left of an earlier use of the disks, unless it is as large as the array.
        let is_as_large = |size: u64| size.abs_diff(life.size) <= life.size / NEAR;
        let counts = content.formats.is_empty() && anchor.size.is_some_and(is_as_large);
        return counts.then(|| fit.roles.clone());
    }
    let is_content = content.formats.iter().any(|one| digits(one) == uuid);
    if !fit.contradicted.is_empty() {
        let counts = is_content || content.formats.is_empty() || fit.places >= ENOUGH;
        return counts.then(|| fit.contradicted.clone());
    }
    // Nothing lies at the start, where a structure of these blocks would.
    let is_there = fit.places >= LEAST
        && fit.start.is_some_and(|start| {
            let end = start.checked_add(anchor.size.unwrap_or(0));
            STARTS.contains(&start) && end.is_some_and(|end| end <= life.size)
        });
    (content.formats.is_empty() && !is_there).then(|| fit.roles.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clue::Structure;

    const ANCHOR: Anchor =
        Anchor { structure: Structure::Ext, uuid: [0xab; 16], size: Some(1 << 30) };

    fn fit(start: Option<u64>, places: usize, contradicted: &[usize]) -> Fit {
        let contradicted = contradicted.to_vec();
        Fit { anchor: 0, contradicted, roles: vec![0, 1], start, places, is_proved: false }
    }

    fn content(formats: &[&str], made: Option<i64>) -> Content {
        Content {
            formats: formats.iter().map(|one| (*one).to_owned()).collect(),
            made,
            broken: None,
        }
    }

    const LIFE: Life = Life { created: 1000, size: 1 << 30, has_others: false };

    fn judge(content: &Content, fit: &Fit) -> Option<Doubt> {
        doubt(&LIFE, content, Some((fit, &ANCHOR)))
    }

    #[test]
    fn few_blocks_that_scatter_count_where_nothing_else_is_known() {
        let roles = vec![0, 1];
        let contradicted = Some(Doubt::Contradicted { roles: roles.clone() });
        let scattered = fit(None, 4, &roles);
        let own = "ABABABAB-abab-abab-abab-abababababab";
        assert_eq!(judge(&content(&[], None), &scattered), contradicted);
        assert_eq!(judge(&content(&[own], None), &scattered), contradicted);
        // What an earlier file system left behind, or one in a file.
        assert_eq!(judge(&content(&["another"], None), &scattered), None);
        assert_eq!(judge(&content(&["another"], None), &fit(None, 8, &roles)), contradicted);
        // A single block that agrees with itself, in an array without content, and one that ends behind the array.
        assert_eq!(judge(&content(&[], None), &fit(Some(0), 1, &[])), contradicted);
        assert_eq!(judge(&content(&[], None), &fit(Some(65536), 9, &[])), contradicted);
        // All lie before the data: the offset was another one, or the disks had been used before.
        assert_eq!(judge(&content(&[], None), &fit(None, 0, &roles)), contradicted);
        assert_eq!(judge(&content(&["another"], None), &fit(None, 0, &roles)), None);
        let larger = Life { size: 4 << 30, ..LIFE };
        assert_eq!(
            doubt(&larger, &content(&[], None), Some((&fit(None, 0, &roles), &ANCHOR))),
            None
        );
        // The start is overwritten, or a table is lost.
        assert_eq!(judge(&content(&[], None), &fit(Some(0), 4, &[])), None);
        let at = 63 * 512;
        let larger = Life { size: 4 << 30, ..LIFE };
        let partition = fit(Some(at), 4, &[]);
        assert_eq!(
            doubt(&larger, &content(&[], None), Some((&partition, &ANCHOR))),
            Some(Doubt::NoTable { start: at })
        );
        assert_eq!(doubt(&larger, &content(&["table"], None), Some((&partition, &ANCHOR))), None);
    }

    #[test]
    fn a_file_system_that_is_older_than_its_array_is_in_doubt_until_blocks_prove_it() {
        let (older, younger) = (content(&["x"], Some(900)), content(&["x"], Some(1000)));
        let recreated = |made| Some(Doubt::Recreated { at: 1000, made });
        let mut agreeing = fit(Some(0), 4, &[]);
        assert_eq!(judge(&older, &agreeing), recreated(Some(900)));
        assert_eq!(doubt(&LIFE, &older, None), recreated(Some(900)));
        assert_eq!(judge(&younger, &agreeing), None);
        agreeing.is_proved = true;
        assert_eq!(judge(&older, &agreeing), None);
        // A sum of blocks with a superblock among them.
        let broken = Content { broken: Some("no superblock".to_owned()), ..content(&["x"], None) };
        agreeing.is_proved = false;
        let why = "no superblock".to_owned();
        assert_eq!(judge(&broken, &agreeing), Some(Doubt::Broken { why }));
        // Superblocks of another array, under a file system of which nothing says when it was made.
        let others = Life { has_others: true, ..LIFE };
        assert_eq!(doubt(&others, &content(&["x"], None), None), recreated(None));
        assert_eq!(doubt(&others, &younger, None), None);
        assert_eq!(doubt(&LIFE, &content(&[], None), None), None);
    }
}
