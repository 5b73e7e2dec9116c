//! Advice in sentences.

use std::collections::BTreeSet;

use braid_level::Level;
use braid_model::Kind;
use braid_predict::Workload;
use braid_predict::advise::{Candidate, Limit, Need, twin};
use braid_shell::shell_word;
use braid_stack::ByteSize;

use super::confirm::measured_part;
use super::costs::Costs;
use super::members::Members;
use super::words::{between, rate, ratio, size, sum, time};
use super::{Advice, KEPT_UP, asked};

/// The sentence on the layout that the rule of redundancy compares with the best: the loss is a real difference, the
/// speed is not.
fn beside(advice: &Advice, best: &Candidate) -> Option<String> {
    let twin = twin(&advice.ranked, advice.need)?;
    let (name, room) = (name(advice, twin), size(twin.capacity));
    let rate = match (advice.need, &advice.members.prices, twin.latency_ns()) {
        (Need::Price { .. }, Some(prices), _) => {
            format!("{}, {},", rate(twin.rate()), per_price(twin, prices))
        }
        (Need::Latency, _, Some(ns)) => format!("{} with p99 of {}", rate(twin.rate()), time(ns)),
        _ => rate(twin.rate()),
    };
    let error = match (best.measured, twin.measured) {
        (Some(_), Some(_)) => "repetitions scatter",
        _ => "predictions are off",
    };
    Some(match best.losses {
        0 => format!(
            "But {name} does {rate} and holds {room}, and {}: the two differ by less than {error}.",
            loss(twin)
        ),
        _ => format!(
            "Without redundancy, {name} does {rate} and holds {room}: it is ahead by less than {error}."
        ),
    })
}

/// Price and watts of the best layout, and the speed for them.
fn cost(advice: &Advice, best: &Candidate) -> Option<String> {
    let Members { prices, watts, .. } = &advice.members;
    let price = prices.as_ref().map(|prices| {
        let (price, unit) = (prices.sum(&best.members), &prices.unit);
        let with = |figure: String| format!("{figure} {unit}").trim_end().to_owned();
        let tb = with(ratio(price / (best.capacity as f64 / 1e12)));
        format!("It costs {}: {}, {tb} per TB.", with(sum(price)), per_price(best, prices))
    });
    let watts = watts.as_ref().map(|watts| {
        let watts = watts.sum(&best.members);
        format!("It draws {} W: {} per W.", sum(watts), rate(best.rate() / watts))
    });
    let both: Vec<_> = price.into_iter().chain(watts).collect();
    (!both.is_empty()).then(|| both.join(" "))
}

fn per_price(one: &Candidate, prices: &Costs) -> String {
    let unit = if prices.unit.is_empty() { "unit of price" } else { &prices.unit };
    format!("{} per {unit}", rate(one.rate() / prices.sum(&one.members)))
}

/// The room that each redundancy costs.
fn room(advice: &Advice) -> Option<String> {
    let most = |losses: usize| {
        let mut alike = advice.ranked.iter().filter(|one| one.losses == losses);
        let most = alike.clone().map(|one| one.capacity).max()?;
        // Chunks leave a remainder, which makes no difference.
        alike.find(|one| one.capacity >= most / 100 * 99)
    };
    let all = most(0)?;
    let cost = |losses: usize| {
        let one = most(losses)?;
        let room = size(all.capacity.saturating_sub(one.capacity));
        let members = if losses == 1 { "one member may fail" } else { "two may" };
        Some(format!("that {members} costs {room} ({})", short(advice, one)))
    };
    let costs: Vec<_> = [1, 2].into_iter().filter_map(cost).collect();
    let is_asked = advice.need == Need::Capacity && !costs.is_empty();
    is_asked.then(|| {
        format!(
            "Without redundancy there is room for {} ({}); {}.",
            size(all.capacity),
            short(advice, all),
            costs.join(", ")
        )
    })
}

/// The level and the number of members, of which kinds if there are several.
pub(super) fn short(advice: &Advice, one: &Candidate) -> String {
    let all = advice.members.offers.iter().map(|offer| offer.name.as_str());
    let is_mixed = !advice.is_real(one) && all.collect::<BTreeSet<_>>().len() > 1;
    let names: Vec<_> =
        kinds(advice, one).iter().map(|(name, count)| format!("{count} {name}")).collect();
    match (one.level, is_mixed) {
        (None, false) => "alone".to_owned(),
        (None, true) => format!("{} alone", kinds(advice, one)[0].0),
        (Some(level), false) => format!("{} × {}", level.name(), one.members.len()),
        (Some(level), true) => format!("{} × {}", level.name(), names.join(" + ")),
    }
}

/// The names of members, and how many have each.
fn kinds<'a>(advice: &'a Advice, one: &Candidate) -> Vec<(&'a str, usize)> {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for index in &one.members {
        let name = advice.members.offers[*index].name.as_str();
        match kinds.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += 1,
            None => kinds.push((name, 1)),
        }
    }
    kinds
}

