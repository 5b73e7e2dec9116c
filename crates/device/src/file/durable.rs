//! The way in which a request becomes durable, by the kind of its file system.

use braid_block::{Flags, Op};

use crate::canary::Canary;

/// The way in which a request becomes durable before it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durable {
    /// It need not.
    No,
    /// The kernel is told so with the write.
    Written,
    /// By a flush behind it.
    Synced,
}

impl Durable {
    #[inline]
    pub(super) fn of(op: Op, flags: Flags, is_on_fuse: bool) -> Durable {
        let is_on_fuse = is_on_fuse && !Canary::FuseIsTrusted.is_planted();
        match op {
            _ if !flags.contains(Flags::FUA) || Canary::FuaLost.is_planted() => Durable::No,
            Op::Read | Op::Flush => Durable::No,
            Op::Write if !is_on_fuse => Durable::Written,
            Op::Write | Op::Discard | Op::WriteZeroes => Durable::Synced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_durable_is_made_so_in_the_way_of_its_file_system() {
        let of = |op, is_on_fuse| Durable::of(op, Flags::FUA, is_on_fuse);
        assert_eq!(of(Op::Write, false), Durable::Written);
        assert_eq!(of(Op::Write, true), Durable::Synced);
        for op in [Op::Discard, Op::WriteZeroes] {
            assert_eq!([false, true].map(|is_on_fuse| of(op, is_on_fuse)), [Durable::Synced; 2]);
        }
        for op in [Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush, Op::Read] {
            assert_eq!(Durable::of(op, Flags::NO_UNMAP, true), Durable::No);
        }
    }
}
