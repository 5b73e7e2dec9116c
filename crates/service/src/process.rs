//! The process of a volume: the program `braid-volume`, which `braid` starts or becomes.
//!
//! ```text
//!   braid up              Start as JSON ──▶ braid-volume          in the background: a session and a log of its own
//!     ◀────────────────── outcome ────────────┘ ready, or the reason why not; the record is stored by then
//!   braid up --foreground, braid serve ──▶ the same process becomes braid-volume (execve), Start on its standard input
//! ```
//!
//! `braid-volume` links nothing that only commands need. It takes a start from a `braid` of its own version alone.

use std::io::{self, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::beside::Beside;
use crate::confine;
use crate::failure::{Context, Failure};
use crate::log;
use crate::places::Places;
use crate::record::Record;
use crate::volume::{Notify, Printed, Ready, Spec, run};

/// The program's name.
pub const PROGRAM: &str = "braid-volume";
/// The name of a process that systemd does not end when it ends all others (systemd.io/ROOT_STORAGE_DAEMONS).
const ROOT_STORAGE: &str = "@braid-volume";

/// The start of a volume: everything that its process is told.
#[derive(Serialize, Deserialize)]
pub struct Start {
    version: String,
    verbose: bool,
    spec: Spec,
    /// The volume's record, which is stored before the volume is ready.
    record: Option<Record>,
    tell: Tell,
}

/// The outcome of a start, for the command that waits for it.
pub type Outcome = Result<Ready, Failure>;

/// The reader of a start's outcome.
#[derive(Serialize, Deserialize)]
pub enum Tell {
    /// A command that waits for an [`Outcome`] on the process's standard output.
    Command,
    /// A command that waits for a unit of the service manager, with an [`Outcome`] in this file.
    CommandOfUnit(PathBuf),
    /// The user at whose terminal the process runs.
    User(Printed),
}

impl Start {
    /// A start of `spec`.
    pub fn new(spec: Spec, record: Option<Record>, tell: Tell) -> Start {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Start { version, verbose: log::is_verbose(), spec, record, tell }
    }

    /// Starts `braid-volume` in the background, with `log` as its standard error; answers the process, whose
    /// standard input takes the start and whose standard output gives the [`Outcome`].
    ///
    /// # Errors
    /// The program is not there, or cannot be started.
    pub fn spawn(&self, log: std::fs::File) -> Result<std::process::Child, Failure> {
        let mut command = self.command()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).current_dir("/");
        let mut child = command.spawn().context("cannot start the volume's process")?;
        let text = self.text()?;
        // One that ended before it read all has said why.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes()));
        Ok(child)
    }

    /// Replaces this process by `braid-volume`; answers only if that fails.
    pub fn exec(&self) -> Failure {
        let replace = || -> Result<io::Error, Failure> {
            let flags = rustix::fs::MemfdFlags::CLOEXEC;
            let file = rustix::fs::memfd_create("braid-start", flags).map_err(io::Error::from);
            let mut file = std::fs::File::from(file.context("cannot make a file in memory")?);
            let written = file.write_all(self.text()?.as_bytes()).and_then(|()| file.rewind());
            written.context("cannot write to a file in memory")?;
            Ok(self.command()?.stdin(file).exec())
        };
        match replace() {
            Ok(error) => Failure::failed(format!("cannot run {PROGRAM}: {error}")),
            Err(failure) => failure,
        }
    }

    fn command(&self) -> Result<Command, Failure> {
        let mut command = Command::new(program()?);
        if self.spec.root_storage {
            command.arg0(ROOT_STORAGE);
        }
        // Nothing reads the name: it is there for lists of processes.
        command.arg(&self.spec.name);
        Ok(command)
    }

    fn text(&self) -> Result<String, Failure> {
        serde_json::to_string(self).context("cannot describe the volume")
    }

    /// Does what was started: brings the volume up and serves it to its end.
    fn carry_out(self) -> Result<(), Failure> {
        log::set_verbose(self.verbose);
        let serves_network = !self.spec.nbd.is_empty();
        confine::tell(confine::begin_volume(serves_network, self.spec.root_storage));
        self.spec.stack.member_names().iter().for_each(|(name, _)| log::note_path(name));
        if let (Tell::Command, Some(control)) = (&self.tell, &self.spec.control) {
            log::bound(&control.with_extension("log"));
            // A process that leads its group already has a session of its own.
            let _ = braid_sys::process::new_session();
        }
        // Many clients need many descriptors; with fewer, some are turned away, and that is said then.
        let _ = braid_sys::process::raise_open_files();
        let manager = match self.tell {
            Tell::Command => None,
            _ => Notify::from_environment().context("NOTIFY_SOCKET")?,
        };
        let mut is_ready = false;
        let ready = |ready: &Ready| {
            if let Some(record) = &self.record {
                record.store(&Places::from_environment(), &self.spec.name)?;
            }
            confine::tell(confine::serve_volume(self.spec.root_storage));
            is_ready = true;
            self.tell.ready(ready);
            Ok(())
        };
        run(&self.spec, manager, ready).map_err(|error| {
            let failure = error.failure();
            if !is_ready {
                self.tell.outcome(&Err(failure.clone()));
            }
            failure
        })
    }
}

impl Tell {
    fn ready(&self, ready: &Ready) {
        match self {
            Tell::User(printed) => ready.print(*printed),
            _ => self.outcome(&Ok(ready.clone())),
        }
    }

    /// Tells a command that waits. A user reads errors where the log is.
    fn outcome(&self, outcome: &Outcome) {
        let text = serde_json::to_string(outcome).unwrap_or_default();
        match self {
            Tell::Command => {
                let _ = writeln!(io::stdout(), "{text}");
                let _ = io::stdout().flush();
            }
            Tell::CommandOfUnit(file) => {
                if let Err(error) = Beside::replace(file, 0o600, text.as_bytes()) {
                    eprintln!("braid: the outcome of the start cannot be told: {error}");
                }
            }
            Tell::User(_) => {}
        }
    }
}

/// The program that serves volumes: beside this one, or where packages put it.
///
/// # Errors
/// It is in neither place.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(PROGRAM), folder.join("../libexec/braid").join(PROGRAM)];
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Failure::failed(format!(
            "{PROGRAM}, the program that serves volumes, is neither beside {} nor in ../libexec/braid",
            own.display()
        ))
        .next("install braid's package again: both programs are in it")
    })
}

/// The whole of `braid-volume`.
///
/// # Errors
/// The start cannot be read, or as [`run`].
pub fn main() -> Result<(), Failure> {
    let wrong = |why: String| {
        Failure::usage(format!("`braid up` and `braid serve` start this program: {why}"))
            .next("braid help up")
    };
    if rustix::termios::isatty(rustix::stdio::stdin()) {
        return Err(wrong("it is not started by hand".to_owned()));
    }
    let text = io::read_to_string(io::stdin()).map_err(|error| wrong(error.to_string()))?;
    #[derive(Deserialize)]
    struct Version {
        version: String,
    }
    let Version { version } =
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    if version != env!("CARGO_PKG_VERSION") {
        return Err(Failure::failed(format!(
            "braid {version} started {PROGRAM} {}",
            env!("CARGO_PKG_VERSION")
        ))
        .next("install braid's package again: both programs are of one version"));
    }
    let start: Start = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    start.carry_out()
}
