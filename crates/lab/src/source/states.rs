//! The treatment that brings a subject into a state, by its source. Pure.

use super::kernel::plan_kernel;
use super::redundancy::{Form, Redundancy, is_redundant, lacks_a_member, redundancy};
use crate::campaign::{Health, Source};

/// The treatment of a subject for a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// None.
    Nothing,
    /// The subject comes up without its first member.
    Short,
    /// A member fails before the trial.
    Fail,
    /// A member fails and is removed before the trial, and is added when it starts.
    Refill,
    /// A check runs during the trial.
    Check,
    /// A failure, a recovery and a check, during the trial.
    Story,
}

/// Returns the treatment of a subject for a state.
///
/// # Errors
///
/// The reason why the state is impossible.
pub(crate) fn treatment(source: &Source, health: Health) -> Result<Treatment, String> {
    if health == Health::Healthy {
        return Ok(Treatment::Nothing);
    }
    let no_array = || Err("it is not an array that survives a failure".into());
    let (Source::Stack(expression) | Source::Kernel(expression)) = source else {
        return no_array();
    };
    let stack = expression.stack()?;
    let redundancy = match source {
        Source::Kernel(_) if is_redundant(stack) && plan_kernel(stack, Form::default()).is_ok() => {
            Redundancy::Remembering
        }
        Source::Kernel(_) => Redundancy::None,
        _ => redundancy(stack),
    };
    if redundancy == Redundancy::None {
        return no_array();
    }
    if lacks_a_member(stack) {
        return Err("a member is missing from it already".into());
    }
    Ok(match (health, redundancy) {
        (Health::Scrubbing, _) => Treatment::Check,
        (Health::Degraded, Redundancy::Forgetful) => Treatment::Short,
        (_, Redundancy::Forgetful) => {
            return Err("it has no superblocks to record a new member; use one level over \
                        whole files or block devices (for memory, files on a tmpfs)"
                .into());
        }
        (Health::Degraded, _) => Treatment::Fail,
        (Health::Rebuilding, _) => Treatment::Refill,
        _ => Treatment::Story,
    })
}

/// Returns the member that is filled again in each trial with this state, if there is one.
pub(crate) fn refilled(source: &Source, health: Health) -> Option<String> {
    let treatment = treatment(source, health).ok()?;
    let stack = source.stack()?;
    let is_kernels = matches!(source, Source::Kernel(_));
    let fills = match treatment {
        // The kernel's array is made anew; a volume gets its member back.
        Treatment::Fail => !is_kernels,
        Treatment::Refill | Treatment::Story => true,
        Treatment::Nothing | Treatment::Short | Treatment::Check => false,
    };
    let first = stack.member_paths().first()?.display().to_string();
    fills.then_some(first)
}

/// Returns why a state of a subject is impossible on every machine. Pure.
pub(crate) fn why_never(source: &Source, health: Health) -> Option<String> {
    if let Source::Kernel(expression) = source {
        let stack = expression.stack().map_err(str::to_owned);
        if let Err(why) = stack.and_then(|stack| plan_kernel(stack, Form::default())) {
            return Some(why);
        }
    }
    treatment(source, health).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str, health: Health) -> Result<Treatment, String> {
        treatment(&Source::Stack(text.into()), health)
    }

    #[test]
    fn each_state_has_its_way() {
        let files = "raid5(./a, ./b, ./c)";
        assert_eq!(stack(files, Health::Healthy), Ok(Treatment::Nothing));
        assert_eq!(stack(files, Health::Degraded), Ok(Treatment::Fail));
        assert_eq!(stack(files, Health::Rebuilding), Ok(Treatment::Refill));
        assert_eq!(stack(files, Health::Scrubbing), Ok(Treatment::Check));
        assert_eq!(stack(files, Health::Story), Ok(Treatment::Story));
        let memory = "raid1(ram(1M), model(hdd, size=1M))";
        assert_eq!(stack(memory, Health::Degraded), Ok(Treatment::Short));
        assert_eq!(stack(memory, Health::Scrubbing), Ok(Treatment::Check));
        for health in [Health::Rebuilding, Health::Story] {
            assert!(stack(memory, health).unwrap_err().contains("superblocks"));
        }
        let kernel = Source::Kernel("raid1(./a, ./b)".into());
        assert_eq!(treatment(&kernel, Health::Story), Ok(Treatment::Story));
    }

    #[test]
    fn what_no_machine_can_do_is_known_beforehand() {
        let never = |text: &str| why_never(&Source::Kernel(text.into()), Health::Healthy);
        assert_eq!(never("raid1(./a, ./b)"), None);
        let nested = never("raid0(raid1(./a, ./b), raid1(./c, ./d))").unwrap();
        assert!(nested.contains("is no member for the kernel's md"), "{nested}");
        assert!(never("ram(64M)").unwrap().contains("no level of the kernel's md"));
        let stripe = Source::Stack("raid0(./a, ./b)".into());
        assert_eq!(why_never(&stripe, Health::Healthy), None);
        assert!(why_never(&stripe, Health::Degraded).unwrap().contains("survives a failure"));
    }

    #[test]
    fn what_survives_nothing_has_no_states() {
        for health in [Health::Degraded, Health::Rebuilding, Health::Scrubbing, Health::Story] {
            assert!(stack("raid0(./a, ./b)", health).is_err());
            assert!(stack("raid1(./a, missing)", health).unwrap_err().contains("missing"));
            assert!(treatment(&Source::Path("/dev/sda".into()), health).is_err());
            assert!(treatment(&Source::Kernel("raid0(./a, ./b)".into()), health).is_err());
        }
    }
}
