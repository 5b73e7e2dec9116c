//! A RAM cache beside what it stands before, and its policies beside those of other caches.
//!
//! `cargo run --release -p braid-bench --bin cache`
//!
//! ```text
//! hits      cache(ram) beside ram, through the same export          processor time of the server
//! writes    cache(origin) beside origin, writing through it         bytes a second
//! misses    the same, reading what is not held                      time of a read, one after the other
//! index     what is allocated beside the data                       share of the data
//! ratios    policies beside moka and quick_cache, and LRU           hits of a hundred reads
//! ```
//!
//! Origins are a modelled disk, which takes the same time on every machine, and a file that is opened
//! with O_DIRECT.

mod ratios;
mod served;

use std::process::ExitCode;

use braid_bench::Result;
use braid_bench::args::{Args, finish};
use braid_bench::stats::{Estimate, Target};
use braid_bench::table::Table;

const USAGE: &str = "\
cache [--rounds N] [--runtime SECONDS] [--only NAME] [--folder FOLDER] [--braid PATH]
  --rounds   rounds of each row (7)
  --runtime  seconds at each volume in a round (1)
  --only     rows with this in their name
  --folder   where the file lies that is an origin (the folder for temporary files)
  --braid    the braid binary (the one beside this program)";

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--only", "--folder", "--braid"];
    let args = Args::from_command_line(&known, USAGE)?;
    let mut table = Table::new(["row", "cache", "beside", "[95 %]", "target", ""]);
    ratios::run(&args, &mut table)?;
    served::run(&args, &mut table)?;
    println!("{table}");
    Ok(())
}

/// A row: medians of both, and how the one is to the other.
pub(crate) fn add(
    table: &mut Table,
    name: &str,
    [ours, beside]: [String; 2],
    estimate: Estimate,
    target: Target,
) {
    let verdict = target.verdict(estimate);
    let row = [name.to_owned(), ours, beside, estimate.to_string(), target.to_string(), verdict];
    table.row(row);
}
