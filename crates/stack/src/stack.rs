//! The checked stack: what the rest of braid works with.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use braid_level::{Level, Shape};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Span;
use crate::error::{Fault, ParseError, Problem};
use crate::level::file::File;
use crate::level::{Node, check_expr};
use crate::parse::parse_tokens;
use crate::size::ByteSize;

/// The most members of one level: the roles that fit in md's 1 KiB version 1 superblock behind its
/// fixed 256 bytes, at two bytes each: (1024 − 256) / 2.
pub const MAX_MEMBERS: usize = 384;

/// A device, with everything below it.
///
/// Two stacks are equal when they describe the same devices; where they stood in a text does not
/// matter. A stack that was parsed has passed every check of this crate; one that was put together
/// from its public fields has not.
///
/// ```
/// use braid_stack::{Node, Stack};
///
/// let stack = Stack::parse("linear(ram(1G), raid0(a.img, ./b.img))").unwrap();
/// assert_eq!(stack.to_string(), "linear(ram(1G), raid0(chunk=512K, a.img, ./b.img))");
/// assert_eq!(stack.leaves().len(), 3);
/// let Node::Linear(linear) = &stack.node else { panic!() };
/// assert_eq!(linear.members[1].span.start, 16);
/// ```
#[derive(Debug, Clone)]
pub struct Stack {
    /// What kind of device it is.
    pub node: Node,
    /// Where it stood in the text; the empty span when it was not parsed.
    pub span: Span,
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl Eq for Stack {}

impl Stack {
    /// Parses and checks an expression.
    ///
    /// # Errors
    /// The first problem with its place; see [`Problem`].
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        Self::parse_and_check(source).map_err(|fault| fault.locate(source))
    }

    fn parse_and_check(source: &str) -> Result<Self, Fault> {
        let stack = check_expr(&parse_tokens(source)?)?;
        match stack.first_duplicate() {
            None => Ok(stack),
            Some((first, second, path)) => {
                let problem = Problem::SamePathTwice {
                    path: path.to_owned(),
                    first_column: first.column(source),
                };
                Err(Fault::new(problem, second))
            }
        }
    }

    /// How the devices below lie in this one; `None` for a leaf, and where the members' own
    /// superblocks say it.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        let (level, layout, chunk) = match &self.node {
            Node::Linear(_) => (Level::Linear, 0, ByteSize(0)),
            Node::Raid0(raid) => (Level::Raid0, raid.layout.number(), raid.chunk),
            Node::Raid1(_) => (Level::Raid1, 0, ByteSize(0)),
            Node::Raid4(raid) => (Level::Raid4, 0, raid.chunk),
            Node::Raid5(raid) => (Level::Raid5, raid.layout.number(), raid.chunk),
            Node::Raid6(raid) => (Level::Raid6, raid.layout.number(), raid.chunk),
            Node::Raid10(raid) => (Level::Raid10, raid.layout.number(), raid.chunk),
            _ => return None,
        };
        Some(Shape { level, layout, chunk: chunk.bytes() })
    }

    /// The devices directly below; none for a leaf.
    #[must_use]
    pub fn members(&self) -> &[Stack] {
        self.node.members()
    }

    /// As [`Stack::members`], to be changed in place: what they become is not checked, nor whether
    /// a path is there twice.
    #[must_use]
    pub fn members_mut(&mut self) -> &mut [Stack] {
        self.node.members_mut()
    }

    /// Whether it is the place of a member that is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.node, Node::Missing(_))
    }

    /// The devices without members, from left to right: RAM disks, files, models. A
    /// [`crate::Missing`] member is no device and not among them.
    #[must_use]
    pub fn leaves(&self) -> Vec<&Stack> {
        let mut leaves = Vec::new();
        self.collect_leaves(&mut leaves);
        leaves
    }

    fn collect_leaves<'a>(&'a self, leaves: &mut Vec<&'a Stack>) {
        if self.members().is_empty() && !self.is_missing() {
            leaves.push(self);
        }
        for member in self.members() {
            member.collect_leaves(leaves);
        }
    }

    /// The files and block devices, from left to right, with their places.
    pub fn files(&self) -> impl Iterator<Item = (&File, Span)> {
        self.leaves().into_iter().filter_map(|leaf| match &leaf.node {
            Node::File(file) => Some((file, leaf.span)),
            _ => None,
        })
    }

    /// The paths of all files and block devices, from left to right; one is there twice when two
    /// members are parts of it.
    #[must_use]
    pub fn member_paths(&self) -> Vec<&Path> {
        self.files().map(|(file, _)| file.path()).collect()
    }

    /// The first two leaves whose paths are the same text (see [`File::overlaps`]) and share bytes.
    fn first_duplicate(&self) -> Option<(Span, Span, &str)> {
        let mut by_path: HashMap<&Path, Vec<(&File, Span)>> = HashMap::new();
        for (file, span) in self.files() {
            let earlier = by_path.entry(file.plain_path()).or_default();
            if let Some((_, first)) = earlier.iter().find(|(other, _)| other.overlaps(file)) {
                return Some((*first, span, &file.path));
            }
            earlier.push((file, span));
        }
        None
    }
}

impl From<Node> for Stack {
    fn from(node: Node) -> Self {
        Self { node, span: Span::default() }
    }
}

impl FromStr for Stack {
    type Err = ParseError;

    fn from_str(source: &str) -> Result<Self, ParseError> {
        Self::parse(source)
    }
}

impl fmt::Display for Stack {
    /// The canonical text, which parses back to an equal stack.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.node, f)
    }
}

impl Serialize for Stack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stack {
    /// From its text; the error is the rendered one.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = String::deserialize(deserializer)?;
        Self::parse(&source).map_err(|error| de::Error::custom(error.render(&source)))
    }
}
