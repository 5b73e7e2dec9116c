//! Whether a number can be believed: OK, SUSPECT or INVALID, with the reason and what to do.
//!
//! ```text
//! trial: what the tool said ┐
//!        what the machine did (evidence) ├─ rules of a trial ─┐
//!        what was asked for (workload) ┘                      ├─> Judgement
//! cell:  its repetitions, the campaign's other cells ── rules ┘
//! ```
//!
//! A rule is a function in one of the files under `trust/` and one line in [`RULES`]. Its limits
//! are constants beside it, each with its reason; `docs/trust.md` is the table for readers.
//!
//! Invariants:
//!
//! * pure: the same results give the same judgement;
//! * a rule that lacks its evidence says nothing, and [`Judgement::unchecked`] counts it: silence
//!   is never taken for a proof;
//! * no number is changed or left out here; a verdict stands beside it.
//!
//! Deliberately absent: any judgement of how fast something is. A rule doubts a number only for
//! what contradicts it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use braid_lab::matrix::Workload;
use braid_lab::store::Results;

mod amplification;
mod arrangement;
mod array;
mod bytes;
mod campaign;
mod campaign_wide;
mod case;
mod content;
mod member_bound;
mod others;
mod processor;
mod steady;
mod time;
mod unwritten;

pub use case::{CellCase, TrialCase};

/// How far a number can be believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// Nothing speaks against it.
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

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How grave it is; [`Standing::Ok`] is a remark that lowers nothing.
    pub standing: Standing,
    /// What was seen, with numbers, as a sentence.
    pub why: String,
    /// What to do about it, as a sentence.
    pub action: String,
}

