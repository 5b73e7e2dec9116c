//! The levels: one file each, one line each in the registry below; and the stack that they make, whose
//! devices are levels, which have devices below.
//!
//! To add a level: write `level/NAME.rs` with a struct, its [`Level`] and its `Display`; add a line
//! to `levels!`, with the names that make it in brackets. Parsing, printing, suggestions, leaf iteration and usage
//! follow.

mod args;
pub(crate) mod cache;
pub(crate) mod cow;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod holes;
pub(crate) mod linear;
pub(crate) mod md;
pub(crate) mod missing;
pub(crate) mod model;
pub(crate) mod nbd;
pub(crate) mod parity;
pub(crate) mod raid0;
pub(crate) mod raid1;
pub(crate) mod raid10;
pub(crate) mod ram;
pub(crate) mod rbd;
pub(crate) mod slice;

use std::fmt;

use crate::Span;
use crate::error::Fault;
use crate::expr::{Call, Expr, Word, looks_like_path};
use crate::problem::Problem;
use crate::suggest::suggest;

use args::Args;

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
    /// The kind of device.
    pub node: Node,
    /// Its place in the text; the empty span if it was not parsed.
    pub span: Span,
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl Eq for Stack {}

impl Stack {
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

    /// The path that this device names itself, without those below: a file, map, store, saved content, profile
    /// or configuration.
    #[must_use]
    pub fn own_path(&self) -> Option<&String> {
        match &self.node {
            Node::File(file) => Some(&file.path),
            Node::Model(model) => model.profile_file().map(|_| &model.profile),
            Node::Ram(ram) => ram.image.as_ref(),
            Node::Cache(cache) => cache.warm.as_ref().map(|warm| &warm.path),
            Node::Holes(holes) => Some(&holes.map),
            Node::Cow(cow) => Some(&cow.store),
            Node::Rbd(rbd) => rbd.conf.as_ref(),
            _ => None,
        }
    }

    /// As [`Stack::own_path`], to be changed in place.
    #[must_use]
    pub fn own_path_mut(&mut self) -> Option<&mut String> {
        match &mut self.node {
            Node::File(file) => Some(&mut file.path),
            Node::Model(model) => model.profile_file().is_some().then_some(&mut model.profile),
            Node::Ram(ram) => ram.image.as_mut(),
            Node::Cache(cache) => cache.warm.as_mut().map(|warm| &mut warm.path),
            Node::Holes(holes) => Some(&mut holes.map),
            Node::Cow(cow) => Some(&mut cow.store),
            Node::Rbd(rbd) => rbd.conf.as_mut(),
            _ => None,
        }
    }

    /// True if it is the place of a missing member.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.node, Node::Missing(_))
    }
}

impl From<Node> for Stack {
    fn from(node: Node) -> Self {
        Self { node, span: Span::default() }
    }
}

impl fmt::Display for Stack {
    /// The canonical text, which parses back to an equal stack.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.node, f)
    }
}

/// A name of the language: how a call of it is written and read. The `Display` of what it makes is
/// canonical: `check` reads it back.
pub(crate) trait Level: Sized {
    /// The name in an expression.
    const NAME: &'static str;
    /// The notation, for people.
    const USAGE: &'static str;
    /// The named parameters.
    const PARAMETERS: &'static [&'static str];
    /// True if `missing` may stand for a member.
    const TAKES_MISSING: bool = false;

    /// Checks the arguments of a call.
    fn check(args: &Args<'_>) -> Result<Self, Fault>;

    /// The name by which this device is written.
    fn word(&self) -> &'static str {
        Self::NAME
    }

    /// The devices below; a leaf has none.
    fn members(&self) -> &[Stack] {
        &[]
    }

    /// As [`Level::members`], to be changed.
    fn members_mut(&mut self) -> &mut [Stack] {
        &mut []
    }
}

/// A level as the registry knows it.
struct Entry {
    name: &'static str,
    usage: &'static str,
    takes_missing: bool,
    check: fn(&Call) -> Result<Node, Fault>,
}

macro_rules! levels {
    ($($(#[$doc:meta])* $variant:ident($level:ty) [$($form:ty),*],)*) => {
        /// One device of a stack: a leaf, or a level with members below.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Node {
            $($(#[$doc])* $variant($level),)*
        }

        const REGISTRY: &[Entry] = &[$($(Entry {
            name: <$form as Level>::NAME,
            usage: <$form as Level>::USAGE,
            takes_missing: <$form as Level>::TAKES_MISSING,
            check: |call| {
                let form = <$form as Level>::check(&Args::new::<$form>(call)?)?;
                Ok(Node::$variant(form.into()))
            },
        },)*)*];

        impl Node {
            /// The name of the level: `raid0`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Node::$variant(level) => level.word(),)*
                }
            }

            /// The devices directly below; none for a leaf.
            #[must_use]
            pub fn members(&self) -> &[Stack] {
                match self {
                    $(Node::$variant(level) => level.members(),)*
                }
            }

            /// As [`Node::members`], to be changed in place: what they become is not checked.
            #[must_use]
            pub fn members_mut(&mut self) -> &mut [Stack] {
                match self {
                    $(Node::$variant(level) => level.members_mut(),)*
                }
            }
        }

        impl fmt::Display for Node {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Node::$variant(level) => fmt::Display::fmt(level, f),)*
                }
            }
        }

        $(impl From<$level> for Node {
            fn from(level: $level) -> Self {
                Node::$variant(level)
            }
        })*
    };
}

