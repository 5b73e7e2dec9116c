//! Orders to a volume that is up: what each does, and the command that gives it. Pure.
//!
//! A new order is a variant, an arm of [`Order::command`] and one of [`Order::effect`]; if it takes long, one of
//! [`Order::job`] and [`Order::bytes_of_work`]; if it names a path, one of [`Order::path`].
//!
//! Deliberately absent: whether a volume carries an order out, which the volume alone checks.

#![allow(
    missing_docs,
    reason = "fields are named as the command line's arguments, which say what they are"
)]

mod answer;
mod cache;
mod whole;

use std::path::{Path, PathBuf};

use braid_level::Level;
use braid_shell::CommandLine;
use serde::{Deserialize, Serialize};

pub use answer::{Answer, Carried, Effect, OrderAnswer, Plan};
pub use cache::CacheOrder;
pub use whole::WholeOrder;

use crate::array_status::{ArrayMember, ArrayStatus};
use crate::status::Status;

/// One order, for the array that it concerns: the one whose name or identifier is given, the one that
/// has the member, the only one; a scrub and the limits of passes are for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Take a member out, as if it had failed.
    Fail { member: String, array: Option<String> },
    /// Let go of a member that failed, or of a spare.
    Remove { member: String, array: Option<String> },
    /// Take a device in, as a spare; one that was a member is brought up to date.
    Add {
        member: PathBuf,
        /// Whatever it carries.
        #[serde(default)]
        force: bool,
        /// Only as the member that it was.
        #[serde(default)]
        again: bool,
        /// Reads avoid it.
        #[serde(default)]
        write_mostly: bool,
        array: Option<String>,
    },
    /// Test what bad-block logs list, and take off what can be written or read.
    Retest { array: Option<String> },
    /// A device came or went.
    Device(DeviceOrder),
    /// Fill a device beside the member that it then replaces.
    Replace {
        member: String,
        with: PathBuf,
        #[serde(default)]
        force: bool,
        #[serde(default)]
        write_mostly: bool,
        array: Option<String>,
    },
    /// Compare copies, or data and parity, or stop doing so.
    Scrub {
        #[serde(default)]
        repair: bool,
        /// Also where nothing proves which member is wrong.
        #[serde(default)]
        force: bool,
        #[serde(default)]
        cancel: bool,
        array: Option<String>,
    },
    /// Scrub for a time, from where the last such scrub stopped.
    ScrubUntil {
        #[serde(default)]
        repair: bool,
        #[serde(default)]
        force: bool,
        /// When it pauses, in milliseconds since 1970.
        until_ms: u64,
        /// Latency below which 99 of 100 client requests stay meanwhile; `None` for the array's limits.
        latency_us_p99: Option<u64>,
        array: Option<String>,
    },
    /// Set the limits of passes; what is not given stays.
    Speed {
        min_bytes_per_second: Option<u64>,
        /// 0 for as fast as it goes.
        max_bytes_per_second: Option<u64>,
        /// 0 for no target.
        latency_us_p99: Option<u64>,
        array: Option<String>,
    },
    /// Let a raid1 have so many members.
    RaidDisks { count: usize, array: Option<String> },
    /// Use so many bytes of each member, or all that all of them have.
    MemberSize { bytes: Option<u64>, array: Option<String> },
    /// Give the array a write-intent bitmap, or the one that it has other chunks, or take it away.
    Bitmap {
        /// Away.
        #[serde(default)]
        none: bool,
        /// Refused without a bitmap: none is added.
        #[serde(default)]
        existing: bool,
        /// Bytes that a bit stands for; nothing for what suits the members.
        chunk_bytes: Option<u64>,
        /// Writes that write-mostly members may have later than others; nothing for as many as before.
        #[serde(default)]
        write_behind: Option<u32>,
        array: Option<String>,
    },
    /// For the volume as a whole.
    Whole(WholeOrder),
    /// For its caches.
    Cache(CacheOrder),
}

