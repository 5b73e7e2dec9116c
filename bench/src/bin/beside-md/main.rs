//! braid's block devices beside those of the kernel, in one guest: 4 KiB at random, 32 at a time.
//!
//! `cargo run --release -p braid-bench --bin beside-md`
//!
//! ```text
//!   guest   fio ─▶ /dev/md9 ─▶ md ─▶ 4 brd             fio ─▶ /dev/ram8
//!           fio ─▶ ublk ─▶ braid ─▶ io_uring ─▶ 4 brd   fio ─▶ ublk ─▶ braid: RAM
//!           fio ─▶ ublk ─▶ rublk: null                   fio ─▶ loop ─▶ FUSE ─▶ braid: RAM
//! ```
//!
//! Both arrays have superblocks written by the kernel's mdadm, chunks of 64 KiB, no bitmap and no log. All subjects take
//! turns, and their order changes from round to round. At the end the kernel compares the data of both arrays with
//! their parity.
//!
//! md and brd run in the kernel, in the context of the writing process. So the measurement shows the cost of the way out of
//! the kernel and back. On emulated processors a system call costs ten times as much as elsewhere, and all other work is
//! slower too, but not by the same factor. rublk's null target shows what the way alone takes: it carries out nothing, and
//! moves no data. Without `rublk` in `$PATH` its rows are left out.
//!
//! The guest is booted by `klab`, from `$KLAB` or `$PATH`; without it, or without a kernel that boots, the
//! program says so and ends successfully.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use braid_bench::args::{Args, finish};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, process};

const USAGE: &str = "\
beside-md [--rounds N] [--runtime SECONDS] [--size MIB] [--engine NAME] [--braid PATH]
  --rounds   rounds (4)
  --runtime  whole seconds of each in a round (3)
  --size     MiB of each of the RAM disks (48)
  --engine   the kernel to boot (the first that boots of uml612, qemu)
  --braid    the braid binary (the one beside this program)";

const ENGINES: [&str; 2] = ["uml612", "qemu"];

/// Rows: the name, the subject, its peer, the target.
const ROWS: [(&str, &str, &str, Target); 5] = [
    ("raid5 of 4 brd, write: ublk / md", "raid5", "md", Target::AtLeast(1.2)),
    ("RAM, read: ublk / brd", "ublk-read", "brd-read", Target::AtLeast(0.85)),
    ("RAM, write: ublk / brd", "ublk-write", "brd-write", Target::AtLeast(0.85)),
    ("RAM, read: ublk / FUSE and loop", "ublk-read", "fuse-read", Target::AtLeast(1.3)),
    ("RAM, write: ublk / FUSE and loop", "ublk-write", "fuse-write", Target::AtLeast(1.3)),
];
/// Rows of processor time, where there is rublk: the name, the subject, its peer. The target is a microsecond more.
const TIMES: [(&str, &str, &str); 2] = [
    ("RAM, read: braid; rublk's null", "time-ublk-read", "time-null-read"),
    ("RAM, write: braid; rublk's null", "time-ublk-write", "time-null-write"),
];
/// Rows without a target of their own: the bound of those above.
const BOUNDS: [(&str, &str, &str, Target); 2] = [
    ("rublk's null, read / brd", "null-read", "brd-read", Target::None),
    ("rublk's null, write / brd", "null-write", "brd-write", Target::None),
];
const SCRIPT: &str = include_str!("guest.sh");
/// The time in which a guest must boot and make its arrays, in seconds: emulated processors are slow, and the
/// limit ends guests that hang.
const BOOT: u64 = 240;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--size", "--engine", "--braid"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 4u64)?.max(1);
    let runtime = args.value("--runtime", 3u64)?.max(1);
    let size = args.value("--size", 48u64)?.max(16);
    let braid = args.braid()?;
    let Some(klab) = klab() else {
        println!("beside-md: skipped: there is no klab, neither by $KLAB nor in $PATH");
        return Ok(());
    };
    let engines: Vec<&str> = args.text("--engine").map_or(ENGINES.to_vec(), |name| vec![name]);
    let Some((engine, kernel)) = engines.iter().find_map(|name| Some((*name, boot(&klab, name)?)))
    else {
        println!("beside-md: skipped: no kernel of {} boots in klab", engines.join(", "));
        return Ok(());
    };
    // The guest sees this machine's files, but not those under /tmp.
    let share = tempfile::tempdir().map_err(Error::io("a temporary directory"))?;
    let copied = share.path().join("braid");
    std::fs::copy(&braid, &copied).map_err(Error::io("a copy of braid for the guest"))?;
    let (volume, copied) =
        (braid.with_file_name("braid-volume"), copied.with_file_name("braid-volume"));
    std::fs::copy(volume, copied).map_err(Error::io("a copy of braid-volume for the guest"))?;
    if let Ok(rublk) = process::require("rublk", "rublk") {
        std::fs::copy(rublk, share.path().join("rublk"))
            .map_err(Error::io("a copy of rublk for the guest"))?;
    }
    let script = share.path().join("guest.sh");
    std::fs::write(&script, SCRIPT).map_err(Error::io("a script for the guest"))?;
    let limit = BOOT + rounds * 10 * (runtime + 8);
    let mut command = klab_run(&klab, engine, limit);
    command.arg("--mem").arg(format!("{}M", 12 * size + 1024)).arg("--share").arg(share.path());
    command.args(["--root", "/", "--script"]).arg(script).arg("--");
    command.args([&rounds.to_string(), &runtime.to_string(), &size.to_string()]);
    let output = process::run(&mut command).map_err(|error| {
        let log = std::fs::read_to_string(share.path().join("beside-md.log")).unwrap_or_default();
        let from = log.lines().count().saturating_sub(25);
        let tail: Vec<&str> = log.lines().skip(from).collect();
        Error::Unexpected(format!("{error}\n{}", tail.join("\n")))
    })?;
    print(&output, engine, &kernel)
}

