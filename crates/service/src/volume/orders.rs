//! Carrying out what an operator asks of arrays that are up.
//!
//! ```text
//!   control thread                                shard
//!   checks, opens the device, reads it ──call──▶  the array's own operation, which may take
//!   waits ◀────────────── answer ───────────────  superblock writes on every member
//! ```

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use braid_engine::redundant::{
    ControlError, JobKind, MemberState, MemberStatus, NewMember, Redundant, Retested, Speed, Status,
};
use braid_shell::shown;
use braid_stack::ByteSize;

use super::asking::{Which, answer_of, ask, on_each, on_one, send, which_has, which_takes};
use super::build::AtWork;
use super::caching::Caching;
use super::live::Live;
use super::md::MdArray;
use super::media::Media;
use super::newcomer::Newcomer;
use super::scrubs::{LEAST_WITH_TARGET, Part, Scrubs, scrub_kind};
use super::shard::Orders as Remote;
use crate::control::{DeviceOrder, Order, OrderAnswer, Outcome};
use crate::metadata::Metadata;

/// Carries out `order`, on the whole of the volume or on the arrays of `media`, which live on the shard of `remote`.
pub(super) fn carry_out(
    media: &Arc<Media>,
    live: &Live,
    caching: &Caching,
    devices: &dyn Fn(&DeviceOrder) -> OrderAnswer,
    scrubs: &Arc<Scrubs>,
    remote: &Remote,
    order: Order,
) -> OrderAnswer {
    let arrays = media.md_arrays();
    match order {
        Order::Whole(order) => live.carry_out(&order, remote),
        Order::Cache(order) => caching.carry_out(live, remote, &order),
        Order::Device(order) if remote.begin() => devices(&order),
        Order::Device(_) => OrderAnswer::failed("whoever told of the device has gone"),
        Order::Add { member, force, again, array } => {
            match which_takes(&arrays, &member, array.as_deref()) {
                Ok(array) => {
                    if again {
                        let label = member.display().to_string();
                        if let Err(answer) = let_go_of_faulty(array, remote, &label, &member) {
                            return answer;
                        }
                    }
                    add(array, remote, &member, force, again)
                }
                Err(answer) => answer,
            }
        }
        Order::Replace { member, with, force, array } => {
            match which_has(&arrays, &member, array.as_deref()) {
                Ok(array) => replace(array, remote, &member, &with, force),
                Err(answer) => answer,
            }
        }
        Order::Fail { member, array } => {
            on_one(remote, Which::member(&member, array), move |engine| {
                let text = format!("{} is faulty now", shown(&member));
                async move { engine.fail(&member).await.map(|()| text) }
            })
        }
        Order::Remove { member, array } => {
            let label = member.clone();
            let answer = on_one(remote, Which::member(&member, array), |engine| {
                let text = format!("{} was removed", shown(&member));
                async move { engine.remove(&member).await.map(|()| text) }
            });
            if answer.outcome == Outcome::Done {
                arrays.iter().for_each(|array| array.forget(&label));
            }
            answer
        }
        Order::Retest { array } => on_one(remote, Which::Named(array), |engine| async move {
            engine.retest().await.map(|done| retested_in_words(&done))
        }),
        Order::Scrub { repair, force, cancel, array } => {
            let kind = (!cancel).then(|| scrub_kind(repair, force));
            let named = array.clone();
            let answer = on_each(remote, array, move |_, engine| {
                let status = engine.status();
                engine.scrub(kind).map(|()| scrub_in_words(kind, &status))
            });
            if answer.outcome == Outcome::Done {
                scrubs.forget(named.as_deref());
            }
            answer
        }
        Order::ScrubUntil { repair, force, until_ms, latency_us_p99, array } => {
            let part = Part { kind: scrub_kind(repair, force), until_ms, latency_us_p99, array };
            scrubs.scrub(media, remote, &part)
        }
        Order::Speed { min_bytes_per_second, max_bytes_per_second, latency_us_p99, array } => {
            on_each(remote, array, move |_, engine| {
                let mut speed = engine.status().speed;
                speed.min = min_bytes_per_second.unwrap_or(speed.min);
                if let Some(max) = max_bytes_per_second {
                    speed.max = (max > 0).then_some(max);
                }
                if let Some(latency) = latency_us_p99 {
                    speed.latency = (latency > 0).then_some(Duration::from_micros(latency));
                    // A minimum would be kept whatever the target says.
                    if min_bytes_per_second.is_none() {
                        let default = Speed::default().min;
                        speed.min = if latency > 0 { LEAST_WITH_TARGET } else { default };
                    }
                }
                // A maximum alone is meant as it stands, also below the usual minimum.
                if let (None, Some(max)) = (min_bytes_per_second, speed.max) {
                    speed.min = speed.min.min(max);
                }
                if let Some(max) = speed.max.filter(|max| *max < speed.min) {
                    return Err(ControlError::Unsuitable(format!(
                        "a minimum of {:#}/s is above the maximum of {:#}/s",
                        ByteSize(speed.min),
                        ByteSize(max)
                    )));
                }
                engine.set_speed(speed);
                Ok(speed_in_words(speed))
            })
        }
        Order::RaidDisks { count, array } => {
            on_one(remote, Which::Named(array), move |engine| async move {
                let text = format!("the array has {count} roles now");
                engine.set_raid_disks(count).await.map(|()| text)
            })
        }
        Order::MemberSize { bytes, array } => {
            on_one(remote, Which::Named(array), move |engine| async move {
                engine.set_member_size(bytes).await.map(|size| {
                    format!(
                        "the array uses {size} bytes of each member now; clients see its new size \
                         when it is brought up again"
                    )
                })
            })
        }
        Order::Bitmap { none: true, array, .. } => {
            on_one(remote, Which::Named(array), move |engine| async move {
                let removed = "the array has no write-intent bitmap any more";
                let there_was = engine.remove_bitmap().await?;
                Ok(if there_was { removed } else { "the array has no write-intent bitmap" }
                    .to_owned())
            })
        }
        Order::Bitmap { none: false, chunk_bytes, array } => {
            on_one(remote, Which::Named(array), move |engine| async move {
                let chunk = ByteSize(engine.add_bitmap(chunk_bytes).await?);
                Ok(format!("the array has a write-intent bitmap with a bit for each {chunk:#}"))
            })
        }
    }
}

