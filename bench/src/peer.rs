//! The servers that are compared, each serving memory at a Unix socket.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Service, Undo, require};
use crate::{Error, Result};

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// Its name in tables.
    pub name: &'static str,
    socket: PathBuf,
    service: Service,
    /// The file that it serves, if there is one; it is removed with the server.
    _file: Option<FileInMemory>,
}

impl Server {
    /// `braid serve STACK`, called `name`.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn braid(braid: &Path, name: &'static str, stack: &str, folder: &Path) -> Result<Server> {
        let socket = folder.join(format!("{name}.sock"));
        let mut command = Command::new(braid);
        command.args(["serve", stack, "--nbd"]).arg(format!("unix:{}", socket.display()));
        Server::start(name, command, socket, None)
    }

    /// nbdkit's memory plugin.
    ///
    /// # Errors
    /// If it is not installed or does not come up.
    pub fn nbdkit(size: &str, folder: &Path) -> Result<Server> {
        let socket = folder.join("nbdkit.sock");
        let mut command = Command::new(require("nbdkit", "nbdkit")?);
        command.arg("-f").arg("-U").arg(&socket).args(["memory", size]);
        Server::start("nbdkit", command, socket, None)
    }

    /// nbdkit's split plugin, which concatenates `files`.
    ///
    /// # Errors
    /// If it is not installed or does not come up.
    pub fn split(files: &[FileInMemory], folder: &Path) -> Result<Server> {
        let socket = folder.join("split.sock");
        let mut command = Command::new(require("nbdkit", "nbdkit")?);
        command.arg("-f").arg("-U").arg(&socket).arg("split");
        command.args(files.iter().map(FileInMemory::path));
        Server::start("nbdkit split", command, socket, None)
    }

    /// qemu-nbd over a file in `/dev/shm`.
    ///
    /// # Errors
    /// If it is not installed or does not come up.
    pub fn qemu(size: u64, folder: &Path) -> Result<Server> {
        let qemu = require("qemu-nbd", "qemu-utils")?;
        let file = FileInMemory::new(size)?;
        let socket = folder.join("qemu.sock");
        let mut command = Command::new(qemu);
        // For as many clients as come, and beyond the first that leaves.
        command.args(["-f", "raw", "--shared=0", "-t", "-k"]).arg(&socket).arg(file.path());
        Server::start("qemu-nbd", command, socket, Some(file))
    }

    /// The bare socket: see [`crate::bare`]. `program` is `bare-nbd` of this crate.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn bare(program: &Path, folder: &Path) -> Result<Server> {
        let socket = folder.join("bare.sock");
        if !program.is_file() {
            let path = program.display();
            let message = format!("no {path}: cargo build --release -p braid-bench --bins");
            return Err(Error::Unexpected(message));
        }
        let mut command = Command::new(program);
        command.arg("--socket").arg(&socket);
        Server::start("bare socket", command, socket, None)
    }

    fn start(
        name: &'static str,
        command: Command,
        socket: PathBuf,
        file: Option<FileInMemory>,
    ) -> Result<Server> {
        let mut service = Service::start(command)?;
        service.wait_for_socket(&socket)?;
        Ok(Server { name, socket, service, _file: file })
    }

    /// The socket on which it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.service.pid()
    }
}

/// A file on tmpfs, removed with the value.
#[derive(Debug)]
pub struct FileInMemory {
    /// Not open here: braid refuses a file that another program may write.
    path: tempfile::TempPath,
    _undo: Undo,
}

impl FileInMemory {
    /// A sparse file of `size` bytes.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(size: u64) -> Result<FileInMemory> {
        let failed = || Error::io("a file in /dev/shm");
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix("braid-bench-").tempfile_in("/dev/shm").map_err(failed())?;
        File::set_len(file.as_file(), size).map_err(failed())?;
        let undo = Undo::with(&format!("rm -f {}", file.path().display()))?;
        Ok(FileInMemory { path: file.into_temp_path(), _undo: undo })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A directory for sockets and mounts, removed with the value.
#[derive(Debug)]
pub struct Folder {
    folder: tempfile::TempDir,
    _undo: Undo,
}

impl Folder {
    /// An empty directory whose path is short enough for a socket's.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new() -> Result<Folder> {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("braid-bench-").tempdir();
        let folder = folder.map_err(Error::io("a temporary directory"))?;
        // Only what can be in it: sockets. A mount in it that was not undone stays visible.
        let path = folder.path().display();
        let undo = Undo::with(&format!("rm -f {path}/*.sock; rmdir {path}"))?;
        Ok(Folder { folder, _undo: undo })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
