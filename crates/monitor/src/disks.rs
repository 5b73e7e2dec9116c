//! The disks below members: asked beside the volumes, in threads of their own, and remembered.
//!
//! ```text
//!  members ──disk_of──▶ disks ──smartctl, each in a thread, bounded──▶ parse_smart ──▶ DiskStatus, by member
//!           (sysfs)                                                                    │ merged with what was known
//!                                      disks.json ◀────────────────────────────────────┘
//!                                      (read by `braid metrics`)
//! ```
//!
//! Invariants:
//! * No look at volumes waits for a disk, and no disk is asked again while a `smartctl` still hangs with it.
//! * A disk that sleeps is not woken.
//! * What a disk does not say now stands as it was said last.

mod smart;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use braid_control::{DiskStatus, MemberStatus, SmartStatus};
use braid_probe::{Disk, disk_of};

use crate::program::{Wanted, run};
use crate::receivers::{now, wait_until};
use crate::watch::{Observation, Seen};
use smart::parse_smart;

/// For one disk: longer than a disk needs that is busy, and not as long as the kernel waits for one that hangs.
const LIMIT: Duration = Duration::from_secs(10);
/// The greatest length of smartctl's output: some 20 KiB are usual.
const MOST: u64 = 1 << 20;
/// The file in the folder of the state.
const FILE: &str = "disks.json";

/// By the member, as the stack spells it.
pub(crate) type ByMember = BTreeMap<String, DiskStatus>;

/// Processes that were killed and hang with a disk, by the disk.
type Hanging = Arc<Mutex<BTreeMap<String, Child>>>;

/// The path of `smartctl`: in `$PATH`, or in the folders of administrators' programs.
pub fn find_smartctl() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join("smartctl"))
        .find(|file| file.is_file())
}

/// Asks the disks below `members` how they are, and sets what they say; a bounded time, whatever they do.
pub fn look_at_disks(members: &mut [MemberStatus]) {
    let asked = asked_of(members.iter());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // If that took too long, the receiver is gone.
        let _ = sender.send(look(asked, &Hanging::default()));
    });
    // A path that hangs is on a network file system, so it is not a disk's.
    let found = receiver.recv_timeout(LIMIT * 2).unwrap_or_default();
    members.iter_mut().for_each(|member| member.disk = found.get(&member.member).cloned());
}

/// The monitor's last findings by member, as stored in the folder of its state; nothing if there is no file.
///
/// # Errors
/// The file exists and cannot be read, or is not understood.
pub fn known_disks(state: &Path) -> io::Result<BTreeMap<String, DiskStatus>> {
    match std::fs::read(state.join(FILE)) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ByMember::new()),
        Err(error) => Err(error),
    }
}

/// The members to look at, and whether each is a path at all.
type Asked = BTreeMap<String, bool>;

/// A member in memory has no page cache to go past.
fn asked_of<'a>(members: impl Iterator<Item = &'a MemberStatus>) -> Asked {
    members.map(|member| (member.member.clone(), member.direct.is_some())).collect()
}

/// Looks at all of them, at most [`LIMIT`] and a moment.
fn look(asked: Asked, hanging: &Hanging) -> ByMember {
    let program = find_smartctl();
    let mut found = ByMember::new();
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (member, is_path) in asked {
        let absent =
            |why: &str| DiskStatus { absent: Some(why.to_owned()), ..DiskStatus::default() };
        let disk = if is_path { disk_of(Path::new(&member)) } else { Ok(None) };
        let status = match disk {
            Ok(Some(Disk { name, errors, timeouts })) => {
                members.entry(name.clone()).or_default().push(member.clone());
                DiskStatus {
                    disk: Some(name),
                    kernel_errors: errors,
                    kernel_timeouts: timeouts,
                    ..DiskStatus::default()
                }
            }
            Ok(None) if is_path => absent("it is no disk, nor a partition of one"),
            Ok(None) => absent("it is in memory"),
            Err(error) => absent(&error.to_string()),
        };
        found.insert(member, status);
    }
    let Some(program) = program else {
        let asked = found.values_mut().filter(|status| status.disk.is_some());
        asked.for_each(|status| status.absent = Some("smartctl is not installed".to_owned()));
        return found;
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = |disk: &str| ask(&program, disk, LIMIT, hanging);
        let asking: Vec<_> = members.keys().map(|disk| scope.spawn(move || ask(disk))).collect();
        let answer = |asked: std::thread::ScopedJoinHandle<'_, _>| {
            asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        asking.into_iter().map(answer).collect()
    });
    for (members, answer) in members.values().zip(answers) {
        for member in members {
            let status = found.entry(member.clone()).or_default();
            match &answer {
                Ok(smart) => status.smart = Some(smart.clone()),
                Err(why) => status.absent = Some(why.clone()),
            }
        }
    }
    found
}