pub(super) fn answer(advice: &Advice) -> Vec<String> {
    let best = &advice.ranked[0];
    let times = alone(advice, best).map(|alone| {
        let times = best.rate() / alone.rate().max(1.0);
        // Else it looks like an error.
        let why = match times > best.members.len() as f64 && best.read_ahead > alone.read_ahead {
            true => format!(" with its read-ahead of {}", ByteSize(alone.read_ahead)),
            false => String::new(),
        };
        format!(", {times:.1} times one member alone{why}")
    });
    let times = times.unwrap_or_default();
    let name = name(advice, best);
    let first = match best.measured {
        None => {
            let predicted = best.outcome.rate();
            let (rate, error) = (rate(predicted), between(best.interval(predicted)));
            format!("Take {name}: {rate} predicted ({error}){times}; {}.", reason(best))
        }
        Some(one) => {
            let (expected, error) = (rate(one.expected), between(best.interval(one.expected)));
            let so = match best.differs() {
                true => format!(", which is not what was predicted: {expected} ({error})"),
                false => format!("; {expected} were predicted, and {}", reason(best)),
            };
            let (rate, range) = (rate(one.rate), between(one.range));
            format!("Take {name}: {rate} measured ({range}){times}{so}.")
        }
    };
    let mut answer = vec![first, format!("It holds {}; {}.", size(best.capacity), loss(best))];
    answer.extend(cost(advice, best));
    answer.extend(beside(advice, best));
    answer.extend(room(advice));
    answer.extend(waiting(advice, best));
    answer.extend(kept_up(advice, best));
    if let Some(life) = best.life {
        let amplification = best.amplification.unwrap_or(1.0);
        answer.push(format!(
            "Each byte written programs {amplification:.1}; a member is worn after {} of such writes.",
            size(life as u64)
        ));
    }
    answer.extend(advice.beside.iter().map(|one| one.sentence.clone()));
    answer.extend(create(advice, best).map(|line| format!("Next: {line}")));
    let measure = "To measure it, and lose ALL THAT IS ON THE DEVICES";
    answer.extend(advice.next.iter().map(|line| format!("{measure}: {line}")));
    answer
}

/// The latency of requests, if latency is the need.
fn waiting(advice: &Advice, one: &Candidate) -> Option<String> {
    let is_asked = advice.need == Need::Latency && !matches!(advice.workload, Workload::Trace(_));
    let none = || "No request is waited for: layouts are ranked by throughput.".to_owned();
    is_asked.then(|| p99(advice, one).map_or_else(none, |p99| format!("Latency: {p99}.")))
}

/// The 99th percentile of latency.
fn p99(advice: &Advice, one: &Candidate) -> Option<String> {
    let alone = alone(advice, one).and_then(Candidate::latency_ns);
    let alone = alone.map_or_else(String::new, |ns| format!(", of one member alone {}", time(ns)));
    Some(format!("p99 {}{alone}", time(one.latency_ns()?)))
}

/// The sentence on whether a layout keeps up with a trace.
fn kept_up(advice: &Advice, one: &Candidate) -> Option<String> {
    let Workload::Trace(all) = &advice.workload else { return None };
    let (part, of) = match one.measured {
        Some(_) => (measured_part(all), "In its busiest seconds, which were measured, the trace"),
        None => (all.clone(), "The trace"),
    };
    let asked = asked(&part)?;
    let so = match one.rate() >= KEPT_UP * asked {
        true => "as fast as it asks for it",
        false => "slower than it asks for it",
    };
    let within = p99(advice, one).map_or_else(String::new, |p99| format!(": {p99}"));
    Some(format!("{of} asks for {}, and that is done {so}{within}.", rate(asked)))
}

/// The best member alone, if `one` is more, and as much is known of both.
fn alone<'a>(advice: &'a Advice, one: &Candidate) -> Option<&'a Candidate> {
    let alone = advice.ranked.iter().find(|one| one.level.is_none())?;
    let alike = one.measured.is_some() == alone.measured.is_some();
    (alike && one.level.is_some()).then_some(alone)
}

/// The layout in words.
pub(super) fn name(advice: &Advice, one: &Candidate) -> String {
    let names = kinds(advice, one);
    let several = |(name, count): &(&str, usize)| match advice.is_real(one) {
        true => (*name).to_owned(),
        false => format!("{count} × {name}"),
    };
    let members: Vec<_> = names.iter().map(several).collect();
    match (one.level, one.chunk) {
        (None, _) => format!("{} alone", names[0].0),
        (Some(level), Some(chunk)) => {
            format!("{} of {} with chunks of {}", level.name(), members.join(", "), ByteSize(chunk))
        }
        (Some(level), None) => format!("{} of {}", level.name(), members.join(", ")),
    }
}

pub(super) fn reason(one: &Candidate) -> String {
    match &one.limit {
        Limit::Bus(bus) => format!("the bus {bus} is at its limit"),
        Limit::Rewrites { unit, .. } => {
            format!("each write rewrites a unit of {}", ByteSize(*unit))
        }
        Limit::Heads(share) => format!("heads on their way {:.0} % of the time", share * 100.0),
        Limit::Members => "all members are at work all the time".to_owned(),
        Limit::Waiting(share) => format!("members are at work {:.0} % of the time", share * 100.0),
    }
}

fn loss(one: &Candidate) -> String {
    match (one.losses, one.level) {
        (0, None) => "if it fails, all is lost".to_owned(),
        (0, _) => "if one member fails, all is lost".to_owned(),
        (1, _) => "one member may fail".to_owned(),
        (losses, _) => format!("{losses} members may fail"),
    }
}

pub(super) fn create(advice: &Advice, one: &Candidate) -> Option<String> {
    let level = one.level?;
    let chunk = one.chunk.map_or(String::new(), |chunk| format!(" --chunk {}", ByteSize(chunk)));
    let member = |index: &usize| match advice.members.devices[*index] {
        Some(_) => shell_word(&advice.members.offers[*index].name),
        None => format!("MEMBER{}", index + 1),
    };
    let members = one.members.iter().map(member);
    let members = members.collect::<Vec<_>>().join(" ");
    let is_far = |index: &&usize| {
        let kind = &advice.members.offers[**index].profile.kind;
        level == Level::Raid1 && matches!(kind, Kind::Remote(_))
    };
    let far = one.members.iter().filter(is_far);
    let far: String = far.map(|index| format!(" --write-mostly {}", member(index))).collect();
    Some(format!("braid create NAME --level {}{chunk} {members}{far}", level.name()))
}
