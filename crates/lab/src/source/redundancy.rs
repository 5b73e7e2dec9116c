//! The redundancy of a stack, and the array with superblocks that replaces it if members are to be removed and
//! added.

use braid_level::ParityLevel;
use braid_stack::{ByteSize, Missing, Node, Stack};

/// The changes of members that a stack supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redundancy {
    /// None: it survives no failure.
    None,
    /// A member can be missing from the start; a later failure is not recorded.
    Forgetful,
    /// Superblocks record the members.
    Remembering,
}

/// Returns the changes of members that a stack supports in a campaign that degrades arrays.
pub(crate) fn redundancy(stack: &Stack) -> Redundancy {
    match stack.node {
        Node::Md(_) => Redundancy::Remembering,
        _ if plan_creation(stack).is_some() => Redundancy::Remembering,
        _ if has_redundancy(stack) => Redundancy::Forgetful,
        _ => Redundancy::None,
    }
}

/// The form in which an array comes up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// Without its first member.
    pub(crate) short: bool,
    /// With its parity unchecked: keeping it up takes the same time, and no data is read from it.
    pub(crate) parity_as_found: bool,
    /// The campaign does not write to it, and cannot.
    pub(crate) read_only: bool,
}

pub(super) fn is_redundant(stack: &Stack) -> bool {
    stack.shape().is_some_and(|shape| shape.level.is_redundant())
}

pub(super) fn has_redundancy(stack: &Stack) -> bool {
    is_redundant(stack) || stack.members().iter().any(has_redundancy)
}

/// Returns true if a place of a member is vacant from the start.
pub(crate) fn lacks_a_member(stack: &Stack) -> bool {
    stack.is_missing() || stack.members().iter().any(lacks_a_member)
}

/// Leaves out the first member of the topmost redundant level: the same one that fails in other states. Returns
/// false if there is none.
pub fn leave_one_out(stack: &mut Stack) -> bool {
    let redundant = is_redundant(stack);
    let members = stack.members_mut();
    match members.first_mut() {
        Some(first) if redundant => {
            *first = Stack::from(Node::Missing(Missing));
            true
        }
        _ => members.iter_mut().any(leave_one_out),
    }
}

/// Returns the chunk and the layout of a level, if they are given; `None` if the node is no level.
pub(super) fn chunk_and_layout(node: &Node) -> Option<(Option<ByteSize>, Option<String>)> {
    Some(match node {
        Node::Linear(_) | Node::Raid1(_) => (None, None),
        Node::Raid0(raid) => (Some(raid.chunk), None),
        Node::Parity(raid) if raid.level == ParityLevel::Raid4 => (Some(raid.chunk), None),
        Node::Parity(raid) => (Some(raid.chunk), Some(raid.layout.to_string())),
        Node::Raid10(raid) => (Some(raid.chunk), Some(raid.layout.to_string())),
        _ => return None,
    })
}

/// Returns the path of a member that is a whole file or block device.
pub(super) fn whole_path(member: &Stack) -> Option<String> {
    match &member.node {
        Node::File(file) if file.is_whole() => Some(file.path.clone()),
        _ => None,
    }
}

/// Returns the arguments of `braid create` for an array with superblocks in place of the stack, and its
/// members; `None` if there is no such array.
pub(crate) fn plan_creation(stack: &Stack) -> Option<(Vec<String>, Vec<String>)> {
    let (chunk, layout) = chunk_and_layout(&stack.node).filter(|_| is_redundant(stack))?;
    let mut words = vec!["--level".to_owned(), stack.node.name().to_owned()];
    words.extend(chunk.into_iter().flat_map(|chunk| ["--chunk".to_owned(), chunk.to_string()]));
    words.extend(layout.into_iter().flat_map(|layout| ["--layout".to_owned(), layout]));
    words.extend(["--bitmap", "none", "--consistency", "resync"].map(str::to_owned));
    let members: Option<Vec<String>> = stack.members().iter().map(whole_path).collect();
    Some((words, members?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(text: &str) -> Stack {
        Stack::parse(text).unwrap()
    }

    #[test]
    fn what_can_be_hurt_is_told_apart() {
        for (text, expected) in [
            ("raid0(./a, ./b)", Redundancy::None),
            ("./a", Redundancy::None),
            ("raid1(./a, ./b)", Redundancy::Remembering),
            ("md(./a, ./b)", Redundancy::Remembering),
            ("raid5(ram(1M), ram(1M), ram(1M))", Redundancy::Forgetful),
            ("raid1(./a, missing)", Redundancy::Forgetful),
            ("raid0(raid1(./a, ./b), raid1(./c, ./d))", Redundancy::Forgetful),
            ("raid1(file(./a, offset=1M), ./b)", Redundancy::Forgetful),
        ] {
            assert_eq!(redundancy(&stack(text)), expected, "{text}");
        }
        assert!(lacks_a_member(&stack("raid0(raid1(./a, missing), ./b)")));
        assert!(!lacks_a_member(&stack("raid1(./a, ./b)")));
    }

    #[test]
    fn the_first_member_of_the_topmost_redundant_level_is_left_out() {
        let left = |text: &str| {
            let mut stack = stack(text);
            leave_one_out(&mut stack).then(|| stack.to_string())
        };
        assert_eq!(left("raid1(ram(1M), ram(2M))").unwrap(), "raid1(missing, ram(2M))");
        assert_eq!(
            left("raid0(chunk=64K, ./x, raid1(./a, ./b))").unwrap(),
            "raid0(chunk=64K, ./x, raid1(missing, ./b))"
        );
        assert_eq!(left("raid0(./a, ./b)"), None);
    }

    #[test]
    fn an_array_is_created_as_the_expression_says() {
        let words = |text: &str| {
            let (words, members) = plan_creation(&stack(text)).unwrap();
            format!("{} {}", words.join(" "), members.join(" "))
        };
        assert_eq!(
            words("raid5(chunk=64K, layout=right-symmetric, ./a, ./b, /dev/sdc)"),
            "--level raid5 --chunk 64K --layout right-symmetric --bitmap none \
             --consistency resync ./a ./b /dev/sdc"
        );
        assert_eq!(
            words("raid10(chunk=1M, layout=f2, ./a, ./b)"),
            "--level raid10 --chunk 1M --layout f2 --bitmap none \
             --consistency resync ./a ./b"
        );
        assert_eq!(
            words("raid1(./a, ./b)"),
            "--level raid1 --bitmap none --consistency resync ./a ./b"
        );
    }
}
