//! A machine without devices: it knows which objects exist, refuses as a real one would, and fails on request.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::command::{CommandLine, Exit, Finished, Step, Target, ToolOutput};
use crate::error::LabError;
use crate::story::Story;
use crate::world::{PathKind, StopFlag, World};

const GIB: u64 = 1 << 30;

/// The fault at the chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The step fails.
    Fails,
    /// The user presses Ctrl-C.
    IsStopped,
}

/// The machine when a run is killed, and the records at that time.
pub(super) struct Moment {
    pub(super) before: String,
    pub(super) notes: String,
    state: State,
}

impl Moment {
    /// Returns true if there is a volume that does not answer yet.
    pub(super) fn is_starting(&self) -> bool {
        self.state.starting.is_some()
    }
}

#[derive(Default, Clone)]
struct State {
    /// Existing objects: "loop /dev/loop100", "mount /tmp/x", ...
    things: BTreeSet<String>,
    /// Paths in use, with the user of each.
    used: BTreeMap<String, String>,
    /// Files behind loop devices.
    files: BTreeMap<String, String>,
    /// Sockets of volumes that are not attached.
    sockets: BTreeMap<String, String>,
    /// Volumes that are served read-only.
    read_only: BTreeSet<String>,
    /// Members that have been written: filled, or under a new file system or superblock.
    written: BTreeSet<String>,
    readahead: BTreeMap<String, String>,
    next: u32,
    commands: Vec<String>,
    steps: usize,
    fills: usize,
    /// The volume whose array existed before: its superblocks are the user's and must stay.
    users: Option<String>,
    is_degraded: bool,
    /// State of the first member; empty if it is absent.
    victim: String,
    is_busy: bool,
    /// Members of created arrays, by name; in use while the array is up.
    created: BTreeMap<String, Vec<String>>,
    /// A volume whose process runs and does not answer yet.
    starting: Option<String>,
}

/// The machine.
#[derive(Default)]
pub(super) struct Machine {
    now: Duration,
    state: Rc<RefCell<State>>,
    fault: Option<(usize, Fault, StopFlag)>,
    not_root: bool,
    /// Size of the memory; 0 if unknown.
    memory_kib: u64,
    /// Path of the records, and the machine at each step.
    witness: Option<PathBuf>,
    moments: Vec<Moment>,
}

impl Machine {
    pub(super) fn with_fault(step: usize, fault: Fault, stop: &StopFlag) -> Self {
        Self { fault: Some((step, fault, stop.clone())), ..Self::default() }
    }

    pub(super) fn with_memory(memory_kib: u64) -> Self {
        Self { memory_kib, ..Self::default() }
    }

    /// Removes the fault; returns true if it has occurred.
    pub(super) fn calm_down(&mut self) -> bool {
        self.fault.take().is_some_and(|(step, ..)| self.state.borrow().steps > step)
    }

    /// Returns all existing objects, and all changed settings.
    pub(super) fn left(&self) -> BTreeSet<String> {
        let state = self.state.borrow();
        let readahead = state.readahead.iter().filter(|(_, sectors)| *sectors != "256");
        let changed = readahead.map(|(device, _)| format!("read-ahead of {device}"));
        state.things.iter().cloned().chain(changed).collect()
    }

    #[track_caller]
    pub(super) fn check_no_trial(&self) {
        let left = self.left();
        let of_a_trial = |thing: &&String| {
            thing.starts_with("read-ahead")
                || (thing.starts_with("mount") && !left.iter().any(|one| one.contains("/disk")))
                || thing.starts_with("folder /srv")
        };
        let found: Vec<&String> = left.iter().filter(of_a_trial).collect();
        assert!(found.is_empty(), "{found:?} of {left:?}");
    }

    pub(super) fn commands(&self) -> Vec<String> {
        self.state.borrow().commands.clone()
    }

    pub(super) fn fills(&self) -> usize {
        self.state.borrow().fills
    }

    /// Returns paths and URIs that have been written.
    pub(super) fn written(&self) -> BTreeSet<String> {
        self.state.borrow().written.clone()
    }

