//! The logs on a member that close the write hole, read and checked.
//!
//! | log | where | what is checked |
//! |---|---|---|
//! | md's partial parity log | where the superblock says | after a crash: header, entries, parity |
//! | braid's stripe log | in front of the data; the superblock does not name it | its head |
//!
//! Deliberately absent: the records of a stripe log, and checksums of the partial parity log. An invalid record
//! or entry was torn by the crash, which means that its write never began.

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

/// The logs of a member.
#[derive(Default)]
pub struct Logs {
    /// The head of the stripe log, if it is valid and belongs to this member.
    pub head: Option<Head>,
    /// Why a log that was found cannot be used.
    pub trouble: Option<String>,
    /// The log may belong to another array, another device, or a newer braid: it is not overwritten.
    pub is_foreign: bool,
}

/// Reads the logs of a member.
///
/// # Errors
/// The member cannot be read.
pub(super) fn read(source: &mut Source<'_>, superblock: &Superblock) -> io::Result<Logs> {
    // An array with a partial parity log has no other log.
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

/// Returns the head of a stripe log in front of the data of an array with parity, or the reason why the head is
/// invalid. Returns `None` if nothing looks like a head.
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
        // The space in front of the data of most arrays.
        Err(LogRejection::Magic { .. } | LogRejection::Truncated { .. }) => None,
        head => Some(head),
    })
}

/// Returns why the partial parity log cannot repair parity after a crash. Returns `None` also if there was no
/// crash, because the log is not needed then.
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
        // A member without a role is not read.
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
