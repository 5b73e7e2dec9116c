//! What an order would do, said before it is done; whether it can be done now; and which orders that need
//! no more words a volume offers. Pure, on what the volume says of itself.
//!
//! What is said to be possible may still be refused: a device that is to be taken in is looked at only when
//! it is. What is said to be impossible is not tried.

use braid_control::{ArrayMember, ArrayStatus, CacheOrder, DeviceOrder, Order, Status, WholeOrder};
use braid_level::Level;
use serde::Serialize;

use crate::command::of_order;

/// What would happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Plan {
    /// What is done, in sentences.
    pub(crate) does: String,
    /// What could be lost, if anything.
    pub(crate) loses: Option<String>,
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
        Plan { does, loses, possible: true, why_not: None, next: None, command }
    }
}

/// An order that can be given as it is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Offer {
    /// What a button says.
    pub(crate) label: &'static str,
    /// The member that it is about.
    pub(crate) member: Option<String>,
    pub(crate) order: Order,
}

/// Why something is not possible, and what to do instead.
struct Not(String, Option<String>);

impl Not {
    fn because(why: impl Into<String>) -> Not {
        Not(why.into(), None)
    }

    fn next(self, next: impl Into<String>) -> Not {
        Not(self.0, Some(next.into()))
    }
}

/// What is done, and what could be lost.
type Said = Result<(String, Option<String>), Not>;

