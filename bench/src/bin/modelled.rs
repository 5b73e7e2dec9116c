//! Modelled sticks and disks as arrays beside one of them: do striping, mirroring and parity give
//! what they promise?
//!
//! `cargo run --release -p braid-bench --bin modelled`
//!
//! The members take the time of their model, each on a bus of its own, so this measures braid's
//! own share in it, and not this machine: the requests of all members must be under way at once,
//! and nothing may add up.
//!
//! Arrays with parity have chunks of 512 KiB, as mdadm makes them. For each stripe a member skips
//! its parity when it reads in sequence, which these models take for a seek; with small chunks that
//! would be measured, and not braid. Where small writes are gathered, the chunks are of 32 KiB:
//! what the client has under way are two stripes then, or more. Of n members writing whole stripes has the rate of those with
//! data, n - 1 or n - 2, at most; reading, which all n take part in, is held against the same.

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

/// A stick, or a disk with a seek and a turn of 8 ms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Stick,
    Disk,
}

impl Member {
    const fn stack(self) -> &'static str {
        match self {
            Member::Stick => "model(usb-flash, size=256M)",
            Member::Disk => "model(usb-flash, size=256M, read=150MB/s, write=150MB/s, latency=8ms)",
        }
    }
}

/// An array under one load beside one stick under another.
struct Row {
    array: Array,
    member: Member,
    ours: Workload,
    one: Workload,
    target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Array {
    Raid0,
    Raid1,
    Raid5,
    Raid6,
    /// With stripes that are shorter than what a client with small writes has under way.
    Narrow5,
    Narrow6,
}

impl Array {
    /// The expression for an array of these members.
    fn stack(self, member: Member) -> String {
        let (head, count) = match self {
            Array::Raid0 => ("raid0(chunk=64K", 4),
            Array::Raid1 => ("raid1(", 2),
            Array::Raid5 => ("raid5(chunk=512K", 4),
            Array::Raid6 => ("raid6(chunk=512K", 6),
            Array::Narrow5 => ("raid5(chunk=32K", 4),
            Array::Narrow6 => ("raid6(chunk=32K", 6),
        };
        let members = vec![member.stack(); count].join(", ");
        let comma = if head.ends_with('(') { "" } else { ", " };
        format!("{head}{comma}{members})")
    }
}

/// Bytes of a whole stripe's data.
const STRIPE5: u64 = 3 * (512 << 10);
const STRIPE6: u64 = 4 * (512 << 10);
/// The number of members that have data of a stripe, as a target.
const OF_RAID5: f64 = 2.85; // 0.95 of 3
const OF_RAID6: f64 = 3.8; // 0.95 of 4

const ROWS: [Row; 19] = [
    same(Array::Raid0, load("raid0: 1 MiB sequential read", "read", 1 << 20, 8, 1), 3.9),
    same(Array::Raid0, load("raid0: 1 MiB sequential write", "write", 1 << 20, 8, 1), 3.9),
    same(Array::Raid1, load("raid1: 1 MiB sequential write", "write", 1 << 20, 8, 1), 0.98),
    same(Array::Raid1, load("raid1: 4 KiB random write, depth 8", "randwrite", 4096, 8, 1), 0.98),
    raid1(
        load("raid1: 4 KiB random read, 1 client", "randread", 4096, 1, 1),
        load("", "randread", 4096, 1, 1),
        Target::None,
    ),
    raid1(
        load("raid1: 4 KiB random read, 2 clients", "randread", 4096, 1, 2),
        load("", "randread", 4096, 1, 1),
        Target::AtLeast(1.9),
    ),
    raid1(
        load("raid1: 4 KiB random read, 3 clients", "randread", 4096, 1, 3),
        load("", "randread", 4096, 1, 1),
        Target::None,
    ),
    raid1(
        load("raid1: 1 MiB sequential read, 1 client", "read", 1 << 20, 4, 1),
        load("", "read", 1 << 20, 4, 1),
        Target::None,
    ),
    raid1(
        load("raid1: 1 MiB sequential read, 3 clients", "read", 1 << 20, 4, 3),
        load("", "read", 1 << 20, 4, 1),
        Target::None,
    ),
    same(Array::Raid5, load("raid5: sequential write, stripes", "write", STRIPE5, 8, 1), OF_RAID5),
    same(Array::Raid5, load("raid5: sequential read, stripes", "read", STRIPE5, 8, 1), OF_RAID5),
    Row {
        target: Target::None,
        ..same(
            Array::Narrow5,
            load("raid5: 4 KiB sequential write, depth 64", "write", 4096, 64, 1),
            0.0,
        )
    },
    same(Array::Raid6, load("raid6: sequential write, stripes", "write", STRIPE6, 8, 1), OF_RAID6),
    same(Array::Raid6, load("raid6: sequential read, stripes", "read", STRIPE6, 8, 1), OF_RAID6),
    Row {
        target: Target::None,
        ..same(
            Array::Narrow6,
            load("raid6: 4 KiB sequential write, depth 64", "write", 4096, 64, 1),
            0.0,
        )
    },
    disks(
        Array::Raid5,
        load("raid5 of disks: sequential write, stripes", "write", STRIPE5, 8, 1),
        OF_RAID5,
    ),
    disks(
        Array::Raid5,
        load("raid5 of disks: sequential read, stripes", "read", STRIPE5, 8, 1),
        OF_RAID5,
    ),
    disks(
        Array::Raid6,
        load("raid6 of disks: sequential write, stripes", "write", STRIPE6, 8, 1),
        OF_RAID6,
    ),
    disks(
        Array::Raid6,
        load("raid6 of disks: sequential read, stripes", "read", STRIPE6, 8, 1),
        OF_RAID6,
    ),
];

/// The array and the stick under the same load.
const fn same(array: Array, load: Workload, at_least: f64) -> Row {
    let target = Target::AtLeast(at_least);
    Row { array, member: Member::Stick, ours: load, one: load, target }
}

/// The same of disks.
const fn disks(array: Array, load: Workload, at_least: f64) -> Row {
    Row { member: Member::Disk, ..same(array, load, at_least) }
}

const fn raid1(ours: Workload, one: Workload, target: Target) -> Row {
    Row { array: Array::Raid1, member: Member::Stick, ours, one, target }
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
    let columns = ["array and load", "array, MB/s", "one, MB/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for row in ROWS.iter().filter(|row| args.wants(row.ours.name)) {
        eprintln!("{} ...", row.ours.name);
        // Started anew for each row: what is written in sequence starts at the front.
        let array = Server::braid(&braid, "array", &row.array.stack(row.member), folder.path())?;
        let one = Server::braid(&braid, "one", row.member.stack(), folder.path())?;
        let subjects = [(&array, &row.ours), (&one, &row.one)];
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
    println!(
        "raid0 of 4, raid1 of 2, raid5 of 4 and raid6 of 6 x {} beside one; disks are {}\n\n{table}",
        Member::Stick.stack(),
        Member::Disk.stack()
    );
    Ok(())
}
