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

use braid_shell::shell_path;

use super::{Context, steady};
use crate::analysis::{
    Cell, Contest, Factor, Kind, KindEffect, LevelEffect, Outcome, Outlook, Phase, State,
};
use crate::report::build::words::{name_of, short};
use crate::report::units::{digits, factor, interval, quantity, span, title};
use crate::stats::{Effect, estimate};
use crate::words::enumerate;
use braid_lab::campaign::Health;

/// So many kinds of work, states or factors are told one by one.
const FEW: usize = 3;
/// More subjects than this are no choice that a sentence can tell of.
const MOST_SUBJECTS: usize = 8;
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
        let nothing = "Nothing has been measured, so there is no answer.".to_owned();
        return std::iter::once(nothing).chain(first_failure(context)).collect();
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
    if analysis.subjects <= MOST_SUBJECTS || context.factors.is_empty() {
        said.extend(of_contests(context));
    }
    said.extend(of_factors(context));
    if said.is_empty() {
        said.push(of_kinds(context));
    }
    said.extend(steady::sentence(context));
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

/// "1.90 times", "0.41 of": fit for "... single".
fn times(effect: &Effect) -> String {
    match effect.ratio {
        ratio if ratio < 0.995 => format!("{} of", factor(ratio)),
        ratio => format!("{} times", factor(ratio)),
    }
}

/// " (1.88 to 1.93)"; empty of one repetition.
fn in_brackets(effect: &Effect) -> String {
    interval(effect).map_or_else(String::new, |ends| format!(" ({ends})"))
}

/// What the subjects are at each kind of work. Without a healthy array's kinds there is none.
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
    let mut said = Vec::new();
    match winners.as_slice() {
        [] => {}
        [(winner, won)] => said.push(take(context, *winner, won, contests.len())),
        many => said.push(it_depends(context, many)),
    }
    said.extend(undecided(context, &contests, winners.is_empty()));
    said
}

/// "Take stripe: 1.90 times single in sequential reads (1.88 to 1.93), ...".
fn take(context: &Context<'_>, winner: usize, won: &[&Contest], all: usize) -> String {
    let name = context.subject(winner);
    let Some(baseline) = context.baseline_name() else {
        return format!("Take {name}: the fastest in {}.", kinds_in_words(won, all));
    };
    if context.analysis.baselines == [winner] {
        return format!("Stay with {name}: the fastest in {}.", kinds_in_words(won, all));
    }
    let mut text = format!("Take {name}: {}", merits(context, winner, won, &baseline));
    // What it costs elsewhere.
    let lost = (context.kinds.iter().zip(&context.effects)).filter_map(|(kind, effects)| {
        let own = effects.iter().find(|one| one.subject == winner)?;
        (own.outlook == Outlook::Worse).then_some((kind, own))
    });
    let lost: Vec<(&Kind, &KindEffect)> = lost.collect();
    if let Some((kind, own)) = lost.first() {
        text += &format!(
            "; but {} it in {}{}",
            times(&own.effect),
            kind.name,
            in_brackets(&own.effect)
        );
    }
    text + "."
}

/// "1.90 times single in sequential reads (1.88 to 1.93) and 1.41 times in random reads (...)".
fn merits(context: &Context<'_>, subject: usize, won: &[&Contest], baseline: &str) -> String {
    let effects = effects_of(context, subject, won);
    let ratios = || effects.iter().map(|(_, effect)| effect.ratio);
    match effects.as_slice() {
        [] => format!("the fastest in {}", kinds_in_words(won, won.len())),
        few if few.len() <= FEW => {
            let parts = few.iter().enumerate().map(|(place, (kind, effect))| {
                let of = if place == 0 { format!(" {baseline}") } else { String::new() };
                format!("{}{of} in {kind}{}", times(effect), in_brackets(effect))
            });
            let parts: Vec<String> = parts.collect();
            enumerate(&parts.iter().map(String::as_str).collect::<Vec<_>>())
        }
        many => {
            let (least, most) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
            let ends = span(&factor(least), &factor(most));
            format!("{ends} times {baseline} in {} kinds of work", many.len())
        }
    }
}