    /// Writes to the target, as a trial's tool does.
    pub(super) fn write(&mut self, target: &Target) {
        let text = match target {
            Target::Device(path) => path.display().to_string(),
            Target::Nbd(uri) => uri.clone(),
            // It is on a file system that was made before, or in a new folder.
            Target::Folder(_) => return,
        };
        self.state.borrow_mut().write(&text);
    }

    pub(super) fn is_degraded(&self) -> bool {
        self.state.borrow().is_degraded
    }

    pub(super) fn kill_volumes(&mut self) {
        let mut state = self.state.borrow_mut();
        let is_volume = |thing: &String| thing.starts_with("volume");
        let (dead, alive) = std::mem::take(&mut state.things).into_iter().partition(is_volume);
        state.things = alive;
        let volumes = dead.iter().filter_map(|thing: &String| thing.strip_prefix("volume "));
        let left: Vec<String> = volumes.map(|name| format!("remains {name}")).collect();
        state.things.extend(left);
    }

    pub(super) fn set_busy(&mut self, is_busy: bool) {
        self.state.borrow_mut().is_busy = is_busy;
    }

    pub(super) fn take_root_away(&mut self) {
        self.not_root = true;
    }

    /// Keeps the machine at every step from now on, with the records in this file.
    pub(super) fn keep_moments(&mut self, notes: PathBuf) {
        self.witness = Some(notes);
    }

    pub(super) fn moments(&mut self) -> Vec<Moment> {
        self.witness = None;
        std::mem::take(&mut self.moments)
    }

    /// Returns the machine after a run was killed at a moment. Objects of the run's own process are gone; other
    /// processes are there.
    pub(super) fn after(moment: &Moment) -> Self {
        let state = Rc::new(RefCell::new(moment.state.clone()));
        Self { state, ..Self::default() }
    }

    fn keep_moment(&mut self, before: &str) {
        let Some(path) = &self.witness else { return };
        let notes = std::fs::read_to_string(path).unwrap_or_default();
        let state = self.state.borrow().clone();
        self.moments.push(Moment { before: before.to_owned(), notes, state });
    }

    /// Keeps the moment after a command whose result the run has not seen yet.
    fn keep_moments_after(&mut self, command: &CommandLine) {
        let text = command.to_string();
        // A loop device has no name before it exists.
        if text.starts_with("losetup --find") {
            return;
        }
        self.keep_moment(&format!("seeing the outcome of {text}"));
        if let Some(at) = command.args.iter().position(|word| word == "up")
            && self.witness.is_some()
        {
            let name = command.args.iter().skip_while(|word| *word != "--name").nth(1);
            let name = name.unwrap_or(&command.args[at + 1]).clone();
            let is_up = self.state.borrow().things.contains(&format!("volume {name}"));
            self.state.borrow_mut().starting = is_up.then_some(name);
            self.keep_moment(&format!("it answers: {text}"));
            self.state.borrow_mut().starting = None;
        }
    }

    /// Counts a step; returns true if it must fail.
    fn step(&mut self) -> bool {
        let number = self.state.borrow().steps;
        self.state.borrow_mut().steps += 1;
        match &self.fault {
            Some((step, Fault::Fails, _)) if *step == number => true,
            Some((step, Fault::IsStopped, stop)) if *step == number => {
                stop.set();
                false
            }
            _ => false,
        }
    }

    /// Carries out a step that is no command.
    fn act(&mut self, action: &str) -> Result<(), LabError> {
        self.keep_moment(action);
        if !self.step() {
            return Ok(());
        }
        Err(LabError::StepFailed {
            action: action.to_owned(),
            reason: "it was told to".to_owned(),
            command: None,
        })
    }
}

