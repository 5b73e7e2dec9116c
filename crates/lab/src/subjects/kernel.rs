//! An array of the kernel's md, made by mdadm, for comparison with braid's stacks.
//!
//! * Metadata 1.2, no bitmap, no log: as in the expression.
//! * Copies of raid1 and raid10 are assumed to agree (`--assume-clean`): no read covers unwritten data. So is
//!   parity, unless the campaign degrades arrays: then it is resynchronised before the subject is ready;
//!   otherwise the resync would be measured.
//! * A member in use is refused before anything is made of it.
//! * The members' superblocks are removed when the array is taken down.
//!
//! Deliberately absent: nested levels, RAM and models, which the kernel cannot have.

use std::path::Path;

use braid_stack::{Node, Stack};

use super::asked::settle;
use super::devices::kernel_name;
use super::loops;
use super::site::{Base, Site, said};
use super::things::Thing;
use crate::array::{Array, Keeper};
use crate::command::{CommandLine, Exit};
use crate::error::Obstacle;
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
    let is_there = |member: &String| member != "missing";
    // Recorded before: mdadm writes superblocks even if it fails later.
    let carriers = shape.members.into_iter().filter(is_there).collect();
    site.hold(Thing::Superblocks { members: carriers });
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
    let mut base = site.device(&device)?;
    if shape.is_redundant {
        let sys = format!("/sys/block/{}/md", kernel_name(Path::new(&device)).unwrap_or_default());
        let victim = members.into_iter().find(is_there);
        let array = Array { keeper: Keeper::Kernel { device, sys }, victim, remembers: true };
        settle(site, &array, base.size_bytes)?;
        base.array = Some(array);
    }
    Ok(base)
}

/// Returns why a kernel refuses an array that mdadm can describe. `reason` is mdadm's.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_linear_is_told_why() {
        let linear = Stack::parse("linear(./a, ./b)").unwrap();
        assert!(not_in_kernel(&linear, "Invalid argument").contains("6.8"));
    }
}
