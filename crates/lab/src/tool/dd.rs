//! dd: one stream of blocks for each process, to or from a device or a file.
//!
//! The bytes written are zeros unless `source = "file"`: published tests with `if=/dev/zero` did the same, and
//! a device or file system that compresses or detects zeros is at an advantage.
//! Several dd run at once on parts of their own: in sequence on a device, in files of their own in a folder.
//!
//! The time of one dd is dd's own, which includes the flush at the end (`conv=fdatasync`) but not the start of
//! the program; the time of several is the wall time of all.

use super::parts::{
    arg, check_room, excerpt, malformed, number, own, push, push_processes, round_down, together,
    told,
};
use super::{
    About, Content, Effort, Place, RunOutput, Script, SourceData, Tool, ToolError, TrialSpec,
    Version, Work, Writes,
};
use crate::command::{CommandLine, Step, Target};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

pub(super) struct Dd;

const NAME: &str = "dd";

const ABOUT: About = About {
    name: NAME,
    program: NAME,
    package: "coreutils",
    summary: "one stream of blocks, read or written; it writes zeros unless source = \"file\"",
    parameters: &[
        Parameter::new("op", Kind::Choice(&["read", "write"]), "direction"),
        Parameter::new("bs", Kind::BLOCK, "bytes of a block").or("1M"),
        Parameter::new("size", Kind::bytes_from(512), "bytes of each process, in whole blocks")
            .or("1G")
            .scaling(),
        Parameter::new("direct", Kind::Flag, "past the page cache").or("false"),
        Parameter::new(
            "sync",
            Kind::Choice(&["none", "fdatasync", "fsync", "each"]),
            "what makes writes durable: no call, a call at the end, or each block (O_SYNC); a raw \
             device is written back also without a call, when dd closes it, within its time",
        )
        .or("fdatasync"),
        Parameter::new(
            "source",
            Kind::Choice(&["zero", "file"]),
            "what is written: zeros as published tests did, or a file of incompressible bytes",
        )
        .or("zero"),
    ],
    version_args: &["--version"],
    version: Version::Gnu,
};

fn block(settings: &Settings) -> u64 {
    settings.size("bs").unwrap_or(1 << 20)
}

/// Returns the bytes of each process.
fn bytes(settings: &Settings) -> u64 {
    round_down(settings.size("size").unwrap_or(0), block(settings))
}

fn reads(settings: &Settings) -> bool {
    settings.word("op") == "read"
}

fn source(settings: &Settings) -> Option<SourceData> {
    let wanted = !reads(settings) && settings.word("source") == "file";
    wanted.then(|| SourceData::File(bytes(settings)))
}

impl Tool for Dd {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        if bytes(settings) == 0 {
            let (size, bs) = (settings.size("size").unwrap_or(0), block(settings));
            return Err(format!(
                "size is {} and holds no block of {}; take a larger size or a smaller bs",
                ByteSize(size),
                ByteSize(bs)
            ));
        }
        Ok(())
    }

    fn work(&self, settings: &Settings, processes: u32) -> Work {
        let all = together(bytes(settings), processes);
        let (reads, source) = (reads(settings), source(settings));
        Work {
            place: Place::Either,
            writes: if reads { Writes::Nothing } else { Writes::Bytes(all) },
            content: if reads || source.is_some() { Content::Random } else { Content::Constant },
            reads_raw: reads,
            effort: Effort::Bytes(all),
            source,
            ..Work::default()
        }
    }

    /// Returns the bytes of the files that are read.
    fn lays_out(&self, settings: &Settings, processes: u32, _room_bytes: u64) -> u64 {
        if reads(settings) { together(bytes(settings), processes) } else { 0 }
    }

    fn label(&self, settings: &Settings) -> String {
        let mut words = vec![("size", ", {} each"), ("direct", ", direct")];
        let mut sync = "";
        if reads(settings) {
            // They have no effect, but different settings need different labels.
            words.extend([("sync", ", sync {}"), ("source", ", source {}")]);
        } else {
            sync = match settings.word("sync") {
                // A raw device is still synced when it is closed.
                "none" => ", no sync call",
                "fsync" => ", fsync",
                "each" => ", sync each block",
                _ => ", fdatasync",
            };
        }
        let told = told(settings, ABOUT.parameters, &words);
        let noise = if source(settings).is_some() { ", incompressible" } else { "" };
        format!("dd {} {}{told}{sync}{noise}", settings.word("op"), ByteSize(block(settings)))
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let bytes = bytes(spec.settings);
        check_room(spec, together(bytes, spec.processes))?;
        let mut script = Script::default();
        for process in 0..spec.processes {
            let (path, first_block) = match spec.target {
                Target::Device(path) => {
                    (path.clone(), u64::from(process) * (bytes / block(spec.settings)))
                }
                Target::Folder(folder) => (own(folder, "dd", process), 0),
                Target::Nbd(_) => return Err("dd does not speak NBD".to_owned()),
            };
            let raw = matches!(spec.target, Target::Device(_));
            if !raw && reads(spec.settings) {
                let seed = spec.seed.wrapping_add(u64::from(process));
                script.prepare.push(Step::MakeFile { path: path.clone(), bytes, seed });
            }
            script.measured.push(command(spec, &arg(&path), first_block, raw));
            if !raw {
                script.clean_up.push(Step::Remove(path));
            }
        }
        if let Some(data) = source(spec.settings) {
            script.warm.push(Step::ReadAll(data.path_in(spec.sources)));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let wanted = bytes(spec.settings);
        let mut times = Vec::new();
        for process in &run.processes {
            let (copied, seconds) = parse_copied(&process.stderr)?;
            if copied != wanted {
                let reason = format!("{copied} bytes of {wanted} were copied");
                return Err(ToolError::IoErrors { tool: NAME, reason });
            }
            times.push(seconds);
        }
        let seconds = match times.as_slice() {
            [] => return Err(ToolError::Nothing { tool: NAME }),
            [own] => *own,
            _ => run.wall_s,
        };
        let all = wanted as f64 * times.len() as f64;
        let moved = if reads(spec.settings) { Metric::BytesRead } else { Metric::BytesWritten };
        let mut measured = Measured::default();
        push(&mut measured, NAME, Metric::Throughput, all / seconds)?;
        push(&mut measured, NAME, Metric::Seconds, seconds)?;
        push(&mut measured, NAME, moved, all)?;
        push_processes(&mut measured, &times);
        Ok(measured)
    }
}

