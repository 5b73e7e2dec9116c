//! Arrays with redundancy, which live on the first shard, as the other shards have them.
//!
//! ```text
//!   client of another shard ──▶ Branch ──▶ the shard's devices on members      requests of a healthy array
//!                                 │  ╌╌╌╌╌╌ ToArray ╌╌╌╌╌▶ the array            all else
//!                                 ◀╌╌╌╌╌╌╌╌ View ╌╌╌╌╌╌╌╌ (engine::redundant)
//!                                 ╌╌╌╌╌╌╌╌╌ Seen ╌╌╌╌╌╌╌╌▶
//! ```
//!
//! Invariant: each view that was sent is answered, also by a shard that has ended: it reads nothing any more, and the
//! array must not wait for it.
//!
//! Deliberately absent: permits on the first shard. A write that crosses holds one of the shard that it came to, and
//! all shards are asked for theirs.

use std::sync::Arc;

use braid_block::Io;
use braid_engine::Pending;
use braid_engine::redundant::{BranchId, Cause, Home, Redundant};
use braid_member::Member;
use braid_uring::Remote;

use super::bridge::cross;
use super::shard::{Local, ToFirst, call};

/// Returns the ways from another shard to the arrays of the shard `first`.
pub(super) fn ways_to(first: &Remote) -> ToFirst {
    let (home, follow) = (first.clone(), first.clone());
    ToFirst {
        home: Box::new(move |array| Box::new(ToArray { first: home.clone(), array })),
        follow: Box::new(move |to, count| follow_views(&follow, to, count)),
    }
}

/// The way to one of the arrays of the first shard.
struct ToArray {
    first: Remote,
    /// Its place in [`Local::arrays`].
    array: usize,
}

impl Home for ToArray {
    fn start(&self, io: Io, cause: Cause) -> Pending {
        let array = self.array;
        cross(&self.first, io, move |local| {
            let engine = local.arrays[array].array.clone();
            move |io| (None, engine.start_at_home(io, cause))
        })
    }

    fn left(&self) {
        let array = self.array;
        call(&self.first, move |_, local| local.arrays[array].array.other_left());
    }
}

/// Has the arrays of the shard `first` send their views to the shard `to`, which has `count` of them.
fn follow_views(first: &Remote, to: &Remote, count: usize) {
    let (first_too, to) = (first.clone(), to.clone());
    call(first, move |_, local| {
        local.others.borrow_mut().push(to.clone());
        for (array, one) in local.arrays.iter().take(count).enumerate() {
            let (first, to) = (first_too.clone(), to.clone());
            one.array.add_branch(move |branch, view| {
                let mut seen = Seen { first: first.clone(), array, branch, number: None };
                call(&to, move |_, local| {
                    local.branches[array].take(branch, &view);
                    seen.take(view.number());
                });
            });
        }
    });
}

/// The answer to a view, given when it is dropped: the shard has taken the view, or has ended.
struct Seen {
    first: Remote,
    array: usize,
    branch: BranchId,
    number: Option<u64>,
}

impl Seen {
    fn take(&mut self, number: u64) {
        self.number = Some(number);
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        let (array, branch, number) = (self.array, self.branch, self.number);
        call(&self.first, move |_, local| {
            local.arrays[array].array.has_seen(branch, number);
        });
    }
}

/// Returns a function that has the other shards open `leaf`, once `engine`, an array of this shard, has taken it in.
pub(super) fn opener(
    local: &Local,
    engine: &Redundant,
    leaf: Arc<Member>,
) -> impl FnOnce() + use<> {
    let (engine, others) = (engine.clone(), local.others.borrow().clone());
    let array = local.arrays.iter().position(|one| one.array.is_same(&engine));
    move || {
        // The member may be out again.
        let Some((array, serial)) = array.zip(engine.serial(&leaf.label)) else { return };
        for other in others {
            let leaf = Arc::clone(&leaf);
            call(&other, move |handle, local| {
                // Without a descriptor, reads of this member go to the first shard.
                if let Ok(dev) = leaf.device(handle, &local.pool) {
                    local.branches[array].open(serial, dev);
                }
            });
        }
    }
}
