//! The computation of a unit's parity: the rows to read, and the method.
//!
//! Source: Linux `drivers/md/raid5.c` (`handle_stripe_dirtying`: read-modify-write and
//! reconstruct-write).

use braid_array::parity_plan::{Band, MAX_BANDS, Method};
use braid_array::{ByRole, MemberSpan, Role};

use super::columns::Columns;
use super::units::Unit;

/// The plan of a unit.
pub(in crate::redundant) struct Plan {
    pub(in crate::redundant) methods: [Method; MAX_BANDS],
    pub(in crate::redundant) reads: Vec<(Role, MemberSpan)>,
    /// The roles that can be read.
    pub(in crate::redundant) readable: ByRole<bool>,
    /// The parity roles that are to be written.
    pub(in crate::redundant) parity: ByRole<bool>,
    /// The membership of the plan.
    pub(in crate::redundant) generation: u64,
}

/// Computes the new parity of a unit in `columns`.
pub(in crate::redundant) fn compute(unit: &Unit, columns: &mut Columns, plan: &Plan) {
    for (band, method) in unit.bands.iter().zip(plan.methods) {
        if method == Method::Restore {
            restore(columns, band.rows, plan);
        }
        compute_band(unit, columns, plan, band, method);
    }
}

/// Reconstructs the lost rows in `rows`, from all rows that were read.
pub(in crate::redundant) fn restore(columns: &mut Columns, rows: MemberSpan, plan: &Plan) {
    let restored = columns.recover(rows, &|role| plan.readable[role]);
    assert!(restored, "a plan restores only recoverable rows");
}

pub(in crate::redundant) fn compute_band(
    unit: &Unit,
    columns: &mut Columns,
    plan: &Plan,
    band: &Band,
    method: Method,
) {
    if unit.is_all_zero(&columns.geometry) {
        columns.clear(); // The parity of zeroes is zero.
        return;
    }
    let is_wanted = |role: Role| plan.parity[role];
    for rows in unit.parts(band) {
        match method {
            Method::Plain => {}
            Method::Modify => {
                for index in band.first..band.first + band.count {
                    let new = unit.new_data(index, rows).expect("the band is written");
                    columns.update(rows, index, new, &is_wanted);
                }
            }
            Method::Full | Method::Reconstruct | Method::Restore => {
                columns.compute(rows, &is_wanted, &|index| unit.new_data(index, rows));
            }
        }
    }
}
