//! `md(MEMBER, …)`: files, block devices and remote members that carry md superblocks, and so describe the array
//! themselves.
//!
//! The order of the members, the level and all parameters are in the superblocks; nothing of it is
//! written here, but for what old ones do not say: the layout of a raid0 over members of unequal sizes,
//! `md(layout=alternate, …)`. A member that is not there is left out, not `missing`.

use std::fmt;

use braid_level::Raid0Layout;

use super::args::Args;
use super::{Level, Stack, fmt_members, has_members, raid0};
use crate::error::Fault;
use crate::problem::Problem;

/// Members that describe their array themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Md {
    /// A raid0's layout, where the superblocks do not say it.
    pub layout: Option<Raid0Layout>,
    /// 1 to [`crate::MAX_MEMBERS`] [`crate::Node::File`]s, [`crate::Node::Nbd`]s and [`crate::Node::Rbd`]s, in any order.
    pub members: Vec<Stack>,
}

impl Level for Md {
    const NAME: &'static str = "md";
    const USAGE: &'static str = "md(MEMBER, MEMBER, …), each a path, nbd(URI) or rbd(POOL/IMAGE)";
    const PARAMETERS: &'static [&'static str] = &["layout"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let members = args.members()?;
        match members.iter().find(|member| member.member_name().is_none()) {
            Some(other) => Err(Fault::new(Problem::NotAFile { level: Self::NAME }, other.span)),
            None => Ok(Self { layout: args.choice("layout", raid0::LAYOUTS)?, members }),
        }
    }

    has_members!();
}

impl fmt::Display for Md {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("md(")?;
        if let Some(layout) = self.layout {
            write!(f, "layout={layout}, ")?;
        }
        fmt_members(f, &self.members)?;
        f.write_str(")")
    }
}
