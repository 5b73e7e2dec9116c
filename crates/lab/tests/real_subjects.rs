//! Subjects on the real machine: loop devices, file systems, volumes of braid. Skipped, with the reason,
//! without root or the programs. Each test checks afterwards that nothing of its own is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use braid_lab::campaign::{Campaign, FileSystem, Health, Job, Setup, Source, SubjectDecl};
use braid_lab::command::{Step, Target};
use braid_lab::error::Obstacle;
use braid_lab::matrix::{Planned, Workload};
use braid_lab::settings::Settings;
use braid_lab::subjects::{Ready, Subjects};
use braid_lab::{ByteSize, LabError, LabOptions, StopFlag, SystemWorld, World};

const LONG: Duration = Duration::from_secs(600);
const MIB: u64 = 1 << 20;

/// Separates two tests: mkfs.btrfs examines all mounts, and refuses if a mount's server is dead. The test that
/// kills one and the one that makes a btrfs take turns.
fn apart_from_dead_servers() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the program beside the tests, if it has been built.
fn braid() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let binary = own.parent()?.parent()?.join("braid");
    let works = Command::new(&binary).arg("--version").output().is_ok_and(|o| o.status.success());
    works.then_some(binary)
}

fn is_root() -> bool {
    let root = SystemWorld::new().is_root();
    if !root {
        println!("skipped: attaching and mounting needs root");
    }
    root
}

/// A campaign's subjects in a folder of the test's own; dropping it removes everything.
struct Bench {
    dir: tempfile::TempDir,
    subjects: Option<Subjects<'static>>,
    world: SystemWorld,
    /// Mounts and servers, to be checked afterwards.
    mounts: Vec<PathBuf>,
    pids: Vec<u32>,
}

impl Bench {
    /// Returns `None`, and prints the reason, if volumes cannot be attached.
    fn of_stacks(make: impl FnOnce(&Path) -> Vec<Source>) -> Option<Self> {
        if !is_root() {
            return None;
        }
        if braid().is_none() {
            println!("skipped: the program braid has not been built (cargo build -p braid)");
            return None;
        }
        if !Path::new("/dev/fuse").exists() {
            println!("skipped: there is no /dev/fuse");
            return None;
        }
        Some(Self::new(make, false))
    }

    fn new(make: impl FnOnce(&Path) -> Vec<Source>, through_nbd: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sources = make(dir.path());
        // Without jobs everything is attached; a job of an unknown tool needs no device.
        let job = Job { tool: "none".into(), settings: Default::default() };
        let campaign = Campaign {
            name: "test".into(),
            description: String::new(),
            repetitions: 1,
            seed: Some(1),
            control: None,
            runtime_s: 5.0,
            ramp_s: 0.0,
            region: ByteSize(64 * MIB),
            fill: true,
            drop_caches: false,
            rounds: false,
            rest_s: 0.0,
            only: Vec::new(),
            working_dir: None,
            members: Vec::new(),
            subjects: sources
                .into_iter()
                .enumerate()
                .map(|(index, source)| SubjectDecl::new(&format!("s{index}"), source, index == 0))
                .collect(),
            jobs: if through_nbd { vec![job] } else { Vec::new() },
        };
        let images = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let options = LabOptions {
            destroy: images.collect(),
            quiet: true,
            braid_binary: braid().unwrap_or_default(),
            ..LabOptions::new(dir.path().join("results")).unwrap()
        };
        // They live as long as the process: a campaign's subjects borrow them.
        let options = Box::leak(Box::new(options));
        let subjects = Some(Subjects::new(&Planned::of(&campaign), options).unwrap());
        let world = SystemWorld::new();
        Self { dir, subjects, world, mounts: Vec::new(), pids: Vec::new() }
    }

    fn try_up(&mut self, subject: usize, setup: &Setup) -> Result<Ready, Obstacle> {
        let workload =
            Workload { tool: "none".into(), settings: Settings::default(), setup: setup.clone() };
        let subjects = self.subjects.as_mut().unwrap();
        let result = subjects.bring_up(subject, &workload, &mut self.world);
        if let Ok(ready) = &result {
            self.mounts.extend(ready.watch.mountpoint.clone());
            self.pids.extend(ready.watch.server_pid);
        }
        result
    }

    #[track_caller]
    fn up(&mut self, subject: usize, setup: &Setup) -> Ready {
        let up = self.try_up(subject, setup);
        up.unwrap_or_else(|obstacle| panic!("{}", LabError::from(obstacle)))
    }