/// What a rule says of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// It is not meant for such a case: a rule about writes, and nothing is written.
    NotApplicable,
    /// It lacks evidence.
    Unknown,
    /// Nothing speaks against the number.
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
    /// Of a trial that went well.
    Trial(fn(&TrialCase<'_>) -> Checked),
    /// The same of what may befall single repetitions from outside, whatever they measured: where
    /// enough others are free of it, they alone count, and the cell stays as good as they are.
    Disturbance(fn(&TrialCase<'_>) -> Checked),
    /// Of a cell that has such a trial.
    Cell(fn(&CellCase<'_>) -> Checked),
    /// Of all results and the workloads that were planned.
    Campaign(fn(&Results, &[Workload]) -> Checked),
}

/// A reason to doubt a number.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name, for people who look it up: letters and dashes.
    pub name: &'static str,
    /// What to do when it finds something.
    pub action: &'static str,
    /// How it is found.
    pub check: Check,
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
        name: "fits-cache",
        action: "take a region well above the memory, or set direct = true",
        check: Check::Trial(bytes::check_fits_cache),
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
        name: "few-repetitions",
        action: "take at least five repetitions (--repetitions 5)",
        check: Check::Cell(campaign::check_repetitions),
    },
    Rule {
        name: "unfinished",
        action: "run the campaign again into the same directory: only what is missing is measured",
        check: Check::Campaign(campaign_wide::check_progress),
    },
    Rule {
        name: "differing-regions",
        action: "set region to the smallest",
        check: Check::Campaign(campaign_wide::check_regions),
    },
    Rule {
        name: "modelled",
        action: "measure the devices before you rely on them",
        check: Check::Campaign(campaign_wide::check_models),
    },
    Rule {
        name: "shared-device",
        action: "put each member on a device of its own",
        check: Check::Campaign(campaign_wide::check_sharing),
    },
    Rule {
        name: "differing-paths",
        action: "measure single devices as stacks, too",
        check: Check::Campaign(campaign_wide::check_paths),
    },
    Rule {
        name: "short-trials",
        action: "raise runtime_s (--runtime)",
        check: Check::Campaign(campaign_wide::check_runtime),
    },
    Rule {
        name: "closed-in-time",
        action: "set sync, if the time without it is wanted",
        check: Check::Campaign(campaign_wide::check_close),
    },
];

/// Repetitions free of a disturbance from which on they count alone, if they are half of all.
const ENOUGH_FREE: usize = 3;

/// What is thought of one cell.
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

/// What is thought of a campaign's numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// By subject's name and workload's label: every cell with at least one trial that went well.
    pub cells: BTreeMap<(String, String), Verdict>,
    /// By trial's number: every trial that went well, most with no finding.
    pub trials: BTreeMap<u32, Vec<Finding>>,
    /// What concerns all numbers, in the order of [`RULES`].
    pub campaign: Vec<Finding>,
    /// By rule: how many trials (or cells, by its [`Check`]) it could not check for lack of
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
    let labels: BTreeMap<String, &Workload> =
        workloads.iter().map(|workload| (workload.label(), workload)).collect();
    let mut cells = case::gather(results, &labels);
    let mut judgement = Judgement::default();
    for (key, cell) in &cells {
        let verdict = judgement.judge_trials(cell);
        judgement.cells.insert((key.0.to_owned(), key.1.to_owned()), verdict);
    }
    // What does not count is no repetition for the rules of cells.
    for (key, cell) in &mut cells {
        if let Some(verdict) = judgement.of(key.0, key.1) {
            cell.leave_out(&verdict.disturbed);
        }
    }
    for (key, cell) in &cells {
        let found = RULES.iter().filter_map(|rule| match rule.check {
            Check::Cell(check) => judgement.weigh(rule, check(&CellCase::new(cell, &cells))),
            _ => None,
        });
        let found: Vec<Finding> = found.collect();
        if let Some(verdict) = judgement.cells.get_mut(&(key.0.to_owned(), key.1.to_owned())) {
            verdict.findings.extend(found);
            let place = |finding: &Finding| RULES.iter().position(|one| one.name == finding.rule);
            verdict.findings.sort_by_key(place);
            verdict.standing =
                verdict.findings.iter().map(|finding| finding.standing).max().unwrap_or_default();
        }
    }
    for rule in RULES {
        if let Check::Campaign(check) = rule.check {
            let finding = judgement.weigh(rule, check(results, workloads));
            judgement.campaign.extend(finding);
        }
    }
    judgement
}

impl Verdict {
    /// Leaves disturbed repetitions out where enough are free of any disturbance: their findings are
    /// remarks then. `found` has the place of a rule's finding and the repetitions that it is of.
    fn leave_out(&mut self, found: Vec<(usize, BTreeSet<u32>)>, all: usize) {
        let disturbed: BTreeSet<u32> = found.iter().flat_map(|(_, which)| which).copied().collect();
        let free = all.saturating_sub(disturbed.len());
        if disturbed.is_empty() || free < ENOUGH_FREE || 2 * free < all {
            return;
        }
        for (place, _) in found.iter().filter(|(_, which)| !which.is_empty()) {
            let finding = &mut self.findings[*place];
            finding.standing = Standing::Ok;
            finding.why += ", which do not count";
        }
        self.disturbed = disturbed;
    }
}

impl Judgement {
    /// What the trials of a cell say, with those that were disturbed left out if they may be.
    fn judge_trials(&mut self, cell: &case::Cell<'_>) -> Verdict {
        let mut verdict = Verdict::default();
        let mut disturbances = Vec::new();
        for rule in RULES {
            let (finding, repetitions) = match rule.check {
                Check::Trial(check) => (self.check_trials(rule, check, cell).0, None),
                Check::Disturbance(check) => {
                    let (finding, repetitions) = self.check_trials(rule, check, cell);
                    (finding, Some(repetitions))
                }
                Check::Cell(_) | Check::Campaign(_) => continue,
            };
            disturbances.extend(repetitions.map(|found| (verdict.findings.len(), found)));
            verdict.findings.extend(finding);
        }
        verdict.leave_out(disturbances, cell.trials().count());
        verdict
    }

    /// Checks each trial of a cell; gives the worst finding with how many repetitions have one, and
    /// the repetitions in which something speaks against the number.
    fn check_trials(
        &mut self,
        rule: &Rule,
        check: fn(&TrialCase<'_>) -> Checked,
        cell: &case::Cell<'_>,
    ) -> (Option<Finding>, BTreeSet<u32>) {
        let mut found: Vec<Finding> = Vec::new();
        let mut against = BTreeSet::new();
        for case in cell.trials() {
            let finding = self.weigh(rule, check(&case));
            let kept = self.trials.entry(case.trial.number).or_default();
            kept.extend(finding.clone());
            if finding.as_ref().is_some_and(|finding| finding.standing != Standing::Ok) {
                against.insert(case.trial.repetition);
            }
            found.extend(finding);
        }
        let (count, all) = (found.len(), cell.trials().count());
        // The first of the worst, so that the answer does not depend on how ties are broken.
        let worst = found.iter().map(|finding| finding.standing).max();
        let Some(mut finding) = found.into_iter().find(|one| Some(one.standing) == worst) else {
            return (None, against);
        };
        if all > 1 {
            finding.why += &format!(" ({count} of {all} repetitions)");
        }
        (Some(finding), against)
    }

    fn weigh(&mut self, rule: &Rule, checked: Checked) -> Option<Finding> {
        match checked {
            Checked::NotApplicable | Checked::Fine => None,
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
