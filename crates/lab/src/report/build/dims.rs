//! What varies in a campaign: dimensions of workloads and of subjects, and families of those that
//! differ in one dimension only.

use std::collections::BTreeMap;

use super::Context;
use crate::campaign::Setup;
use crate::matrix::Workload;
use crate::settings::Value;

/// Workloads, or subjects, that are alike but for one dimension.
pub(super) struct Family {
    /// What they have in common, in words.
    pub(super) title: String,
    /// Value of the dimension and index, by value; at least two.
    pub(super) members: Vec<(Value, usize)>,
}

impl Context<'_> {
    /// Dimensions in which workloads differ, by name.
    pub(super) fn varying_of_workloads(&self) -> Vec<String> {
        let works = &self.analysis.workloads;
        let all = works.iter().map(|work| &work.dimensions);
        varying(all)
    }

    /// The workloads that differ in this dimension only, in the campaign's order.
    pub(super) fn workload_families(&self, dimension: &str) -> Vec<Family> {
        let works = &self.analysis.workloads;
        let items = works.iter().enumerate().filter_map(|(index, work)| {
            let mut rest = work.dimensions.clone();
            Some((rest.remove(dimension)?, rest, index))
        });
        families(items, |index| self.label_without(index, dimension))
    }

    /// The subjects that differ in this dimension only.
    pub(super) fn subject_families(&self, dimension: &str) -> Vec<Family> {
        let items = self.results.subjects.iter().enumerate().filter_map(|(index, subject)| {
            let mut rest: BTreeMap<String, Value> = subject
                .dimensions
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect();
            let value = rest.remove(dimension)?;
            rest.insert("family".to_owned(), Value::Word(subject.family.clone()));
            Some((value, rest, index))
        });
        families(items, |index| self.subject_without(index, dimension))
    }

    /// The name of a subject without what one dimension adds to it.
    pub(super) fn subject_without(&self, index: usize, dimension: &str) -> String {
        let subject = &self.results.subjects[index];
        let varies = |name: &str| {
            let same = self.results.subjects.iter().filter(|s| s.family == subject.family);
            same.clone().any(|other| other.dimensions.get(name) != subject.dimensions.get(name))
        };
        let mut name = subject.family.clone();
        for (key, value) in &subject.dimensions {
            if *key != dimension && varies(key) {
                name += &format!(", {}", spell(key, value));
            }
        }
        name
    }

    /// A workload's label without what one dimension adds to it.
    pub(super) fn label_without(&self, index: usize, dimension: &str) -> String {
        let workload = &self.analysis.workloads[index].workload;
        let standard = Setup::default();
        let mut setup = workload.setup.clone();
        match dimension {
            "processes" => setup.processes = standard.processes,
            "filesystem" => setup.filesystem = standard.filesystem,
            "mkfs" => setup.mkfs = standard.mkfs,
            "mount" => setup.mount = standard.mount,
            "readahead" => setup.readahead = standard.readahead,
            "health" => setup.health = standard.health,
            "drop_caches" => setup.drop_caches = standard.drop_caches,
            _ => return self.words_without(index, dimension),
        }
        Workload { setup, ..workload.clone() }.label()
    }

    /// A workload's label in a table of its own number of processes: without that, and without
    /// the file system where all workloads have the same.
    pub(super) fn test_name(&self, index: usize) -> String {
        let standard = Setup::default();
        let workload = &self.analysis.workloads[index].workload;
        let mut setup = workload.setup.clone();
        setup.processes = standard.processes;
        if self.shared_filesystem().is_some() {
            setup.filesystem = standard.filesystem;
        }
        Workload { setup, ..workload.clone() }.label()
    }

    /// The file system that every workload is on; `None` when they differ, or use none.
    pub(super) fn shared_filesystem(&self) -> Option<String> {
        let mut all = self.analysis.workloads.iter().map(|work| work.dimensions.get("filesystem"));
        match all.next()?? {
            first @ Value::Word(word) if word != "none" => {
                all.all(|other| other == Some(first)).then(|| word.clone())
            }
            _ => None,
        }
    }

    /// What tells a workload apart but for one of its tool's parameters.
    fn words_without(&self, index: usize, dimension: &str) -> String {
        let work = &self.analysis.workloads[index];
        let works = self.analysis.workloads.iter();
        let of_tool = works.filter(|other| other.workload.tool == work.workload.tool);
        let varying = varying(of_tool.map(|other| &other.dimensions));
        let spelt = |name: &str| {
            let value = work.dimensions.get(name).filter(|_| name != dimension)?;
            Some(spell(name, value))
        };
        let kind: Vec<String> = ["pattern", "op"].into_iter().filter_map(spelt).collect();
        let mut words = if kind.is_empty() { Vec::new() } else { vec![kind.join(" ")] };
        let others = varying.iter().filter(|name| !["pattern", "op"].contains(&name.as_str()));
        words.extend(others.filter_map(|name| spelt(name)));
        let tool = &work.workload.tool;
        let many_tools = self.analysis.workloads.iter().any(|other| other.workload.tool != *tool);
        match words.join(", ") {
            words if words.is_empty() => tool.clone(),
            words if many_tools => format!("{tool}: {words}"),
            words => words,
        }
    }
}

