//! fio's command lines.

use std::path::{Path, PathBuf};

use super::{NAME, block_size, iodepth, ops, positive, read_percent, series_ms};
use crate::command::{CommandLine, Step, Target};
use crate::tool::parts::{arg, round_down};
use crate::tool::{Script, TrialSpec};

/// Options for the output of measurements.
pub(super) const OUTPUT: [&str; 2] = ["--output-format=json+", "--eta=never"];

/// Returns the beginning of a section: its threads counted as one process, and its target.
pub(super) fn job(name: &str, target: &Target) -> CommandLine {
    let command = CommandLine::new(NAME).arg(format!("--name={name}")).arg("--thread=1");
    let path = match target {
        Target::Nbd(uri) => return command.arg("--ioengine=nbd").arg(format!("--uri={uri}")),
        Target::Device(path) => path.clone(),
        Target::Folder(folder) => data_file(folder),
    };
    command
        // fio splits a file name at colons, which by-path device names contain.
        .arg(format!("--filename={}", arg(&path).replace(':', "\\:")))
        .arg("--ioengine=libaio")
        .arg("--allow_file_create=0")
}

/// Returns fio's file in a folder.
pub(super) fn file(target: &Target) -> Option<PathBuf> {
    match target {
        Target::Folder(folder) => Some(data_file(folder)),
        Target::Device(_) | Target::Nbd(_) => None,
    }
}

fn data_file(folder: &Path) -> PathBuf {
    folder.join("fio.data")
}

/// Returns the options for fio's draws, and for its time.
pub(super) fn seed_and_time(spec: &TrialSpec<'_>) -> Vec<String> {
    let in_ms = |option: &str, seconds: f64| format!("--{option}={}ms", (seconds * 1000.0).round());
    let mut all = vec![
        // fio's draws (offsets, contents, the order of reads and writes) follow the trial's seed. Without
        // `--randrepeat=0` fio 3.33 gives its first job a fixed seed and ignores `--randseed`; without
        // `--randseed` the draws of a trial could not be repeated. It refuses seeds of 2^63 and more.
        "--randrepeat=0".to_owned(),
        format!("--randseed={}", spec.seed >> 1),
        "--time_based=1".to_owned(),
        in_ms("runtime", spec.runtime_s),
    ];
    if spec.ramp_s > 0.0 {
        all.push(in_ms("ramp_time", spec.ramp_s));
    }
    all
}

pub(super) fn plan(spec: &TrialSpec<'_>) -> Result<Script, String> {
    let settings = spec.settings;
    let block = block_size(settings);
    let size = round_down(spec.region_bytes, block);
    let random = settings.word("pattern") == "rand";
    // Sequential processes each stream through a part of their own; random ones share the whole.
    let parts = if random { 1 } else { u64::from(spec.processes.max(1)) };
    let part = round_down(size / parts, block);
    if part == 0 {
        let bytes = spec.region_bytes;
        return Err(format!("{bytes} bytes do not hold {parts} blocks of {block} bytes"));
    }
    let command = job("trial", spec.target)
        .args(shape(spec, part, random))
        .args(seed_and_time(spec))
        .args(series(spec)?)
        .args(OUTPUT);
    let mut script = Script { measured: vec![command], ..Script::default() };
    if let Some(path) = file(spec.target) {
        script.prepare.push(Step::MakeFile { path: path.clone(), bytes: size, seed: spec.seed });
        script.clean_up.push(Step::Remove(path));
    }
    Ok(script)
}

/// Returns the options for the workload and its time.
fn shape(spec: &TrialSpec<'_>, part: u64, random: bool) -> Vec<String> {
    let TrialSpec { settings, processes, .. } = *spec;
    let op = settings.word("op");
    let write = ops(settings).write;
    let rw = match (random, op) {
        (false, "write") => "write",
        (false, "mixed") => "rw",
        (false, _) => "read",
        (true, "write") => "randwrite",
        (true, "mixed") => "randrw",
        (true, _) => "randread",
    };
    let word = |option: &str| Some(option.to_owned());
    let set = |option: &str, value: u64| Some(format!("{option}={value}"));
    [
        // NBD never uses the page cache.
        set("--direct", settings.flag("direct").into())
            .filter(|_| !matches!(spec.target, Target::Nbd(_))),
        word(&format!("--rw={rw}")),
        set("--bs", block_size(settings)),
        set("--iodepth", iodepth(settings)),
        set("--size", part),
        set("--rwmixread", read_percent(settings)).filter(|_| op == "mixed"),
        set("--offset_increment", part).filter(|_| processes > 1 && !random),
        set("--numjobs", processes.into()).filter(|_| processes > 1),
        word("--norandommap=1").filter(|_| random),
        // Otherwise fio writes the few buffers in flight again and again, and a device that compresses finds
        // each block in the next one.
        word("--refill_buffers=1").filter(|_| write),
        positive(settings, "flush_every").filter(|_| write).and_then(|n| set("--fsync", n)),
        positive(settings, "compressible")
            .filter(|_| write)
            .and_then(|percent| set("--buffer_compress_percentage", percent)),
        word("--end_fsync=1").filter(|_| write),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the options for logs of slices. With `log_max_value` fio keeps the longest latency of a slice; of
/// the rates, of which there is one sample per slice (`bwavgtime`), that is also the mean.
fn series(spec: &TrialSpec<'_>) -> Result<Vec<String>, String> {
    let Some(slice_ms) = series_ms(spec.settings) else { return Ok(Vec::new()) };
    if slice_ms as f64 > spec.runtime_s * 1000.0 {
        return Err(format!("a trial of {} s has no slice of {slice_ms} ms", spec.runtime_s));
    }
    let prefix = arg(&spec.scratch.join(super::series::PREFIX));
    let logs = ["write_bw_log", "write_iops_log", "write_lat_log"];
    let times = ["log_avg_msec", "bwavgtime", "iopsavgtime"];
    Ok(logs
        .map(|log| format!("--{log}={prefix}"))
        .into_iter()
        .chain(times.map(|time| format!("--{time}={slice_ms}")))
        .chain(["--log_max_value=1".to_owned()])
        .collect())
}
