//! Carrying out what an operator asks of arrays that are up.
//!
//! ```text
//!   control thread                                shard
//!   checks, opens the device, reads it ──call──▶  the array's own operation, which may take
//!   waits ◀────────────── answer ───────────────  superblock writes on every member
//! ```

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Duration;

use braid_device::{Access, File};
use braid_engine::assembled::{self, LogPlace};
use braid_engine::redundant::{ControlError, JobKind, NewMember, Redundant, Speed};
use braid_md::Superblock;
use braid_probe::{Policy, check_member};
use braid_uring::Handle;

use super::md::MdArray;
use super::media::{Leaf, Media, Medium};
use super::shard::{Local, Orders as Remote};
use crate::control::{Order, OrderAnswer, Outcome};
use crate::metadata::{Metadata, random_uuid};

/// How long an order may take: a superblock on every member, behind what is under way.
const PATIENCE: Duration = Duration::from_secs(60);

/// The minimum of a pass that has a latency target, if none is given, in bytes a second.
const LEAST_WITH_TARGET: u64 = 1 << 20;

/// Carries out `order` on the arrays of `media`, which live on the shard of `remote`.
pub(crate) fn carry_out(media: &Media, remote: &Remote, order: Order) -> OrderAnswer {
    let arrays = media.md_arrays();
    match order {
        Order::Add { member, force, again } => match &arrays[..] {
            [array] => add(array, remote, &member, force, again),
            _ => not_one_array(arrays.len()),
        },
        Order::Replace { member, with, force } => match &arrays[..] {
            [array] => replace(array, remote, &member, &with, force),
            _ => not_one_array(arrays.len()),
        },
        Order::Fail { member } => on_array(remote, Some(member.clone()), |engine| {
            let text = format!("{member} is faulty now");
            async move { engine.fail(&member).await.map(|()| text) }
        }),
        Order::Remove { member } => {
            let label = member.clone();
            let answer = on_array(remote, Some(member.clone()), |engine| {
                let text = format!("{member} was removed");
                async move { engine.remove(&member).await.map(|()| text) }
            });
            if answer.outcome == Outcome::Done {
                arrays.iter().for_each(|array| array.forget(&label));
            }
            answer
        }
        Order::Scrub { repair, cancel } => on_array(remote, None, move |engine| {
            let kind = match (cancel, repair) {
                (true, _) => None,
                (false, true) => Some(JobKind::Repair),
                (false, false) => Some(JobKind::Check),
            };
            let text = kind.map_or("no scrub runs now".to_owned(), |kind| format!("{kind} starts"));
            async move { engine.scrub(kind).map(|()| text) }
        }),
        Order::Speed { min_bytes_per_second, max_bytes_per_second, latency_us_p99 } => {
            on_array(remote, None, move |engine| {
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
                engine.set_speed(speed);
                async move { Ok("the limits are set".to_owned()) }
            })
        }
        Order::RaidDisks { count } => on_array(remote, None, move |engine| async move {
            engine.set_raid_disks(count).await.map(|()| format!("the array has {count} roles now"))
        }),
        Order::MemberSize { bytes } => on_array(remote, None, move |engine| async move {
            engine.set_member_size(bytes).await.map(|size| {
                format!(
                    "the array uses {size} bytes of each member now; clients see its new size \
                     when it is brought up again"
                )
            })
        }),
    }
}

fn not_one_array(count: usize) -> OrderAnswer {
    OrderAnswer::refused(match count {
        0 => "only an array with superblocks takes members in: nothing would remember them\n  \
              next: `braid create` makes one"
            .to_owned(),
        _ => format!("the stack has {count} arrays with superblocks: which one is meant?"),
    })
}

