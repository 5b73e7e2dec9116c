//! Keys of a campaign's tables: unknown keys, and values that may be single or lists.
//!
//! serde refuses unknown keys of tables whose keys are fixed; the keys of a job depend on its tool, and a
//! subject has one of several. All errors quote in backticks: the fault, then all known keys, so that [`hint`]
//! can name the nearest.

use std::collections::BTreeMap;

use serde::Serializer;
use serde::de::DeserializeOwned;

use crate::settings::{Parameter, Value, did_you_mean};

/// The values of each given parameter, at least one of each.
pub(super) type Lists = BTreeMap<String, Vec<Value>>;

/// Refuses an unknown key.
pub(super) fn check_keys<'k>(
    table: &toml::Table,
    place: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Result<(), String> {
    let Some(key) = table.keys().find(|key| known.clone().all(|name| name != *key)) else {
        return Ok(());
    };
    let known: Vec<&str> = known.collect();
    Err(format!("unknown key `{key}` in {place}; known are `{}`", known.join("`, `")))
}

/// Returns the correct spelling for an error of such a kind.
pub(super) fn hint(error: &str) -> String {
    if error.contains("expected a sequence") {
        return ": values in brackets, or tables under [[member]], [[subject]] or [[job]]".into();
    }
    let quoted = error.split_once("unknown ").map_or("", |(_, rest)| rest);
    let mut quoted = quoted.split('`').skip(1).step_by(2);
    did_you_mean(quoted.next().unwrap_or_default(), quoted)
}

/// Returns the value of a key, or the default.
pub(super) fn one<T: DeserializeOwned + Default>(
    table: &toml::Table,
    key: &str,
) -> Result<T, String> {
    let Some(value) = table.get(key) else { return Ok(T::default()) };
    let read = value.clone().try_into();
    read.map_err(|error: toml::de::Error| format!("{key}: {}", error.message()))
}

/// Returns the values of the parameters in a table.
pub(super) fn lists(table: &toml::Table, parameters: &[Parameter]) -> Result<Lists, String> {
    let given = parameters.iter().filter_map(|one| Some((one, table.get(one.name)?)));
    given.map(|(one, value)| Ok((one.name.to_owned(), values_of(one, value)?))).collect()
}

/// Returns one value, or a list of different ones.
fn values_of(parameter: &Parameter, given: &toml::Value) -> Result<Vec<Value>, String> {
    let name = parameter.name;
    let given = match given {
        toml::Value::Array(many) => many.as_slice(),
        one => std::slice::from_ref(one),
    };
    if given.is_empty() {
        return Err(format!("{name} is an empty list; name at least one value or leave it out"));
    }
    let one = |value| parameter.check(value).map_err(|reason| format!("{name} {reason}"));
    let values = given.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    match values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)) {
        Some((_, twice)) => Err(format!("{name} holds {twice} twice; remove one")),
        None => Ok(values),
    }
}

/// Writes lists in the form in which they are read.
pub(super) fn lists_as_written<S: Serializer>(
    lists: &Lists,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let written = |values: &Vec<Value>| match values.as_slice() {
        [only] => to_toml(only),
        many => toml::Value::Array(many.iter().map(to_toml).collect()),
    };
    serializer.collect_map(lists.iter().map(|(name, values)| (name, written(values))))
}

fn to_toml(value: &Value) -> toml::Value {
    match value {
        Value::Flag(flag) => toml::Value::Boolean(*flag),
        Value::Count(count) => toml::Value::Integer(i64::try_from(*count).unwrap_or(i64::MAX)),
        Value::Size(size) => toml::Value::String(size.to_string()),
        Value::Word(word) => toml::Value::String(word.clone()),
    }
}
