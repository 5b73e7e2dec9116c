//! Scrubs in parts: where each goes on, kept from one life of the volume to the next.
//!
//! ```text
//!   order with an end ──▶ the place that is kept, if the array is what it was ──▶ engine
//!   every few seconds, while one runs ◀── how far it is, what it found ──▶ STATE/scrubs/NAME.json
//!   through to its end, or an order without an end ──▶ forgotten
//! ```
//!
//! Invariants
//! * A place counts for the array that it was begun on: level, size, and which members have which role. It is
//!   not kept on the members, whose superblocks have no room for it that Linux would leave alone, nor in
//!   NAME.toml, which is the user's.
//! * What is kept is whole: it is written beside, and renamed.
//! * Without what is kept, or if it cannot be written, a scrub begins anew, and says so.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use braid_array::Role;
use braid_engine::redundant::{JobKind, Redundant, ScrubFound, ScrubOrder, ScrubPlace, Speed};
use braid_uring::Remote;
use serde::{Deserialize, Serialize};

use super::media::Media;
use super::to_shard::Orders;
use super::{arrays, asking, shard};
use crate::beside::Beside;
use crate::control::{Answer, ArrayStatus, MismatchStatus, ScrubPlaceStatus};

/// The minimum of a pass that has a latency target, if none is given, in bytes a second.
pub(super) const LEAST_WITH_TARGET: u64 = 1 << 20;

/// Interval between two looks at the progress of scrubs: a volume that is killed repeats this much.
const LOOK: Duration = Duration::from_secs(5);

/// The record of one scrub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The array: which of those that survive losses, what it is called, its identifier.
    number: usize,
    called: String,
    uuid: Option<String>,
    /// As it was when the scrub began: [`what`].
    what: String,
    repair: bool,
    #[serde(default)]
    force: bool,
    /// Milliseconds since 1970.
    began_ms: u64,
    seen_ms: u64,
    done_bytes: u64,
    total_bytes: u64,
    mismatch_bytes: u64,
    mismatches: Vec<MismatchStatus>,
    /// Roles, and the bytes in which each is proved to be wrong.
    suspects: Vec<(u16, u64)>,
    unproved_bytes: u64,
    repaired_bytes: u64,
    compared_bytes: u64,
    listed_bytes: u64,
    unread_bytes: u64,
    #[serde(default)]
    unread_ranges: Vec<(u64, u64)>,
}

/// The scrubs in parts of a volume.
pub(super) struct Scrubs {
    /// `None` for a volume that takes no orders.
    file: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: Vec<Kept>,
    is_watched: bool,
    /// Number of orders so far: a look before the last of them says nothing about it.
    orders: u64,
}

/// An array that survives losses, and which of those.
type Numbered<'a> = (usize, &'a ArrayStatus);

/// Those of all arrays.
fn numbered(arrays: &[ArrayStatus]) -> impl Iterator<Item = Numbered<'_>> {
    arrays.iter().filter(|array| array.is_redundant()).enumerate()
}

/// Returns the array for which a place counts: its kind and its members.
fn what(array: &ArrayStatus) -> String {
    let in_sync = array.members.iter().filter(|member| member.state == "in_sync");
    let mut members: Vec<String> = in_sync
        .map(|member| {
            // Without superblocks a number is no more than a place in the stack.
            let name = if array.uuid.is_none() { member.member.as_str() } else { "" };
            format!("{}:{}{name}", member.role.unwrap_or(u16::MAX), member.number)
        })
        .collect();
    members.sort();
    format!("{} {} {}", array.level, array.size_bytes, members.join(" "))
}

impl Kept {
    fn new((number, array): Numbered<'_>, what: String, now_ms: u64, place: ScrubPlace) -> Kept {
        let found = place.found;
        Kept {
            number,
            called: array.called.clone(),
            uuid: array.uuid.clone(),
            what,
            repair: place.kind != JobKind::Check,
            force: place.kind == JobKind::ForcedRepair,
            began_ms: now_ms,
            seen_ms: now_ms,
            done_bytes: place.done,
            total_bytes: place.total,
            mismatch_bytes: found.mismatches,
            mismatches: found.mismatch_places.iter().map(arrays::mismatch_of).collect(),
            suspects: found.suspects.iter().map(|(role, bytes)| (role.get(), *bytes)).collect(),
            unproved_bytes: found.unproved,
            repaired_bytes: found.repaired,
            compared_bytes: found.compared,
            listed_bytes: found.listed,
            unread_bytes: found.unread,
            unread_ranges: found.unread_places,
        }
    }

    fn kind(&self) -> JobKind {
        scrub_kind(self.repair, self.force)
    }

