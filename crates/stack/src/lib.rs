//! The one text form for a stack of devices, and for sizes, rates and latencies.
//!
//! ```text
//!  "raid0(chunk=64K, ram(1G), a.img)"
//!        │ lexer      words, quotes, ( ) , =            with byte spans
//!        │ parser     Expr: calls and words             any name, any argument
//!        ▼ check      Stack: Raid0 { chunk, members }   known names, ranges, counts
//!  Stack ── Display ──▶ the canonical text, which parses back to an equal Stack
//! ```
//!
//! Invariants:
//! - Nothing here does I/O: a path is text. Whether it exists, and whether two paths are the same
//!   file, is found out elsewhere.
//! - No input panics or overflows the stack: the length ([`MAX_LENGTH`]) and the nesting
//!   ([`MAX_DEPTH`]) are bounded before anything recurses.
//! - Each error carries its values and its place, and can draw it under the expression.
//!
//! A level is added by one file in `level/` and one line in its registry.
//!
//! Deliberately absent: expansion of `~`, of globs and of variables (that is the shell's work), and
//! paths that are not UTF-8 (an expression is text; a symbolic link reaches such a file).

mod error;
mod expr;
pub mod fuzz;
mod level;
mod lexer;
mod parse;
mod problem;
mod quantity;
mod size;
mod span;
mod stack;
mod suggest;

pub use error::ParseError;
pub use expr::{Arg, Call, Expr, Word};
pub use level::cache::{Cache, Warm, WriteBack};
pub use level::cow::Cow;
pub use level::error::Unreadable;
pub use level::file::{File, path_of};
pub use level::holes::Holes;
pub use level::linear::Linear;
pub use level::md::Md;
pub use level::missing::Missing;
pub use level::model::{Model, ModelOverrides};
pub use level::nbd::Nbd;
pub use level::parity::Parity;
pub use level::raid0::Raid0;
pub use level::raid1::Raid1;
pub use level::raid10::Raid10;
pub use level::ram::Ram;
pub use level::rbd::Rbd;
pub use level::slice::Slice;
pub use level::{Node, Stack};
pub use parse::{MAX_DEPTH, MAX_LENGTH, parse_expr};
pub use problem::Problem;
pub use size::{ByteSize, Latency, QuantityError, Rate};
pub use span::Span;
pub use stack::FileUse;
pub use suggest::suggest;

/// The most members of one level: the roles that fit in md's 1 KiB version 1 superblock behind its
/// fixed 256 bytes, at two bytes each: (1024 − 256) / 2.
pub const MAX_MEMBERS: usize = 384;
