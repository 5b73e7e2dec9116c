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

use braid_stack::{ByteSize, Node, Stack};

use super::Form;
use super::array::{Array, Keeper};
use super::devices::kernel_name;
use super::held::Thing;
use super::loops;
use super::site::{Base, LIMIT, Obstacle, Site, said};
use crate::tool::Target;
use crate::world::{CommandLine, Exit, PathKind};

/// The shape of an array in mdadm's words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    words: Vec<String>,
    /// Paths, or `missing`.
    members: Vec<String>,
    is_redundant: bool,
}

/// Whether members of the array can be taken out.
pub(super) fn is_redundant(stack: &Stack) -> bool {
    plan(stack, Form::default()).is_ok_and(|shape| shape.is_redundant)
}

/// What mdadm is told.
///
/// # Errors
///
/// Why the kernel has no such array.
fn plan(stack: &Stack, form: Form) -> Result<Shape, String> {
    let chunk = |size: ByteSize| vec![format!("--chunk={}K", size.0 >> 10)];
    let layout = |mut words: Vec<String>, layout: String| {
        words.push(format!("--layout={layout}"));
        words
    };
    let shape = match &stack.node {
        Node::Raid0(raid) => chunk(raid.chunk),
        Node::Raid1(_) => Vec::new(),
        Node::Raid10(raid) => layout(chunk(raid.chunk), raid.layout.to_string()),
        Node::Raid4(raid) => chunk(raid.chunk),
        Node::Raid5(raid) => layout(chunk(raid.chunk), raid.layout.to_string()),
        Node::Raid6(raid) => layout(chunk(raid.chunk), raid.layout.to_string()),
        Node::Linear(_) => Vec::new(),
        other => return Err(format!("{} is no level of the kernel's md", other.name())),
    };
    let member = |member: &Stack| match &member.node {
        Node::File(file) if file.offset.0 == 0 && file.length.is_none() => Ok(file.path.clone()),
        Node::Missing(_) => Ok("missing".to_owned()),
        _ => Err(format!(
            "{member} is no member for the kernel's md: it takes whole block devices and files"
        )),
    };
    let members = stack.members().iter().map(member).collect::<Result<Vec<_>, _>>()?;
    let is_redundant = !matches!(stack.node, Node::Raid0(_) | Node::Linear(_));
    let mut words = vec![
        "--run".to_owned(),
        "--metadata=1.2".to_owned(),
        format!("--level={}", stack.node.name()),
        format!("--raid-devices={}", members.len()),
    ];
    words.extend(shape);
    if is_redundant {
        words.push("--bitmap=none".to_owned());
    }
    let copies = matches!(stack.node, Node::Raid1(_) | Node::Raid10(_));
    if copies || (is_redundant && form.parity_as_found) {
        words.push("--assume-clean".to_owned());
    }
    if members.len() == 1 {
        // mdadm takes an array of one for a mistake otherwise.
        words.push("--force".to_owned());
    }
    Ok(Shape { words, members, is_redundant })
}

pub(super) fn bring_up(
    site: &mut Site<'_>,
    stack: &Stack,
    name: &str,
    form: Form,
) -> Result<Base, Obstacle> {
    let shape = plan(stack, form).map_err(Obstacle::Impossible)?;
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
    let done = site.run(&command, LIMIT)?;
    if done.exit != Exit::Code(0) {
        let reason = said(&done);
        return Err(
            match reason.contains("Invalid argument") || reason.contains("No such device") {
                true => Obstacle::Impossible(not_in_kernel(stack, &reason)),
                false => site.failed(&command, &done),
            },
        );
    }
    site.hold(Thing::KernelArray { device: device.clone() });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<String, String> {
        let shape = plan(&Stack::parse(text).unwrap(), Form::default())?;
        Ok(format!("{} {}", shape.words.join(" "), shape.members.join(" ")))
    }

    #[test]
    fn expressions_are_said_in_mdadms_words() {
        assert_eq!(
            words("raid0(chunk=64K, /dev/sda, ./b.img)").unwrap(),
            "--run --metadata=1.2 --level=raid0 --raid-devices=2 --chunk=64K /dev/sda ./b.img"
        );
        // Older kernels have linear, and only they know it.
        assert_eq!(
            words("linear(/dev/sda, ./b.img)").unwrap(),
            "--run --metadata=1.2 --level=linear --raid-devices=2 /dev/sda ./b.img"
        );
        assert_eq!(
            words("raid5(chunk=128K, layout=left-asymmetric, ./a, ./b, missing)").unwrap(),
            "--run --metadata=1.2 --level=raid5 --raid-devices=3 --chunk=128K \
             --layout=left-asymmetric --bitmap=none ./a ./b missing"
        );
        assert_eq!(
            words("raid10(chunk=64K, layout=f2, ./a, ./b)").unwrap(),
            "--run --metadata=1.2 --level=raid10 --raid-devices=2 --chunk=64K --layout=f2 \
             --bitmap=none --assume-clean ./a ./b"
        );
    }

    #[test]
    fn what_the_kernel_has_not_is_named() {
        let linear = Stack::parse("linear(./a, ./b)").unwrap();
        assert!(not_in_kernel(&linear, "Invalid argument").contains("6.8"));
        assert!(!is_redundant(&linear));
        assert!(words("raid0(ram(1M), ./b)").unwrap_err().contains("ram(1M)"));
        assert!(words("raid0(raid1(./a, ./b), ./c)").unwrap_err().contains("no member"));
        assert!(words("./a").unwrap_err().contains("no level"));
    }
}
