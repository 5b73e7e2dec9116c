//! `braid member`, `scrub`, `grow`, `speed`: what an operator does with an array that is up.

use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_stack::{ByteSize, File, Latency, Node, Stack};

use super::scrubbed;
use super::stacks::absolute_path;
use crate::cli;
use crate::control::{
    self, ArrayStatus, ControlError, OUTPUT_VERSION, Order, OrderAnswer, Outcome, Status,
};
use crate::failure::Failure;
use crate::places::{Places, check_name};
use crate::record::Record;

pub(super) fn member(member: &cli::Member) -> Result<(), Failure> {
    match member {
        cli::Member::Fail(target) => {
            let order = Order::Fail { member: named(&target.member)? };
            give(&target.volume, &order, target.json)
        }
        cli::Member::Remove(target) => {
            let order = Order::Remove { member: named(&target.member)? };
            give(&target.volume, &order, target.json)?;
            change_members(&target.volume, &[], &[absolute_path(&target.member)?])
        }
        cli::Member::Add(new) => add(new, false),
        cli::Member::ReAdd(new) => add(new, true),
        cli::Member::Replace(replace) => {
            let target = &replace.target;
            let with = absolute_path(&replace.with)?;
            let member = named(&target.member)?;
            let order = Order::Replace { member, with: with.clone(), force: replace.force };
            give(&target.volume, &order, target.json)?;
            change_members(&target.volume, &[with], &[])
        }
    }
}

fn add(new: &cli::NewMember, again: bool) -> Result<(), Failure> {
    let target = &new.target;
    let member = absolute_path(&target.member)?;
    let order = Order::Add { member: member.clone(), force: new.force, again };
    give(&target.volume, &order, target.json)?;
    change_members(&target.volume, &[member], &[])
}

pub(super) fn scrub(scrub: &cli::Scrub) -> Result<(), Failure> {
    let before = if scrub.wait { Some(status(&scrub.name)?) } else { None };
    let order = Order::Scrub { repair: scrub.repair, cancel: scrub.cancel };
    give(&scrub.name, &order, scrub.json && !scrub.wait)?;
    match before {
        None => Ok(()),
        Some(before) => wait_for_scrub(scrub, &before),
    }
}

/// Waits until the scrub that was asked for has ended.
fn wait_for_scrub(scrub: &cli::Scrub, before: &Status) -> Result<(), Failure> {
    let ended = |status: &Status| -> Vec<Option<u64>> {
        let of = |one: &ArrayStatus| one.last_scrub.as_ref().map(|scrub| scrub.ended_ms);
        status.arrays.iter().map(of).collect()
    };
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = status(&scrub.name)?;
        if now.arrays.iter().any(|array| array.requested.is_some()) {
            continue;
        }
        if ended(&now) == ended(before) {
            return Err(Failure::failed("the scrub was ended before it was through"));
        }
        return report(scrub, &now);
    }
}

/// What the scrub found, and whether that is well.
fn report(scrub: &cli::Scrub, now: &Status) -> Result<(), Failure> {
    let scrubbed: Vec<(&ArrayStatus, u64)> = now
        .arrays
        .iter()
        .filter_map(|one| Some((one, one.last_scrub.as_ref()?.mismatch_bytes)))
        .collect();
    let found: u64 = scrubbed.iter().map(|(_, bytes)| bytes).sum();
    let sum = |of: fn(&ArrayStatus) -> u64| scrubbed.iter().map(|(one, _)| of(one)).sum::<u64>();
    let (unexplained, repaired) = (sum(|one| one.unexplained_bytes), sum(|one| one.repaired_bytes));
    if scrub.json {
        let of = |one: &&ArrayStatus| one.mismatch_offsets.clone();
        let arrays: Vec<&ArrayStatus> = scrubbed.iter().map(|(one, _)| *one).collect();
        println!(
            "{}",
            serde_json::json!({
                "output_version": OUTPUT_VERSION,
                "mismatch_bytes": found,
                "mismatch_offsets": arrays.iter().flat_map(of).collect::<Vec<_>>(),
                "suspects": arrays.iter().flat_map(|one| &one.suspects).collect::<Vec<_>>(),
                "unexplained_bytes": unexplained,
                "repaired_bytes": repaired,
            })
        );
    }
    let differ = if scrub.repair { "differed" } else { "differ" };
    let worst = scrubbed.iter().max_by_key(|(_, bytes)| bytes);
    let text = worst.map(|(one, bytes)| scrubbed::found(one, *bytes, differ)).unwrap_or_default();
    match worst {
        Some((array, 1..)) if !scrub.repair => Err(Failure::failed(text).next(format!(
            "`braid scrub {} --repair` {}",
            scrub.name,
            scrubbed::repair_in_words(array)
        ))),
        Some((_, 1..)) if unexplained > 0 => Err(Failure::failed(format!(
            "{text}; {repaired} bytes were written again, and what no member explains stays as it is"
        ))
        .next("restore what lies there from a backup: writing it makes its parity anew")),
        Some((_, 1..)) if !scrub.json => {
            println!("{text}: repaired, {repaired} bytes were written again");
            Ok(())
        }
        _ if !scrub.json => {
            println!("{text}");
            Ok(())
        }
        _ => Ok(()),
    }
}

