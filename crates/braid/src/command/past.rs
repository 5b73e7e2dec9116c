//! The notes of `create` on members that once were an array: which array, and where versions of mdadm let the data
//! start.
//!
//! An array that is made anew over one whose superblocks were lost shows the old data only with the same order, level,
//! chunk and data offset. Deliberately absent: refusing, which is `given::judge`'s.

use std::path::{Path, PathBuf};

use braid_level::layout;
use braid_md::create::past_offsets;
use braid_md::{Level, Superblock, Version};
use braid_shell::shown;
use braid_stack::ByteSize;

use braid_service::metadata::{Copies, Image, Kept};
use braid_service::record::Seen;

/// The array that is to be made.
pub(super) struct Wanted {
    pub(super) level: Level,
    pub(super) version: Version,
    /// In bytes.
    pub(super) chunk: Option<u64>,
    /// Its copies, or data and parity, are said to agree already: perhaps it is one that was there.
    pub(super) assume_clean: bool,
}

/// An array that members were of.
struct Past {
    superblock: Superblock,
    /// The copy of its superblocks, if they are on no member any more.
    copy: Option<u64>,
    /// The members, each with its role.
    members: Vec<String>,
}

/// A sentence for each array that `paths` are or were of; none for members without a past.
pub(super) fn notes(paths: &[PathBuf], wanted: &Wanted) -> Vec<String> {
    let copies = Copies::own().list();
    let mut arrays: Vec<Past> = Vec::new();
    let mut images = Vec::new();
    for path in paths {
        // One that cannot be read is refused elsewhere.
        let Ok(image) = Image::open(path) else { continue };
        let own = image.best().and_then(|one| Some((one.result.clone().ok()?, None)));
        images.push(image);
        let Some((superblock, copy)) = own.or_else(|| copied(path, &copies)) else { continue };
        let role = super::superblocks::role_in_words(superblock.role());
        let member = format!("{} ({role})", shown(&path.display().to_string()));
        match arrays.iter_mut().find(|one| one.superblock.array_uuid == superblock.array_uuid) {
            Some(array) => array.members.push(member),
            None => arrays.push(Past { superblock, copy, members: vec![member] }),
        }
    }
    let mut notes: Vec<String> = arrays.iter().map(Past::describe).collect();
    let has_content = |offset: u64| images.iter().any(|image| image.has_content_at(offset));
    let first = images.first().map_or(0, |image| image.size);
    let offsets = past_offsets(wanted.version, wanted.level, wanted.chunk, first);
    let is_likely = wanted.assume_clean && offsets.iter().any(|one| has_content(one.offset));
    if !offsets.is_empty() && (is_likely || !arrays.is_empty()) {
        let one =
            |at: &braid_md::create::PastOffset| format!("{:#} ({})", ByteSize(at.offset), at.by);
        notes.push(format!(
            "mdadm let the data of a {} with metadata {} on such members start at {}; --data-offset \
             SIZE --consistency resync makes an array that fits",
            wanted.level,
            wanted.version,
            offsets.iter().map(one).collect::<Vec<_>>().join(", ")
        ));
    }
    notes
}

/// The superblock that the device at `path` had by the latest copy, and that copy's number.
fn copied(path: &Path, copies: &[Kept]) -> Option<(Superblock, Option<u64>)> {
    let seen = Seen::at(path)?;
    copies.iter().find_map(|kept| {
        let member = kept.members.iter().find(|one| one.known.is(&seen))?;
        Some((member.carried().ok()?.superblock, Some(kept.number)))
    })
}

impl Past {
    fn describe(&self) -> String {
        let array = &self.superblock;
        let mut what = vec![format!("{} of {} members", array.level, array.raid_disks)];
        what.extend(
            Some(layout::name_of(array.level, array.layout)).filter(|name| !name.is_empty()),
        );
        what.extend((array.chunk > 0).then(|| format!("chunk {:#}", ByteSize(array.chunk))));
        what.push(format!("metadata {}", array.version));
        what.push(format!("data from {:#} on", ByteSize(array.data_offset)));
        if !array.name.is_empty() {
            what.push(shown(&array.name).into_owned());
        }
        what.push(array.array_uuid.to_string());
        let (members, what) = (self.members.join(", "), what.join(", "));
        match self.copy {
            None => format!("there is an array on {members}: {what}; to have it: `braid assemble`"),
            Some(number) => format!(
                "there was an array on {members}: {what}; to have it: `braid superblocks restore {number}`"
            ),
        }
    }
}