fn command(spec: &TrialSpec<'_>, path: &str, first_block: u64, raw: bool) -> CommandLine {
    let settings = spec.settings;
    let reads = reads(settings);
    let noise = source(settings).map(|data| arg(&data.path_in(spec.sources)));
    let (from, to) = match reads {
        true => (path, "/dev/null"),
        false => (noise.as_deref().unwrap_or("/dev/zero"), path),
    };
    let block = block(settings);
    let mut dd = CommandLine::new(NAME)
        .args([format!("if={from}"), format!("of={to}"), format!("bs={block}")])
        .arg(format!("count={}", bytes(settings) / block));
    if raw {
        dd = dd.arg(format!("{}={first_block}", if reads { "skip" } else { "seek" }));
    }
    let sync = if reads { "none" } else { settings.word("sync") };
    let conversions = [
        // Otherwise dd would truncate a subject that is a file.
        ("notrunc", raw && !reads),
        ("nocreat", raw && !reads),
        (sync, matches!(sync, "fdatasync" | "fsync")),
    ];
    let flags = [("direct", settings.flag("direct")), ("sync", sync == "each")];
    let option = |name: &str, words: &[(&str, bool)]| {
        let words: Vec<&str> = words.iter().filter(|word| word.1).map(|word| word.0).collect();
        (!words.is_empty()).then(|| format!("{name}={}", words.join(",")))
    };
    dd.args(option("conv", &conversions))
        .args(option(if reads { "iflag" } else { "oflag" }, &flags))
}

/// Returns bytes and seconds of the last line of dd's three: `2097152 bytes (2.1 MB, 2.0 MiB) copied, 0.0056 s,
/// 372 MB/s`; small amounts have no parentheses, short times an exponent.
fn parse_copied(stderr: &str) -> Result<(u64, f64), ToolError> {
    let not_dd =
        || malformed(NAME, format!("no \"bytes copied\" in English in {}", excerpt(stderr)));
    if let Some(line) = stderr.lines().find(|line| line.starts_with("dd: ")) {
        return Err(ToolError::IoErrors { tool: NAME, reason: excerpt(line) });
    }
    let line = stderr.lines().find(|line| line.contains(" copied, ")).ok_or_else(not_dd)?;
    let (amount, time) = line.split_once(" copied, ").ok_or_else(not_dd)?;
    let (bytes, unit) = amount.split_once(' ').ok_or_else(not_dd)?;
    let seconds = time.split_once(" s,").and_then(|(seconds, _)| number(seconds));
    match (bytes.parse(), seconds) {
        (Ok(bytes), Some(seconds)) if unit.starts_with("byte") && seconds >= 0.0 => {
            Ok((bytes, seconds))
        }
        _ => Err(not_dd()),
    }
}

#[cfg(test)]
mod tests;