/// Asks one disk.
fn ask(
    program: &Path,
    disk: &str,
    limit: Duration,
    hanging: &Hanging,
) -> Result<SmartStatus, String> {
    let lock = || hanging.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(child) = lock().get_mut(disk)
        && matches!(child.try_wait(), Ok(None))
    {
        return Err("smartctl hangs with it since it was asked before".to_owned());
    }
    lock().remove(disk);
    let mut command = Command::new(program);
    command
        .args(["--json", "--nocheck=standby", "--info", "--health", "--attributes"])
        .args(["--log=error", "--log=scttempsts"])
        .arg(Path::new("/dev").join(disk));
    match run(command, Wanted::Output, limit, MOST) {
        Ok(ran) => match ran.status {
            Some(status) => parse_smart(&ran.output, status, now()),
            None => Err("smartctl was ended by a signal".to_owned()),
        },
        Err(unanswered) => {
            if let Some(child) = unanswered.left {
                lock().insert(disk.to_owned(), child);
            }
            Err(unanswered.why)
        }
    }
}

/// The facts about disks now, if `new` are the latest findings.
fn merged(known: &ByMember, new: ByMember) -> ByMember {
    let merge = |(member, mut status): (String, DiskStatus)| {
        let before = known.get(&member).filter(|before| before.disk == status.disk);
        if status.smart.is_none() && status.disk.is_some() {
            status.smart = before.and_then(|before| before.smart.clone());
        }
        (member, status)
    };
    new.into_iter().map(merge).collect()
}

/// The disks of all volumes, for as long as the monitor watches.
pub(crate) struct Disks {
    file: PathBuf,
    /// None for never.
    every: Option<Duration>,
    known: ByMember,
    looking: Option<JoinHandle<ByMember>>,
    /// When all of them are looked at again.
    due: Instant,
    hanging: Hanging,
}

impl Disks {
    /// With what was known before; `every` so many seconds they are looked at, or never for 0.
    pub(crate) fn open(state: &Path, every: u64) -> Disks {
        let known = known_disks(state).unwrap_or_else(|error| {
            eprintln!("braid monitor: what was known of disks is not understood: {error}");
            ByMember::new()
        });
        Disks {
            file: state.join(FILE),
            every: (every > 0).then(|| Duration::from_secs(every)),
            known,
            looking: None,
            due: Instant::now(),
            hanging: Hanging::default(),
        }
    }

    /// Sets what is known of the disks below what was seen, and has them looked at if it is time, or if a member
    /// is new. Waits for nothing.
    pub(crate) fn turn(&mut self, seen: &mut Observation) {
        let Some(every) = self.every else { return };
        self.collect();
        let ups = || {
            seen.volumes.values().filter_map(|seen| match seen {
                Seen::Up(status) => Some(status),
                _ => None,
            })
        };
        if self.looking.is_none() {
            let mut asked = asked_of(ups().flat_map(|status| &status.members));
            if Instant::now() >= self.due {
                self.due = Instant::now() + every;
                // A volume that is silent still has its members.
                if ups().count() == seen.volumes.len() {
                    self.known.retain(|member, _| asked.contains_key(member));
                }
            } else {
                asked.retain(|member, _| !self.known.contains_key(member));
            }
            if !asked.is_empty() {
                let hanging = Arc::clone(&self.hanging);
                self.looking = Some(std::thread::spawn(move || look(asked, &hanging)));
            }
        }
        for status in seen.volumes.values_mut() {
            if let Seen::Up(status) = status {
                for member in &mut status.members {
                    member.disk = self.known.get(&member.member).cloned();
                }
            }
        }
    }

    /// Waits for what was begun, which takes a bounded time.
    pub(crate) fn wait(&mut self) {
        wait_until(Instant::now() + LIMIT * 2, || {
            self.looking.as_ref().is_none_or(JoinHandle::is_finished)
        });
    }

    fn collect(&mut self) {
        let Some(looking) = self.looking.take_if(|looking| looking.is_finished()) else { return };
        let found = looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.known.extend(merged(&self.known, found));
        if let Err(error) = self.save() {
            eprintln!("braid monitor: cannot keep what is known of disks: {error}");
        }
    }

    /// Replaces the file, which others read at any time.
    fn save(&self) -> io::Result<()> {
        let new = self.file.with_extension("json.new");
        let mut file = std::fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec(&self.known)?)?;
        std::fs::rename(&new, &self.file)
    }
}

#[cfg(test)]
mod tests;
