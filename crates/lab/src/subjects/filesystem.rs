//! A new file system on a device, mounted in a folder that only this user can enter.
//!
//! * mkfs does not discard: on some devices a discard would turn the filled region into holes, and on some it
//!   takes minutes.
//! * ext4 does not initialise its inode tables during the trial (`noinit_itable`).

use std::path::PathBuf;
use std::time::Duration;

use super::site::{Site, said};
use crate::campaign::{FileSystem, Setup};
use crate::command::{CommandLine, Exit, Finished};
use crate::error::Obstacle;

/// Time limit of mkfs: ext2 writes all of its inode tables, which are a percent or two of a disk.
const MKFS_LIMIT: Duration = Duration::from_secs(3600);

/// Makes and mounts the file system; returns the mount point.
pub(super) fn mount(site: &mut Site<'_>, device: &str, setup: &Setup) -> Result<PathBuf, Obstacle> {
    site.needs_root("mounting a file system")?;
    let mkfs = mkfs_command(setup.filesystem, &setup.mkfs, device);
    let done = site.run(&mkfs, MKFS_LIMIT)?;
    if done.exit != Exit::Code(0) {
        return Err(refused(site, &mkfs, &done, "mkfs refused"));
    }
    let (folder, mount, done) = site.mount(mount_command(setup, device))?;
    let name = setup.filesystem.name();
    match done.exit {
        Exit::Code(0) => {}
        _ if done.stderr.contains("unknown filesystem type") => {
            return Err(Obstacle::Impossible(format!("this kernel has no {name}")));
        }
        // The campaign's own options may be the reason.
        _ if !setup.mount.is_empty() || !setup.mkfs.is_empty() => {
            return Err(refused(site, &mount, &done, "it could not be mounted"));
        }
        _ => return Err(site.failed(&mount, &done)),
    }
    Ok(folder)
}

/// Returns the obstacle of a refused command. I/O errors of the device are an error; any other refusal is
/// permanent, for instance of a file system larger than the device.
fn refused(site: &Site<'_>, command: &CommandLine, done: &Finished, what: &str) -> Obstacle {
    if matches!(done.exit, Exit::Code(_)) && !done.stderr.contains("Input/output error") {
        return Obstacle::Impossible(format!("{what}: {} ({command})", said(done)));
    }
    site.failed(command, done)
}

/// Returns `mkfs.NAME`, quiet, without discard, over any content.
fn mkfs_command(filesystem: FileSystem, further: &str, device: &str) -> CommandLine {
    let mut words: Vec<String> = further.split_whitespace().map(str::to_owned).collect();
    let fixed: &[&str] = match filesystem {
        FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => {
            add_to_extended_options(&mut words, "nodiscard");
            &["-q", "-F"]
        }
        FileSystem::Xfs | FileSystem::Btrfs => &["-q", "-f", "-K"],
        FileSystem::F2fs => &["-q", "-f", "-t", "0"],
        // Neither is made by mkfs.
        FileSystem::None | FileSystem::Own => &[],
    };
    let command = CommandLine::new(format!("mkfs.{}", filesystem.name()));
    let command = fixed.iter().fold(command, |command, word| command.arg(*word));
    words.into_iter().fold(command, CommandLine::arg).arg(device)
}

/// Adds an option to an existing `-E`, since mke2fs uses only the last one.
fn add_to_extended_options(words: &mut Vec<String>, option: &str) {
    match words.iter().rposition(|word| word == "-E") {
        Some(at) if at + 1 < words.len() => {
            if !words[at + 1].contains("discard") {
                words[at + 1] = format!("{},{option}", words[at + 1]);
            }
        }
        _ => words.extend(["-E".to_owned(), option.to_owned()]),
    }
}

/// Returns `mount -t NAME -o OPTIONS DEVICE`, without the folder.
fn mount_command(setup: &Setup, device: &str) -> CommandLine {
    let mut options: Vec<&str> = setup.mount.split(',').filter(|one| !one.is_empty()).collect();
    if setup.filesystem == FileSystem::Ext4
        && !options.iter().any(|one| one.contains("init_itable"))
    {
        options.push("noinit_itable");
    }
    let mut command = CommandLine::new("mount").arg("-t").arg(setup.filesystem.name());
    if !options.is_empty() {
        command = command.arg("-o").arg(options.join(","));
    }
    command.arg(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mkfs_is_quiet_and_discards_nothing() {
        let text = |fs, further| mkfs_command(fs, further, "/dev/x").to_string();
        assert_eq!(text(FileSystem::Ext4, ""), "mkfs.ext4 -q -F -E nodiscard /dev/x");
        assert_eq!(
            text(FileSystem::Ext4, "-E stride=16 -m 0"),
            "mkfs.ext4 -q -F -E stride=16,nodiscard -m 0 /dev/x"
        );
        assert_eq!(
            text(FileSystem::Ext2, "-E discard"),
            "mkfs.ext2 -q -F -E discard /dev/x",
            "a given option stays"
        );
        assert_eq!(text(FileSystem::Xfs, "-d su=64k"), "mkfs.xfs -q -f -K -d su=64k /dev/x");
        assert_eq!(text(FileSystem::F2fs, ""), "mkfs.f2fs -q -f -t 0 /dev/x");
    }

    #[test]
    fn mount_options_are_passed_on() {
        let text = |filesystem, mount: &str| {
            let setup = Setup { filesystem, mount: mount.into(), ..Setup::default() };
            mount_command(&setup, "/dev/x").to_string()
        };
        assert_eq!(text(FileSystem::Xfs, ""), "mount -t xfs /dev/x");
        assert_eq!(
            text(FileSystem::Xfs, "noatime,nobarrier"),
            "mount -t xfs -o noatime,nobarrier /dev/x"
        );
        assert_eq!(
            text(FileSystem::Ext4, "noatime"),
            "mount -t ext4 -o noatime,noinit_itable /dev/x"
        );
        assert_eq!(
            text(FileSystem::Ext4, "init_itable=1"),
            "mount -t ext4 -o init_itable=1 /dev/x"
        );
    }
}
