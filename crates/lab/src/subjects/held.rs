//! What exists because of us, in the order in which it came, and how each of it goes away.
//!
//! Invariants:
//!
//! * a thing is noted as soon as it exists, and goes in the reverse order;
//! * between trials nothing is taken by force: what does not go stays noted and is an error;
//! * at the very end everything is tried, and what is busy is taken by force and named.
//!
//! A user who asks to stop does not stop this: the commands here run to their end.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::array::Braid;
use super::journal::{Journal, Note};
use crate::error::LabError;
use crate::world::{Claim, CommandLine, Exit, Service, StopFlag, World, last_lines};

/// How long a server may take to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(20);
/// How long a command may take; `braid down` waits 120 s for what is under way.
const LIMIT: Duration = Duration::from_secs(180);
/// How often what is busy is tried again: a program that has ended may hold a file for a moment.
const TRIES: u32 = 20;
const TRY_EVERY: Duration = Duration::from_millis(250);

/// Something that goes away again.
pub(super) enum Thing {
    /// A server of ours, with the socket that it leaves.
    Server { service: Box<dyn Service>, socket: PathBuf, command: String },
    /// A volume of braid's.
    Volume { braid: Braid, name: String },
    /// Superblocks of braid's or md's on members.
    Superblocks { braid: Option<Braid>, members: Vec<String> },
    /// A loop device, and the file that it has.
    Loop { device: String, file: String },
    /// A folder of ours.
    Folder { path: PathBuf, with_content: bool },
    /// A mount.
    Mount { folder: PathBuf },
    /// A changed read-ahead: what it was, in sectors.
    Readahead { device: String, sectors: String },
    /// An array of the kernel's md.
    KernelArray { device: String },
    /// A RAM disk of the kernel's.
    Zram { number: u32 },
    /// A block device that nobody else is to take meanwhile.
    Claim(#[expect(dead_code, reason = "it is let go when it is dropped")] Claim),
}

/// Things, the last one on top, and what strikes each from the journal.
#[derive(Default)]
pub(super) struct Held {
    things: Vec<(Thing, Option<u64>)>,
    journal: Option<Rc<Journal>>,
}

impl Held {
    /// Nothing yet; what comes is noted.
    pub(super) fn noted_in(journal: &Rc<Journal>) -> Self {
        Self { things: Vec::new(), journal: Some(Rc::clone(journal)) }
    }

    pub(super) fn push(&mut self, thing: Thing) {
        let note = thing.note();
        let key = self.journal.as_ref().zip(note).map(|(journal, note)| journal.note(note));
        self.things.push((thing, key));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.things.len()
    }

    /// What an earlier run left and noted under `key`.
    pub(super) fn adopt(&mut self, thing: Thing, key: u64) {
        self.things.push((thing, Some(key)));
    }

    fn strike(&self, key: Option<u64>) {
        if let Some((journal, key)) = self.journal.as_ref().zip(key) {
            journal.strike(key);
        }
    }

    /// The server among them, if any.
    pub(super) fn server(&mut self) -> Option<&mut Box<dyn Service>> {
        self.things.iter_mut().find_map(|(thing, _)| match thing {
            Thing::Server { service, .. } => Some(service),
            _ => None,
        })
    }

    /// Strikes a server that has ended by itself; its socket goes too.
    pub(super) fn forget_server(&mut self) {
        self.things.retain(|(thing, _)| {
            if let Thing::Server { socket, .. } = thing {
                // Most servers remove it; one that is in the way is told when the next one starts.
                let _ = remove_file(socket);
            }
            !matches!(thing, Thing::Server { .. })
        });
    }

    /// Lets everything go; `is_the_end` means by force where it must be.
    ///
    /// # Errors
    ///
    /// The first thing that did not go. Unless it is the end, it and what came before it stay.
    pub(super) fn release(
        &mut self,
        subject: &str,
        is_the_end: bool,
        world: &mut dyn World,
    ) -> Result<(), LabError> {
        let mut first = Ok(());
        while let Some((mut thing, key)) = self.things.pop() {
            let Err(error) = thing.go(subject, is_the_end, world) else {
                self.strike(key);
                continue;
            };
            if !is_the_end {
                // A server that has ended is gone, however it ended.
                if !matches!(thing, Thing::Server { .. }) {
                    self.things.push((thing, key));
                }
                return Err(error);
            }
            // It stays noted: the next run here tries again.
            first = first.and(Err(error));
        }
        first
    }
}

impl Thing {
    /// How it is noted; a server is told by its environment.
    fn note(&self) -> Option<Note> {
        Some(match self {
            // The kernel lets go of a claim with the process.
            Self::Server { .. } | Self::Claim(_) => return None,
            Self::Volume { braid, name } => {
                Note::Volume { braid: braid.clone(), name: name.clone() }
            }
            Self::Superblocks { braid, members } => {
                Note::Superblocks { braid: braid.clone(), members: members.clone() }
            }
            Self::Loop { device, file } => {
                Note::Loop { device: device.clone(), file: file.clone() }
            }
            Self::Folder { path, with_content } => {
                Note::Folder { path: path.clone(), with_content: *with_content }
            }
            Self::Mount { folder } => Note::Mount { folder: folder.clone() },
            Self::Readahead { device, sectors } => {
                Note::Readahead { device: device.clone(), sectors: sectors.clone() }
            }
            Self::KernelArray { device } => Note::KernelArray { device: device.clone() },
            Self::Zram { number } => Note::Zram { number: *number },
        })
    }

