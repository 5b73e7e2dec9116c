//! The answer in words: one to three sentences, the most important first.
//!
//! ```text
//!  nothing measured, nothing believed ──> that
//!  several states of an array         ──> what a lost member costs
//!  subjects to choose from            ──> take which, how many times as fast, at which work
//!  something varied                   ──> what each factor does
//!  none of these                      ──> the numbers
//! ```
//!
//! Rules: a subject is recommended only where it is proven best; every factor comes with its
//! interval; where nothing is proven, what it would take is said, with the command. What speaks
//! against numbers is the list of doubts', not the answer's.

use super::factors::is_asked;
use super::words::{FEW, kinds_in_words, name_of, percent, short};
use super::{Context, steady, undecided};
use crate::analysis::{
    Cell, Contest, Factor, LevelEffect, Outcome, Outlook, Phase, Rebuild, State, Unknown,
};
use crate::report::units::{digits, interval, quantity, span, title};
use crate::stats::{Effect, estimate};
use crate::words::enumerate;
use braid_lab::campaign::Health;
use braid_lab::metric::Better;

/// Sentences of an answer.
const MOST: usize = 3;

/// The sentences.
pub(super) fn sentences(context: &Context<'_>) -> Vec<String> {
    let mut said = of_numbers(context);
    said.truncate(MOST);
    said
}

fn of_numbers(context: &Context<'_>) -> Vec<String> {
    let analysis = context.analysis;
    if analysis.done == 0 {
        return vec!["Nothing has been measured, so there is no answer.".to_owned()];
    }
    if !analysis.cells.iter().any(Cell::is_usable) {
        let is_unsettled = |cell: &Cell| matches!(cell.state, State::Unsettled(_));
        let nothing = if analysis.cells.iter().any(is_unsettled) {
            "Nothing has settled, so there is no answer: what counts here is what a subject keeps \
             up."
        } else {
            "No number of this campaign can be believed, so there is no answer."
        };
        return std::iter::once(nothing.to_owned()).chain(steady::sentence(context)).collect();
    }
    let mut said = of_phases(context);
    if !context.is_study() {
        said.extend(of_contests(context));
    }
    said.extend(of_factors(context));
    if said.is_empty() {
        said.push(of_kinds(context));
    }
    said.extend(steady::sentence(context));
    said
}

/// "1.90 times", "0.41 of": fit for "... single".
fn times(effect: &Effect) -> String {
    match effect.ratio {
        ratio if ratio < 0.995 => format!("{} of", digits(ratio)),
        ratio => format!("{} times", digits(ratio)),
    }
}

/// " (1.88 to 1.93)"; empty of one repetition.
fn in_brackets(effect: &Effect) -> String {
    interval(effect, 1.0).map_or_else(String::new, |ends| format!(" ({ends})"))
}

/// The results of the subjects at each kind of work, for healthy arrays.
fn of_contests(context: &Context<'_>) -> Vec<String> {
    let is_healthy = |contest: &&Contest| {
        let works = contest.kind.workloads.iter();
        let mut healths = works.map(|work| context.analysis.workloads[*work].workload.setup.health);
        context.phases.is_empty() || healths.all(|health| health == Health::Healthy)
    };
    let contests: Vec<&Contest> = context.contests.iter().filter(is_healthy).collect();
    let mut winners: Vec<(usize, Vec<&Contest>)> = Vec::new();
    for contest in &contests {
        let Some(winner) = contest.winner() else { continue };
        match winners.iter_mut().find(|(subject, _)| *subject == winner) {
            Some((_, won)) => won.push(contest),
            None => winners.push((winner, vec![contest])),
        }
    }
    let merits: Vec<String> = winners
        .iter()
        .map(|(winner, won)| {
            format!(
                "{}: {}",
                context.subject(*winner),
                merits(context, *winner, won, contests.len())
            )
        })
        .collect();
    let mut said = match (winners.as_slice(), merits.as_slice()) {
        ([(winner, _)], [only]) if context.analysis.baselines == [*winner] => {
            vec![format!("Stay with {only}.")]
        }
        ([(winner, _)], [only]) => vec![format!("Take {only}{}.", cost(context, *winner))],
        (_, []) => Vec::new(),
        (_, many) => vec![format!("It depends on the work. Take {}.", many.join("; take "))],
    };
    // If the control is the reason why no subject is named, that sentence gives its distance.
    let is_told = |one: &&Contest| matches!(one.outcome, Outcome::Open(Unknown::Place(_)));
    said.extend(control(context).filter(|_| !contests.iter().any(is_told)));
    said.extend(undecided::sentences(context, &contests));
    said
}

