//! What a trial needs on top of a subject that is up: read-ahead, file system, a folder; and what
//! to look at around it.

use std::path::{Path, PathBuf};

use braid_stack::Node;

use super::devices::{disks_of, kernel_name};
use super::journal::Thing;
use super::site::{Base, Obstacle, Site};
use super::{Ready, Subjects, filesystem, readahead, whole_blocks};
use crate::campaign::{FileSystem, Source, Subject};
use crate::command::Target;
use crate::evidence::Watch;
use crate::facts::real_path;
use crate::matrix::{FOLDER_AS_IT_IS, Workload};
use crate::safety::workload_writes;
use crate::story::Story;
use crate::world::World;

/// The share of a fresh file system that a trial may use: copies of trees need room beside them.
pub(crate) const SHARE_OF_FILE_SYSTEM: f64 = 0.45;
/// The share of a folder's free space that a trial may use: it is not ours alone.
pub(crate) const SHARE_OF_FOLDER: f64 = 0.5;

impl Subjects<'_> {
    /// Read-ahead, file system, folder: what a trial needs on top of the base.
    pub(super) fn prepare(
        &mut self,
        subject: usize,
        workload: &Workload,
        mut commands: Vec<String>,
        world: &mut dyn World,
    ) -> Result<Ready, Obstacle> {
        let Some(base) = self.states[subject].base.clone() else {
            return Err(Obstacle::Impossible("it is not up".to_owned()));
        };
        let writes = workload_writes(workload);
        if writes {
            self.check_permit(subject)?;
            self.check_unused(subject, world)?;
        }
        let facts = &self.subjects[subject];
        let mut site = Site {
            world,
            held: &mut self.states[subject].trial,
            stop: &self.options.stop,
            subject: &facts.name,
            commands: &mut commands,
        };
        let (folder, share) = place(&mut site, &base, workload)?;
        if let (true, None, Target::Device(device)) = (writes, &folder, &base.target)
            && let Some(claim) = site.world.claim(device)?
        {
            site.held.claim(claim);
        }
        let mut watch = watch_of(facts, &base);
        let (target, region_bytes) = match &folder {
            None => (base.target.clone(), self.raw_region(&base)),
            Some(folder) => {
                let free = site.world.free_bytes(folder)?;
                let room = whole_blocks((free as f64 * share) as u64);
                let table = site.world.read_text(Path::new("/proc/self/mounts"))?;
                watch.mountpoint = mountpoint_of(folder, &table.unwrap_or_default());
                (Target::Folder(folder.clone()), self.campaign.region.0.min(room))
            }
        };
        let size_bytes = base.size_bytes;
        let story = Story::none();
        Ok(Ready { target, size_bytes, region_bytes, watch, story, commands, folder })
    }
}

/// The trial's folder, if it works in one, and how much of the free space it may use.
fn place(
    site: &mut Site<'_>,
    base: &Base,
    workload: &Workload,
) -> Result<(Option<PathBuf>, f64), Obstacle> {
    let setup = &workload.setup;
    let device = match &base.target {
        Target::Folder(_) if !setup.leaves_folders_alone() => {
            return Err(Obstacle::Impossible(FOLDER_AS_IT_IS.to_owned()));
        }
        Target::Folder(parent) => {
            note_mount(site, parent)?;
            let folder = site.world.make_folder(parent)?;
            site.hold(Thing::Folder { path: folder.clone(), with_content: true });
            return Ok((Some(folder), SHARE_OF_FOLDER));
        }
        Target::Device(path) => path.display().to_string(),
        Target::Nbd(_) if setup.filesystem == FileSystem::None && setup.readahead.is_none() => {
            return Ok((None, 0.0));
        }
        Target::Nbd(_) => {
            let reason = "an NBD export is no block device of this machine: attach it first";
            return Err(Obstacle::Impossible(reason.to_owned()));
        }
    };
    if let Some(size) = setup.readahead {
        readahead::set(site, &device, size, setup.filesystem)?;
    }
    if setup.filesystem == FileSystem::None {
        return Ok((None, 0.0));
    }
    let mount = filesystem::mount(site, &device, setup)?;
    // It goes with the file system: to remove a tree of many files could take minutes.
    let folder = site.world.make_folder(&mount)?;
    Ok((Some(folder), SHARE_OF_FILE_SYSTEM))
}

/// Says among the commands what a folder lies on: no mkfs and no mount does.
fn note_mount(site: &mut Site<'_>, folder: &Path) -> Result<(), Obstacle> {
    let table = site.world.read_text(Path::new("/proc/self/mounts"))?.unwrap_or_default();
    let found = mount_of(folder, &table).map_or_else(
        || "an unknown file system".to_owned(),
        |mount| format!("{} at {} -o {}", mount.kind, mount.point.display(), mount.options),
    );
    site.commands.push(format!("# {} lies on {found}", folder.display()));
    Ok(())
}

/// A line of `/proc/self/mounts`.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    kind: String,
    options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').skip(1);
        let (point, kind, options) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            // The kernel writes blanks as octal numbers.
            point: PathBuf::from(point.replace("\\040", " ")),
            kind: kind.to_owned(),
            options: options.to_owned(),
        })
    }
}

/// The mount that a folder lies on: the deepest above it, and of several there the last.
fn mount_of(folder: &Path, table: &str) -> Option<Mount> {
    let folder = real_path(folder);
    let mounts = table.lines().filter_map(Mount::parse);
    mounts
        .filter(|mount| folder.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())
}

/// Where the file system of a folder is mounted.
pub(super) fn mountpoint_of(folder: &Path, table: &str) -> Option<PathBuf> {
    mount_of(folder, table).map(|mount| mount.point)
}

fn watch_of(facts: &Subject, base: &Base) -> Watch {
    let target = match &base.target {
        Target::Device(path) => kernel_name(path),
        Target::Nbd(_) | Target::Folder(_) => None,
    };
    Watch {
        target,
        members: disks_of(&facts.source),
        server_pid: base.server_pid,
        volume: base.volume.clone(),
        mountpoint: None,
        models: models_of(&facts.source),
    }
}

/// Rates of the modelled members if the expression says all of them; a profile's own are not known
/// here.
pub(super) fn models_of(source: &Source) -> Vec<(u64, u64)> {
    let Source::Stack(expression) = source else { return Vec::new() };
    let Ok(stack) = expression.stack() else { return Vec::new() };
    let leaves = stack.leaves();
    let models = leaves.iter().filter_map(|leaf| match &leaf.node {
        Node::Model(model) => Some(model.overrides),
        _ => None,
    });
    let rates =
        models.map(|rates| Some((rates.read?.bytes_per_second(), rates.write?.bytes_per_second())));
    rates.collect::<Option<_>>().unwrap_or_default()
}