    fn go(&mut self, subject: &str, force: bool, world: &mut dyn World) -> Result<(), LabError> {
        let mut hand = Hand { subject, world };
        match self {
            Self::Server { service, socket, command } => {
                let (exit, stderr) = service.stop(STOP_GRACE)?;
                remove_file(socket)?;
                match exit {
                    Exit::Code(0) | Exit::Signal(15) => Ok(()),
                    exit => Err(LabError::SubjectDown {
                        subject: subject.to_owned(),
                        reason: format!("its server ended badly: {exit}"),
                        command: command.clone(),
                        stderr,
                    }),
                }
            }
            Self::Volume { braid, name } => {
                let result = hand.insist(braid.call(["down", name.as_str()]));
                let result = match result {
                    // It has gone already, with everything.
                    Err(error) if error.to_string().contains("no volume called") => Ok(()),
                    Err(_) if force => {
                        hand.run(braid.call(["down", name.as_str(), "--force"])).and(result)
                    }
                    other => other,
                };
                // What comes up next by this name may be another stack.
                result.and(remove_file(&braid.record(name)))
            }
            Self::Superblocks { braid, members } => forget(&mut hand, braid.as_ref(), members),
            Self::Loop { device, .. } => detach(&mut hand, device),
            Self::Folder { path, with_content } => hand.world.remove_folder(path, *with_content),
            Self::Mount { folder } => unmount(&mut hand, folder, force),
            Self::Readahead { device, sectors } => {
                hand.run(CommandLine::new("blockdev").arg("--setra").arg(&*sectors).arg(&*device))
            }
            Self::KernelArray { device } => {
                hand.insist(CommandLine::new("mdadm").arg("--stop").arg(&*device))
            }
            Self::Claim(_) => Ok(()),
            Self::Zram { number } => {
                let remove = super::zram::control("hot_remove");
                hand.retry(|hand| hand.world.write_text(&remove, &number.to_string()))
            }
        }
    }
}

/// Runs what takes things away.
struct Hand<'h> {
    subject: &'h str,
    world: &'h mut dyn World,
}

impl Hand<'_> {
    fn run(&mut self, command: CommandLine) -> Result<(), LabError> {
        let done = self.world.run(&command, LIMIT, &StopFlag::default())?;
        match done.exit {
            Exit::Code(0) => Ok(()),
            exit => Err(self.left(format!("{exit} {}", last_lines(&done.stderr)), &command)),
        }
    }

    /// Again and again for a while.
    fn insist(&mut self, command: CommandLine) -> Result<(), LabError> {
        self.retry(|hand| hand.run(command.clone()))
    }

    fn retry(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let mut result = act(self);
        for _ in 1..TRIES {
            if result.is_ok() {
                break;
            }
            self.world.sleep(TRY_EVERY);
            result = act(self);
        }
        result
    }

    fn left(&self, reason: String, command: &CommandLine) -> LabError {
        LabError::LeftBehind { subject: self.subject.to_owned(), reason, next: command.to_string() }
    }
}

/// Removes a file of ours that may be gone: not every server removes its socket when it ends, and
/// the next one cannot bind over it.
fn remove_file(path: &Path) -> Result<(), LabError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::file("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Members without superblocks again, so that nothing takes them for an array.
fn forget(hand: &mut Hand<'_>, braid: Option<&Braid>, members: &[String]) -> Result<(), LabError> {
    let mut first = Ok(());
    for member in members {
        let command = match braid {
            Some(braid) => braid.call(["wipe", member.as_str()]),
            None => CommandLine::new("mdadm").arg("--zero-superblock").arg(member),
        };
        let done = hand.world.run(&command, LIMIT, &StopFlag::default())?;
        // A member that was being replaced when the trial was stopped has none any more; mdadm
        // says so and is content.
        let has_none = done.stderr.contains("has no md superblock");
        if done.exit != Exit::Code(0) && !has_none {
            let reason = format!("{} {}", done.exit, last_lines(&done.stderr));
            first = first.and(Err(hand.left(reason, &command)));
        }
    }
    first
}

/// Detaches a loop device, and looks whether it is free: the kernel defers it while it is in use.
fn detach(hand: &mut Hand<'_>, device: &str) -> Result<(), LabError> {
    let command = CommandLine::new("losetup").arg("--detach").arg(device);
    hand.run(command.clone())?;
    let backing = super::loops::sys_file(device, "backing_file");
    for _ in 0..TRIES {
        if hand.world.read_text(&backing)?.is_none() {
            return Ok(());
        }
        hand.world.sleep(TRY_EVERY);
    }
    Err(hand.left(format!("{device} is in use"), &command))
}

fn unmount(hand: &mut Hand<'_>, folder: &Path, force: bool) -> Result<(), LabError> {
    let umount = CommandLine::new("umount").arg(folder.display().to_string());
    let result = hand.insist(umount.clone());
    let Err(error) = result else { return Ok(()) };
    if !force {
        return Err(error);
    }
    let lazy = CommandLine::new("umount").arg("--lazy").arg(folder.display().to_string());
    hand.run(lazy)?;
    let reason = format!(
        "{} was busy; it was detached lazily, and goes when the last program closes its files",
        folder.display()
    );
    Err(hand.left(reason, &CommandLine::new("fuser").arg("-vm").arg(folder.display().to_string())))
}