impl State {
    /// Returns the output of a command, or the reason of its failure.
    fn execute(&mut self, command: &CommandLine) -> Result<String, String> {
        let words: Vec<&str> = command.args.iter().map(String::as_str).collect();
        let last = words.last().copied().unwrap_or_default();
        match command.program.as_str() {
            "env" => self.braid(&words[2..]),
            "mdadm" => self.mdadm(&words),
            "losetup" if words[0] == "--detach" => {
                self.files.remove(last);
                self.remove(format!("loop {last}"))
            }
            "losetup" => {
                self.next += 1;
                let device = format!("/dev/loop{}", 100 + self.next);
                self.things.insert(format!("loop {device}"));
                if last.ends_with("/disk") {
                    self.things.insert(format!("file {last}"));
                }
                self.files.insert(device.clone(), last.to_owned());
                Ok(format!("{device}\n"))
            }
            "mount" => self.add(format!("mount {last}")),
            "umount" if self.is_busy && words[0] != "--lazy" => Err("target is busy".into()),
            "umount" => {
                // Objects on the mount are gone with it.
                let below = format!(" {last}/");
                self.things.retain(|thing| !thing.contains(&below));
                self.remove(format!("mount {last}"))
            }
            "blockdev" if words[0] == "--getra" => {
                Ok(self.readahead.get(last).cloned().unwrap_or("256".into()))
            }
            "blockdev" => {
                self.readahead.insert(last.to_owned(), words[1].to_owned());
                Ok(String::new())
            }
            "cat" => Ok(format!("idle\n{}\n", u8::from(self.is_degraded))),
            program if program.starts_with("mkfs.") => {
                match self.things.contains(&format!("mount {last}")) {
                    true => Err("it is mounted".into()),
                    false => {
                        self.write(last);
                        Ok(String::new())
                    }
                }
            }
            "zramctl" | "fallocate" | "modprobe" => Ok(String::new()),
            other => panic!("what is {other}?"),
        }
    }

    fn add(&mut self, thing: String) -> Result<String, String> {
        match self.things.insert(thing.clone()) {
            true => Ok(String::new()),
            false => Err(format!("{thing} is there already")),
        }
    }

    fn remove(&mut self, thing: String) -> Result<String, String> {
        match self.things.remove(&thing) {
            true => Ok(String::new()),
            false => Err(format!("{thing} is not there")),
        }
    }

    /// Returns the members behind a device or an export. None of them is served read-only.
    fn members_of(&self, device: &str) -> Vec<String> {
        if let Some(file) = self.files.get(device) {
            return vec![file.clone()];
        }
        let is_owner = |user: &String| {
            let is_socket = |socket: &String| device.ends_with(socket.as_str());
            device.ends_with(user.as_str()) || self.sockets.get(user).is_some_and(is_socket)
        };
        let read_only = self.read_only.iter().any(is_owner);
        assert!(!read_only, "{device} is served for reading only and is written");
        let behind = self.used.iter().filter(|(_, user)| is_owner(user));
        let behind: Vec<String> = behind.flat_map(|(path, _)| self.members_of(path)).collect();
        let is_ours = ["/dev/md/", "/dev/loop99-", "/dev/zram", "nbd+unix:///?socket=/tmp/"];
        match is_ours.iter().any(|start| device.starts_with(start)) {
            true => behind,
            false => vec![device.to_owned()],
        }
    }

    fn write(&mut self, device: &str) {
        let members = self.members_of(device);
        // Files on a tmpfs belong to the run.
        self.written.extend(members.into_iter().filter(|member| !member.ends_with("/disk")));
    }

    /// Marks the paths in a text as used by a user, unless they are in use.
    fn take(&mut self, text: &str, user: &str) -> Result<(), String> {
        let paths: Vec<String> = text
            .split(|c: char| " (),".contains(c))
            .filter(|word| word.starts_with("/img/") || word.starts_with("/dev/"))
            .map(str::to_owned)
            .collect();
        for path in &paths {
            let in_use = self.used.get(path).is_some_and(|other| other != user);
            let by_loop = self.files.values().any(|file| file == path);
            assert!(!in_use && !by_loop, "{path} is in use: {:?} {:?}", self.used, self.files);
        }
        self.used.extend(paths.into_iter().map(|path| (path, user.to_owned())));
        Ok(())
    }

    /// Ends a volume's process in order.
    fn end_volume(&mut self, name: &str) {
        self.used.retain(|_, user| user != name);
        self.read_only.remove(name);
        (self.is_degraded, self.victim) = (false, "in_sync".into());
        self.things.remove(&format!("volume {name}"));
    }

