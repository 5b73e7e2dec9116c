//! Modelled sticks as arrays beside one of them: do striping and mirroring give what they promise?
//!
//! `cargo run --release -p braid-bench --bin modelled`
//!
//! The members take the time of their model, each on a bus of its own, so this measures braid's
//! own share in it, and not this machine: the requests of all members must be under way at once,
//! and nothing may add up.

use std::process::ExitCode;

use braid_bench::args::{Args, finish};
use braid_bench::fio::{self, Subject, Workload};
use braid_bench::peer::{Folder, Server};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Result, cpu};

const USAGE: &str = "\
modelled [--rounds N] [--runtime SECONDS] [--only NAME] [--braid PATH]
  --rounds   rounds of each row (3)
  --runtime  seconds at each volume in a round (1.2)
  --only     rows with this in their name
  --braid    the braid binary (the one beside this program)";

const ONE: &str = "model(usb-flash, size=256M)";
const RAID0: &str = "raid0(chunk=64K, model(usb-flash, size=256M), \
    model(usb-flash, size=256M), model(usb-flash, size=256M), model(usb-flash, size=256M))";
const RAID1: &str = "raid1(model(usb-flash, size=256M), model(usb-flash, size=256M))";

/// An array under one load beside one stick under another.
struct Row {
    array: Array,
    ours: Workload,
    one: Workload,
    target: Target,
}

#[derive(Clone, Copy)]
enum Array {
    Raid0,
    Raid1,
}

const ROWS: [Row; 9] = [
    same(Array::Raid0, load("raid0: 1 MiB sequential read", "read", 1 << 20, 8, 1), 3.9),
    same(Array::Raid0, load("raid0: 1 MiB sequential write", "write", 1 << 20, 8, 1), 3.9),
    same(Array::Raid1, load("raid1: 1 MiB sequential write", "write", 1 << 20, 8, 1), 0.98),
    same(Array::Raid1, load("raid1: 4 KiB random write, depth 8", "randwrite", 4096, 8, 1), 0.98),
    Row {
        array: Array::Raid1,
        ours: load("raid1: 4 KiB random read, 1 client", "randread", 4096, 1, 1),
        one: load("", "randread", 4096, 1, 1),
        target: Target::None,
    },
    Row {
        array: Array::Raid1,
        ours: load("raid1: 4 KiB random read, 2 clients", "randread", 4096, 1, 2),
        one: load("", "randread", 4096, 1, 1),
        target: Target::AtLeast(1.9),
    },
    Row {
        array: Array::Raid1,
        ours: load("raid1: 4 KiB random read, 3 clients", "randread", 4096, 1, 3),
        one: load("", "randread", 4096, 1, 1),
        target: Target::None,
    },
    Row {
        array: Array::Raid1,
        ours: load("raid1: 1 MiB sequential read, 1 client", "read", 1 << 20, 4, 1),
        one: load("", "read", 1 << 20, 4, 1),
        target: Target::None,
    },
    Row {
        array: Array::Raid1,
        ours: load("raid1: 1 MiB sequential read, 3 clients", "read", 1 << 20, 4, 3),
        one: load("", "read", 1 << 20, 4, 1),
        target: Target::None,
    },
];

/// The array and the stick under the same load.
const fn same(array: Array, load: Workload, at_least: f64) -> Row {
    Row { array, ours: load, one: load, target: Target::AtLeast(at_least) }
}

const fn load(name: &'static str, rw: &'static str, block: u64, depth: u32, jobs: u32) -> Workload {
    Workload { name, rw, block, depth, jobs }
}

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--only", "--braid"], USAGE)?;
    let rounds = args.value("--rounds", 3usize)?.max(1);
    let seconds: f64 = args.value("--runtime", 1.2)?;
    fio::require()?;
    cpu::go_first();
    let braid = args.braid()?;
    let folder = Folder::new()?;
    let raid0 = Server::braid(&braid, "raid0", RAID0, folder.path())?;
    let raid1 = Server::braid(&braid, "raid1", RAID1, folder.path())?;
    let one = Server::braid(&braid, "one", ONE, folder.path())?;
    let columns = ["array and load", "array, MB/s", "one, MB/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for row in ROWS.iter().filter(|row| args.wants(row.ours.name)) {
        eprintln!("{} ...", row.ours.name);
        let array = match row.array {
            Array::Raid0 => &raid0,
            Array::Raid1 => &raid1,
        };
        let subjects = [(array, &row.ours), (&one, &row.one)];
        let mut rates: [Vec<f64>; 2] = Default::default();
        for round in 0..rounds {
            for turn in 0..subjects.len() {
                let index = (round + turn) % subjects.len();
                let (server, workload) = subjects[index];
                let subject = Subject::Nbd(server.socket());
                rates[index].push(fio::run(subject, workload, seconds)?.rate());
            }
        }
        let estimate = Estimate::of_ratio(&rates[0], &rates[1]);
        table.row([
            row.ours.name.to_owned(),
            format!("{:.2}", median(&mut rates[0].clone()) / 1e6),
            format!("{:.2}", median(&mut rates[1].clone()) / 1e6),
            estimate.to_string(),
            row.target.to_string(),
            row.target.verdict(estimate),
        ]);
    }
    println!("raid0 of 4 and raid1 of 2 x {ONE} beside one\n\n{table}");
    Ok(())
}