pub(super) fn grow(grow: &cli::Grow) -> Result<(), Failure> {
    if let Some(count) = grow.by.raid_devices {
        give(&grow.name, &Order::RaidDisks { count: count.into() }, grow.json)?;
    }
    if let Some(size) = &grow.by.size {
        let bytes = match size.as_str() {
            "max" => None,
            size => Some(
                size.parse::<ByteSize>()
                    .map_err(|error| Failure::usage(format!("--size {size}: {error}")))?
                    .bytes(),
            ),
        };
        give(&grow.name, &Order::MemberSize { bytes }, grow.json)?;
    }
    Ok(())
}

pub(super) fn speed(speed: &cli::Speed) -> Result<(), Failure> {
    let latency_us_p99 = match speed.latency.as_deref() {
        None => None,
        Some("0") => Some(0),
        Some(text) => {
            let latency: Latency = text
                .parse()
                .map_err(|error| Failure::usage(format!("--latency {text}: {error}")))?;
            Some((latency.nanoseconds() / 1000).max(1))
        }
    };
    let order = Order::Speed {
        min_bytes_per_second: speed.min.map(ByteSize::bytes),
        max_bytes_per_second: speed.max.map(ByteSize::bytes),
        latency_us_p99,
    };
    give(&speed.name, &order, speed.json)
}

/// A member as the volume calls it: by its absolute path, or as `status` prints it.
fn named(member: &Path) -> Result<String, Failure> {
    let text = member.to_string_lossy();
    if text.starts_with("member ") {
        return Ok(text.into_owned());
    }
    Ok(absolute_path(member)?.to_string_lossy().into_owned())
}

fn give(volume: &str, order: &Order, json: bool) -> Result<(), Failure> {
    check_name(volume)?;
    let places = Places::from_environment();
    let answer =
        control::post_order(&places.control(volume), order).map_err(unreachable(volume))?;
    let OrderAnswer { text, outcome, .. } = &answer;
    match outcome {
        Outcome::Done if json => {
            println!("{}", serde_json::json!({ "output_version": OUTPUT_VERSION, "done": text }));
            Ok(())
        }
        Outcome::Done => {
            println!("{text}");
            Ok(())
        }
        Outcome::Refused => Err(Failure::refused(text)),
        Outcome::Failed => Err(Failure::failed(text)),
    }
}

fn status(volume: &str) -> Result<Status, Failure> {
    check_name(volume)?;
    let places = Places::from_environment();
    control::get_status(&places.control(volume)).map_err(unreachable(volume))
}

fn unreachable(volume: &str) -> impl Fn(ControlError) -> Failure + '_ {
    move |error| match error {
        ControlError::Unreachable(_) => Failure::failed(format!("no volume called {volume} is up"))
            .next("`braid status` lists those that are"),
        other => Failure::failed(format!("{volume}: {other}")).next(other.next(volume)),
    }
}

/// Notes which members the volume has now, so that it is brought up with them.
fn change_members(volume: &str, come: &[PathBuf], go: &[PathBuf]) -> Result<(), Failure> {
    let file = Places::from_environment().config_file(volume);
    if !file.exists() {
        return Ok(());
    }
    let mut record = Record::read(&file)?;
    if !edit_md(&mut record.stack, come, go)? {
        return Ok(());
    }
    for path in come {
        record.accept(path);
    }
    record.write(&file)
}

/// Changes the members of the one `md(…)` level; answers whether there is one.
fn edit_md(stack: &mut Stack, come: &[PathBuf], go: &[PathBuf]) -> Result<bool, Failure> {
    if let Node::Md(md) = &mut stack.node {
        let is = |member: &Stack, path: &PathBuf| {
            member.member_paths().first().is_some_and(|own| *own == path.as_path())
        };
        md.members.retain(|member| !go.iter().any(|path| is(member, path)));
        for path in come {
            if md.members.iter().any(|member| is(member, path)) {
                continue;
            }
            let path = path.to_string_lossy().into_owned();
            let file = File { path, offset: ByteSize(0), length: None };
            md.members.push(Stack::from(Node::File(file)));
        }
        return Ok(true);
    }
    for member in stack.members_mut() {
        if edit_md(member, come, go)? {
            return Ok(true);
        }
    }
    Ok(false)
}
