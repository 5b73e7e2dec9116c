//! The properties of a checked stack that the rest of braid needs: its text, its shape, its leaves and their
//! paths.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use braid_level::{Level, ParityLevel, Shape};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Span;
use crate::error::{Fault, ParseError};
use crate::level::file::File;
use crate::level::{Node, Stack, check_expr};
use crate::parse::parse_tokens;
use crate::problem::Problem;
use crate::size::ByteSize;

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

    /// The way in which the devices below are joined; `None` for a leaf, and if the members' own superblocks
    /// describe it.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        let (level, layout, chunk) = match &self.node {
            Node::Linear(_) => (Level::Linear, 0, ByteSize(0)),
            Node::Raid0(raid) => (Level::Raid0, raid.layout.number(), raid.chunk),
            Node::Raid1(_) => (Level::Raid1, 0, ByteSize(0)),
            // md notes no layout for raid4, which has one only.
            Node::Parity(raid) if raid.level == ParityLevel::Raid4 => (Level::Raid4, 0, raid.chunk),
            Node::Parity(raid) => (raid.level.level(), raid.layout.number(), raid.chunk),
            Node::Raid10(raid) => (Level::Raid10, raid.layout.number(), raid.chunk),
            _ => return None,
        };
        Some(Shape { level, layout, chunk: chunk.bytes() })
    }

    /// Bytes of memory for content that this part of the stack takes by itself, or promises: a RAM disk, a model, a
    /// cache.
    #[must_use]
    pub fn own_memory(&self) -> u64 {
        match &self.node {
            Node::Ram(ram) => ram.size.bytes(),
            Node::Model(model) => model.size.bytes(),
            Node::Cache(cache) => cache.size.bytes(),
            _ => 0,
        }
    }

    /// The same, with all that is below it.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let below = self.members().iter().map(Stack::memory);
        below.fold(self.own_memory(), u64::saturating_add)
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

    /// The names of the files and block devices, from left to right; true for those whose superblocks describe
    /// them. Outside of an `md(…)` level, a part that is given by its bytes is known by its path.
    #[must_use]
    pub fn member_names(&self) -> Vec<(PathBuf, bool)> {
        let mut names = Vec::new();
        self.collect_names(false, &mut names);
        names
    }

    fn collect_names(&self, is_described: bool, names: &mut Vec<(PathBuf, bool)>) {
        if let Node::File(file) = &self.node {
            let is_named = is_described || file.partition.is_some();
            names.push((if is_named { file.name() } else { file.path().to_owned() }, is_described));
        }
        let is_described = matches!(self.node, Node::Md(_));
        self.members().iter().for_each(|member| member.collect_names(is_described, names));
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

impl FromStr for Stack {
    type Err = ParseError;

    fn from_str(source: &str) -> Result<Self, ParseError> {
        Self::parse(source)
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