/// A report about a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DeviceOrder {
    /// The device is there, and may have been a member: the volume's policy decides.
    Back { device: PathBuf },
    /// The device is gone: its path, or its number as `8:16`. The member on it becomes faulty.
    Gone { device: String },
}

impl Order {
    /// Returns the bytes that the order goes through before it is answered, of a volume with `content` bytes:
    /// what [`post_order`](crate::post_order) waits for.
    pub fn bytes_of_work(&self, content: u64) -> u64 {
        match self {
            Order::Whole(WholeOrder::Save { .. }) => content,
            // The file is read twice.
            Order::Whole(WholeOrder::Restore { .. }) => content.saturating_mul(2),
            // Memory is allocated and locked first, which takes a while.
            Order::Cache(CacheOrder::Resize { bytes }) => *bytes,
            Order::Cache(CacheOrder::Attach { .. }) => 1 << 40,
            _ => 0,
        }
    }

    /// Returns the kind of job that the order is; `None` for an order that is carried out at once.
    pub fn job(&self) -> Option<&'static str> {
        match self {
            Order::Whole(WholeOrder::Save { .. }) => Some("save"),
            Order::Whole(WholeOrder::Restore { .. }) => Some("restore"),
            Order::Retest { .. } => Some("retest"),
            Order::Cache(CacheOrder::Attach { .. }) => Some("cache-attach"),
            Order::Cache(CacheOrder::Detach) => Some("cache-detach"),
            Order::Cache(CacheOrder::Resize { .. }) => Some("cache-resize"),
            Order::Cache(CacheOrder::Mode { .. }) => Some("cache-mode"),
            _ => None,
        }
    }

    /// Returns the path that the volume opens for the order, if the order names one. The paths in the parameters
    /// of caches are parts of a stack.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Order::Add { member: path, .. }
            | Order::Replace { with: path, .. }
            | Order::Device(DeviceOrder::Back { device: path })
            | Order::Whole(
                WholeOrder::Save { file: path, .. } | WholeOrder::Restore { file: path, .. },
            ) => Some(path),
            _ => None,
        }
    }

    /// Returns the command that gives the order to the volume called `volume`.
    pub fn command(&self, volume: &str) -> CommandLine {
        let on = |words: &[&str], array: &Option<String>| {
            CommandLine::new(words).option("array", array.as_ref()).name(volume)
        };
        let us = |latency: u64| format!("{latency}us");
        match self {
            Order::Fail { member, array } => on(&["member", "fail"], array).name(member),
            Order::Remove { member, array } => on(&["member", "remove"], array).name(member),
            Order::Retest { array } => on(&["member", "retest"], array),
            Order::Add { member, force, again, write_mostly, array } => {
                let word = if *again { "re-add" } else { "add" };
                let line = on(&["member", word], array).flag("force", *force);
                line.flag("write-mostly", *write_mostly).path(member)
            }
            Order::Device(DeviceOrder::Back { device }) => {
                CommandLine::new(&["incremental"]).without_json().path(device)
            }
            Order::Device(DeviceOrder::Gone { device }) => {
                CommandLine::new(&["incremental"]).without_json().option("fail", Some(device))
            }
            Order::Replace { member, with, force, write_mostly, array } => {
                let line = on(&["member", "replace"], array).flag("force", *force);
                line.flag("write-mostly", *write_mostly).name(member).path(with)
            }
            Order::Scrub { repair, force, cancel, array } => {
                // The command takes one of them; an order to end a scrub is one, whatever else it says.
                on(&["scrub"], array)
                    .flag("repair", *repair && !cancel)
                    .flag("force", *force && *repair && !cancel)
                    .flag("cancel", *cancel)
            }
            Order::ScrubUntil { repair, force, until_ms, latency_us_p99, array } => {
                on(&["scrub"], array)
                    .flag("repair", *repair)
                    .flag("force", *force && *repair)
                    .option("until", Some(format!("@{until_ms}")))
                    .option("latency", latency_us_p99.map(us))
            }
            Order::Speed { min_bytes_per_second, max_bytes_per_second, latency_us_p99, array } => {
                let latency = latency_us_p99.map(|us_p99| match us_p99 {
                    0 => "0".to_owned(),
                    us_p99 => us(us_p99),
                });
                on(&["speed"], array)
                    .option("min", *min_bytes_per_second)
                    .option("max", *max_bytes_per_second)
                    .option("latency", latency)
            }
            Order::RaidDisks { count, array } => {
                on(&["grow"], array).option("raid-devices", Some(count))
            }
            Order::MemberSize { bytes, array } => {
                let size = bytes.map_or("max".to_owned(), |bytes| bytes.to_string());
                on(&["grow"], array).option("size", Some(size))
            }
            Order::Bitmap { none, existing, chunk_bytes, write_behind, array } => {
                let chunk = chunk_bytes.map_or("internal".to_owned(), |chunk| chunk.to_string());
                let bitmap = if *none { "none".to_owned() } else { chunk };
                let is_told = *none || !*existing || chunk_bytes.is_some();
                let line = on(&["grow"], array).option("bitmap", is_told.then_some(bitmap));
                line.option("write-behind", write_behind.as_ref())
            }
            Order::Whole(order) => order.command(volume),
            Order::Cache(order) => order.command(volume),
        }
    }

    /// Returns the effect of the order on the volume with this status, if the volume carries it out.
    pub fn effect(&self, status: &Status) -> Effect {
        let name = &status.name;
        match self {
            Order::Fail { member, .. } => fail(status, member),
            Order::Remove { member, .. } => Effect::of(format!(
                "Removes {member} from {name}: it is closed, and can be unplugged. Nothing on it is erased."
            )),
            Order::Retest { .. } => Effect::of(
                "Rewrites the places in bad-block logs from the other members, and reads those that no member \
                 has: places that can be read are no longer listed.",
            )
            .loses(
                "If no member has a place, its content is what the disks hold there now, which may be old.",
            ),
            Order::Add { member, again: true, .. } => Effect::of(format!(
                "Adds {} again as the member that it was: data written since are copied to it.",
                member.display()
            )),
            Order::Add { member, force, .. } => Effect::of(format!(
                "Adds {}: a former member is brought up to date; any other device becomes a spare, which is \
                 filled if a member is missing.",
                member.display()
            ))
            .loses(overwritten(member, *force)),
            Order::Device(DeviceOrder::Back { device }) => Effect::of(format!(
                "Reports that {} has appeared: a former member on it comes back by the volume's policy.",
                device.display()
            )),
            Order::Device(DeviceOrder::Gone { device }) => Effect::of(format!(
                "Reports that {device} is gone: the member on it becomes faulty."
            )),
            Order::Replace { member, with, force, .. } => Effect::of(format!(
                "Fills {with} beside {member}, which works until then; then {with} replaces {member}. The array \
                 keeps its redundancy meanwhile.",
                with = with.display()
            ))
            .loses(overwritten(with, *force)),
            Order::Scrub { repair, force, cancel, array } => match cancel {
                true => Effect::of(
                    "Cancels the scrub that runs or waits. What it wrote stays, and a paused scrub is forgotten.",
                ),
                false => scrub(status, *repair, *force, array.as_deref()),
            },
            Order::ScrubUntil { repair, force, array, .. } => {
                let Effect { does, loses } = scrub(status, *repair, *force, array.as_deref());
                let pauses = "It pauses when its time is over, and the next such scrub continues there.";
                Effect { does: format!("{does} {pauses}"), loses }
            }
            Order::Speed { .. } => Effect::of(
                "Sets the speed limits of resync, recovery and scrub from now on. Client requests get the rest.",
            ),
            Order::RaidDisks { count, .. } => Effect::of(format!(
                "Gives the array {count} copies. A new role is filled from a spare."
            )),
            Order::MemberSize { .. } => Effect::of(
                "Uses another size of each member; the new part is resynchronised. Clients see the size when the \
                 volume is brought up again.",
            ),
            Order::Bitmap { none: true, .. } => Effect::of(
                "Removes the write-intent bitmap: after a crash the whole array is compared, and a member that \
                 was away is filled as a whole.",
            ),
            Order::Bitmap { .. } => Effect::of(
                "Records on the members which chunks are being written: after a crash these are compared, and no \
                 others.",
            ),
            Order::Whole(order) => order.effect(status),
            Order::Cache(order) => order.effect(status),
        }
    }
}

