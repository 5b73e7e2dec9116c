//! The cost of a rescue: seconds and bytes read of `braid rescue scan`, `open` and `solve` on full members.
//!
//! `cargo run --release -p braid-bench --bin rescue`. The members are images of a raid6 whose ext4 is full of small
//! files and of one file of random bytes. `--sparse` makes them longer by zeros that take no room, which shows that
//! the bytes that are read do not grow with the members.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::process::{self, Service};
use braid_bench::table::Table;
use braid_bench::{Error, Result};
use braid_seed::Rng;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

const USAGE: &str = "\
rescue [--members N] [--size MIB] [--sparse GIB] [--rounds N] [--dir FOLDER] [--braid PATH]
  --members  members of the raid6 (8)
  --size     MiB of content on each, which --dir has to hold twice (2048)
  --sparse   GiB of zeros behind the content of each (0)
  --rounds   rounds; the median is printed (3)
  --dir      folder for the images (the temporary one)
  --braid    the braid binary (the one beside this program)";

const MIB: u64 = 1 << 20;
const CHUNK: u64 = 512 << 10;
const FILES: usize = 3000;
/// Seconds of scan and open together, and of solve; bytes that are read of a member.
const TARGETS: [f64; 3] = [5.0, 30.0, 1536.0];

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--members", "--size", "--sparse", "--rounds", "--dir", "--braid"];
    let args = Args::from_command_line(&known, USAGE)?;
    let members = args.value("--members", 8usize)?.clamp(4, 24);
    let (size, sparse) = (args.value("--size", 2048u64)?.max(64), args.value("--sparse", 0u64)?);
    let rounds = args.value("--rounds", 3usize)?.max(1);
    let parent = args.text("--dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(parent).map_err(Error::io("folder for the images"))?;
    // It is started in the folder of the images.
    let braid = std::path::absolute(args.braid()?).map_err(Error::io("path of braid"))?;
    let case = Case { braid, folder: folder.path().to_owned(), members };
    case.make(size * MIB, sparse << 30)?;
    let mut runs: Vec<[Cost; 3]> = Vec::new();
    for _ in 0..rounds {
        let _ = std::fs::remove_dir_all(case.folder.join("home.rescue"));
        let mut scan = vec!["scan".to_owned(), "home".to_owned()];
        scan.extend((0..members).map(Case::name));
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let scan = case.cost(&scan)?;
        // No member has a superblock: what is opened is the answer of `solve`.
        let solve = case.cost(&words("solve home"))?;
        runs.push([scan, case.cost(&words("open home --hypothesis 1"))?, solve]);
    }
    let content = case.folder.join("m0.img").metadata().map_err(Error::io("a member"))?.len();
    println!(
        "{members} members of {} MiB, {size} MiB of them content, median of {rounds}\n",
        content / MIB
    );
    let mut table = Table::new(["rescue", "seconds", "MiB read of a member"]);
    let median = |of: &dyn Fn(&[Cost; 3]) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (index, name) in ["scan", "open", "solve"].into_iter().enumerate() {
        let seconds = median(&|run| run[index].time.as_secs_f64());
        let read = median(&|run| run[index].read as f64) / (members as u64 * MIB) as f64;
        table.row([name.to_owned(), format!("{seconds:.2}"), format!("{read:.0}")]);
    }
    println!("{table}");
    let most = runs.iter().flatten().map(|one| one.read).max().unwrap_or(0);
    let found = [
        median(&|run| (run[0].time + run[1].time).as_secs_f64()),
        median(&|run| run[2].time.as_secs_f64()),
        most as f64 / (members as u64 * MIB) as f64,
    ];
    let names = ["seconds of scan and open", "seconds of solve", "MiB read of a member, at most"];
    for ((name, value), target) in names.into_iter().zip(found).zip(TARGETS) {
        let verdict = if value <= target { "met" } else { "missed" };
        println!("{name}: {value:.1} (≤ {target}: {verdict})");
    }
    Ok(())
}

/// For `map_err`: `path` cannot be made, read or written.
fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    Error::io(path.display().to_string())
}

/// The cost of one command.
struct Cost {
    time: Duration,
    /// Bytes that it read, of all members and of everything else.
    read: u64,
}

