//! What to take for which kind of work, and where nobody can be named.

use super::{FEW, enumerate};
use crate::analysis::{Overall, compare_kinds};
use crate::report::build::Context;
use crate::stats::Standing;

/// What to take for which kind of work: what is proven, then what was seen in every repetition,
/// then where nothing stood out, and where numbers that cannot be believed are in the way. Empty
/// of one kind.
pub(super) fn by_work(context: &Context<'_>) -> Vec<String> {
    let contests = compare_kinds(context.analysis).contests;
    if contests.len() < 2 {
        return Vec::new();
    }
    let (mut proven, mut seen, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let (mut nobody_in, mut lacking) = (Vec::new(), Vec::new());
    let mut repetitions = 0;
    for (kind, overall) in &contests {
        let without = overall.without_belief(context.analysis);
        if !overall.faster_without_belief(context.analysis).is_empty() {
            nobody_in.push(format!("in {}: {}", kind.name, nobody(context, overall)));
            continue;
        }
        if !without.is_empty() {
            lacking.push(format!("{} in {}", of_how_many(context, overall), kind.name));
        }
        repetitions = repetitions.max(overall.shared_repetitions().len());
        let name = |place: usize| context.subject(overall.contenders[place]);
        match (&overall.contest.standing, overall.front_runners().as_slice()) {
            (Standing::Winner(place), _) => proven.push((name(*place), kind.name.as_str())),
            (Standing::Undecided(_), [(only, _)]) if !overall.contest.can_decide() => {
                seen.push((name(*only), kind.name.as_str()));
            }
            _ => open.push(kind.name.as_str()),
        }
    }
    let mut said = Vec::new();
    if !proven.is_empty() {
        let parts = grouped(&proven, |subject, works| format!("for {works} take {subject}"));
        said.push(format!("By work: {}.", parts.join("; ")));
    }
    if !seen.is_empty() {
        let parts = grouped(&seen, |subject, works| format!("{subject} in {works}"));
        let when = if repetitions == 1 { "the only repetition" } else { "every repetition" };
        said.push(format!("By work, the fastest in {when}: {}.", parts.join("; ")));
    }
    // Alone it would say what the sentence on all workloads says already.
    if !said.is_empty() && !open.is_empty() {
        said.push(format!("Nothing stood out in {}.", enumerate(&open)));
    }
    let left = nobody_in.len().saturating_sub(FEW);
    nobody_in.truncate(FEW);
    said.extend(nobody_in.into_iter().map(|why| format!("Nobody is named {why}.")));
    if left > 0 {
        said.push(format!("The same goes for {left} kinds of work more; the overview has them."));
    }
    if !lacking.is_empty() {
        let left = lacking.len().saturating_sub(FEW);
        lacking.truncate(FEW);
        let more = if left > 0 { format!(", and {left} kinds more") } else { String::new() };
        said.push(format!(
            "Without a number that can be believed are {}{more}.",
            lacking.join(", ")
        ));
    }
    said
}

/// "55 of 85 subjects".
fn of_how_many(context: &Context<'_>, overall: &Overall) -> String {
    let all = overall.planned(context.analysis);
    format!("{} of {all} subjects", overall.without_belief(context.analysis).len())
}

/// Why nobody is named: "55 of 85 subjects have no number that can be believed, and 40 of them were
/// faster than stripe, the fastest that has one".
pub(super) fn nobody(context: &Context<'_>, overall: &Overall) -> String {
    let leader = context.subject(overall.contenders[overall.contest.leader]);
    let without = overall.without_belief(context.analysis);
    let faster = overall.faster_without_belief(context.analysis);
    let who = match (without.as_slice(), faster.len()) {
        ([only], _) => {
            return format!(
                "{} was faster than {leader}, the fastest that can be believed, and its own \
                 number cannot be",
                context.subject(*only)
            );
        }
        (_, 1) => "one of them was".to_owned(),
        (_, many) => format!("{many} of them were"),
    };
    format!(
        "{} have no number that can be believed, and {who} faster than {leader}, the fastest that \
         has one",
        of_how_many(context, overall)
    )
}

/// The kinds of work of each subject, in words, in the order in which subjects come up.
fn grouped(pairs: &[(&str, &str)], words: impl Fn(&str, &str) -> String) -> Vec<String> {
    let mut subjects: Vec<&str> = Vec::new();
    for (subject, _) in pairs {
        if !subjects.contains(subject) {
            subjects.push(subject);
        }
    }
    subjects
        .into_iter()
        .map(|subject| {
            let of_it = pairs.iter().filter(|(other, _)| *other == subject);
            let works: Vec<&str> = of_it.map(|(_, work)| *work).collect();
            words(subject, &enumerate(&works))
        })
        .collect()
}
