//! Subjects: the declarations, and their expansion.
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
//! makes one subject for each combination, named by the values that vary: `stripe 64K × 2, 1 bus`.
//!
//! Invariants: a template that asks for more members or buses than there are makes a subject with
//! [`Subject::impossible`] set; no combination is left out silently. A list that the template does not use is
//! refused ([`SubjectDecl::unused_list`]).

use std::collections::BTreeMap;
use std::fmt;

use braid_stack::Stack;
use serde::{Deserialize, Serialize, Serializer};

use super::Expression;
use super::keys::{Lists, check_keys, lists, lists_as_written, one};
use crate::settings::{Kind, Parameter, Settings, Value, vary};

/// A device that templates use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberDecl {
    /// The name in templates, in braces: letters, digits, `-` and `_`.
    pub name: String,
    /// A path, or any stack expression such as `model(usb-flash, size=1G)`.
    pub device: String,
    /// The bus of the device; a member without one has a bus of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
}

impl MemberDecl {
    fn bus(&self) -> &str {
        self.bus.as_deref().unwrap_or(&self.name)
    }
}

/// The lists of a template, slowest first.
const LISTS: [Parameter; 4] = [
    Parameter::new("chunk", Kind::bytes_from(1), "chunk sizes for {chunk}"),
    Parameter::new("buses", COUNT, "numbers of buses that members are taken from; none: all"),
    // As declared; from bus to bus in turn; all of the first bus, then all of the next; in turn, last to first.
    Parameter::new(
        "order",
        Kind::Choice(&["given", "alternate", "grouped", "reversed"]),
        "orders in which members are taken from their buses; none: as declared",
    ),
    Parameter::new("members", COUNT, "numbers of members for {members}; none: all of them"),
];

const COUNT: Kind = Kind::count(1, 1 << 16);

/// The source of a subject's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A stack expression, served by braid.
    Stack(Expression),
    /// A block device or a file.
    Path(String),
    /// A folder on an existing file system; only tools that work with files run in it.
    Directory(String),
    /// An NBD server that the user runs.
    Nbd(String),
    /// A stack expression of one level that mdadm builds with the kernel's md, without metadata of braid.
    Kernel(Expression),
    /// A compressed RAM disk of the kernel (zram), by its size.
    Zram(String),
    /// A file on tmpfs behind a loop device, by its size.
    Tmpfs(String),
}

/// The constructor of a source, for a key.
type Make = fn(String) -> Source;

impl Source {
    /// The keys in a campaign, and their constructors.
    const KINDS: [(&str, Make); 7] = [
        ("stack", |text| Self::Stack(text.into())),
        ("path", Self::Path),
        ("directory", Self::Directory),
        ("nbd", Self::Nbd),
        ("kernel", |text| Self::Kernel(text.into())),
        ("zram", Self::Zram),
        ("tmpfs", Self::Tmpfs),
    ];

    /// Parses a word of the command line: an `nbd://` or `nbd+unix://` URI, else a stack.
    pub fn from_argument(word: &str) -> Self {
        if word.starts_with("nbd://") || word.starts_with("nbd+unix://") {
            Self::Nbd(word.to_owned())
        } else {
            Self::Stack(word.into())
        }
    }

    /// Returns the key in a campaign, and the expression, path, URI or size.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Stack(expression) => ("stack", expression.text()),
            Self::Path(path) => ("path", path),
            Self::Directory(path) => ("directory", path),
            Self::Nbd(uri) => ("nbd", uri),
            Self::Kernel(expression) => ("kernel", expression.text()),
            Self::Zram(size) => ("zram", size),
            Self::Tmpfs(size) => ("tmpfs", size),
        }
    }

    /// Returns the key in a campaign: "stack", "path", ...
    pub fn kind(&self) -> &'static str {
        self.parts().0
    }

    /// Returns the expression, path, URI or size.
    pub fn text(&self) -> &str {
        self.parts().1
    }

    /// Returns true for a folder on an existing file system.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// Returns the stack of a source that is a valid expression.
    pub fn stack(&self) -> Option<&Stack> {
        match self {
            Self::Stack(expression) | Self::Kernel(expression) => expression.stack().ok(),
            _ => None,
        }
    }

    /// Returns a source of the same kind with another text.
    pub(super) fn with_text(&self, text: String) -> Self {
        let make = Self::KINDS.iter().find(|(kind, _)| *kind == self.kind());
        make.map_or_else(|| self.clone(), |(_, make)| make(text))
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

/// A declared subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct SubjectDecl {
    /// Unique in the campaign.
    pub name: String,
    /// The source, with `{chunk}`, `{members}` and `{NAME}` of members if it is a template.
    #[serde(flatten)]
    pub source: Source,
    /// True if the others are compared with this subject. Several baselines count by their average.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// True if this is the baseline a second time, in another place: it is compared and never chosen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// Chunk sizes for `{chunk}`; for `{members}` their number, number of buses and order.
    #[serde(flatten, serialize_with = "lists_as_written")]
    pub lists: Lists,
}

/// An expanded subject: one object of measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Unique in the campaign: the declaration's name and the values that vary.
    pub name: String,
    /// The declaration's name.
    pub family: String,
    /// The source, without templates.
    pub source: Source,
    /// True if the others are compared with this subject.
    pub baseline: bool,
    /// True if this is the baseline a second time, in another place.
    pub control: bool,
    /// The choices: `chunk`, `members`, `buses`, `order`, if the template has them.
    pub dimensions: BTreeMap<&'static str, Value>,
    /// The reason why the subject cannot be measured, if it cannot.
    pub impossible: Option<String>,
}

