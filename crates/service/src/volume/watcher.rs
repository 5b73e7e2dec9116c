//! Looking for members that went away: the thread beside the control socket, and what udev tells.
//!
//! ```text
//!   every second, or told ──▶ arrays' members, what lies at their paths ──▶ returning (pure)
//!                                                                              │ acts
//!   the array ◀── let go of what is left, take in by the bitmap ◀──────────────┘
//! ```
//!
//! Invariants: the data path is not touched, but by the orders that an operator could give, too;
//! nothing is written to a device before `newcomer` has judged it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use braid_engine::redundant::{BY_ORDER, REPLACED_BY};
use braid_md::{Role, Uuid};
use braid_member::Member;
use braid_probe::{Identity, identify};
use braid_stack::Stack;
use braid_uring::Remote;

use super::asking::no_array;
use super::md::MdArray;
use super::media::Media;
use super::own::Own;
use super::returning::{Act, Back, Returning, Sight, Standing};
use super::spec::{ReAdd, Spec};
use super::to_shard::Orders;
use super::{arrays, members};
use crate::control::{Answer, ArrayMember, ArrayStatus, DeviceOrder, ErrorCode};
use crate::failure::Failure;
use crate::membership::find_device;
use crate::metadata::Metadata;

/// Interval between two looks for members.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Beginning of the remark of a member whose device went away.
const DEVICE_WENT: &str = "its device went away";

/// Looks for members, one look at a time.
pub(super) struct Watcher {
    volume: String,
    own: Own,
    /// None for a volume whose members cannot come back.
    policy: Option<ReAdd>,
    /// Identifiers by which members can be found elsewhere.
    lasting: Vec<(PathBuf, String)>,
    remote: Remote,
    began: Instant,
    returning: Mutex<Returning>,
    /// Held for a look, with what follows from it; what tells members apart that came since.
    turn: Mutex<BTreeMap<String, Uuid>>,
}