/// Has `f` work on the one array that survives a failure, or the one that has `member`.
fn on_array<F, W>(remote: &Remote, member: Option<String>, f: F) -> OrderAnswer
where
    F: FnOnce(Redundant) -> W + Send + 'static,
    W: Future<Output = Result<String, ControlError>> + 'static,
{
    ask(remote, move |handle, local, answer| {
        let has = |engine: &Redundant| match &member {
            None => true,
            Some(label) => engine.status().members.iter().any(|one| one.label == *label),
        };
        let found: Vec<Redundant> =
            local.arrays.iter().map(|one| one.array.clone()).filter(has).collect();
        let text = match (&found[..], &member) {
            ([engine], _) => {
                let work = f(engine.clone());
                handle.spawn(async move { send(&answer, answer_of(work.await)) });
                return;
            }
            ([], None) => "the volume has no array that survives a failure".to_owned(),
            ([], Some(member)) => {
                format!("{member} is no member of an array that survives a failure")
            }
            (several, _) => {
                format!("the stack has {} arrays that survive a failure", several.len())
            }
        };
        send(&answer, OrderAnswer::refused(text));
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

/// A device that is to become a member.
struct Newcomer {
    file: File,
    path: PathBuf,
    /// What it carries of this array already.
    known: Option<Metadata>,
    size: u64,
}

impl Newcomer {
    fn open(array: &MdArray, path: &Path, force: bool) -> Result<Newcomer, OrderAnswer> {
        let known = Metadata::read(path)
            .ok()
            .filter(|known| known.superblock.array_uuid == array.superblock.array_uuid);
        let forced = [path.to_owned()];
        let policy = Policy {
            force: if force || known.is_some() { &forced } else { &[] },
            read_only: false,
            min_bytes: 4096,
        };
        let facts = check_member(path, &policy)
            .map_err(|refusal| OrderAnswer::refused(refusal.to_string()))?;
        let file = File::open(path, Access::Exclusive, 0, None).map_err(|error| {
            let path = path.display();
            match error.kind() {
                std::io::ErrorKind::WouldBlock => OrderAnswer::refused(format!(
                    "{path} is in use: it is a member already, or another program has it locked\n  \
                     next: `braid member remove` lets go of one that failed"
                )),
                _ => OrderAnswer::failed(format!("cannot open {path}: {error}")),
            }
        })?;
        Ok(Newcomer { file, path: path.to_owned(), known, size: facts.size })
    }

    fn leaf(&self) -> Leaf {
        Leaf { label: self.path.display().to_string(), medium: Medium::File(self.file.clone()) }
    }

    /// As the engine takes it in; `array` is its superblock, `log` the log that it needs room for.
    fn member(
        &self,
        array: &Superblock,
        log: LogPlace,
        engine: &Redundant,
        handle: &Handle,
        local: &Local,
    ) -> Result<NewMember, String> {
        let leaf = Leaf {
            label: self.path.display().to_string(),
            medium: Medium::File(self.file.clone()),
        };
        let dev = leaf.device(handle, &local.pool).map_err(|error| error.to_string())?;
        let uuid = random_uuid().map_err(|failure| failure.text())?;
        let (known, size) = (self.known.as_ref().map(|known| &known.carried), self.size);
        assembled::Newcomer { label: leaf.label, dev, known, size, uuid }.member(array, log, engine)
    }
}

fn add(array: &MdArray, remote: &Remote, path: &Path, force: bool, again: bool) -> OrderAnswer {
    let newcomer = match Newcomer::open(array, path, force) {
        Ok(newcomer) => newcomer,
        Err(answer) => return answer,
    };
    let label = path.display().to_string();
    take_in(array, remote, newcomer, move |engine, new| async move {
        let text = match new.role {
            Some(role) => format!(
                "{label} is back in role {role}: what was written meanwhile is copied to it"
            ),
            None if again => {
                return OrderAnswer::refused(format!(
                    "{label} cannot come back by the bitmap: too much may have changed\n  next: \
                     `braid member add` takes it in anew"
                ));
            }
            None => format!("{label} was added"),
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
    let mut newcomer = match Newcomer::open(array, with, force) {
        Ok(newcomer) => newcomer,
        Err(answer) => return answer,
    };
    // Whatever it was before, it starts anew.
    newcomer.known = None;
    let (member, with) = (member.to_owned(), with.display().to_string());
    take_in(array, remote, newcomer, move |engine, new| async move {
        let text = format!("{with} is filled and then replaces {member}");
        answer_of(engine.replace(&member, new).await.map(|()| text))
    })
}

/// Has `f` take `newcomer` in on the shard; a member that was taken in stays open.
fn take_in<F, W>(array: &MdArray, remote: &Remote, newcomer: Newcomer, f: F) -> OrderAnswer
where
    F: FnOnce(Redundant, NewMember) -> W + Send + 'static,
    W: Future<Output = OrderAnswer> + 'static,
{
    let (superblock, log) = (array.superblock.clone(), array.log);
    let label = newcomer.path.display().to_string();
    let leaf = newcomer.leaf();
    let answer = ask(remote, move |handle, local, answer| {
        let Some(engine) = the_array(local) else {
            return send(&answer, OrderAnswer::refused("this array survives no failure"));
        };
        match newcomer.member(&superblock, log, &engine, handle, local) {
            Ok(new) => {
                let work = f(engine, new);
                handle.spawn(async move { send(&answer, work.await) });
            }
            Err(why) => send(&answer, OrderAnswer::refused(format!("{label} is not taken: {why}"))),
        }
    });
    if answer.outcome == Outcome::Done {
        array.adopt(leaf);
    }
    answer
}

fn the_array(local: &Local) -> Option<Redundant> {
    match &local.arrays[..] {
        [one] => Some(one.array.clone()),
        _ => None,
    }
}
