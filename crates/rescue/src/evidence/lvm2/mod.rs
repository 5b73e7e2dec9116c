//! LVM2: the label and the header of a metadata area have their own address and a checksum. The text in the area says
//! where logical volumes lie.
//!
//! ```text
//!   sector 1   LABELONE: the PV's UUID, its size             a clue
//!   4096       header of the metadata area: its own start    a clue, if there is one PV only
//!     +512     texts, each begins a sector: VG { seqno, physical_volumes, logical_volumes }
//! ```

mod text;

pub(crate) use text::parse;
pub use text::{Logical, Physical, Segment, VolumeGroup};

use super::bytes::{array, le32, le64};
use super::crc::{START_LVM2, advance_ieee};
use super::sectors;
use crate::clue::{Anchor, Structure};

/// A physical volume of LVM2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lvm2 {
    id: [u8; 32],
    size: u64,
    group: Option<VolumeGroup>,
}

/// Reads a label, and its place.
pub(crate) fn recognise(bytes: &[u8]) -> Option<(Lvm2, u64)> {
    if !bytes.starts_with(b"LABELONE") || bytes.get(24..32)? != b"LVM2 001" {
        return None;
    }
    let label = bytes.get(..512)?;
    let sector = le64(label, 8)?;
    if sector > 3 || advance_ieee(START_LVM2, &label[20..]) != le32(label, 16)? {
        return None;
    }
    let header = label.get(le32(label, 20)? as usize..)?;
    let lvm2 = Lvm2 { id: array(header, 0)?, size: le64(header, 32)?, group: None };
    Some((lvm2, sector * 512))
}

impl Lvm2 {
    /// Its UUID, without dashes.
    pub(crate) fn id(&self) -> &[u8; 32] {
        &self.id
    }

    /// The newest text about its volume group that was found.
    pub fn group(&self) -> Option<&VolumeGroup> {
        self.group.as_ref()
    }

    /// The description of this physical volume in the text.
    pub fn physical(&self) -> Option<&Physical> {
        self.group()?.physical.iter().find(|one| one.id == self.id)
    }

    /// Its UUID has 32 characters, of which the first 16 are the anchor's.
    pub(super) fn anchor(&self) -> Anchor {
        let uuid = self.id.first_chunk().copied().unwrap_or_default();
        Anchor { structure: Structure::Lvm2, uuid, size: Some(self.size) }
    }

    pub(super) fn absorb(&mut self, other: &Lvm2) -> bool {
        let is_same = self.id == other.id && self.size == other.size;
        if let Some(group) = other.group.as_ref().filter(|_| is_same) {
            self.take(group);
        }
        is_same
    }

    fn take(&mut self, group: &VolumeGroup) {
        let is_newer = self.group.as_ref().is_none_or(|held| held.seqno < group.seqno);
        if is_newer && group.physical.iter().any(|one| one.id == self.id) {
            self.group = Some(group.clone());
        }
    }

    /// Learns from texts about the volume group.
    pub(super) fn learn(&mut self, window: &[u8]) {
        let groups = sectors(window).filter_map(|(_, bytes)| text::parse(bytes));
        groups.for_each(|group| self.take(&group));
    }

    pub(super) fn clues(
        &self,
        window: &[u8],
        is_alone: bool,
        mut give: impl FnMut(usize, u64, usize),
    ) {
        for (from, bytes) in sectors(window) {
            let label = || {
                let (one, place) = recognise(bytes)?;
                (one.id == self.id).then_some(place)
            };
            let area = || is_alone.then(|| area(bytes, self.size)).flatten();
            if let Some(place) = label().or_else(area) {
                give(from, place, 512);
            }
        }
    }
}

/// Reads the header of a metadata area: its place.
fn area(bytes: &[u8], size: u64) -> Option<u64> {
    if bytes.get(4..20)? != b" LVM2 x[5A%r0N*>" {
        return None;
    }
    let header = bytes.get(..512)?;
    let place = le64(header, 24)?;
    let is_right = le32(header, 0)? == advance_ieee(START_LVM2, &header[4..]) && place < size;
    is_right.then_some(place)
}
