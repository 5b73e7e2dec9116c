//! The names of dimensions and their values.

use braid_lab::settings::Value;

use crate::analysis::Contest;
use crate::report::units::digits;
use crate::words::enumerate;

/// So many kinds of work, states or factors are told one by one.
pub(super) const FEW: usize = 3;

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
        ("filesystem", Value::Word(_)) => spell(dimension, value),
        (_, Value::Word(word)) if word.is_empty() => "defaults".to_owned(),
        (_, value) => value.to_string(),
    }
}

/// The name of a dimension.
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

/// The number behind a value.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Count(count) => Some(*count as f64),
        Value::Size(size) => Some(size.0 as f64),
        Value::Flag(_) | Value::Word(_) => None,
    }
}

/// "sequential reads and random reads", or "all 5 kinds of work".
pub(super) fn kinds_in_words(contests: &[&Contest], all: usize) -> String {
    let names: Vec<&str> = contests.iter().map(|contest| contest.kind.name.as_str()).collect();
    match names.len() {
        few if few <= FEW => enumerate(&names),
        many if many == all => format!("all {many} kinds of work"),
        many => format!("{many} of {all} kinds of work"),
    }
}

/// 1.062 as "6.20": what a factor is above 1, in percent.
pub(super) fn percent(factor: f64) -> String {
    digits(100.0 * (factor - 1.0))
}
