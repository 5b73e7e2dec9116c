//! The attached device (FUSE and loop) beside nbdfuse with a loop, and beside a plain loop.
//!
//! `cargo run --release -p braid-bench --bin attach`, as root. All three are up all the time, each
//! over 1 GiB of memory that was written once, and are measured in turn by fio with direct I/O.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use braid_bench::args::{Args, finish};
use braid_bench::attached::{BraidUp, NbdFuseLoop, PlainLoop, is_direct};
use braid_bench::fio::{self, Subject, Workload};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result};

const USAGE: &str = "\
attach [--rounds N] [--runtime SECONDS] [--only NAME] [--braid PATH | --device PATH]
  --rounds   rounds of each workload (5)
  --runtime  seconds at each device in a round (1)
  --only     workloads whose name contains NAME
  --braid    the braid binary (the one beside this program)
  --device   a block device that is attached already; ALL IT HOLDS IS OVERWRITTEN";

const SMALL: u64 = 4 << 10;
const LARGE: u64 = 1 << 20;

const WORKLOADS: [(Workload, f64); 4] = [
    (workload("4 KiB random read, depth 32", "randread", SMALL, 32), 3.0),
    (workload("4 KiB random write, depth 32", "randwrite", SMALL, 32), 3.0),
    (workload("1 MiB sequential read, depth 8", "read", LARGE, 8), 1.5),
    (workload("1 MiB sequential write, depth 8", "write", LARGE, 8), 1.5),
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
    // Each is taken down when it is dropped, except a given one.
    let ours: Box<dyn AsRef<Path>> = match args.text("--device") {
        Some(device) => Box::new(PathBuf::from(device)),
        None => Box::new(BraidUp::new(&args.braid()?, "ram(1G)")?),
    };
    let devices: [(&str, Box<dyn AsRef<Path>>); 3] = [
        ("braid", ours),
        ("nbdfuse + loop", Box::new(NbdFuseLoop::new("1G")?)),
        ("plain loop", Box::new(PlainLoop::new(1 << 30)?)),
    ];
    for (name, device) in &devices {
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
    let mut absolute = Table::new(["workload", "device", "requests/s", "MB/s"]);
    let mut ratios = Table::new(["workload", "ratio to", "median [95 %]", "target", ""]);
    for (workload, bound) in WORKLOADS.iter().filter(|(workload, _)| args.wants(workload.name)) {
        eprintln!("{} ...", workload.name);
        let mut rates: [Vec<f64>; 3] = Default::default();
        for round in 0..rounds {
            for turn in 0..devices.len() {
                let index = (round + turn) % devices.len();
                let subject = Subject::Device((*devices[index].1).as_ref());
                rates[index].push(fio::run(subject, workload, seconds)?.rate());
            }
        }
        for ((name, _), rates) in devices.iter().zip(&rates) {
            let rate = median(&mut rates.clone());
            absolute.row([
                workload.name.to_owned(),
                (*name).to_owned(),
                format!("{:.0}", rate / workload.block as f64),
                format!("{:.0}", rate / 1e6),
            ]);
        }
        for (index, target) in [(1, Target::AtLeast(*bound)), (2, Target::None)] {
            let estimate = Estimate::of_ratio(&rates[0], &rates[index]);
            ratios.row([
                workload.name.to_owned(),
                devices[index].0.to_owned(),
                estimate.to_string(),
                target.to_string(),
                target.verdict(estimate),
            ]);
        }
    }
    println!("Medians of {rounds} rounds of {seconds} s (for orientation)\n\n{absolute}");
    println!("braid's throughput, ratios within a round\n\n{ratios}");
    Ok(())
}
