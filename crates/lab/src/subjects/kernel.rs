//! An array of the kernel's md, by mdadm: what braid's stacks are measured against.
//!
//! * Metadata 1.2, no bitmap, no log: as the expression says.
//! * Copies of raid1 and raid10 are taken as they are (`--assume-clean`): nothing reads what it has
//!   not written. So is parity, unless the campaign hurts arrays: then it is made to fit, and the
//!   subject is ready when that is over, else the resync would be measured.
//! * A member that somebody uses is refused before anything is made of it.
//! * When it is taken down the members' superblocks are removed.
//!
//! Deliberately absent: nested levels, RAM and models, which the kernel has no counterpart of.

use std::path::Path;

use braid_stack::{Node, Stack};

use super::devices::kernel_name;
use super::hand::Hand;
use super::journal::Thing;
use super::loops;
use super::site::{Base, Obstacle, Site, said};
use crate::array::{Array, Keeper};
use crate::command::{CommandLine, Exit, Target};
use crate::error::LabError;
use crate::source::{Form, plan_kernel};
use crate::world::PathKind;

pub(super) fn bring_up(
    site: &mut Site<'_>,
    stack: &Stack,
    name: &str,
    form: Form,
) -> Result<Base, Obstacle> {
    let shape = plan_kernel(stack, form).map_err(Obstacle::Impossible)?;
    site.needs_root("an array of the kernel's md")?;
    site.load_module("md_mod", Path::new("/proc/mdstat"), "md")?;
    let mut members = Vec::new();
    for member in &shape.members {
        if member != "missing" {
            site.world.check_unused(Path::new(member))?;
        }
        let is_file = site.world.path_kind(Path::new(member))? == Some(PathKind::File);
        members.push(if is_file { loops::attach(site, member)? } else { member.clone() });
    }
    let device = format!("/dev/md/{name}");
    let mut command = CommandLine::new("mdadm").arg("--create").arg(&device);
    for word in shape.words.iter().chain(&members) {
        command = command.arg(word);
    }
    let members: Vec<String> = members.into_iter().filter(|one| one != "missing").collect();
    // Noted before: mdadm writes superblocks also when it fails later.
    site.hold(Thing::Superblocks { braid: None, members: members.clone() });
    let done = site.make(Thing::KernelArray { device: device.clone() }, &command)?;
    if done.exit != Exit::Code(0) {
        let reason = said(&done);
        return Err(
            match reason.contains("Invalid argument") || reason.contains("No such device") {
                true => Obstacle::Impossible(not_in_kernel(stack, &reason)),
                false => site.failed(&command, &done),
            },
        );
    }
    let size = site.size_of(Path::new(&device))?;
    let mut base = Base::new(Target::Device(device.clone().into()), size);
    if shape.is_redundant {
        let sys = format!("/sys/block/{}/md", kernel_name(Path::new(&device)).unwrap_or_default());
        let victim = members.first().cloned();
        let array = Array { keeper: Keeper::Kernel { device, sys }, victim, remembers: true };
        site.settle(&array, size)?;
        base.array = Some(array);
    }
    Ok(base)
}

/// Why a kernel refuses an array that mdadm knows how to describe. `reason` is mdadm's.
fn not_in_kernel(stack: &Stack, reason: &str) -> String {
    match &stack.node {
        Node::Linear(_) => format!(
            "the kernel does not run it (Linux has no md linear from 6.8 on, and before only with \
             the module linear): {reason}"
        ),
        node => {
            format!("the kernel does not run it (has it the module {}?): {reason}", node.name())
        }
    }
}

/// Stops the array.
pub(super) fn release(hand: &mut Hand<'_>, device: &str) -> Result<(), LabError> {
    hand.insist(CommandLine::new("mdadm").arg("--stop").arg(device))
}

/// Members without superblocks again, so that nothing takes them for an array. mdadm is content with
/// one that has none.
pub(super) fn release_superblocks(hand: &mut Hand<'_>, members: &[String]) -> Result<(), LabError> {
    let zero = |member| CommandLine::new("mdadm").arg("--zero-superblock").arg(member);
    let all: Vec<_> = members.iter().map(|member| hand.run(zero(member))).collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_linear_is_told_why() {
        let linear = Stack::parse("linear(./a, ./b)").unwrap();
        assert!(not_in_kernel(&linear, "Invalid argument").contains("6.8"));
    }
}
