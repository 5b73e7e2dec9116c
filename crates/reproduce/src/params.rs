//! A small table of named values: the conditions of a measurement, the facts of a device.

use std::collections::BTreeMap;

/// A value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// A whole number.
    Integer(i64),
    /// Any other number; finite.
    Float(f64),
    /// A text.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

/// Named values, in the order of their names. A table in it is flat: `advertised.max_mb_per_s`; an
/// element of a list is `name.0`, `name.1`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params(BTreeMap<String, Param>);

impl Params {
    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&Param> {
        self.0.get(name)
    }

    /// A whole number of at least 0.
    pub fn count(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Param::Integer(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// A number of either kind.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Param::Integer(value) => Some(*value as f64),
            Param::Float(value) => Some(*value),
            Param::Text(_) | Param::Flag(_) => None,
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Param::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A yes or a no.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Param::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Param)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The bytes that are read or written in all: `size`, or `bs` times `count`.
    pub fn bytes(&self) -> Option<f64> {
        let product = || Some(self.number("bs")? * self.number("count")?);
        self.number("size").or_else(product)
    }
}

impl FromIterator<(String, Param)> for Params {
    fn from_iter<I: IntoIterator<Item = (String, Param)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}