    fn braid(&mut self, words: &[&str]) -> Result<String, String> {
        let after = |flag: &str| {
            words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1)).copied()
        };
        assert_eq!(words[0], "braid");
        match words[1] {
            "create" => {
                self.take(&words.join(" "), words[2])?;
                let is_new = |(_, user): &(String, String)| user == words[2];
                let (new, others): (BTreeMap<_, _>, _) =
                    std::mem::take(&mut self.used).into_iter().partition(is_new);
                self.used = others;
                let members: Vec<String> = new.into_keys().collect();
                self.written.extend(members.iter().cloned());
                self.created.insert(words[2].to_owned(), members);
                self.things.extend(["superblock /img/a".into(), "superblock /img/b".into()]);
                self.victim = "in_sync".into();
                Ok(String::new())
            }
            "wipe" if self.users.is_some() && self.used.get(words[2]) == self.users.as_ref() => {
                assert_eq!((words[2], self.victim.as_str()), ("/img/a", ""), "it is a member");
                Ok(String::new())
            }
            "wipe" if self.used.contains_key(words[2]) && !self.victim.is_empty() => {
                Err(format!("{} is in use: open by braid", words[2]))
            }
            "wipe" => match self.remove(format!("superblock {}", words[2])) {
                Err(_) => Err("there is none".to_owned()),
                done => done,
            },
            "up" => {
                let name = after("--name").unwrap_or(words[2]);
                // As in braid: a path after --force must be in the stack.
                for (_, path) in
                    words.iter().zip(&words[1..]).filter(|(flag, _)| **flag == "--force")
                {
                    if !words[2].contains(path) {
                        return Err(format!("--force {path}: the stack has no such member"));
                    }
                }
                self.add(format!("volume {name}"))?;
                self.take(words[2], name)?;
                let members = self.created.get(name).cloned().unwrap_or_default();
                self.used.extend(members.into_iter().map(|path| (path, name.to_owned())));
                if let Some(address) = after("--nbd") {
                    let socket = address.trim_start_matches("unix:").to_owned();
                    self.sockets.insert(name.to_owned(), socket);
                }
                if words.contains(&"--read-only") {
                    self.read_only.insert(name.to_owned());
                } else if words[2].contains("raid1(") {
                    // Its copies are resynchronised.
                    let mine = self.used.iter().filter(|(_, user)| *user == name);
                    let mine: Vec<String> = mine.map(|(path, _)| path.clone()).collect();
                    self.written.extend(mine);
                }
                if words[2].starts_with("md(") {
                    (self.users, self.victim) = (Some(name.to_owned()), "in_sync".into());
                }
                Ok(format!(r#"{{"device":"/dev/loop99-{name}","nbd":[]}}"#))
            }
            "down" => {
                let name = words[2];
                let is_there = self.things.remove(&format!("remains {name}"))
                    || self.things.contains(&format!("volume {name}"));
                if !is_there || self.starting.as_deref() == Some(name) {
                    return Err("it is not there".to_owned());
                }
                self.end_volume(name);
                Ok(String::new())
            }
            "examine" => {
                let superblock = format!("superblock {}", words[3]);
                let found = if self.things.contains(&superblock) { "{}" } else { "" };
                Ok(format!(r#"{{"members":[{{"superblocks":[{found}]}}]}}"#))
            }
            "status" if words[2] == "--json" => {
                // A volume that is coming up has no socket yet.
                let is_listening = |name: &&str| self.starting.as_deref() != Some(*name);
                let names = self.things.iter().filter_map(|thing| thing.strip_prefix("volume "));
                let names: Vec<String> = names
                    .filter(is_listening)
                    .map(|name| format!(r#"{{"name":"{name}"}}"#))
                    .collect();
                Ok(format!(r#"{{"volumes":[{}],"unanswered":[]}}"#, names.join(",")))
            }
            "status" => {
                if !self.things.contains(&format!("volume {}", words[2])) {
                    return Err("its process is gone".into());
                }
                let members = match self.victim.as_str() {
                    "" => String::new(),
                    state => format!(r#"{{"member":"/img/a","state":"{state}"}}"#),
                };
                Ok(format!(
                    r#"{{"volumes":[{{"pid":7,"arrays":[{{"in_sync":[true,{}],"job":null,
                    "members":[{members}]}}]}}]}}"#,
                    !self.is_degraded
                ))
            }
            "scrub" => Ok(String::new()),
            "member" => self.member(words[2], words),
            other => panic!("what is braid {other}?"),
        }
    }

    fn member(&mut self, order: &str, words: &[&str]) -> Result<String, String> {
        assert_eq!(words.last(), Some(&"/img/a"));
        match (order, self.victim.as_str()) {
            ("fail", "in_sync") => (self.is_degraded, self.victim) = (true, "faulty".into()),
            ("remove", "faulty") => self.victim.clear(),
            ("add", "") => {
                if self.used.get("/img/a") != self.users.as_ref() || self.users.is_none() {
                    self.things.insert("superblock /img/a".into());
                }
                (self.is_degraded, self.victim) = (false, "in_sync".into());
            }
            (order, victim) => return Err(format!("no {order} of a member that is {victim:?}")),
        }
        Ok(String::new())
    }

    fn mdadm(&mut self, words: &[&str]) -> Result<String, String> {
        let last = words.last().copied().unwrap_or_default();
        match words[0] {
            "--create" => {
                self.is_degraded = false;
                let members = words
                    .iter()
                    .filter(|word| word.starts_with("/dev/") && !word.starts_with("/dev/md/"));
                members.for_each(|member| self.write(member));
                let name = words[1].trim_start_matches("/dev/md/");
                self.take(&words[2..].join(" "), name)?;
                let carriers = self.used.iter().filter(|(_, user)| *user == name);
                let carriers: Vec<String> =
                    carriers.flat_map(|(path, _)| self.members_of(path)).collect();
                let superblocks = carriers.into_iter().map(|path| format!("superblock {path}"));
                self.things.extend(superblocks.collect::<Vec<_>>());
                self.add(format!("md {}", words[1]))
            }
            "--stop" => {
                self.used.retain(|_, user| !last.ends_with(user.as_str()));
                self.remove(format!("md {last}"))
            }
            "--manage" => {
                self.is_degraded = words[2] != "--add";
                Ok(String::new())
            }
            "--zero-superblock" | "--action=check" | "--action=idle" => Ok(String::new()),
            other => panic!("what is mdadm {other}?"),
        }
    }
}

