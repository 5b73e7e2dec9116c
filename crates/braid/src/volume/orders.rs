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
use std::sync::mpsc::Sender;
use std::time::Duration;

use braid_engine::redundant::{ControlError, JobKind, NewMember, Redundant, Speed, Status};
use braid_md::Uuid;
use braid_stack::ByteSize;
use braid_uring::Handle;

use super::build::AtWork;
use super::caching::Caching;
use super::live::Live;
use super::md::MdArray;
use super::media::Media;
use super::newcomer::Newcomer;
use super::scrubs::{Part, Scrubs};
use super::shard::{Local, Orders as Remote};
use crate::control::{Order, OrderAnswer, Outcome};
use crate::metadata::Metadata;

/// How long an order may take: a superblock on every member, behind what is under way.
const PATIENCE: Duration = Duration::from_secs(60);

/// The minimum of a pass that has a latency target, if none is given, in bytes a second.
pub(super) const LEAST_WITH_TARGET: u64 = 1 << 20;

/// Carries out `order`, on the whole of the volume or on the arrays of `media`, which live on the shard of `remote`.
pub(super) fn carry_out(
    media: &Arc<Media>,
    live: &Live,
    caching: &Caching,
    scrubs: &Arc<Scrubs>,
    remote: &Remote,
    order: Order,
) -> OrderAnswer {
    let arrays = media.md_arrays();
    match order {
        Order::Whole(order) => live.carry_out(&order, remote),
        Order::Cache(order) => caching.carry_out(live, remote, &order),
        Order::Add { member, force, again, array } => {
            match which_takes(&arrays, &member, array.as_deref()) {
                Ok(array) => add(array, remote, &member, force, again),
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
                let text = format!("{member} is faulty now");
                async move { engine.fail(&member).await.map(|()| text) }
            })
        }
        Order::Remove { member, array } => {
            let label = member.clone();
            let answer = on_one(remote, Which::member(&member, array), |engine| {
                let text = format!("{member} was removed");
                async move { engine.remove(&member).await.map(|()| text) }
            });
            if answer.outcome == Outcome::Done {
                arrays.iter().for_each(|array| array.forget(&label));
            }
            answer
        }
        Order::Scrub { repair, cancel, array } => {
            let kind = match (cancel, repair) {
                (true, _) => None,
                (false, true) => Some(JobKind::Repair),
                (false, false) => Some(JobKind::Check),
            };
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
        Order::ScrubUntil { repair, until_ms, latency_us_p99, array } => {
            let part = Part { repair, until_ms, latency_us_p99, array };
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
    }
}

/// What becomes of a scrub that is asked for, or taken back, while the array is like this.
fn scrub_in_words(kind: Option<JobKind>, status: &Status) -> String {
    let is_scrub = |kind: JobKind| matches!(kind, JobKind::Check | JobKind::Repair);
    let running = status.job.as_ref().map(|job| job.kind);
    match (kind, running, status.requested) {
        (Some(kind), Some(other), _) if !is_scrub(other) => {
            format!("{kind} waits for the {other} that runs")
        }
        (Some(kind), ..) => format!("{kind} starts"),
        (None, Some(kind), _) if is_scrub(kind) => format!("the {kind} ends"),
        (None, _, Some(kind)) => format!("the {kind} that waited is taken back"),
        (None, ..) => "no scrub runs".to_owned(),
    }
}

fn speed_in_words(speed: Speed) -> String {
    let max = speed.max.map_or("none".to_owned(), |max| format!("{:#}/s", ByteSize(max)));
    let latency = speed.latency.map_or("none".to_owned(), |one| format!("{one:?}"));
    format!("minimum {:#}/s, maximum {max}, latency target {latency}", ByteSize(speed.min))
}

/// Whether `text` means an array: by its name, or its identifier.
pub(super) fn means(text: &str, name: &str, uuid: Option<&str>) -> bool {
    let given = text.parse::<Uuid>().map(|uuid| uuid.to_string());
    text == name || uuid.is_some_and(|uuid| given.as_deref() == Ok(uuid))
}

/// The array with superblocks that a device is to become a member of: the one that is named, the
/// one whose superblock it carries, or the only one.
fn which_takes<'a>(
    arrays: &[&'a MdArray],
    path: &Path,
    named: Option<&str>,
) -> Result<&'a MdArray, OrderAnswer> {
    let uuid = |array: &MdArray| array.superblock.array_uuid;
    let is_named =
        |array: &&&MdArray, text: &str| means(text, &array.name, Some(&uuid(array).to_string()));
    match (arrays, named) {
        ([], _) => Err(OrderAnswer::refused(
            "only an array with superblocks takes members in: nothing would remember them\n  next: \
             `braid create` makes one",
        )),
        (_, Some(text)) => match arrays.iter().find(|array| is_named(array, text)) {
            Some(array) => Ok(array),
            None => Err(no_such_array(text, arrays.iter().map(|array| array.name.as_str()))),
        },
        ([array], None) => Ok(array),
        (several, None) => {
            let own = Metadata::read(path).ok().map(|own| own.superblock.array_uuid);
            let array = several.iter().find(|array| Some(uuid(array)) == own);
            array
                .copied()
                .ok_or_else(|| which_is_meant(arrays.iter().map(|array| array.name.as_str())))
        }
    }
}

