//! What a source IS, as its text alone tells: what it survives, into which states it can be brought,
//! what of it holds content and what writes to it by coming up. Pure.
//!
//! Deliberately absent: bringing anything up ([`crate::subjects`]), and where members lie
//! ([`crate::facts`]).

use crate::campaign::Source;
use crate::facts::{Member, members_of};

mod kernel;
mod redundancy;
mod states;

pub(crate) use kernel::plan_kernel;
pub use redundancy::leave_one_out;
pub(crate) use redundancy::{Form, Redundancy, plan_creation, redundancy};
pub(crate) use states::{Treatment, refilled, treatment, why_never};

use redundancy::has_redundancy;

/// Whether a source writes to its members by coming up, whatever is measured on it: mdadm and
/// `braid create` write superblocks, and an array without them is made to agree with itself.
pub(crate) fn writes_when_it_comes_up(source: &Source) -> bool {
    match source {
        Source::Kernel(_) => true,
        // What does not parse is taken for the worst.
        Source::Stack(expression) => expression.stack().map_or(true, has_redundancy),
        _ => false,
    }
}

/// Whether a subject has content that matters: a model's time does not depend on it, and filling
/// one takes model time; a folder has none.
pub fn has_content(source: &Source) -> bool {
    let members = members_of(source);
    !source.is_folder() && !members.iter().all(|member| matches!(member, Member::Model { .. }))
}

/// Whether a subject's content ends when it is taken down.
pub(crate) fn is_ephemeral(source: &Source) -> bool {
    members_of(source).iter().any(Member::is_ephemeral)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_folders_have_no_content() {
        let stack = |text: &str| Source::Stack(text.into());
        assert!(!has_content(&stack("raid0(model(hdd, size=1G), model(hdd, size=1G))")));
        assert!(has_content(&stack("raid0(model(hdd, size=1G), ram(1G))")));
        assert!(!has_content(&Source::Directory("/srv".into())));
        assert!(has_content(&Source::Path("/dev/sda".into())));
        assert!(is_ephemeral(&Source::Zram("1G".into())));
        assert!(!is_ephemeral(&stack("raid0(./a, ./b)")));
    }
}
