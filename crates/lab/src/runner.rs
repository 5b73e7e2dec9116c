//! Runs the trials of a campaign, one after the other, and keeps each before the next.
//!
//! Invariants:
//!
//! * when this returns, for whatever reason, no server that it started is left;
//! * a stop by the user loses at most the trial that was running;
//! * a trial that fails is kept with its reason and does not end the campaign; three in a row do.

use std::time::Duration;

use crate::LabOptions;
use crate::campaign::Campaign;
use crate::environment::read_environment;
use crate::error::LabError;
use crate::facts::place_members;
use crate::matrix::{Trial, plan_trials, plan_workloads};
use crate::progress::Progress;
use crate::safety::check_overwrites;
use crate::server::{Ready, Subjects};
use crate::store::{Outcome, Store, StoredTrial, SubjectFacts};
use crate::tool::{Metric, Sample, Tool, ToolError, TrialSpec};
use crate::world::{CommandLine, Exit, Finished, World};

/// So many failures in a row mean that the campaign is broken and not the trial.
const FAILURES_IN_A_ROW: u32 = 3;
/// What a tool may take beyond the time it was told: starting, laying out, the last flush.
const OVERTIME: Duration = Duration::from_secs(120);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Trials in the campaign.
    pub planned: u32,
    /// Trials that had been saved by an earlier run.
    pub skipped: u32,
    /// Trials that went well in this run.
    pub measured: u32,
    /// Trials that failed in this run.
    pub failed: u32,
    /// Whether the user stopped it.
    pub stopped: bool,
}

/// Runs what is missing of a campaign into the results directory.
///
/// # Errors
///
/// When the campaign would overwrite what it must not, a tool or a subject does not work, trial
/// after trial fails, or the results cannot be saved. What was measured before stays saved.
pub fn run_campaign(
    campaign: &Campaign,
    options: &LabOptions,
    world: &mut dyn World,
) -> Result<Tally, LabError> {
    check_overwrites(campaign, &options.destroy)?;
    let tools = ask_versions(campaign, options, world)?;
    let mut store = Store::create(&options.results_dir, campaign)?;
    let session = store.begin_session(world.unix_time_s(), &read_environment(tools))?;
    let mut subjects = Subjects::new(campaign, options)?;
    for index in 0..campaign.subjects.len() {
        store.save_subject(index, &facts_of(campaign, &subjects, index, None))?;
    }
    let mut run = Run { campaign, options, store: &mut store, session, subjects: &mut subjects };
    let result = run.all_trials(world);
    // The servers go down also after an error, and the first error is the one that is told.
    let down = subjects.take_down_all();
    let tally = result?;
    down?;
    Ok(tally)
}

struct Run<'a, 'c> {
    campaign: &'c Campaign,
    options: &'c LabOptions,
    store: &'a mut Store,
    session: i64,
    subjects: &'a mut Subjects<'c>,
}

/// What became of one trial.
enum Step {
    Measured,
    Failed(String),
    Stopped,
}

impl Run<'_, '_> {
    fn all_trials(&mut self, world: &mut dyn World) -> Result<Tally, LabError> {
        let trials = plan_trials(self.campaign);
        let finished = self.store.finished_trials()?;
        let missing: Vec<&Trial> =
            trials.iter().filter(|t| !finished.contains(&t.number)).collect();
        let mut tally = Tally {
            planned: trials.len() as u32,
            skipped: (trials.len() - missing.len()) as u32,
            measured: 0,
            failed: 0,
            stopped: false,
        };
        let mut progress = Progress::new(missing.len(), trials.len(), self.options.quiet);
        let mut in_a_row = 0;
        for trial in missing {
            progress.begin(trial.number, &self.describe(trial), world.monotonic());
            let step = if self.options.stop.is_set() {
                Step::Stopped
            } else {
                self.one_trial(trial, world)?
            };
            match step {
                Step::Measured => {
                    tally.measured += 1;
                    in_a_row = 0;
                }
                Step::Failed(reason) => {
                    tally.failed += 1;
                    in_a_row += 1;
                    progress.warn(&format!("trial {} failed: {reason}", trial.number));
                    if in_a_row >= FAILURES_IN_A_ROW {
                        let results = self.store.dir().to_path_buf();
                        return Err(LabError::TooManyFailures {
                            count: in_a_row,
                            last: reason,
                            results,
                        });
                    }
                }
                Step::Stopped => {
                    tally.stopped = true;
                    break;
                }
            }
            progress.end(world.monotonic());
        }
        Ok(tally)
    }

    fn describe(&self, trial: &Trial) -> String {
        let subject = &self.campaign.subjects[trial.cell.subject].name;
        let fill = match self.subjects.needs_fill(trial.cell.subject) {
            true => format!(", after filling {:#}", self.campaign.region),
            false => String::new(),
        };
        format!("{subject}: {}{fill}", trial.cell.workload)
    }

