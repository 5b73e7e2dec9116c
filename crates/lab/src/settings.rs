//! The parameters of a tool: their kinds and ranges, and the values in a workload.
//!
//! A tool declares [`Parameter`]s; a campaign gives each one value or a list; a list is a dimension of the
//! matrix. So the tool's file alone defines the dimensions, the campaign file is checked against it, and a
//! report can pivot over any of them.
//!
//! Invariants: a [`Settings`] that came from [`Parameter::check`] holds a value of the declared
//! kind and range for every parameter that has a default or was given.

use std::collections::BTreeMap;
use std::fmt;

use braid_stack::ByteSize;
use serde::{Deserialize, Serialize};

/// A value of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Yes or no.
    Flag(bool),
    /// A number without a unit.
    Count(u64),
    /// Bytes.
    Size(ByteSize),
    /// One of some words, or free text.
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.write_str("yes"),
            Self::Flag(false) => f.write_str("no"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Size(size) => write!(f, "{size}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// The kind and range of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A number from `min` to `max`.
    Count {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Bytes from `min` to `max`, a multiple of `unit`.
    Size {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
        /// Divisor of all values.
        unit: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
}

/// A parameter of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The key in a campaign.
    pub name: &'static str,
    /// The kind and range.
    pub kind: Kind,
    /// The default, spelt as in a campaign; `None`: it stays unset.
    pub default: Option<&'static str>,
    /// True if `--scale` multiplies it: an amount of data or of work, not a shape.
    pub scales: bool,
    /// One line for help.
    pub about: &'static str,
}

impl Kind {
    /// The kind of a block size: a sector to 1 GiB.
    pub const BLOCK: Self = Self::Size { min: 512, max: 1 << 30, unit: 512 };

    /// Returns the kind of bytes from `least` to a pebibyte, a multiple of `least`.
    pub const fn bytes_from(least: u64) -> Self {
        Self::Size { min: least, max: 1 << 50, unit: least }
    }

    /// Returns the kind of a number.
    pub const fn count(min: u64, max: u64) -> Self {
        Self::Count { min, max }
    }
}

impl Parameter {
    /// Declares a parameter without a default.
    pub const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, default: None, scales: false, about }
    }

    /// Adds a default, spelt as in a campaign.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Marks the parameter as an amount of data or of work, which `--scale` multiplies.
    #[must_use]
    pub const fn scaling(self) -> Self {
        Self { scales: true, ..self }
    }

    /// Converts a campaign's value.
    ///
    /// # Errors
    ///
    /// The fault and the allowed values, as a sentence without the parameter's name.
    pub fn check(&self, given: &toml::Value) -> Result<Value, String> {
        match (self.kind, given) {
            (Kind::Flag, toml::Value::Boolean(flag)) => Ok(Value::Flag(*flag)),
            (Kind::Count { min, max }, toml::Value::Integer(number)) => {
                let count = u64::try_from(*number).ok().filter(|count| (min..=max).contains(count));
                count.map(Value::Count).ok_or_else(|| format!("is {number}; take {min} to {max}"))
            }
            (Kind::Size { min, max, unit }, toml::Value::Integer(_) | toml::Value::String(_)) => {
                check_size(given, min, max, unit).map(Value::Size)
            }
            (Kind::Choice(words), toml::Value::String(word)) => {
                if words.contains(&word.as_str()) {
                    return Ok(Value::Word(word.clone()));
                }
                Err(unknown_word(word, words))
            }
            (Kind::Text, toml::Value::String(text)) => Ok(Value::Word(text.clone())),
            (kind, other) => Err(format!("is {other}; {kind} is wanted")),
        }
    }

    /// Returns the checked default.
    fn default_value(&self) -> Option<Value> {
        let text = self.default?;
        let given = match self.kind {
            Kind::Flag => toml::Value::Boolean(text == "true"),
            Kind::Count { .. } => toml::Value::Integer(text.parse().ok()?),
            _ => toml::Value::String(text.to_owned()),
        };
        self.check(&given).ok()
    }
}

/// Returns a hint with the nearest known word, if one is near, to follow the typed one.
pub(crate) fn did_you_mean<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let nearest = braid_stack::suggest(typed, known);
    nearest.map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"))
}

/// Returns a message that lists the words, with the nearest one.
pub(crate) fn unknown_word(word: &str, words: &[&str]) -> String {
    let hint = did_you_mean(word, words.iter().copied());
    format!("is {word:?}{hint}; take one of: {}", words.join(", "))
}

fn check_size(given: &toml::Value, min: u64, max: u64, unit: u64) -> Result<ByteSize, String> {
    let size: ByteSize = given.clone().try_into().map_err(|error: toml::de::Error| {
        format!("is {given}: {}; take a size such as \"64K\"", error.message())
    })?;
    if !(min..=max).contains(&size.0) || !size.0.is_multiple_of(unit) {
        let (min, max, unit) = (ByteSize(min), ByteSize(max), ByteSize(unit));
        return Err(format!("is {size}; take {min} to {max}, a multiple of {unit}"));
    }
    Ok(size)
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("true or false"),
            Self::Count { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Size { .. } => f.write_str("a size such as \"64K\""),
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::Text => f.write_str("a text in quotes"),
        }
    }
}

/// The values of a tool's parameters in a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Settings(pub BTreeMap<String, Value>);

impl Settings {
    /// Returns the defaults of these parameters.
    pub fn defaults(parameters: &[Parameter]) -> Self {
        let values = parameters.iter();
        Self(values.filter_map(|p| Some((p.name.to_owned(), p.default_value()?))).collect())
    }

    /// Sets one value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// Returns a value, if it is set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns a flag; `false` if it is not set.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Flag(true)))
    }

    /// Returns a count, if it is set.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Value::Count(count)) => Some(*count),
            _ => None,
        }
    }

    /// Returns bytes, if they are set.
    pub fn size(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Value::Size(size)) => Some(size.0),
            _ => None,
        }
    }

    /// Returns a word; empty if it is not set.
    pub fn word(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Word(word)) => word,
            _ => "",
        }
    }
}

/// Returns each item with each of the values, the first slowest; the items unchanged if there is no value.
pub(crate) fn vary<T: Clone, V: Clone>(all: &[T], values: &[V], set: impl Fn(&mut T, V)) -> Vec<T> {
    if values.is_empty() {
        return all.to_vec();
    }
    let with = |(one, value): (&T, &V)| {
        let mut one = one.clone();
        set(&mut one, value.clone());
        one
    };
    all.iter().flat_map(|one| values.iter().map(move |value| (one, value))).map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Parameter =
        Parameter::new("block_size", Kind::BLOCK, "bytes of a request").or("4K");
    const OP: Parameter = Parameter::new("op", Kind::Choice(&["read", "write"]), "direction");

    #[test]
    fn values_are_checked_with_what_is_allowed() {
        let size = |text: &str| SIZE.check(&toml::Value::String(text.to_owned()));
        assert_eq!(size("64K"), Ok(Value::Size(ByteSize(65536))));
        assert!(size("100").unwrap_err().contains("multiple of 512"));
        assert!(size("many").is_err());
        let word = OP.check(&toml::Value::String("raed".to_owned())).unwrap_err();
        assert!(word.contains("did you mean \"read\"?"), "{word}");
        assert!(OP.check(&toml::Value::Integer(3)).unwrap_err().contains("one of read, write"));
    }

    #[test]
    fn defaults_are_values_of_their_kind() {
        let settings = Settings::defaults(&[SIZE, OP]);
        assert_eq!(settings.size("block_size"), Some(4096));
        assert_eq!(settings.get("op"), None);
    }
}
