//! The answer, the most important sentence first.
//!
//! Rules: what is unfinished or not measured at all comes first, then what a lost member costs
//! where that was asked; a subject is recommended only when it is proven best of all, else the
//! leader is named with what is missing for a proof, or those that cannot be told apart; nobody is
//! named where a number that cannot be believed was better; second is what each subject is against
//! the baseline; then what to take for which work, by the same rules; invalid numbers and rounds
//! before a subject has settled are in none of it; the last sentences say what is not believed and
//! what was not measured.

mod against;
mod health;
mod kinds;
mod reservations;

use self::against::{against_baseline, merits};
use self::kinds::{by_work, nobody};
use self::reservations::reservations;
use super::Context;
use crate::analysis::{Cell, Overall, Standing as Belief, State, find_overall, has_rounds};
use crate::metric::Better;
use crate::report::units::{digits, kind_of_interval, quantity, title};
use crate::stats::{Contest, Estimate, Standing};

/// The sentences.
pub(super) fn sentences(context: &Context<'_>) -> Vec<String> {
    let analysis = context.analysis;
    let mut said = Vec::new();
    if analysis.is_unfinished() {
        said.push(format!(
            "This is not finished: {} of {} trials have gone well so far, and what follows may \
             change.",
            analysis.done, analysis.planned
        ));
    }
    said.extend(of_numbers(context));
    said
}

/// The answer as far as there is one.
pub(super) fn of_numbers(context: &Context<'_>) -> Vec<String> {
    let analysis = context.analysis;
    let mut said = Vec::new();
    if analysis.done == 0 {
        said.push("Nothing has been measured, so there is no answer.".to_owned());
        said.extend(first_failure(context));
        return said;
    }
    if !analysis.cells.iter().any(|cell| cell.is_usable()) {
        let is_unsettled = |cell: &Cell| matches!(cell.state, State::Unsettled(_));
        let nothing = if analysis.cells.iter().any(is_unsettled) {
            "Nothing has settled, so there is no answer: what counts here is what a subject keeps \
             up."
        } else {
            "No number of this campaign can be believed, so there is no answer; the reasons are \
             below."
        };
        said.push(nothing.to_owned());
        said.extend(super::steady::sentences(context));
        return said;
    }
    said.extend(health::sentences(context));
    let is_about_health = !said.is_empty();
    match find_overall(analysis) {
        Some(overall) => said.extend(of_contest(context, &overall)),
        None => said.extend(of_one(context, is_about_health)),
    }
    let usable = analysis.cells.iter().filter(|cell| cell.is_usable());
    if usable.clone().all(|cell| cell.standing == Belief::Suspect) {
        let hint = "Something speaks against every number, so this is a hint at most; the reasons \
                    are below.";
        said.insert(said.len().min(1), hint.to_owned());
    }
    said.extend(super::steady::sentences(context));
    said.extend(reservations(context));
    said
}

fn first_failure(context: &Context<'_>) -> Option<String> {
    context.analysis.cells.iter().find_map(|cell| match &cell.state {
        State::Failed(reason) => Some(format!(
            "The first failure: {} on {}: {reason}",
            context.label(cell.workload),
            context.subject(cell.subject)
        )),
        _ => None,
    })
}

/// A campaign in which no two subjects can be compared: the best number of each metric. One about
/// health compares its states.
fn of_one(context: &Context<'_>, is_about_health: bool) -> Vec<String> {
    let analysis = context.analysis;
    let is_told = |cell: &&Cell| cell.is_usable() && !health::is_told_by_phases(context, cell);
    let mut metrics = Vec::new();
    for cell in analysis.cells.iter().filter(is_told) {
        if !metrics.contains(&cell.headline) {
            metrics.push(cell.headline);
        }
    }
    let mut said: Vec<String> = metrics
        .into_iter()
        .filter_map(|metric| {
            let usable = analysis.cells.iter().filter(is_told).filter(|c| c.headline == metric);
            let of = |cell: &&Cell| cell.main().map_or(0.0, |e| e.median);
            let by = |a: &&Cell, b: &&Cell| of(a).total_cmp(&of(b));
            let best = match metric.better() {
                Better::Lower => usable.min_by(by),
                _ => usable.max_by(by),
            }?;
            let estimate = best.main()?;
            Some(format!(
                "The best {} of {} is {}{}, in \"{}\".",
                title(metric),
                context.subject(best.subject),
                quantity(metric, estimate.median),
                interval(estimate, |value| quantity(metric, value)),
                context.label(best.workload)
            ))
        })
        .collect();
    if !is_about_health {
        said.push(format!("There is nothing to compare it with: {}.", why_no_contest(context)));
    }
    said
}

