//! A thread that watches the members beside their work: which are gone, and which are slow.
//!
//! ```text
//!   every 250 ms   block devices that are not there ──▶ taken out of their array
//!   every 5 s      counters of the last minute ──▶ Judge ──▶ status; copies are read elsewhere
//! ```
//!
//! Invariants
//! * Nothing here waits for a member: a device is looked for in /sys, and asked for its size.
//! * A member without which the array cannot be read is not taken out; the engine refuses.
//! * Of a file that was deleted only `status` tells: it works as long as it is open.
//!
//! Deliberately absent: what happens when a member comes back (`watcher`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use braid_engine::redundant::{MemberState, Redundant};
use braid_member::Member;
use braid_uring::Remote;

use super::media::{Media, Siblings};
use super::shard;
use super::slow::{Judge, Sample, between};
use crate::control::MemberIo;

/// Interval between two looks for members that are gone.
const LOOK: Duration = Duration::from_millis(250);
/// In how many looks members are judged once.
const LOOKS: u32 = 20;
/// Judgements that a window spans: a minute.
const WINDOW: usize = 12;

/// The members of a volume, watched until they are dropped.
pub(super) struct Health {
    judge: Arc<Mutex<Judge>>,
}

impl Health {
    /// Watches the members of `media`, whose arrays that survive losses live on the shard `remote`.
    ///
    /// # Errors
    /// No thread is to be had.
    pub(super) fn start(media: &Arc<Media>, remote: Remote) -> std::io::Result<Health> {
        let judge = Arc::<Mutex<Judge>>::default();
        let mut thread = Watching {
            media: Arc::downgrade(media),
            remote,
            judge: Arc::clone(&judge),
            windows: VecDeque::new(),
            start: Instant::now(),
        };
        std::thread::Builder::new().name("members".to_owned()).spawn(move || thread.run())?;
        Ok(Health { judge })
    }

    /// Why a member is an outlier among its siblings, if it is.
    pub(super) fn why_slow(&self, leaf: &Member) -> Option<String> {
        self.judge.lock().unwrap_or_else(PoisonError::into_inner).why(leaf.id())
    }
}

/// State of the thread.
struct Watching {
    media: Weak<Media>,
    remote: Remote,
    judge: Arc<Mutex<Judge>>,
    /// Counters of members as they were at the last judgements, the oldest first.
    windows: VecDeque<BTreeMap<u64, MemberIo>>,
    start: Instant,
}

impl Watching {
    fn run(&mut self) {
        for look in (1..=LOOKS).cycle() {
            std::thread::sleep(LOOK);
            let Some(media) = self.media.upgrade() else { return };
            self.take_out_gone(&media);
            if look == LOOKS {
                self.judge(&media);
            }
        }
    }

    /// Has the arrays go on without members whose devices are gone.
    fn take_out_gone(&self, media: &Media) {
        for leaf in media.leaves() {
            let (Some(why), Some(label)) = (leaf.vanished(), leaf.path()) else { continue };
            shard::call(&self.remote, move |handle, local| {
                for one in &local.arrays {
                    let (array, label) = (one.array.clone(), label.clone());
                    if states(&array).any(|(of, state)| of == label && state != MemberState::Faulty)
                    {
                        handle.spawn(async move {
                            // One that is needed is kept, and looked at again soon.
                            let _ = array.fail_because(&label, why).await;
                        });
                    }
                }
            });
        }
    }

    /// Judges which members are slow, and makes reads of copies avoid them.
    fn judge(&mut self, media: &Media) {
        let siblings = media.siblings();
        let leaves = siblings.iter().flat_map(|array| &array.members);
        let now: BTreeMap<u64, MemberIo> =
            leaves.map(|(_, leaf)| (leaf.id(), leaf.tally().read())).collect();
        let idle = self.idle(media);
        let mut judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = self.windows.front() {
            let sample = |(called, leaf): &(String, Arc<Member>)| {
                let counted = between(before.get(&leaf.id())?, now.get(&leaf.id())?);
                (!idle.contains(called)).then_some(Sample { id: leaf.id(), counted })
            };
            for Siblings { array, members } in &siblings {
                let samples: Vec<Sample> = members.iter().filter_map(sample).collect();
                judge.judge(self.start.elapsed(), array, &samples);
            }
        }
        judge.keep(&now.keys().copied().collect::<Vec<_>>());
        let mut slow = BTreeSet::new();
        let mut known = BTreeSet::new();
        for (called, leaf) in siblings.iter().flat_map(|array| &array.members) {
            // Two arrays of one stack may call members the same: then neither is avoided.
            if !known.insert(called.clone()) {
                slow.remove(called);
            } else if judge.is_slow_to_read(leaf.id()) {
                slow.insert(called.clone());
            }
        }
        drop(judge);
        if media.has_state() {
            shard::call(&self.remote, move |_, local| {
                local.arrays.iter().for_each(|one| one.array.avoid(|label| slow.contains(label)));
            });
        }
        self.windows.push_back(now);
        if self.windows.len() > WINDOW {
            self.windows.pop_front();
        }
    }

    /// Members that do not do what their siblings do: spares, faulty ones, those being filled.
    fn idle(&self, media: &Media) -> BTreeSet<String> {
        if !media.has_state() {
            return BTreeSet::new();
        }
        let idle = shard::ask(&self.remote, |_, local| {
            let all = local.arrays.iter().flat_map(|one| states(&one.array));
            all.filter(|(_, state)| *state != MemberState::InSync).map(|(label, _)| label).collect()
        });
        idle.unwrap_or_default()
    }
}

fn states(array: &Redundant) -> impl Iterator<Item = (String, MemberState)> {
    array.status().members.into_iter().map(|member| (member.label, member.state))
}
