//! A fresh file system on a device, mounted in a folder that only this user can enter.
//!
//! * No discard by mkfs: it would turn what the region was filled with into holes on some devices
//!   and not on others, and on some takes minutes.
//! * ext4 does not initialise its inode tables behind the trial's back (`noinit_itable`).

use std::path::PathBuf;
use std::time::Duration;

use super::site::{Site, said};
use crate::campaign::{FileSystem, Setup};
use crate::command::{CommandLine, Exit, Finished};
use crate::error::Obstacle;

/// How long mkfs may take: ext2 writes all of its inode tables, which are a percent or two of a
/// disk.
const MKFS_LIMIT: Duration = Duration::from_secs(3600);

/// Makes and mounts it; answers where.
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
        // What the campaign added may be what is refused.
        _ if !setup.mount.is_empty() || !setup.mkfs.is_empty() => {
            return Err(refused(site, &mount, &done, "it could not be mounted"));
        }
        _ => return Err(site.failed(&mount, &done)),
    }
    Ok(folder)
}

/// A device that answers with errors is an error; anything else that is refused stays refused, for
/// instance a file system larger than the device.
fn refused(site: &Site<'_>, command: &CommandLine, done: &Finished, what: &str) -> Obstacle {
    if matches!(done.exit, Exit::Code(_)) && !done.stderr.contains("Input/output error") {
        return Obstacle::Impossible(format!("{what}: {} ({command})", said(done)));
    }
    site.failed(command, done)
}

/// `mkfs.NAME`, quiet, without discard, over whatever is there.
fn mkfs_command(filesystem: FileSystem, further: &str, device: &str) -> CommandLine {
    let mut words: Vec<String> = further.split_whitespace().map(str::to_owned).collect();
    let fixed: &[&str] = match filesystem {
        FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4 => {
            add_to_extended_options(&mut words, "nodiscard");
            &["-q", "-F"]
        }
        FileSystem::Xfs | FileSystem::Btrfs => &["-q", "-f", "-K"],
        FileSystem::F2fs => &["-q", "-f", "-t", "0"],
        // Neither is made.
        FileSystem::None | FileSystem::Own => &[],
    };
    let command = CommandLine::new(format!("mkfs.{}", filesystem.name()));
    let command = fixed.iter().fold(command, |command, word| command.arg(*word));
    words.into_iter().fold(command, CommandLine::arg).arg(device)
}

/// mke2fs heeds only the last `-E`, so an option is added to one that is there.
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

/// `mount -t NAME -o OPTIONS DEVICE`, without the folder.
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
            "who asks for it gets it"
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