/// A member, and the array that it is of.
struct Seen<'a> {
    sight: Sight,
    array: &'a MdArray,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    pub(super) fn new(spec: &Spec, media: &Media, remote: Remote) -> Watcher {
        let is_watched = spec.control.is_some() && !spec.read_only && redundant(media).count() > 0;
        Watcher {
            volume: spec.name.clone(),
            own: Own::new(spec),
            policy: is_watched.then_some(spec.re_add),
            lasting: spec.lasting.clone(),
            remote,
            began: Instant::now(),
            returning: Mutex::new(Returning::new(spec.re_add)),
            turn: Mutex::default(),
        }
    }

    /// As `status` tells it.
    pub(super) fn policy(&self) -> Option<String> {
        self.policy.map(|policy| policy.word().to_owned())
    }

    pub(super) fn says(&self) -> Vec<String> {
        locked(&self.returning).says(&self.volume)
    }

    pub(super) fn next(&self) -> Option<String> {
        locked(&self.returning).next(&self.volume)
    }

    pub(super) fn let_go(&self, member: &str) {
        locked(&self.returning).let_go(member);
    }

    /// Carries out an order about a device that came or went.
    pub(super) fn told(&self, media: &Media, order: &DeviceOrder, orders: &Orders) -> Answer {
        if self.policy.is_none() {
            return Err(no_array("no array of the volume takes members in while it is up"));
        }
        match order {
            DeviceOrder::Back { device } => self.came(media, device, orders),
            DeviceOrder::Gone { device } => self.went(media, device, orders),
        }
    }

    fn came(&self, media: &Media, device: &Path, orders: &Orders) -> Answer {
        let uuids = locked(&self.turn).clone();
        let (acts, _, mut returning) = self.acts(media, Some(device), &uuids, true);
        if !acts.is_empty() {
            orders.begin()?;
            if let Some(text) = self.look(media, Some(device)).first() {
                return Ok(text.clone());
            }
            returning = locked(&self.returning).clone();
        }
        let said = returning.says(&self.volume);
        let of_device = said.iter().find(|line| line.contains(&device.display().to_string()));
        Err(match of_device {
            Some(line) => Failure::refused(line),
            None => Failure::refused(format_args!(
                "{}: no member of {} is missing that could come back by it",
                device.display(),
                self.volume
            ))
            .code(ErrorCode::NoSuchMember),
        })
    }

    /// Fails the member on a device that is gone, as udev reports.
    fn went(&self, media: &Media, device: &str, orders: &Orders) -> Answer {
        let _turn = locked(&self.turn);
        let number = format!("block {device} ");
        let by_number =
            locked(&self.returning).on(|place| place.starts_with(&number)).map(str::to_owned);
        let label = by_number.unwrap_or_else(|| device.to_owned());
        let has = |array: &&MdArray| array.leaves().iter().any(|leaf| leaf.label == label);
        let Some(array) = redundant(media).find(has) else {
            return Err(Failure::refused(format_args!("{device} is no member of {}", self.volume))
                .code(ErrorCode::NoSuchMember));
        };
        members::device_went(array, orders, &label, DEVICE_WENT)
    }

    fn orders(&self) -> std::io::Result<Orders> {
        Orders::own(&self.remote)
    }

    /// Looks once, also at `hint`, and does what follows; answers what was done.
    pub(super) fn look(&self, media: &Media, hint: Option<&Path>) -> Vec<String> {
        let mut uuids = locked(&self.turn);
        let (acts, seen, _) = self.acts(media, hint, &uuids, false);
        acts.into_iter().filter_map(|act| self.carry_out(act, &seen, &mut uuids)).collect()
    }

    /// Looks once, also at `hint`. Returns what follows, the members that were seen, and what is known of them then;
    /// `is_plan` keeps that from being remembered.
    fn acts<'a>(
        &self,
        media: &'a Media,
        hint: Option<&Path>,
        uuids: &BTreeMap<String, Uuid>,
        is_plan: bool,
    ) -> (Vec<Act>, Vec<Seen<'a>>, Returning) {
        let statuses = arrays::all(media, Some(&self.remote), false);
        let Some(seen) = see(media, &statuses) else {
            return (Vec::new(), Vec::new(), locked(&self.returning).clone());
        };
        let used: Vec<&str> = statuses
            .iter()
            .flat_map(|array| &array.members)
            .filter(|one| one.state != "faulty")
            .map(|one| one.member.as_str())
            .collect();
        let mut find = |member: &str| {
            let array = seen.iter().find(|one| one.sight.member == member)?.array;
            let uuid = uuids.get(member).copied().or_else(|| array.uuid_of(member));
            let lasting = self.lasting.iter().find(|(path, _)| path.as_path() == Path::new(member));
            let elsewhere = || lasting.and_then(|(_, identity)| find_device(identity));
            let look = |path: PathBuf| match used.contains(&&*path.display().to_string()) {
                true => None,
                false => carried(path, array, uuid),
            };
            look(PathBuf::from(member))
                .or_else(|| look(elsewhere()?))
                .or_else(|| look(hint?.to_owned()))
        };
        let sights: Vec<Sight> = seen.iter().map(|one| one.sight.clone()).collect();
        let mut remembered = locked(&self.returning);
        let mut returning = remembered.clone();
        let acts = returning.look(self.began.elapsed(), &sights, &mut find);
        if !is_plan {
            remembered.clone_from(&returning);
        }
        (acts, seen, returning)
    }

    fn carry_out(
        &self,
        act: Act,
        seen: &[Seen<'_>],
        uuids: &mut BTreeMap<String, Uuid>,
    ) -> Option<String> {
        let (Act::ReAdd { member, .. } | Act::Note { member, .. }) = &act;
        let array = seen.iter().find(|one| one.sight.member == *member)?.array;
        let answer = |answered: &dyn Fn(&Orders) -> Answer| {
            answered(&self.orders().map_err(Failure::failed)?)
        };
        match &act {
            Act::Note { text, .. } => {
                // A note that the array does not get is in the log of the volume.
                let _ = answer(&|remote| members::note(array, remote, text.clone()));
                Some(text.clone())
            }
            Act::ReAdd { member, at } => {
                let uuid = uuids.get(member).copied().or_else(|| array.uuid_of(member));
                let Back { path, is_spare } = at;
                let again = !is_spare;
                let answer = self.own.check(path).map_err(|error| error.failure()).and_then(|()| {
                    answer(&|remote| members::bring_back(array, remote, member, path, again))
                });
                // The next command is told apart from it.
                let first =
                    |failure: &Failure| failure.why.lines().next().unwrap_or_default().to_owned();
                let result = answer.as_ref().map(drop).map_err(first);
                uuids.extend(uuid.map(|uuid| (path.display().to_string(), uuid)));
                locked(&self.returning).done(self.began.elapsed(), member, path, result);
                answer.ok()
            }
        }
    }
}

