//! The time in which volumes come up when their members appear: 20 volumes of 4 members each, on loop devices.
//!
//! `cargo run --release -p braid-bench --bin boot`, as root. For each member that appears, the commands of the
//! udev rule are run: `braid incremental` twice, the first time only to look. No systemd takes part: the last
//! member starts the volume. There are two orders: all members are present, and their events come as fast as
//! udev's workers take them (*together*); or one member comes after the other, the first of each volume first,
//! so that every volume waits for its last (*in turn*). The measured time ends when every volume is attached.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::attached::Loop;
use braid_bench::process::{Undo, run as run_program};
use braid_bench::stats::median;
use braid_bench::table::Table;
use braid_bench::{Error, Result};

const USAGE: &str = "\
boot [--rounds N] [--volumes N] [--workers N] [--braid PATH]
  --rounds   rounds (5)
  --volumes  volumes, a RAID 5 of four members each (20)
  --workers  events that are handled at the same time: as udev, 16 and 2 for each processor (20)
  --braid    the braid binary (the one beside this program)";

const MEMBERS: usize = 4;
const MEMBER_BYTES: u64 = 64 << 20;
/// Seconds from the last member to all volumes.
const TARGET: f64 = 3.0;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--volumes", "--workers", "--braid"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 5usize)?.max(1);
    let workers = args.value("--workers", 20usize)?.max(1);
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Usage("loop devices and mounts want root".into()));
    }
    let machine = Machine::new(args.braid()?, args.value("--volumes", 20)?)?;
    let (mut together, mut in_turn, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        eprintln!("round {} of {rounds} ...", round + 1);
        let members = machine.members();
        let plugged: Vec<Plugged> =
            members.iter().map(|member| machine.plug(member)).collect::<Result<_>>()?;
        let began = Instant::now();
        machine.events(&members, workers)?;
        machine.wait_until_up()?;
        together.push(began.elapsed().as_secs_f64());
        machine.down()?;
        drop(plugged);

        let mut plugged = Vec::new();
        let mut last = Instant::now();
        let began = last;
        for member in &members {
            plugged.push(machine.plug(member)?);
            last = Instant::now();
            machine.event(member)?;
        }
        machine.wait_until_up()?;
        apart.push(last.elapsed().as_secs_f64());
        in_turn.push(began.elapsed().as_secs_f64());
        machine.down()?;
    }
    let volumes = machine.volumes;
    let mut table = Table::new(["until all volumes are attached", "median", "worst", "target", ""]);
    for (name, mut seconds, target) in [
        (format!("{volumes} volumes, members together"), together, Some(TARGET)),
        (format!("{volumes} volumes, members in turn, from the last"), apart, Some(TARGET)),
        (format!("{volumes} volumes, members in turn, from the first"), in_turn, None),
    ] {
        let worst = seconds.iter().copied().fold(0.0, f64::max);
        let middle = median(&mut seconds);
        let met = target.map_or("", |target| if middle <= target { "met" } else { "MISSED" });
        let target = target.map_or(String::new(), |target| format!("≤ {target:.0} s"));
        table.row([name, format!("{middle:.2} s"), format!("{worst:.2} s"), target, met.into()]);
    }
    println!("{table}");
    Ok(())
}

/// A member: its image, and the link at which it is when it is plugged in.
#[derive(Debug)]
struct Member {
    image: PathBuf,
    link: PathBuf,
}

/// A member that is there; it goes with this value.
struct Plugged {
    link: PathBuf,
    _device: Loop,
}

impl Drop for Plugged {
    fn drop(&mut self) {
        // It may be gone with the folder.
        let _ = std::fs::remove_file(&self.link);
    }
}

