//! dd: one stream of blocks for each process, to or from a device or a file.
//!
//! The bytes written are zeros unless `source = "file"`: that is what published tests with
//! `if=/dev/zero` did, and a device or file system that compresses or looks for zeros will shine.
//! Several dd run at once on parts of their own: one behind the other on a device, files of their
//! own in a folder.
//!
//! The time of one dd is dd's own, which holds the flush at the end (`conv=fdatasync`) but not the
//! start of the program; the time of several is the wall time of all.

use super::parts::{
    BLOCK, arg, bytes_from, check_room, check_set, excerpt, gnu_version, malformed, number, or,
    own, parameter, push, push_processes, round_down, scaling, together, unusual,
};
use super::{
    Content, Effort, Place, RunOutput, Script, SourceData, Tool, ToolError, TrialSpec, Writes,
};
use crate::command::{CommandLine, Step, Target, ToolOutput};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

pub(super) struct Dd;

const NAME: &str = "dd";
const OPS: &[&str] = &["read", "write"];

const PARAMETERS: &[Parameter] = &[
    parameter("op", Kind::Choice(OPS), "direction"),
    or("1M", parameter("bs", BLOCK, "bytes of a block")),
    or("1G", scaling(parameter("size", bytes_from(512), "bytes of each process, in whole blocks"))),
    or("false", parameter("direct", Kind::Flag, "past the page cache")),
    or(
        "fdatasync",
        parameter(
            "sync",
            Kind::Choice(&["none", "fdatasync", "fsync", "each"]),
            "what makes writes durable: no call, a call at the end, or each block (O_SYNC); a raw \
             device is written back also without a call, when dd closes it, within its time",
        ),
    ),
    or(
        "zero",
        parameter(
            "source",
            Kind::Choice(&["zero", "file"]),
            "what is written: zeros as published tests did, or a file of incompressible bytes",
        ),
    ),
];

fn block(settings: &Settings) -> u64 {
    settings.size("bs").unwrap_or(1 << 20)
}

/// Bytes of each process.
fn bytes(settings: &Settings) -> u64 {
    round_down(settings.size("size").unwrap_or(0), block(settings))
}

fn reads(settings: &Settings) -> bool {
    settings.word("op") == "read"
}

fn source(settings: &Settings) -> Option<SourceData> {
    let wanted = !reads(settings) && settings.word("source") == "file";
    wanted.then(|| super::source::random_file(bytes(settings)))
}

impl Tool for Dd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn package(&self) -> &'static str {
        "coreutils"
    }

    fn about(&self) -> &'static str {
        "one stream of blocks, read or written; it writes zeros unless source = \"file\""
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn version_command(&self) -> CommandLine {
        CommandLine::new(NAME).arg("--version")
    }

    fn parse_version(&self, output: &ToolOutput) -> Result<String, ToolError> {
        gnu_version(NAME, output)
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        check_set(settings, "op", OPS)?;
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

    fn place(&self, _settings: &Settings) -> Place {
        Place::Either { nbd: false }
    }

    fn writes(&self, settings: &Settings, processes: u32) -> Writes {
        if reads(settings) {
            return Writes::Nothing;
        }
        Writes::Bytes(together(bytes(settings), processes))
    }

    fn lays_out(&self, settings: &Settings, processes: u32, _room_bytes: u64) -> u64 {
        if reads(settings) { together(bytes(settings), processes) } else { 0 }
    }

    fn reads_raw(&self, settings: &Settings) -> bool {
        reads(settings)
    }

    fn content(&self, settings: &Settings) -> Content {
        if reads(settings) || source(settings).is_some() {
            return Content::Random;
        }
        Content::Constant
    }

    fn effort(&self, settings: &Settings, processes: u32) -> Effort {
        Effort::Bytes(together(bytes(settings), processes))
    }

    fn label(&self, settings: &Settings) -> String {
        let mut label = format!("dd {} {}", settings.word("op"), ByteSize(block(settings)));
        if let Some(size) = unusual(settings, PARAMETERS, "size") {
            label.push_str(&format!(", {size} each"));
        }
        if settings.flag("direct") {
            label.push_str(", direct");
        }
        if reads(settings) {
            // They have no effect, but settings that differ have labels that differ.
            for name in ["sync", "source"] {
                if let Some(value) = unusual(settings, PARAMETERS, name) {
                    label.push_str(&format!(", {name} {value}"));
                }
            }
        } else {
            label.push_str(match settings.word("sync") {
                // A raw device is synced all the same, when it is closed.
                "none" => ", no sync call",
                "fsync" => ", fsync",
                "each" => ", sync each block",
                _ => ", fdatasync",
            });
            if settings.word("source") == "file" {
                label.push_str(", incompressible");
            }
        }
        label
    }

    fn headline(&self, _settings: &Settings) -> Metric {
        Metric::Throughput
    }

    fn sources(&self, settings: &Settings) -> Vec<SourceData> {
        source(settings).into_iter().collect()
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
            script.warm.push(Step::ReadAll(super::source::path_of(spec.sources, &data)));
        }
        Ok(script)
    }

    fn parse(&self, spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let wanted = bytes(spec.settings);
        let mut times = Vec::new();
        for process in &run.processes {
            let copied = parse_copied(&process.stderr)?;
            if copied.bytes != wanted {
                let reason = format!("{} bytes of {wanted} were copied", copied.bytes);
                return Err(ToolError::IoErrors { tool: NAME, reason });
            }
            times.push(copied.seconds);
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
    let blocks = bytes(settings) / block(settings);
    let dd = CommandLine::new(NAME);
    let direct = settings.flag("direct");
    if reads(settings) {
        let dd = sized(dd.arg(format!("if={path}")).arg("of=/dev/null"), settings, blocks);
        let dd = if raw { dd.arg(format!("skip={first_block}")) } else { dd };
        return if direct { dd.arg("iflag=direct") } else { dd };
    }
    let noise = source(settings).map(|data| super::source::path_of(spec.sources, &data));
    let input = noise.map_or_else(|| "/dev/zero".to_owned(), |path| arg(&path));
    let dd = sized(dd.arg(format!("if={input}")).arg(format!("of={path}")), settings, blocks);
    let mut dd = if raw { dd.arg(format!("seek={first_block}")) } else { dd };
    let sync = settings.word("sync");
    // Without notrunc dd would cut a subject that is a file.
    let mut conversions = if raw { vec!["notrunc", "nocreat"] } else { Vec::new() };
    if matches!(sync, "fdatasync" | "fsync") {
        conversions.push(sync);
    }
    if !conversions.is_empty() {
        dd = dd.arg(format!("conv={}", conversions.join(",")));
    }
    match (direct, sync == "each") {
        (true, true) => dd.arg("oflag=direct,sync"),
        (true, false) => dd.arg("oflag=direct"),
        (false, true) => dd.arg("oflag=sync"),
        (false, false) => dd,
    }
}

fn sized(dd: CommandLine, settings: &Settings, blocks: u64) -> CommandLine {
    dd.arg(format!("bs={}", block(settings))).arg(format!("count={blocks}"))
}

#[derive(Debug, PartialEq)]
struct Copied {
    bytes: u64,
    seconds: f64,
}

/// The last line of dd's three: `2097152 bytes (2.1 MB, 2.0 MiB) copied, 0.0056 s, 372 MB/s`;
/// small amounts have no parentheses, short times an exponent.
fn parse_copied(stderr: &str) -> Result<Copied, ToolError> {
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
            Ok(Copied { bytes, seconds })
        }
        _ => Err(not_dd()),
    }
}

#[cfg(test)]
mod tests;
