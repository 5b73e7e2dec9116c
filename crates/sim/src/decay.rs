//! Silent corruption of an array at rest, one column of a block at a time, and a repair that goes over it.
//!
//! ```text
//!   three copies or more, raid6     what rotted is proved to be wrong: all is as it was
//!   two copies, one parity          nothing is proved: nothing is written
//! ```

use std::collections::BTreeMap;

use braid_array::ArrayByte;
use braid_engine::Dev;
use braid_engine::redundant::{JobKind, Layout, Redundant, ScrubOrder, Speed};
use braid_md::Level;

use crate::brief::brief;
use crate::found;
use crate::rest::{STEP_NS, check_agreement, first_difference, read_all};
use crate::spec::{FIRST_PAGE, Spec};
use crate::{Image, Rng, SimDisk};

/// The unit of a scrub's comparison, in bytes.
const BLOCK: u64 = 4096;

/// Checks that a repair of a whole array with `contents` corrects all blocks that are provably wrong, and
/// leaves the others alone.
///
/// # Errors
/// The first error.
pub(crate) async fn check_decay(
    spec: &Spec,
    array: &Redundant,
    disks: &[SimDisk],
    contents: &[u8],
    dice: &mut Rng,
) -> Result<(), String> {
    // To compare all of a large member takes longer than the rest of its lives.
    if array.status().in_sync.contains(&false) || spec.member_size > FIRST_PAGE {
        return Ok(());
    }
    let at_rest = check_agreement(disks, "before it rots")?;
    let layout = found::layout(&at_rest.assembled);
    let holders = found::holders(&at_rest.assembled);
    let rots = draw(&layout, spec, dice);
    for (role, row) in rots.values() {
        let Some((disk, _)) = holders[*role].iter().find(|one| one.1 == u64::MAX) else {
            return Ok(());
        };
        let at = spec.data_offset() + row + 512 * dice.below(BLOCK / 512);
        let image = disks[*disk].contents();
        let other = |byte: &u8| byte ^ (dice.below(255) as u8 + 1);
        let rotten: Vec<u8> = image.piece(at as usize, 512).iter().map(other).collect();
        disks[*disk].rot(at, &rotten);
    }
    let before: Vec<_> = disks.iter().map(SimDisk::contents).collect();
    let speed = Some(Speed { min: 100 << 20, ..Speed::default() });
    let order = ScrubOrder { kind: JobKind::Repair, from: None, until: None, speed };
    array.scrub_as(Some(order)).map_err(|why| format!("no repair: {why}"))?;
    while array.status().requested.is_some() {
        disks[0].handle().sleep(STEP_NS).await;
    }
    let status = array.status();
    let rotten = rots.len() as u64 * BLOCK;
    let is_proved = match &layout {
        Layout::Copies(copies) => copies.copies() > 2,
        Layout::Parity(_) => spec.level == Level::Raid6,
    };
    let unproved = if is_proved { 0 } else { rotten };
    if (status.mismatches, status.unproved) != (rotten, unproved) {
        let (found, of) = (status.mismatches, status.unproved);
        return Err(format!(
            "of {rotten} rotten bytes a repair found {found}, {of} unproved; {}",
            brief(array)
        ));
    }
    if is_proved {
        check_agreement(disks, "after a repair of what rotted")?;
        let then = read_all(&Dev::new(array.clone())).await?;
        return match first_difference(contents, &then) {
            None => Ok(()),
            Some(block) => Err(format!("what rotted at {block} is repaired to something else")),
        };
    }
    let used = spec.data_offset() as usize..(spec.data_offset() + spec.member_size) as usize;
    let is_same = |(before, disk): (&Image, &SimDisk)| {
        let after = disk.contents();
        let same = |at: usize| before.piece(at, 512) == after.piece(at, 512);
        before.len() < used.end || used.clone().step_by(512).all(same)
    };
    match before.iter().zip(disks).all(is_same) {
        true => Ok(()),
        false => Err("a repair wrote what is not proved".to_owned()),
    }
}

/// Some blocks, and of each the role that rots and where, in its data; at most one role of the members' bytes
/// that are compared with each other.
fn draw(layout: &Layout, spec: &Spec, dice: &mut Rng) -> BTreeMap<u64, (usize, u64)> {
    let size = match layout {
        Layout::Copies(copies) => copies.size(),
        Layout::Parity(_) => spec.member_size,
    };
    let one = |_| {
        let block = dice.below(size / BLOCK) * BLOCK;
        let place = match layout {
            Layout::Copies(copies) => {
                let run = copies.locate(ArrayByte::new(block), dice.index(copies.copies()));
                (run.role.index(), run.offset.get())
            }
            Layout::Parity(_) => (dice.index(spec.members), block),
        };
        (block, place)
    };
    (0..4).map(one).collect()
}