/// Volumes that are down, with folders of their own for all that braid keeps.
struct Machine {
    braid: PathBuf,
    volumes: usize,
    /// Last: volumes are taken down by it should this program be ended.
    _undo: Undo,
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(braid: PathBuf, volumes: usize) -> Result<Machine> {
        let folder = tempfile::Builder::new().prefix("braid-boot").tempdir();
        let folder = folder.map_err(Error::io("a temporary folder"))?;
        let (at, program) = (folder.path().display(), braid.display());
        let undo = Undo::with(&format!(
            "for one in {at}/run/*.sock; do one=${{one##*/}}; BRAID_RUN_DIR={at}/run {program} down --force ${{one%.sock}}; done"
        ))?;
        let machine = Machine { braid, volumes, _undo: undo, folder };
        let members = machine.members();
        for member in &members {
            let file = std::fs::File::create(&member.image).map_err(Error::io("a member"))?;
            file.set_len(MEMBER_BYTES).map_err(Error::io("a member"))?;
        }
        let plugged: Vec<Plugged> =
            members.iter().map(|member| machine.plug(member)).collect::<Result<_>>()?;
        for volume in 0..volumes {
            let mut create = machine.braid();
            create.args(["create", &name(volume), "--level", "5", "--assume-clean"]);
            create.args((0..MEMBERS).map(|role| machine.member(volume, role).link));
            run_program(&mut create)?;
        }
        drop(plugged);
        Ok(machine)
    }

    fn member(&self, volume: usize, role: usize) -> Member {
        let name = format!("{}-{role}", name(volume));
        let at = |name: String| self.folder.path().join(name);
        Member { image: at(format!("{name}.img")), link: at(name) }
    }

    /// The first of each volume, then the second, and so on.
    fn members(&self) -> Vec<Member> {
        let all = (0..MEMBERS).flat_map(|role| (0..self.volumes).map(move |one| (one, role)));
        all.map(|(volume, role)| self.member(volume, role)).collect()
    }

    fn braid(&self) -> Command {
        let mut command = Command::new(&self.braid);
        let at = |name: &str| self.folder.path().join(name);
        command.env("BRAID_RUN_DIR", at("run")).env("BRAID_CONFIG_DIR", at("config"));
        command.env("BRAID_STATE_DIR", at("state")).env("BRAID_DEV_DIR", at("dev"));
        command
    }

    fn plug(&self, member: &Member) -> Result<Plugged> {
        let device = Loop::over(&member.image)?;
        std::os::unix::fs::symlink(device.path(), &member.link).map_err(Error::io("a link"))?;
        Ok(Plugged { link: member.link.clone(), _device: device })
    }

    /// Runs the commands of the udev rule for a member that has appeared.
    fn event(&self, member: &Member) -> Result<()> {
        let incremental = |options: &[&str]| {
            run_program(self.braid().arg("incremental").args(options).arg(&member.link))
        };
        incremental(&["--export", "--no-start"])?;
        incremental(&[]).map(drop)
    }

    /// Events of all these members, so many at a time.
    fn events(&self, members: &[Member], workers: usize) -> Result<()> {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(member) = members.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.event(member)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().map_err(|_| Error::Unexpected("a worker panicked".into()))?
            })
        })
    }

    fn wait_until_up(&self) -> Result<()> {
        let wanted: BTreeSet<String> = (0..self.volumes).map(name).collect();
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let links = std::fs::read_dir(self.folder.path().join("dev"));
            let there: BTreeSet<String> = links
                .map_err(Error::io("links"))?
                .flatten()
                .filter(|link| link.path().exists())
                .map(|link| link.file_name().to_string_lossy().into_owned())
                .collect();
            if wanted.is_subset(&there) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::Unexpected(format!("only {there:?} are up")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn down(&self) -> Result<()> {
        (0..self.volumes).try_for_each(|volume| {
            run_program(self.braid().args(["down", &name(volume)])).map(drop)
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let sockets = std::fs::read_dir(self.folder.path().join("run")).into_iter().flatten();
        for path in sockets.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "sock") {
                let volume = Path::new(path.file_stem().unwrap_or_default());
                if let Err(error) = run_program(self.braid().args(["down", "--force"]).arg(volume))
                {
                    eprintln!("{error}");
                }
            }
        }
    }
}

fn name(volume: usize) -> String {
    format!("v{volume}")
}
