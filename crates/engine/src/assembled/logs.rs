//! What a member holds of the logs that close the write hole, read and checked.
//!
//! | log | where | what is checked |
//! |---|---|---|
//! | md's partial parity log | where the superblock says | after a crash: header, entries, parity |
//! | braid's stripe log | in front of the data, and the superblock does not know of it | its head |
//!
//! Deliberately absent: the records of a stripe log, and checksums of the partial parity log. What
//! of them is not sound was torn by the crash, and says that its write never began.

use std::io;
use std::ops::Range;

use braid_array::geometry::{Column, Raid456};
use braid_array::{Geometry, GeometryError};
use braid_level::{ParityLayout, ParityLevel};
use braid_md::ppl::{self, Entry, Newest};
use braid_md::rejection::{LogRejection, PplRejection};
use braid_md::stripe_log::{self, BLOCK, Head};
use braid_md::superblock::Contents;
use braid_md::{Level, Resync, Role, Superblock};

use super::source::Source;

/// What a member holds of a log.
#[derive(Default)]
pub struct Logs {
    /// The head of its stripe log, if there is one that is sound and its own.
    pub head: Option<Head>,
    /// Why there is something like a log that cannot be used.
    pub trouble: Option<String>,
    /// What is there may be of another array, another device, or a newer braid: it is not written over.
    pub is_foreign: bool,
}

/// Reads what is there.
///
/// # Errors
/// The member cannot be read.
pub(super) fn read(source: &mut Source<'_>, superblock: &Superblock) -> io::Result<Logs> {
    // An array with a partial parity log has no other.
    if superblock.ppl.is_some() {
        let trouble = partial_parity_trouble(source, superblock)?;
        return Ok(Logs { trouble, ..Logs::default() });
    }
    Ok(match stripe_log_head(source, superblock)? {
        None => Logs::default(),
        Some(Ok(head)) => Logs { head: Some(head), ..Logs::default() },
        Some(Err(why)) => {
            let is_foreign = !matches!(why, LogRejection::Checksum { .. });
            Logs { trouble: Some(why.to_string()), is_foreign, ..Logs::default() }
        }
    })
}

/// The head of a stripe log in front of the data of an array with parity, or what is wrong with it;
/// `None` where nothing looks like one.
///
/// # Errors
/// The member cannot be read.
pub fn stripe_log_head(
    source: &mut Source<'_>,
    superblock: &Superblock,
) -> io::Result<Option<Result<Head, LogRejection>>> {
    let has_parity = matches!(superblock.level, Level::Raid4 | Level::Raid5 | Level::Raid6);
    let place = stripe_log::place(superblock).filter(|_| has_parity);
    let Some(place) = place else { return Ok(None) };
    let block = source.read(place.head, BLOCK as u64)?;
    let head = Head::parse(&block, &superblock.array_uuid, superblock.device_number, place.room);
    Ok(match head {
        // What lies in front of the data of most arrays.
        Err(LogRejection::Magic { .. } | LogRejection::Truncated { .. }) => None,
        head => Some(head),
    })
}

/// Why the partial parity log could not make good what a crash left; `None` also where there was
/// none, because then nobody asks.
fn partial_parity_trouble(
    source: &mut Source<'_>,
    superblock: &Superblock,
) -> io::Result<Option<String>> {
    let Some((offset, len)) = superblock.ppl.filter(|_| superblock.resync != Resync::Clean) else {
        return Ok(None);
    };
    let Some(start) = superblock.super_offset.checked_add_signed(offset) else {
        return Ok(Some("it lies outside the device".to_owned()));
    };
    let area = source.read(start, len)?;
    let newest = match ppl::newest(&area, ppl::signature(&superblock.array_uuid)) {
        Ok(newest) => newest,
        Err(why) if why.is_torn() => return Ok(None),
        Err(why) => return Ok(Some(why.to_string())),
    };
    let geometry = match geometry_of(superblock) {
        Ok(geometry) => geometry,
        Err(why) => return Ok(Some(why.to_string())),
    };
    let sound = |(entry, range): (&Entry, Range<usize>)| {
        let covered = ppl::covered(entry, geometry.chunk(), geometry.data(), geometry.size())?;
        let by_layout = geometry.role_of(covered.stripe, Column::P).get();
        // Who has no role is not read.
        if let Role::Active(role) = superblock.role() {
            ppl::check_parity_role(entry, by_layout, role)?;
        }
        Newest::parity(&area, entry, range).map(drop)
    };
    let mut troubles = newest.parity_ranges().filter_map(|entry| sound(entry).err());
    let trouble = troubles.find(|why| !why.is_torn());
    Ok(trouble.map(|why: PplRejection| why.to_string()))
}

fn geometry_of(superblock: &Superblock) -> Result<Raid456, GeometryError> {
    let Contents { component_size, raid_disks, chunk, layout, .. } = **superblock;
    let layout = ParityLayout::from_number(ParityLevel::Raid5, layout)?;
    Raid456::new(component_size, raid_disks as usize, chunk, ParityLevel::Raid5, layout)
}
