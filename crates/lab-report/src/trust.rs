//! The trust in a number: OK, SUSPECT or INVALID, with the reason and the advice.
//!
//! ```text
//! trial: what the tool said ┐
//!        what the machine did (evidence) ├─ rules of a trial ─┐
//!        what was asked for (workload) ┘                      ├─> Judgement
//! cell:  its repetitions, the campaign's other cells ── rules ┘
//! ```
//!
//! A rule is a function in one of the files under `trust/` and one line in [`RULES`]. Its limits are constants
//! beside it, each with its reason; `docs/trust.md` is the table for readers.
//!
//! Invariants:
//!
//! * pure: the same results give the same judgement;
//! * a rule that lacks its evidence finds nothing, and [`Judgement::unchecked`] counts it: the absence of a
//!   finding is never taken for a proof;
//! * no number is changed or left out here; a verdict stands beside it.
//!
//! Deliberately absent: any judgement of speed. A rule doubts a number only for a contradiction.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use braid_lab::matrix::Workload;
use braid_lab::store::{Results, StoredTrial};

mod array;
mod bytes;
mod campaign;
mod case;
mod content;
mod levels;
mod member_bound;
mod others;
mod processor;
mod steady;
mod time;
mod unwritten;

pub use case::{Cell, TrialCase};

/// The trust in a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// There is no reason to doubt it.
    #[default]
    Ok,
    /// Something speaks against it: it may be off, and the finding says which way.
    Suspect,
    /// It measures something else than it claims to; it is not to be used.
    Invalid,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "OK",
            Self::Suspect => "SUSPECT",
            Self::Invalid => "INVALID",
        })
    }
}

/// The finding of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The severity; [`Standing::Ok`] is a remark that lowers no verdict.
    pub standing: Standing,
    /// The observation, with numbers, as a sentence.
    pub why: String,
    /// The advice, as a sentence.
    pub action: String,
}

/// The result of a rule for a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The case lacks evidence.
    Unknown,
    /// Nothing speaks against the number, or the rule is not meant for such a case.
    Fine,
    /// Something does: how grave, what was seen, and what to do where the rule's own
    /// [`Rule::action`] does not say it well enough.
    Found(Standing, String, Option<String>),
}

impl Checked {
    fn suspect(why: impl Into<String>) -> Self {
        Self::Found(Standing::Suspect, why.into(), None)
    }

    fn invalid(why: impl Into<String>) -> Self {
        Self::Found(Standing::Invalid, why.into(), None)
    }

    fn remark(why: impl Into<String>) -> Self {
        Self::Found(Standing::Ok, why.into(), None)
    }

    /// The severity of the finding.
    fn standing(&self) -> Standing {
        match self {
            Self::Found(standing, ..) => *standing,
            Self::Unknown | Self::Fine => Standing::Ok,
        }
    }

    /// With another action than the rule's.
    fn but_do(self, action: impl Into<String>) -> Self {
        match self {
            Self::Found(standing, why, _) => Self::Found(standing, why, Some(action.into())),
            other => other,
        }
    }
}

