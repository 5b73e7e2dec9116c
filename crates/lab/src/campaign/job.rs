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

use std::collections::BTreeMap;

use braid_stack::ByteSize;
use serde::{Deserialize, Serialize};

use super::keys::check_keys;
use super::patterns::Patterns;
use super::setup::{FileSystem, Health};
use crate::settings::{Kind, Parameter, Value};
use crate::tool::{Place, Tool};

/// A family of workloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Table", into = "toml::Table")]
pub struct Job {
    /// The tool's name.
    pub tool: String,
    /// Names of subjects that it runs on; `*` stands for any letters. Empty: all.
    pub subjects: Vec<String>,
    /// File systems; empty: on devices `none` for tools that take a raw device, else ext4. A folder
    /// has its own and takes no other.
    pub filesystem: Vec<FileSystem>,
    /// Further words for mkfs.
    pub mkfs: Vec<String>,
    /// Mount options.
    pub mount: Vec<String>,
    /// Read-ahead of the device; empty: as it is.
    pub readahead: Vec<ByteSize>,
    /// States of the array; empty: healthy.
    pub health: Vec<Health>,
    /// Processes at once; empty: one.
    pub processes: Vec<u32>,
    /// Whether caches are dropped before each trial; `None`: as the campaign says.
    pub drop_caches: Option<bool>,
    /// The tool's parameters as given, each with at least one value.
    pub settings: BTreeMap<String, Vec<Value>>,
}

/// The keys that every job may have.
const COMMON: &[Parameter] = &[
    text("tool", "the program that measures"),
    text("subjects", "names of subjects it runs on, * for any letters"),
    Parameter {
        name: "filesystem",
        kind: Kind::Choice(&["none", "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"]),
        default: None,
        scales: false,
        about: "the file system made before each trial",
    },
    text("mkfs", "further words for mkfs"),
    text("mount", "mount options"),
    Parameter {
        name: "readahead",
        kind: Kind::Size { min: 0, max: 1 << 30, unit: 4096 },
        default: None,
        scales: false,
        about: "read-ahead of the block device",
    },
    Parameter {
        name: "health",
        kind: Kind::Choice(&["healthy", "degraded", "rebuilding", "scrubbing", "story"]),
        default: None,
        scales: false,
        about: "state of the array while it is measured",
    },
    Parameter {
        name: "processes",
        kind: Kind::Count { min: 1, max: 256 },
        default: None,
        scales: false,
        about: "processes at once",
    },
    Parameter {
        name: "drop_caches",
        kind: Kind::Flag,
        default: None,
        scales: false,
        about: "whether the page cache is dropped before each trial",
    },
];

const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Text, default: None, scales: false, about }
}

/// The keys that every job may have, for help.
pub fn common_parameters() -> &'static [Parameter] {
    COMMON
}

impl TryFrom<toml::Table> for Job {
    type Error = String;

    fn try_from(table: toml::Table) -> Result<Self, String> {
        let name = match table.get("tool") {
            None => "fio",
            Some(toml::Value::String(name)) => name,
            Some(other) => return Err(format!("tool is {other}; a name in quotes is wanted")),
        };
        let tool = find_tool(name)?;
        let known = || COMMON.iter().chain(tool.parameters());
        check_keys(&table, &format!("a job with {name}"), known().map(|parameter| parameter.name))?;
        let values = |name: &str| values_of(&table, name, known());
        Ok(Self {
            tool: name.to_owned(),
            subjects: words(values("subjects")?),
            filesystem: pick(values("filesystem")?, &FileSystem::ALL, |fs| fs.name()),
            mkfs: words(values("mkfs")?),
            mount: words(values("mount")?),
            readahead: sizes(values("readahead")?),
            health: pick(values("health")?, &Health::ALL, |health| health.name()),
            processes: counts(values("processes")?),
            drop_caches: values("drop_caches")?.first().map(|v| *v == Value::Flag(true)),
            settings: tool
                .parameters()
                .iter()
                .filter(|parameter| table.contains_key(parameter.name))
                .map(|parameter| Ok((parameter.name.to_owned(), values(parameter.name)?)))
                .collect::<Result<_, String>>()?,
        })
    }
}

fn find_tool(name: &str) -> Result<&'static dyn Tool, String> {
    crate::tool::find(name).ok_or_else(|| {
        let names = crate::tool::names();
        let hint = braid_stack::suggest(name, names.iter().copied())
            .map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
        format!("the tool {name:?} is not known{hint}; tools are: {}", names.join(", "))
    })
}