impl SubjectDecl {
    /// Declares a subject without a template.
    pub fn new(name: &str, source: Source, baseline: bool) -> Self {
        Self { name: name.to_owned(), source, baseline, control: false, lists: Lists::new() }
    }

    /// Returns a list that the template does not use, and the missing placeholder. The subjects of such a list
    /// would differ only in name.
    pub(super) fn unused_list(&self) -> Option<(&str, &'static str)> {
        let with_place = self.lists.keys().map(|list| match list.as_str() {
            "chunk" => (list.as_str(), "{chunk}"),
            _ => (list.as_str(), "{members}"),
        });
        with_place.into_iter().find(|(_, place)| !self.source.text().contains(place))
    }
}

impl TryFrom<toml::Table> for SubjectDecl {
    type Error = String;

    fn try_from(table: toml::Table) -> Result<Self, String> {
        let kinds = Source::KINDS.iter();
        let keys = LISTS.iter().map(|list| list.name).chain(kinds.clone().map(|(key, _)| *key));
        check_keys(&table, "a subject", ["name", "baseline", "control"].into_iter().chain(keys))?;
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
            control: one(&table, "control")?,
            lists: lists(&table, &LISTS)?,
            name,
        })
    }
}

/// Returns all subjects of the declarations, in their order.
pub fn expand_subjects(declarations: &[SubjectDecl], members: &[MemberDecl]) -> Vec<Subject> {
    let of = |declared: &SubjectDecl| -> Vec<Subject> {
        let choices = LISTS.iter().fold(vec![Settings::default()], |choices, list| {
            let values = declared.lists.get(list.name).map_or(&[][..], Vec::as_slice);
            vary(&choices, values, |choice, value| *choice = choice.clone().with(list.name, value))
        });
        choices.iter().map(|choice| declared.subject(choice, members)).collect()
    };
    declarations.iter().flat_map(of).collect()
}

impl SubjectDecl {
    /// Returns the subject with one value of each list.
    fn subject(&self, choice: &Settings, members: &[MemberDecl]) -> Subject {
        let mut impossible = None;
        let mut choice = choice.clone();
        let name = self.name_with(&choice);
        let mut text = self.source.text().to_owned();
        if let Some(chunk) = choice.get("chunk") {
            text = text.replace("{chunk}", &chunk.to_string());
        }
        if text.contains("{members}") {
            match take(&choice, members) {
                Ok(taken) => {
                    choice = choice.with("members", Value::Count(taken.len() as u64));
                    let devices: Vec<&str> = taken.iter().map(|m| m.device.as_str()).collect();
                    text = text.replace("{members}", &devices.join(", "));
                }
                Err(reason) => impossible = Some(reason),
            }
        }
        for member in members {
            text = text.replace(&format!("{{{}}}", member.name), &member.device);
        }
        let dimension = |list: &Parameter| Some((list.name, choice.get(list.name)?.clone()));
        Subject {
            name,
            family: self.name.clone(),
            source: self.source.with_text(text),
            baseline: self.baseline,
            control: self.control,
            dimensions: LISTS.iter().filter_map(dimension).collect(),
            impossible,
        }
    }

    /// Returns the declaration's name with the values that vary.
    fn name_with(&self, choice: &Settings) -> String {
        let buses = if choice.count("buses") == Some(1) { ", {} bus" } else { ", {} buses" };
        let words = [("chunk", " {}"), ("members", " × {}"), ("buses", buses), ("order", ", {}")];
        let part = |(list, words): &(&str, &str)| {
            let varies = self.lists.get(*list).is_some_and(|values| values.len() > 1);
            let value = choice.get(list).filter(|_| varies)?;
            Some(words.replace("{}", &value.to_string()))
        };
        let varies: String = words.iter().filter_map(part).collect();
        format!("{}{varies}", self.name)
    }
}

/// Returns the members of a choice, in its order.
fn take<'m>(choice: &Settings, members: &'m [MemberDecl]) -> Result<Vec<&'m MemberDecl>, String> {
    let wanted = |list: &str, all: usize| {
        choice.count(list).map_or(all, |count| usize::try_from(count).unwrap_or(usize::MAX))
    };
    let mut buses: Vec<Vec<&MemberDecl>> = Vec::new();
    for member in members {
        match buses.iter_mut().find(|bus| bus[0].bus() == member.bus()) {
            Some(bus) => bus.push(member),
            None => buses.push(vec![member]),
        }
    }
    let wanted_buses = wanted("buses", buses.len());
    if wanted_buses > buses.len() {
        let there = buses.len();
        return Err(format!("it needs {wanted_buses} buses and the members have {there}"));
    }
    buses.truncate(wanted_buses);
    let on_buses = buses.concat();
    let available = on_buses.len();
    let wanted = wanted("members", available);
    if wanted > available || wanted == 0 {
        return Err(format!("it needs {wanted} members and there are {available}"));
    }
    // From bus to bus in turn, so that as many buses as possible take part.
    let turn = |turn: usize| buses.iter().filter_map(move |bus| bus.get(turn).copied());
    let taken: Vec<&MemberDecl> = (0..available).flat_map(turn).take(wanted).collect();
    Ok(match choice.word("order") {
        "alternate" => taken,
        "reversed" => taken.into_iter().rev().collect(),
        "grouped" => on_buses.into_iter().filter(|member| taken.contains(member)).collect(),
        _ => members.iter().filter(|member| taken.contains(member)).collect(),
    })
}

#[cfg(test)]
mod tests;