fn varying<'m>(all: impl Iterator<Item = &'m BTreeMap<String, Value>> + Clone) -> Vec<String> {
    let Some(first) = all.clone().next() else { return Vec::new() };
    let names: std::collections::BTreeSet<&String> = all.clone().flat_map(BTreeMap::keys).collect();
    let differs = |name: &String| all.clone().any(|other| other.get(name) != first.get(name));
    names.into_iter().filter(|name| differs(name)).cloned().collect()
}

/// Numbers by size, words as they come.
fn families(
    items: impl Iterator<Item = (Value, BTreeMap<String, Value>, usize)>,
    title: impl Fn(usize) -> String,
) -> Vec<Family> {
    let mut order: Vec<BTreeMap<String, Value>> = Vec::new();
    let mut groups: BTreeMap<BTreeMap<String, Value>, Vec<(Value, usize)>> = BTreeMap::new();
    for (value, rest, index) in items {
        if !groups.contains_key(&rest) {
            order.push(rest.clone());
        }
        groups.entry(rest).or_default().push((value, index));
    }
    order
        .iter()
        .filter_map(|rest| groups.remove(rest))
        .filter(|members| members.len() > 1)
        .map(|mut members| {
            if members.iter().all(|(value, _)| as_number(value).is_some()) {
                members.sort_by(|a, b| a.0.cmp(&b.0));
            }
            Family { title: title(members[0].1), members }
        })
        .collect()
}

/// The number behind a value.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Size(size) => Some(size.0 as f64),
        Value::Flag(_) | Value::Word(_) => None,
    }
}

/// A value with what it is a value of, as short as it is clear.
pub(super) fn spell(name: &str, value: &Value) -> String {
    match (name, value) {
        ("pattern", Value::Word(word)) if word == "seq" => "sequential".to_owned(),
        ("pattern", Value::Word(word)) if word == "rand" => "random".to_owned(),
        ("block_size" | "bs", value) => format!("blocks of {value}"),
        ("iodepth", value) => format!("depth {value}"),
        ("chunk", value) => format!("chunk {value}"),
        ("readahead", value) => format!("read-ahead {value}"),
        ("members", Value::Count(1)) => "1 member".to_owned(),
        ("buses", Value::Count(1)) => "1 bus".to_owned(),
        ("processes", Value::Count(1)) => "1 process".to_owned(),
        ("members" | "buses" | "processes" | "threads", value) => format!("{value} {name}"),
        ("mount" | "mkfs", Value::Word(word)) if word.is_empty() => format!("{name} defaults"),
        ("filesystem", Value::Word(word)) if word == "none" => "raw device".to_owned(),
        (
            "pattern" | "op" | "filesystem" | "health" | "mount" | "mkfs" | "mode" | "order",
            Value::Word(word),
        ) => word.clone(),
        (_, value) => format!("{} {value}", name.replace('_', " ")),
    }
}

/// A value where its dimension is named beside it.
pub(super) fn short(dimension: &str, value: &Value) -> String {
    match (dimension, value) {
        ("filesystem", Value::Word(_)) | ("buses", _) => spell(dimension, value),
        (_, Value::Word(word)) if word.is_empty() => "defaults".to_owned(),
        (_, value) => value.to_string(),
    }
}

/// What a dimension is called.
pub(super) fn name_of(dimension: &str) -> String {
    match dimension {
        "iodepth" => "requests at once (depth)".to_owned(),
        "block_size" | "bs" => "block size".to_owned(),
        "filesystem" => "file system".to_owned(),
        "readahead" => "read-ahead".to_owned(),
        "mount" => "mount options".to_owned(),
        "mkfs" => "mkfs options".to_owned(),
        "health" => "state of the array".to_owned(),
        "drop_caches" => "whether caches are dropped".to_owned(),
        other => other.replace('_', " "),
    }
}
