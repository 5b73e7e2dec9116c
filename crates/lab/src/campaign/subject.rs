//! Subjects: what is measured, as it is written and as it is worked out.
//!
//! A subject may be a template over the campaign's members:
//!
//! ```toml
//! [[member]]
//! name = "stick1"
//! device = "/dev/sdb"
//! bus = "front"
//!
//! [[subject]]
//! name = "stripe"
//! stack = "raid0(chunk={chunk}, {members})"
//! members = [1, 2, 3]
//! chunk = ["64K", "128K"]
//! buses = [1, 2]
//! order = ["alternate", "grouped"]
//! ```
//!
//! gives one subject for each combination, named by what varies: `stripe 64K × 2, 1 bus`.
//!
//! Invariants: a template that asks for more members or buses than there are gives a subject
//! with [`Subject::impossible`] set; nothing is left out silently. A list without its place in the
//! template is refused ([`SubjectDecl::unused_list`]).

use std::collections::BTreeMap;
use std::fmt;

use braid_stack::{ByteSize, Stack};
use serde::{Deserialize, Serialize, Serializer};

use super::Expression;
use super::keys::{check_keys, many, one, one_or_list};
use super::setup::named;
use crate::settings::{Value, vary};

/// A device that templates use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberDecl {
    /// Its name in templates, in braces: letters, digits, `-` and `_`.
    pub name: String,
    /// A path, or any stack expression such as `model(usb-flash, size=1G)`.
    pub device: String,
    /// The bus that it hangs on; members that name none have one of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
}

impl MemberDecl {
    fn bus(&self) -> &str {
        self.bus.as_deref().unwrap_or(&self.name)
    }
}

named! {
    /// In which order members are taken from their buses.
    Order: 4 {
        /// As they are declared.
        Given "given",
        /// From bus to bus in turn.
        Alternate "alternate",
        /// All of the first bus, then all of the next.
        Grouped "grouped",
        /// [`Order::Alternate`], last to first.
        Reversed "reversed",
    }
}

/// Where a subject's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A stack expression, served by braid.
    Stack(Expression),
    /// A block device or a file.
    Path(String),
    /// A folder on a file system that is there; only tools that work with files run in it.
    Directory(String),
    /// An NBD server that somebody else runs.
    Nbd(String),
    /// A stack expression of one level that the kernel's md builds, by mdadm, without metadata of
    /// braid.
    Kernel(Expression),
    /// A compressed RAM disk of the kernel (zram), by its size.
    Zram(String),
    /// A file on tmpfs behind a loop device, by its size.
    Tmpfs(String),
}

/// A source of the kind that a key names.
type Make = fn(String) -> Source;

impl Source {
    /// The keys in a campaign, and what each makes.
    const KINDS: [(&str, Make); 7] = [
        ("stack", |text| Self::Stack(text.into())),
        ("path", Self::Path),
        ("directory", Self::Directory),
        ("nbd", Self::Nbd),
        ("kernel", |text| Self::Kernel(text.into())),
        ("zram", Self::Zram),
        ("tmpfs", Self::Tmpfs),
    ];

    /// What a word on the command line means: an `nbd://` or `nbd+unix://` URI, else a stack.
    pub fn from_argument(word: &str) -> Self {
        if word.starts_with("nbd://") || word.starts_with("nbd+unix://") {
            Self::Nbd(word.to_owned())
        } else {
            Self::Stack(word.into())
        }
    }