fn overwritten(path: &Path, force: bool) -> String {
    let path = path.display();
    match force {
        true => format!("All data on {path} are overwritten."),
        false => format!("{path} is overwritten when it is filled."),
    }
}

/// Returns true if the array has all of its data with these roles.
fn suffices(array: &ArrayStatus, in_sync: &[bool]) -> bool {
    let level: Option<Level> = array.level.parse().ok();
    level.is_some_and(|level| braid_level::size::suffice(level, array.layout_number, in_sync))
}

fn fail(status: &Status, member: &str) -> Effect {
    let find = |array: &'_ ArrayStatus| -> Option<ArrayMember> {
        array.members.iter().find(|one| one.member == member).cloned()
    };
    let found = status.arrays.iter().find_map(|array| Some((array, find(array)?)));
    let Some((array, found)) = found.filter(|(_, one)| one.state == "in_sync" && !one.replacement)
    else {
        return Effect::of(format!("Takes {member} out, which holds no complete copy."));
    };
    let mut left = array.in_sync.clone();
    let role = found.role.map(usize::from);
    if let Some(has) = role.and_then(|role| left.get_mut(role)) {
        *has = false;
    }
    let count = left.iter().filter(|one| **one).count();
    let survives_another = (0..left.len()).filter(|role| left[*role]).all(|role| {
        let mut fewer = left.clone();
        fewer[role] = false;
        suffices(array, &fewer)
    });
    Effect::of(format!(
        "Takes {member} out of {}, as if it had failed. {} works with {count} of {} members; nothing on {member} \
         is erased.",
        array.called, array.called, array.raid_disks
    ))
    .loses(match survives_another {
        true => "Until a member is filled in its place, the array survives one loss less.",
        false => "Until a member is filled in its place, one more loss may lose data.",
    })
}

