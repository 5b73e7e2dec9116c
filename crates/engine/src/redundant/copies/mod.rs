//! Every byte on several members: raid1 and raid10.
//!
//! | file | what |
//! |---|---|
//! | `read`, `balance` | where to read from; what to do when that fails |
//! | `store` | to every copy |
//! | `window` | one window of a pass: filling a member, comparing copies |

mod balance;
mod read;
mod store;
mod window;

use std::cell::RefCell;
use std::rc::Rc;

use braid_array::Mirrored;

use super::Inner;
use super::data::Data;

/// Copies, as the array's geometry has them.
pub(super) struct Copies {
    pub(super) geometry: RefCell<Rc<dyn Mirrored>>,
}

impl Inner {
    /// Asked only where there are copies.
    #[inline]
    fn copies(&self) -> &Copies {
        match &self.data {
            Data::Copies(copies) => copies,
            Data::Parity(_) => unreachable!("an array with parity keeps no copies"),
        }
    }

    fn mirrored(&self) -> Rc<dyn Mirrored> {
        Rc::clone(&self.copies().geometry.borrow())
    }
}
