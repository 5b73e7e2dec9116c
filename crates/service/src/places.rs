//! Folders and files of volumes.
//!
//! | what                         | root          | anybody else                            |
//! |------------------------------|---------------|-----------------------------------------|
//! | `NAME.toml`: how to bring up | /etc/braid    | $XDG_CONFIG_HOME/braid, ~/.config/braid |
//! | sockets, logs, mounts        | /run/braid    | $XDG_RUNTIME_DIR/braid, /tmp/braid-UID  |
//! | what `undo` puts back, copies of superblocks, the token of `web`, logs of caches that were given up, forgotten volumes, how far scrubs are | /var/lib/braid| $XDG_STATE_HOME/braid, ~/.local/state/… |
//! | links to block devices       | /dev/braid    | none: only root attaches                |
//!
//! `BRAID_CONFIG_DIR`, `BRAID_RUN_DIR`, `BRAID_STATE_DIR` and `BRAID_DEV_DIR` replace them.

use std::env;
use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use braid_control::MONITOR;

use crate::failure::{Context, Failure};

/// Longest name: a socket's path has 107 bytes in all.
const LONGEST_NAME: usize = 40;

/// The folders in use.
#[derive(Clone, Debug)]
pub struct Places {
    config: PathBuf,
    run: PathBuf,
    state: PathBuf,
    dev: PathBuf,
}

impl Places {
    /// The folders of this machine, or those that variables of the environment name.
    pub fn from_environment() -> Places {
        let root = rustix::process::geteuid().is_root();
        let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = folder("BRAID_CONFIG_DIR").unwrap_or_else(|| match root {
            true => "/etc/braid".into(),
            false => folder("XDG_CONFIG_HOME")
                .or_else(|| folder("HOME").map(|home| home.join(".config")))
                .unwrap_or_else(|| "/".into())
                .join("braid"),
        });
        let run = folder("BRAID_RUN_DIR").unwrap_or_else(|| match root {
            true => "/run/braid".into(),
            false => match folder("XDG_RUNTIME_DIR") {
                Some(runtime) => runtime.join("braid"),
                None => format!("/tmp/braid-{}", rustix::process::geteuid().as_raw()).into(),
            },
        });
        let state = folder("BRAID_STATE_DIR").unwrap_or_else(|| match root {
            true => "/var/lib/braid".into(),
            false => folder("XDG_STATE_HOME")
                .or_else(|| folder("HOME").map(|home| home.join(".local/state")))
                .unwrap_or_else(|| "/".into())
                .join("braid"),
        });
        let dev = folder("BRAID_DEV_DIR").unwrap_or_else(|| "/dev/braid".into());
        Places { config, run, state, dev }
    }

    /// Makes the folder of sockets, for this user alone.
    pub fn prepare_run(&self) -> Result<(), Failure> {
        make_private(&self.run)
    }