fn scrub(status: &Status, repair: bool, force: bool, array: Option<&str>) -> Effect {
    let is_meant = |one: &&ArrayStatus| {
        one.is_redundant()
            && array.is_none_or(|text| one.called == text || one.uuid.as_deref() == Some(text))
    };
    let mut meant = status.arrays.iter().filter(is_meant);
    let waits = match meant.clone().any(|one| one.job.is_some() && one.requested.is_none()) {
        true => " It waits for the pass that runs.",
        false => "",
    };
    let has_parity = meant.any(ArrayStatus::has_parity);
    let what = if has_parity { "data and parity" } else { "all copies" };
    if !repair {
        return Effect::of(format!(
            "Reads {what} and compares them, while clients continue; nothing is changed.{waits}"
        ));
    }
    let does = format!("Compares {what}, and rewrites blocks that are proved wrong.");
    match (force, has_parity) {
        (false, _) => Effect::of(format!("{does} Unproved differences stay as they are.{waits}")),
        (true, true) => Effect::of(format!("{does}{waits}")).loses(
            "Parity is recomputed from the data: afterwards it is impossible to find out whether the data were wrong.",
        ),
        (true, false) => Effect::of(format!("{does}{waits}"))
            .loses("Without a majority all copies are made equal to the first one, right or wrong."),
    }
}

#[cfg(test)]
mod tests;
