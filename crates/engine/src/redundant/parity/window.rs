//! One window of a pass over stripes: rows under a lock.

use std::rc::Rc;

use braid_array::Geometry;
use braid_array::geometry::Column;
use braid_block::{Flags, Io, Span};
use braid_md::Resync;
use braid_mem::Buf;
use braid_parity::{Suspect, locate};

use super::columns::Columns;
use crate::join_all;
use crate::redundant::Inner;
use crate::redundant::control::JobKind;
use crate::redundant::found::{BLOCK, Found};
use crate::redundant::member::{Member, MemberState};

impl Inner {
    /// Fills `rows` of `member`: from the member that it is to replace, or from the others.
    pub(in crate::redundant) async fn fill_column(
        self: Rc<Self>,
        member: &Rc<Member>,
        rows: Span,
    ) -> Result<(), String> {
        let geometry = self.parity().geometry.clone();
        // Memory first: whoever holds some then needs only the lock.
        let needed = geometry.members() * rows.len as usize;
        let memory = self.work.pool().get_wait(needed).await;
        let (mut columns, _) = Columns::new(&geometry, rows, memory, |_| true);
        let _locked = self.ranges.lock(rows).await;
        let (MemberState::Recovering(_), Some(role)) = (member.state.get(), member.role.get())
        else {
            return Ok(());
        };
        let role = usize::from(role);
        let is_there = self.readable_roles(rows)[role];
        let mut is_known = is_there && columns.read(&self, &[(role, rows)]).await.is_empty();
        if !is_known {
            let failed;
            (is_known, failed) = self.work_out_in_a_pass(&mut columns, role).await;
            if is_known {
                failed.into_iter().for_each(|member| self.put_rows_right(member, rows));
            } else if !failed.is_empty() {
                // Too many cannot read all of these rows; but perhaps not the same ones.
                self.put_blocks_right(&mut columns).await;
                is_known = self.work_out(&mut columns, role).await.0;
            }
        }
        if !is_known {
            return Err(format!("too few members can be read in the rows {rows}"));
        }
        let io = Io::write(member.data_offset + rows.offset, columns.take(role), Flags::NONE);
        member.dev.start(io).await.result.map_err(|errno| format!("a write failed: {errno}"))
    }

    /// Compares the data of `rows` with their parity. A resync makes parity fit its data. A
    /// repair writes what is proved wrong: with two parities that are there, the one member that
    /// explains the mismatch; else the parity, which protects nothing as it is. Always written
    /// again is what cannot be read.
    pub(in crate::redundant) async fn compare_rows(
        self: Rc<Self>,
        rows: Span,
        kind: JobKind,
    ) -> Found {
        let geometry = self.parity().geometry.clone();
        let block = u64::from(self.limits.logical_block);
        let mut found = Found::default();
        let mut parts = vec![rows];
        while let Some(part) = parts.pop() {
            // Memory first, for each part: who waits for it may have what others wait for.
            let needed = (geometry.members() + geometry.parities()) * part.len as usize;
            let memory = self.work.pool().get_wait(needed).await;
            let _locked = self.ranges.lock(part).await;
            match self.compare_part_of_rows(part, kind, memory).await {
                Some(one) => {
                    found.add(one, usize::MAX);
                    if let (JobKind::Resync, Resync::From(frontier)) = (kind, self.resync.get()) {
                        self.parity().was_compared(part, frontier);
                    }
                }
                None => {
                    let half = (part.len / 2).next_multiple_of(block);
                    parts.push(Span::new(part.offset + half, part.len - half));
                    parts.push(Span::new(part.offset, half));
                }
            }
        }
        found
    }

    /// `None` if a member cannot read all of `part`: its halves are to be compared, so that each
    /// block is judged by what can be read of it.
    async fn compare_part_of_rows(
        self: &Rc<Self>,
        part: Span,
        kind: JobKind,
        memory: Buf,
    ) -> Option<Found> {
        let mut found = Found::default();
        let geometry = &self.parity().geometry;
        let (mut columns, rest) = Columns::new(geometry, part, memory, |_| true);
        let is_there: Vec<bool> =
            self.slots.borrow().iter().map(|slot| slot.readable().is_some()).collect();
        let missing = is_there.iter().filter(|is_there| !**is_there).count();
        if missing >= geometry.parities() {
            return Some(found); // Whatever is there, nothing contradicts it.
        }
        let mut readable = self.readable_roles(part);
        let wanted = |readable: &[bool]| -> Vec<(usize, Span)> {
            (0..readable.len()).filter(|role| readable[*role]).map(|role| (role, part)).collect()
        };
        for (role, _) in columns.read(self, &wanted(&readable)).await {
            readable[role] = false;
        }
        if readable != is_there {
            if part.len > u64::from(self.limits.logical_block) {
                return None;
            }
            for role in (0..readable.len()).filter(|role| is_there[*role] && !readable[*role]) {
                found.unreadable += 1;
                let member = self.slots.borrow()[role].readable().cloned();
                if self.work_out(&mut columns, role).await.0
                    && let Some(member) = member
                {
                    self.write_again(&member, part, columns.take(role)).await;
                    // The next one is worked out anew.
                    return Some(found);
                }
            }
            return Some(found);
        }
        let wrong = judge(&mut columns, &is_there, rest, kind, &mut found);
        self.rewrite_columns(&mut columns, &wrong, &mut found).await;
        Some(found)
    }