    fn one_trial(&mut self, trial: &Trial, world: &mut dyn World) -> Result<Step, LabError> {
        let subject = trial.cell.subject;
        let tool = tool_of(&trial.cell.workload.tool)?;
        let Some(ready) = self.subjects.bring_up(subject, tool, world)? else {
            return Ok(Step::Stopped);
        };
        let facts = facts_of(self.campaign, self.subjects, subject, Some(ready.size_bytes));
        self.store.save_subject(subject, &facts)?;

        let command = tool.trial_command(&TrialSpec {
            workload: &trial.cell.workload,
            target: &ready.target,
            region_bytes: ready.region_bytes,
            runtime_s: self.campaign.runtime_s,
            ramp_s: self.campaign.ramp_s,
            seed: trial.seed,
        });
        let (started_unix_s, began) = (world.unix_time_s(), world.monotonic());
        let cpu_before = self.subjects.cpu_time(subject);
        let done = world.run(&command, self.time_limit(), &self.options.stop)?;
        if done.exit == Exit::Stopped {
            return Ok(Step::Stopped);
        }
        let duration_s = (world.monotonic() - began).as_secs_f64();
        let cpu_after = self.subjects.cpu_time(subject);

        let mut result = judge(tool, trial, &done);
        if let (Ok(samples), Some(before), Some(after)) = (&mut result, cpu_before, cpu_after) {
            samples.extend(server_cpu(samples, self.campaign, after.saturating_sub(before)));
        }
        let kept = self.keep(trial, &ready, &command, started_unix_s, duration_s, &result);
        let samples = result.as_deref().unwrap_or_default();
        self.store.save_trial(self.session, trial, &kept, &raw_text(&done), samples)?;
        Ok(match kept.outcome {
            Outcome::Ok => Step::Measured,
            Outcome::Failed(reason) => Step::Failed(reason),
        })
    }

    fn time_limit(&self) -> Duration {
        Duration::from_secs_f64(self.campaign.ramp_s + self.campaign.runtime_s) + OVERTIME
    }

    fn keep(
        &self,
        trial: &Trial,
        ready: &Ready,
        command: &CommandLine,
        started_unix_s: u64,
        duration_s: f64,
        result: &Result<Vec<Sample>, String>,
    ) -> StoredTrial {
        StoredTrial {
            number: trial.number,
            repetition: trial.repetition,
            subject: self.campaign.subjects[trial.cell.subject].name.clone(),
            workload: trial.cell.workload.label(),
            command: command.to_string(),
            started_unix_s,
            duration_s,
            region_bytes: ready.region_bytes,
            outcome: match result {
                Ok(_) => Outcome::Ok,
                Err(reason) => Outcome::Failed(reason.clone()),
            },
            raw: format!("raw/{:04}.txt", trial.number),
        }
    }
}

/// Samples, or in words why there are none.
fn judge(tool: &dyn Tool, trial: &Trial, done: &Finished) -> Result<Vec<Sample>, String> {
    let said = || match last_lines(&done.stderr) {
        lines if lines.is_empty() => String::new(),
        lines => format!(" ({lines})"),
    };
    if done.exit != Exit::Code(0) {
        return Err(format!("{}: {}{}", tool.name(), done.exit, said()));
    }
    tool.parse_output(&trial.cell.workload, &done.stdout)
        .map_err(|error: ToolError| format!("{error}{}", said()))
}

/// Processor time of the server for each request. The server also worked during the ramp, whose
/// requests the tool does not count, so they are added at the measured rate.
fn server_cpu(samples: &[Sample], campaign: &Campaign, used: Duration) -> Option<Sample> {
    let counted = samples.iter().find(|sample| sample.metric == Metric::Requests)?.value;
    let requests = counted * (campaign.runtime_s + campaign.ramp_s) / campaign.runtime_s;
    let value = used.as_nanos() as f64 / requests;
    value.is_finite().then_some(Sample { metric: Metric::ServerCpu, value })
}

fn raw_text(done: &Finished) -> String {
    if done.stderr.is_empty() {
        return done.stdout.clone();
    }
    format!("{}\n--- standard error ---\n{}", done.stdout, done.stderr)
}

/// The end of what a program said, on one line.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

fn tool_of(name: &str) -> Result<&'static dyn Tool, LabError> {
    crate::tool::find(name)
        .ok_or_else(|| LabError::StoreContent { what: "job.tool", value: name.to_owned() })
}

fn facts_of(
    campaign: &Campaign,
    subjects: &Subjects<'_>,
    index: usize,
    size_bytes: Option<u64>,
) -> SubjectFacts {
    let subject = &campaign.subjects[index];
    SubjectFacts {
        name: subject.name.clone(),
        size_bytes,
        members: place_members(&subject.source),
        serve_command: subjects.serve_command(index).map(|command| command.to_string()),
    }
}

fn ask_versions(
    campaign: &Campaign,
    options: &LabOptions,
    world: &mut dyn World,
) -> Result<Vec<(String, String)>, LabError> {
    let mut versions: Vec<(String, String)> = Vec::new();
    for workload in plan_workloads(campaign) {
        let tool = tool_of(&workload.tool)?;
        if versions.iter().any(|(name, _)| name == tool.name()) {
            continue;
        }
        let done = world.run(&tool.version_command(), Duration::from_secs(30), &options.stop)?;
        if done.exit == Exit::Stopped {
            // The first trial notices it and nothing is measured.
            break;
        }
        let version = done.stdout.trim();
        if done.exit != Exit::Code(0) || version.is_empty() {
            let reason = format!("{} {}", done.exit, last_lines(&done.stderr));
            return Err(LabError::ToolBroken { program: tool.name().to_owned(), reason });
        }
        versions.push((tool.name().to_owned(), version.to_owned()));
    }
    Ok(versions)
}

#[cfg(test)]
mod tests;
