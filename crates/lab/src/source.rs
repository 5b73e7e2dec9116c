//! Facts about a source from its text alone: its redundancy, the states that it supports, its content, and its
//! writes at start. Pure.
//!
//! Deliberately absent: bringing a source up ([`crate::subjects`]), and the places of members
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

/// Returns true if a source writes to its members when it comes up, whatever the workload: mdadm and `braid
/// create` write superblocks, and an array without them is resynchronised.
pub(crate) fn writes_when_it_comes_up(source: &Source) -> bool {
    match source {
        Source::Kernel(_) => true,
        // A stack that does not parse is taken to write.
        Source::Stack(expression) => expression.stack().map_or(true, has_redundancy),
        _ => false,
    }
}

/// Returns true if a subject's content matters: a model's time does not depend on it, and filling one takes
/// model time; a folder has no content.
pub fn has_content(source: &Source) -> bool {
    let members = members_of(source);
    !source.is_folder() && !members.iter().all(|member| matches!(member, Member::Model { .. }))
}

/// Returns true if a subject's content is lost when it is taken down.
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