    fn place(&self) -> ScrubPlace {
        let suspects = self.suspects.iter();
        ScrubPlace {
            kind: self.kind(),
            done: self.done_bytes,
            total: self.total_bytes,
            found: ScrubFound {
                mismatches: self.mismatch_bytes,
                mismatch_places: self.mismatches.iter().map(arrays::mismatch).collect(),
                suspects: suspects.map(|(role, bytes)| (Role::new(*role), *bytes)).collect(),
                unproved: self.unproved_bytes,
                repaired: self.repaired_bytes,
                compared: self.compared_bytes,
                listed: self.listed_bytes,
                unread: self.unread_bytes,
                unread_places: self.unread_ranges.clone(),
            },
        }
    }

    fn is_of(&self, (number, array): Numbered<'_>) -> bool {
        self.number == number && self.called == array.called && self.uuid == array.uuid
    }

    fn is_good(&self, array: Numbered<'_>, kind: JobKind) -> bool {
        self.what == what(array.1) && self.kind() == kind
    }

    fn status(&self) -> ScrubPlaceStatus {
        ScrubPlaceStatus {
            kind: self.kind().to_string(),
            done_bytes: self.done_bytes,
            total_bytes: self.total_bytes,
            began_ms: self.began_ms,
            seen_ms: self.seen_ms,
            mismatch_bytes: self.mismatch_bytes,
            unread_bytes: self.unread_bytes,
        }
    }
}

impl State {
    /// Takes in how `array` is at `now_ms`, with the `place` of its scrub. What was begun on another array is
    /// kept as it was begun, so that it does not count.
    fn see(&mut self, array: Numbered<'_>, place: Option<ScrubPlace>, now_ms: u64) {
        let index = self.kept.iter().position(|kept| kept.is_of(array));
        let before = index.map(|index| self.kept.remove(index));
        let Some(place) = place else {
            let ended_ms = array.1.last_scrub.as_ref().map_or(0, |last| last.ended_ms);
            // One that went through since then leaves nothing to go on with.
            self.kept.extend(before.filter(|kept| ended_ms <= kept.seen_ms));
            return;
        };
        let goes_on = before
            .filter(|kept| kept.kind() == place.kind && kept.done_bytes <= place.done)
            .map(|kept| (kept.what, kept.began_ms));
        let (what, began_ms) = goes_on.unwrap_or_else(|| (what(array.1), now_ms));
        self.kept.push(Kept { began_ms, ..Kept::new(array, what, now_ms, place) });
    }

    /// Returns the scrub of `array` that another one of the same kind continues.
    fn place(&self, array: Numbered<'_>, kind: JobKind) -> Option<&Kept> {
        self.kept.iter().find(|kept| kept.is_of(array) && kept.is_good(array, kind))
    }

    /// Drops the scrubs of `array` that no scrub of this kind continues.
    fn drop_others(&mut self, array: Numbered<'_>, kind: JobKind) {
        self.kept.retain(|kept| !kept.is_of(array) || kept.is_good(array, kind));
    }
}

impl Scrubs {
    /// Those of the last life, from `file`; one that cannot be read has the scrubs begin anew.
    pub(super) fn open(file: Option<PathBuf>) -> Scrubs {
        let mut state = State::default();
        let text = file.as_ref().map(fs::read_to_string);
        match text.map(|text| text.map(|text| serde_json::from_str(&text))) {
            Some(Ok(Ok(kept))) => state.kept = kept,
            Some(Ok(Err(error))) => eprintln!("where scrubs go on is not known: {error}"),
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                eprintln!("where scrubs go on is not known: {error}");
            }
            Some(Err(_)) | None => {}
        }
        Scrubs { file, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to `arrays` how far their scrubs in parts are.
    pub(super) fn tell(&self, arrays: &mut [ArrayStatus]) {
        let state = self.state();
        let place = |array: Numbered<'_>| {
            let kept = state.kept.iter().find(|kept| kept.is_of(array));
            kept.filter(|kept| kept.what == what(array.1)).map(Kept::status)
        };
        let places: Vec<_> = numbered(arrays).map(place).collect();
        for (array, place) in arrays.iter_mut().filter(|one| one.is_redundant()).zip(places) {
            array.scrub_place = place;
        }
    }

    /// A scrub without an end was asked for, or its end: what was kept of the array called `named`, or of
    /// all, is forgotten.
    pub(super) fn forget(&self, named: Option<&str>) {
        let is_meant = |kept: &Kept| {
            named.is_none_or(|text| asking::means(text, &kept.called, kept.uuid.as_deref()))
        };
        let mut state = self.state();
        state.orders += 1;
        state.kept.retain(|kept| !is_meant(kept));
        self.save(&state);
    }

