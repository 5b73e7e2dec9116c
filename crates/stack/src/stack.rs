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

/// The use of a file or block device by a stack.
#[derive(Debug, Clone, Copy)]
pub struct FileUse<'a> {
    /// The file or block device.
    pub file: &'a File,
    /// Its place in the text.
    pub span: Span,
    /// True if its superblock describes it: it is a member of an `md(…)` level.
    pub is_described: bool,
    /// True if it may be written, unless the whole stack is read-only: it is not below a `cow(…)`.
    pub is_written: bool,
}

impl Stack {
    /// Parses and checks an expression of a stack that may be written.
    ///
    /// # Errors
    /// The first problem with its place; see [`Problem`].
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        Self::parse_for(source, false).map_err(|fault| fault.locate(source))
    }

    /// As [`Stack::parse`], for a stack that is only read: members may share bytes, except those of `md(…)`.
    ///
    /// # Errors
    /// The first problem with its place; see [`Problem`].
    pub fn parse_to_read(source: &str) -> Result<Self, ParseError> {
        Self::parse_for(source, true).map_err(|fault| fault.locate(source))
    }

    fn parse_for(source: &str, is_read_only: bool) -> Result<Self, Fault> {
        let stack = check_expr(&parse_tokens(source)?)?;
        match stack.first_conflict(is_read_only) {
            None => Ok(stack),
            Some((first, second, path)) => {
                let problem = Problem::SamePathTwice { path, first_column: first.column(source) };
                Err(Fault::new(problem, second))
            }
        }
    }

    /// Returns the member called `name` in messages and records: a path, or the text of a part or of a remote member.
    #[must_use]
    pub fn called(name: &str) -> Stack {
        Stack::remote_called(Path::new(name))
            .unwrap_or_else(|| Stack::from(Node::File(File::called(name))))
    }

    /// Returns the remote member that a member's name is the text of: `nbd(URI)` or `rbd(POOL/IMAGE)`.
    #[must_use]
    pub fn remote_called(name: &Path) -> Option<Stack> {
        let is_remote = |text: &&str| text.starts_with("nbd(") || text.starts_with("rbd(");
        let stack = Stack::parse_to_read(name.to_str().filter(is_remote)?).ok()?;
        stack.is_remote().then_some(stack)
    }

    /// Returns true for a member on another machine, which is known by its text.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.node, Node::Nbd(_) | Node::Rbd(_))
    }

    /// Returns the text that two spellings of one remote member have in common; `None` for anything else.
    #[must_use]
    pub fn remote_identity(&self) -> Option<String> {
        match &self.node {
            Node::Nbd(nbd) => Some(nbd.uri.clone()),
            Node::Rbd(rbd) => {
                let conf = rbd.conf.as_deref().unwrap_or_default();
                Some(format!("{} of {conf}", rbd.name()))
            }
            _ => None,
        }
    }

    /// Returns the name of a file, a device or a remote member: see [`Stack::called`]. `None` for anything else.
    #[must_use]
    pub fn member_name(&self) -> Option<PathBuf> {
        match &self.node {
            Node::File(file) => Some(file.name()),
            node if self.is_remote() => Some(node.to_string().into()),
            _ => None,
        }
    }

    /// Returns the remote members, from left to right; true for those that may be written, unless the whole stack is
    /// read-only: they are not below a `cow(…)`.
    #[must_use]
    pub fn remotes(&self) -> Vec<(&Stack, bool)> {
        let is_written = !matches!(self.node, Node::Cow(_));
        let own = self.is_remote().then_some((self, true));
        let below = self.members().iter().flat_map(Stack::remotes);
        own.into_iter().chain(below.map(|(one, written)| (one, written && is_written))).collect()
    }

    /// Returns the part of the stack because of which it cannot be written; `None` if it can be.
    #[must_use]
    pub fn unwritable_part(&self) -> Option<&Stack> {
        match &self.node {
            Node::Holes(_) | Node::Unreadable(_) => Some(self),
            Node::Cow(_) => None,
            _ => self.members().iter().find_map(Stack::unwritable_part),
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

    /// The files and block devices, from left to right.
    #[must_use]
    pub fn files(&self) -> Vec<FileUse<'_>> {
        let mut files = Vec::new();
        self.collect_files(false, true, &mut files);
        files
    }

    fn collect_files<'a>(
        &'a self,
        is_described: bool,
        is_written: bool,
        files: &mut Vec<FileUse<'a>>,
    ) {
        if let Node::File(file) = &self.node {
            files.push(FileUse { file, span: self.span, is_described, is_written });
        }
        let is_described = matches!(self.node, Node::Md(_));
        let is_written = is_written && !matches!(self.node, Node::Cow(_));
        let members = self.members().iter();
        members.for_each(|member| member.collect_files(is_described, is_written, files));
    }

    /// The paths of all files and block devices, from left to right; one is there twice when two
    /// members are parts of it.
    #[must_use]
    pub fn member_paths(&self) -> Vec<&Path> {
        self.files().into_iter().map(|used| used.file.path()).collect()
    }

    /// The names of the files and block devices, from left to right; true for those whose superblocks describe
    /// them. Outside of an `md(…)` level, a part that is given by its bytes is known by its path.
    #[must_use]
    pub fn member_names(&self) -> Vec<(PathBuf, bool)> {
        let name = |used: FileUse<'_>| (used.name(), used.is_described);
        self.files().into_iter().map(name).collect()
    }

    /// Returns the first two leaves whose paths are the same text (see [`File::overlaps`]) and share bytes, if one of
    /// them may be written, or both describe an array.
    fn first_conflict(&self, is_read_only: bool) -> Option<(Span, Span, String)> {
        let mut by_path: HashMap<&Path, Vec<FileUse<'_>>> = HashMap::new();
        for used in self.files() {
            let earlier = by_path.entry(used.file.plain_path()).or_default();
            let conflicts = |other: &&FileUse<'_>| {
                let is_written = !is_read_only && (other.is_written || used.is_written);
                let are_described = other.is_described && used.is_described;
                (is_written || are_described) && other.file.overlaps(used.file)
            };
            if let Some(first) = earlier.iter().find(conflicts) {
                return Some((first.span, used.span, used.file.path.clone()));
            }
            earlier.push(used);
        }
        let mut by_identity: HashMap<String, Span> = HashMap::new();
        for (remote, is_written) in self.remotes() {
            let Some(identity) = remote.remote_identity() else { continue };
            let first = by_identity.insert(identity.clone(), remote.span);
            if let Some(first) = first.filter(|_| is_written && !is_read_only) {
                return Some((first, remote.span, identity));
            }
        }
        None
    }
}

impl FileUse<'_> {
    /// The name of the member: see [`File::name`]. Outside of an `md(…)` level, a part that is given by its bytes is
    /// known by its path.
    #[must_use]
    pub fn name(&self) -> PathBuf {
        let is_named = self.is_described || self.file.partition.is_some();
        if is_named { self.file.name() } else { self.file.path().to_owned() }
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
    /// From its text, as [`Stack::parse_to_read`] does: members are compared when they are opened. The error is the
    /// rendered one.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = String::deserialize(deserializer)?;
        Self::parse_to_read(&source).map_err(|error| de::Error::custom(error.render(&source)))
    }
}