/// By `$KLAB`, else in `$PATH`.
fn klab() -> Option<PathBuf> {
    let named = std::env::var_os("KLAB").filter(|path| !path.is_empty()).map(PathBuf::from);
    match named {
        Some(path) => path.is_file().then_some(path),
        None => process::require("klab", "klab").ok(),
    }
}

fn klab_run(klab: &Path, engine: &str, limit: u64) -> Command {
    let mut command = Command::new(klab);
    command.args(["run", "--engine", engine, "--timeout", &limit.to_string()]);
    command
}

/// The release of the kernel, if it boots.
fn boot(klab: &Path, engine: &str) -> Option<String> {
    let mut command = klab_run(klab, engine, 120);
    let output = process::run(command.args(["--", "uname -r"])).ok()?;
    Some(output.lines().next()?.trim().to_owned())
}

fn print(output: &str, engine: &str, kernel: &str) -> Result<()> {
    let of = |subject: &str| -> Vec<f64> {
        let lines = output.lines().filter_map(|line| line.strip_prefix("@ "));
        let values = lines.filter_map(|line| line.strip_prefix(subject)?.strip_prefix(' '));
        values.filter_map(|value| value.trim().parse().ok()).collect()
    };
    if of("mismatches") != [0.0, 0.0] {
        return Err(Error::Unexpected(format!("parity does not fit the data:\n{output}")));
    }
    let both = |subject: &str, peer: &str| {
        let (ours, theirs) = (of(subject), of(peer));
        if ours.is_empty() || ours.len() != theirs.len() {
            let what = format!("the guest did not measure both {subject} and {peer}:\n{output}");
            return Err(Error::Unexpected(what));
        }
        Ok((ours, theirs))
    };
    let has_null = !of("null-read").is_empty();
    let mut table =
        Table::new(["4 KiB, depth 32", "subject, 1/s", "peer, 1/s", "ratio [95 %]", "target", ""]);
    let bounds = if has_null { &BOUNDS[..] } else { &[] };
    for &(name, subject, peer, target) in ROWS.iter().chain(bounds) {
        let (ours, theirs) = both(subject, peer)?;
        let ratio = Estimate::of_ratio(&ours, &theirs);
        table.row([
            name.to_owned(),
            format!("{:.0}", median(&mut ours.clone())),
            format!("{:.0}", median(&mut theirs.clone())),
            ratio.to_string(),
            target.to_string(),
            target.verdict(ratio),
        ]);
    }
    println!("Linux {kernel} ({engine})\n\n{table}");
    if !has_null {
        println!("without rublk: its rows are left out\n");
        return Ok(());
    }
    let mut table =
        Table::new(["processor time of the server", "µs", "µs", "more, µs [95 %]", "target", ""]);
    for (name, subject, peer) in TIMES {
        let (ours, theirs) = both(subject, peer)?;
        let more: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect();
        let (more, target) = (Estimate::of(&more), Target::AtMost(1.0));
        table.row([
            name.to_owned(),
            format!("{:.1}", median(&mut ours.clone())),
            format!("{:.1}", median(&mut theirs.clone())),
            more.to_string(),
            target.to_string(),
            target.verdict(more),
        ]);
    }
    println!("{table}");
    Ok(())
}
