//! `command`: any command, timed in a folder on the subject's file system.
//!
//! ```text
//! DIR/run1/   prepare ─┐
//! DIR/run2/   prepare ─┴ drop caches ─ command, all at once ─ syncfs │ remove
//! ```
//!
//! bash runs it with `-e -o pipefail`: a command that fails in part would be the fastest of all, so it is a
//! failed trial. Remaining processes are ended with the trial. Deliberately absent: raw devices, because a
//! command's writes to one cannot be guarded; and rates, because only the command knows its bytes.

use std::path::Path;

use braid_shell::shell_path;

use super::parts::{arg, folder_of, own, push, push_processes, told};
use super::{
    About, Content, Effort, RunOutput, Script, Tool, ToolError, TrialSpec, Version, Work, Writes,
};
use crate::command::{CommandLine, Step};
use crate::metric::{Measured, Metric};
use crate::settings::{Kind, Parameter, Settings};

pub(super) struct Command;

const NAME: &str = "command";

const ABOUT: About = About {
    name: NAME,
    program: "bash",
    package: "bash",
    summary: "any command of bash's, in a folder on the subject, by its time",
    parameters: &[
        Parameter::new(
            "command",
            Kind::Text,
            "the timed command; {folder}, {process} and {seed} stand for its own folder (where it \
             starts), its number from 1 and the trial's seed",
        ),
        Parameter::new(
            "prepare",
            Kind::Text,
            "an untimed command in the same folder, before the page cache is dropped",
        ),
        Parameter::new("name", Kind::Text, "its name in reports, instead of the command"),
        Parameter::new(
            "takes_s",
            Kind::count(1, 86_400),
            "approximate seconds; it is ended after ten times as long and two minutes",
        )
        .or("60"),
        super::copy::SYNC,
    ],
    version_args: &["--version"],
    version: Version::After("GNU bash, version "),
};

/// Returns a command of the campaign for one process, with its placeholders filled in.
fn in_bash(text: &str, spec: &TrialSpec<'_>, folder: &Path, process: u32) -> CommandLine {
    let text = text
        .replace("{folder}", &shell_path(folder))
        .replace("{process}", &(process + 1).to_string())
        .replace("{seed}", &spec.seed.to_string());
    CommandLine::new(ABOUT.program)
        .args(["-e", "-o", "pipefail", "-c"])
        .arg(text)
        .in_folder(arg(folder))
}

impl Tool for Command {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn check(&self, settings: &Settings, _processes: u32) -> Result<(), String> {
        if settings.word("command").trim().is_empty() {
            return Err(
                "command is missing: name the timed command, such as \"tar -xf /srv/a.tar\""
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn work(&self, settings: &Settings, _processes: u32) -> Work {
        Work {
            // The writes are unknown; a command that only reads had to write that data before.
            writes: Writes::UntilTime,
            content: Content::Random,
            effort: Effort::Seconds(settings.count("takes_s").unwrap_or(60) as f64),
            headline: Metric::Seconds,
            ..Work::default()
        }
    }

    fn label(&self, settings: &Settings) -> String {
        let mut words = vec![("takes_s", ", about {} s"), ("sync", ", no sync")];
        let name = match settings.word("name") {
            "" => {
                words.insert(0, ("prepare", ", after {}"));
                format!("{NAME} {}", settings.word("command"))
            }
            name => name.to_owned(),
        };
        // One line of a table, however it is written in the campaign.
        let words = format!("{name}{}", told(settings, ABOUT.parameters, &words));
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn plan(&self, spec: &TrialSpec<'_>) -> Result<Script, String> {
        let folder = folder_of(spec)?;
        self.check(spec.settings, spec.processes)?;
        let mut script = Script { sync: spec.settings.flag("sync"), ..Script::default() };
        for process in 0..spec.processes {
            let home = own(folder, "run", process);
            script.prepare.push(Step::MakeFolder(home.clone()));
            let before = spec.settings.word("prepare");
            if !before.trim().is_empty() {
                script.prepare.push(Step::Run(in_bash(before, spec, &home, process)));
            }
            let command = spec.settings.word("command");
            script.measured.push(in_bash(command, spec, &home, process));
            script.clean_up.push(Step::Remove(home));
        }
        Ok(script)
    }

    fn parse(&self, _spec: &TrialSpec<'_>, run: &RunOutput) -> Result<Measured, ToolError> {
        if run.processes.is_empty() {
            return Err(ToolError::Nothing { tool: NAME });
        }
        let mut measured = Measured::default();
        push(&mut measured, NAME, Metric::Seconds, run.wall_s)?;
        let times: Vec<f64> = run.processes.iter().map(|process| process.wall_s).collect();
        push_processes(&mut measured, &times);
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::tests::support::{
        commands, device, folder, listed, output, run_times, settings, trial,
    };

    #[test]
    fn each_process_runs_in_a_folder_of_its_own_and_its_places_are_filled_in() {
        let text = "command = \"tar -C {folder} -xf /srv/{process}.tar | tee ${a}{b,c} {seed}\"\n\
                    prepare = \"touch {process}\"";
        let (settings, target) = (settings(&Command, text), folder());
        let script = Command.plan(&trial(&settings, &target, 2)).unwrap();
        assert_eq!(
            commands(&script),
            "(cd /mnt/t/run1 && bash -e -o pipefail -c 'tar -C /mnt/t/run1 -xf /srv/1.tar | tee \
             ${a}{b,c} 7')\n\
             (cd /mnt/t/run2 && bash -e -o pipefail -c 'tar -C /mnt/t/run2 -xf /srv/2.tar | tee \
             ${a}{b,c} 7')"
        );
        let steps = |steps: &[Step]| steps.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            steps(&script.prepare)[..2],
            ["mkdir /mnt/t/run1", "(cd /mnt/t/run1 && bash -e -o pipefail -c 'touch 1')"]
        );
        assert_eq!(steps(&script.clean_up), ["rm -r /mnt/t/run1", "rm -r /mnt/t/run2"]);
        assert!(script.sync);
        let refused = Command.plan(&trial(&settings, &device(), 1)).unwrap_err();
        assert!(refused.contains("set filesystem"), "{refused}");
    }

    #[test]
    fn its_name_stands_for_the_command_and_a_command_must_be_there() {
        let label = |text: &str| Command.label(&settings(&Command, text));
        assert_eq!(label("command = \"\"\"tar\n  -x \"\"\""), "command tar -x");
        assert_eq!(
            label("command = \"tar -x\"\nname = \"untar\"\nprepare = \"date\"\nsync = false"),
            "untar, no sync"
        );
        for text in ["", "command = \" \""] {
            let refused = Command.check(&settings(&Command, text), 1).unwrap_err();
            assert!(refused.contains("command is missing"), "{refused}");
        }
    }

    #[test]
    fn its_number_is_the_time_of_the_slowest_process() {
        let (settings, target) = (settings(&Command, "command = \"true\""), folder());
        let measured =
            Command.parse(&trial(&settings, &target, 2), &run_times(&[2.0, 4.0])).unwrap();
        assert_eq!(listed(&measured)[..2], [("seconds", 4.0), ("spread_of_processes", 2.0)]);
        let version = "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\nCopyright";
        assert_eq!(Command.parse_version(&output(version)).unwrap(), "bash-5.2.15(1)-release");
    }
}
