//! Orders to a running volume, and the plans of orders.
//!
//! ```text
//!   control thread                                shard
//!   checks, opens the device, reads it ──call──▶  checks ──▶ begins ──▶ the array's own operation,
//!                                                            │           which may take superblock
//!   waits ◀────────────── answer ─────────────────────────────           writes on every member
//! ```
//!
//! Invariant: an order changes nothing before it begins (`Orders::begin`, `carry_out` of the shard), and is checked
//! before that. A plan is the same order, whose giver does not let it begin.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use braid_engine::redundant::{
    BitmapKind, ControlError, JobKind, Redundant, Retested, Speed, Status,
};
use braid_shell::shown;
use braid_stack::ByteSize;

use super::asking::{Which, on_each, on_one, which_has, which_takes};
use super::caching::Caching;
use super::live::Live;
use super::md::MdArray;
use super::media::Media;
use super::members::{self, Taking};
use super::newcomer::Newcomer;
use super::recorded::Recorded;
use super::scrubs::{LEAST_WITH_TARGET, Part, Scrubs, scrub_kind};
use super::to_shard::Orders as Remote;
use super::watcher::Watcher;
use crate::control::{Answer, CacheOrder, ErrorCode, Order, WholeOrder};
use crate::failure::Failure;

/// The parts of a volume that orders change. Arrays live on the shard of `remote`.
pub(super) struct Orders<'a> {
    pub(super) media: &'a Arc<Media>,
    pub(super) live: &'a Live,
    pub(super) caching: &'a Caching,
    pub(super) watcher: &'a Watcher,
    pub(super) scrubs: &'a Arc<Scrubs>,
    pub(super) recorded: &'a Recorded,
    pub(super) remote: &'a Remote,
}

