//! A job: a tool with lists of values. Every combination of them is a workload.
//!
//! ```toml
//! [[job]]
//! tool = "dd"
//! op = ["read", "write"]        # a parameter of the tool
//! bs = ["64K", "1M"]
//! filesystem = ["ext4", "xfs"]  # around the tool: every tool has these
//! processes = [1, 2, 3, 4]
//! subjects = ["single*"]        # only these; all without it
//! ```

use serde::{Deserialize, Serialize};

use super::keys::{Lists, check_keys, lists, lists_as_written};
use super::patterns::Patterns;
use super::setup::{FileSystem, Health};
use crate::settings::{Kind, Parameter, Value};
use crate::tool::Place;

/// A family of workloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct Job {
    /// The tool's name.
    pub tool: String,
    /// The values of the tool's parameters and of the common ones, each with at least one value:
    /// [`common_parameters`] lists the latter.
    #[serde(flatten, serialize_with = "lists_as_written")]
    pub settings: Lists,
}

/// The keys that every job may have.
const COMMON: &[Parameter] = &[
    Parameter::new("tool", Kind::Text, "the program that measures"),
    Parameter::new("subjects", Kind::Text, "names of subjects it runs on, * for any letters"),
    Parameter::new(
        "filesystem",
        Kind::Choice(&FileSystem::NAMES),
        "the file system made before each trial",
    ),
    Parameter::new("mkfs", Kind::Text, "further words for mkfs"),
    Parameter::new("mount", Kind::Text, "mount options"),
    Parameter::new(
        "readahead",
        Kind::Size { min: 0, max: 1 << 30, unit: 4096 },
        "read-ahead of the block device",
    ),
    Parameter::new(
        "health",
        Kind::Choice(&Health::NAMES),
        "state of the array while it is measured",
    ),
    Parameter::new("processes", Kind::count(1, 256), "processes at once"),
    Parameter::new(
        "drop_caches",
        Kind::Flag,
        "whether the page cache is dropped before each trial",
    ),
];

/// Returns the keys that every job may have, for help.
pub fn common_parameters() -> &'static [Parameter] {
    COMMON
}

impl TryFrom<toml::Table> for Job {
    type Error = String;

    fn try_from(mut table: toml::Table) -> Result<Self, String> {
        spell_seek_out(&mut table)?;
        let name = match table.get("tool") {
            None => "fio",
            Some(toml::Value::String(name)) => name.as_str(),
            Some(other) => return Err(format!("tool is {other}; a name in quotes is wanted")),
        };
        let tool = crate::tool::find(name).ok_or_else(|| {
            format!("unknown tool `{name}`; tools are `{}`", crate::tool::names().join("`, `"))
        })?;
        let known = COMMON.iter().chain(tool.parameters()).map(|parameter| parameter.name);
        check_keys(&table, &format!("a job with {name}"), known)?;
        let mut settings = lists(&table, COMMON)?;
        settings.remove("tool");
        settings.extend(lists(&table, tool.parameters())?);
        Ok(Self { tool: name.to_owned(), settings })
    }
}

/// Replaces `tool = "seek"`, which is short for fio's random reads, one at a time: requests per second are
/// seeks per second, and the mean latency is the time of a seek.
fn spell_seek_out(table: &mut toml::Table) -> Result<(), String> {
    if table.get("tool").and_then(toml::Value::as_str) != Some("seek") {
        return Ok(());
    }
    table.insert("tool".into(), "fio".into());
    for (key, value) in [("pattern", "rand".into()), ("op", "read".into()), ("iodepth", 1.into())] {
        if table.insert(key.into(), value).is_some() {
            return Err(format!("{key} is set by tool = \"seek\"; write tool = \"fio\""));
        }
    }
    Ok(())
}

impl Job {
    /// Returns the values of a key; none if it is not given.
    pub(crate) fn values(&self, key: &str) -> &[Value] {
        self.settings.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the names of subjects for the job, with `*` for any letters; empty for all.
    pub(crate) fn subjects(&self) -> Vec<String> {
        self.values("subjects").iter().map(ToString::to_string).collect()
    }

    /// Returns true if the job runs on a subject of this name.
    pub fn is_for(&self, subject: &str) -> bool {
        let subjects = self.subjects();
        subjects.is_empty() || Patterns(&subjects).matches(subject)
    }

    /// Returns the file systems of the job: the given ones, or those that its tool needs. A folder has its own,
    /// unless the job wants another: that is the same workload as on devices, and impossible in a folder.
    pub(crate) fn filesystems(&self, place: Place, in_folder: bool) -> Vec<FileSystem> {
        let given = self.values("filesystem").iter();
        let given: Vec<FileSystem> =
            given.filter_map(|name| FileSystem::find(&name.to_string())).collect();
        match place {
            _ if !given.is_empty() => given,
            Place::Folder | Place::Either if in_folder => vec![FileSystem::Own],
            Place::Folder => vec![FileSystem::Ext4],
            Place::Device | Place::Either => vec![FileSystem::None],
        }
    }
}
