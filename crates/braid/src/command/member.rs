//! `braid member`, `scrub`, `grow`, `speed`: what an operator does with an array that is up.

use std::path::Path;
use std::time::Duration;

use braid_md::Uuid;
use braid_stack::{ByteSize, Latency};

use super::files;
use super::order::{carried_out, give, outcome, status};
use super::scrubbed;
use super::several;
use super::stacks::absolute_path;
use crate::cli::{self, BitmapArg};
use braid_service::control::{ArrayStatus, OUTPUT_VERSION, Order, ScrubStatus, Status};
use braid_service::failure::Failure;

pub(super) fn member(member: &cli::Member) -> Result<(), Failure> {
    match member {
        cli::Member::Remove(target) if several::is_word(&target.member) => remove_several(target),
        cli::Member::Fail(target) if several::is_detached(&target.member) => fail_detached(target),
        cli::Member::Fail(target) => {
            let order =
                Order::Fail { member: named(&target.member)?, array: array_of(&target.which) };
            give(&target.volume, &order, target.how)
        }
        cli::Member::Remove(target) => {
            let order =
                Order::Remove { member: named(&target.member)?, array: array_of(&target.which) };
            give(&target.volume, &order, target.how)
        }
        cli::Member::Retest(all) => {
            give(&all.volume, &Order::Retest { array: array_of(&all.which) }, all.how)
        }
        cli::Member::Add(new) => add(new, false),
        cli::Member::ReAdd(new) => add(new, true),
        cli::Member::Replace(replace) => {
            let target = &replace.target;
            let order = Order::Replace {
                member: named(&target.member)?,
                with: absolute_path(&replace.with)?,
                force: replace.force,
                write_mostly: replace.write_mostly,
                array: array_of(&target.which),
            };
            give(&target.volume, &order, target.how)
        }
    }
}

/// Takes out the members whose device has gone, one by one.
fn fail_detached(target: &cli::MemberTarget) -> Result<(), Failure> {
    let now = status(&target.volume)?;
    let which = array_of(&target.which);
    let mut done = Vec::new();
    for (array, member) in several::detached(&now, which.as_deref(), &|path| path.exists()) {
        done.push(outcome(&target.volume, &Order::Fail { member, array }, target.how)?);
    }
    tell_several(target, &done);
    Ok(())
}

/// Lets go of the members that a word stands for, one by one.
fn remove_several(target: &cli::MemberTarget) -> Result<(), Failure> {
    let (volume, which) = (&target.volume, array_of(&target.which));
    let now = status(volume)?;
    let mut done = Vec::new();
    for (array, member) in
        several::meant(&now, which.as_deref(), &target.member, &|path| path.exists())
    {
        done.push(outcome(volume, &Order::Remove { member, array }, target.how)?);
    }
    tell_several(target, &done);
    Ok(())
}

/// Tells what was done to the members that a word stands for.
fn tell_several(target: &cli::MemberTarget, done: &[String]) {
    let volume = &target.volume;
    if target.how.json {
        println!("{}", serde_json::json!({ "output_version": OUTPUT_VERSION, "done": done }));
    } else if done.is_empty() {
        println!("no member of {volume} is {}", target.member.display());
    } else {
        done.iter().for_each(|text| println!("{text}"));
    }
}

fn add(new: &cli::NewMember, again: bool) -> Result<(), Failure> {
    let target = &new.target;
    let order = Order::Add {
        member: absolute_path(&target.member)?,
        force: new.force,
        again,
        write_mostly: new.write_mostly,
        array: array_of(&target.which),
    };
    give(&target.volume, &order, target.how)
}

pub(super) fn scrub(scrub: &cli::Scrub) -> Result<(), Failure> {
    let before = if scrub.wait { Some(status(scrub.name())?) } else { None };
    if let Some(before) = before.as_ref().filter(|_| scrub.files) {
        files::check_scrubbed(before)?;
    }
    let order = Order::Scrub {
        repair: scrub.repair,
        force: scrub.force,
        cancel: scrub.cancel,
        array: array_of(&scrub.which),
    };
    let Some(before) = before else { return give(scrub.name(), &order, scrub.how) };
    let text = carried_out(scrub.name(), &order)?;
    if !scrub.how.json {
        println!("{text}");
    }
    wait_for_scrub(scrub, &before)
}

