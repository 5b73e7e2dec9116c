//! The needs of a trial on top of a subject that is up: read-ahead, file system, a folder; and the objects to
//! observe.

use std::path::{Path, PathBuf};

use braid_stack::Node;

use super::devices::{disks_of, kernel_name};
use super::site::{Base, Site};
use super::things::Thing;
use super::{Ready, Subjects, filesystem, readahead, whole_blocks};
use crate::campaign::{FileSystem, Source, Subject};
use crate::command::Target;
use crate::error::Obstacle;
use crate::evidence::Watch;
use crate::facts::mount_of;
use crate::matrix::{FOLDER_AS_IT_IS, Workload};
use crate::safety::workload_writes;
use crate::story::Story;
use crate::world::World;

/// Shares of a file system's free space that a trial may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shares {
    /// For a tool that takes all it gets.
    region: f64,
    /// For a tool that knows its needs.
    room: f64,
}

/// A new file system belongs to the trial alone. A tool that takes all it gets must not fill it, because every
/// full file system is slow. A tool that knows its needs has counted its copies, and a tenth is left for the
/// file system's own writes.
const OF_FILE_SYSTEM: Shares = Shares { region: 0.45, room: 0.9 };
/// The free space of a folder is shared with other users.
const OF_FOLDER: Shares = Shares { region: 0.5, room: 0.5 };

impl Shares {
    /// Returns the shares of an existing folder, or of a file system that is made.
    pub(crate) fn of(in_folder: bool) -> Self {
        if in_folder { OF_FOLDER } else { OF_FILE_SYSTEM }
    }

    /// Returns the bytes for a tool that takes all it gets, and for one that knows its needs, from the free
    /// bytes and the campaign's region.
    pub(crate) fn bytes(self, free: f64, region: u64) -> [u64; 2] {
        [self.region, self.room].map(|share| region.min(whole_blocks((free * share) as u64)))
    }
}

impl Subjects<'_> {
    /// Prepares read-ahead, file system and folder for a trial.
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
        let (folder, shares) = place(&mut site, &base, workload)?;
        if let (true, None, Target::Device(device)) = (writes, &folder, &base.target)
            && let Some(claim) = site.world.claim(device)?
        {
            site.held.claim(claim);
        }
        let mut watch = watch_of(facts, &base);
        let (target, [region_bytes, room_bytes]) = match &folder {
            None => (base.target.clone(), [self.raw_region(&base); 2]),
            Some(folder) => {
                let free = site.world.free_bytes(folder)?;
                watch.mountpoint = mount_under(&mut site, folder)?.map(|mount| mount.mount_point);
                (Target::Folder(folder.clone()), shares.bytes(free as f64, self.campaign.region.0))
            }
        };
        let size_bytes = base.size_bytes;
        let story = Story::none();
        Ok(Ready { target, size_bytes, region_bytes, room_bytes, watch, story, commands, folder })
    }
}

/// Returns the trial's folder, if it works in one, and the shares of the free space.
fn place(
    site: &mut Site<'_>,
    base: &Base,
    workload: &Workload,
) -> Result<(Option<PathBuf>, Shares), Obstacle> {
    let setup = &workload.setup;
    let device = match &base.target {
        Target::Folder(_) if !setup.leaves_folders_alone() => {
            return Err(Obstacle::Impossible(FOLDER_AS_IT_IS.to_owned()));
        }
        Target::Folder(parent) => {
            note_mount(site, parent)?;
            let folder = site.world.make_folder(parent)?;
            site.hold(Thing::Folder { path: folder.clone(), with_content: true });
            return Ok((Some(folder), OF_FOLDER));
        }
        Target::Device(path) => path.display().to_string(),
        Target::Nbd(_) if setup.filesystem == FileSystem::None && setup.readahead.is_none() => {
            return Ok((None, OF_FILE_SYSTEM));
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
        return Ok((None, OF_FILE_SYSTEM));
    }
    let mount = filesystem::mount(site, &device, setup)?;
    // It is removed with the file system: removing a tree of many files could take minutes.
    let folder = site.world.make_folder(&mount)?;
    Ok((Some(folder), OF_FILE_SYSTEM))
}

/// Adds the file system of a folder to the commands, which have neither mkfs nor mount.
fn note_mount(site: &mut Site<'_>, folder: &Path) -> Result<(), Obstacle> {
    let found = mount_under(site, folder)?.map_or_else(
        || "an unknown file system".to_owned(),
        |mount| format!("{} at {} -o {}", mount.kind, mount.mount_point.display(), mount.options),
    );
    site.commands.push(format!("# {} lies on {found}", folder.display()));
    Ok(())
}

fn mount_under(site: &mut Site<'_>, folder: &Path) -> Result<Option<braid_probe::Mount>, Obstacle> {
    let table = site.world.read_text(Path::new("/proc/self/mountinfo"))?.unwrap_or_default();
    Ok(mount_of(folder, &table))
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

/// Returns the rates of the modelled members if the expression has all of them; those of a profile are unknown
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
