//! A stack as an array of the kernel's md, in the words of mdadm. Pure.

use braid_stack::{Node, Stack};

use super::redundancy::{Form, chunk_and_layout, is_redundant, whole_path};

/// The shape of an array, in the words of mdadm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelShape {
    pub(crate) words: Vec<String>,
    /// Paths, or `missing`.
    pub(crate) members: Vec<String>,
    pub(crate) is_redundant: bool,
}

/// Returns the arguments of mdadm.
///
/// # Errors
///
/// The reason why the kernel cannot have the array.
pub(crate) fn plan_kernel(stack: &Stack, form: Form) -> Result<KernelShape, String> {
    let (chunk, layout) = chunk_and_layout(&stack.node)
        .ok_or_else(|| format!("{} is no level of the kernel's md", stack.node.name()))?;
    let member = |member: &Stack| match whole_path(member) {
        Some(path) => Ok(path),
        None if member.is_missing() => Ok("missing".to_owned()),
        None => Err(format!(
            "{member} is no member for the kernel's md: it takes whole block devices and files"
        )),
    };
    let members = stack.members().iter().map(member).collect::<Result<Vec<_>, _>>()?;
    let is_redundant = is_redundant(stack);
    let mut words = vec![
        "--run".to_owned(),
        "--metadata=1.2".to_owned(),
        format!("--level={}", stack.node.name()),
        format!("--raid-devices={}", members.len()),
    ];
    words.extend(chunk.map(|size| format!("--chunk={}K", size.0 >> 10)));
    words.extend(layout.map(|layout| format!("--layout={layout}")));
    if is_redundant {
        words.push("--bitmap=none".to_owned());
    }
    let copies = matches!(stack.node, Node::Raid1(_) | Node::Raid10(_));
    if copies || (is_redundant && form.parity_as_found) {
        words.push("--assume-clean".to_owned());
    }
    if members.len() == 1 {
        // Otherwise mdadm takes an array of one member for a mistake.
        words.push("--force".to_owned());
    }
    Ok(KernelShape { words, members, is_redundant })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<String, String> {
        let shape = plan_kernel(&Stack::parse(text).unwrap(), Form::default())?;
        Ok(format!("{} {}", shape.words.join(" "), shape.members.join(" ")))
    }

    #[test]
    fn expressions_are_said_in_mdadms_words() {
        assert_eq!(
            words("raid0(chunk=64K, /dev/sda, ./b.img)").unwrap(),
            "--run --metadata=1.2 --level=raid0 --raid-devices=2 --chunk=64K /dev/sda ./b.img"
        );
        // Only older kernels have linear.
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
        assert!(!is_redundant(&Stack::parse("linear(./a, ./b)").unwrap()));
        assert!(words("raid0(ram(1M), ./b)").unwrap_err().contains("ram(1M)"));
        assert!(words("raid0(raid1(./a, ./b), ./c)").unwrap_err().contains("no member"));
        assert!(words("./a").unwrap_err().contains("no level"));
    }
}