    /// Makes the folder of configurations.
    pub fn prepare_config(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.config)
            .context(format_args!("cannot make the folder {}", self.config.display()))
    }

    /// Returns the folders of sockets and of configurations, for a look at all volumes.
    pub fn run_and_records(&self) -> (PathBuf, PathBuf) {
        (self.run.clone(), self.config.clone())
    }

    /// The file of the token of `braid web`, whose folder is made.
    pub fn prepare_web_token(&self) -> Result<PathBuf, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.state);
        made.context(format_args!("cannot make the folder {}", self.state.display()))?;
        Ok(self.state.join("web-token"))
    }

    /// The file of further tokens of `braid web`.
    pub fn web_tokens(&self) -> PathBuf {
        self.state.join("web-tokens.json")
    }

    /// The record of a volume, `NAME.toml`.
    pub fn config_file(&self, name: &str) -> PathBuf {
        self.config.join(format!("{name}.toml"))
    }

    /// Returns the place of `NAME.toml` after the volume was forgotten.
    pub fn forgotten(&self, name: &str) -> PathBuf {
        self.state.join("forgotten").join(format!("{name}.toml"))
    }

    /// The link to a volume's block device, under a name that stays.
    pub fn link(&self, name: &str) -> PathBuf {
        self.dev.join(name)
    }

    /// The file that is locked while a volume of this name is up.
    pub fn lock(&self, name: &str) -> PathBuf {
        self.control(name).with_extension("lock")
    }

    /// The folder of sockets, logs and mounts.
    pub fn run_folder(&self) -> &Path {
        &self.run
    }

    /// The folder of what lasts.
    pub fn state_folder(&self) -> &Path {
        &self.state
    }

    /// The folder of what can be undone.
    pub fn undo(&self) -> PathBuf {
        self.state.join("undo")
    }

    /// The folder of copies of superblocks.
    pub fn superblocks(&self) -> PathBuf {
        self.state.join("superblocks")
    }

    /// The folder that says which logs of caches must not be replayed.
    pub fn given_up(&self) -> PathBuf {
        self.state.join("given-up")
    }

    /// Returns the file with the progress of a volume's scrubs in parts.
    pub fn scrubs(&self, name: &str) -> PathBuf {
        self.state.join("scrubs").join(format!("{name}.json"))
    }

    /// Its control socket.
    pub fn control(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.sock"))
    }

    /// Its NBD socket, if it has no other address.
    pub fn nbd(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.nbd"))
    }

    /// The log of its process.
    pub fn log(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.log"))
    }

    /// The folder of its FUSE mount.
    pub fn mount(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.mount"))
    }

    /// The volume that a loop device on this file is the block device of, if it is one.
    pub fn served_by(&self, file: &Path) -> Option<String> {
        let mount = file.strip_prefix(&self.run).ok()?.parent()?;
        let name = mount.to_str()?.strip_suffix(".mount")?;
        (self.mount(name) == file.parent()?).then(|| name.to_owned())
    }

    /// Returns the file with the facts that `down` needs if the process does not answer.
    pub fn traces(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.json"))
    }

    /// The file that gives the volume's service its environment for one start, in lines of KEY=VALUE.
    pub fn one_start(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.start"))
    }

    /// The specification of a volume for one start of its service.
    pub fn one_spec(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.spec"))
    }

    /// Returns the lock of a start that the arrival of a member causes.
    pub fn turn(&self, name: &str) -> PathBuf {
        self.run.join(format!("{name}.incremental"))
    }

    /// Returns true if volumes of these places are services of the systemd that runs this machine.
    pub fn are_systemd_s(&self) -> bool {
        self.config == Path::new("/etc/braid")
            && self.run == Path::new("/run/braid")
            && Path::new("/run/systemd/system").is_dir()
    }

    /// Names of all volumes that have a `NAME.toml`, in order.
    ///
    /// # Errors
    /// The folder cannot be read. Without a folder there are none.
    pub fn configured_names(&self) -> Result<Vec<String>, Failure> {
        let cannot = || format!("cannot look for volumes in {}", self.config.display());
        let entries = match std::fs::read_dir(&self.config) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.context(cannot())?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(volume_of(&entry.context(cannot())?.path()));
        }
        names.sort();
        Ok(names)
    }

    /// Names of all volumes that have, or had, a control socket.
    ///
    /// # Errors
    /// The folder belongs to another user, or cannot be read. Without a folder there are none.
    pub fn running_names(&self) -> Result<Vec<String>, Failure> {
        let volumes = braid_control::volumes(&self.run).map_err(|error| {
            let folder = self.run.display();
            Failure::failed(format!("cannot look for volumes in {folder}: {error}"))
                .next("as its owner; or BRAID_RUN_DIR names a folder of your own")
        })?;
        Ok(volumes.into_iter().map(|one| one.name).collect())
    }
}

/// Checks that `name` can name a volume: files and devices are named after it.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name == MONITOR {
        return Err(Failure::usage(format!(
            "{name:?} cannot name a volume: {name}.toml is the configuration of `braid monitor`"
        )));
    }
    let starts_well = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    if starts_well && name.len() <= LONGEST_NAME && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name:?} cannot name a volume: 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.', \
         beginning with a letter or a digit"
    )))
}

/// The volume that a file of the folder of configurations is about.
fn volume_of(file: &Path) -> Option<String> {
    let is_record = file.extension().is_some_and(|extension| extension == "toml");
    let name = file.file_stem()?.to_str()?;
    (is_record && check_name(name).is_ok()).then(|| name.to_owned())
}

/// A folder that only this user can enter; one that another user owns or may write to is refused, as
/// that user could exchange the sockets in it.
fn make_private(folder: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.context(format_args!("cannot make the folder {}", folder.display()))?;
    let ours = |metadata: &Metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
    };
    match std::fs::symlink_metadata(folder) {
        Ok(metadata) if ours(&metadata) && metadata.mode() & 0o022 == 0 => Ok(()),
        Ok(metadata) if ours(&metadata) => Err(Failure::refused(format!(
            "others may write to {} (mode {:o}), and so could take the volume's sockets over",
            folder.display(),
            metadata.mode() & 0o7777
        ))
        .next(format!("chmod 700 {}", braid_shell::shell_path(folder)))),
        Ok(_) => Err(Failure::refused(format!(
            "{} belongs to another user, and so its owner could take the volume's sockets over",
            folder.display()
        ))
        .next("set BRAID_RUN_DIR to a folder of your own")),
        Err(error) => Err(Failure::failed(format!("cannot look at {}: {error}", folder.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_files_are_records() {
        for (file, volume) in [
            ("/etc/braid/home.toml", Some("home")),
            ("/etc/braid/home.toml.new", None),
            ("/etc/braid/.toml", None),
            ("/etc/braid/-x.toml", None),
            ("/etc/braid/notes.txt", None),
        ] {
            assert_eq!(volume_of(Path::new(file)).as_deref(), volume, "{file}");
        }
    }
}
