//! Healing: rewriting rows that a member could not read, from the other members.
//!
//! ```text
//!   a read failed ──▶ answered from the others ──▶ afterwards: rows locked, read again,
//!                                                  reconstructed, written, read back
//! ```
//!
//! Page by page if possible, since md counts errors in pages; in halves, down to blocks, if the other members
//! cannot read all of a page either.

use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::{ArraySpan, ByRole, MemberSpan, Role};

use super::read::Reconstructed;
use super::{Parity, in_sync_bytes, is_parity, readable_roles};
use crate::redundant::copies::join_neighbours;
use crate::redundant::core::Core;
use crate::redundant::keeping::Finder;
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;

impl Parity {
    /// Rewrites `rows` on `member`, which could not read them.
    pub(super) async fn rewrite_rows(
        &self,
        core: &Rc<Core>,
        member: Rc<Member>,
        rows: MemberSpan,
        finder: Finder,
    ) {
        let block = u64::from(core.limits.logical_block);
        let mut parts = vec![rows];
        while let Some(part) = parts.pop() {
            if !self.rewrite_part(core, &member, part, finder).await && part.len > block {
                let half = (part.len / 2).next_multiple_of(block);
                let (first, rest) = part.split_at(half);
                parts.extend([rest, first]);
            }
        }
    }

    /// Returns false if the other members do not suffice.
    async fn rewrite_part(
        &self,
        core: &Rc<Core>,
        member: &Rc<Member>,
        rows: MemberSpan,
        finder: Finder,
    ) -> bool {
        let mut columns = self.columns(rows).await;
        let _locked = core.lane.ranges().lock(in_sync_bytes(rows)).await;
        let Some(role) = member.role() else { return true };
        let has_role = |one: &Rc<Member>| Rc::ptr_eq(one, member);
        if core.gate.is_stopped() || !core.roster.slots()[role].readable().is_some_and(has_role) {
            return true;
        }
        // Of several reads that met the same error the first rewrites the rows.
        if !member.is_bad(rows) && columns.read(&core.roster, &[(role, rows)]).await.is_empty() {
            return true;
        }
        // Other unreadable members are healed by the reads that need them; otherwise two could heal each other
        // for ever.
        let Reconstructed { is_known, .. } =
            self.reconstruct(core, &mut columns, role, false).await;
        if is_known {
            let payload = columns.take(role);
            core.write_again(member, rows, payload, finder).await;
        }
        is_known
    }

    /// Rewrites every block of the rows of `columns` that a member cannot read and the others can. The caller
    /// keeps other writes out. Blocks are reconstructed one by one, because all rows together may not suffice.
    pub(super) async fn heal_blocks(&self, core: &Rc<Core>, columns: &mut Columns, finder: Finder) {
        let block = u64::from(core.limits.logical_block);
        let rows = columns.rows;
        for offset in rows.step_by(block) {
            self.heal_block(core, columns, MemberSpan::new(offset, block), finder).await;
        }
    }

    async fn heal_block(
        &self,
        core: &Rc<Core>,
        columns: &mut Columns,
        block: MemberSpan,
        finder: Finder,
    ) {
        let mut readable = readable_roles(core, block);
        let roles = readable.roles_where(|is_readable| *is_readable);
        let wanted: Vec<(Role, MemberSpan)> = roles.map(|role| (role, block)).collect();
        let failed = columns.read(&core.roster, &wanted).await;
        failed.iter().for_each(|(role, _)| readable[*role] = false);
        if failed.is_empty()
            || !self.may_reconstruct(core, block, &readable)
            || !columns.recover(block, &|role| readable[role])
        {
            return;
        }
        let is_parity = |role: Role| is_parity(columns.geometry.column_of(columns.stripe, role));
        let is_lost =
            |role: Role| is_parity(role) && failed.iter().any(|(other, _)| *other == role);
        let lost = ByRole::new(readable.len(), is_lost);
        columns.compute(block, &|role| lost[role], &|_| None);
        for (role, member) in failed {
            let Some(member) = member else { continue };
            let [before, part, rest] = columns.take_apart(role, block);
            let (_, part) = core.write_again(&member, block, part, finder).await;
            columns.put_together(role, [before, part, rest]);
        }
    }

    /// Returns the bytes of the array in bad-block logs that parity cannot reconstruct, because too many other
    /// members list the rows or are missing.
    pub(super) fn lost_of_rows(&self, core: &Core) -> Vec<ArraySpan> {
        let geometry = &self.geometry;
        let used = MemberSpan::first(geometry.member_size());
        let block = u64::from(core.limits.logical_block);
        let members: Vec<Rc<Member>> =
            core.roster.slots().values().filter_map(|slot| slot.readable().cloned()).collect();
        let mut lost = Vec::new();
        for member in &members {
            let Some(role) = member.role() else { continue };
            for place in member.bad_within(used, block) {
                let mut at = place.offset;
                while at < place.end() {
                    let within = at % geometry.chunk();
                    let rows =
                        MemberSpan::new(at, (geometry.chunk() - within).min(place.end() - at));
                    at += rows.len;
                    let stripe = geometry.stripe_of_row(rows.offset);
                    let Column::Data(index) = geometry.column_of(stripe, role) else { continue };
                    let column = geometry.span_of_stripe(stripe).offset
                        + index as u64 * geometry.chunk()
                        + within;
                    // Each part is listed as a whole by a member, or not at all.
                    let bad = members.iter().flat_map(|member| member.bad_within(rows, block));
                    let edges =
                        bad.flat_map(|bad| [bad.offset - rows.offset, bad.end() - rows.offset]);
                    for part in rows.cut_at(edges) {
                        let readable = readable_roles(core, part);
                        let gone = readable.roles_where(|is_readable| !is_readable).count();
                        if gone > geometry.parities() {
                            lost.push(ArraySpan::new(
                                column + (part.offset - rows.offset),
                                part.len,
                            ));
                        }
                    }
                }
            }
        }
        join_neighbours(lost)
    }
}