/// What becomes of a scrub that is asked for, or taken back, while the array is like this.
fn scrub_in_words(kind: Option<JobKind>, status: &Status) -> String {
    let running = status.job.as_ref().map(|job| job.kind);
    match (kind, running, status.requested) {
        (Some(kind), Some(other), _) if !other.is_scrub() => {
            format!("{kind} waits for the {other} that runs")
        }
        (Some(kind), ..) => format!("{kind} starts"),
        (None, Some(kind), _) if kind.is_scrub() => format!("the {kind} ends"),
        (None, _, Some(kind)) => format!("the {kind} that waited is taken back"),
        (None, ..) => "no scrub runs".to_owned(),
    }
}

fn retested_in_words(done: &Retested) -> String {
    let Retested { rewritten, accepted, left } = *done;
    if rewritten + accepted + left == 0 {
        return "no bad-block log lists anything".to_owned();
    }
    let mut text = format!("{rewritten} bytes were written again from other members");
    if accepted > 0 {
        text += &format!(
            "; {accepted} bytes, which no member could give, are what the disks hold there: compare what lies there with a \
             backup, and the members by `braid scrub`"
        );
    }
    if left > 0 {
        text +=
            &format!("; {left} bytes stay listed, because they can neither be written nor read");
    }
    text
}

fn speed_in_words(speed: Speed) -> String {
    let max = speed.max.map_or("none".to_owned(), |max| format!("{:#}/s", ByteSize(max)));
    let latency = speed.latency.map_or("none".to_owned(), |one| format!("{one:?}"));
    format!("minimum {:#}/s, maximum {max}, latency target {latency}", ByteSize(speed.min))
}

/// Takes in again, at `at`, what was the member `label`: `again` only by the bitmap.
pub(super) fn bring_back(
    array: &MdArray,
    remote: &Remote,
    label: &str,
    at: &Path,
    again: bool,
) -> OrderAnswer {
    match let_go_of_faulty(array, remote, label, at) {
        Ok(()) => add(array, remote, at, false, again),
        Err(answer) => answer,
    }
}

/// Takes out the member `label`, whose device is gone.
pub(super) fn device_went(array: &MdArray, remote: &Remote, label: &str, why: &str) -> OrderAnswer {
    let (uuid, member, why) =
        (array.superblock.array_uuid.to_string(), label.to_owned(), why.to_owned());
    on_one(remote, Which::member(label, Some(uuid)), move |engine| {
        let text = format!("{} is faulty: {why}", shown(&member));
        async move { engine.fail_because(&member, &why).await.map(|()| text) }
    })
}

/// Adds a line to the log of an array.
pub(super) fn note(array: &MdArray, remote: &Remote, text: String) -> OrderAnswer {
    let uuid = array.superblock.array_uuid.to_string();
    on_each(remote, Some(uuid), move |_, engine| {
        engine.note(text.clone());
        Ok(text.clone())
    })
}

