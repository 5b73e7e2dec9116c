//! A machine without devices: it knows what exists, refuses what a real one would refuse, and fails
//! where it is told to.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::error::LabError;
use crate::story::Story;
use crate::tool::{Step, Target, ToolOutput};
use crate::world::{CommandLine, Exit, Finished, PathKind, Service, StopFlag, World};

const GIB: u64 = 1 << 30;

/// What happens at the chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It fails.
    Fails,
    /// The user presses Ctrl-C.
    IsStopped,
}

#[derive(Default)]
struct State {
    /// What exists: "loop /dev/loop100", "mount /tmp/x", ...
    things: BTreeSet<String>,
    /// Who uses a path: path and user.
    used: BTreeMap<String, String>,
    /// Files behind loop devices.
    files: BTreeMap<String, String>,
    readahead: BTreeMap<String, String>,
    next: u32,
    commands: Vec<String>,
    steps: usize,
    fills: usize,
    /// Whether the array was there before: its superblocks are the user's and are to stay.
    is_users: bool,
    is_degraded: bool,
    /// How the first member is; empty: not there.
    victim: String,
    is_busy: bool,
}

/// The machine.
#[derive(Default)]
pub(super) struct Machine {
    now: Duration,
    state: Rc<RefCell<State>>,
    fault: Option<(usize, Fault, StopFlag)>,
    not_root: bool,
}

struct Server {
    socket: String,
    state: Rc<RefCell<State>>,
}

impl Service for Server {
    fn poll_exit(&mut self) -> Result<Option<(Exit, String)>, LabError> {
        let is_up = self.state.borrow().things.contains(&self.socket);
        Ok((!is_up).then(|| (Exit::Signal(9), String::new())))
    }

    fn stop(&mut self, _: Duration) -> Result<(Exit, String), LabError> {
        self.state.borrow_mut().things.remove(&self.socket);
        Ok((Exit::Signal(15), String::new()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.borrow_mut().things.remove(&self.socket);
    }
}

impl Machine {
    pub(super) fn with_fault(step: usize, fault: Fault, stop: &StopFlag) -> Self {
        Self { fault: Some((step, fault, stop.clone())), ..Self::default() }
    }

    /// No fault from now on; answers whether there was one.
    pub(super) fn calm_down(&mut self) -> bool {
        self.fault.take().is_some_and(|(step, ..)| self.state.borrow().steps > step)
    }

    /// All that exists, and all that is not as it was.
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

    pub(super) fn is_degraded(&self) -> bool {
        self.state.borrow().is_degraded
    }

    pub(super) fn kill_servers(&mut self) {
        let is_server = |thing: &str| thing.starts_with("server") || thing.starts_with("volume");
        let mut state = self.state.borrow_mut();
        let (dead, alive) = state.things.iter().cloned().partition(|thing| is_server(thing));
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

    /// Counts a step; answers whether it is to fail.
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

    /// A step that is no command.
    fn act(&mut self, action: &str) -> Result<(), LabError> {
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
    /// What a command does and prints, or why it fails.
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
                // What lies on it goes with it.
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
                    false => Ok(String::new()),
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

    /// Takes the paths in a text for a user, unless somebody has them.
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

    fn braid(&mut self, words: &[&str]) -> Result<String, String> {
        let after = |flag: &str| {
            words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1)).copied()
        };
        assert_eq!(words[0], "braid");
        match words[1] {
            "create" => {
                self.take(&words.join(" "), words[2])?;
                self.used.clear();
                self.things.extend(["superblock /img/a".into(), "superblock /img/b".into()]);
                self.victim = "in_sync".into();
                Ok(String::new())
            }
            "wipe" if self.is_users => {
                assert_eq!((words[2], self.victim.as_str()), ("/img/a", ""), "it is a member");
                Ok(String::new())
            }
            "wipe" => match self.remove(format!("superblock {}", words[2])) {
                Err(_) => Err(format!("{} has no md superblock", words[2])),
                done => done,
            },
            "up" => {
                let name = after("--name").unwrap_or(words[2]);
                // As braid does: what is named to be overwritten must be in the stack.
                for (_, path) in
                    words.iter().zip(&words[1..]).filter(|(flag, _)| **flag == "--force")
                {
                    if !words[2].contains(path) {
                        return Err(format!("--force {path}: the stack has no such member"));
                    }
                }
                self.add(format!("volume {name}"))?;
                self.take(words[2], name)?;
                if words[2].starts_with("md(") {
                    (self.is_users, self.victim) = (true, "in_sync".into());
                }
                Ok(format!(r#"{{"device":"/dev/loop99-{name}","nbd":[]}}"#))
            }
            "down" => {
                let name = words[2];
                self.used.retain(|_, user| user != name);
                (self.is_degraded, self.victim) = (false, "in_sync".into());
                self.remove(format!("volume {name}"))
                    .or_else(|_| self.remove(format!("remains {name}")))
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
                if !self.is_users {
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
                self.add(format!("md {}", words[1]))
            }
            "--stop" => self.remove(format!("md {last}")),
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
        Ok(Finished { exit, stdout, stderr })
    }

    fn start(&mut self, command: &CommandLine) -> Result<Box<dyn Service>, LabError> {
        self.act("start it")?;
        let (_, socket) = command.args[3].split_once("unix:").unwrap();
        let socket = format!("server {socket}");
        self.state.borrow_mut().things.insert(socket.clone());
        Ok(Box::new(Server { socket, state: Rc::clone(&self.state) }))
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
        _: &Target,
        bytes: u64,
        _: u64,
        _: Duration,
        _: &StopFlag,
    ) -> Result<(), LabError> {
        assert!(bytes > 0);
        self.state.borrow_mut().fills += 1;
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

    fn path_kind(&mut self, path: &Path) -> Result<Option<PathKind>, LabError> {
        let text = path.display().to_string();
        Ok(Some(match () {
            () if text.starts_with("/dev/") => PathKind::Block,
            () if text == "/srv" => PathKind::Folder,
            () => PathKind::File,
        }))
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