/// The distance of the baseline from itself, measured in another place: the effect of a place.
fn control(context: &Context<'_>) -> Option<String> {
    let control = context.analysis.control?;
    let (kind, effect) = context
        .kinds
        .iter()
        .zip(&context.effects)
        .filter_map(|(kind, all)| {
            Some((kind, all.iter().find(|one| one.subject == control)?.effect))
        })
        .max_by(|(_, a), (_, b)| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))?;
    let baseline = context.baseline_name()?;
    let apart = percent(effect.ratio.ln().abs().exp());
    let at_most = if context.kinds.len() > 1 { "up to " } else { "" };
    Some(format!(
        "{baseline}, measured a second time as {}, differs from itself by {at_most}{apart} % (in {}).",
        context.subject(control),
        kind.name
    ))
}

/// "1.90 times single in sequential reads (1.88 to 1.93) and 1.41 times in random reads (...)".
fn merits(context: &Context<'_>, subject: usize, won: &[&Contest], all: usize) -> String {
    let effects = won.iter().filter_map(|contest| {
        let place = context.kinds.iter().position(|kind| kind.name == contest.kind.name)?;
        let own = context.effects[place].iter().find(|one| one.subject == subject)?;
        Some((contest.kind.name.as_str(), own.effect))
    });
    let effects: Vec<(&str, Effect)> = effects.collect();
    let baseline = context.baseline_name().unwrap_or_default();
    let ratios = || effects.iter().map(|(_, effect)| effect.ratio);
    match effects.as_slice() {
        [] => format!("the fastest in {}", kinds_in_words(won, all)),
        few if few.len() <= FEW => {
            let parts = few.iter().enumerate().map(|(place, (kind, effect))| {
                let of = if place == 0 { format!(" {baseline}") } else { String::new() };
                format!("{}{of} in {kind}{}", times(effect), in_brackets(effect))
            });
            let parts: Vec<String> = parts.collect();
            enumerate(&parts.iter().map(String::as_str).collect::<Vec<_>>())
        }
        many => {
            // Two numbers with "to" between them would pass for an interval.
            let mut ratios: Vec<f64> = ratios().collect();
            ratios.sort_by(f64::total_cmp);
            let ratios: Vec<String> = ratios.into_iter().map(digits).collect();
            let ratios = enumerate(&ratios.iter().map(String::as_str).collect::<Vec<_>>());
            format!("{ratios} times {baseline} in {} kinds of work", many.len())
        }
    }
}

/// The disadvantage of a subject in another kind of work, the first of several.
fn cost(context: &Context<'_>, winner: usize) -> String {
    let mut kinds = context.kinds.iter().zip(&context.effects);
    let lost = kinds.find_map(|(kind, effects)| {
        let own = effects.iter().find(|one| one.subject == winner)?;
        (own.outlook == Outlook::Worse).then_some((kind, own.effect))
    });
    lost.map_or_else(String::new, |(kind, effect)| {
        format!("; but {} it in {}{}", times(&effect), kind.name, in_brackets(&effect))
    })
}

/// The cost of each state, a sentence for each subject: "Of its healthy speed raid1 does, degraded reads 0.53
/// (0.52 to 0.54) and writes 1.00 (0.98 to 1.02)"; and the time of the recovery.
fn of_phases(context: &Context<'_>) -> Vec<String> {
    let mut said = Vec::new();
    for subject in 0..context.analysis.subjects {
        let of = || context.phases.iter().filter(|one| one.subject == subject);
        let in_phase = |phase: Phase| {
            let works: Vec<String> = of()
                .filter(|one| one.phase == phase)
                .map(|one| {
                    let ratio = digits(one.effect.ratio);
                    format!("{} {ratio}{}", one.direction, in_brackets(&one.effect))
                })
                .collect();
            (!works.is_empty()).then(|| format!("{} {}", phase.words(), works.join(" and ")))
        };
        let phases = [Phase::Degraded, Phase::Rebuilding, Phase::Scrubbing];
        let mut parts: Vec<String> = phases.into_iter().filter_map(in_phase).collect();
        if parts.is_empty() {
            continue;
        }
        let rebuilds: Vec<&Rebuild> =
            context.rebuilds.iter().filter(|one| one.subject == subject).collect();
        parts.extend(rebuild_in_words(&rebuilds));
        let name = context.subject(subject);
        said.push(format!("Of its healthy speed {name} does, {}.", parts.join("; ")));
    }
    let left = said.len().saturating_sub(FEW);
    said.truncate(FEW);
    if let Some(last) = said.last_mut().filter(|_| left > 0) {
        *last += &format!(" ({left} more are in the table.)");
    }
    said
}

