//! Mending: recomputing the parity of rows in which a write arrived only in part.
//!
//! ```text
//!   a write fails on more members than parity makes up for:  all members are kept
//!        D0 new   D1 old   P old        ──▶ all data is read, parity computed, compared, stored
//!   agrees now: the write failed, and harmed nothing else
//!   cannot be read or stored: the rows are torn
//! ```
//!
//! It is done under the lock of the write, so that these rows are no source of reconstruction meanwhile. If no
//! part of the write arrived, as on members without free space, only replacements are written: they must forget
//! their part of the write.

use std::rc::Rc;
use std::time::Duration;

use braid_array::geometry::Column;
use braid_array::{Geometry, MemberSpan, Role};
use braid_block::{Flags, Io};
use braid_mem::Buf;

use super::Parity;
use crate::join_all;
use crate::redundant::core::Core;
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;

/// Rows that are mended at a time, in bytes.
const PART: u64 = 16 << 10;
/// Number and length of the waits for memory, whose holder may wait for these rows.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

impl Parity {
    /// Makes the parity of `rows`, which are locked, fit their data. Returns true if it fits now.
    pub(super) async fn mend(&self, core: &Rc<Core>, rows: MemberSpan) -> bool {
        let mut start = rows.offset;
        while start < rows.end() {
            let in_chunk = self.geometry.chunk() - start % self.geometry.chunk();
            let part = MemberSpan::new(start, PART.min(rows.end() - start).min(in_chunk));
            if !self.mend_part(core, part).await {
                return false;
            }
            start = part.end();
        }
        true
    }

    async fn mend_part(&self, core: &Rc<Core>, rows: MemberSpan) -> bool {
        let roles = self.geometry.members();
        let needed = (roles + self.geometry.parities()) * rows.len as usize;
        let Some(memory) = memory_soon(core, needed).await else { return false };
        let (mut columns, mut rest) = Columns::new(&self.geometry, rows, memory, |_| true);
        let all: Vec<(Role, MemberSpan)> = Role::all(roles).map(|role| (role, rows)).collect();
        let sources: Vec<Option<Rc<Member>>> = {
            let slots = core.roster.slots();
            Role::all(roles).map(|role| slots[role].readable().cloned()).collect()
        };
        if !columns.read(&core.roster, &all).await.is_empty() {
            return false;
        }
        let parity = [Column::P, Column::Q].into_iter().take(self.geometry.parities());
        let parity: Vec<Role> = parity.map(|column| columns.role_of(column)).collect();
        let mut stored: Vec<Buf> = Vec::new();
        for role in &parity {
            let behind = rest.split_off(rows.len as usize);
            let mut aside = std::mem::replace(&mut rest, behind);
            aside.copy_from_slice(columns.get(*role, rows));
            stored.push(aside);
        }
        columns.compute(rows, &|role| parity.contains(&role), &|_| None);
        let mut started = Vec::new();
        {
            let slots = core.roster.slots();
            for role in Role::all(roles) {
                let was =
                    parity.iter().position(|one| *one == role).map(|place| &stored[place][..]);
                let is_new = was.is_some_and(|was| *was != *columns.get(role, rows));
                let mut payload = columns.share(role);
                let source = sources[role.index()].as_ref();
                let has_it =
                    |one: &Rc<Member>| source.is_some_and(|source| Rc::ptr_eq(source, one));
                // A replacement may have stored data that the replaced member refused, and may have replaced
                // that member since.
                for member in slots[role].written().filter(|one| is_new || !has_it(one)) {
                    let offset = member.on_device(rows.offset);
                    let io = Io::write(offset, payload.share(), Flags::NONE);
                    started.push(member.dev.start(io));
                }
            }
        }
        join_all(started).await.iter().all(|done| done.result.is_ok())
    }
}

/// Returns memory of the passes, if some becomes free soon.
async fn memory_soon(core: &Core, needed: usize) -> Option<Buf> {
    for _ in 0..TRIES {
        if let Some(memory) = core.work.pool().get(needed) {
            return Some(memory);
        }
        core.clock.sleep(PAUSE).await;
    }
    None
}
