//! `braid cache share`: gives several volumes' caches the sizes that save the most waiting, of one budget.

use braid_stack::ByteSize;

use super::advice::Advice;
use super::advise::curves_of;
use super::budget::{Choice, share as divide};
use super::change;
use crate::cli;
use braid_service::control::{CacheCurve, OUTPUT_VERSION};
use braid_service::failure::Failure;

/// A volume's cache, and what it is to have.
struct Plan {
    volume: String,
    now: u64,
    then: u64,
    /// Why it keeps what it has.
    kept: Option<&'static str>,
}

pub(super) fn share(options: &cli::CacheShare) -> Result<(), Failure> {
    let budget = options.budget.bytes();
    let mut names = options.names.clone();
    names.sort_unstable();
    names.dedup();
    let mut curves = Vec::new();
    for name in &names {
        let Ok([curve]) = <[CacheCurve; 1]>::try_from(curves_of(name)?) else {
            return Err(Failure::refused(format!(
                "{name} has several caches, and a share is for one"
            ))
            .next("the volumes that have one"));
        };
        curves.push(curve);
    }
    let plans = plan(&names, &curves, budget)?;
    if !options.plan {
        // First those that give memory back.
        for is_less in [true, false] {
            let changed = plans.iter().filter(|plan| plan.then != plan.now);
            for plan in changed.filter(|plan| (plan.then < plan.now) == is_less) {
                change::resize_to(&plan.volume, ByteSize(plan.then))?;
            }
        }
    }
    show(&plans, options, budget);
    Ok(())
}

/// Returns the size for each cache. A cache with too few reads keeps its size.
fn plan(names: &[String], curves: &[CacheCurve], budget: u64) -> Result<Vec<Plan>, Failure> {
    let choices: Vec<Vec<Choice>> = curves.iter().map(choices_of).collect();
    let Some(shared) = divide(&choices, budget) else {
        let least: u64 = choices.iter().map(|choices| choices[0].bytes).sum();
        return Err(Failure::refused(format!(
            "{:#} is less than what these caches have at least, {:#}",
            ByteSize(budget),
            ByteSize(least)
        ))
        .next("a larger budget, or fewer caches"));
    };
    let plan =
        |((name, curve), (choices, chosen)): ((&String, &CacheCurve), (&Vec<Choice>, usize))| {
            Plan {
                volume: name.clone(),
                now: curve.cache.size_bytes,
                then: choices[chosen].bytes,
                kept: (choices.len() == 1).then_some("too few reads to judge by"),
            }
        };
    Ok(names.iter().zip(curves).zip(choices.iter().zip(shared)).map(plan).collect())
}

/// The sizes that a cache may have. What its clients wait for is what its reads miss, times what the
/// origin takes.
fn choices_of(curve: &CacheCurve) -> Vec<Choice> {
    let advice = Advice::of(curve);
    let only = vec![Choice { bytes: curve.cache.size_bytes, wait: 0.0 }];
    if !advice.is_sound {
        return only;
    }
    let of = |point| {
        let wait = advice.wait_ms(point)? * curve.block_reads as f64 / 1e3;
        Some(Choice { bytes: point.size_bytes, wait })
    };
    let choices: Option<Vec<Choice>> = advice.own().map(of).collect();
    choices.filter(|choices| !choices.is_empty()).unwrap_or(only)
}

fn show(plans: &[Plan], options: &cli::CacheShare, budget: u64) {
    let taken: u64 = plans.iter().map(|plan| plan.then).sum();
    if options.json {
        let caches: Vec<_> = plans
            .iter()
            .map(|plan| {
                serde_json::json!({
                    "volume": plan.volume,
                    "before_bytes": plan.now,
                    "after_bytes": plan.then,
                    "kept_because": plan.kept,
                })
            })
            .collect();
        let json = serde_json::json!({
            "output_version": OUTPUT_VERSION,
            "budget_bytes": budget,
            "taken_bytes": taken,
            "is_plan": options.plan,
            "caches": caches,
        });
        println!("{json}");
        return;
    }
    let width = plans.iter().map(|plan| plan.volume.len()).max().unwrap_or(0);
    for Plan { volume, now, then, kept } in plans {
        let text = match (now == then, kept) {
            (_, Some(why)) => format!("{:#}, as before: {why}", ByteSize(*now)),
            (true, None) => format!("{:#}, as before", ByteSize(*now)),
            (false, None) => format!("{:#}, was {:#}", ByteSize(*then), ByteSize(*now)),
        };
        println!("{volume:>width$}: {text}");
    }
    let done = if options.plan { "would take" } else { "take" };
    println!("all {done} {:#} of {:#}", ByteSize(taken), ByteSize(budget));
}
