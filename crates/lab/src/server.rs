//! Brings subjects up and down.
//!
//! Invariants:
//!
//! * two servers that share a member's path are never up together, and none is up while the tool
//!   itself opens a path that the server has; servers that share nothing stay up;
//! * a subject that is handed out is ready: its server has answered the NBD greeting;
//! * its region has been written once before it is read, when the campaign allows writing.
//!
//! Deliberately absent: configuring a subject. The stack expression says everything.

use std::path::PathBuf;
use std::time::Duration;

use crate::LabOptions;
use crate::campaign::{Campaign, Source};
use crate::error::LabError;
use crate::facts::{Member, members_of};
use crate::nbd::unix_uri;
use crate::safety::{paths_of, writes};
use crate::tool::{Target, Tool};
use crate::world::{CommandLine, Exit, Service, World};

/// How long a server may take from its start to its greeting.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long a server may take to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(20);
/// How often a server that starts is asked.
const ASK_EVERY: Duration = Duration::from_millis(5);
/// The slowest device that can be filled: 1 MiB/s, and a minute on top.
const FILL_LIMIT_BYTES_PER_S: u64 = 1 << 20;

/// A subject that can be measured now.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) target: Target,
    pub(crate) size_bytes: u64,
    pub(crate) region_bytes: u64,
}

/// All subjects of a campaign.
pub(crate) struct Subjects<'a> {
    campaign: &'a Campaign,
    options: &'a LabOptions,
    /// Holds the sockets; gone when the campaign is over.
    sockets: tempfile::TempDir,
    states: Vec<State>,
}

#[derive(Default)]
struct State {
    service: Option<Box<dyn Service>>,
    ready: Option<Ready>,
    filled: bool,
}

impl<'a> Subjects<'a> {
    pub(crate) fn new(campaign: &'a Campaign, options: &'a LabOptions) -> Result<Self, LabError> {
        // A socket's path may have 107 bytes, so not in the results directory.
        let sockets = tempfile::Builder::new()
            .prefix("braid-lab-")
            .tempdir()
            .map_err(LabError::file("create a directory in", &std::env::temp_dir()))?;
        let states = campaign.subjects.iter().map(|_| State::default()).collect();
        Ok(Self { campaign, options, sockets, states })
    }

    /// The command that serves a stack subject; `None` for subjects that others serve.
    pub(crate) fn serve_command(&self, subject: usize) -> Option<CommandLine> {
        match &self.campaign.subjects[subject].source {
            Source::Stack(stack) => Some(serve_command(self.options, stack, &self.socket(subject))),
            Source::Path(_) | Source::Nbd(_) => None,
        }
    }

    fn socket(&self, subject: usize) -> String {
        self.sockets.path().join(format!("{subject}.sock")).display().to_string()
    }

    /// Makes a subject ready, taking down those that are in its way. `Ok(None)` when the user
    /// asked to stop meanwhile.
    pub(crate) fn bring_up(
        &mut self,
        subject: usize,
        tool: &dyn Tool,
        world: &mut dyn World,
    ) -> Result<Option<Ready>, LabError> {
        self.take_down_rivals(subject)?;
        self.check_alive(subject)?;
        let ready = match self.states[subject].ready.clone() {
            Some(ready) => ready,
            None => self.start(subject, world)?,
        };
        if self.needs_fill(subject) && !self.fill(subject, &ready, tool, world)? {
            return Ok(None);
        }
        Ok(Some(ready))
    }

    /// Processor time of the subject's server so far.
    pub(crate) fn cpu_time(&self, subject: usize) -> Option<Duration> {
        self.states[subject].service.as_ref()?.cpu_time()
    }

    /// Stops every server; the first failure is returned after all have been tried.
    pub(crate) fn take_down_all(&mut self) -> Result<(), LabError> {
        let results: Vec<_> =
            (0..self.states.len()).map(|subject| self.take_down(subject)).collect();
        results.into_iter().collect()
    }

    fn take_down_rivals(&mut self, subject: usize) -> Result<(), LabError> {
        let mine = paths_of(&self.campaign.subjects[subject].source);
        for other in 0..self.states.len() {
            if other == subject || self.states[other].service.is_none() {
                continue;
            }
            if !paths_of(&self.campaign.subjects[other].source).is_disjoint(&mine) {
                self.take_down(other)?;
            }
        }
        Ok(())
    }

    fn take_down(&mut self, subject: usize) -> Result<(), LabError> {
        let Some(mut service) = self.states[subject].service.take() else {
            return Ok(());
        };
        self.states[subject].ready = None;
        let members = members_of(&self.campaign.subjects[subject].source);
        if members.iter().any(Member::is_ephemeral) {
            self.states[subject].filled = false;
        }
        let (exit, stderr) = service.stop(STOP_GRACE)?;
        self.remove_socket(subject)?;
        match exit {
            Exit::Code(0) | Exit::Signal(15) => Ok(()),
            exit => Err(self.down(subject, format!("its server ended badly: {exit}"), stderr)),
        }
    }