/// The values of a key, one or a list of different ones; empty without the key.
fn values_of<'a>(
    table: &toml::Table,
    name: &str,
    mut known: impl Iterator<Item = &'a Parameter>,
) -> Result<Vec<Value>, String> {
    let (Some(given), Some(parameter)) = (table.get(name), known.find(|p| p.name == name)) else {
        return Ok(Vec::new());
    };
    let one = |value| parameter.check(value).map_err(|reason| format!("{name} {reason}"));
    let toml::Value::Array(many) = given else {
        return Ok(vec![one(given)?]);
    };
    if many.is_empty() {
        return Err(format!("{name} is an empty list; name at least one value or leave it out"));
    }
    let values = many.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    match values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)) {
        Some((_, twice)) => Err(format!("{name} holds {twice} twice; remove one")),
        None => Ok(values),
    }
}

fn words(values: Vec<Value>) -> Vec<String> {
    values.into_iter().map(|value| value.to_string()).collect()
}

fn sizes(values: Vec<Value>) -> Vec<ByteSize> {
    values
        .iter()
        .filter_map(|v| if let Value::Size(size) = v { Some(*size) } else { None })
        .collect()
}

fn counts(values: Vec<Value>) -> Vec<u32> {
    let count = |value: &Value| match value {
        Value::Count(count) => u32::try_from(*count).ok(),
        _ => None,
    };
    values.iter().filter_map(count).collect()
}

/// The members of `all` that are named, in the order in which they are named.
fn pick<T: Copy>(values: Vec<Value>, all: &[T], name: impl Fn(T) -> &'static str) -> Vec<T> {
    let named = |value: Value| all.iter().copied().find(|one| name(*one) == value.to_string());
    values.into_iter().filter_map(named).collect()
}

impl From<Job> for toml::Table {
    fn from(job: Job) -> Self {
        let mut table = Self::new();
        let mut put = |name: &str, values: Vec<toml::Value>| {
            let value = match <[toml::Value; 1]>::try_from(values) {
                Ok([only]) => only,
                Err(values) if values.is_empty() => return,
                Err(values) => toml::Value::Array(values),
            };
            table.insert(name.to_owned(), value);
        };
        let texts = |names: Vec<String>| names.into_iter().map(toml::Value::String).collect();
        put("tool", vec![toml::Value::String(job.tool)]);
        put("subjects", texts(job.subjects));
        put("filesystem", texts(job.filesystem.iter().map(|fs| fs.name().to_owned()).collect()));
        put("mkfs", texts(job.mkfs));
        put("mount", texts(job.mount));
        put("readahead", texts(job.readahead.iter().map(ToString::to_string).collect()));
        put("health", texts(job.health.iter().map(|health| health.name().to_owned()).collect()));
        put("processes", job.processes.iter().map(|n| toml::Value::Integer((*n).into())).collect());
        put("drop_caches", job.drop_caches.into_iter().map(toml::Value::Boolean).collect());
        for (name, values) in job.settings {
            put(&name, values.into_iter().map(to_toml).collect());
        }
        table
    }
}

fn to_toml(value: Value) -> toml::Value {
    match value {
        Value::Flag(flag) => toml::Value::Boolean(flag),
        Value::Count(count) => toml::Value::Integer(i64::try_from(count).unwrap_or(i64::MAX)),
        Value::Size(size) => toml::Value::String(size.to_string()),
        Value::Word(word) => toml::Value::String(word),
    }
}

impl Job {
    /// Whether it runs on a subject of this name.
    pub fn is_for(&self, subject: &str) -> bool {
        self.subjects.is_empty() || Patterns(&self.subjects).matches(subject)
    }

    /// The file systems that it runs on: those given, or what its tool needs. A folder has its own,
    /// unless the job wants what a folder cannot give: that is the same workload as on devices, and
    /// impossible there.
    pub(crate) fn filesystems(&self, place: Place, in_folder: bool) -> Vec<FileSystem> {
        match place {
            _ if !self.filesystem.is_empty() => self.filesystem.clone(),
            Place::Folder | Place::Either { .. } if in_folder => vec![FileSystem::Own],
            Place::Folder => vec![FileSystem::Ext4],
            Place::Device { .. } | Place::Either { .. } => vec![FileSystem::None],
        }
    }
}