    #[track_caller]
    fn impossible(&mut self, subject: usize, setup: &Setup) -> String {
        match self.try_up(subject, setup) {
            Err(Obstacle::Impossible(why)) => why,
            Ok(ready) => panic!("it is up: {:?}", ready.commands),
            Err(other) => panic!("{}", LabError::from(other)),
        }
    }

    fn let_go(&mut self, subject: usize) -> Result<(), LabError> {
        self.subjects.as_mut().unwrap().let_go(subject, &mut self.world)
    }

    fn take_down_all(&mut self) -> Result<(), LabError> {
        self.subjects.as_mut().unwrap().take_down_all(&mut self.world)
    }

    /// Takes everything down, which must succeed, and checks that nothing is left.
    #[track_caller]
    fn finish(mut self) {
        self.take_down_all().unwrap();
        self.check_nothing_is_left();
    }

    #[track_caller]
    fn check_nothing_is_left(&self) {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        for mount in &self.mounts {
            let mount = mount.display().to_string();
            let is_there = mounts.lines().any(|line| line.split(' ').nth(1) == Some(&mount));
            let is_ours = mount.contains("braid-lab-");
            assert!(!is_ours || !is_there, "{mount} is mounted");
            assert!(!is_ours || !Path::new(&mount).exists(), "{mount} is left");
        }
        let loops = Command::new("losetup").args(["--list", "--noheadings"]).output().unwrap();
        let loops = String::from_utf8_lossy(&loops.stdout).into_owned();
        let own = self.dir.path().display().to_string();
        assert!(!loops.contains(&own), "{loops}");
        for pid in &self.pids {
            assert!(!is_alive(*pid), "process {pid} is left");
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(mut subjects) = self.subjects.take()
            && let Err(error) = subjects.take_down_all(&mut self.world)
        {
            eprintln!("{error}");
        }
    }
}

/// Returns true if a process lives: a zombie has no program.
fn is_alive(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

fn image(dir: &Path, name: &str, mib: u64) -> String {
    let path = dir.join(name);
    fs::File::create(&path).unwrap().set_len(mib * MIB).unwrap();
    path.display().to_string()
}

fn on(filesystem: FileSystem) -> Setup {
    Setup { filesystem, ..Setup::default() }
}

fn in_health(health: Health) -> Setup {
    Setup { health, ..Setup::default() }
}

fn device(ready: &Ready) -> PathBuf {
    match &ready.target {
        Target::Device(path) => path.clone(),
        other => panic!("{other:?} is no device"),
    }
}

/// Writes to the trial's folder as a tool would, and checks its promised properties.
#[track_caller]
fn use_folder(ready: &Ready) {
    let folder = ready.folder.as_ref().expect("a folder");
    assert_eq!(ready.target, Target::Folder(folder.clone()));
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "it is not empty");
    assert!(ready.region_bytes > MIB && ready.region_bytes <= 64 * MIB, "{}", ready.region_bytes);
    fs::write(folder.join("file"), vec![7; MIB as usize]).unwrap();
}

#[test]
fn a_file_carries_each_file_system_in_turn() {
    if !is_root() {
        return;
    }
    let _turn = apart_from_dead_servers();
    let mut bench = Bench::new(|dir| vec![Source::Path(image(dir, "a.img", 400))], false);
    let mut devices = Vec::new();
    for filesystem in FileSystem::ALL.into_iter().skip(1) {
        let ready = match bench.try_up(0, &on(filesystem)) {
            Ok(ready) => ready,
            Err(Obstacle::Impossible(why)) => {
                println!("skipped: {}: {why}", filesystem.name());
                assert!(
                    why.contains("is not installed") || why.contains("this kernel has no"),
                    "{why}"
                );
                continue;
            }
            Err(other) => panic!("{}", LabError::from(other)),
        };
        use_folder(&ready);
        let mount = ready.watch.mountpoint.clone().unwrap();
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let line = mounts.lines().find(|line| line.contains(&mount.display().to_string())).unwrap();
        assert_eq!(line.split(' ').nth(2), Some(filesystem.name()), "{line}");
        devices.push(ready.watch.target.clone().unwrap());
        bench.let_go(0).unwrap();
        assert!(!mount.exists(), "{} is left", mount.display());
    }
    devices.dedup();
    assert!(devices.len() <= 1, "the loop device stays: {devices:?}");
    bench.finish();
}

#[test]
fn options_that_are_refused_make_a_cell_impossible() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new(|dir| vec![Source::Path(image(dir, "a.img", 64))], false);
    let setup = Setup { mount: "no_such_option".into(), ..on(FileSystem::Ext4) };
    assert!(bench.impossible(0, &setup).contains("no_such_option"));
    let setup = Setup { mkfs: "--no-such-word".into(), ..on(FileSystem::Ext4) };
    assert!(bench.impossible(0, &setup).contains("mkfs"));
    use_folder(&bench.up(0, &on(FileSystem::Ext4)));
    bench.finish();
}