/// A rule's function.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// A rule for a successful trial.
    Trial(fn(&TrialCase<'_>) -> Checked),
    /// A rule for outside disturbances of single repetitions: if enough other repetitions are undisturbed, only
    /// they count, and the cell is as good as they are.
    Disturbance(fn(&TrialCase<'_>) -> Checked),
    /// A rule for a cell with such a trial, and the same workload on the other subjects.
    Cell(fn(&Cell<'_>, &[&Cell<'_>]) -> Checked),
    /// A rule for all results and the planned workloads.
    Campaign(fn(&Results, &[Workload]) -> Checked),
}

/// A reason to doubt a number.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name, by which people can look it up: letters and dashes.
    pub name: &'static str,
    /// The advice for its finding.
    pub action: &'static str,
    /// The check.
    pub check: Check,
}

impl Rule {
    fn is_disturbance(&self) -> bool {
        matches!(self.check, Check::Disturbance(_))
    }
}

/// Every rule, the gravest first; findings come in this order.
pub const RULES: &[Rule] = &[
    Rule {
        name: "page-cache",
        action: "set direct = true, or drop_caches = true with a region well above the memory; \
                 for writes, let the final sync count; for reads, have the region written \
                 before (fill = true fills what a job of the campaign writes too)",
        check: Check::Trial(bytes::check_page_cache),
    },
    Rule {
        name: "faster-than-members",
        action: "look for a cache below the array, and measure the members alone again in the \
                 same campaign",
        check: Check::Cell(member_bound::check_members),
    },
    Rule {
        name: "rebuilding",
        action: "wait for the end (braid status, /proc/mdstat) and run the trials again",
        check: Check::Disturbance(array::check_activities),
    },
    Rule {
        name: "compressible",
        action: "take a tool that writes incompressible data (fio with compressible = 0, dd with \
                 source = \"file\"), or mount without compression",
        check: Check::Trial(content::check_compressible),
    },
    Rule {
        name: "too-short",
        action: "raise runtime_s, or the amount of data",
        check: Check::Trial(time::check_duration),
    },
    Rule {
        name: "unwritten",
        action: "write the subject before, or let the campaign do it: fill = true fills what a job \
                 of it writes too",
        check: Check::Trial(unwritten::check_unwritten),
    },
    Rule {
        name: "another-writer",
        action: "stop what else uses the devices and run the trials again",
        check: Check::Disturbance(others::check_others),
    },
    Rule {
        name: "throttled",
        action: "cool it, set rest_s so that it recovers, and run the trials again",
        check: Check::Disturbance(processor::check_heat),
    },
    Rule {
        name: "cpu-bound-client",
        action: "add processes, take larger requests, or measure from a faster machine: the \
                 subject may be faster than this",
        check: Check::Disturbance(processor::check_client),
    },
    Rule {
        name: "not-steady",
        action: "measure longer (runtime_s), let it settle first (ramp_s, rest_s), and take more \
                 repetitions",
        check: Check::Trial(steady::check_series),
    },
    Rule {
        name: "unsteady-repetitions",
        action: "take more repetitions on a quiet machine; if they drift, look for what changes \
                 (heat, a flash device that fills up, a growing file system)",
        check: Check::Cell(steady::check_repetitions),
    },
    Rule {
        name: "processes-unfair",
        action: "use the numbers of each process, or a tool that runs for a time",
        check: Check::Trial(time::check_processes),
    },
    Rule {
        name: "failed-trials",
        action: "read why they failed, mend it, and run the campaign again: it repeats only them",
        check: Check::Cell(campaign::check_failures),
    },
    Rule {
        name: "mixed-environment",
        action: "run the whole campaign again in one place, into a new directory",
        check: Check::Cell(campaign::check_environment),
    },
    Rule {
        name: "unfinished",
        action: "run the campaign again into the same directory: only what is missing is measured",
        check: Check::Campaign(campaign::check_progress),
    },
    Rule {
        name: "differing-regions",
        action: "set region to the smallest",
        check: Check::Campaign(campaign::check_regions),
    },
    Rule {
        name: "predicted",
        action: "measure what matters: `braid lab run`, and `braid lab compare` with this folder",
        check: Check::Campaign(campaign::check_predicted),
    },
    Rule {
        name: "modelled",
        action: "measure the devices before you rely on them",
        check: Check::Campaign(campaign::check_models),
    },
    Rule {
        name: "shared-device",
        action: "put each member on a device of its own",
        check: Check::Campaign(campaign::check_sharing),
    },
    Rule {
        name: "unreached-members",
        action: "set region and sizes so that what is used reaches every member",
        check: Check::Campaign(campaign::check_reach),
    },
    Rule {
        name: "differing-paths",
        action: "measure single devices as stacks, too",
        check: Check::Campaign(campaign::check_paths),
    },
];

/// Rules that have something to say of numbers that were predicted.
const OF_PREDICTIONS: [&str; 3] = ["predicted", "shared-device", "unreached-members"];

/// Repetitions free of a disturbance from which on they count alone, if they are half of all.
const ENOUGH_FREE: usize = 3;

/// The judgement of one cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The worst of the findings.
    pub standing: Standing,
    /// One for each rule that found something, of the cell or of its trials, in the order of
    /// [`RULES`].
    pub findings: Vec<Finding>,
    /// Repetitions that were disturbed and do not count, because enough others were not.
    pub disturbed: BTreeSet<u32>,
}

/// The judgement of a campaign's numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// By subject's name and workload's label: every cell with at least one successful trial.
    pub cells: BTreeMap<(String, String), Verdict>,
    /// By trial's number: every trial that went well, most with no finding.
    pub trials: BTreeMap<u32, Vec<Finding>>,
    /// The findings that concern all numbers, in the order of [`RULES`].
    pub campaign: Vec<Finding>,
    /// For each rule, the number of trials (or cells, by its [`Check`]) that it could not check for lack of
    /// evidence. Rules that could always be checked are not in it.
    pub unchecked: BTreeMap<&'static str, usize>,
}

impl Judgement {
    /// The verdict on a cell, if it has a number.
    pub fn of(&self, subject: &str, workload: &str) -> Option<&Verdict> {
        self.cells.get(&(subject.to_owned(), workload.to_owned()))
    }
}

