//! What is known of the content that a workload reads raw: whether there is any.
//!
//! Of files the file system knows their holes. Of a block device nobody says which blocks were ever
//! written; but a loop device's are its file's.

use std::path::{Path, PathBuf};

use super::Subjects;
use super::devices::sys_file;
use crate::campaign::Source;
use crate::evidence::RegionContent;
use crate::facts::{Member, members_of};
use crate::matrix::Workload;
use crate::source::has_content;
use crate::world::{PathKind, World};

impl Subjects<'_> {
    /// What a workload finds on a subject that is up; `None` where it reads nothing raw, or its time
    /// does not depend on it.
    pub fn content_of(
        &self,
        subject: usize,
        workload: &Workload,
        world: &mut dyn World,
    ) -> Option<RegionContent> {
        let source = &self.subjects[subject].source;
        if !workload.reads_raw() || !has_content(source) {
            return None;
        }
        if self.states[subject].is_filled {
            return Some(RegionContent::Filled);
        }
        Some(self.found_on(source, world).unwrap_or(RegionContent::Unknown))
    }

    /// The holes of all members together, if all are files.
    fn found_on(&self, source: &Source, world: &mut dyn World) -> Option<RegionContent> {
        let (mut holes, mut bytes) = (0, 0);
        for member in members_of(source) {
            let Member::Path(path) = member else { return None };
            let file = file_behind(Path::new(&path), world);
            // What cannot be looked at is not known; a trial that needs it says why it fails.
            let found = world.holes(&file, self.campaign.region.0).ok().flatten()?;
            holes += found.holes;
            bytes += found.bytes;
        }
        Some(RegionContent::Found { holes, bytes })
    }
}

/// The file of a loop device; anything else is itself.
fn file_behind(path: &Path, world: &mut dyn World) -> PathBuf {
    // A file of such a name is none.
    if !matches!(world.path_kind(path), Ok(Some(PathKind::Block))) {
        return path.to_path_buf();
    }
    let link = sys_file(&path.display().to_string(), "backing_file");
    let file = world.read_text(&link).ok().flatten();
    file.map_or_else(|| path.to_path_buf(), |file| PathBuf::from(file.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Planned;
    use crate::matrix::parse_campaign;
    use crate::{LabOptions, SystemWorld};

    const MIB: u64 = 1 << 20;

    #[test]
    fn holes_of_files_are_seen_within_the_region() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let (whole, sparse) = (path("whole"), path("sparse"));
        std::fs::write(&whole, vec![1; 4 * MIB as usize]).unwrap();
        // Written in its first mebibyte.
        std::fs::write(&sparse, vec![1; MIB as usize]).unwrap();
        std::fs::File::options().write(true).open(&sparse).unwrap().set_len(4 * MIB).unwrap();
        let found = |source: &str, op: &str| {
            let text = format!(
                "name = \"t\"\nregion = \"3M\"\n\
                 [[subject]]\nname = \"a\"\n{source}\nbaseline = true\n\
                 [[job]]\ntool = \"dd\"\nop = \"{op}\"\nsize = \"1M\"\n"
            );
            let campaign = parse_campaign(&text, "test").unwrap();
            let options = LabOptions::new(dir.path()).unwrap();
            let subjects = Subjects::new(&Planned::of(&campaign), &options).unwrap();
            subjects.content_of(0, &Planned::of(&campaign).workloads[0], &mut SystemWorld::new())
        };
        let seen = |holes: u64, bytes: u64| {
            Some(RegionContent::Found { holes: holes * MIB, bytes: bytes * MIB })
        };
        assert_eq!(found(&format!("path = {whole:?}"), "read"), seen(0, 3));
        assert_eq!(found(&format!("path = {sparse:?}"), "read"), seen(2, 3));
        let both = format!("stack = \"raid0({whole}, {sparse})\"");
        assert_eq!(found(&both, "read"), seen(2, 6));
        assert_eq!(found(&both, "write"), None);
        // Of memory, devices and what is not there nobody knows; a model does not care.
        for other in ["path = \"/dev/null\"", "path = \"/none\"", "stack = \"ram(8M)\""] {
            assert_eq!(found(other, "read"), Some(RegionContent::Unknown), "{other}");
        }
        assert_eq!(found("stack = \"model(hdd, size=8M)\"", "read"), None);
    }
}
