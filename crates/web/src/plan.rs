//! What an order would do, said before it is done, and whether it can be done now. Pure, on what the volume
//! says of itself.
//!
//! What is said to be possible may still be refused: a device that is to be taken in is looked at only when
//! it is. What is said to be impossible is not tried.

use braid_control::{ArrayMember, ArrayStatus, DeviceOrder, Order, Status};
use braid_level::Level;
use serde::Serialize;

use crate::command::of_order;
use reason::{Not, Said};

mod reason;
mod whole;

pub(crate) use whole::stop;

/// What would happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Plan {
    /// What is done, in sentences.
    pub(crate) does: String,
    /// What could be lost, if anything.
    pub(crate) loses: Option<String>,
    /// Something is to be done: it is not so already.
    pub(crate) changes: bool,
    /// Whether it can be done now.
    pub(crate) possible: bool,
    /// Why not, if not.
    pub(crate) why_not: Option<String>,
    /// What to do instead.
    pub(crate) next: Option<String>,
    /// The command that does the same.
    pub(crate) command: String,
}

impl Plan {
    /// Something that may be tried.
    pub(crate) fn possible(does: String, loses: Option<String>, command: String) -> Plan {
        Plan { does, loses, changes: true, possible: true, why_not: None, next: None, command }
    }

    /// Something that is so already.
    pub(crate) fn nothing(does: String, command: String) -> Plan {
        Plan { changes: false, ..Plan::possible(does, None, command) }
    }
}

/// What `order` would do to the volume that says `status` of itself.
pub(crate) fn plan(status: &Status, order: &Order) -> Plan {
    let command = of_order(&status.name, order).typed();
    match said(status, order) {
        Ok((does, loses)) => Plan::possible(does, loses, command),
        Err(Not(why, next)) => Plan {
            does: "Nothing.".to_owned(),
            loses: None,
            changes: false,
            possible: false,
            why_not: Some(why),
            next,
            command,
        },
    }
}

fn said(status: &Status, order: &Order) -> Said {
    let done = |does: String| Ok((does, None));
    match order {
        Order::Fail { member, .. } => fail(status, member),
        Order::Remove { member, .. } => remove(status, member),
        Order::Retest { array } => {
            any_array(status, array.as_deref())?;
            Ok((
                "Writes the places that bad-block logs list again from the other members, and reads those that no member can \
                 give: what can be read is no longer listed."
                    .to_owned(),
                Some(
                    "Where no member can give a place, its content is what the disks hold there now, which may be old."
                        .to_owned(),
                ),
            ))
        }
        Order::Add { member, force, again, array } => {
            let path = member.to_string_lossy();
            takes_in(status, &path, array.as_deref())?;
            match again {
                true => done(format!(
                    "Takes {path} in again as the member that it was: what was written meanwhile is copied to it. \
                     It is refused if it was another's, or went on alone."
                )),
                false => Ok((
                    format!(
                        "Takes {path} in: one that was a member is brought up to date, another becomes a spare, which \
                         is filled where a member is missing."
                    ),
                    Some(overwritten(&path, *force)),
                )),
            }
        }
        Order::Device(DeviceOrder::Back { device }) => done(format!(
            "Tells the volume that {} is there: what was a member comes back by the volume's policy.",
            device.display()
        )),
        Order::Device(DeviceOrder::Gone { device }) => Ok((
            format!("Tells the volume that {device} is gone: what was a member on it is faulty."),
            None,
        )),
        Order::Replace { member, with, force, array } => {
            let with = with.to_string_lossy();
            takes_in(status, &with, array.as_deref())?;
            let (array, found) = member_of(status, member)?;
            if found.state != "in_sync" {
                return Err(Not::because(format!(
                    "{member} is {}: only one that works is replaced",
                    found.state
                ))
                .next("add the new device instead: it is filled where a member is missing"));
            }
            if !array.is_redundant() {
                return Err(no_copies(array));
            }
            Ok((
                format!(
                    "Fills {with} beside {member}, which works on until then; then {with} takes over, and {member} \
                     is let go. No copy is given up meanwhile."
                ),
                Some(overwritten(&with, *force)),
            ))
        }
        Order::Scrub { repair, force, cancel, array } => {
            scrub(status, *repair, *force, *cancel, array.as_deref())
        }
        Order::ScrubUntil { repair, force, array, .. } => {
            let (does, loses) = scrub(status, *repair, *force, false, array.as_deref())?;
            let parts = "It pauses when its time is over, and the next such scrub goes on there.";
            Ok((format!("{does} {parts}"), loses))
        }
        Order::Speed { .. } => {
            any_array(status, None)?;
            done(
                "Sets how fast resync, recovery and scrub go from now on. Clients' requests get the rest.".to_owned(),
            )
        }
        Order::RaidDisks { count, array } => {
            let array = any_array(status, array.as_deref())?;
            match (array.level.as_str(), count.cmp(&array.raid_disks)) {
                ("raid1", std::cmp::Ordering::Equal) => {
                    Err(Not::because(format!("{} has {count} roles already", array.called)))
                }
                ("raid1", _) => done(format!(
                    "Lets {} have {count} copies instead of {}. A role that is new is filled from a spare.",
                    array.called, array.raid_disks
                )),
                (level, _) => {
                    Err(Not::because(format!("{level} does not change its number of members")))
                }
            }
        }
        Order::MemberSize { array, .. } => {
            let array = any_array(status, array.as_deref())?;
            match array.level.as_str() {
                "raid1" => done(format!(
                    "Lets {} use another size of each member; what is new is resynchronised. Clients see it when \
                     the volume is brought up again.",
                    array.called
                )),
                level => {
                    Err(Not::because(format!("{level} does not change what it uses of members")))
                }
            }
        }
        Order::Bitmap { none, array, .. } => {
            let array = any_array(status, array.as_deref())?;
            if !array.is_redundant() {
                return Err(no_copies(array));
            }
            done(match none {
                true => format!(
                    "Takes the write-intent bitmap of {} away: after a crash all of it is compared, and a member \
                     that was away is filled as a whole.",
                    array.called
                ),
                false => format!(
                    "Notes on the members of {} where it is being written: after a crash that is compared, and \
                     nothing else.",
                    array.called
                ),
            })
        }
        Order::Whole(order) => whole::whole(status, order),
        Order::Cache(order) => whole::cache(status, order),
    }
}