levels! {
    /// A RAM disk.
    Ram(ram::Ram) [ram::Ram],
    /// A regular file or a block device, or a part of one.
    File(file::File) [file::File, file::Part],
    /// Members one after another.
    Linear(linear::Linear) [linear::Linear],
    /// Stripes over the members.
    Raid0(raid0::Raid0) [raid0::Raid0],
    /// The same on every member.
    Raid1(raid1::Raid1) [raid1::Raid1],
    /// Copies of each chunk, dealt to the members.
    Raid10(raid10::Raid10) [raid10::Raid10],
    /// Stripes with one parity or two.
    Parity(parity::Parity) [parity::Raid4, parity::Raid5, parity::Raid6],
    /// Members that describe their array themselves.
    Md(md::Md) [md::Md],
    /// Memory in front of a device.
    Cache(cache::Cache) [cache::Cache],
    /// A part of a device.
    Slice(slice::Slice) [slice::Slice],
    /// A device with unreadable ranges.
    Holes(holes::Holes) [holes::Holes],
    /// A device whose changes go to a file.
    Cow(cow::Cow) [cow::Cow],
    /// A member that behaves like a modelled device, in wall time.
    Model(model::Model) [model::Model],
    /// An export of an NBD server.
    Nbd(nbd::Nbd) [nbd::Nbd],
    /// An image of a Ceph cluster.
    Rbd(rbd::Rbd) [rbd::Rbd],
    /// A device of which no byte can be read.
    Unreadable(error::Unreadable) [error::Unreadable],
    /// The place of a member that is not there; no device.
    Missing(missing::Missing) [missing::Missing],
}

fn known_names() -> String {
    REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// Checks a generic expression into a typed one. Recursion is as deep as the expression, which the
/// parser bounded.
pub(crate) fn check_expr(expr: &Expr) -> Result<Stack, Fault> {
    let node = match expr {
        Expr::Call(call) => check_call(call)?,
        Expr::Word(word) => check_word(word)?,
    };
    Ok(Stack { node, span: expr.span() })
}

fn check_call(call: &Call) -> Result<Node, Fault> {
    let name = call.name.text.as_str();
    if let Some(entry) = REGISTRY.iter().find(|entry| entry.name == name) {
        return (entry.check)(call);
    }
    let problem = Problem::UnknownName {
        name: name.to_owned(),
        suggestion: suggest(name, REGISTRY.iter().map(|entry| entry.name)),
        known: known_names(),
    };
    Err(Fault::new(problem, call.name.span))
}

/// A word that stands for a member: a path, unless it is a name.
fn check_word(word: &Word) -> Result<Node, Fault> {
    if word.quoted || looks_like_path(&word.text) {
        return file::File::whole(word).map(Node::File);
    }
    let name = word.text.as_str();
    if name == missing::Missing::NAME {
        return Err(misplaced_missing(word.span));
    }
    let problem = if let Some(entry) = REGISTRY.iter().find(|entry| entry.name == name) {
        Problem::BareLevel { name: entry.name, usage: entry.usage }
    } else {
        Problem::NotAPath { word: name.to_owned() }
    };
    Err(Fault::new(problem, word.span))
}

/// Checks a member of a level that takes `missing`.
pub(crate) fn check_member_or_missing(expr: &Expr) -> Result<Stack, Fault> {
    match expr {
        Expr::Word(word) if !word.quoted && word.text == missing::Missing::NAME => {
            Ok(Stack { node: Node::Missing(missing::Missing), span: word.span })
        }
        _ => check_expr(expr),
    }
}

fn misplaced_missing(span: Span) -> Fault {
    let levels = REGISTRY.iter().filter(|entry| entry.takes_missing).map(|entry| entry.name);
    let levels = levels.collect::<Vec<_>>().join(", ");
    Fault::new(Problem::MisplacedMissing { levels }, span)
}

/// The members of a level that keeps them in its field `members`.
macro_rules! has_members {
    () => {
        fn members(&self) -> &[Stack] {
            &self.members
        }

        fn members_mut(&mut self) -> &mut [Stack] {
            &mut self.members
        }
    };
}
use has_members;

/// The one device of a decorator that keeps it in its field `origin`.
macro_rules! has_origin {
    () => {
        fn members(&self) -> &[Stack] {
            std::slice::from_ref(&*self.origin)
        }

        fn members_mut(&mut self) -> &mut [Stack] {
            std::slice::from_mut(&mut *self.origin)
        }
    };
}
use has_origin;

/// Prints `member, member`.
fn fmt_members(f: &mut fmt::Formatter<'_>, members: &[Stack]) -> fmt::Result {
    members.iter().enumerate().try_for_each(|(index, member)| {
        if index > 0 {
            f.write_str(", ")?;
        }
        fmt::Display::fmt(member, f)
    })
}
