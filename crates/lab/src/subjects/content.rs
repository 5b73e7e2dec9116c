//! The known content of the region that a workload reads raw.
//!
//! The file system knows the holes of files. The written blocks of a block device are unknown, except for a
//! loop device: they are those of its file.

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
    /// Returns the content of a subject that is up for a workload; `None` if the workload does not read raw, or
    /// its time does not depend on the content.
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

    /// Returns the holes of all members together, if all are files.
    fn found_on(&self, source: &Source, world: &mut dyn World) -> Option<RegionContent> {
        let (mut holes, mut bytes) = (0, 0);
        for member in members_of(source) {
            let Member::Path(path) = member else { return None };
            let file = file_behind(Path::new(&path), world);
            // An unreadable file is unknown; a trial that needs it reports the fault.
            let found = world.holes(&file, self.campaign.region.0).ok().flatten()?;
            holes += found.holes;
            bytes += found.bytes;
        }
        Some(RegionContent::Found { holes, bytes })
    }
}

/// Returns the file of a loop device, and any other path unchanged.
fn file_behind(path: &Path, world: &mut dyn World) -> PathBuf {
    // A regular file with such a name is no loop device.
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
        // Its first mebibyte is written.
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
        // The content of memory, devices and absent paths is unknown; a model does not depend on it.
        for other in ["path = \"/dev/null\"", "path = \"/none\"", "stack = \"ram(8M)\""] {
            assert_eq!(found(other, "read"), Some(RegionContent::Unknown), "{other}");
        }
        assert_eq!(found("stack = \"model(hdd, size=8M)\"", "read"), None);
    }
}