fn overwritten(path: &str, force: bool) -> String {
    match force {
        true => format!("Whatever {path} carries is overwritten."),
        false => format!(
            "{path} is overwritten once it is filled. It is refused if it carries anything that is known."
        ),
    }
}

/// The array and the member that are meant.
fn member_of<'a>(
    status: &'a Status,
    member: &str,
) -> Result<(&'a ArrayStatus, &'a ArrayMember), Not> {
    let all =
        || status.arrays.iter().flat_map(|array| array.members.iter().map(move |one| (array, one)));
    all().find(|(_, one)| one.member == member).ok_or_else(|| {
        let known: Vec<&str> = all().map(|(_, one)| one.member.as_str()).collect();
        let there = match known.is_empty() {
            true => format!("{} has no array that keeps copies", status.name),
            false => format!("there are {}", known.join(", ")),
        };
        Not::because(format!("{member} is no member of an array: {there}"))
    })
}

/// An array that keeps copies: the one that is named, or any.
fn any_array<'a>(status: &'a Status, named: Option<&str>) -> Result<&'a ArrayStatus, Not> {
    let is_meant = |array: &&ArrayStatus| {
        array.is_redundant()
            && named.is_none_or(|text| array.called == text || array.uuid.as_deref() == Some(text))
    };
    status.arrays.iter().find(is_meant).ok_or_else(|| {
        Not::because(match named {
            Some(text) => format!("{} has no array called {text} that keeps copies", status.name),
            None => format!("{} has no array that keeps copies", status.name),
        })
    })
}

fn no_copies(array: &ArrayStatus) -> Not {
    Not::because(format!(
        "{} is a {}, which has no copies: each member is needed",
        array.called, array.level
    ))
}

/// Whether the array has all of its data without some of its roles.
fn suffices(array: &ArrayStatus, in_sync: &[bool]) -> bool {
    let level: Option<Level> = array.level.parse().ok();
    level.is_some_and(|level| braid_level::size::suffice(level, array.layout_number, in_sync))
}