    /// The key in a campaign: "stack", "path", ...
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stack(_) => "stack",
            Self::Path(_) => "path",
            Self::Directory(_) => "directory",
            Self::Nbd(_) => "nbd",
            Self::Kernel(_) => "kernel",
            Self::Zram(_) => "zram",
            Self::Tmpfs(_) => "tmpfs",
        }
    }

    /// The expression, path, URI or size.
    pub fn text(&self) -> &str {
        match self {
            Self::Stack(expression) | Self::Kernel(expression) => expression.text(),
            Self::Path(text)
            | Self::Directory(text)
            | Self::Nbd(text)
            | Self::Zram(text)
            | Self::Tmpfs(text) => text,
        }
    }

    /// Whether it is a folder on a file system that is there.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// The stack of a source that is an expression, if it says one.
    pub fn stack(&self) -> Option<&Stack> {
        match self {
            Self::Stack(expression) | Self::Kernel(expression) => expression.stack().ok(),
            _ => None,
        }
    }

    pub(super) fn with_text(&self, text: String) -> Self {
        match self {
            Self::Stack(_) => Self::Stack(text.into()),
            Self::Path(_) => Self::Path(text),
            Self::Directory(_) => Self::Directory(text),
            Self::Nbd(_) => Self::Nbd(text),
            Self::Kernel(_) => Self::Kernel(text.into()),
            Self::Zram(_) => Self::Zram(text),
            Self::Tmpfs(_) => Self::Tmpfs(text),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.kind(), self.text())])
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A subject as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct SubjectDecl {
    /// Unique in the campaign.
    pub name: String,
    /// What it is, with `{chunk}`, `{members}` and `{NAME}` of members where it is a template.
    #[serde(flatten)]
    pub source: Source,
    /// Whether the others are compared with it. Of several, with their average.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// Numbers of members for `{members}`; empty: all of them.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_list")]
    pub members: Vec<u32>,
    /// Chunk sizes for `{chunk}`.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_list")]
    pub chunk: Vec<ByteSize>,
    /// Numbers of buses that the members are taken from; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_list")]
    pub buses: Vec<u32>,
    /// Orders; empty: as declared.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_list")]
    pub order: Vec<Order>,
}

/// A subject worked out: one thing that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Unique in the campaign: the declaration's name and what varies.
    pub name: String,
    /// The declaration's name.
    pub family: String,
    /// What it is, without templates.
    pub source: Source,
    /// Whether the others are compared with it.
    pub baseline: bool,
    /// What it was made with: `chunk`, `members`, `buses`, `order`, where the template has them.
    pub dimensions: BTreeMap<&'static str, Value>,
    /// Why it cannot be measured, if it cannot.
    pub impossible: Option<String>,
}

impl SubjectDecl {
    /// A subject without a template.
    pub fn new(name: &str, source: Source, baseline: bool) -> Self {
        Self {
            name: name.to_owned(),
            source,
            baseline,
            members: Vec::new(),
            chunk: Vec::new(),
            buses: Vec::new(),
            order: Vec::new(),
        }
    }

    /// A list that the template has no place for, and the place that it lacks. The subjects of such
    /// a list would have different names and be the same thing.
    pub(super) fn unused_list(&self) -> Option<(&'static str, &'static str)> {
        let text = self.source.text();
        let lists = [
            ("chunk", "{chunk}", self.chunk.is_empty()),
            ("members", "{members}", self.members.is_empty()),
            ("buses", "{members}", self.buses.is_empty()),
            ("order", "{members}", self.order.is_empty()),
        ];
        let unused = lists.into_iter().find(|(_, place, none)| !none && !text.contains(place));
        unused.map(|(key, place, _)| (key, place))
    }
}

impl TryFrom<toml::Table> for SubjectDecl {
    type Error = String;

    fn try_from(table: toml::Table) -> Result<Self, String> {
        const KEYS: [&str; 6] = ["name", "baseline", "members", "chunk", "buses", "order"];
        let kinds = Source::KINDS.iter();
        check_keys(
            &table,
            "a subject",
            KEYS.into_iter().chain(kinds.clone().map(|(key, _)| *key)),
        )?;
        let name: String = one(&table, "name")?;
        let given: Vec<_> = kinds.filter(|(key, _)| table.contains_key(*key)).collect();
        let [(key, make)] = given[..] else {
            return Err(format!(
                "subject {name:?} needs exactly one of `stack = \"raid0(...)\"`, `path = \"/dev/...\"`, \
                 `directory = \"/mnt/...\"`, `nbd = \"nbd+unix:///?socket=...\"`, \
                 `kernel = \"raid0(...)\"`, `zram = \"1G\"` and `tmpfs = \"1G\"`"
            ));
        };
        Ok(Self {
            source: make(one(&table, key)?),
            baseline: one(&table, "baseline")?,
            members: many(&table, "members")?,
            chunk: many(&table, "chunk")?,
            buses: many(&table, "buses")?,
            order: many(&table, "order")?,
            name,
        })
    }
}

/// Every subject that the declarations make, in their order.
pub fn expand_subjects(declarations: &[SubjectDecl], members: &[MemberDecl]) -> Vec<Subject> {
    let of = |declared: &SubjectDecl| -> Vec<Subject> {
        let all = vary(&[Choice::default()], &declared.chunk, |one, chunk| one.chunk = Some(chunk));
        let all = vary(&all, &declared.buses, |one, buses| one.buses = Some(buses));
        let all = vary(&all, &declared.order, |one, order| one.order = Some(order));
        let all = vary(&all, &declared.members, |one, count| one.count = Some(count));
        all.iter().map(|choice| choice.subject(declared, members)).collect()
    };
    declarations.iter().flat_map(of).collect()
}

