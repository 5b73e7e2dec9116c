//! Shares of members in a unit, as the stripe log records them.

use std::rc::Rc;

use braid_array::Role;
use braid_array::geometry::Column;
use braid_block::Payload;
use braid_md::stripe_log::Part;

use crate::redundant::core::Core;
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;
use crate::redundant::stripe::plan::Plan;
use crate::redundant::stripe::units::Unit;

/// A record to be written for a role.
pub(super) struct Share {
    pub(super) role: Role,
    pub(super) parts: Vec<Part>,
    pub(super) payload: Payload,
    pub(super) len: u64,
}

/// Returns the members that get a record of `roles`, each with the index of its role.
pub(super) fn holders_of(
    core: &Core,
    roles: impl Iterator<Item = Role>,
) -> Vec<(Rc<Member>, usize)> {
    let slots = core.roster.slots();
    let of_role = |(index, role): (usize, Role)| {
        let written = slots[role].written();
        written.map(|member| (Rc::clone(member), index)).collect::<Vec<_>>()
    };
    roles.enumerate().flat_map(of_role).collect()
}

/// Returns the parts of `unit` that each role stores.
pub(super) fn shares_of(unit: &mut Unit, columns: &mut Columns, plan: &Plan) -> Vec<Share> {
    let mut shares = Vec::with_capacity(unit.pieces.len() + 2);
    let is_all_zero = unit.is_all_zero(&columns.geometry);
    for piece in &mut unit.pieces {
        // As many zeroes as a column of parity has.
        let payload = match is_all_zero {
            true => columns.share(columns.role_of(Column::P)),
            false => piece.payload.share(),
        };
        let part = Part { offset: piece.rows.offset.get(), len: piece.rows.len as u32 };
        shares.push(Share {
            role: columns.role_of(Column::Data(piece.column)),
            parts: vec![part],
            payload,
            len: piece.rows.len,
        });
    }
    for role in plan.parity.roles_where(|is_written| *is_written) {
        let (mut parts, mut payload) = (Vec::new(), Payload::None);
        let mut whole = columns.share(role);
        let mut at = unit.rows.offset;
        for rows in unit.bands.merged() {
            whole.take_front(rows.offset - at);
            payload.append(whole.take_front(rows.len));
            parts.push(Part { offset: rows.offset.get(), len: rows.len as u32 });
            at = rows.end();
        }
        let len = payload.len();
        shares.push(Share { role, parts, payload, len });
    }
    shares
}
