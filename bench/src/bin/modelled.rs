//! Four modelled sticks as a RAID 0 beside one of them: does striping give what it promises?
//!
//! `cargo run --release -p braid-bench --bin modelled`
//!
//! The members take the time of their model, so this measures braid's own share in it, and not
//! this machine: the requests of all members must be under way at once, and nothing may add up.

use std::process::ExitCode;

use braid_bench::Result;
use braid_bench::args::{Args, finish};
use braid_bench::fio::{self, Subject, Workload};
use braid_bench::peer::{Folder, Server};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;

const USAGE: &str = "\
modelled [--rounds N] [--runtime SECONDS] [--braid PATH]
  --rounds   rounds of each workload (3)
  --runtime  seconds at each volume in a round (5)
  --braid    the braid binary (the one beside this program)";

const ONE: &str = "model(usb-flash, size=256M)";
const STRIPED: &str = "raid0(chunk=64K, model(usb-flash, size=256M), \
    model(usb-flash, size=256M), model(usb-flash, size=256M), model(usb-flash, size=256M))";

const WORKLOADS: [Workload; 2] = [
    Workload { name: "1 MiB sequential read", rw: "read", block: 1 << 20, depth: 8, jobs: 1 },
    Workload { name: "1 MiB sequential write", rw: "write", block: 1 << 20, depth: 8, jobs: 1 },
];

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--braid"], USAGE)?;
    let rounds = args.value("--rounds", 3usize)?.max(1);
    let seconds: f64 = args.value("--runtime", 5.0)?;
    fio::require()?;
    let braid = args.braid()?;
    let folder = Folder::new()?;
    let servers = [
        Server::braid(&braid, "raid0-of-4", STRIPED, folder.path())?,
        Server::braid(&braid, "one", ONE, folder.path())?,
    ];
    let columns = ["workload, depth 8", "raid0, MB/s", "one, MB/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for workload in &WORKLOADS {
        eprintln!("{} ...", workload.name);
        let mut rates: [Vec<f64>; 2] = Default::default();
        for round in 0..rounds {
            for turn in 0..servers.len() {
                let index = (round + turn) % servers.len();
                let subject = Subject::Nbd(servers[index].socket());
                rates[index].push(fio::run(subject, workload, seconds)?.rate());
            }
        }
        let estimate = Estimate::of_ratio(&rates[0], &rates[1]);
        let target = Target::AtLeast(3.9);
        table.row([
            workload.name.to_owned(),
            format!("{:.1}", median(&mut rates[0].clone()) / 1e6),
            format!("{:.1}", median(&mut rates[1].clone()) / 1e6),
            estimate.to_string(),
            target.to_string(),
            target.verdict(estimate),
        ]);
    }
    println!("raid0(chunk=64K) of 4 x {ONE} beside one\n\n{table}");
    Ok(())
}