#[test]
fn read_ahead_is_set_and_put_back() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new(|dir| vec![Source::Path(image(dir, "a.img", 16))], false);
    let sys = |ready: &Ready| {
        let name = ready.watch.target.clone().unwrap();
        let text = fs::read_to_string(format!("/sys/block/{name}/queue/read_ahead_kb")).unwrap();
        text.trim().parse::<u64>().unwrap()
    };
    let before = sys(&bench.up(0, &Setup::default()));
    let setup = Setup { readahead: Some(ByteSize(4 * MIB)), ..Setup::default() };
    let ready = bench.up(0, &setup);
    assert_eq!(sys(&ready), 4096);
    bench.let_go(0).unwrap();
    assert_eq!(sys(&ready), before);
    bench.finish();
}

#[test]
fn a_folder_gets_a_folder_and_nothing_else_is_touched() {
    let make = |dir: &Path| {
        fs::create_dir(dir.join("home")).unwrap();
        fs::write(dir.join("home/precious"), b"x").unwrap();
        vec![Source::Directory(dir.join("home").display().to_string())]
    };
    let mut bench = Bench::new(make, false);
    for _ in 0..2 {
        let ready = bench.up(0, &on(FileSystem::Own));
        use_folder(&ready);
        let told = ready.commands.iter().any(|text| text.contains("/home lies on "));
        assert!(told, "{:?}", ready.commands);
        bench.let_go(0).unwrap();
        assert!(!ready.folder.unwrap().exists());
    }
    bench.take_down_all().unwrap();
    let left: Vec<_> = fs::read_dir(bench.dir.path().join("home")).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn memory_of_the_kernel_is_a_device() {
    if !is_root() {
        return;
    }
    let sources = vec![Source::Tmpfs("64M".into()), Source::Zram("64M".into())];
    let mut bench = Bench::new(|_| sources, false);
    let ready = bench.up(0, &Setup::default());
    assert_eq!((ready.size_bytes, ready.region_bytes), (64 * MIB, 64 * MIB));
    use_folder(&bench.up(0, &on(FileSystem::Ext4)));
    match bench.try_up(1, &on(FileSystem::Ext2)) {
        Ok(ready) => {
            use_folder(&ready);
            let zram = format!("/sys/block/{}", ready.watch.target.unwrap());
            bench.take_down_all().unwrap();
            assert!(!Path::new(&zram).exists(), "{zram} is left");
        }
        Err(Obstacle::Impossible(why)) => println!("skipped: zram: {why}"),
        Err(other) => panic!("{}", LabError::from(other)),
    }
    bench.finish();
}

#[test]
fn a_stack_in_memory_stays_up_between_trials() {
    let Some(mut bench) = Bench::of_stacks(|_| vec![Source::Stack("ram(64M)".into())]) else {
        return;
    };
    let ready = bench.up(0, &Setup::default());
    let path = device(&ready);
    assert_eq!(ready.size_bytes, 64 * MIB);
    // It is claimed for the trial, and a tool can still write to it.
    let error = bench.world.fill(&ready.target, MIB, 3, LONG, &StopFlag::default()).unwrap_err();
    assert!(error.to_string().contains("busy"), "{error}");
    fs::write(&path, vec![7; MIB as usize]).unwrap();
    bench.let_go(0).unwrap();
    let again = bench.up(0, &Setup::default());
    assert_eq!((device(&again), again.watch.server_pid), (path, ready.watch.server_pid));
    assert!(ready.watch.volume.is_some() && ready.watch.target.is_some());
    bench.finish();
}

#[test]
fn a_stripe_of_files_carries_a_file_system_and_takes_turns_with_its_members() {
    let make = |dir: &Path| {
        let (a, b) = (image(dir, "a.img", 64), image(dir, "b.img", 64));
        vec![Source::Path(a.clone()), Source::Stack(format!("raid0(chunk=64K, {a}, {b})").into())]
    };
    let Some(mut bench) = Bench::of_stacks(make) else { return };
    for _ in 0..2 {
        for subject in [0, 1] {
            let ready = bench.up(subject, &on(FileSystem::Ext4));
            use_folder(&ready);
            bench.let_go(subject).unwrap();
        }
    }
    bench.finish();
}

#[test]
fn members_that_were_not_named_are_not_overwritten() {
    let mut path = PathBuf::new();
    let make = |dir: &Path| {
        path = dir.join("late.img");
        vec![Source::Stack(format!("raid0({})", path.display()).into())]
    };
    let Some(mut bench) = Bench::of_stacks(make) else { return };
    // Made after the options, so it is not among the paths that may be destroyed.
    image(bench.dir.path(), "late.img", 16);
    let made = Command::new("mkfs.ext4").arg("-q").arg(&path).status().unwrap();
    assert!(made.success());
    let Err(error) = bench.try_up(0, &Setup::default()) else { panic!("it came up") };
    let error = LabError::from(error);
    assert!(error.to_string().contains("late.img: the campaign writes there"), "{error}");
    bench.finish();
}

/// Plays the story of a subject, as fast as the array goes, up to an event.
#[track_caller]
fn play(bench: &mut Bench, ready: &mut Ready, until: &str) -> Vec<String> {
    let story = &mut ready.story;
    let mut elapsed = Duration::ZERO;
    loop {
        if let Some(command) = story.due(elapsed) {
            let done = bench.world.run(&command, LONG, &StopFlag::default()).unwrap();
            story.did(elapsed, &done);
        }
        let events: Vec<String> = story.events().iter().map(|(_, what)| what.clone()).collect();
        if events.iter().any(|what| what == until) {
            return events;
        }
        assert!(!events.iter().any(|what| what.contains("exit status")), "{events:?}");
        elapsed += Duration::from_millis(250);
    }
}

fn status(ready: &Ready) -> String {
    let name = ready.watch.volume.as_ref().unwrap();
    let output = Command::new(braid().unwrap()).args(["status", name]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_array_of_files_is_hurt_and_mended() {
    let make = |dir: &Path| {
        let names = ["a.img", "b.img", "c.img"].map(|name| image(dir, name, 64)).join(", ");
        vec![Source::Stack(format!("raid5(chunk=64K, {names})").into())]
    };
    let Some(mut bench) = Bench::of_stacks(make) else { return };
    let healthy = |bench: &mut Bench, ready: &Ready| {
        bench.let_go(0).unwrap();
        let text = status(ready);
        assert!(text.contains("state: online") && text.contains("[UUU]"), "{text}");
    };

    let ready = bench.up(0, &in_health(Health::Degraded));
    assert!(status(&ready).contains("state: degraded"), "{}", status(&ready));
    healthy(&mut bench, &ready);

    let mut ready = bench.up(0, &in_health(Health::Rebuilding));
    assert!(status(&ready).contains("[_UU]"), "{}", status(&ready));
    let events = play(&mut bench, &mut ready, "recovery ended");
    assert_eq!(events, ["recovery began", "recovery ended"]);
    healthy(&mut bench, &ready);

    let mut ready = bench.up(0, &in_health(Health::Scrubbing));
    let events = play(&mut bench, &mut ready, "check began");
    assert_eq!(events[0], "check began");
    healthy(&mut bench, &ready);

    let setup = Setup { health: Health::Story, ..on(FileSystem::Ext4) };
    let mut ready = bench.up(0, &setup);
    use_folder(&ready);
    let events = play(&mut bench, &mut ready, "check ended");
    let a = bench.dir.path().join("a.img");
    assert_eq!(events[0], format!("member {} failed", a.display()));
    assert_eq!(events[1..], ["recovery began", "recovery ended", "check began", "check ended"]);
    healthy(&mut bench, &ready);

    bench.take_down_all().unwrap();
    let found = Command::new(braid().unwrap()).arg("examine").arg(a).output().unwrap();
    assert!(!found.status.success(), "a superblock is left");
    bench.check_nothing_is_left();
}

#[test]
fn an_array_in_memory_can_be_degraded_and_checked_only() {
    let text = "raid1(ram(32M), ram(32M))";
    let Some(mut bench) = Bench::of_stacks(|_| vec![Source::Stack(text.into())]) else { return };
    let ready = bench.up(0, &in_health(Health::Degraded));
    assert!(status(&ready).contains("[_U]"), "{}", status(&ready));
    bench.let_go(0).unwrap();
    let mut ready = bench.up(0, &in_health(Health::Scrubbing));
    assert!(status(&ready).contains("[UU]"), "{}", status(&ready));
    assert_eq!(play(&mut bench, &mut ready, "check began")[0], "check began");
    bench.let_go(0).unwrap();
    assert!(bench.impossible(0, &in_health(Health::Story)).contains("superblocks"));
    bench.finish();
}

#[test]
fn a_server_that_was_killed_is_named_and_the_next_trial_goes_on() {
    let make = |dir: &Path| {
        vec![Source::Stack(format!("raid0({}, ram(64M))", image(dir, "a.img", 64)).into())]
    };
    let _turn = apart_from_dead_servers();
    let Some(mut bench) = Bench::of_stacks(make) else { return };
    for is_in_a_trial in [false, true] {
        let ready = bench.up(0, &on(FileSystem::Ext4));
        if !is_in_a_trial {
            bench.let_go(0).unwrap();
        }
        let pid = ready.watch.server_pid.unwrap();
        assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
        // Its files close when the kernel has taken it down.
        while is_alive(pid) {
            std::thread::yield_now();
        }
        if is_in_a_trial {
            use_what_is_gone(&ready);
            // Unmounting lost dirty pages may fail or not; the mount is gone in both cases.
            let _ = bench.let_go(0);
        }
        let Err(error) = bench.try_up(0, &on(FileSystem::Ext4)) else { panic!("it came up") };
        let text = LabError::from(error).to_string();
        assert!(text.contains("\"s0\"") && text.contains("ended by itself"), "{text}");
    }
    use_folder(&bench.up(0, &on(FileSystem::Ext4)));
    bench.finish();
}

/// Checks that a file on a lost device cannot be made durable.
#[track_caller]
fn use_what_is_gone(ready: &Ready) {
    let path = ready.folder.as_ref().expect("a folder").join("lost");
    let written = fs::File::create(path).and_then(|file| file.sync_all());
    assert!(written.is_err(), "the server was not needed");
}

#[test]
fn what_is_busy_is_named_and_goes_at_the_end() {
    if !is_root() {
        return;
    }
    let mut bench = Bench::new(|dir| vec![Source::Path(image(dir, "a.img", 64))], false);
    let ready = bench.up(0, &on(FileSystem::Ext4));
    let path = ready.folder.clone().unwrap().join("open");
    let open = fs::File::create(path).unwrap();
    let error = bench.let_go(0).unwrap_err().to_string();
    assert!(error.contains("umount"), "{error}");
    drop(open);
    bench.let_go(0).unwrap();

    let ready = bench.up(0, &on(FileSystem::Ext4));
    let open = fs::File::create(ready.folder.clone().unwrap().join("open")).unwrap();
    let error = bench.take_down_all().unwrap_err().to_string();
    assert!(error.contains("was busy") && error.contains("fuser"), "{error}");
    drop(open);
    bench.take_down_all().unwrap();
    // The kernel releases the device when the last file is closed.
    while ready.watch.mountpoint.as_ref().is_some_and(|mount| is_mounted(mount)) {
        std::thread::yield_now();
    }
}

fn is_mounted(mount: &Path) -> bool {
    fs::read_to_string("/proc/mounts").unwrap().contains(&mount.display().to_string())
}

#[test]
fn stacks_are_served_where_all_tools_speak_nbd() {
    if braid().is_none() {
        println!("skipped: the program braid has not been built (cargo build -p braid)");
        return;
    }
    let make = |dir: &Path| {
        let (a, b, c) = (image(dir, "a.img", 8), image(dir, "b.img", 8), image(dir, "c.img", 8));
        vec![
            Source::Stack(format!("raid0({a})").into()),
            Source::Stack(format!("raid1({b}, {c})").into()),
            Source::Path(a),
        ]
    };
    let mut bench = Bench::new(make, true);
    for subject in [0, 1] {
        let ready = bench.up(subject, &Setup::default());
        let Target::Nbd(uri) = &ready.target else { panic!("{:?}", ready.target) };
        assert_eq!(bench.world.nbd_size(uri).unwrap(), ready.size_bytes);
        let stop = StopFlag::default();
        bench.world.fill(&ready.target, ready.region_bytes, 3, LONG, &stop).unwrap();
        bench.let_go(subject).unwrap();
        let why = bench.impossible(subject, &on(FileSystem::Ext4));
        assert!(why.contains("NBD"), "{why}");
    }
    let ready = bench.up(1, &in_health(Health::Degraded));
    assert!(matches!(ready.target, Target::Nbd(_)), "{:?}", ready.target);
    assert!(status(&ready).contains("[_U]"), "{}", status(&ready));
    bench.let_go(1).unwrap();
    assert!(status(&ready).contains("[UU]"), "{}", status(&ready));

    let a = bench.dir.path().join("a.img");
    let ready = bench.up(2, &Setup::default());
    assert_eq!(ready.target, Target::Device(a.clone()), "a file will do");
    let content = fs::read(&a).unwrap();
    assert!(content.chunks(4096).all(|block| block.iter().any(|byte| *byte != 0)));
    bench.finish();
}

#[test]
fn the_kernels_md_works_or_is_not_there() {
    if !is_root() {
        return;
    }
    if braid().is_none() {
        println!("skipped: the program braid has not been built (cargo build -p braid)");
        return;
    }
    let make = |dir: &Path| {
        let (a, b) = (image(dir, "a.img", 32), image(dir, "b.img", 32));
        vec![
            Source::Kernel(format!("raid1({a}, {b})").into()),
            Source::Kernel(format!("linear({a}, {b})").into()),
        ]
    };
    let mut bench = Bench::new(make, false);
    // Gone from Linux 6.8 on; on older kernels it comes up like any other.
    match bench.try_up(1, &Setup::default()) {
        Err(Obstacle::Impossible(why)) => {
            assert!(why.contains("6.8") || why.contains("no md"), "{why}")
        }
        Err(other) => panic!("{}", LabError::from(other)),
        Ok(ready) => {
            assert!(ready.watch.target.unwrap().starts_with("md"));
            bench.let_go(1).unwrap();
        }
    }
    match bench.try_up(0, &Setup::default()) {
        Err(Obstacle::Impossible(why)) => println!("skipped: {why}"),
        Err(other) => panic!("{}", LabError::from(other)),
        Ok(ready) => {
            assert!(ready.watch.target.unwrap().starts_with("md"));
            bench.let_go(0).unwrap();
            let mut ready = bench.up(0, &in_health(Health::Rebuilding));
            let events = play(&mut bench, &mut ready, "recovery ended");
            assert_eq!(events, ["recovery began", "recovery ended"]);
            bench.let_go(0).unwrap();
            let mut ready = bench.up(0, &in_health(Health::Scrubbing));
            assert_eq!(play(&mut bench, &mut ready, "check began")[0], "check began");
            bench.let_go(0).unwrap();
            use_folder(&bench.up(0, &on(FileSystem::Ext4)));
        }
    }
    bench.finish();
}

/// The test above in a guest with md, by the program `klab` that `$KLAB` names.
#[test]
fn the_kernels_md_works_in_a_guest() {
    let Some(klab) = std::env::var_os("KLAB").filter(|path| Path::new(path).is_file()) else {
        println!("skipped: $KLAB names no klab, which boots a kernel with md");
        return;
    };
    let share = tempfile::tempdir().unwrap();
    let Some(braid) = braid() else {
        println!("skipped: the program braid has not been built (cargo build -p braid)");
        return;
    };
    // In the same layout as in the build folder.
    fs::create_dir(share.path().join("deps")).unwrap();
    fs::copy(std::env::current_exe().unwrap(), share.path().join("deps/tests")).unwrap();
    fs::copy(braid.with_file_name("braid-volume"), share.path().join("braid-volume")).unwrap();
    fs::copy(braid, share.path().join("braid")).unwrap();
    // A guest has no udev, so mdadm makes its nodes itself.
    let script = "modprobe loop; modprobe md_mod; cd /tmp && \
                  $KLAB_SHARE/deps/tests --exact the_kernels_md_works_or_is_not_there --nocapture";
    let output = Command::new(klab)
        .args(["run", "--root", "/", "--timeout", "300", "--share"])
        .arg(share.path())
        .args(["--", script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(125) {
        println!("skipped: klab boots no kernel here: {text}");
        return;
    }
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed") && !text.contains("skipped"), "{text}");
}

#[test]
fn caches_are_dropped_or_it_is_said_why_not() {
    let mut world = SystemWorld::new();
    match world.drop_caches() {
        Ok(()) => {}
        Err(error) => {
            println!("skipped: {error}");
            assert!(error.to_string().contains("drop_caches = false"), "{error}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = world.make_folder(dir.path()).unwrap();
    let step = Step::MakeFile { path: folder.join("a"), bytes: MIB, seed: 1 };
    world.perform(&step, LONG, &StopFlag::default()).unwrap();
    world.sync_path(&folder).unwrap();
    world.remove_folder(&folder, true).unwrap();
}