/// "It depends on the work: for reads take a (1.59 to 1.85 times single); for writes take b (1.20 times,
/// 1.15 to 1.25)." The table has each kind by itself.
fn it_depends(context: &Context<'_>, winners: &[(usize, Vec<&Contest>)]) -> String {
    let baseline = context.baseline_name();
    let parts: Vec<String> = winners
        .iter()
        .map(|(subject, won)| {
            let name = context.subject(*subject);
            let works: Vec<&str> = won.iter().map(|contest| contest.kind.name.as_str()).collect();
            let effects = effects_of(context, *subject, won);
            let how_much = match (&baseline, effects.as_slice()) {
                (None, _) | (_, []) => String::new(),
                (Some(baseline), [(_, only)]) => match interval(only) {
                    Some(ends) => format!(" ({} {baseline}, {ends})", times(only)),
                    None => format!(" ({} {baseline})", times(only)),
                },
                (Some(baseline), many) => {
                    let ratios = || many.iter().map(|(_, effect)| effect.ratio);
                    let least = factor(ratios().fold(f64::MAX, f64::min));
                    let ends = span(&least, &factor(ratios().fold(0.0, f64::max)));
                    format!(" ({ends} times {baseline})")
                }
            };
            format!("for {} take {name}{how_much}", enumerate(&works))
        })
        .collect();
    format!("It depends on the work: {}.", parts.join("; "))
}

/// What a subject is against the baseline in the kinds of work that it won; nothing of the baseline.
fn effects_of(context: &Context<'_>, subject: usize, won: &[&Contest]) -> Vec<(String, Effect)> {
    let of = |contest: &&Contest| {
        let place = context.kinds.iter().position(|kind| kind.name == contest.kind.name)?;
        let own = context.effects[place].iter().find(|one| one.subject == subject)?;
        Some((contest.kind.name.clone(), own.effect))
    };
    won.iter().filter_map(of).collect()
}

/// "sequential reads and random reads", or "all 5 kinds of work".
fn kinds_in_words(contests: &[&Contest], all: usize) -> String {
    let names: Vec<&str> = contests.iter().map(|contest| contest.kind.name.as_str()).collect();
    match names.len() {
        few if few <= FEW => enumerate(&names),
        many if many == all => format!("all {many} kinds of work"),
        many => format!("{many} of {all} kinds of work"),
    }
}

/// What cannot be told, why, and what it would take.
fn undecided(context: &Context<'_>, contests: &[&Contest], alone: bool) -> Vec<String> {
    let mut said = Vec::new();
    let with = |is: &dyn Fn(&Outcome) -> bool| -> Vec<&Contest> {
        contests.iter().copied().filter(|contest| is(&contest.outcome)).collect()
    };
    let alike = with(&|outcome| matches!(outcome, Outcome::Alike(_)));
    if !alike.is_empty() {
        let apart = alike.iter().map(|contest| match contest.outcome {
            Outcome::Alike(apart) => apart,
            _ => 0.0,
        });
        let who = if alone { subjects_in_words(context, alike[0]) } else { "all".to_owned() };
        said.push(format!(
            "In {} {who} are alike, within {} %.",
            kinds_in_words(&alike, contests.len()),
            digits(100.0 * apart.fold(0.0, f64::max))
        ));
    }
    let open = with(&|outcome| matches!(outcome, Outcome::Open { .. }));
    if let Some(first) = open.first() {
        let who = subjects_in_words(context, first);
        let lead = context.subject(first.leader());
        let mut text = format!(
            "{who} cannot be told apart in {}: {lead} was {} % ahead of the next, and repetitions \
             scatter by {} %.",
            kinds_in_words(&open, contests.len()),
            digits(100.0 * (first.margin.ratio - 1.0)),
            digits(100.0 * first.margin.log_sd)
        );
        if !first.margin.has_interval() {
            text = format!(
                "{who} cannot be told apart in {}: there is one repetition.",
                kinds_in_words(&open, contests.len())
            );
        }
        said.push(text + &what_it_takes(context, &open));
    }
    for contest in with(&|outcome| matches!(outcome, Outcome::Unbelieved(_))) {
        let Outcome::Unbelieved(count) = contest.outcome else { continue };
        said.push(format!(
            "In {} nobody is named: {count} of the subjects were faster than {}, and their numbers \
             are not believed.",
            contest.kind.name,
            context.subject(contest.leader())
        ));
    }
    said
}