/// What `order` would do to the volume that says `status` of itself.
pub(crate) fn plan(status: &Status, order: &Order) -> Plan {
    let command = of_order(&status.name, order).typed();
    match said(status, order) {
        Ok((does, loses)) => Plan::possible(does, loses, command),
        Err(Not(why, next)) => Plan {
            does: "Nothing.".to_owned(),
            loses: None,
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
        Order::Scrub { repair, cancel, array } => scrub(status, *repair, *cancel, array.as_deref()),
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
        Order::Whole(order) => whole(status, order),
        Order::Cache(order) => cache(status, order),
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

fn scrub(status: &Status, repair: bool, cancel: bool, array: Option<&str>) -> Said {
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
    let loses = match first.level.as_str() {
        "raid6" => "What no single member explains is left as it is.",
        "raid4" | "raid5" => {
            "Parity is made to fit the data: if the data was wrong, that cannot be told any more."
        }
        _ => "The copies are made the same as the first one: nobody knows which of them was right.",
    };
    Ok((format!("Compares {what}, and writes again what differs.{waits}"), Some(loses.to_owned())))
}

fn whole(status: &Status, order: &WholeOrder) -> Said {
    let name = &status.name;
    let users = match (&status.attached, &status.nbd) {
        (Some(device), _) => format!(" Whatever uses {} gets errors when it writes.", device.path),
        (None, Some(nbd)) if nbd.connections > 0 => {
            " Its NBD clients get errors when they write.".to_owned()
        }
        _ => String::new(),
    };
    let ram = || match status.rams.as_slice() {
        [] => Err(Not::because(format!("{name} is no RAM disk"))),
        _ => Ok(()),
    };
    match order {
        WholeOrder::Lock { .. } if status.device.locked => {
            Err(Not::because(format!("{name} is locked already")))
        }
        WholeOrder::Lock { .. } => Ok((
            format!("Refuses writes to {name} until it is unlocked; reads go on."),
            (!users.is_empty()).then(|| users.trim().to_owned()),
        )),
        WholeOrder::Unlock if !status.device.locked => {
            Err(Not::because(format!("{name} is not locked")))
        }
        WholeOrder::Unlock => Ok((format!("Lets {name} be written to again."), None)),
        WholeOrder::Erase { .. } => {
            ram()?;
            Ok((
                format!("Forgets all that {name} holds, and gives its memory back."),
                Some("All of its content is lost.".to_owned()),
            ))
        }
        WholeOrder::Resize { bytes, .. } => {
            ram()?;
            let smaller = *bytes < status.device.size_bytes;
            Ok((
                format!("Gives {name} {bytes} bytes instead of {}.", status.device.size_bytes),
                smaller
                    .then(|| "It is refused where something was written beyond that.".to_owned()),
            ))
        }
        WholeOrder::Save { file, force } => Ok((
            format!(
                "Writes the content of {name} to {}, compressed; writes wait or are refused meanwhile.",
                file.display()
            ),
            force.then(|| format!("{} is replaced, if it is there.", file.display())),
        )),
        WholeOrder::Restore { file, .. } => Ok((
            format!(
                "Takes the content of {name} from {}, after all of that was checked.",
                file.display()
            ),
            Some(format!("What {name} holds now is overwritten.")),
        )),
    }
}

fn cache(status: &Status, order: &CacheOrder) -> Said {
    let name = &status.name;
    let dirty: u64 = status
        .caches
        .iter()
        .filter_map(|one| one.write_back.as_ref())
        .map(|one| one.dirty_bytes)
        .sum();
    let has_one = || match status.caches.is_empty() {
        true => Err(Not::because(format!("{name} has no cache")).next("attach one")),
        false => Ok(()),
    };
    let done = |text: String| Ok((text, None));
    match order {
        CacheOrder::Attach { parameters, .. } => {
            let volatile = parameters.contains("write-back") && parameters.contains("volatile");
            Ok((
                format!(
                    "Puts a cache ({parameters}) in front of {name}; nobody waits for it. It stays until it is detached."
                ),
                volatile.then(|| {
                    "What it has not written yet is lost with a power cut or a crash.".to_owned()
                }),
            ))
        }
        CacheOrder::Detach => {
            has_one()?;
            done(format!(
                "Takes the cache in front of {name} off; the {dirty} bytes that are not written yet are written first."
            ))
        }
        CacheOrder::Resize { bytes, .. } => {
            has_one()?;
            done(format!(
                "Gives the cache {bytes} bytes of memory; what would leave first leaves first."
            ))
        }
        CacheOrder::Mode { mode, .. } => {
            has_one()?;
            done(format!(
                "Has the cache treat writes as {mode} does; what is dirty is drained first."
            ))
        }
        CacheOrder::Drain { bytes_per_second } => {
            has_one()?;
            let rate = bytes_per_second
                .map_or("nothing".to_owned(), |rate| format!("{rate} bytes a second"));
            done(format!("Holds what the cache drains to {rate}, while there is time."))
        }
    }
}

/// What the end of a volume means; one that does not answer says nothing of itself.
pub(crate) fn of_stop(
    name: &str,
    status: Option<&Status>,
    force: bool,
) -> (String, Option<String>) {
    let Some(status) = status else {
        let does = format!("Ends what is left of {name}, and removes what it left.");
        return (does, Some("What was being written and was not flushed may be lost.".to_owned()));
    };
    let device = status.attached.as_ref().map(|device| format!("{} goes away, ", device.path));
    let does = format!(
        "Ends {name}: {}what is under way is answered and flushed. It can be brought up again.",
        device.unwrap_or_default()
    );
    let mut loses = Vec::new();
    if status.device.volatile {
        loses.push(
            "Its content is lost: it is in memory alone, unless it is saved to an image."
                .to_owned(),
        );
    }
    match (force, &status.attached, &status.nbd) {
        (true, Some(_), _) => {
            loses.push("The device is taken away from whoever uses it.".to_owned())
        }
        (false, Some(_), _) => {
            loses.push("It is refused while anybody uses the device.".to_owned())
        }
        (_, None, Some(nbd)) if nbd.connections > 0 => {
            loses.push(format!("Connections of NBD clients end: {}.", nbd.connections));
        }
        _ => {}
    }
    (does, (!loses.is_empty()).then(|| loses.join(" ")))
}

/// The orders that can be given now as they are, each of which is possible by [`plan`].
pub(crate) fn offers(status: &Status) -> Vec<Offer> {
    let mut all = Vec::new();
    for array in &status.arrays {
        let named = (status.arrays.len() > 1).then(|| array.called.clone());
        for one in &array.members {
            let (member, array) = (one.member.clone(), named.clone());
            let about = Some(member.clone());
            all.push(Offer {
                label: "Take out",
                member: about.clone(),
                order: Order::Fail { member: member.clone(), array: array.clone() },
            });
            all.push(Offer {
                label: "Remove",
                member: about,
                order: Order::Remove { member, array },
            });
        }
        for left in &array.left_out {
            let order = Order::Add {
                member: left.member.clone().into(),
                force: false,
                again: left.by_bitmap,
                array: named.clone(),
            };
            all.push(Offer { label: "Take in again", member: Some(left.member.clone()), order });
        }
    }
    let scrub = |repair, cancel| Order::Scrub { repair, cancel, array: None };
    let runs = status.arrays.iter().any(|array| array.requested.is_some());
    let whole = |label, order| Offer { label, member: None, order };
    if !runs {
        all.push(whole("Check copies", scrub(false, false)));
        all.push(whole("Check and repair", scrub(true, false)));
    }
    all.push(whole("End the scrub", scrub(false, true)));
    all.push(whole("Detach the cache", Order::Cache(CacheOrder::Detach)));
    all.push(whole("Lock", Order::Whole(WholeOrder::Lock { force: false })));
    all.push(whole("Unlock", Order::Whole(WholeOrder::Unlock)));
    all.push(whole("Erase", Order::Whole(WholeOrder::Erase { force: false })));
    all.retain(|offer| said(status, &offer.order).is_ok());
    all
}

#[cfg(test)]
mod tests;
