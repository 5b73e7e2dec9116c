//! Fitting a campaign into a time: repetitions, and the seconds of each trial.
//!
//! ```text
//!   repetitions that a winner of each kind of work needs, of at least 1 s
//!      fits? ──▶ longer trials, up to 10 s ──▶ more repetitions, up to 30
//!      too long ──▶ fewer repetitions, with a note that they prove nothing
//! ```
//!
//! Only the campaign itself decides: the same budget gives the same campaign, so that an interrupted run can
//! continue.

use std::collections::BTreeSet;
use std::time::Duration;

use super::time_of;
use crate::campaign::Campaign;
use crate::command::minutes;
use crate::error::LabError;
use crate::matrix::{Planned, Workload};
use crate::settings::Value;

/// Seconds of a trial below which its length is a reason for doubt.
const SHORTEST_S: f64 = 1.0;
/// Seconds of a trial above which more trials tell more than longer ones.
const LONGEST_S: f64 = 10.0;
/// Repetitions above which intervals become hardly narrower.
const MOST_REPETITIONS: u32 = 30;

/// A time, and the choices that it must not change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Time of the whole campaign.
    pub time: Duration,
    /// True if the user has set the repetitions.
    pub keeps_repetitions: bool,
    /// True if the user has set the length of a trial.
    pub keeps_runtime: bool,
}

/// A campaign that fits its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The campaign with the chosen repetitions and seconds.
    pub campaign: Campaign,
    /// The choices, and the questions for which they are too few.
    pub said: Vec<String>,
}

/// Chooses repetitions and the seconds of a trial so that the estimated time fits.
///
/// # Errors
///
/// The campaign is invalid, or not one repetition fits.
pub fn fit(campaign: Campaign, budget: &Budget) -> Result<Fitted, LabError> {
    let needed = needed(&Planned::checked(&campaign)?);
    let Budget { time, keeps_repetitions, keeps_runtime } = *budget;
    let shortest = if keeps_runtime { campaign.runtime_s } else { SHORTEST_S };
    let with = |runtime_s: f64, repetitions: u32| {
        let chosen = Campaign { runtime_s, repetitions, ..campaign.clone() };
        time_of(&Planned::of(&chosen))
    };
    let wanted = if keeps_repetitions { campaign.repetitions } else { needed };
    let most = |runtime_s: f64, from: u32, to: u32| {
        (from..=to).take_while(|count| with(runtime_s, *count) <= time).last()
    };
    let (runtime_s, repetitions) = if with(shortest, wanted) <= time {
        let runtime_s = match keeps_runtime {
            true => shortest,
            false => longest(shortest, |seconds| with(seconds, wanted) <= time),
        };
        let more = if keeps_repetitions { wanted } else { MOST_REPETITIONS.max(wanted) };
        (runtime_s, most(runtime_s, wanted, more).unwrap_or(wanted))
    } else if keeps_repetitions {
        return Err(LabError::Budget { budget: time, least: with(shortest, wanted) });
    } else {
        let fewer = most(shortest, 1, wanted);
        let least = with(shortest, 1);
        (shortest, fewer.ok_or(LabError::Budget { budget: time, least })?)
    };
    let mut said = vec![format!(
        "--budget {}: {repetitions} repetitions, {runtime_s} s each where a tool runs for a time",
        minutes(time)
    )];
    if repetitions < needed {
        said.push(format!(
            "too little for a proof: a winner of each kind of work takes {needed} repetitions, \
             about {}",
            minutes(with(shortest, needed))
        ));
    }
    Ok(Fitted { campaign: Campaign { runtime_s, repetitions, ..campaign }, said })
}

/// Returns [`fit`] with the control of the baseline if enough repetitions fit with it; else without.
///
/// # Errors
///
/// As [`fit`].
pub(crate) fn fit_with_control(campaign: &Campaign, budget: &Budget) -> Result<Fitted, LabError> {
    // The repetitions are not chosen yet; the chosen ones will be enough for a winner.
    let many = Campaign { repetitions: MOST_REPETITIONS, ..campaign.clone() }.settled(None, None);
    let with = Campaign { repetitions: campaign.repetitions, seed: campaign.seed, ..many };
    let needed = needed(&Planned::checked(&with)?);
    let is_asked = campaign.control == Some(true);
    match fit(with, budget) {
        Ok(fitted) if is_asked || fitted.campaign.repetitions >= needed => Ok(fitted),
        Err(error) if is_asked => Err(error),
        _ => {
            let mut fitted = fit(Campaign { control: Some(false), ..campaign.clone() }, budget)?;
            if campaign.control.is_none() {
                fitted.said.push(
                    "too little for a control: the baseline is not measured a second time"
                        .to_owned(),
                );
            }
            Ok(fitted)
        }
    }
}

/// Returns the longest time of a trial that fits, in tenths of a second.
fn longest(shortest: f64, fits: impl Fn(f64) -> bool) -> f64 {
    let tenths = |seconds: f64| (seconds * 10.0) as u32;
    let longer: Vec<u32> = (tenths(shortest) + 1..=tenths(LONGEST_S)).collect();
    let fitting = longer.partition_point(|tenths| fits(f64::from(*tenths) / 10.0));
    longer[..fitting].last().map_or(shortest, |tenths| f64::from(*tenths) / 10.0)
}

