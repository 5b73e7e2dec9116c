//! Block devices of this machine that are made for a measurement, and taken away after it.
//!
//! ```text
//! braid      FUSE ─ loop, all by `braid up --attach fuse`
//! nbdfuse    nbdkit memory ─ Unix socket ─ nbdfuse ─ loop
//! loop       a file on tmpfs ─ loop
//! ```
//!
//! Invariant: each value takes itself down when it is dropped, the top first; should this process
//! die, the keeper of [`crate::process`] does it. Loops use direct I/O where their file allows,
//! and blocks of 4 KiB, as braid's own does.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer::{FileInMemory, Folder, Server};
use crate::process::{Service, Undo, require, run};
use crate::{Error, Result};

/// A loop device.
#[derive(Debug)]
pub struct Loop {
    losetup: PathBuf,
    path: PathBuf,
    _undo: Undo,
}

impl Loop {
    /// Sets one up over `file`.
    ///
    /// # Errors
    /// If there is no `losetup`, no free device or no permission.
    pub fn over(file: &Path) -> Result<Loop> {
        Loop::new(file, &[])
    }

    /// Sets one up over `bytes` of `file` from `start` on.
    ///
    /// # Errors
    /// As [`Loop::over`].
    pub fn over_part(file: &Path, start: u64, bytes: u64) -> Result<Loop> {
        Loop::new(file, &[format!("--offset={start}"), format!("--sizelimit={bytes}")])
    }

    fn new(file: &Path, part: &[String]) -> Result<Loop> {
        let losetup = require("losetup", "mount")?;
        let mut command = Command::new(&losetup);
        command.args(["--find", "--show", "--direct-io=on", "--sector-size=4096"]);
        command.args(part).arg(file);
        let path = PathBuf::from(run(&mut command)?.trim());
        let undo = Undo::with(&format!("{} -d {}", losetup.display(), path.display()))?;
        Ok(Loop { losetup, path, _undo: undo })
    }

    /// The device.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new(&self.losetup).arg("-d").arg(&self.path)) {
            eprintln!("{error}");
        }
    }
}

/// True if a loop device uses direct I/O on its file; `None` for a device that is not a loop device.
pub fn is_direct(device: &Path) -> Option<bool> {
    let name = device.file_name()?.to_str()?;
    let dio = std::fs::read_to_string(format!("/sys/block/{name}/loop/dio")).ok()?;
    Some(dio.trim() == "1")
}

/// A volume that `braid up` attached.
#[derive(Debug)]
pub struct BraidUp {
    braid: PathBuf,
    name: String,
    device: PathBuf,
    /// The folder of braid's sockets, logs and configuration, apart from the machine's own.
    places: Folder,
    _undo: Undo,
}

impl AsRef<Path> for BraidUp {
    /// The block device.
    fn as_ref(&self) -> &Path {
        &self.device
    }
}

/// The file by which FUSE over io_uring is turned on and off.
const QUEUES_PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// FUSE over io_uring, turned on or off until this is dropped.
struct Queues {
    before: String,
}

impl Queues {
    fn set(word: &str) -> Result<Queues> {
        let missing = |error| Error::Unexpected(format!("{QUEUES_PARAMETER}: {error}"));
        let before = std::fs::read_to_string(QUEUES_PARAMETER).map_err(missing)?;
        std::fs::write(QUEUES_PARAMETER, word).map_err(missing)?;
        Ok(Queues { before })
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        if let Err(error) = std::fs::write(QUEUES_PARAMETER, self.before.trim()) {
            eprintln!("{QUEUES_PARAMETER}: {error}");
        }
    }
}

impl BraidUp {
    /// `braid up STACK --attach fuse`, as this machine is set up.
    ///
    /// # Errors
    /// If it does not come up, or prints no device.
    pub fn new(braid: &Path, stack: &str) -> Result<BraidUp> {
        BraidUp::named(braid, stack, "bench")
    }

    /// The same over io_uring, or not. Nothing if this kernel has no FUSE over io_uring.
    ///
    /// # Errors
    /// As [`BraidUp::new`].
    pub fn over(braid: &Path, stack: &str, io_uring: bool) -> Result<Option<BraidUp>> {
        if !Path::new(QUEUES_PARAMETER).exists() {
            return Ok(None);
        }
        let (word, name) = if io_uring { ("Y", "uring") } else { ("N", "device") };
        let _queues = Queues::set(word)?;
        BraidUp::named(braid, stack, name).map(Some)
    }

