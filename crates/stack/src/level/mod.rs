//! The levels: one file each, one line each in the registry below.
//!
//! To add a level: write `level/NAME.rs` with a struct, its [`Level`] and its `Display`; add a line
//! to [`levels!`]; take the name out of [`RESERVED_NAMES`]. Parsing, printing, suggestions, leaf
//! iteration and usage follow.

pub(crate) mod file;
pub(crate) mod linear;
pub(crate) mod model;
pub(crate) mod raid0;
pub(crate) mod ram;

use std::fmt;

use crate::args::Args;
use crate::error::{Fault, Problem};
use crate::expr::{Call, Expr, Word, looks_like_path};
use crate::stack::Stack;
use crate::suggest::suggest;

/// What a level tells about itself. Its `Display` is canonical: what it prints is what `check`
/// reads back.
pub(crate) trait Level: Sized + fmt::Display {
    /// The name in an expression.
    const NAME: &'static str;
    /// How it is written, for people.
    const USAGE: &'static str;
    /// The named parameters.
    const PARAMETERS: &'static [&'static str];

    /// Checks the arguments of a call.
    fn check(args: &Args<'_>) -> Result<Self, Fault>;

    /// The devices below; a leaf has none.
    fn members(&self) -> &[Stack] {
        &[]
    }
}

/// A level as the registry knows it.
struct Entry {
    name: &'static str,
    usage: &'static str,
    check: fn(&Call) -> Result<Node, Fault>,
}

macro_rules! levels {
    ($($(#[$doc:meta])* $variant:ident($level:ty),)*) => {
        /// One device of a stack: a leaf, or a level with members below.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Node {
            $($(#[$doc])* $variant($level),)*
        }

        const REGISTRY: &[Entry] = &[$(Entry {
            name: <$level as Level>::NAME,
            usage: <$level as Level>::USAGE,
            check: |call| {
                let args = Args::new(
                    call,
                    <$level as Level>::NAME,
                    <$level as Level>::USAGE,
                    <$level as Level>::PARAMETERS,
                )?;
                <$level as Level>::check(&args).map(Node::$variant)
            },
        },)*];

        impl Node {
            /// The name of the level: `raid0`.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Node::$variant(_) => <$level as Level>::NAME,)*
                }
            }

            /// The devices directly below; none for a leaf.
            #[must_use]
            pub fn members(&self) -> &[Stack] {
                match self {
                    $(Node::$variant(level) => Level::members(level),)*
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
    Ram(ram::Ram),
    /// A regular file or a block device.
    File(file::File),
    /// Members one after another.
    Linear(linear::Linear),
    /// Stripes over the members.
    Raid0(raid0::Raid0),
    /// A member that behaves like a modelled device, in wall time.
    Model(model::Model),
}

/// Names of the language that this version refuses.
pub const RESERVED_NAMES: &[&str] =
    &["raid1", "raid10", "raid4", "raid5", "raid6", "cache", "nbd", "md", "missing"];

/// How each level is written, in the order of the manual.
pub fn usages() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|entry| entry.usage)
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
    let problem = if RESERVED_NAMES.contains(&name) {
        Problem::NotInThisVersion { name: name.to_owned(), known: known_names() }
    } else {
        let names = REGISTRY.iter().map(|entry| entry.name).chain(RESERVED_NAMES.iter().copied());
        Problem::UnknownName {
            name: name.to_owned(),
            suggestion: suggest(name, names),
            known: known_names(),
        }
    };
    Err(Fault::new(problem, call.name.span))
}

/// A word that stands for a member: a path, unless it is a name.
fn check_word(word: &Word) -> Result<Node, Fault> {
    if word.quoted || looks_like_path(&word.text) {
        return file::File::whole(word).map(Node::File);
    }
    let name = word.text.as_str();
    let problem = if let Some(entry) = REGISTRY.iter().find(|entry| entry.name == name) {
        Problem::BareLevel { name: entry.name, usage: entry.usage }
    } else if RESERVED_NAMES.contains(&name) {
        Problem::NotInThisVersion { name: name.to_owned(), known: known_names() }
    } else {
        Problem::NotAPath { word: name.to_owned() }
    };
    Err(Fault::new(problem, word.span))
}

/// Prints `member, member`.
fn fmt_members(f: &mut fmt::Formatter<'_>, members: &[Stack]) -> fmt::Result {
    members.iter().enumerate().try_for_each(|(index, member)| {
        if index > 0 {
            f.write_str(", ")?;
        }
        fmt::Display::fmt(member, f)
    })
}
