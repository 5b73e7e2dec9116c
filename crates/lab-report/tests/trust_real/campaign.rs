//! Rules about a campaign as a whole: failures, sessions, repetitions, processes. Whole campaigns are run by
//! the runner in a folder.

use std::fs;
use std::path::Path;

use braid_lab::command::CommandLine;
use braid_lab::evidence::Roots;
use braid_lab::matrix::Planned;
use braid_lab::matrix::parse_campaign;
use braid_lab::runner::{Tally, run_campaign};
use braid_lab::store::{Results, Store};
use braid_lab_report::trust::{Finding, Standing, judge};

use braid_lab::{LabOptions, StopFlag};

use crate::machine::alone;
use crate::meddler::Meddler;

/// A campaign of one job, with its results in its own folder.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
    text: String,
}

impl Lab {
    /// A campaign on a folder.
    fn new(repetitions: u32, job: &str) -> Self {
        let mut lab = Self::on("", repetitions, job);
        let folder = lab.path().join("subject");
        fs::create_dir(&folder).unwrap();
        let directory = format!("baseline = true\ndirectory = {folder:?}\n");
        lab.text = lab.text.replace("baseline = true\n", &directory);
        lab
    }

    /// A campaign on a subject, in the notation of a campaign file.
    pub(crate) fn on(subject: &str, repetitions: u32, job: &str) -> Self {
        let text = format!(
            "name = \"real\"\nrepetitions = {repetitions}\nruntime_s = 1\nregion = \"16M\"\n\
             [[subject]]\nname = \"it\"\nbaseline = true\n{subject}\n\
             [[job]]\ndrop_caches = false\n{job}\n"
        );
        Self { dir: tempfile::tempdir().unwrap(), text }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Runs the missing trials; the facts of the machine are read below `sys` instead of `/sys`.
    pub(crate) fn run(
        &self,
        sys: &Path,
        meddling: impl FnMut(usize, &mut Vec<CommandLine>, &StopFlag),
    ) -> Tally {
        let campaign = parse_campaign(&self.text, "real.toml").unwrap();
        let mut options = LabOptions::new(self.path().join("results")).unwrap();
        options.quiet = true;
        if let Some(braid) = std::env::var_os("BRAID") {
            options.braid_binary = braid.into();
        }
        let roots = Roots { sys: sys.to_path_buf(), ..Roots::default() };
        run_campaign(&campaign, &options, &mut Meddler::new(roots, meddling)).unwrap()
    }

    pub(crate) fn results(&self) -> Results {
        Store::open(&self.path().join("results")).unwrap().results().unwrap()
    }

    pub(crate) fn found(&self, rule: &str) -> Option<Finding> {
        let results = self.results();
        let workloads = Planned::of(&results.campaign).workloads;
        let judgement = judge(&results, &workloads);
        let verdict = judgement.of("it", &workloads[0].label()).unwrap();
        for finding in &verdict.findings {
            println!("{} {}: {}", finding.standing, finding.rule, finding.why);
        }
        verdict.findings.iter().find(|finding| finding.rule == rule).cloned()
    }
}

pub(crate) fn leave(_trial: usize, _commands: &mut Vec<CommandLine>, _stop: &StopFlag) {}

const SYS: &str = "/sys";

/// The archive no longer exists when the second trial unpacks it.
#[test]
fn a_trial_that_fails() {
    let _turn = alone();
    let lab = Lab::new(2, "tool = \"untar\"\nsize = \"1M\"");
    let tally = lab.run(Path::new(SYS), |trial, commands, _| {
        let is_file = |arg: &&mut String| arg.starts_with("--file=");
        if let Some(file) = commands[0].args.iter_mut().find(is_file).filter(|_| trial == 2) {
            *file = "--file=/nonexistent.tar".to_owned();
        }
    });
    assert_eq!((tally.measured, tally.failed), (1, 1), "{tally:?}");
    let finding = lab.found("failed-trials").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert!(finding.why.starts_with("1 of 2 repetitions failed"), "{finding:?}");
    assert!(finding.why.contains("tar"), "{finding:?}");
    // The archive is restored and the campaign run again: only the failed trial is repeated.
    let tally = lab.run(Path::new(SYS), leave);
    assert_eq!((tally.skipped, tally.measured), (1, 1), "{tally:?}");
    assert_eq!(lab.found("failed-trials"), None);
}

/// The campaign is stopped after the first trial, and continues with another governor.
#[test]
fn a_campaign_that_is_resumed_on_a_changed_machine() {
    let _turn = alone();
    let sys = tempfile::tempdir().unwrap();
    let policy = sys.path().join("devices/system/cpu/cpu0/cpufreq");
    fs::create_dir_all(&policy).unwrap();
    let governor = |name: &str| fs::write(policy.join("scaling_governor"), name).unwrap();
    let found = |second: &str| {
        let lab = Lab::new(2, "tool = \"cp-read\"\nsize = \"4M\"");
        governor("performance\n");
        let tally = lab.run(sys.path(), |trial, commands, stop| {
            if trial == 2 {
                stop.set();
                // The job does not end before the stop is noticed.
                commands[0] = CommandLine::new("sleep").arg("600");
            }
        });
        assert!(tally.stopped && tally.measured == 1, "{tally:?}");
        // Sessions are distinguished by their start in seconds.
        let began = lab.results().sessions[0].started_unix_s;
        crate::machine::wait_for("the next second", || {
            let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
            (now > began + 1).then_some(())
        });
        governor(second);
        assert_eq!(lab.run(sys.path(), leave).measured, 1);
        assert_eq!(lab.results().sessions.len(), 2);
        lab.found("mixed-environment")
    };
    let finding = found("powersave\n").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert!(finding.why.contains("governor: performance and powersave"), "{finding:?}");
    assert_eq!(found("performance\n"), None);
}

/// The second copy starts when the first is complete, and after three times its duration.
#[test]
fn a_process_that_is_held_up() {
    let _turn = alone();
    let lab = Lab::new(1, "tool = \"cp-cached\"\nsize = \"4M\"\nprocesses = 2");
    let tally = lab.run(Path::new(SYS), |_, commands, _| hold_second(commands));
    assert_eq!(tally.measured, 1, "{tally:?}");
    let finding = lab.found("processes-unfair").unwrap();
    assert_eq!(finding.standing, Standing::Suspect, "{finding:?}");
    assert!(finding.why.contains("the slowest of 2 processes took"), "{finding:?}");
}

/// Makes the shell start the second program late. One second is added, in which a busy machine notices the end
/// of the first program.
fn hold_second(commands: &mut [CommandLine]) {
    let script = "s=$(date +%s%N)
        until cmp -s \"$1\" \"$2\"; do :; done
        e=$(date +%s%N)
        until [ $(date +%s%N) -ge $((s + 3 * (e - s) + 1000000000)) ]; do :; done
        shift 2; exec \"$@\"";
    let (first, second) = (&commands[0].args, &commands[1]);
    let mut held = CommandLine::new("sh").arg("-c").arg(script).arg("sh");
    // The last two words are the first program's source and copy.
    for word in &first[first.len() - 2..] {
        held = held.arg(word);
    }
    held = held.arg(&second.program);
    held = second.args.iter().fold(held, |held, word| held.arg(word));
    commands[1] = held;
}
