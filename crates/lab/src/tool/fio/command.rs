//! fio's command lines.

use std::path::{Path, PathBuf};

use super::{NAME, block_size, iodepth, ops, series_ms};
use crate::command::{CommandLine, Step, Target};
use crate::tool::parts::{arg, round_down};
use crate::tool::{Script, TrialSpec};

/// A job called `trial`, its threads counted as one process, and where it works.
fn job(target: &Target, direct: bool) -> CommandLine {
    let command = CommandLine::new(NAME).arg("--name=trial").arg("--thread=1");
    let path = match target {
        Target::Nbd(uri) => return command.arg("--ioengine=nbd").arg(format!("--uri={uri}")),
        Target::Device(path) => path.clone(),
        Target::Folder(folder) => data_file(folder),
    };
    command
        // fio splits a file name at colons, which by-path device names hold.
        .arg(format!("--filename={}", arg(&path).replace(':', "\\:")))
        .arg("--ioengine=libaio")
        .arg(format!("--direct={}", u8::from(direct)))
        .arg("--allow_file_create=0")
}

/// Seconds as fio takes them.
fn milliseconds(seconds: f64) -> String {
    format!("{}ms", (seconds * 1000.0).round())
}

/// What fio draws (offsets, contents, the order of reads and writes) follows the trial's seed.
///
/// Without `--randrepeat=0` fio 3.33 gives its first job a fixed seed, whatever `--randseed` says;
/// without `--randseed` the draws of a trial could not be repeated.
fn with_seed(command: CommandLine, seed: u64) -> CommandLine {
    // fio 3.33 refuses seeds of 2^63 and more.
    command.arg("--randrepeat=0").arg(format!("--randseed={}", seed >> 1))
}

fn data_file(folder: &Path) -> PathBuf {
    folder.join("fio.data")
}

pub(super) fn plan(spec: &TrialSpec<'_>) -> Result<Script, String> {
    let settings = spec.settings;
    let block = block_size(settings);
    let size = round_down(spec.region_bytes, block);
    let random = settings.word("pattern") == "rand";
    // Processes in sequence each stream through a part of their own; at random each has all.
    let parts = if random { 1 } else { u64::from(spec.processes.max(1)) };
    let part = round_down(size / parts, block);
    if part == 0 {
        let bytes = spec.region_bytes;
        return Err(format!("{bytes} bytes do not hold {parts} blocks of {block} bytes"));
    }
    let command = job(spec.target, settings.flag("direct"));
    let command = with_shape(command, spec, part, random);
    let command = with_series(command, spec)?;
    let mut script = Script {
        measured: vec![command.arg("--output-format=json+").arg("--eta=never")],
        ..Script::default()
    };
    if let Target::Folder(folder) = spec.target {
        let path = data_file(folder);
        script.prepare.push(Step::MakeFile { path: path.clone(), bytes: size, seed: spec.seed });
        script.clean_up.push(Step::Remove(path));
    }
    Ok(script)
}

fn with_shape(command: CommandLine, spec: &TrialSpec<'_>, part: u64, random: bool) -> CommandLine {
    let settings = spec.settings;
    let mut command = command
        .arg(format!("--rw={}", rw(random, settings.word("op"))))
        .arg(format!("--bs={}", block_size(settings)))
        .arg(format!("--iodepth={}", iodepth(settings)))
        .arg(format!("--size={part}"));
    if settings.word("op") == "mixed" {
        let reads = settings.count("read_percent").unwrap_or(70);
        command = command.arg(format!("--rwmixread={reads}"));
    }
    if spec.processes > 1 {
        if !random {
            command = command.arg(format!("--offset_increment={part}"));
        }
        command = command.arg(format!("--numjobs={}", spec.processes));
    }
    command = with_seed(command, spec.seed);
    if random {
        command = command.arg("--norandommap=1");
    }
    if ops(settings).write {
        // Else fio writes the few buffers that it has in flight again and again, and a device
        // that compresses finds the block before in the block after.
        command = command.arg("--refill_buffers=1");
        let positive = |name: &str| settings.count(name).filter(|count| *count > 0);
        if let Some(count) = positive("flush_every") {
            command = command.arg(format!("--fsync={count}"));
        }
        if let Some(percent) = positive("compressible") {
            command = command.arg(format!("--buffer_compress_percentage={percent}"));
        }
        command = command.arg("--end_fsync=1");
    }
    command =
        command.arg("--time_based=1").arg(format!("--runtime={}", milliseconds(spec.runtime_s)));
    if spec.ramp_s > 0.0 {
        command = command.arg(format!("--ramp_time={}", milliseconds(spec.ramp_s)));
    }
    command
}

/// Logs of slices. fio keeps the mean or, with `log_max_value`, the maximum of what it sampled in
/// a slice, for all logs alike; with one sample of the rates a slice (`bwavgtime`) the two are
/// the same for rates, and the choice is about latency alone.
fn with_series(command: CommandLine, spec: &TrialSpec<'_>) -> Result<CommandLine, String> {
    let Some(slice_ms) = series_ms(spec.settings) else { return Ok(command) };
    if slice_ms as f64 > spec.runtime_s * 1000.0 {
        return Err(format!("a trial of {} s has no slice of {slice_ms} ms", spec.runtime_s));
    }
    let prefix = arg(&spec.scratch.join(super::series::PREFIX));
    let mut command = command
        .arg(format!("--write_bw_log={prefix}"))
        .arg(format!("--write_iops_log={prefix}"))
        .arg(format!("--write_lat_log={prefix}"))
        .arg(format!("--log_avg_msec={slice_ms}"))
        .arg(format!("--bwavgtime={slice_ms}"))
        .arg(format!("--iopsavgtime={slice_ms}"));
    if spec.settings.word("series_latency") == "max" {
        command = command.arg("--log_max_value=1");
    }
    Ok(command)
}

fn rw(random: bool, op: &str) -> &'static str {
    match (random, op) {
        (false, "write") => "write",
        (false, "mixed") => "rw",
        (false, _) => "read",
        (true, "write") => "randwrite",
        (true, "mixed") => "randrw",
        (true, _) => "randread",
    }
}