    /// Scrubs the arrays until `until_ms`, from where the last part stopped.
    pub(super) fn scrub(
        self: &Arc<Self>,
        media: &Arc<Media>,
        orders: &Orders,
        part: &Part,
    ) -> Answer {
        let kind = part.kind;
        let remote = orders.remote();
        let found = arrays::all(media, Some(remote), false);
        let is_meant = |array: &ArrayStatus| {
            let named = part.array.as_deref();
            named.is_none_or(|text| asking::means(text, &array.called, array.uuid.as_deref()))
        };
        let places: Vec<Option<ScrubPlace>> = {
            let state = self.state();
            let place = |array: Numbered<'_>| {
                is_meant(array.1).then(|| state.place(array, kind).map(Kept::place)).flatten()
            };
            numbered(&found).map(place).collect()
        };
        let until = Duration::from_millis(part.until_ms);
        let latency = part.latency_us_p99.map(Duration::from_micros);
        let check = |engine: &Redundant| engine.check_writable();
        let answer =
            asking::on_each(orders, part.array.clone(), check, move |index, engine, ()| {
                let from = places.get(index).cloned().flatten();
                let speed = latency.map(|latency| Speed {
                    min: LEAST_WITH_TARGET,
                    latency: Some(latency),
                    ..engine.status().speed
                });
                let text = match &from {
                    Some(place) => {
                        format!("{kind} goes on at {}", percent(place.done, place.total))
                    }
                    None => format!("{kind} begins"),
                };
                let order = ScrubOrder { kind, from, until: Some(until), speed };
                engine.scrub_as(Some(order)).map(|()| text)
            });
        let mut state = self.state();
        state.orders += 1;
        let text = answer?;
        numbered(&found).filter(|one| is_meant(one.1)).for_each(|one| state.drop_others(one, kind));
        self.save(&state);
        if !std::mem::replace(&mut state.is_watched, true) {
            let (scrubs, media, remote) = (Arc::clone(self), Arc::clone(media), remote.clone());
            let watch = move || scrubs.watch(&media, &remote);
            let started = std::thread::Builder::new().name("scrubs".to_owned()).spawn(watch);
            state.is_watched = started.is_ok();
        }
        Ok(text)
    }

    /// Looks how far scrubs are until none runs.
    fn watch(&self, media: &Media, remote: &Remote) {
        loop {
            std::thread::sleep(LOOK);
            let orders = self.state().orders;
            let seen = arrays::all(media, Some(remote), false);
            let places = shard::ask(remote, |_, local| {
                let place = |one: &std::rc::Rc<braid_wiring::Array>| {
                    let status = one.array.status();
                    (status.scrub_place, status.requested.is_some())
                };
                local.arrays.iter().map(place).collect::<Vec<_>>()
            });
            // The volume has ended, or does not answer.
            let Some(places) = places else { continue };
            let mut state = self.state();
            if state.orders != orders {
                continue;
            }
            let before = state.kept.clone();
            let is_running = places.iter().any(|(_, is_wanted)| *is_wanted);
            for (array, (place, _)) in numbered(&seen).zip(places) {
                state.see(array, place, now_ms());
            }
            if state.kept != before {
                self.save(&state);
            }
            if !is_running {
                state.is_watched = false;
                return;
            }
        }
    }

    /// Writes what is kept; without it the next life begins anew.
    fn save(&self, state: &State) {
        let Some(file) = &self.file else { return };
        let write = || -> io::Result<()> {
            if state.kept.is_empty() {
                return match fs::remove_file(file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                };
            }
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            Beside::replace(file, 0o644, &serde_json::to_vec_pretty(&state.kept)?)
        };
        if let Err(error) = write() {
            eprintln!("where scrubs go on cannot be kept in {}: {error}", file.display());
        }
    }
}

/// A part of a scrub that is asked for.
pub(super) struct Part {
    pub(super) kind: JobKind,
    pub(super) until_ms: u64,
    pub(super) latency_us_p99: Option<u64>,
    pub(super) array: Option<String>,
}

/// The kind of scrub that `--repair` and `--force` ask for.
pub(super) fn scrub_kind(repair: bool, force: bool) -> JobKind {
    match (repair, force) {
        (false, _) => JobKind::Check,
        (true, false) => JobKind::Repair,
        (true, true) => JobKind::ForcedRepair,
    }
}