/// " It takes about 7 more repetitions, some 9 minutes: `braid lab resume ...`".
fn what_it_takes(context: &Context<'_>, open: &[&Contest]) -> String {
    let now = context.results.campaign.repetitions as usize;
    let needed = open.iter().map(|contest| match contest.outcome {
        Outcome::Open { repetitions } => repetitions,
        _ => None,
    });
    let Some(Some(needed)) = needed.max() else {
        return " It would take very many more repetitions, or a quieter machine.".to_owned();
    };
    let more = needed.saturating_sub(now).max(1);
    let seconds = context.seconds_of_a_repetition() * more as f64;
    let time = match seconds {
        s if s < 90.0 => format!("{s:.0} seconds"),
        s if s < 5400.0 => format!("{:.0} minutes", (s / 60.0).ceil()),
        s => format!("{:.1} hours", s / 3600.0),
    };
    let folder = shell_path(context.dir);
    format!(
        " About {more} more {} would tell, {time}: `braid lab resume {folder} --repetitions {}`.",
        if more == 1 { "repetition" } else { "repetitions" },
        now + more
    )
}

fn subjects_in_words(context: &Context<'_>, contest: &Contest) -> String {
    let names: Vec<&str> =
        contest.ranking.iter().map(|subject| context.subject(*subject)).collect();
    if names.len() > MOST_SUBJECTS {
        return format!("{} subjects", names.len());
    }
    enumerate(&names)
}

/// What each state costs: "raid1 degraded reads at 0.53 of its healthy rate (0.52 to 0.54) and writes
/// at 1.00 (0.98 to 1.02)", a sentence for each subject; and how long the recovery took.
fn of_phases(context: &Context<'_>) -> Vec<String> {
    let mut said = Vec::new();
    for subject in 0..context.analysis.subjects {
        let of: Vec<_> = context.phases.iter().filter(|one| one.subject == subject).collect();
        let mut parts: Vec<String> = Vec::new();
        for phase in [Phase::Degraded, Phase::Rebuilding, Phase::Scrubbing] {
            let works: Vec<String> = of
                .iter()
                .filter(|one| one.phase == phase)
                .map(|one| {
                    let ends = in_brackets(&one.effect);
                    format!("{} {}{ends}", one.direction, factor(one.effect.ratio))
                })
                .collect();
            if !works.is_empty() {
                parts.push(format!("{} {}", phase.words(), works.join(" and ")));
            }
        }
        if parts.is_empty() {
            continue;
        }
        let mut text =
            format!("Of its healthy speed {} does, {}", context.subject(subject), parts.join("; "));
        if let Some(rebuild) = rebuild_in_words(context, subject) {
            text += &format!("; {rebuild}");
        }
        said.push(text + ".");
    }
    let left = said.len().saturating_sub(FEW);
    said.truncate(FEW);
    if let Some(last) = said.last_mut().filter(|_| left > 0) {
        *last += &format!(" ({left} more are in the table.)");
    }
    said
}

/// "a recovery took 42.0 s (40.1 to 44.7 s)", or that none ended.
pub(super) fn rebuild_in_words(context: &Context<'_>, subject: usize) -> Option<String> {
    let rebuilds = || context.rebuilds.iter().filter(|one| one.subject == subject);
    let ended: Vec<f64> = rebuilds().flat_map(|one| one.ended_s.iter().copied()).collect();
    let unended: Vec<f64> = rebuilds().flat_map(|one| one.unended_s.iter().copied()).collect();
    let longest = unended.iter().copied().fold(0.0, f64::max);
    let all = ended.len() + unended.len();
    match (estimate(&ended), unended.len()) {
        (None, 0) => None,
        (None, _) => Some(format!("no recovery had ended after {} s", digits(longest))),
        (Some(took), some) => {
            let ends = match took.count {
                1 => String::new(),
                _ => format!(" ({} s)", span(&digits(took.low), &digits(took.high))),
            };
            let open = match some {
                0 => String::new(),
                some => format!(", and {some} of {all} had not ended with their trials"),
            };
            Some(format!("a recovery took {} s{ends}{open}", digits(took.median)))
        }
    }
}

