//! What more members, other chunks, more buses and other orders bring.

use super::dims::{Family, spell};
use super::efficiency::{efficiency, smallest_shared};
use super::pivot::{Head, Pivot, turn_table};
use super::{Context, charts_first};
use crate::campaign::Subject;
use crate::report::model::{Block, Section};
use crate::report::units::title;
use crate::settings::Value;

/// Workloads that get charts of their own; the others are in the tables.
const MOST_WORKLOADS: usize = 6;

/// Speed over the number of members, how much of it each member brings, and over the chunk.
pub(super) fn members(context: &Context<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    for dimension in ["members", "chunk"] {
        let families = context.subject_families(dimension);
        // Where both vary, the heat map below shows the chunk.
        if families.is_empty() || (dimension == "chunk" && !blocks.is_empty()) {
            continue;
        }
        for work in told_apart(context) {
            let planned = pivot_over(context, &families, dimension, work);
            let reference = smallest_shared(&planned);
            let Some(pivot) = planned.trimmed() else { continue };
            blocks.push(Block::Table(pivot.table("scaling")));
            blocks.extend(pivot.lines("scaling-lines"));
            if let Some(reference) = reference.filter(|_| dimension == "members") {
                blocks.extend(efficiency(&pivot, &reference));
            }
        }
    }
    for work in told_apart(context) {
        blocks.extend(chunk_by_members(context, work));
    }
    let lead = "A layout that scales gains the same with each member. Efficiency is the speed per \
                member in percent of that of the smallest array which all of a table's subjects \
                are planned with; without a number of that one there is none."
        .to_owned();
    charts_first("members-and-chunks", "Members and chunks", lead, blocks)
}

/// The same arrays over one and over more buses, and in other orders.
pub(super) fn buses(context: &Context<'_>) -> Option<Section> {
    let ways = Ways::of(context)?;
    let mut charts = Vec::new();
    let mut tables = Vec::new();
    for work in told_apart(context) {
        let Some(pivot) = ways.pivot(context, work).trimmed() else { continue };
        let percent = pivot
            .percent_of_row("buses-percent", 0)
            .map(|table| turn_table(table, &pivot.columns_are));
        let pivot = pivot.turned();
        charts.extend(pivot.bars("buses-bars"));
        tables.push(Block::Table(pivot.table("buses")));
        tables.extend(percent.map(Block::Table));
    }
    let left_out = charts.len().saturating_sub(MOST_BUS_CHARTS);
    charts.truncate(MOST_BUS_CHARTS);
    let mut lead =
        "Members on one bus share what it carries; on several, each bus carries a part.".to_owned();
    if left_out > 0 {
        lead += &format!(" {left_out} further charts are left to their tables.");
    }
    charts_first("bus-comparison", BUSES, lead, [charts, tables].concat())
}

const BUSES: &str = "Buses and order of the members";
/// More charts than this are left to the tables.
const MOST_BUS_CHARTS: usize = 8;
/// What says how members hang on buses.
const WAYS: [&str; 2] = ["buses", "order"];

/// Arrays that are alike but for how their members hang on buses.
struct Ways {
    /// Buses and order in words: "1 bus", "2 buses, alternate".
    ways: Vec<String>,
    /// What they have in common: "chunk 64K, 3 members".
    arrays: Vec<String>,
    /// Place in both lists, and the subject.
    subjects: Vec<(usize, usize, usize)>,
}

impl Ways {
    /// `None` when no array is there in two ways. The declarations' names are left out where the
    /// rest tells subjects apart, so that a declaration for each way is found as well.
    fn of(context: &Context<'_>) -> Option<Self> {
        Self::named(context, false).or_else(|| Self::named(context, true))
    }

    fn named(context: &Context<'_>, with_family: bool) -> Option<Self> {
        let mut found = Self { ways: Vec::new(), arrays: Vec::new(), subjects: Vec::new() };
        let subjects = context.results.subjects.iter().enumerate();
        let hangs = |subject: &Subject| WAYS.iter().any(|w| subject.dimensions.contains_key(w));
        for (index, subject) in subjects.filter(|(_, subject)| hangs(subject)) {
            let dimensions = subject.dimensions.iter();
            let (way, array): (Vec<_>, Vec<_>) =
                dimensions.partition(|(key, _)| WAYS.contains(*key));
            let words = |parts: Vec<(&&'static str, &Value)>| -> Vec<String> {
                parts.into_iter().map(|(key, value)| spell(key, value)).collect()
            };
            let mut array = words(array);
            if with_family || array.is_empty() {
                array.insert(0, subject.family.clone());
            }
            let place = |list: &mut Vec<String>, name: String| {
                list.iter().position(|other| *other == name).unwrap_or_else(|| {
                    list.push(name);
                    list.len() - 1
                })
            };
            let way = place(&mut found.ways, words(way).join(", "));
            let array = place(&mut found.arrays, array.join(", "));
            if found.subjects.iter().any(|(w, a, _)| (*w, *a) == (way, array)) {
                // Only the declarations' names tell these two apart.
                return None;
            }
            found.subjects.push((way, array, index));
        }
        let ways_of = |array: usize| found.subjects.iter().filter(|(_, a, _)| *a == array).count();
        (0..found.arrays.len()).any(|array| ways_of(array) > 1).then_some(found)
    }