/// One value of each of a template's lists.
#[derive(Clone, Default)]
struct Choice {
    chunk: Option<ByteSize>,
    buses: Option<u32>,
    order: Option<Order>,
    count: Option<u32>,
}

impl Choice {
    fn subject(&self, declared: &SubjectDecl, members: &[MemberDecl]) -> Subject {
        let mut impossible = None;
        let mut text = declared.source.text().to_owned();
        if let Some(chunk) = self.chunk {
            text = text.replace("{chunk}", &chunk.to_string());
        }
        let mut count = self.count;
        if text.contains("{members}") {
            match self.take(members) {
                Ok(taken) => {
                    count = Some(taken.len() as u32);
                    let devices: Vec<&str> = taken.iter().map(|m| m.device.as_str()).collect();
                    text = text.replace("{members}", &devices.join(", "));
                }
                Err(reason) => impossible = Some(reason),
            }
        }
        for member in members {
            text = text.replace(&format!("{{{}}}", member.name), &member.device);
        }
        let dimensions = [
            ("chunk", self.chunk.map(Value::Size)),
            ("members", count.map(|count| Value::Count(count.into()))),
            ("buses", self.buses.map(|buses| Value::Count(buses.into()))),
            ("order", self.order.map(|order| Value::Word(order.name().to_owned()))),
        ];
        Subject {
            name: self.name(declared),
            family: declared.name.clone(),
            source: declared.source.with_text(text),
            baseline: declared.baseline,
            dimensions: dimensions.into_iter().filter_map(|(n, v)| Some((n, v?))).collect(),
            impossible,
        }
    }

    /// The declaration's name and what varies.
    fn name(&self, declared: &SubjectDecl) -> String {
        let mut name = declared.name.clone();
        if let Some(chunk) = self.chunk.filter(|_| declared.chunk.len() > 1) {
            name += &format!(" {chunk}");
        }
        if let Some(count) = self.count.filter(|_| declared.members.len() > 1) {
            name += &format!(" × {count}");
        }
        if let Some(buses) = self.buses.filter(|_| declared.buses.len() > 1) {
            name += &format!(", {buses} bus{}", if buses == 1 { "" } else { "es" });
        }
        if let Some(order) = self.order.filter(|_| declared.order.len() > 1) {
            name += &format!(", {}", order.name());
        }
        name
    }

    /// The members of this choice, in its order.
    fn take<'m>(&self, members: &'m [MemberDecl]) -> Result<Vec<&'m MemberDecl>, String> {
        let mut names: Vec<&str> = Vec::new();
        for member in members {
            if !names.contains(&member.bus()) {
                names.push(member.bus());
            }
        }
        let wanted_buses = self.buses.map_or(names.len(), |buses| buses as usize);
        if wanted_buses > names.len() {
            return Err(format!(
                "it needs {wanted_buses} buses and the members have {}",
                names.len()
            ));
        }
        names.truncate(wanted_buses);
        let mut queues: Vec<Vec<&MemberDecl>> = names
            .iter()
            .map(|bus| members.iter().filter(|m| m.bus() == *bus).rev().collect())
            .collect();
        let available: usize = queues.iter().map(Vec::len).sum();
        let wanted = self.count.map_or(available, |count| count as usize);
        if wanted > available || wanted == 0 {
            return Err(format!("it needs {wanted} members and there are {available}"));
        }
        // From bus to bus in turn, so that as many buses as possible have a part.
        let mut taken: Vec<&MemberDecl> = Vec::new();
        while taken.len() < wanted {
            for queue in &mut queues {
                taken.extend(if taken.len() < wanted { queue.pop() } else { None });
            }
        }
        let place = |member: &MemberDecl| members.iter().position(|other| other == member);
        match self.order.unwrap_or(Order::Given) {
            Order::Alternate => {}
            Order::Reversed => taken.reverse(),
            Order::Given => taken.sort_by_key(|member| place(member)),
            Order::Grouped => taken.sort_by_key(|member| {
                (names.iter().position(|bus| *bus == member.bus()), place(member))
            }),
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests;