/// Lets go of what is left of a faulty member, if what is at `at` is of the array; one that is not
/// faulty stays.
fn let_go_of_faulty(
    array: &MdArray,
    remote: &Remote,
    label: &str,
    at: &Path,
) -> Result<(), OrderAnswer> {
    let uuid = array.superblock.array_uuid;
    let is_there = array.leaves().iter().any(|leaf| leaf.label == label);
    let is_ours = || Metadata::read(at).is_ok_and(|own| own.superblock.array_uuid == uuid);
    if !is_there || !is_ours() {
        return Ok(());
    }
    let remote = remote.another().map_err(|error| OrderAnswer::failed(error.to_string()))?;
    let (member, of_array) = (label.to_owned(), Some(uuid.to_string()));
    let answer = on_one(&remote, Which::Member(label.to_owned(), of_array), move |engine| {
        let is_faulty =
            |one: &MemberStatus| one.label == member && one.state == MemberState::Faulty;
        let faulty = engine.status().members.iter().any(is_faulty);
        async move {
            if faulty {
                engine.remove(&member).await?;
            }
            Ok(if faulty { "removed" } else { "" }.to_owned())
        }
    });
    if answer.outcome == Outcome::Done && !answer.text.is_empty() {
        array.forget(label);
    }
    Ok(())
}

fn add(array: &MdArray, remote: &Remote, path: &Path, force: bool, again: bool) -> OrderAnswer {
    let newcomer = match Newcomer::open(array, path, force) {
        Ok(newcomer) => newcomer,
        Err(answer) => return answer,
    };
    let label = shown(&path.display().to_string()).into_owned();
    take_in(array, remote, newcomer, false, move |engine, new, why_anew| async move {
        let text = match (new.role, why_anew) {
            (Some(role), _) => format!(
                "{label} is back in role {role}: what was written meanwhile is copied to it"
            ),
            (None, Some(why)) if again => {
                return OrderAnswer::refused(format!(
                    "{label} cannot come back by the bitmap: {why}\n  next: `braid member add` takes \
                     it in anew"
                ));
            }
            (None, _) => format!("{label} was added"),
        };
        answer_of(engine.add(new).await.map(|()| text))
    })
}

fn replace(
    array: &MdArray,
    remote: &Remote,
    member: &str,
    with: &Path,
    force: bool,
) -> OrderAnswer {
    let newcomer = match Newcomer::open(array, with, force) {
        Ok(newcomer) => newcomer,
        Err(answer) => return answer,
    };
    let with = shown(&with.display().to_string()).into_owned();
    let member = member.to_owned();
    // Whatever it was before, it starts anew.
    take_in(array, remote, newcomer, true, move |engine, new, _| async move {
        let text = format!("{with} is filled and then replaces {}", shown(&member));
        answer_of(engine.replace(&member, new).await.map(|()| text))
    })
}

/// Has `f` take `newcomer` in on the shard; a member that was taken in stays open.
fn take_in<F, W>(
    array: &MdArray,
    remote: &Remote,
    newcomer: Newcomer,
    anew: bool,
    f: F,
) -> OrderAnswer
where
    F: FnOnce(Redundant, NewMember, Option<String>) -> W + Send + 'static,
    W: Future<Output = OrderAnswer> + 'static,
{
    let (uuid, log) = (array.superblock.array_uuid.to_string(), array.log);
    let label = shown(&newcomer.path.display().to_string()).into_owned();
    let leaf = newcomer.leaf();
    let answer = ask(remote, move |handle, local, answer| {
        let of_array = |one: &&Rc<AtWork>| one.uuid.as_deref() == Some(&uuid);
        let Some(engine) = local.arrays.iter().find(of_array).map(|one| one.array.clone()) else {
            return send(&answer, OrderAnswer::refused("this array survives no failure"));
        };
        let not_taken =
            move |why: String| OrderAnswer::refused(format!("{label} is not taken: {why}"));
        match newcomer.admit(log, anew, &engine, handle, local) {
            Ok(admitted) => {
                let pool = local.pool.clone();
                handle.spawn(async move {
                    let answered = match admitted.prepare(&pool).await {
                        Ok((new, why_anew)) => f(engine, new, why_anew).await,
                        Err(why) => not_taken(why),
                    };
                    send(&answer, answered);
                });
            }
            Err(why) => send(&answer, not_taken(why)),
        }
    });
    if answer.outcome == Outcome::Done {
        array.adopt(leaf);
    }
    answer
}
