//! The open questions, their reasons, and the effort to answer them: a sentence for each cause, about the
//! contest in which it is clearest.

use braid_shell::shell_path;

use super::Context;
use super::words::{kinds_in_words, percent};
use crate::analysis::{ALIKE, Contest, LEAST_PAIRS, Outcome, PLACES, Unknown};
use crate::report::units::digits;
use braid_lab::environment::Prediction;
use braid_lab::plan::repetitions_to_plan;

/// The sentences, what is alike first.
pub(super) fn sentences(context: &Context<'_>, contests: &[&Contest]) -> Vec<String> {
    let mut said = Vec::new();
    let alike = |contest: &Contest| match contest.outcome {
        Outcome::Alike(apart) => Some(apart),
        _ => None,
    };
    let all_alike: Vec<&Contest> =
        contests.iter().copied().filter(|contest| alike(contest).is_some()).collect();
    if !all_alike.is_empty() {
        let most = all_alike.iter().filter_map(|contest| alike(contest)).fold(0.0, f64::max);
        let kinds = kinds_in_words(&all_alike, contests.len());
        said.push(format!("In {kinds} all are alike, within {} %.", digits(100.0 * most)));
    }
    let causes: [fn(&Unknown) -> bool; 5] = [
        |why| *why == Unknown::Few,
        |why| matches!(why, Unknown::Scatter(Some(_))),
        |why| matches!(why, Unknown::Place(_)),
        |why| *why == Unknown::Scatter(None),
        |why| *why == Unknown::Close,
    ];
    for cause in causes {
        let of_cause = contests.iter().copied().filter_map(|contest| match contest.outcome {
            Outcome::Open(why) if cause(&why) => Some((contest, why)),
            _ => None,
        });
        let open: Vec<(&Contest, Unknown)> = of_cause.collect();
        said.extend(of_cause_in_words(context, &open, contests.len()));
    }
    for contest in contests {
        if let Outcome::Unbelieved(count) = contest.outcome {
            let subjects = match count {
                1 => "one subject was".to_owned(),
                many => format!("{many} subjects were"),
            };
            let numbers = if count == 1 { "its numbers are" } else { "their numbers are" };
            said.push(format!(
                "No winner in {}: {subjects} faster than {}, and {numbers} not believed.",
                contest.kind.name,
                context.subject(contest.leader())
            ));
        }
    }
    said
}

/// Among contests that are open for the same cause, the one with the greatest effort.
fn of_cause_in_words(
    context: &Context<'_>,
    open: &[(&Contest, Unknown)],
    all: usize,
) -> Option<String> {
    let takes = |why: &Unknown| match why {
        Unknown::Scatter(Some(repetitions)) => *repetitions as f64,
        Unknown::Place(lead) => *lead,
        _ => 0.0,
    };
    // The first of equals.
    let (contest, why) = open
        .iter()
        .rev()
        .max_by(|(_, one), (_, other)| takes(one).total_cmp(&takes(other)))
        .copied()?;
    let contests: Vec<&Contest> = open.iter().map(|(contest, _)| *contest).collect();
    let kinds = kinds_in_words(&contests, all);
    // A contest is of two subjects at least.
    let [leader, next] = [0, 1].map(|place| context.subject(contest.ranking[place]));
    let ahead = percent(contest.margin.ratio);
    let lead = match contest.margin.ratio {
        ratio if ratio < 1.0 + 5e-5 => {
            format!("{leader} and {next} do the same in {}", contest.kind.name)
        }
        _ => format!("{leader} was {ahead} % ahead of {next} in {}", contest.kind.name),
    };
    let (but, next) = match why {
        Unknown::Close => {
            let but = format!("a difference below {} % decides nothing", digits(100.0 * ALIKE));
            return Some(format!("No winner in {kinds}: {lead}, and {but}."));
        }
        _ if context.results.prediction().is_some() => {
            return Some(predicted(context, &kinds, &lead));
        }
        Unknown::Few => {
            let pairs = contest.margin.pairs;
            let measured = if pairs == 1 { "repetition is" } else { "repetitions are" };
            let plan =
                usize::try_from(repetitions_to_plan(all)).unwrap_or(usize::MAX).max(LEAST_PAIRS);
            let but =
                format!("{pairs} {measured} there of at least {LEAST_PAIRS} that name a winner");
            (but, what_it_takes(context, contest, plan, ""))
        }
        Unknown::Scatter(needed) => {
            let scatter = digits(100.0 * contest.margin.log_sd);
            let next = match needed {
                Some(needed) => what_it_takes(context, contest, needed, "about "),
                None => "It would take more than 200 repetitions, or a quieter machine.".to_owned(),
            };
            (format!("repetitions scatter by {scatter} %"), next)
        }
        Unknown::Place(lead) => {
            let apart = percent(lead.powf(1.0 / PLACES));
            let baseline = context.baseline_name().unwrap_or_default();
            let but = format!(
                "{baseline}, measured twice, differs from itself by {apart} %: with one control only a \
                 lead of more than {} % is more than its place",
                percent(lead)
            );
            (but, "Other files or devices would tell, more repetitions would not.".to_owned())
        }
    };
    Some(format!("The fastest in {kinds} is not decided: {lead}, and {but}. {next}"))
}

fn predicted(context: &Context<'_>, kinds: &str, lead: &str) -> String {
    let error = context.results.prediction().map_or_else(String::new, Prediction::size);
    format!(
        "The fastest in {kinds} is not decided: {lead}, and models are off by up to {error}. \
         Measuring the two would tell: `braid lab run`."
    )
}

/// "It takes about 7 more repetitions, 9 minutes: `braid lab resume ...`."
fn what_it_takes(context: &Context<'_>, contest: &Contest, needed: usize, about: &str) -> String {
    let dir = shell_path(context.dir);
    let planned = context.results.campaign.repetitions as usize;
    let is_interrupted = contest.ranking.iter().take(2).any(|subject| {
        let works = contest.kind.workloads.iter();
        works.map(|work| context.analysis.cell(*work, *subject)).any(|c| c.trials.len() < planned)
    });
    if is_interrupted && needed <= planned {
        return format!(
            "The run has ended before its {planned} repetitions: `braid lab resume {dir}` goes on."
        );
    }
    let more = needed.saturating_sub(planned).max(1);
    let seconds = context.seconds_of_a_repetition() * more as f64;
    format!(
        "It takes {about}{more} more {}, {}: `braid lab resume {dir} --repetitions {}`.",
        if more == 1 { "repetition" } else { "repetitions" },
        match seconds {
            s if s < 90.0 => format!("{s:.0} seconds"),
            s if s < 5400.0 => format!("{:.0} minutes", (s / 60.0).ceil()),
            s => format!("{:.1} hours", s / 3600.0),
        },
        planned + more
    )
}
