//! bonnie++ 2: a file written and read in three ways, seeks, and many small files.
//!
//! Each process is a bonnie++ in a folder of its own. The rates of several are added, of waits the longest
//! counts, and a phase that one of them could not time has no number.
//!
//! Traps of bonnie++ 2.00: a phase of less than half a second is `+++++`; per-character phases cover only a
//! part of the file, unlike bonnie++ 1, so total times of the two do not compare; a size below twice the memory
//! is refused unless a smaller memory is given (`-r`), as here; as root it needs `-u`.

use super::parts::{arg, check_room, folder_of, own, push, push_processes, together, told};
use super::{
    About, Content, Effort, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work, Writes,
};
use crate::command::{CommandLine, Step};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};
use braid_stack::ByteSize;

mod output;

pub(super) struct Bonnie;

const NAME: &str = "bonnie++";

const MIB: u64 = 1 << 20;

const ABOUT: About = About {
    name: "bonnie",
    program: NAME,
    package: NAME,
    summary: "a large file written, rewritten, read and sought in, then many small ones (bonnie++)",
    parameters: &[
        Parameter::new("size", Kind::bytes_from(MIB), "bytes of the file of each process")
            .or("1G")
            .scaling(),
        Parameter::new(
            "chunk",
            Kind::Size { min: 512, max: MIB, unit: 512 },
            "bytes of a request of the block phases",
        )
        .or("8K"),
        // It scales with the size that it limits.
        Parameter::new(
            "ram",
            Kind::Size { min: 0, max: 1 << 50, unit: MIB },
            "memory size for bonnie++, at most half the size; unset: half the size",
        )
        .scaling(),
        Parameter::new(
            "files",
            Kind::count(0, 1 << 16),
            "small files of each process, in units of 1024; 0: no phases of files",
        )
        .or("16")
        .scaling(),
        Parameter::new("per_char", Kind::Flag, "also the phases per character").or("true"),
    ],
    // Without a folder it prints its usage, with the version, and fails.
    version_args: &[],
    version: Version::After("Version: "),
};

fn size(settings: &Settings) -> u64 {
    settings.size("size").unwrap_or(0)
}

fn ram(settings: &Settings) -> u64 {
    settings.size("ram").unwrap_or(size(settings) / 2)
}

impl Tool for Bonnie {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        let (ram, size) = (ram(settings), size(settings));
        if ram > size / 2 {
            return Err(format!(
                "ram is {} and size {}, but bonnie++ wants a size of at least twice ram; raise \
                 size or lower ram",
                ByteSize(ram),
                ByteSize(size)
            ));
        }
        Ok(())
    }

    fn work(&self, settings: &Settings, processes: u32) -> Work {
        let all = |times: u64| together(size(settings).saturating_mul(times), processes);
        Work {
            // Per character (a part), in blocks, and again in the rewrite phase; the small files are empty.
            writes: Writes::Bytes(all(3)),
            // It writes the same few bytes over and over.
            content: Content::Constant,
            // Written, read and written, read.
            effort: Effort::Bytes(all(4)),
            headline: Metric::Seconds,
            ..Work::default()
        }
    }

    fn label(&self, settings: &Settings) -> String {
        let words = [
            ("chunk", ", chunk {}"),
            ("files", ", {}x1024 files"),
            ("ram", ", ram {}"),
            ("per_char", ", blocks only"),
        ];
        let told = told(settings, ABOUT.parameters, &words);
        format!("bonnie++ {}{told}", ByteSize(size(settings)))
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        check_room(spec, together(size(spec.settings), spec.processes))?;
        let mut script = Script::default();
        for process in 0..spec.processes {
            let own = own(folder, "bonnie", process);
            script.prepare.push(Step::MakeFolder(own.clone()));
            script.measured.push(command(spec, &arg(&own), process));
            script.clean_up.push(Step::Remove(own));
        }
        Ok(script)
    }

    fn parse(&self, _spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        let reports = run.processes.iter().map(|process| output::parse_csv(&process.stdout));
        let reports = reports.collect::<Result<Vec<_>, _>>()?;
        if reports.is_empty() {
            return Err(ToolError::Nothing { tool: NAME });
        }
        let mut measured = Measured::default();
        push(&mut measured, NAME, Metric::Seconds, run.wall_s)?;
        for (metric, value) in output::merge(&reports) {
            push(&mut measured, NAME, metric, value)?;
        }
        let times: Vec<f64> = run.processes.iter().map(|process| process.wall_s).collect();
        push_processes(&mut measured, &times);
        Ok(measured)
    }
}

fn command(spec: &TrialSpec<'_>, folder: &str, process: u32) -> CommandLine {
    let settings = spec.settings;
    let chunk = settings.size("chunk").unwrap_or(8 << 10);
    let seed = spec.seed.wrapping_add(u64::from(process)) % (1 << 31);
    CommandLine::new(NAME)
        .args(["-d", folder])
        .args(["-s", &format!("{}:{chunk}", size(settings) / MIB)])
        .args(["-r", &(ram(settings) / MIB).to_string()])
        .args(["-n", &settings.count("files").unwrap_or(16).to_string()])
        .args(["-u", "root"])
        .args(["-z", &seed.to_string()])
        .args(["-m", "lab", "-q"])
        .args((!settings.flag("per_char")).then_some("-f"))
}

#[cfg(test)]
mod tests;
