//! The memory that may be promised: that of the machine, and of the cgroup, less what other volumes
//! have promised already.
//!
//! RAM disks take memory as they are written: a promise that cannot be kept ends in the kernel's killing
//! a process in the middle of a write, which is why it is not given.

use std::path::PathBuf;

use braid_stack::{ByteSize, Node, Stack};

use crate::cgroup;
use crate::control::{ErrorCode, get_statuses};
use crate::failure::Failure;
use crate::places::Places;

/// More than there is.
#[derive(Debug, thiserror::Error)]
#[error("{what}{} is more than the {total:#} of memory that {whose}", others(*promised))]
pub struct TooMuchMemory {
    what: String,
    promised: ByteSize,
    total: ByteSize,
    whose: &'static str,
}

impl TooMuchMemory {
    /// The failure that says so.
    pub fn failure(&self) -> Failure {
        let down = if self.promised.bytes() > 0 { ", a volume taken down" } else { "" };
        Failure::refused(self)
            .next(format_args!(
                "smaller sizes, files instead of memory{down}, or `ram(SIZE, overcommit)` if it will never be \
                 filled"
            ))
            .code(ErrorCode::TooMuchMemory)
            .value("promised_bytes", self.promised.bytes())
            .value("total_bytes", self.total.bytes())
    }
}

fn others(promised: ByteSize) -> String {
    match promised.bytes() {
        0 => String::new(),
        _ => format!(", with the {promised:#} that other volumes have promised,"),
    }
}

/// Checks that `wanted` bytes, which `what` names, can be promised beside the promises of others.
pub(super) fn check(wanted: ByteSize, what: &str, promised: u64) -> Result<(), TooMuchMemory> {
    let machine = total_memory();
    let (total, whose) = match cgroup::memory_limit() {
        Some(limit) if limit < machine => (limit, "this process may use (a cgroup's limit)"),
        _ => (machine, "this machine has"),
    };
    judge(wanted, what, promised, total, whose)
}

fn judge(
    wanted: ByteSize,
    what: &str,
    promised: u64,
    total: u64,
    whose: &'static str,
) -> Result<(), TooMuchMemory> {
    if wanted.bytes() == 0 || wanted.bytes().saturating_add(promised) <= total {
        return Ok(());
    }
    let (what, promised, total) = (what.to_owned(), ByteSize(promised), ByteSize(total));
    Err(TooMuchMemory { what, promised, total, whose })
}

/// Bytes of memory of the machine.
pub fn total_memory() -> u64 {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit) * info.totalram
}

/// Bytes of memory that the volumes which are up have promised, but for the one called `name`. Those that do not
/// answer are not counted.
pub(super) fn of_others(name: &str) -> u64 {
    let places = Places::from_environment();
    let names = places.running_names().unwrap_or_default().into_iter();
    let sockets: Vec<PathBuf> =
        names.filter(|other| other != name).map(|other| places.control(&other)).collect();
    let statuses = get_statuses(&sockets).into_iter().flatten();
    statuses.fold(0, |all, status| all.saturating_add(status.promised_bytes))
}

/// Checks that the memory of `stack` can be promised, beside what others have; but for disks that say that they
/// may promise what there is not.
pub fn check_stack(stack: &Stack, promised: u64) -> Result<(), TooMuchMemory> {
    let takers: Vec<&Stack> = all_of(stack)
        .into_iter()
        .filter(|part| part.own_memory() > 0)
        .filter(|part| !matches!(&part.node, Node::Ram(ram) if ram.overcommit))
        .collect();
    let wanted = takers.iter().fold(0u64, |all, part| all.saturating_add(part.own_memory()));
    let what = match &takers[..] {
        [one] => one.to_string(),
        _ => "the memory of this stack".to_owned(),
    };
    check(ByteSize(wanted), &what, promised)
}

/// The stack and all that is below it.
fn all_of(stack: &Stack) -> Vec<&Stack> {
    let below = stack.members().iter().flat_map(all_of);
    std::iter::once(stack).chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_promised_counts() {
        let judge =
            |wanted, promised| judge(ByteSize(wanted), "it", promised, 100, "this machine has");
        assert!(judge(100, 0).is_ok() && judge(60, 40).is_ok());
        assert!(judge(101, 0).is_err() && judge(60, 41).is_err() && judge(2, u64::MAX).is_err());
        assert!(judge(0, 200).is_ok(), "a wish for nothing is always granted");
        let text = judge(60, 41).unwrap_err().failure().text();
        assert!(
            text.starts_with(
                "it, with the 41 B that other volumes have promised, is more than the 100 B "
            ),
            "{text}"
        );
        assert!(text.contains("\n  next: smaller sizes, "), "{text}");
    }

    #[test]
    fn all_that_takes_memory_is_counted_and_overcommit_is_not_held_to_it() {
        let stack = |text: &str| Stack::parse(text).unwrap();
        let all =
            "raid0(cache(size=1M, a.img), ram(2M), model(hdd7200, size=4M), ram(8M, overcommit))";
        assert_eq!(stack(all).memory(), 15 << 20);
        assert!(check_stack(&stack("ram(1024P)"), 0).is_err());
        assert!(check_stack(&stack("ram(1024P, overcommit)"), 0).is_ok());
        assert!(check_stack(&stack("linear(ram(1024P, overcommit), ram(1M))"), u64::MAX).is_err());
        assert!(check_stack(&stack("a.img"), u64::MAX).is_ok());
    }
}