fn percent(done: u64, total: u64) -> String {
    format!("{:.1} %", done as f64 * 100.0 / total.max(1) as f64)
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use braid_engine::redundant::{Mismatch, MismatchMember};

    use super::*;

    fn array(numbers: &[u32], last_ended_ms: Option<u64>) -> ArrayStatus {
        let member = |(role, number): (usize, &u32)| {
            serde_json::json!({
                "member": format!("m{number}"), "number": number, "role": role, "state": "in_sync",
                "recovered_bytes": null, "replacement": false, "write_mostly": false,
                "corrected_reads": 0, "bad_ranges": 0, "remark": null,
            })
        };
        let last = last_ended_ms.map(|ended_ms| {
            serde_json::json!({"kind": "check", "ended_ms": ended_ms, "mismatch_bytes": 0})
        });
        let array = serde_json::json!({
            "name": "a", "called": "a", "uuid": "u", "metadata": "1.2", "level": "raid1",
            "layout": null, "layout_number": 0, "chunk_bytes": null, "size_bytes": 1 << 20,
            "state": "clean", "raid_disks": 2, "in_sync": [true, true], "resync_from_bytes": null,
            "members": numbers.iter().enumerate().map(member).collect::<Vec<_>>(),
            "events": 1, "bitmap_chunk_bytes": null, "bitmap_chunks": null,
            "bitmap_chunks_set": null, "job": null, "requested": null, "last_scrub": last,
            "mismatch_bytes": 0, "mismatch_offsets": [], "speed_min_bytes_per_second": 0,
            "speed_max_bytes_per_second": null, "speed_latency_us_p99": null, "log": [],
        });
        serde_json::from_value(array).expect("a status")
    }

    fn place(kind: JobKind, done: u64) -> ScrubPlace {
        let suspects = vec![(Role::new(1), 4096)];
        let member = |role, group, is_wrong| {
            let role = Role::new(role);
            MismatchMember { role, offset: 1 << 20, group, is_wrong }
        };
        let members = vec![member(0, 0, false), member(1, 1, true), member(2, 0, false)];
        let mismatch_places = vec![Mismatch { offset: 0, len: 4096, array: vec![0], members }];
        let found =
            ScrubFound { mismatches: 4096, mismatch_places, suspects, ..ScrubFound::default() };
        ScrubPlace { kind, done, total: 1 << 20, found }
    }

    #[test]
    fn a_place_is_given_back_as_it_was_seen_for_the_same_scrub_of_the_same_array() {
        let (check, repair, forced) = (JobKind::Check, JobKind::Repair, JobKind::ForcedRepair);
        let same = array(&[0, 1], None);
        let mut state = State::default();
        state.see((0, &same), Some(place(check, 4096)), 10);
        state.see((0, &same), Some(place(check, 8192)), 20);
        let text = serde_json::to_string(&state.kept).expect("JSON");
        state.kept = serde_json::from_str(&text).expect("what was written");
        assert_eq!((state.kept[0].began_ms, state.kept[0].seen_ms), (10, 20));
        fn found(state: &State, array: Numbered<'_>, kind: JobKind) -> Option<ScrubPlace> {
            state.place(array, kind).map(Kept::place)
        }
        assert_eq!(found(&state, (0, &same), check), Some(place(check, 8192)));
        // A place counts for none of these, and is dropped then.
        for (number, other, kind) in [
            (0, array(&[0, 2], None), check),
            (0, same.clone(), repair),
            (0, same.clone(), forced),
            (1, same.clone(), check),
        ] {
            let mut state = State { kept: state.kept.clone(), ..State::default() };
            assert_eq!(found(&state, (number, &other), kind), None, "{other:?}");
            assert!(found(&state, (0, &same), check).is_some(), "to look drops nothing");
            state.drop_others((number, &other), kind);
            assert_eq!(found(&state, (0, &same), check).is_some(), number == 1);
        }
    }

    #[test]
    fn a_member_that_changed_while_it_ran_has_the_next_one_begin_anew() {
        let (before, after) = (array(&[0, 1], None), array(&[0], None));
        let mut state = State::default();
        state.see((0, &before), Some(place(JobKind::Check, 4096)), 10);
        state.see((0, &after), Some(place(JobKind::Check, 8192)), 20);
        assert!(state.place((0, &after), JobKind::Check).is_none());
        // The engine began anew with the new member: a round of its own.
        state.see((0, &before), Some(place(JobKind::Check, 8192)), 10);
        state.see((0, &after), Some(place(JobKind::Check, 4096)), 30);
        let found = state.place((0, &after), JobKind::Check).map(Kept::place);
        assert_eq!(found, Some(place(JobKind::Check, 4096)));
    }

    #[test]
    fn what_went_through_is_forgotten_and_what_only_waited_is_not() {
        let mut state = State::default();
        state.see((0, &array(&[0, 1], Some(5))), Some(place(JobKind::Check, 4096)), 10);
        state.see((0, &array(&[0, 1], Some(5))), None, 20);
        assert_eq!(state.kept.len(), 1, "the time was over before its turn came");
        state.see((0, &array(&[0, 1], Some(15))), None, 20);
        assert_eq!(state.kept, []);
    }
}