    /// Not every server removes its socket when it ends, and the next one cannot bind over it.
    fn remove_socket(&self, subject: usize) -> Result<(), LabError> {
        let socket = PathBuf::from(self.socket(subject));
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(LabError::file("remove", &socket)(error))
            }
            _ => Ok(()),
        }
    }

    /// A server that died between two trials is an error, not a reason for a silent restart: its
    /// death may be the most interesting result of the campaign.
    fn check_alive(&mut self, subject: usize) -> Result<(), LabError> {
        let Some(service) = self.states[subject].service.as_mut() else {
            return Ok(());
        };
        match service.poll_exit()? {
            None => Ok(()),
            Some((exit, stderr)) => {
                self.states[subject] = State::default();
                Err(self.down(subject, format!("its server ended by itself: {exit}"), stderr))
            }
        }
    }

    fn start(&mut self, subject: usize, world: &mut dyn World) -> Result<Ready, LabError> {
        let (target, size_bytes) = match &self.campaign.subjects[subject].source {
            Source::Path(path) => {
                let size = world.path_size(&PathBuf::from(path))?;
                (Target::Path(path.clone()), size)
            }
            Source::Nbd(uri) => {
                let size = world
                    .nbd_size(uri)
                    .map_err(|error| self.down(subject, error.to_string(), String::new()))?;
                (Target::Nbd(uri.clone()), size)
            }
            Source::Stack(_) => self.start_server(subject, world)?,
        };
        let region_bytes = self.campaign.region.0.min(size_bytes);
        let largest = largest_request(self.campaign);
        if region_bytes < largest {
            let reason = format!(
                "it has {size_bytes} bytes, and the campaign's largest requests need {largest}"
            );
            return Err(self.down(subject, reason, String::new()));
        }
        let ready = Ready { target, size_bytes, region_bytes };
        self.states[subject].ready = Some(ready.clone());
        Ok(ready)
    }

    fn start_server(
        &mut self,
        subject: usize,
        world: &mut dyn World,
    ) -> Result<(Target, u64), LabError> {
        let Some(command) = self.serve_command(subject) else {
            unreachable!("only stacks are served")
        };
        let uri = unix_uri(&self.socket(subject));
        let mut service = world.start(&command)?;
        let deadline = world.monotonic() + START_LIMIT;
        loop {
            if let Some((exit, stderr)) = service.poll_exit()? {
                let reason = format!("its server ended before it was ready: {exit}");
                return Err(self.down(subject, reason, stderr));
            }
            match world.nbd_size(&uri) {
                Ok(size) => {
                    self.states[subject].service = Some(service);
                    return Ok((Target::Nbd(uri), size));
                }
                Err(error) if world.monotonic() >= deadline => {
                    let (_, stderr) = service.stop(STOP_GRACE)?;
                    let reason = format!("not ready after {} s: {error}", START_LIMIT.as_secs());
                    return Err(self.down(subject, reason, stderr));
                }
                Err(_) => world.sleep(ASK_EVERY),
            }
        }
    }

    /// Whether the region must be written before the subject is measured.
    pub(crate) fn needs_fill(&self, subject: usize) -> bool {
        let members = members_of(&self.campaign.subjects[subject].source);
        // A model's time does not depend on what was written, and filling one takes model time.
        let only_models = members.iter().all(|member| matches!(member, Member::Model { .. }));
        self.campaign.fill && writes(self.campaign) && !only_models && !self.states[subject].filled
    }

    /// Writes the region once. `Ok(false)` when the user asked to stop meanwhile.
    fn fill(
        &mut self,
        subject: usize,
        ready: &Ready,
        tool: &dyn Tool,
        world: &mut dyn World,
    ) -> Result<bool, LabError> {
        let command = tool.fill_command(&ready.target, ready.region_bytes);
        let limit = Duration::from_secs(60 + ready.region_bytes / FILL_LIMIT_BYTES_PER_S);
        let done = world.run(&command, limit, &self.options.stop)?;
        match done.exit {
            Exit::Code(0) => {
                self.states[subject].filled = true;
                Ok(true)
            }
            Exit::Stopped => Ok(false),
            exit => Err(LabError::Fill {
                subject: self.campaign.subjects[subject].name.clone(),
                reason: format!("{exit}: {}", crate::runner::last_lines(&done.stderr)),
                command: command.to_string(),
            }),
        }
    }

    fn down(&self, subject: usize, reason: String, stderr: String) -> LabError {
        let source = &self.campaign.subjects[subject].source;
        let command =
            self.serve_command(subject).map_or_else(|| source.to_string(), |c| c.to_string());
        let subject = self.campaign.subjects[subject].name.clone();
        LabError::SubjectDown { subject, reason, command, stderr }
    }
}

/// `braid serve STACK --nbd unix:SOCKET ...`.
pub(crate) fn serve_command(options: &LabOptions, stack: &str, socket: &str) -> CommandLine {
    let mut command = CommandLine::new(options.braid_binary.display().to_string())
        .arg("serve")
        .arg(stack)
        .arg("--nbd")
        .arg(format!("unix:{socket}"));
    for arg in &options.serve_args {
        command = command.arg(arg);
    }
    command
}

fn largest_request(campaign: &Campaign) -> u64 {
    crate::matrix::plan_workloads(campaign)
        .iter()
        .map(|work| work.block_size.0 * u64::from(work.processes))
        .max()
        .unwrap_or(0)
}