/// The arrays whose members can come and go.
fn redundant(media: &Media) -> impl Iterator<Item = &MdArray> {
    let is_watched = |array: &&MdArray| array.level.is_redundant() && !array.limits().read_only;
    media.md_arrays().into_iter().filter(is_watched)
}

/// All members that there are, or should be; none if an array does not answer.
fn see<'a>(media: &'a Media, statuses: &[ArrayStatus]) -> Option<Vec<Seen<'a>>> {
    let mut seen: Vec<Seen<'a>> = Vec::new();
    for array in redundant(media) {
        let uuid = array.superblock.array_uuid.to_string();
        let status = statuses.iter().find(|one| one.uuid.as_deref() == Some(&uuid))?;
        let filled = |one: &&ArrayMember| one.state == "recovering" && !one.replacement;
        let missing = status.in_sync.iter().filter(|in_sync| !**in_sync).count();
        let is_short = missing > status.members.iter().filter(filled).count();
        let sight = |member: &str, standing| Sight {
            place: place(Path::new(member)),
            member: member.to_owned(),
            standing,
            is_short,
        };
        let leaves = array.leaves();
        let was_cut_off = |one: &ArrayMember| {
            let traffic = leaves.iter().find(|leaf| leaf.label == one.member)?.traffic()?;
            Some(traffic.read().overdue > 0)
        };
        let standing = |one| standing(one, was_cut_off(one) == Some(true));
        let there = status.members.iter().map(|one| sight(&one.member, standing(one)));
        let is_there = |name: &String| status.members.iter().any(|one| one.member == *name);
        let absent = array.named().into_iter().filter(|name| !is_there(name)).map(|name| {
            let was_there = array.left_out.iter().any(|one| one.member == name);
            sight(&name, Standing::Absent { was_there })
        });
        seen.extend(there.chain(absent).map(|sight| Seen { sight, array }));
    }
    Some(seen)
}

/// Returns the standing of a member; `was_cut_off` says that its server was out of reach for longer than the deadline.
fn standing(member: &ArrayMember, was_cut_off: bool) -> Standing {
    let remark = member.remark.as_deref().unwrap_or_default();
    match member.state.as_str() {
        "faulty" if remark == BY_ORDER || remark.starts_with(REPLACED_BY) => Standing::OutByOrder,
        "faulty" if remark.starts_with(DEVICE_WENT) || was_cut_off => Standing::DeviceWent,
        "faulty" => Standing::Faulty,
        _ => Standing::Works,
    }
}

/// Returns the identity of the object at a path: a file, or a device as it was plugged in this time; `None` without one.
fn place(path: &Path) -> Option<String> {
    if let Some(remote) = Stack::remote_called(path) {
        // Whether the server is there is asked for when its member is missed.
        return Some(format!("remote {}", remote.remote_identity().unwrap_or_default()));
    }
    match identify(path).ok()?.1 {
        Identity::File { device, inode } => Some(format!("file {device} {inode}")),
        Identity::Block(number) => {
            let attribute = |name: &str| {
                let path = format!("/sys/dev/block/{number}/{name}");
                Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
            };
            // A node that stays behind, and a loop device without a file.
            if attribute("size")? == "0" {
                return None;
            }
            // A partition has the number of its disk.
            let times = attribute("diskseq").or_else(|| attribute("../diskseq"));
            Some(format!("block {number} {}", times.unwrap_or_default()))
        }
    }
}

/// Returns the former state of the device at `path`, if it carries the superblock of this member of the array: of any of
/// its members, where it is not known what tells it apart.
fn carried(path: PathBuf, array: &MdArray, member: Option<Uuid>) -> Option<Back> {
    place(&path)?;
    // A former session tries to connect by itself, and says whether the server is there.
    let label = path.display().to_string();
    let former = array.leaves().into_iter().find(|leaf| leaf.label == label);
    let is_away =
        |leaf: &Arc<Member>| leaf.traffic().is_some_and(|one| one.read().connections == 0);
    if former.as_ref().is_some_and(is_away) {
        return None;
    }
    let found = Metadata::look(&path).ok()?;
    let own = &found.superblock;
    let is_it = own.array_uuid == array.superblock.array_uuid
        && member.is_none_or(|uuid| uuid == own.device_uuid);
    let is_spare = own.roles.get(own.device_number as usize) == Some(&Role::Spare);
    is_it.then_some(Back { path, is_spare })
}
