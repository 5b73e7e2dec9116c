//! The attached device (FUSE and loop), over io_uring and not, beside nbdfuse with a loop and a plain loop.
//!
//! `cargo run --release -p braid-bench --bin attach`, as root. All are up all the time, each over 512 MiB of memory that
//! was written once, and are measured in turn by fio with direct I/O. FUSE over io_uring is turned on while its volumes
//! come up, if this kernel has it.

use std::path::Path;
use std::process::ExitCode;

use braid_bench::args::{Args, finish};
use braid_bench::attached::{BraidUp, NbdFuseLoop, PlainLoop, is_direct};
use braid_bench::fio::{self, Subject, Workload};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result};

const USAGE: &str = "\
attach [--rounds N] [--runtime SECONDS] [--only NAME] [--braid PATH]
  --rounds   rounds of each workload (5)
  --runtime  seconds at each device in a round (1)
  --only     workloads whose name contains NAME
  --braid    the braid binary (the one beside this program)";

/// A row of the table of ratios: what, in units of what, by the place among the devices; and from which to which workload
/// with which targets.
struct Row {
    of: usize,
    to: usize,
    targets: [Target; 4],
}

const URING: usize = 0;
const RAID5: usize = 1;
const DEVICE: usize = 2;
const NBDFUSE: usize = 3;
const LOOP: usize = 4;

const fn at_least(bound: f64) -> Target {
    Target::AtLeast(bound)
}

const ROWS: [Row; 5] = [
    Row {
        of: URING,
        to: LOOP,
        targets: [at_least(0.9), at_least(0.9), at_least(0.85), Target::None],
    },
    Row {
        of: RAID5,
        to: LOOP,
        targets: [Target::None, at_least(0.55), Target::None, Target::None],
    },
    Row { of: URING, to: DEVICE, targets: [Target::None; 4] },
    Row { of: DEVICE, to: LOOP, targets: [Target::None; 4] },
    Row {
        of: DEVICE,
        to: NBDFUSE,
        targets: [at_least(3.0), at_least(3.0), at_least(1.5), at_least(1.5)],
    },
];

const SMALL: u64 = 4 << 10;
const LARGE: u64 = 1 << 20;

const WORKLOADS: [Workload; 4] = [
    workload("4 KiB random read, depth 32", "randread", SMALL, 32),
    workload("4 KiB random write, depth 32", "randwrite", SMALL, 32),
    workload("1 MiB sequential read, depth 8", "read", LARGE, 8),
    workload("1 MiB sequential write, depth 8", "write", LARGE, 8),
];

const fn workload(name: &'static str, rw: &'static str, block: u64, depth: u32) -> Workload {
    Workload { name, rw, block, depth, jobs: 1 }
}

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--only", "--braid", "--device"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 5usize)?.max(1);
    let seconds: f64 = args.value("--runtime", 1.0)?;
    fio::require()?;
    if !rustix::process::geteuid().is_root() {
        return Err(Error::Usage("loop devices and mounts want root".into()));
    }
    let braid = args.braid()?;
    let parity = "raid5(ram(128M), ram(128M), ram(128M), ram(128M))";
    // Each is taken down when it is dropped. Without queues, what would have them is missing.
    let devices: [Named; 5] = [
        ("braid over io_uring", boxed(BraidUp::over(&braid, "ram(512M)", true)?)),
        ("braid over io_uring, raid5", boxed(BraidUp::over(&braid, parity, true)?)),
        ("braid", boxed(Some(up_without(&braid)?))),
        ("nbdfuse + loop", boxed(Some(NbdFuseLoop::new("512M")?))),
        ("plain loop", boxed(Some(PlainLoop::new(512 << 20)?))),
    ];
    let present = |index: &usize| devices[*index].1.is_some();
    show_and_fill(&devices)?;
    let mut absolute = Table::new(["workload", "device", "requests/s", "MB/s"]);
    let mut ratios = Table::new(["workload", "of", "ratio to", "median [95 %]", "target", ""]);
    let wanted = WORKLOADS.iter().enumerate().filter(|(_, workload)| args.wants(workload.name));
    for (number, workload) in wanted {
        eprintln!("{} ...", workload.name);
        let mut rates: [Vec<f64>; 5] = Default::default();
        for round in 0..rounds {
            for turn in 0..devices.len() {
                let index = (round + turn) % devices.len();
                let Some(device) = &devices[index].1 else { continue };
                let subject = Subject::Device((**device).as_ref());
                rates[index].push(fio::run(subject, workload, seconds)?.rate());
            }
        }
        for index in (0..devices.len()).filter(present) {
            let rate = median(&mut rates[index].clone());
            absolute.row([
                workload.name.to_owned(),
                devices[index].0.to_owned(),
                format!("{:.0}", rate / workload.block as f64),
                format!("{:.0}", rate / 1e6),
            ]);
        }
        for Row { of, to, targets } in ROWS.iter().filter(|row| present(&row.of)) {
            let estimate = Estimate::of_ratio(&rates[*of], &rates[*to]);
            ratios.row([
                workload.name.to_owned(),
                devices[*of].0.to_owned(),
                devices[*to].0.to_owned(),
                estimate.to_string(),
                targets[number].to_string(),
                targets[number].verdict(estimate),
            ]);
        }
    }
    println!(
        "Medians of {rounds} rounds of {seconds} s (for orientation)\n\n{absolute}\nThroughput, ratios within a round\n\n{ratios}"
    );
    Ok(())
}

/// A device by its name in the tables; none where the kernel does not offer it.
type Named = (&'static str, Option<Box<dyn AsRef<Path>>>);

fn show_and_fill(devices: &[Named]) -> Result<()> {
    for (name, device) in devices {
        let Some(device) = device else {
            println!("{name}: this kernel has no FUSE over io_uring");
            continue;
        };
        let path = (**device).as_ref();
        let direct = match is_direct(path) {
            Some(true) => "direct I/O",
            Some(false) => "through the page cache",
            None => "not a loop device",
        };
        println!("{name}: {}, {direct}", path.display());
        fio::fill(Subject::Device(path))?;
    }
    println!();
    Ok(())
}

fn boxed<T: AsRef<Path> + 'static>(device: Option<T>) -> Option<Box<dyn AsRef<Path>>> {
    device.map(|device| Box::new(device) as Box<dyn AsRef<Path>>)
}

/// A volume whose requests come through `/dev/fuse`.
fn up_without(braid: &Path) -> Result<BraidUp> {
    match BraidUp::over(braid, "ram(512M)", false)? {
        Some(up) => Ok(up),
        None => BraidUp::new(braid, "ram(512M)"),
    }
}