impl World for Machine {
    fn monotonic(&self) -> Duration {
        self.now
    }

    fn unix_time_s(&self) -> u64 {
        0
    }

    fn sleep(&mut self, time: Duration) {
        self.now += time;
    }

    fn run(
        &mut self,
        command: &CommandLine,
        _: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError> {
        self.state.borrow_mut().commands.push(command.to_string());
        self.keep_moment(&command.to_string());
        let fails = self.step();
        let (exit, stdout, stderr) = if stop.is_set() {
            (Exit::Stopped, String::new(), String::new())
        } else if fails {
            (Exit::Code(1), String::new(), "it was told to".to_owned())
        } else {
            match self.state.borrow_mut().execute(command) {
                Ok(stdout) => (Exit::Code(0), stdout, String::new()),
                Err(stderr) => (Exit::Code(1), String::new(), stderr),
            }
        };
        self.keep_moments_after(command);
        Ok(Finished { exit, stdout, stderr })
    }

    fn nbd_size(&mut self, _: &str) -> Result<u64, LabError> {
        self.act("ask for the size").map(|()| GIB)
    }

    fn path_size(&mut self, _: &Path) -> Result<u64, LabError> {
        self.act("find out the size").map(|()| GIB)
    }

    fn run_all(
        &mut self,
        _: &[CommandLine],
        _: Duration,
        _: &StopFlag,
        _: &mut Story,
    ) -> Result<Vec<ToolOutput>, LabError> {
        panic!("bringing a subject up measures nothing")
    }

    fn perform(&mut self, _: &Step, _: Duration, _: &StopFlag) -> Result<(), LabError> {
        panic!("bringing a subject up performs no steps")
    }

    fn drop_caches(&mut self) -> Result<(), LabError> {
        panic!("bringing a subject up drops nothing")
    }

    fn sync_path(&mut self, _: &Path) -> Result<(), LabError> {
        panic!("bringing a subject up syncs nothing")
    }

    fn fill(
        &mut self,
        target: &Target,
        bytes: u64,
        _: u64,
        _: Duration,
        _: &StopFlag,
    ) -> Result<(), LabError> {
        assert!(bytes > 0);
        self.state.borrow_mut().fills += 1;
        self.write(target);
        self.act("fill it")
    }

    fn make_folder(&mut self, parent: &Path) -> Result<PathBuf, LabError> {
        self.act("make a folder")?;
        let mut state = self.state.borrow_mut();
        state.next += 1;
        let folder = parent.join(format!("braid-lab-{}", state.next));
        state.things.insert(format!("folder {}", folder.display()));
        Ok(folder)
    }

    fn remove_folder(&mut self, folder: &Path, _: bool) -> Result<(), LabError> {
        let mut state = self.state.borrow_mut();
        let mount = format!("mount {}", folder.display());
        assert!(!state.things.contains(&mount), "{mount} would lose its content");
        state.things.remove(&format!("folder {}", folder.display()));
        Ok(())
    }

    fn is_root(&self) -> bool {
        !self.not_root
    }

    fn end_strays(&mut self, but_volumes: bool) -> Result<usize, LabError> {
        let mut state = self.state.borrow_mut();
        let is_stray = |thing: &&String| thing.starts_with("volume ") && !but_volumes;
        let strays: Vec<String> = state.things.iter().filter(is_stray).cloned().collect();
        for stray in &strays {
            state.things.remove(stray);
            if let Some(name) = stray.strip_prefix("volume ") {
                state.end_volume(name);
                // A volume that was attaching leaves its attached objects.
                if state.starting.take_if(|one| one == name).is_some() {
                    state.things.insert(format!("remains {name}"));
                }
            }
        }
        Ok(strays.len())
    }

    fn path_kind(&mut self, path: &Path) -> Result<Option<PathKind>, LabError> {
        let text = path.display().to_string();
        if text.starts_with("/dev/md/") && !self.left().contains(&format!("md {text}")) {
            return Ok(None);
        }
        Ok(Some(match () {
            () if text.starts_with("/dev/") => PathKind::Block,
            () if text == "/srv" => PathKind::Folder,
            () => PathKind::File,
        }))
    }

    fn check_unused(&mut self, path: &Path) -> Result<(), LabError> {
        let text = path.display().to_string();
        let state = self.state.borrow();
        let by_loop = state.files.values().any(|file| *file == text);
        assert!(!by_loop && !state.used.contains_key(&text), "{text} is in use");
        Ok(())
    }

    fn claim(&mut self, _: &Path) -> Result<Option<File>, LabError> {
        self.act("take it").map(|()| None)
    }

    fn free_bytes(&mut self, _: &Path) -> Result<u64, LabError> {
        self.act("find out the free space").map(|()| GIB)
    }

    fn read_text(&mut self, path: &Path) -> Result<Option<String>, LabError> {
        let text = path.display().to_string();
        if text.ends_with("/hot_add") {
            self.act("make a RAM disk")?;
            self.state.borrow_mut().things.insert("zram 7".to_owned());
            return Ok(Some("7\n".to_owned()));
        }
        if text == "/proc/meminfo" && self.memory_kib > 0 {
            return Ok(Some(format!("MemTotal: {} kB\n", self.memory_kib)));
        }
        if text == "/proc/self/mountinfo" {
            let mounts = self.left().into_iter().filter_map(|thing| {
                let point = thing.strip_prefix("mount ")?;
                Some(format!("40 1 0:7 / {point} rw - ext4 none rw\n"))
            });
            return Ok(Some(mounts.collect()));
        }
        let device = text.split('/').nth(3).unwrap_or_default();
        let is_there = self.state.borrow().things.contains(&format!("loop /dev/{device}"));
        Ok(is_there.then(|| "1\n".to_owned()))
    }

    fn write_text(&mut self, path: &Path, text: &str) -> Result<(), LabError> {
        assert!(path.ends_with("hot_remove"));
        self.state.borrow_mut().things.remove(&format!("zram {text}"));
        Ok(())
    }
}
