//! Advice in sentences.

use braid_predict::Workload;
use braid_predict::advise::{Candidate, Limit, Need, twin};
use braid_shell::shell_word;
use braid_stack::ByteSize;

use super::confirm::measured_part;
use super::costs::Costs;
use super::members::Members;
use super::words::{interval, rate, ratio, size, sum, time};
use super::{Advice, KEPT_UP, asked};

/// What stands beside the best by the rule of redundancy: the loss is a real difference, and the speed is none.
fn beside(advice: &Advice, best: &Candidate) -> Option<String> {
    let twin = twin(&advice.ranked, advice.need)?;
    let (name, room) = (name(advice, twin), size(twin.capacity));
    let rate = match (advice.need, &advice.members.prices) {
        (Need::Price { .. }, Some(prices)) => {
            format!("{}, {},", rate(twin.rate()), per_price(twin, prices))
        }
        _ => rate(twin.rate()),
    };
    Some(match best.losses {
        0 => format!(
            "But {name} does {rate} and holds {room}, and {}: the two differ by less than predictions are off.",
            loss(twin)
        ),
        _ => format!(
            "{name} does {rate} and holds {room}, but {}: it is ahead by less than predictions are off.",
            loss(twin)
        ),
    })
}

/// What it costs and draws, and what that gives.
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

/// What each redundancy costs of the room.
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
        Some(format!("that {members} costs {room} ({})", short(one)))
    };
    let costs: Vec<_> = [1, 2].into_iter().filter_map(cost).collect();
    let is_asked = advice.need == Need::Capacity && !costs.is_empty();
    is_asked.then(|| {
        format!(
            "Without redundancy there is room for {} ({}); {}.",
            size(all.capacity),
            short(all),
            costs.join(", ")
        )
    })
}

/// The level and the number of members.
pub(super) fn short(one: &Candidate) -> String {
    match one.level {
        None => "alone".to_owned(),
        Some(level) => format!("{} × {}", level.name(), one.members.len()),
    }
}

pub(super) fn answer(advice: &Advice) -> Vec<String> {
    let best = &advice.ranked[0];
    let times = alone(advice, best).map(|alone| {
        format!(", {:.1} times one member alone", best.rate() / alone.rate().max(1.0))
    });
    let times = times.unwrap_or_default();
    let name = name(advice, best);
    let first = match best.measured {
        None => {
            let (low, high) = interval(best.outcome.rate());
            let (rate, low, high) = (rate(best.outcome.rate()), rate(low), rate(high));
            format!("Take {name}: {rate} predicted ({low} to {high}){times}; {}.", reason(best))
        }
        Some(one) => {
            let (low, high) = interval(one.expected);
            let (low, high, expected) = (rate(low), rate(high), rate(one.expected));
            let so = match one.differs() {
                true => format!(", which is not what was predicted: {expected} ({low} to {high})"),
                false => format!("; {expected} were predicted, and {}", reason(best)),
            };
            let (from, to) = (rate(one.range.0), rate(one.range.1));
            format!("Take {name}: {} measured ({from} to {to}){times}{so}.", rate(one.rate))
        }
    };
    let mut answer = vec![first, format!("It holds {}; {}.", size(best.capacity), loss(best))];
    answer.extend(cost(advice, best));
    answer.extend(beside(advice, best));
    answer.extend(room(advice));
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

/// Whether a layout does what a trace asks for in its time.
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
    let within = match (one.latency_ns(), alone(advice, one).and_then(Candidate::latency_ns)) {
        (None, _) => String::new(),
        (Some(ns), None) => format!(": p99 {}", time(ns)),
        (Some(ns), Some(alone)) => {
            format!(": p99 {}, of one member alone {}", time(ns), time(alone))
        }
    };
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
    let mut names: Vec<(&str, usize)> = Vec::new();
    for index in &one.members {
        let name = advice.members.offers[*index].name.as_str();
        match names.iter_mut().find(|known| known.0 == name) {
            Some(known) => known.1 += 1,
            None => names.push((name, 1)),
        }
    }
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
        Limit::Rewrites { unit, amplification } => {
            format!(
                "each write rewrites a unit of {}: {amplification:.0} times the bytes",
                ByteSize(*unit)
            )
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
    Some(format!("braid create NAME --level {}{chunk} {members}", level.name()))
}