/// Why no two subjects can be compared, where there is no contest.
fn why_no_contest(context: &Context<'_>) -> &'static str {
    let analysis = context.analysis;
    let works = || 0..analysis.workloads.len();
    let two = |is: &dyn Fn(&Cell) -> bool| {
        works().any(|work| analysis.row(work).iter().filter(|cell| is(cell)).count() > 1)
    };
    if !two(&|cell| cell.state != State::NotPlanned) {
        "no two subjects have the same workload"
    } else if has_rounds(&context.results.campaign) {
        "no two subjects have settled in the same rounds of the same workload"
    } else if !two(&Cell::is_usable) {
        "no two subjects have a number of the same workload that can be believed"
    } else {
        "no two subjects have a number above 0 of the same workload in the same repetition"
    }
}

/// The subjects against each other.
fn of_contest(context: &Context<'_>, overall: &Overall) -> Vec<String> {
    let name = |place: usize| context.subject(overall.contenders[place]);
    let contest = &overall.contest;
    let leader = overall.contenders[contest.leader];
    let merits = merits(context, leader);
    let mut said = Vec::new();
    let mut of_leader = None;
    let mut proof = None;
    match &contest.standing {
        _ if !overall.faster_without_belief(context.analysis).is_empty() => {
            said.push(format!("Nobody is named: {}.", nobody(context, overall)));
        }
        Standing::Winner(_) if context.analysis.baselines == [leader] => said.push(format!(
            "Stay with {}: over {} it is faster than every other subject{merits}.",
            name(contest.leader),
            workloads_in_words(context, overall)
        )),
        Standing::Winner(place) => said.push(format!("Take {}{merits}.", name(*place))),
        Standing::Undecided(places) if contest.can_decide() => {
            let names: Vec<&str> = places.iter().map(|place| name(*place)).collect();
            said.push(format!(
                "{} cannot be told apart over {}.",
                enumerate(&names),
                workloads_in_words(context, overall)
            ));
            if !merits.is_empty() {
                of_leader =
                    Some(format!("Of them {} had the best median{merits}.", name(contest.leader)));
            }
        }
        Standing::Undecided(_) => {
            let front: Vec<&str> =
                overall.front_runners().iter().map(|(place, _)| name(*place)).collect();
            if front.len() > 1 {
                said.push(format!(
                    "{} cannot be told apart over {}.",
                    enumerate(&front),
                    workloads_in_words(context, overall)
                ));
            } else {
                said.push(format!("{} leads{merits}.", name(contest.leader)));
            }
            if front.len() > 1 && !merits.is_empty() {
                of_leader = Some(format!("{} had the best median{merits}.", name(contest.leader)));
            }
            proof = Some(format!(
                "That is what was seen and no proof: {}.",
                what_was_seen(context, overall)
            ));
        }
    }
    said.extend(against_baseline(context));
    said.extend(of_leader);
    said.extend(by_work(context));
    said.extend(proof);
    said.push(format!(
        "Compared were {} subjects over {} ({}).",
        overall.contenders.len(),
        workloads_in_words(context, overall),
        match contest.comparisons.len() {
            1 => "one comparison".to_owned(),
            many => format!("{many} comparisons of two, all of them counted"),
        }
    ));
    if !contest.can_decide() {
        said.push(what_a_proof_takes(context, contest));
    }
    if !overall.left_out.is_empty() {
        let names: Vec<&str> = overall.left_out.iter().map(|s| context.subject(*s)).collect();
        said.push(format!(
            "{} took no part in this, because {} numbers for these workloads are not all there.",
            enumerate(&names),
            if names.len() == 1 { "its" } else { "their" }
        ));
    }
    said
}

/// How many repetitions a proof takes, and how many there are. Repetitions with the same number on
/// both sides tell nothing.
fn what_a_proof_takes(context: &Context<'_>, contest: &Contest) -> String {
    let kind = match (has_rounds(&context.results.campaign), contest.ties) {
        (true, _) => "settled rounds",
        (false, 0) => "repetitions",
        (false, _) => "repetitions whose numbers differ",
    };
    let all = contest.repetitions + contest.ties;
    let some = if all == 1 { "one".to_owned() } else { all.to_string() };
    let tied = match contest.ties {
        0 => String::new(),
        1 => ", 1 of them with equal numbers".to_owned(),
        ties => format!(", {ties} of them with equal numbers"),
    };
    let many = match contest.comparisons.len() {
        1 => String::new(),
        many => format!(", with {many} comparisons"),
    };
    format!(
        "A proof takes at least {} {kind}: of {some}{tied}{many}, even the clearest difference \
         could be chance.",
        contest.repetitions_needed
    )
}

/// Who was how often the fastest, where the repetitions cannot prove anything.
pub(super) fn what_was_seen(context: &Context<'_>, overall: &Overall) -> String {
    let front = overall.front_runners();
    let seen: Vec<String> = front
        .iter()
        .take(FEW)
        .map(|(place, count)| {
            format!(
                "{} {}",
                context.subject(overall.contenders[*place]),
                how_often(overall, *count)
            )
        })
        .collect();
    match (seen.as_slice(), front.len()) {
        ([], _) => "no repetition has all of them".to_owned(),
        (seen, few) if few <= FEW => format!("fastest was {}", seen.join(", ")),
        (_, many) => format!("{many} subjects were the fastest in some repetition"),
    }
}

/// "in 2 of 3 repetitions", of those that have all numbers.
pub(super) fn how_often(overall: &Overall, count: usize) -> String {
    match (count, overall.shared_repetitions().len()) {
        (_, 1) => "in the only repetition".to_owned(),
        (2, 2) => "in both repetitions".to_owned(),
        (count, all) if count == all => format!("in all {all} repetitions"),
        (count, all) => format!("in {count} of {all} repetitions"),
    }
}

fn workloads_in_words(context: &Context<'_>, overall: &Overall) -> String {
    let all = context.analysis.workloads.len();
    match overall.workloads.len() {
        1 if all == 1 => "the one workload".to_owned(),
        some if some == all => format!("{all} workloads together"),
        1 => format!("the one of {all} workloads that they share"),
        some => format!("the {some} of {all} workloads that they share"),
    }
}

/// The winner's best number, where there is no other subject to name beside it.
fn best_number_of(context: &Context<'_>, subject: usize) -> String {
    let analysis = context.analysis;
    let mut cells = (0..analysis.workloads.len()).map(|work| analysis.cell(work, subject));
    let first = cells.find(|cell| cell.is_usable());
    first.and_then(|cell| Some((cell, cell.main()?))).map_or(String::new(), |(cell, estimate)| {
        format!(
            ", with a {} of {} in \"{}\"",
            title(cell.headline),
            quantity(cell.headline, estimate.median),
            context.label(cell.workload)
        )
    })
}

/// "3.10 times", or "1.08 times".
pub(super) fn factor(times: f64) -> String {
    format!("{} times", digits(times))
}

/// " (95 % 3.0 to 3.2)"; empty of one repetition.
fn interval(estimate: &Estimate, write: impl Fn(f64) -> String) -> String {
    crate::report::units::ends(estimate, write)
        .map_or_else(String::new, |ends| format!(" ({}: {ends})", kind_of_interval(estimate.kind)))
}

/// So many subjects are named one by one.
const FEW: usize = 4;

/// "a, b and c".
pub(super) fn enumerate(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] if most.len() < 2 * FEW => format!("{} and {last}", most.join(", ")),
        many => format!("{} and {} others", many[..FEW].join(", "), many.len() - FEW),
    }
}