/// Waits until the scrubs that were asked for have ended.
fn wait_for_scrub(scrub: &cli::Scrub, before: &Status) -> Result<(), Failure> {
    let ended = |status: &Status, uuid: &ArrayStatus| {
        let array = status.arrays.iter().find(|one| one.called == uuid.called);
        array.and_then(|one| one.last_scrub.as_ref()).map(|scrub| scrub.ended_ms)
    };
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = status(scrub.name())?;
        let meant: Vec<&ArrayStatus> =
            now.arrays.iter().filter(|one| is_scrubbed(scrub, one)).collect();
        if meant.iter().any(|array| array.requested.is_some()) {
            continue;
        }
        if meant.iter().any(|array| ended(&now, array) == ended(before, array)) {
            return Err(Failure::failed("the scrub was ended before it was through"));
        }
        let judged = report(scrub, &meant, meant.len() > 1);
        let told =
            meant.iter().filter(|_| scrub.files).try_for_each(|one| files::of_scrub(&now, one));
        return match told {
            Ok(()) => judged,
            Err(why) => judged.map_err(|failure| failure.note(why.text())),
        };
    }
}

/// Returns whether the requested scrub includes this array.
pub(super) fn is_scrubbed(scrub: &cli::Scrub, array: &ArrayStatus) -> bool {
    array.is_redundant()
        && scrub.which.array.as_ref().is_none_or(|text| {
            let uuid = text.parse::<Uuid>().map(|uuid| uuid.to_string()).ok();
            *text == array.called || uuid.is_some() && uuid == array.uuid
        })
}