/// Judges every trial that went well and every cell that has one. Trials of workloads that are not
/// in the list are passed over.
pub fn judge(results: &Results, workloads: &[Workload]) -> Judgement {
    judge_counted(results, workloads, |_| true)
}

/// The same where only some trials count; no rule about trials or cells sees the others.
pub(crate) fn judge_counted(
    results: &Results,
    workloads: &[Workload],
    counts: impl Fn(&StoredTrial) -> bool,
) -> Judgement {
    let is_predicted = results.prediction().is_some();
    let mut cells = match is_predicted {
        // Nothing happened that could speak against a number.
        true => Vec::new(),
        false => case::gather(results, workloads, counts),
    };
    let mut judgement = Judgement::default();
    // What was disturbed is no repetition for the rules of cells.
    let verdicts: Vec<Verdict> =
        cells.iter_mut().map(|cell| judgement.judge_trials(cell)).collect();
    for (cell, mut verdict) in cells.iter().zip(verdicts) {
        let is_alike = |other: &Cell<'_>| other.key.1 == cell.key.1 || other.is_one_stream_of(cell);
        let is_other = |other: &&Cell<'_>| other.key.0 != cell.key.0 && is_alike(other);
        let others: Vec<&Cell<'_>> = cells.iter().filter(is_other).collect();
        for rule in RULES {
            if let Check::Cell(check) = rule.check {
                verdict.findings.extend(judgement.weigh(rule, check(cell, &others)));
            }
        }
        let place = |finding: &Finding| RULES.iter().position(|one| one.name == finding.rule);
        verdict.findings.sort_by_key(place);
        verdict.standing = worst(&verdict.findings);
        judgement.cells.insert((cell.key.0.to_owned(), cell.key.1.to_owned()), verdict);
    }
    for rule in RULES.iter().filter(|rule| !is_predicted || OF_PREDICTIONS.contains(&rule.name)) {
        if let Check::Campaign(check) = rule.check {
            let finding = judgement.weigh(rule, check(results, workloads));
            judgement.campaign.extend(finding);
        }
    }
    judgement
}

fn worst(findings: &[Finding]) -> Standing {
    findings.iter().map(|finding| finding.standing).max().unwrap_or_default()
}

impl Judgement {
    /// Judges the trials of a cell: for each rule the worst finding, with the number of repetitions that have
    /// one. Disturbed trials leave the cell if enough trials are free of any disturbance; the findings of
    /// disturbances then become remarks.
    fn judge_trials(&mut self, cell: &mut Cell<'_>) -> Verdict {
        let mut by_rule: Vec<Vec<Finding>> = vec![Vec::new(); RULES.len()];
        let mut disturbed = BTreeSet::new();
        for case in &cell.good {
            self.trials.entry(case.trial.number).or_default();
            for (rule, found) in RULES.iter().zip(&mut by_rule) {
                let (Check::Trial(check) | Check::Disturbance(check)) = rule.check else {
                    continue;
                };
                let Some(finding) = self.weigh(rule, check(case)) else { continue };
                if rule.is_disturbance() && finding.standing != Standing::Ok {
                    disturbed.insert(case.trial.repetition);
                }
                self.trials.entry(case.trial.number).or_default().push(finding.clone());
                found.push(finding);
            }
        }
        let all = cell.good.len();
        let free = all.saturating_sub(disturbed.len());
        if free < ENOUGH_FREE || 2 * free < all {
            disturbed.clear();
        }
        let mut verdict = Verdict::default();
        for (rule, found) in RULES.iter().zip(by_rule) {
            let (count, worst) = (found.len(), worst(&found));
            // The first of the worst, so that the answer does not depend on how ties are broken.
            let Some(mut finding) = found.into_iter().find(|one| one.standing == worst) else {
                continue;
            };
            if all > 1 {
                finding.why += &format!(" ({count} of {all} repetitions)");
            }
            if rule.is_disturbance() && worst != Standing::Ok && !disturbed.is_empty() {
                finding.standing = Standing::Ok;
                finding.why += ", which do not count";
            }
            verdict.findings.push(finding);
        }
        cell.good.retain(|case| !disturbed.contains(&case.trial.repetition));
        verdict.disturbed = disturbed;
        verdict
    }

    fn weigh(&mut self, rule: &Rule, checked: Checked) -> Option<Finding> {
        match checked {
            Checked::Fine => None,
            Checked::Unknown => {
                *self.unchecked.entry(rule.name).or_default() += 1;
                None
            }
            Checked::Found(standing, why, action) => Some(Finding {
                rule: rule.name,
                standing,
                why,
                action: action.unwrap_or_else(|| rule.action.to_owned()),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