/// "a recovery took 42.0 s (40.1 to 44.7 s)", or that none ended.
pub(super) fn rebuild_in_words(rebuilds: &[&Rebuild]) -> Option<String> {
    let ended: Vec<f64> = rebuilds.iter().flat_map(|one| one.ended_s.iter().copied()).collect();
    let unended: Vec<f64> = rebuilds.iter().flat_map(|one| one.unended_s.iter().copied()).collect();
    let Some(took) = estimate(&ended) else {
        let longest = unended.iter().copied().reduce(f64::max)?;
        return Some(format!("no recovery had ended after {} s", digits(longest)));
    };
    let ends = match took.count {
        1 => String::new(),
        _ => format!(" ({} s)", span(&digits(took.low), &digits(took.high))),
    };
    let open = match unended.len() {
        0 => String::new(),
        some => format!(", and {some} of {} had not ended with their trials", some + ended.len()),
    };
    Some(format!("a recovery took {} s{ends}{open}", digits(took.median)))
}

/// The effect of each factor, the strongest first.
fn of_factors(context: &Context<'_>) -> Vec<String> {
    let strength = |factor: &Factor| {
        let all = factor.levels.iter().flat_map(|level| level.effects.iter().flatten());
        let proven = all.filter(|one| one.outlook != Outlook::Same);
        proven.map(|one| one.effect.ratio.ln().abs()).fold(0.0, f64::max)
    };
    let mut factors: Vec<&Factor> = context.factors.iter().filter(|f| is_asked(f)).collect();
    factors.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
    factors.into_iter().filter_map(of_factor).collect()
}

/// "Members, against 1: reads with 6 are 2.90 times as fast (2.80 to 3.00); writes with ..." by the
/// level that is furthest from the reference in each direction; or that it makes no difference.
fn of_factor(factor: &Factor) -> Option<String> {
    let name = name_of(&factor.dimension);
    let (first, rest) = name.split_at_checked(1)?;
    let name = first.to_uppercase() + rest;
    let spell = |level: usize| short(&factor.dimension, &factor.levels[level].value);
    let mut parts = Vec::new();
    let mut most_apart: Option<f64> = Some(0.0);
    for (place, direction) in factor.directions.iter().enumerate() {
        let levels = factor.levels.iter().enumerate();
        let all: Vec<(usize, &LevelEffect)> = levels
            .filter_map(|(index, level)| Some((index, level.effects[place].as_ref()?)))
            .collect();
        let distance = |one: &&(usize, &LevelEffect)| one.1.effect.ratio.ln().abs();
        let proven = all.iter().filter(|(_, one)| one.outlook != Outlook::Same);
        if let Some((level, one)) = proven.max_by(|a, b| distance(a).total_cmp(&distance(b))) {
            let by = match one.highest > 1.25 * one.lowest && one.groups > 1 {
                true => {
                    let ends = span(&digits(one.lowest), &digits(one.highest));
                    format!(", {ends} by what else varies")
                }
                false => String::new(),
            };
            let what = format!(
                "{} times as fast{}{by}",
                digits(one.effect.ratio),
                in_brackets(&one.effect)
            );
            parts.push(format!("{direction} with {} are {what}", spell(*level)));
        }
        for (_, one) in &all {
            let apart = one.effect.at_most_apart();
            most_apart = most_apart.zip(apart).map(|(most, apart)| most.max(apart));
        }
    }
    if !parts.is_empty() {
        return Some(format!("{name}, against {}: {}.", spell(factor.reference), parts.join("; ")));
    }
    let apart = most_apart.filter(|apart| *apart > 0.0 && *apart < 0.1)?;
    Some(format!("{name}: no level differs by more than {} %.", digits(100.0 * apart)))
}

/// The best number of each kind, where nothing is compared.
fn of_kinds(context: &Context<'_>) -> String {
    let speed = |cell: &Cell| {
        let median = cell.main().map_or(0.0, |main| main.median);
        if cell.headline.better() == Better::Lower { 1.0 / median } else { median }
    };
    let best_of = |kind: &crate::analysis::Kind| {
        let cells = kind.workloads.iter().flat_map(|work| context.analysis.row(*work));
        let usable = cells.filter(|cell| cell.is_usable());
        let best = usable.max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        Some(format!(
            "{} in \"{}\" on {}: {}",
            title(best.headline),
            context.label(best.workload),
            context.subject(best.subject),
            quantity(best.headline, best.main()?.median)
        ))
    };
    let parts: Vec<String> = context.kinds.iter().filter_map(best_of).take(FEW).collect();
    format!("Nothing is compared here. The best {}.", parts.join("; "))
}