    /// Writes the rows of the roles `wrong`, which hold what they should, to their members.
    async fn rewrite_columns(
        self: &Rc<Self>,
        columns: &mut Columns,
        wrong: &[usize],
        found: &mut Found,
    ) {
        let (mut members, mut started) = (Vec::new(), Vec::new());
        for role in wrong {
            let Some(member) = self.slots.borrow()[*role].readable().cloned() else { continue };
            let offset = member.data_offset + columns.rows.offset;
            started.push(member.dev.start(Io::write(offset, columns.take(*role), Flags::NONE)));
            members.push(member);
        }
        for (member, written) in members.into_iter().zip(join_all(started).await) {
            match written.result {
                Ok(()) => found.repaired += columns.rows.len,
                Err(errno) => {
                    self.fail(&member, &format!("a write failed: {errno}"));
                }
            }
        }
        self.fence().await;
    }
}

/// Compares block by block; answers the roles that are to be written, whose buffers then hold what
/// they should. `memory` is room for the parities.
fn judge(
    columns: &mut Columns,
    is_there: &[bool],
    mut memory: Buf,
    kind: JobKind,
    found: &mut Found,
) -> Vec<usize> {
    let rows = columns.rows;
    let all_there = is_there.iter().all(|is_there| *is_there);
    let parity = [Column::P, Column::Q].into_iter().take(columns.geometry.parities());
    let parity: Vec<usize> = parity.map(|column| columns.role_of(column)).collect();
    // What lacks is worked out first, by P if it can be, and with it nothing contradicts P.
    let lost_data =
        (0..columns.geometry.data()).any(|index| !is_there[columns.role_of(Column::Data(index))]);
    let recovered = columns.recover(rows, &|role| is_there[role]);
    assert!(recovered, "fewer are missing than there is parity");
    // What was stored goes aside, and what it should be comes in its place.
    let mut stored: Vec<Buf> = Vec::new();
    for role in &parity {
        let rest = memory.split_off(rows.len as usize);
        let mut aside = std::mem::replace(&mut memory, rest);
        aside.copy_from_slice(columns.get(*role, rows));
        stored.push(aside);
    }
    let used_for_recovery = if lost_data { Some(parity[0]) } else { None };
    let is_compared = |role: usize| is_there[role] && Some(role) != used_for_recovery;
    columns.compute(rows, &|role| is_compared(role), &|_| None);
    let mut wrong = Vec::new();
    for start in (0..rows.len).step_by(BLOCK) {
        let block = Span::new(rows.offset + start, (rows.len - start).min(BLOCK as u64));
        let range = start as usize..(start + block.len) as usize;
        let differs: Vec<bool> = parity
            .iter()
            .zip(&stored)
            .map(|(role, stored)| {
                is_compared(*role) && stored[range.clone()] != *columns.get(*role, block)
            })
            .collect();
        if !differs.contains(&true) {
            continue;
        }
        found.mismatches += block.len;
        found.places.push(block.offset);
        if kind == JobKind::Resync || !all_there || parity.len() == 1 {
            if kind != JobKind::Check {
                wrong.extend(parity.iter().zip(&differs).filter(|(_, d)| **d).map(|(r, _)| *r));
            }
            continue;
        }
        let suspect = suspect_of(columns, &parity, &mut stored, block, &range);
        match suspect {
            Some(role) => {
                *found.suspects.entry(role as u16).or_default() += block.len;
                if kind == JobKind::Repair {
                    wrong.push(role);
                    put_in_place(columns, &parity, &stored, role, block, &range);
                }
            }
            None => found.unexplained += block.len,
        }
        if kind != JobKind::Repair || suspect.is_none_or(|role| !parity.contains(&role)) {
            // What is stored stays: this block's parity is not what is wrong, or nobody knows.
            for (role, differences) in parity.iter().zip(&stored) {
                braid_parity::xor_into(columns.get_mut(*role, block), &differences[range.clone()]);
            }
        }
    }
    wrong.sort_unstable();
    wrong.dedup();
    wrong
}

/// Which role alone explains that P and Q are not what they should be; `stored` then holds the
/// differences.
fn suspect_of(
    columns: &Columns,
    parity: &[usize],
    stored: &mut [Buf],
    block: Span,
    range: &std::ops::Range<usize>,
) -> Option<usize> {
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

/// Has the buffer of `role` hold what it should in `block`: parity does already, data lacks what P
/// differs by.
fn put_in_place(
    columns: &mut Columns,
    parity: &[usize],
    differences: &[Buf],
    role: usize,
    block: Span,
    range: &std::ops::Range<usize>,
) {
    if !parity.contains(&role) {
        braid_parity::xor_into(columns.get_mut(role, block), &differences[0][range.clone()]);
    }
}