    /// Ways down, arrays that are there in more than one way across.
    fn pivot<'a>(&self, context: &Context<'a>, work: usize) -> Pivot<'a> {
        let cell = |way: usize, array: usize| {
            let found = self.subjects.iter().find(|(w, a, _)| (*w, *a) == (way, array))?;
            Some(context.analysis.cell(work, found.2))
        };
        let ways: Vec<usize> = (0..self.ways.len()).collect();
        let compared: Vec<usize> = (0..self.arrays.len())
            .filter(|array| ways.iter().filter(|way| cell(**way, *array).is_some()).count() > 1)
            .collect();
        Pivot {
            title: context.label(work).to_owned(),
            rows_are: "buses".to_owned(),
            columns_are: "array".to_owned(),
            rows: self.ways.iter().map(Head::word).collect(),
            columns: compared.iter().map(|a| Head::word(&self.arrays[*a])).collect(),
            cells: ways
                .iter()
                .map(|way| compared.iter().map(|array| cell(*way, *array)).collect())
                .collect(),
            metric: context.analysis.workloads[work].headline,
        }
    }
}

/// The first workloads of each kind, as many as are readable.
fn told_apart(context: &Context<'_>) -> Vec<usize> {
    let kinds = crate::analysis::find_kinds(context.analysis);
    let deepest = kinds.iter().map(|kind| kind.workloads.len()).max().unwrap_or(0);
    let in_turn = (0..deepest)
        .flat_map(|at| kinds.iter().filter_map(move |kind| kind.workloads.get(at).copied()));
    in_turn.take(MOST_WORKLOADS).collect()
}

/// A dimension of subjects down, families across.
fn pivot_over<'a>(
    context: &Context<'a>,
    families: &[Family],
    dimension: &str,
    work: usize,
) -> Pivot<'a> {
    let mut values: Vec<Value> = Vec::new();
    for (value, _) in families.iter().flat_map(|family| &family.members) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    if values.iter().all(|value| !matches!(value, Value::Word(_))) {
        values.sort();
    }
    let analysis = context.analysis;
    let find = |value: &Value, family: &Family| {
        let member = family.members.iter().find(|(other, _)| other == value)?;
        Some(analysis.cell(work, member.1))
    };
    Pivot {
        title: context.label(work).to_owned(),
        rows_are: super::dims::name_of(dimension),
        columns_are: "subject".to_owned(),
        rows: values.iter().map(|value| Head::of(dimension, value)).collect(),
        columns: families.iter().map(|family| Head::word(family.title.clone())).collect(),
        cells: values
            .iter()
            .map(|value| families.iter().map(|family| find(value, family)).collect())
            .collect(),
        metric: analysis.workloads[work].headline,
    }
}

/// A heat map for each family in which both vary, with its table.
fn chunk_by_members(context: &Context<'_>, work: usize) -> Vec<Block> {
    let subjects = &context.results.subjects;
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (index, subject) in subjects.iter().enumerate() {
        let has = |name: &str| subject.dimensions.contains_key(name);
        if !has("chunk") || !has("members") {
            continue;
        }
        let mut name = subject.family.clone();
        let family = || subjects.iter().filter(|other| other.family == subject.family);
        for key in ["buses", "order"] {
            let value = subject.dimensions.get(key);
            let varies = family().any(|other| other.dimensions.get(key) != value);
            if let Some(value) = value.filter(|_| varies) {
                name += &format!(", {}", spell(key, value));
            }
        }
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, found)) => found.push(index),
            None => groups.push((name, vec![index])),
        }
    }
    let values = |group: &[usize], key: &str| {
        let mut found: Vec<Value> =
            group.iter().filter_map(|s| subjects[*s].dimensions.get(key).cloned()).collect();
        found.sort();
        found.dedup();
        found
    };
    let mut blocks = Vec::new();
    for (name, group) in &groups {
        let (chunks, members) = (values(group, "chunk"), values(group, "members"));
        if chunks.len() < 2 || members.len() < 2 {
            continue;
        }
        let find = |chunk: &Value, count: &Value| {
            let subject = group.iter().find(|s| {
                let dimensions = &subjects[**s].dimensions;
                dimensions.get("chunk") == Some(chunk) && dimensions.get("members") == Some(count)
            })?;
            Some(context.analysis.cell(work, *subject))
        };
        let pivot = Pivot {
            title: format!("{name}, {}", context.label(work)),
            rows_are: "chunk".to_owned(),
            columns_are: "members".to_owned(),
            rows: chunks.iter().map(|chunk| Head::of("chunk", chunk)).collect(),
            columns: members.iter().map(|count| Head::of("members", count)).collect(),
            cells: chunks
                .iter()
                .map(|chunk| members.iter().map(|count| find(chunk, count)).collect())
                .collect(),
            metric: context.analysis.workloads[work].headline,
        };
        if let Some(map) = pivot.heat_map("chunk-members") {
            let mut table = pivot.table("chunk-members-table");
            table.title = format!(
                "{name}, {}: chunk by members, {}",
                context.label(work),
                title(pivot.metric)
            );
            blocks.push(Block::Table(table));
            blocks.push(map);
        }
    }
    blocks
}
