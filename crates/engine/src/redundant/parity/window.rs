//! One window of a pass over stripes: rows under a lock.

use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::{ByRole, Geometry, MemberSpan, Role};
use braid_mem::Buf;
use braid_parity::{Suspect, locate};

use super::{Parity, in_sync_bytes, is_parity, readable_roles, roles_in_sync};
use crate::canary::Canary;
use crate::redundant::core::Core;
use crate::redundant::found::{BLOCK, Found, Mismatch, MismatchMember, half_of, join_places};
use crate::redundant::keeping::{Finder, Inner, Lost};
use crate::redundant::kind::JobKind;
use crate::redundant::roster::{Member, Slot};
use crate::redundant::stripe::columns::Columns;

/// Result of the comparison of a part of a window.
enum Compared {
    Done(Found),
    /// Unreadable blocks were rewritten: the part is still to be compared.
    Healed(Found),
    /// A member cannot read all of it: the halves are to be compared, so that each page, and if necessary each
    /// block, is judged by its own reads.
    InHalves,
}

impl Parity {
    /// Fills `rows` of `members` under a lock: from the members that they are to replace, or from the others,
    /// with one read for all of them. Returns the parts that no member can provide.
    pub(super) async fn fill_columns(
        &self,
        inner: &Rc<Inner>,
        members: Vec<Rc<Member>>,
        rows: MemberSpan,
    ) -> Vec<Lost> {
        let core = &inner.core;
        // Memory first: a holder of memory then needs only the lock.
        let needed = self.geometry.members() * rows.len as usize;
        let memory = core.work.pool().get_wait(needed).await;
        let (mut columns, _) = Columns::new(&self.geometry, rows, memory, |_| true);
        let _locked = core.lane.ranges().lock(in_sync_bytes(rows)).await;
        let mut lost = Vec::new();
        let mut parts = vec![rows];
        while let Some(part) = parts.pop() {
            let Err(unreadable) = self.fill_part(inner, &members, &mut columns, part).await else {
                continue;
            };
            let block = u64::from(core.limits.logical_block);
            if part.len <= block {
                lost.push(Lost { place: part, unreadable });
                continue;
            }
            let half = (part.len / 2).next_multiple_of(block);
            let (first, rest) = part.split_at(half);
            parts.extend([rest, first]);
        }
        lost
    }