/// What each factor does, the strongest first.
fn of_factors(context: &Context<'_>) -> Vec<String> {
    let strength = |factor: &&Factor| {
        let all = factor.levels.iter().flat_map(|level| level.effects.iter().flatten());
        let proven = all.filter(|one| one.outlook != Outlook::Same);
        proven.map(|one| one.effect.ratio.ln().abs()).fold(0.0, f64::max)
    };
    let mut factors: Vec<&Factor> = context.factors.iter().filter(|f| is_asked(f)).collect();
    factors.sort_by(|a, b| strength(b).total_cmp(&strength(a)));
    factors.into_iter().filter_map(of_factor).collect()
}

/// Whether a study would ask for it: not how large requests are, or how many are under way, which a
/// campaign varies to look at subjects from several sides.
fn is_asked(factor: &Factor) -> bool {
    !["block_size", "bs", "iodepth", "threads", "drop_caches", "size"]
        .contains(&factor.dimension.as_str())
}

/// "Members: 6 read 2.90 times as fast as 1 (2.80 to 3.00) and write ..." by the level that is furthest
/// from the reference in each direction; or that it makes no difference.
fn of_factor(factor: &Factor) -> Option<String> {
    let name = capital(&name_of(&factor.dimension));
    let reference = short(&factor.dimension, &factor.levels[factor.reference].value);
    let mut parts = Vec::new();
    let mut most_apart: Option<f64> = Some(0.0);
    for (place, direction) in factor.directions.iter().enumerate() {
        let all: Vec<(String, &LevelEffect)> = factor
            .levels
            .iter()
            .filter_map(|level| {
                let effect = level.effects[place].as_ref()?;
                Some((short(&factor.dimension, &level.value), effect))
            })
            .collect();
        let furthest = |one: &&(String, &LevelEffect)| one.1.effect.ratio.ln().abs();
        let proven = all.iter().filter(|(_, one)| one.outlook != Outlook::Same);
        if let Some((level, one)) = proven.max_by(|a, b| furthest(a).total_cmp(&furthest(b))) {
            let by = match one.highest > 1.25 * one.lowest && one.groups > 1 {
                true => format!(
                    ", {} by what else varies",
                    span(&factor_of(one.lowest), &factor_of(one.highest))
                ),
                false => String::new(),
            };
            let what = format!("{} as fast{}{by}", times(&one.effect), in_brackets(&one.effect));
            parts.push(format!("{direction} with {level} are {what}"));
        }
        for (_, one) in &all {
            let apart = one.effect.at_most_apart();
            most_apart = most_apart.zip(apart).map(|(most, apart)| most.max(apart));
        }
    }
    if !parts.is_empty() {
        return Some(format!("{name}, against {reference}: {}.", parts.join("; ")));
    }
    let apart = most_apart.filter(|apart| *apart > 0.0 && *apart < 0.1)?;
    Some(format!("{name}: no level differs by more than {} %.", digits(100.0 * apart)))
}

fn factor_of(ratio: f64) -> String {
    factor(ratio)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The best number of each kind, where nothing is compared.
fn of_kinds(context: &Context<'_>) -> String {
    let analysis = context.analysis;
    let parts: Vec<String> = context
        .kinds
        .iter()
        .filter_map(|kind| {
            let cells = kind.workloads.iter().flat_map(|work| analysis.row(*work));
            let best = cells.filter(|cell| cell.is_usable()).max_by(|a, b| {
                let speed = |cell: &Cell| {
                    let median = cell.main().map_or(0.0, |main| main.median);
                    let is_time = cell.headline.better() == braid_lab::metric::Better::Lower;
                    if is_time { 1.0 / median } else { median }
                };
                speed(a).total_cmp(&speed(b))
            })?;
            let main = best.main()?;
            Some(format!(
                "{} in \"{}\" on {}: {}",
                title(best.headline),
                context.label(best.workload),
                context.subject(best.subject),
                quantity(best.headline, main.median)
            ))
        })
        .take(FEW)
        .collect();
    format!("Nothing is compared here. The best {}.", parts.join("; "))
}