struct Case {
    braid: PathBuf,
    folder: PathBuf,
    members: usize,
}

impl Case {
    fn name(member: usize) -> String {
        format!("m{member}.img")
    }

    fn member(name: &str) -> String {
        format!("file({name}, offset=1M)")
    }

    /// Makes the members, in an order that is not that of their names, without superblocks.
    fn make(&self, size: u64, sparse: u64) -> Result<()> {
        let within = |name: &str| self.folder.join(name);
        for member in 0..self.members {
            let path = within(&Case::name(member));
            let file = std::fs::File::create(&path).map_err(at(&path))?;
            file.set_len(MIB + size).map_err(at(&path))?;
        }
        let length = size / CHUNK * CHUNK * (self.members as u64 - 2);
        self.file_system(&within("root"), &within("data"), length)?;
        let members: Vec<String> =
            (0..self.members).rev().map(|one| Case::member(&Case::name(one))).collect();
        let stack = format!("raid6(chunk=512K, {})", members.join(", "));
        let socket = within("volume.sock");
        let mut serve = Command::new(&self.braid);
        serve.current_dir(&self.folder).args(["serve", &stack, "--nbd"]);
        serve.arg(format!("unix:{}", socket.display()));
        let mut service = Service::start(serve)?;
        service.wait_for_socket(&socket)?;
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        let nbdcopy = process::require("nbdcopy", "libnbd-bin")?;
        process::run(Command::new(nbdcopy).arg("--flush").arg(within("data")).arg(uri))?;
        drop(service);
        std::fs::remove_file(within("data")).map_err(Error::io("the content"))?;
        for member in 0..self.members {
            let path = within(&Case::name(member));
            let file = std::fs::File::options().write(true).open(&path).map_err(at(&path))?;
            file.set_len(MIB + size + sparse).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Makes an ext4 of `length` bytes that is nearly full.
    fn file_system(&self, root: &Path, image: &Path, length: u64) -> Result<()> {
        let mut rng = Rng::new(1);
        let mut random = |bytes: u64| -> Vec<u8> {
            (0..bytes / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
        };
        for file in 0..FILES {
            let folder = root.join(format!("folder {}", file % 30));
            std::fs::create_dir_all(&folder).map_err(at(&folder))?;
            let path = folder.join(format!("file {file}"));
            std::fs::write(&path, random(8192)).map_err(at(&path))?;
        }
        let path = root.join("large");
        let mut large = std::fs::File::create(&path).map_err(at(&path))?;
        let block = random(4 * MIB);
        for number in 0..length / 10 * 8 / (4 * MIB) {
            // No two blocks are the same.
            let mut block = block.clone();
            block
                .chunks_exact_mut(512)
                .for_each(|sector| sector[..8].copy_from_slice(&number.to_le_bytes()));
            std::io::Write::write_all(&mut large, &block).map_err(at(&path))?;
        }
        let file = std::fs::File::create(image).map_err(at(image))?;
        file.set_len(length).map_err(at(image))?;
        let mkfs = process::require("mkfs.ext4", "e2fsprogs")?;
        process::run(Command::new(mkfs).args(["-q", "-F", "-d"]).arg(root).arg(image))?;
        std::fs::remove_dir_all(root).map_err(at(root))
    }

    /// Runs `braid rescue` with these words.
    fn cost(&self, words: &[String]) -> Result<Cost> {
        let start = Instant::now();
        let mut command = Command::new(&self.braid);
        command.arg("rescue").args(words).current_dir(&self.folder).stdout(Stdio::null());
        let mut child = command.spawn().map_err(at(&self.braid))?;
        let pid = Pid::from_child(&child);
        // The counters of a process are there until its end is taken note of.
        let ended = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        ended.map_err(|error| Error::Unexpected(format!("waitid: {error}")))?;
        let time = start.elapsed();
        let path = PathBuf::from(format!("/proc/{}/io", child.id()));
        let text = std::fs::read_to_string(&path).map_err(at(&path))?;
        let read = text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok());
        let status = child.wait().map_err(at(&self.braid))?;
        match (read, status.code()) {
            (Some(read), Some(0 | 4)) => Ok(Cost { time, read }),
            _ => Err(Error::Unexpected(format!("braid rescue {}: {status}", words.join(" ")))),
        }
    }
}