    /// Fills `part` of the rows of `columns`. If the readable members do not suffice, returns those in sync
    /// that cannot be read.
    async fn fill_part(
        &self,
        inner: &Rc<Inner>,
        members: &[Rc<Member>],
        columns: &mut Columns,
        part: MemberSpan,
    ) -> Result<(), Vec<Rc<Member>>> {
        let core = &inner.core;
        let is_filled = |member: &&Rc<Member>| member.recovering().is_some();
        let members: Vec<Rc<Member>> = members.iter().filter(is_filled).cloned().collect();
        let mut wanted: Vec<Role> = members.iter().filter_map(|member| member.role()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut readable = readable_roles(core, part);
        let holder = |role: Role| core.roster.slots()[role].readable().cloned();
        let listed = readable.roles_where(|is_readable| !is_readable);
        let mut unreadable: Vec<Rc<Member>> = listed.filter_map(holder).collect();
        // If all targets replace working members, only these are read.
        let mut sources = wanted.clone();
        loop {
            if !sources.iter().all(|role| readable[*role]) {
                sources = readable.roles_where(|is_readable| *is_readable).collect();
            }
            let reads: Vec<(Role, MemberSpan)> = sources.iter().map(|role| (*role, part)).collect();
            let failed = columns.read(&core.roster, &reads).await;
            if failed.is_empty() {
                break;
            }
            for (role, member) in failed {
                readable[role] = false;
                unreadable.extend(member);
            }
        }
        if !wanted.iter().all(|role| readable[*role]) {
            if !self.may_reconstruct(core, part, &readable)
                || !columns.recover(part, &|role| readable[role])
            {
                return Err(unreadable);
            }
            let is_lost_parity = |role: Role| {
                wanted.contains(&role)
                    && !readable[role]
                    && is_parity(self.geometry.column_of(columns.stripe, role))
            };
            let lost = ByRole::new(readable.len(), is_lost_parity);
            columns.compute(part, &|role| lost[role], &|_| None);
            for member in unreadable {
                inner.heal_later(member, in_sync_bytes(part), Finder::Pass);
            }
        }
        for role in wanted {
            let has_role = |member: &&Rc<Member>| member.role() == Some(role);
            let targets: Vec<Rc<Member>> = members.iter().filter(has_role).cloned().collect();
            let [before, payload, rest] = columns.take_apart(role, part);
            let payload = core.store_filled(&targets, part.offset, payload).await;
            columns.put_together(role, [before, payload, rest]);
        }
        Ok(())
    }

    /// Compares the data of `rows` with their parity. A resync recomputes parity. A repair rewrites the data or
    /// parity that is proved wrong: with two present parities, of the one member that explains the mismatch. A
    /// forced repair recomputes parity without a proof. Unreadable blocks are always rewritten.
    pub(super) async fn compare_rows(
        &self,
        inner: &Rc<Inner>,
        rows: MemberSpan,
        kind: JobKind,
    ) -> Found {
        let core = &inner.core;
        let geometry = &self.geometry;
        let block = u64::from(core.limits.logical_block);
        let mut found = Found::default();
        let mut parts = vec![rows];
        let mut again = 2 * rows.len / block;
        while let Some(part) = parts.pop() {
            // Memory first, for each part: a lock held while waiting could block the holder of the memory.
            let needed = (geometry.members() + geometry.parities()) * part.len as usize;
            let memory = core.work.pool().get_wait(needed).await;
            let _locked = core.lane.ranges().lock(in_sync_bytes(part)).await;
            match self.compare_part(core, part, kind, memory).await {
                Compared::Done(one) => {
                    if kind == JobKind::Resync && one.unsettled.is_none() {
                        core.agreement.was_compared(in_sync_bytes(part));
                    }
                    found.add(one, usize::MAX);
                }
                Compared::Healed(one) if again > 0 => {
                    again -= 1;
                    found.add(one, usize::MAX);
                    parts.push(part);
                }
                Compared::Healed(mut one) => {
                    one.is_unsettled(in_sync_bytes(part)); // A rewritten block is unreadable again and again.
                    found.add(one, usize::MAX);
                }
                Compared::InHalves => {
                    let half = half_of(part.len, block);
                    let (first, rest) = part.split_at(half);
                    parts.extend([rest, first]);
                }
            }
        }
        found
    }

    async fn compare_part(
        &self,
        core: &Rc<Core>,
        part: MemberSpan,
        kind: JobKind,
        memory: Buf,
    ) -> Compared {
        let mut found = Found::default();
        let (mut columns, rest) = Columns::new(&self.geometry, part, memory, |_| true);
        let is_there = roles_in_sync(core);
        let missing = is_there.roles_where(|is_there| !is_there).count();
        if missing >= self.geometry.parities() {
            return Compared::Done(found); // Without spare parity there is no mismatch to find.
        }
        let is_divisible = part.len > u64::from(core.limits.logical_block);
        let mut readable = readable_roles(core, part);
        if readable != is_there {
            // A place in a bad-block log is no new error.
            if is_divisible {
                return Compared::InHalves;
            }
            found.listed += part.len;
        }
        let sources = readable.roles_where(|is_readable| *is_readable);
        let reads: Vec<(Role, MemberSpan)> = sources.map(|role| (role, part)).collect();
        let failed = columns.read(&core.roster, &reads).await;
        if failed.is_empty() && readable == is_there {
            found.compared += part.len;
            let wrong = judge(core, &mut columns, &is_there, rest, kind, &mut found);
            self.rewrite_columns(core, &mut columns, &wrong, &mut found).await;
            return Compared::Done(found);
        }
        if failed.is_empty() {
            if kind == JobKind::Resync && !core.agreement.holds_for(in_sync_bytes(part)) {
                // No member has the listed data, and the parity of these rows cannot be made to fit it: the
                // data there must not be used for reconstruction.
                found.is_unsettled(in_sync_bytes(part));
            }
            return Compared::Done(found);
        }
        if part.len > BLOCK as u64 {
            return Compared::InHalves;
        }
        failed.iter().for_each(|(role, _)| readable[*role] = false);
        if !self.may_reconstruct(core, part, &readable)
            || !columns.recover(part, &|role| readable[role])
        {
            if is_divisible {
                return Compared::InHalves;
            }
            found.is_unsettled(in_sync_bytes(part));
            return Compared::Done(found);
        }
        let lost = ByRole::new(readable.len(), |role| {
            !readable[role] && is_parity(self.geometry.column_of(columns.stripe, role))
        });
        columns.compute(part, &|role| lost[role], &|_| None);
        for (role, member) in failed {
            let Some(member) = member else { continue };
            let payload = columns.take(role);
            match core.write_again(&member, part, payload, Finder::Pass).await {
                (true, _) => found.unreadable += 1,
                (false, _) => found.is_unsettled(in_sync_bytes(part)),
            }
        }
        if found.unsettled.is_none() { Compared::Healed(found) } else { Compared::Done(found) }
    }

    /// Writes the rows of the roles in `wrong`, whose buffers are correct, to their members, and to their
    /// replacements.
    async fn rewrite_columns(
        &self,
        core: &Rc<Core>,
        columns: &mut Columns,
        wrong: &[(Role, MemberSpan)],
        found: &mut Found,
    ) {
        for &(role, rows) in wrong {
            let members: Vec<Rc<Member>> = core.roster.slots()[role].written().cloned().collect();
            let [before, mut payload, behind] = columns.take_apart(role, rows);
            for member in members {
                let copy = payload.share();
                let (is_written, _) = core.make_equal(&member, rows, copy).await;
                match is_written {
                    true if member.is_in_sync() => found.repaired += rows.len,
                    // The rows still differ, and the caller has to know.
                    false if member.is_in_sync() => found.is_unsettled(in_sync_bytes(rows)),
                    _ => {}
                }
            }
            columns.put_together(role, [before, payload, behind]);
        }
    }
}

/// Compares block by block. Returns the rows of the roles that are to be written, whose buffers are then
/// correct. `memory` has room for the parities.
fn judge(
    core: &Core,
    columns: &mut Columns,
    is_there: &ByRole<bool>,
    mut memory: Buf,
    kind: JobKind,
    found: &mut Found,
) -> Vec<(Role, MemberSpan)> {
    let rows = columns.rows;
    let parity = [Column::P, Column::Q].into_iter().take(columns.geometry.parities());
    let parity: Vec<Role> = parity.map(|column| columns.role_of(column)).collect();
    // After a crash no member is wrong. With one parity, or none to spare, no wrong member can be found.
    let is_provable =
        kind != JobKind::Resync && parity.len() == 2 && is_there.values().all(|is_there| *is_there);
    // Missing data is reconstructed first, by P if possible, and then nothing contradicts P.
    let lost_data =
        (0..columns.geometry.data()).any(|index| !is_there[columns.role_of(Column::Data(index))]);
    let recovered = columns.recover(rows, &|role| is_there[role]);
    assert!(recovered, "fewer are missing than there is parity");
    // The stored parity is put aside, and the computed parity takes its place.
    let mut stored: Vec<Buf> = Vec::new();
    for role in &parity {
        let rest = memory.split_off(rows.len as usize);
        let mut aside = std::mem::replace(&mut memory, rest);
        aside.copy_from_slice(columns.get(*role, rows));
        stored.push(aside);
    }
    let used_for_recovery = if lost_data { Some(parity[0]) } else { None };
    let is_compared = |role: Role| is_there[role] && Some(role) != used_for_recovery;
    columns.compute(rows, &|role| is_compared(role), &|_| None);
    let mut wrong = Vec::new();
    for start in (0..rows.len).step_by(BLOCK) {
        let block = MemberSpan::new(rows.offset + start, (rows.len - start).min(BLOCK as u64));
        let range = start as usize..(start + block.len) as usize;
        let differs: Vec<Role> = parity
            .iter()
            .zip(&stored)
            .filter(|(role, stored)| {
                is_compared(**role) && stored[range.clone()] != *columns.get(**role, block)
            })
            .map(|(role, _)| *role)
            .collect();
        if differs.is_empty() {
            continue;
        }
        let suspect = match is_provable {
            true => suspect_of(columns, &parity, &mut stored, block, &range),
            false => None,
        };
        found.differ(mismatch(core, columns, block, suspect));
        match suspect {
            _ if kind == JobKind::Check => {}
            Some(role) => {
                put_in_place(columns, &parity, &stored, role, block, &range);
                wrong.push((role, block));
            }
            // Parity is recomputed from possibly wrong data only after a crash, or by order.
            None if kind.settles() || Canary::UnprovedWritten.is_planted() => {
                wrong.extend(differs.into_iter().map(|role| (role, block)));
            }
            None => {}
        }
    }
    join_places(wrong)
}

/// Returns the mismatch at `block`, where data and parity do not agree.
fn mismatch(core: &Core, columns: &Columns, block: MemberSpan, suspect: Option<Role>) -> Mismatch {
    let Columns { geometry, stripe, .. } = columns;
    let member = |(role, slot): (Role, &Slot)| {
        let offset = slot.readable()?.on_device(block.offset);
        Some(MismatchMember { role, offset, group: 0, is_wrong: suspect == Some(role) })
    };
    let within = block.offset - geometry.rows_of_stripe(*stripe).offset;
    let chunks = (0..geometry.data() as u64).zip((0..geometry.data()).map(Column::Data));
    let first = geometry.span_of_stripe(*stripe).offset.get();
    Mismatch {
        offset: in_sync_bytes(block).offset.get(),
        len: block.len,
        array: chunks
            .filter(|(_, column)| suspect.is_none_or(|role| role == columns.role_of(*column)))
            .map(|(index, _)| first + index * geometry.chunk() + within)
            .collect(),
        members: core.roster.slots().iter().filter_map(member).collect(),
    }
}

/// Returns the one role that explains why P and Q do not fit; `stored` then holds the differences.
fn suspect_of(
    columns: &Columns,
    parity: &[Role],
    stored: &mut [Buf],
    block: MemberSpan,
    range: &std::ops::Range<usize>,
) -> Option<Role> {
    for (role, stored) in parity.iter().zip(&mut *stored) {
        braid_parity::xor_into(&mut stored[range.clone()], columns.get(*role, block));
    }
    match locate(&stored[0][range.clone()], &stored[1][range.clone()]) {
        Suspect::P => Some(parity[0]),
        Suspect::Q => Some(parity[1]),
        Suspect::Data(power) => (0..columns.geometry.data())
            .find(|index| columns.geometry.power(columns.stripe, *index) == power)
            .map(|index| columns.role_of(Column::Data(index))),
        Suspect::None | Suspect::Several => None,
    }
}

/// Corrects the buffer of `role` in `block`: parity is correct already, data lacks the difference of P.
fn put_in_place(
    columns: &mut Columns,
    parity: &[Role],
    differences: &[Buf],
    role: Role,
    block: MemberSpan,
    range: &std::ops::Range<usize>,
) {
    if !parity.contains(&role) {
        braid_parity::xor_into(columns.get_mut(role, block), &differences[0][range.clone()]);
    }
}