/// Returns the repetitions that a winner of each kind of work needs: kinds share the level.
fn needed(planned: &Planned) -> u32 {
    const KIND: [&str; 5] = ["tool", "pattern", "op", "mode", "health"];
    let kind = |workload: &Workload| -> Vec<Option<Value>> {
        let dimensions = workload.dimensions();
        KIND.iter().map(|name| dimensions.get(*name).cloned()).collect()
    };
    let possible = planned.cells.iter().filter(|cell| cell.impossible.is_none());
    let kinds: BTreeSet<Vec<Option<Value>>> = possible.map(|cell| kind(&cell.workload)).collect();
    repetitions_to_plan(kinds.len())
}

/// Returns the repetitions to plan with: those that find a difference of 20 % at a noise of 5 % of each
/// subject, with a chance of 80 %, if so many questions share the 5 %. 4 for one kind of work, 5 for four.
pub fn repetitions_to_plan(questions: usize) -> u32 {
    /// Number of questions for which 4 repetitions are enough, 5, and so on. A test checks them against the
    /// statistics of the reports.
    const ENOUGH_FOR: [usize; 7] = [2, 5, 16, 48, 135, 380, 1061];
    let short = ENOUGH_FOR.iter().take_while(|most| **most < questions).count();
    4 + u32::try_from(short).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::quick_campaign;

    const MINUTE: Duration = Duration::from_secs(60);

    fn quick() -> Campaign {
        let subjects = [("stripe".to_owned(), "raid0(ram(64M), ram(64M))".to_owned())];
        quick_campaign("ram(64M)", &subjects).unwrap()
    }

    fn budget(time: Duration) -> Budget {
        Budget { time, keeps_repetitions: false, keeps_runtime: false }
    }

    #[test]
    fn a_budget_is_kept_and_used() {
        for minutes in [4, 10, 30] {
            let fitted = fit(quick(), &budget(minutes * MINUTE)).unwrap();
            let time = time_of(&Planned::of(&fitted.campaign));
            assert!(time <= minutes * MINUTE, "{minutes} min: {time:?}");
            assert!(time > minutes * MINUTE * 8 / 10, "{minutes} min: {time:?}");
            assert!(fitted.campaign.repetitions >= 5 && fitted.campaign.runtime_s >= 1.0);
            assert_eq!(fitted.said.len(), 1, "{:?}", fitted.said);
        }
    }

    /// Another subject takes a third more time; the control is left out if too few repetitions remain.
    #[test]
    fn a_control_is_left_out_before_repetitions_are() {
        let controls = |minutes: f64| {
            let fitted = fit_with_control(&quick(), &budget(MINUTE.mul_f64(minutes))).unwrap();
            let controls = fitted.campaign.subjects.iter().filter(|one| one.control).count();
            (controls, fitted.campaign.repetitions >= 5, fitted.said.len())
        };
        assert_eq!(controls(8.0), (1, true, 1));
        let enough = time_of(&Planned::of(&Campaign { runtime_s: SHORTEST_S, ..quick() }));
        assert_eq!(controls(enough.as_secs_f64() / 60.0 + 0.1), (0, true, 2));
        let asked = Campaign { control: Some(true), ..quick() };
        let fitted = fit_with_control(&asked, &budget(3 * MINUTE)).unwrap();
        assert!(fitted.campaign.subjects.iter().any(|one| one.control));
    }

    #[test]
    fn the_same_budget_gives_the_same_campaign() {
        let fitted = || fit(quick(), &budget(7 * MINUTE)).unwrap();
        assert_eq!(fitted(), fitted());
    }

    /// Four kinds of work share the level.
    #[test]
    fn what_a_proof_takes_depends_on_the_kinds_of_work() {
        assert_eq!(needed(&Planned::of(&quick())), 5);
        assert_eq!([1, 2, 4, 8].map(repetitions_to_plan), [4, 4, 5, 6]);
    }

    #[test]
    fn what_is_too_little_for_a_proof_is_said_plainly() {
        let fitted = fit(quick(), &budget(MINUTE)).unwrap();
        assert!(fitted.campaign.repetitions < 5);
        assert_eq!(fitted.campaign.runtime_s, 1.0);
        assert!(fitted.said[1].contains("too little for a proof"), "{:?}", fitted.said);
        assert!(fitted.said[1].contains("takes 5 repetitions"), "{:?}", fitted.said);
        let error = fit(quick(), &budget(MINUTE / 6)).unwrap_err().to_string();
        assert!(error.contains("--budget 10 s: one repetition of everything takes"), "{error}");
    }

    #[test]
    fn what_the_user_has_set_is_kept() {
        let campaign = Campaign { repetitions: 7, runtime_s: 2.5, ..quick() };
        let both = Budget { keeps_repetitions: true, ..budget(20 * MINUTE) };
        let fitted = fit(campaign.clone(), &both).unwrap().campaign;
        assert_eq!(fitted.repetitions, 7);
        assert!(fitted.runtime_s > 5.0);
        let runtime = Budget { keeps_runtime: true, ..budget(20 * MINUTE) };
        let fitted = fit(campaign.clone(), &runtime).unwrap().campaign;
        assert_eq!(fitted.runtime_s, 2.5);
        assert!(fitted.repetitions > 7);
        let short = Budget { keeps_repetitions: true, ..budget(MINUTE) };
        assert!(fit(campaign, &short).is_err());
    }
}