impl Orders<'_> {
    /// Carries out `order`, and records which members the volume has then, before it answers.
    pub(super) fn carry_out(&self, order: Order) -> Answer {
        let remote = self.remote;
        match order {
            Order::Whole(order) => self.whole(&order),
            Order::Cache(order) => self.cache(&order),
            Order::Device(order) => self.watcher.told(self.media, &order, remote),
            Order::Add { member, force, again, write_mostly, array } => {
                let array = which_takes(&self.media.md_arrays(), &member, array.as_deref())?;
                if again {
                    let label = member.display().to_string();
                    members::let_go_of_faulty(array, remote, &label, &member)?;
                }
                self.take_in(array, &member, force, Taking::Add { again, write_mostly })
            }
            Order::Replace { member, with, force, write_mostly, array } => {
                let array = which_has(&self.media.md_arrays(), &member, array.as_deref())?;
                self.take_in(array, &with, force, Taking::Replace { member, write_mostly })
            }
            Order::Fail { member, array } => members::fail(remote, &member, array, None),
            Order::Remove { member, array } => self.remove(&member, array),
            Order::Scrub { repair, force, cancel, array } => {
                self.scrub((!cancel).then(|| scrub_kind(repair, force)), array)
            }
            Order::ScrubUntil { repair, force, until_ms, latency_us_p99, array } => {
                let kind = scrub_kind(repair, force);
                let part = Part { kind, until_ms, latency_us_p99, array };
                self.scrubs.scrub(self.media, remote, &part)
            }
            Order::Speed { min_bytes_per_second, max_bytes_per_second, latency_us_p99, array } => {
                let limits = (min_bytes_per_second, max_bytes_per_second, latency_us_p99);
                let check = move |engine: &Redundant| speed_of(engine.status().speed, limits);
                on_each(remote, array, check, |_, engine, speed| {
                    engine.set_speed(speed);
                    Ok(speed_in_words(speed))
                })
            }
            Order::Retest { array } => on_one(
                remote,
                Which::Named(array),
                |engine| engine.check_writable().map(|()| None),
                |engine| async move { engine.retest().await.map(|done| retested_in_words(&done)) },
            ),
            Order::RaidDisks { count, array } => on_one(
                remote,
                Which::Named(array),
                move |engine| {
                    engine.check_raid_disks(count)?;
                    let has_them = engine.status().raid_disks == count;
                    Ok(has_them.then(|| format!("the array has {count} roles already")))
                },
                move |engine| async move {
                    let text = format!("the array has {count} roles now");
                    engine.set_raid_disks(count).await.map(|()| text)
                },
            ),
            Order::MemberSize { bytes, array } => set_member_size(remote, bytes, array),
            Order::Bitmap { none: true, write_behind: Some(1..), .. } => Err(Failure::failed(
                "write-behind needs a write-intent bitmap, which is to be removed",
            )),
            Order::Bitmap { none: true, array, .. } => remove_bitmap(remote, array),
            Order::Bitmap { existing, chunk_bytes, write_behind, array, .. } => {
                add_bitmap(remote, existing, (chunk_bytes, write_behind), array)
            }
        }
    }

    /// Has `array` take in the device at `path`, and records the device: it is in the record before the superblocks
    /// name it.
    fn take_in(&self, array: &MdArray, path: &Path, force: bool, taking: Taking) -> Answer {
        let newcomer = Arc::new(Newcomer::open(array, path, force)?);
        let checked = members::check(array, self.remote, &newcomer, &taking);
        checked.inspect_err(|failure| {
            if failure.code == ErrorCode::NotByBitmap {
                array.note_to_fill(newcomer.label());
            }
        })?;
        self.remote.begin()?;
        let _turn = self.recorded.turn();
        let listed = self.recorded.list(array, path)?;
        let answer = members::take_in(array, self.remote, &newcomer, taking);
        let recorded = match &answer {
            // The array may still take it in, and the record may list one member more.
            Err(failure) if failure.code != ErrorCode::OutcomeUnknown => listed.take_back(),
            _ => listed.keep(),
        };
        not_recorded(answer, recorded)
    }

    fn remove(&self, member: &str, array: Option<String>) -> Answer {
        let _turn = self.recorded.turn();
        let arrays = self.media.md_arrays();
        let has = |one: &&MdArray| one.leaves().iter().any(|leaf| leaf.label == member);
        let left_out = |one: &&MdArray| one.left_out.iter().any(|one| one.member == member);
        // The array has no place for it: the record alone names it.
        if !arrays.iter().any(has) && arrays.iter().any(left_out) {
            self.remote.begin()?;
            let text = format!("{} is forgotten: it took no part", shown(member));
            return not_recorded(Ok(text), self.recorded.forget(Path::new(member)));
        }
        let label = member.to_owned();
        let checked = label.clone();
        let check = move |engine: &Redundant| engine.check_remove(&checked).map(|()| None);
        let which = Which::member(member, array);
        let text = on_one(self.remote, which, check, move |engine| async move {
            engine.remove(&label).await.map(|()| format!("{} was removed", shown(&label)))
        })?;
        arrays.iter().for_each(|array| array.forget(member));
        self.watcher.let_go(member);
        not_recorded(Ok(text), self.recorded.forget(Path::new(member)))
    }

    fn whole(&self, order: &WholeOrder) -> Answer {
        let answer = self.live.carry_out(order, self.remote);
        match order {
            WholeOrder::Resize { bytes } if answer.is_ok() => {
                let _turn = self.recorded.turn();
                not_recorded(answer, self.recorded.resize(*bytes))
            }
            _ => answer,
        }
    }

    /// A log is recorded before the cache has it: once a FLUSH returns by it, the next start must know of it, whether
    /// this process lived to see that or not.
    fn cache(&self, order: &CacheOrder) -> Answer {
        let carry_out = || self.caching.carry_out(self.live, self.remote, order);
        // Such an order may take long: a second one is not to wait for it.
        let Some(_turn) = self.recorded.try_turn() else { return Err(self.live.busy()) };
        if !order.names_log() || self.remote.is_plan() || self.caching.after(order).is_err() {
            let text = carry_out()?;
            return not_recorded(Ok(text), self.recorded.cache(order).map(drop));
        }
        let before = self.recorded.cache(order)?;
        let answer = carry_out();
        // A change that may still be under way stays recorded.
        if answer.is_ok() || self.caching.is_changing() {
            return answer;
        }
        not_recorded(answer, self.recorded.restore(before))
    }

    fn scrub(&self, kind: Option<JobKind>, array: Option<String>) -> Answer {
        let named = array.clone();
        let check = |engine: &Redundant| engine.check_writable();
        let text = on_each(self.remote, array, check, move |_, engine, ()| {
            let status = engine.status();
            engine.scrub(kind).map(|()| scrub_in_words(kind, &status))
        })?;
        self.scrubs.forget(named.as_deref());
        Ok(text)
    }
}