fn fail(status: &Status, member: &str) -> Said {
    let (array, found) = member_of(status, member)?;
    if found.state == "faulty" {
        return Err(Not::because(format!("{member} is faulty already"))
            .next("remove it, or take it in again with re-add once it was removed"));
    }
    if !array.is_redundant() {
        return Err(no_copies(array));
    }
    if found.state != "in_sync" || found.replacement {
        return Ok((
            format!(
                "Takes {member} out, which is {}: no copy that is whole is given up.",
                found.state
            ),
            None,
        ));
    }
    let mut left = array.in_sync.clone();
    let role = found.role.map(usize::from);
    if let Some(has) = role.and_then(|role| left.get_mut(role)) {
        *has = false;
    }
    if !suffices(array, &left) {
        return Err(Not::because(format!(
            "{member} holds the only copy of some of the data: it is kept"
        ))
        .next("fill another member first: add a device, and wait for its recovery"));
    }
    let count = left.iter().filter(|one| **one).count();
    let survives_another = (0..left.len()).filter(|role| left[*role]).all(|role| {
        let mut fewer = left.clone();
        fewer[role] = false;
        suffices(array, &fewer)
    });
    let does = format!(
        "Takes {member} out of {}, as if it had failed. {} works on with {count} of {} members; nothing on {member} \
         is erased.",
        array.called, array.called, array.raid_disks
    );
    let loses = match survives_another {
        true => "Until a member is filled in its place, it survives one loss less.",
        false => "Until a member is filled in its place, one more loss may lose data.",
    };
    Ok((does, Some(loses.to_owned())))
}

fn remove(status: &Status, member: &str) -> Said {
    let (array, found) = member_of(status, member)?;
    match found.state.as_str() {
        "faulty" | "spare" => Ok((
            format!(
                "Lets go of {member}: {} forgets it, it is closed, and can be unplugged. Nothing on it is erased.",
                array.called
            ),
            None,
        )),
        state => Err(Not::because(format!(
            "{member} is {state}: only a faulty member or a spare can be removed"
        ))
        .next("fail it first")),
    }
}

/// Whether a device could be taken in.
fn takes_in(status: &Status, path: &str, array: Option<&str>) -> Result<(), Not> {
    if !status.arrays.iter().any(|array| array.uuid.is_some() && array.is_redundant()) {
        return Err(Not::because("only an array with superblocks takes members in")
            .next("`braid create` makes one"));
    }
    any_array(status, array)?;
    if status.device.read_only {
        return Err(Not::because(format!("{} is read-only", status.name)));
    }
    match member_of(status, path) {
        Ok((_, member)) => {
            Err(Not::because(format!("{path} is a member already, and is {}", member.state)).next(
                match member.state.as_str() {
                    "faulty" => "remove it first",
                    _ => "name another device",
                },
            ))
        }
        Err(_) => Ok(()),
    }
}

fn scrub(status: &Status, repair: bool, force: bool, cancel: bool, array: Option<&str>) -> Said {
    let first = any_array(status, array)?;
    let is_meant =
        |one: &&ArrayStatus| one.is_redundant() && (array.is_none() || one.called == first.called);
    let meant: Vec<&ArrayStatus> = status.arrays.iter().filter(is_meant).collect();
    if cancel {
        return match meant.iter().any(|one| one.requested.is_some()) {
            true => {
                Ok(("Ends the scrub that runs or waits. What it wrote stays.".to_owned(), None))
            }
            false => Err(Not::because("no scrub runs or waits")),
        };
    }
    if status.device.read_only && repair {
        return Err(Not::because(format!("{} is read-only", status.name)));
    }
    let what = if first.has_parity() { "data and parity" } else { "all copies" };
    let waits = match meant.iter().any(|one| one.job.is_some() && one.requested.is_none()) {
        true => " It waits for the pass that runs.",
        false => "",
    };
    if !repair {
        return Ok((
            format!(
                "Reads {what} and compares them, while clients go on; nothing is changed.{waits}"
            ),
            None,
        ));
    }
    let does = format!("Compares {what}, and writes again what is proved to be wrong.");
    let loses = match (force, first.has_parity()) {
        (false, _) => return Ok((format!("{does} The rest stays as it is.{waits}"), None)),
        (true, true) => {
            "Parity is made to fit the data: if the data was wrong, that cannot be told any more."
        }
        (true, false) => {
            "Without a majority the copies are made the same as the first one, right or wrong."
        }
    };
    Ok((format!("{does}{waits}"), Some(loses.to_owned())))
}

#[cfg(test)]
mod tests;