/// Prints the results of scrubs. Fails unless everything was compared and agrees.
pub(super) fn report(
    scrub: &cli::Scrub,
    arrays: &[&ArrayStatus],
    several: bool,
) -> Result<(), Failure> {
    let scrubbed: Vec<(&ArrayStatus, &ScrubStatus)> =
        arrays.iter().filter_map(|one| Some((*one, one.last_scrub.as_ref()?))).collect();
    if scrub.how.json {
        print_scrubbed(&scrubbed);
    }
    let mut failure: Option<Failure> = None;
    for (array, found) in scrubbed {
        let called = if several { format!("{}: ", array.called) } else { String::new() };
        match judge_scrubbed(scrub, array, found) {
            Ok(text) if !scrub.how.json => println!("{called}{text}"),
            Ok(_) => {}
            Err((text, next)) => {
                failure = Some(match failure {
                    None => Failure::failed(format!("{called}{text}")).next(next),
                    Some(first) => first.note(format!("{called}{text}")),
                });
            }
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Returns the result of an array's scrub; `Err` with the next command if there are problems.
fn judge_scrubbed(
    scrub: &cli::Scrub,
    array: &ArrayStatus,
    found: &ScrubStatus,
) -> Result<String, (String, String)> {
    let differ = if scrub.repair { "differed" } else { "differ" };
    let mut text = scrubbed::found(array, found, differ);
    let left = scrubbed::not_compared(array, found, true);
    let name = scrub.name();
    if found.mismatch_bytes > 0 {
        text = [vec![text], left.clone()].concat().join("; ");
        let places = scrubbed::places(array, found).join("\n  ");
        match (scrub.repair, found.repaired_bytes) {
            (false, _) => {}
            (true, bytes) if found.left() > 0 => {
                text = format!(
                    "{text}; {bytes} bytes were written again, and what is not proved stays as it is"
                );
            }
            (true, bytes) => text = format!("{text}: repaired, {bytes} bytes were written again"),
        }
        text = format!("{text}\n  {places}");
        if found.left() > 0 {
            return Err((text, found.next(name, array.has_parity())));
        }
    }
    if left.is_empty() {
        return Ok(text);
    }
    let is_degraded = array.in_sync.contains(&false);
    let next = match is_degraded {
        true => format!("`braid status {name}` says how to give it the members that are missing"),
        false if found.listed_bytes > 0 => format!(
            "`braid member retest {name}` writes again what other members know, and tests the rest; `braid status {name}` \
             says which member has them, to replace one that cannot be written"
        ),
        false => format!("`braid status {name}` says which member has them; replace that one"),
    };
    let text = if found.mismatch_bytes > 0 { text } else { left.join("; ") };
    Err((text, next))
}

fn print_scrubbed(scrubbed: &[(&ArrayStatus, &ScrubStatus)]) {
    let sum = |of: &dyn Fn(&ArrayStatus, &ScrubStatus) -> u64| -> u64 {
        scrubbed.iter().map(|(array, found)| of(array, found)).sum()
    };
    let of = |(_, found): &(&ArrayStatus, &ScrubStatus)| {
        found.mismatches.iter().map(|place| place.offset_bytes).collect::<Vec<_>>()
    };
    let left =
        |(one, found): &(&ArrayStatus, &ScrubStatus)| scrubbed::not_compared(one, found, true);
    let array = |(one, found): &(&ArrayStatus, &ScrubStatus)| {
        serde_json::json!({
            "array": one.called,
            "uuid": one.uuid,
            "found": found,
            "not_compared": scrubbed::not_compared(one, found, true),
        })
    };
    println!(
        "{}",
        serde_json::json!({
            "output_version": OUTPUT_VERSION,
            "mismatch_bytes": sum(&|_, found| found.mismatch_bytes),
            "mismatch_offsets": scrubbed.iter().flat_map(of).collect::<Vec<_>>(),
            "suspects": scrubbed.iter().flat_map(|(_, found)| &found.suspects).collect::<Vec<_>>(),
            "unexplained_bytes": sum(&|_, found| found.unproved_bytes),
            "repaired_bytes": sum(&|_, found| found.repaired_bytes),
            "not_compared": scrubbed.iter().flat_map(left).collect::<Vec<_>>(),
            "arrays": scrubbed.iter().map(array).collect::<Vec<_>>(),
        })
    );
}

pub(super) fn grow(grow: &cli::Grow) -> Result<(), Failure> {
    if let Some(count) = grow.by.raid_devices {
        give(
            &grow.name,
            &Order::RaidDisks { count: count.into(), array: array_of(&grow.which) },
            grow.how,
        )?;
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
        give(&grow.name, &Order::MemberSize { bytes, array: array_of(&grow.which) }, grow.how)?;
    }
    let write_behind = grow.by.write_behind;
    if grow.by.bitmap.is_some() || write_behind.is_some() {
        let (none, chunk_bytes) = match grow.by.bitmap {
            Some(BitmapArg::None) => (true, None),
            Some(BitmapArg::Internal) | None => (false, None),
            Some(BitmapArg::Chunk(chunk)) => (false, Some(chunk.bytes())),
        };
        let (existing, array) = (grow.by.bitmap.is_none(), array_of(&grow.which));
        let order = Order::Bitmap { none, existing, chunk_bytes, write_behind, array };
        give(&grow.name, &order, grow.how)?;
    }
    Ok(())
}

pub(super) fn speed(speed: &cli::Speed) -> Result<(), Failure> {
    let latency_us_p99 = match speed.latency.as_deref() {
        None => None,
        Some("0") => Some(0),
        Some(text) => Some(micros_of(text)?),
    };
    let order = Order::Speed {
        min_bytes_per_second: speed.min.map(ByteSize::bytes),
        max_bytes_per_second: speed.max.map(ByteSize::bytes),
        latency_us_p99,
        array: array_of(&speed.which),
    };
    give(&speed.name, &order, speed.how)
}

/// `--latency`, in µs.
pub(super) fn micros_of(text: &str) -> Result<u64, Failure> {
    let parsed: Result<Latency, _> = text.parse();
    let latency = parsed.map_err(|error| Failure::usage(format!("--latency {text}: {error}")))?;
    Ok((latency.nanoseconds() / 1000).max(1))
}

fn array_of(which: &cli::WhichArray) -> Option<String> {
    which.array.clone()
}

/// A member as the volume calls it: by its absolute path, or as `status` prints it.
fn named(member: &Path) -> Result<String, Failure> {
    let text = member.to_string_lossy();
    if text.starts_with("member ") {
        return Ok(text.into_owned());
    }
    Ok(absolute_path(member)?.to_string_lossy().into_owned())
}
