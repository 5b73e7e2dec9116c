//! What an expression has: numbers, texts, and several of them.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

/// A value; cheap to clone.
#[derive(Debug, Clone)]
pub enum Value {
    /// `True`, `False`, which also are the numbers 1 and 0.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(Rc<str>),
    /// Several values.
    Items(Items, Rc<[Value]>),
}

/// What kind of several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Items {
    /// In parentheses.
    Tuple,
    /// In square brackets.
    List,
    /// Each once, without an order.
    Set,
    /// Of `range`.
    Range,
    /// Of a generator, `zip` or `enumerate`: can only be gone through.
    Stream,
}

/// A number as arithmetic takes it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(value) => Self::Integer(value),
            Number::Float(value) => Self::Float(value),
        }
    }
}

impl Value {
    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Self::Flag(flag) => Some(Number::Integer(i64::from(*flag))),
            Self::Integer(value) => Some(Number::Integer(*value)),
            Self::Float(value) => Some(Number::Float(*value)),
            Self::Text(_) | Self::Items(..) => None,
        }
    }

    /// Whether it counts as true.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Flag(flag) => *flag,
            Self::Integer(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Items(Items::Stream, _) => true,
            Self::Items(_, items) => !items.is_empty(),
        }
    }

    /// What kind of value it is, as errors say it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Flag(_) => "True or False",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Items(Items::Tuple, _) => "a tuple",
            Self::Items(Items::List, _) => "a list",
            Self::Items(Items::Set, _) => "a set",
            Self::Items(Items::Range, _) => "a range",
            Self::Items(Items::Stream, _) => "a generator",
        }
    }

    /// Whether it has a text that says what it is: what is gone through has none, nor has a range.
    pub(super) fn has_text(&self) -> bool {
        match self {
            Self::Items(Items::Stream | Items::Range, _) => false,
            Self::Items(_, items) => items.iter().all(Self::has_text),
            _ => true,
        }
    }

    /// Whether two values are equal; those of different kinds are not.
    pub(super) fn equals(&self, other: &Self) -> bool {
        if let (Some(left), Some(right)) = (self.number(), other.number()) {
            return order_numbers(left, right) == Some(Ordering::Equal);
        }
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => left == right,
            (Self::Items(kind, left), Self::Items(other, right)) => match kind {
                _ if kind != other || *kind == Items::Stream => false,
                Items::Set => {
                    left.len() == right.len()
                        && left.iter().all(|one| right.iter().any(|other| one.equals(other)))
                }
                _ => {
                    left.len() == right.len()
                        && left.iter().zip(&**right).all(|(one, other)| one.equals(other))
                }
            },
            _ => false,
        }
    }

    /// The order of two numbers, texts, tuples or lists; `Err` of what has none.
    pub(super) fn order(&self, other: &Self) -> Result<Option<Ordering>, NoOrder> {
        if let (Some(left), Some(right)) = (self.number(), other.number()) {
            return Ok(order_numbers(left, right));
        }
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => Ok(Some(left.cmp(right))),
            (Self::Items(kind, left), Self::Items(other, right))
                if kind == other && matches!(kind, Items::Tuple | Items::List) =>
            {
                match left.iter().zip(&**right).find(|(one, other)| !one.equals(other)) {
                    Some((one, other)) => one.order(other),
                    None => Ok(Some(left.len().cmp(&right.len()))),
                }
            }
            _ => Err(NoOrder),
        }
    }

    /// How many values it is made of, all levels together, up to `most`: what a comparison may take.
    pub(super) fn size(&self, most: u64) -> u64 {
        match self {
            Self::Flag(_) | Self::Integer(_) | Self::Float(_) => 1,
            Self::Text(text) => 1 + text.len() as u64 / 64,
            Self::Items(_, items) => items
                .iter()
                .fold(1, |sum, item| if sum >= most { sum } else { sum + item.size(most - sum) }),
        }
    }
}

/// Two values of which neither is the smaller.
#[derive(Debug)]
pub(super) struct NoOrder;

/// `None` if one is not a number. Whole numbers are compared with others exactly.
fn order_numbers(left: Number, right: Number) -> Option<Ordering> {
    match (left, right) {
        (Number::Integer(left), Number::Integer(right)) => Some(left.cmp(&right)),
        (Number::Integer(whole), Number::Float(other)) => order_mixed(whole, other),
        (Number::Float(other), Number::Integer(whole)) => {
            order_mixed(whole, other).map(Ordering::reverse)
        }
        (Number::Float(left), Number::Float(right)) => left.partial_cmp(&right),
    }
}

fn order_mixed(whole: i64, other: f64) -> Option<Ordering> {
    // What rounds to the same float may be either side of it.
    match (whole as f64).partial_cmp(&other)? {
        Ordering::Equal => {
            // A float is cut to the range of whole numbers, and equal floats are inside of it or at its end.
            Some(i128::from(whole).cmp(&(other as i128)))
        }
        order => Some(order),
    }
}

/// As Python's `repr`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.write_str("True"),
            Self::Flag(false) => f.write_str("False"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&float_text(*value)),
            Self::Text(text) => {
                let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
                write!(f, "{quote}")?;
                for c in text.chars() {
                    match c {
                        '\\' => f.write_str("\\\\")?,
                        '\n' => f.write_str("\\n")?,
                        '\t' => f.write_str("\\t")?,
                        c if c == quote => write!(f, "\\{c}")?,
                        c => write!(f, "{c}")?,
                    }
                }
                write!(f, "{quote}")
            }
            Self::Items(kind, items) => {
                let (open, close) = match kind {
                    Items::Tuple => ("(", if items.len() == 1 { ",)" } else { ")" }),
                    Items::Set if items.is_empty() => return f.write_str("set()"),
                    Items::Set => ("{", "}"),
                    Items::List | Items::Range | Items::Stream => ("[", "]"),
                };
                f.write_str(open)?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str(close)
            }
        }
    }
}

/// The shortest digits that are read as the same number, with an exponent where Python has one.
pub(super) fn float_text(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".into()
        } else if value > 0.0 {
            "inf".into()
        } else {
            "-inf".into()
        };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}