/// The array with superblocks that has a member.
fn which_has<'a>(
    arrays: &[&'a MdArray],
    member: &str,
    named: Option<&str>,
) -> Result<&'a MdArray, OrderAnswer> {
    let has = |array: &&&MdArray| array.leaves().iter().any(|leaf| leaf.label == member);
    match (named, arrays.iter().find(has)) {
        (None, Some(array)) => Ok(array),
        _ => which_takes(arrays, Path::new(member), named),
    }
}

fn no_such_array<'a>(text: &str, there_are: impl Iterator<Item = &'a str>) -> OrderAnswer {
    let names = there_are.collect::<Vec<_>>().join(", ");
    OrderAnswer::refused(format!("the stack has no array {text:?}: there are {names}"))
}

fn which_is_meant<'a>(there_are: impl Iterator<Item = &'a str>) -> OrderAnswer {
    let names: Vec<&str> = there_are.collect();
    OrderAnswer::refused(format!(
        "the stack has several arrays, and which one is meant is not said: {}\n  next: the same with \
         --array {}",
        names.join(", "),
        names.first().copied().unwrap_or("NAME")
    ))
}

/// Which of the arrays on the shard an order is for.
enum Which {
    /// The one with this name or identifier, or the only one.
    Named(Option<String>),
    /// The one that has this member, of those with this name or identifier.
    Member(String, Option<String>),
}

impl Which {
    fn member(member: &str, array: Option<String>) -> Which {
        Which::Member(member.to_owned(), array)
    }

    /// The arrays that are meant.
    fn of<'a>(&self, local: &'a Local) -> Result<Vec<&'a AtWork>, OrderAnswer> {
        let all: Vec<&AtWork> = local.arrays.iter().map(Rc::as_ref).collect();
        let names = || all.iter().map(|one| one.name.as_str());
        if all.is_empty() {
            return Err(OrderAnswer::refused("the volume has no array that survives a failure"));
        }
        let (Which::Named(named) | Which::Member(_, named)) = self;
        let mut found = all.clone();
        if let Some(text) = named {
            found.retain(|one| means(text, &one.name, one.uuid.as_deref()));
            if found.is_empty() {
                return Err(no_such_array(text, names()));
            }
        }
        let Which::Member(label, _) = self else { return Ok(found) };
        let labels = |one: &&AtWork| -> Vec<String> {
            one.array.status().members.into_iter().map(|one| one.label).collect()
        };
        let there_are: Vec<String> = found.iter().flat_map(labels).collect();
        found.retain(|one| labels(one).contains(label));
        if found.is_empty() {
            return Err(OrderAnswer::refused(format!(
                "{label} is no member of an array that survives a failure: there are {}",
                there_are.join(", ")
            )));
        }
        Ok(found)
    }
}

/// Has `f` work on the one array that is meant.
fn on_one<F, W>(remote: &Remote, which: Which, f: F) -> OrderAnswer
where
    F: FnOnce(Redundant) -> W + Send + 'static,
    W: Future<Output = Result<String, ControlError>> + 'static,
{
    ask(remote, move |handle, local, answer| match which.of(local).as_deref() {
        Ok([one]) => {
            let work = f(one.array.clone());
            handle.spawn(async move { send(&answer, answer_of(work.await)) });
        }
        Ok(several) => {
            send(&answer, which_is_meant(several.iter().map(|one| one.name.as_str())));
        }
        Err(refused) => send(&answer, refused.clone()),
    })
}

/// Has `f` work on all arrays, each with its number, or the one that is named. None is touched if one refuses before.
pub(super) fn on_each(
    remote: &Remote,
    array: Option<String>,
    f: impl Fn(usize, &Redundant) -> Result<String, ControlError> + Send + 'static,
) -> OrderAnswer {
    ask(remote, move |_, local, answer| {
        let found = match Which::Named(array).of(local) {
            Ok(found) => found,
            Err(refused) => return send(&answer, refused),
        };
        let several = found.len() > 1;
        let text = |one: &&AtWork| {
            let number = local.arrays.iter().position(|other| std::ptr::eq(&**other, *one));
            let text = f(number.unwrap_or_default(), &one.array)?;
            Ok(if several { format!("{}: {text}", one.name) } else { text })
        };
        let texts: Result<Vec<String>, ControlError> = found.iter().map(text).collect();
        send(&answer, answer_of(texts.map(|texts| texts.join("\n"))));
    })
}

fn answer_of(result: Result<String, ControlError>) -> OrderAnswer {
    match result {
        Ok(text) => OrderAnswer::done(text),
        Err(error) => OrderAnswer::refused(error.to_string()),
    }
}

/// Calls `f` on the shard, unless whoever gave the order has gone, and waits for what it sends.
fn ask(
    remote: &Remote,
    f: impl FnOnce(&Handle, &Local, Sender<OrderAnswer>) + Send + 'static,
) -> OrderAnswer {
    remote.carry_out(PATIENCE, f)
}

fn send(to: &Sender<OrderAnswer>, answer: OrderAnswer) {
    // Whoever asked may have lost patience.
    let _ = to.send(answer);
}

fn add(array: &MdArray, remote: &Remote, path: &Path, force: bool, again: bool) -> OrderAnswer {
    let newcomer = match Newcomer::open(array, path, force) {
        Ok(newcomer) => newcomer,
        Err(answer) => return answer,
    };
    let label = path.display().to_string();
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
    let (member, with) = (member.to_owned(), with.display().to_string());
    // Whatever it was before, it starts anew.
    take_in(array, remote, newcomer, true, move |engine, new, _| async move {
        let text = format!("{with} is filled and then replaces {member}");
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
    let label = newcomer.path.display().to_string();
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
