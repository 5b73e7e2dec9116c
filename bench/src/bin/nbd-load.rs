//! The batching load generator as a program: random reads of 4 KiB at a server that runs already.
//!
//! `nbd-load --socket PATH [--depth 32] [--runtime 2] [--pid PID]`

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use braid_bench::args::{Args, finish};
use braid_bench::{Error, Result, cpu, load};

const USAGE: &str = "nbd-load --socket PATH [--depth 32] [--runtime SECONDS] [--pid SERVER]";

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--socket", "--depth", "--runtime", "--pid"], USAGE)?;
    let socket = args.text("--socket").ok_or_else(|| Error::Usage(USAGE.to_owned()))?;
    let depth = args.value("--depth", 32u32)?.max(1);
    let runtime = Duration::from_secs_f64(args.value("--runtime", 2.0)?);
    let pid = args.value("--pid", 0)?;
    let server_ns = || if pid == 0 { Ok(0) } else { cpu::process_ns(pid) };
    let before = server_ns()?;
    let outcome = load::random_reads(Path::new(socket), depth, runtime)?;
    let server_ns = server_ns()? - before;
    let requests = outcome.requests as f64;
    println!("{:.0} requests/s", requests / outcome.seconds);
    println!("{:.2} µs of client CPU per request", outcome.cpu_ns as f64 / requests / 1000.0);
    println!("{:.1} requests per send", requests / outcome.sends as f64);
    println!("{:.1} replies per receive", requests / outcome.receives as f64);
    if pid != 0 {
        println!("{:.2} µs of server CPU per request", server_ns as f64 / requests / 1000.0);
    }
    Ok(())
}
