//! `/dev/braid/NAME`: a symbolic link to a volume's block device, whose number changes from time to time.
//!
//! udev makes the same link (packaging/64-braid-assembly.rules), in its own way, `../loopN`; the first of
//! the two makes it.
//!
//! Invariant: only a link is ever replaced or removed, and only one that is this volume's: that leads to
//! its device, or to a device that serves its mount or nothing any more. Any other object
//! there belongs to another program.

use std::io;
use std::path::{Path, PathBuf};

use crate::volume::spec::Spec;
use crate::volume::warnings::Warning;

/// File in which the kernel names the backing file of a loop device: `/sys/block/loopN/loop/backing_file`.
const BLOCK: &str = "/sys/block";

/// A link, which goes with this value.
pub(super) struct Link {
    path: PathBuf,
    device: PathBuf,
}

impl Link {
    /// Makes `path` lead to `device`, which serves what is below `mount`.
    ///
    /// # Errors
    /// Why it does not.
    fn make(path: &Path, device: &Path, mount: &Path) -> Result<Link, String> {
        make_by(path, device, mount, &backing_file)?;
        Ok(Link { path: path.to_owned(), device: device.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        remove(&self.path, &self.device);
    }
}

/// Makes a link, where `backing` says which file a loop device is on, if it is on one.
fn make_by(
    link: &Path,
    device: &Path,
    mount: &Path,
    backing: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    // Another volume that goes may take the folder, when it is empty, at any time.
    for _ in 0..16 {
        if let Some(folder) = link.parent() {
            std::fs::create_dir_all(folder).map_err(text)?;
        }
        match std::os::unix::fs::symlink(device, link) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(text(error)),
        }
        let old = match leads_to(link) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(_) => return Err("something else is there, which is no link".to_owned()),
        };
        if old == device {
            return Ok(());
        }
        let name = old.to_string_lossy();
        let is_ublk = name.starts_with("/dev/ublkb");
        let is_nbd = name.starts_with("/dev/nbd");
        if !is_ublk && !is_nbd && !name.starts_with("/dev/loop") {
            return Err(format!("it is a link to {}, which braid did not make", old.display()));
        }
        // A device of the ublk driver is there as long as it is in use.
        let is_used = backing(&old).is_some_and(|file| !file.starts_with(mount));
        if is_used || is_ublk && old.exists() || is_nbd && has_client(&old) {
            return Err(format!("it leads to {}, which is in use", old.display()));
        }
        remove(link, &old);
    }
    Err("it comes and goes".to_owned())
}

/// True while a device of the kernel's NBD client has a connection: the thread that runs it lives. One that is mounted keeps
/// the number of a thread that has ended.
pub(super) fn has_client(device: &Path) -> bool {
    let file = device.file_name().map(|name| Path::new(BLOCK).join(name).join("pid"));
    let thread = file.and_then(|file| std::fs::read_to_string(file).ok());
    thread.is_some_and(|thread| Path::new("/proc").join(thread.trim()).exists())
}

/// The link to `device` that `spec` asks for, or a warning that it is not there.
pub(super) fn of(spec: &Spec, device: &Path, warnings: &mut Vec<Warning>) -> Option<Link> {
    let link = spec.link.as_ref()?;
    let warning = |why| format!("{} does not lead to {}: {why}", link.display(), device.display());
    let made = Link::make(link, device, &spec.mount);
    made.map_err(|why| warnings.push(Warning::lasting(warning(why)))).ok()
}

/// Takes the link away, if it leads to `device`, and the folder, if it was the last.
pub(super) fn remove(link: &Path, device: &Path) {
    if leads_to(link).is_ok_and(|to| to == device) {
        // One that stays leads nowhere, and the next `up` replaces it.
        let _ = std::fs::remove_file(link);
        if let Some(folder) = link.parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Returns the target of a link; `../loop0` of `/dev/braid/NAME` to `/dev/loop0`.
fn leads_to(link: &Path) -> io::Result<PathBuf> {
    let to = std::fs::read_link(link)?;
    let above = link.parent().and_then(Path::parent);
    Ok(match (to.strip_prefix(".."), above) {
        (Ok(rest), Some(above)) => above.join(rest),
        _ => to,
    })
}

/// The file that a loop device is on; none if it is on nothing.
pub fn backing_file(device: &Path) -> Option<PathBuf> {
    let name = device.file_name()?;
    let file =
        std::fs::read_to_string(Path::new(BLOCK).join(name).join("loop/backing_file")).ok()?;
    Some(PathBuf::from(file.trim_end_matches('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_made_and_replaced_only_if_it_is_the_volumes_own() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("dev/v");
        let (device, mount) = (Path::new("/dev/loop70"), Path::new("/run/braid/v.mount"));
        let to = || std::fs::read_link(&link).unwrap();
        let on = |file: Option<&'static str>| move |_: &Path| file.map(PathBuf::from);
        make_by(&link, device, mount, &on(None)).unwrap();
        make_by(&link, device, mount, &on(None)).unwrap();
        assert_eq!(to(), device);

        let next = Path::new("/dev/loop71");
        let why = make_by(&link, next, mount, &on(Some("/elsewhere/v.mount/volume"))).unwrap_err();
        assert!(why.contains("/dev/loop70, which is in use"), "{why}");
        assert_eq!(to(), device);
        make_by(&link, next, mount, &on(Some("/run/braid/v.mount/volume"))).unwrap();
        assert_eq!(to(), next);
        make_by(&link, device, mount, &on(None)).unwrap();
        assert_eq!(to(), device);

        remove(&link, next);
        assert_eq!(to(), device);

        // As udev makes it.
        let (udevs, above) = (Path::new("../loop72"), folder.path().join("loop72"));
        std::fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(udevs, &link).unwrap();
        make_by(&link, &above, mount, &on(None)).unwrap();
        assert_eq!(to(), udevs);
        remove(&link, &above);
        make_by(&link, device, mount, &on(None)).unwrap();
        remove(&link, device);
        assert!(!link.parent().unwrap().exists());
    }

    #[test]
    fn what_is_somebody_elses_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        std::fs::write(&file, "precious").unwrap();
        std::os::unix::fs::symlink(&file, &other).unwrap();
        let device = Path::new("/dev/loop70");
        for link in [&file, &other, &folder.path().to_owned()] {
            make_by(link, device, Path::new("/run"), &|_| None).unwrap_err();
            remove(link, device);
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
        assert_eq!(std::fs::read_link(&other).unwrap(), file);
    }
}