fn set_member_size(remote: &Remote, bytes: Option<u64>, array: Option<String>) -> Answer {
    let check = move |engine: &Redundant| {
        let (now, then) = engine.check_member_size(bytes)?;
        Ok((now == then).then(|| format!("the array uses {now} bytes of each member already")))
    };
    on_one(remote, Which::Named(array), check, move |engine| async move {
        engine.set_member_size(bytes).await.map(|size| {
            format!(
                "the array uses {size} bytes of each member now; clients see its new size when it is \
                 brought up again"
            )
        })
    })
}

/// Adds a bitmap with these chunks and so many writes behind, or changes the one that `existing` says must be there.
fn add_bitmap(
    remote: &Remote,
    existing: bool,
    (chunk, behind): (Option<u64>, Option<u32>),
    array: Option<String>,
) -> Answer {
    let check = move |engine: &Redundant| {
        if existing && engine.status().bitmap.is_none() {
            let why = "the array has no write-intent bitmap, which write-behind needs: `braid grow --bitmap internal` \
                       adds one, also together with --write-behind";
            return Err(ControlError::Unsuitable(why.to_owned()));
        }
        Ok(engine.check_add_bitmap(chunk, behind)?.map(bitmap_in_words))
    };
    on_one(remote, Which::Named(array), check, move |engine| async move {
        engine.add_bitmap(chunk, behind).await.map(bitmap_in_words)
    })
}

fn remove_bitmap(remote: &Remote, array: Option<String>) -> Answer {
    let check = |engine: &Redundant| {
        let has_one = engine.check_remove_bitmap()?;
        Ok((!has_one).then(|| "the array has no write-intent bitmap".to_owned()))
    };
    on_one(remote, Which::Named(array), check, |engine| async move {
        let text = "the array has no write-intent bitmap any more";
        engine.remove_bitmap().await.map(|_| text.to_owned())
    })
}

/// The answer, or what it is if the record could not follow.
fn not_recorded(answer: Answer, recorded: Result<(), Failure>) -> Answer {
    let Err(why) = recorded else { return answer };
    let said = answer.unwrap_or_else(|failure| failure.why);
    let text = format!("{said}; but its record is as before: {}", why.why);
    Err(Failure::failed(text).led_on(why.next).code(ErrorCode::NotRecorded))
}

/// The limits of passes that are asked for: those of `now`, with the given ones changed.
fn speed_of(
    now: Speed,
    (min_bytes_per_second, max_bytes_per_second, latency_us_p99): (
        Option<u64>,
        Option<u64>,
        Option<u64>,
    ),
) -> Result<Speed, ControlError> {
    let mut speed = now;
    speed.min = min_bytes_per_second.unwrap_or(speed.min);
    if let Some(max) = max_bytes_per_second {
        speed.max = (max > 0).then_some(max);
    }
    if let Some(latency) = latency_us_p99 {
        speed.latency = (latency > 0).then_some(Duration::from_micros(latency));
        // A minimum would be kept whatever the target says.
        if min_bytes_per_second.is_none() {
            speed.min = if latency > 0 { LEAST_WITH_TARGET } else { Speed::default().min };
        }
    }
    // A maximum alone is meant as it stands, also below the usual minimum.
    if let (None, Some(max)) = (min_bytes_per_second, speed.max) {
        speed.min = speed.min.min(max);
    }
    match speed.max.filter(|max| *max < speed.min) {
        None => Ok(speed),
        Some(max) => Err(ControlError::Unsuitable(format!(
            "a minimum of {:#}/s is above the maximum of {:#}/s",
            ByteSize(speed.min),
            ByteSize(max)
        ))),
    }
}

/// Returns a sentence about a scrub that is asked for, or taken back, while the array is in this state.
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

fn bitmap_in_words(kind: BitmapKind) -> String {
    let chunk = ByteSize(kind.chunk_size);
    let text = format!("the array has a write-intent bitmap with a bit for each {chunk:#}");
    match kind.write_behind {
        0 => text,
        most => format!("{text}; up to {most} writes are behind on write-mostly members"),
    }
}

fn speed_in_words(speed: Speed) -> String {
    let max = speed.max.map_or("none".to_owned(), |max| format!("{:#}/s", ByteSize(max)));
    let latency = speed.latency.map_or("none".to_owned(), |one| format!("{one:?}"));
    format!("minimum {:#}/s, maximum {max}, latency target {latency}", ByteSize(speed.min))
}