    /// The volume `name` that `create` makes, up over NBD at `socket`.
    ///
    /// # Errors
    /// If it is not created, or does not come up.
    pub fn created(braid: &Path, name: &str, create: &[&str], socket: &Path) -> Result<BraidUp> {
        let places = Folder::new()?;
        let (at, program) = (places.path().display(), braid.display());
        let undo = Undo::with(&format!(
            "BRAID_RUN_DIR={at} BRAID_CONFIG_DIR={at} {program} down {name} --force"
        ))?;
        run(&mut command(braid, &places, create))?;
        let nbd = format!("unix:{}", socket.display());
        run(&mut command(braid, &places, &["up", name, "--attach", "none", "--nbd", &nbd]))?;
        let (braid, device) = (braid.to_owned(), PathBuf::new());
        Ok(BraidUp { braid, name: name.to_owned(), device, places, _undo: undo })
    }

    fn named(braid: &Path, stack: &str, name: &str) -> Result<BraidUp> {
        let places = Folder::new()?;
        let name = format!("{name}-{}", std::process::id());
        let (at, program) = (places.path().display(), braid.display());
        let undo = Undo::with(&format!(
            "BRAID_RUN_DIR={at} BRAID_CONFIG_DIR={at} {program} down {name} --force"
        ))?;
        let words = ["up", stack, "--attach", "fuse", "--name", &name];
        let output = run(&mut command(braid, &places, &words))?;
        let braid = braid.to_owned();
        let device = output.split_whitespace().find(|word| word.starts_with("/dev/"));
        // Without a block device the volume is still up, and is taken down.
        let path = device.map(PathBuf::from).unwrap_or_default();
        let up = BraidUp { braid, name, device: path, places, _undo: undo };
        match device {
            Some(_) => Ok(up),
            None => Err(Error::Unexpected(format!("braid up names no device: {output}"))),
        }
    }
}

/// braid with `words`, keeping its things in `places`.
fn command(braid: &Path, places: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(braid);
    command.args(words).env("BRAID_RUN_DIR", places.path()).env("BRAID_CONFIG_DIR", places.path());
    command
}

impl Drop for BraidUp {
    fn drop(&mut self) {
        let down = |words: &[&str]| run(&mut command(&self.braid, &self.places, words));
        if down(&["down", &self.name]).is_err()
            && let Err(error) = down(&["down", &self.name, "--force"])
        {
            eprintln!("{error}");
        }
    }
}

/// nbdkit behind nbdfuse behind a loop; taken down from the loop on.
#[derive(Debug)]
pub struct NbdFuseLoop {
    device: Loop,
    _mount: Mount,
    _server: Server,
    _folder: Folder,
}

impl AsRef<Path> for NbdFuseLoop {
    /// The block device.
    fn as_ref(&self) -> &Path {
        self.device.path()
    }
}

impl NbdFuseLoop {
    /// Over `size` of nbdkit's memory plugin.
    ///
    /// # Errors
    /// If a program is missing or does not come up.
    pub fn new(size: &str) -> Result<NbdFuseLoop> {
        let folder = Folder::new()?;
        let server = Server::nbdkit(size, folder.path())?;
        let mount = Mount::new(server.socket())?;
        let device = Loop::over(&mount.file())?;
        Ok(NbdFuseLoop { device, _mount: mount, _server: server, _folder: folder })
    }
}

/// nbdfuse, mounted.
#[derive(Debug)]
struct Mount {
    fusermount: PathBuf,
    service: Service,
    folder: Folder,
    _undo: Undo,
}

impl Mount {
    fn new(socket: &Path) -> Result<Mount> {
        let nbdfuse = require("nbdfuse", "libnbd-bin")?;
        let fusermount = require("fusermount3", "fuse3")?;
        let folder = Folder::new()?;
        let (program, at) = (fusermount.display(), folder.path().display());
        let undo = Undo::with(&format!("{program} -uz {at}"))?;
        let file = folder.path().join("nbd");
        let mut command = Command::new(nbdfuse);
        command.arg(&file).arg(format!("nbd+unix:///?socket={}", socket.display()));
        let mut mount =
            Mount { fusermount, service: Service::start(command)?, folder, _undo: undo };
        mount.service.wait_until("mounts", || file.exists())?;
        Ok(mount)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("nbd")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.service.may_end();
        let unmount = |how| run(Command::new(&self.fusermount).arg(how).arg(self.folder.path()));
        // The loop lets go of the file a moment after it is taken down.
        for _ in 0..200 {
            if unmount("-u").is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        if let Err(error) = unmount("-uz") {
            eprintln!("{error}");
        }
    }
}

/// A file on tmpfs behind a loop.
#[derive(Debug)]
pub struct PlainLoop {
    device: Loop,
    _file: FileInMemory,
}

impl AsRef<Path> for PlainLoop {
    /// The block device.
    fn as_ref(&self) -> &Path {
        self.device.path()
    }
}

impl PlainLoop {
    /// Over a file of `size` bytes.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(size: u64) -> Result<PlainLoop> {
        let file = FileInMemory::new(size)?;
        Ok(PlainLoop { device: Loop::over(file.path())?, _file: file })
    }
}
