//! Exact decimal numbers with a unit: the arithmetic that sizes, rates and latencies share.
//!
//! Invariants:
//! - A value is a whole number of base units (bytes, bytes a second, nanoseconds). A fraction is
//!   accepted only when it is exact: `1.5K` is 1536, `1.0001K` is refused, never rounded.
//! - What [`canonical`] prints, [`parse_quantity`] reads back as the same number.
//!
//! Deliberately absent: floating point, signs, exponents, thousands separators.

use std::fmt;

use serde::de;

/// One spelling of a unit and what it is worth in base units.
pub(crate) type Unit = (&'static str, u64);

/// Why a text is not a size, a rate or a latency.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// It does not begin with a decimal number such as `64` or `1.5`.
    #[error("`{text}` does not begin with a number")]
    NotANumber {
        /// The text as given.
        text: String,
    },
    /// The number is followed by something that is no unit of this quantity.
    #[error("`{unit}` is not a unit here; use {known}")]
    UnknownUnit {
        /// The text after the number.
        unit: String,
        /// The units that would have been accepted.
        known: &'static str,
    },
    /// A unit is needed, because a bare number would be ambiguous.
    #[error("`{text}` has no unit; add {known}")]
    MissingUnit {
        /// The text as given.
        text: String,
        /// The units that would have been accepted.
        known: &'static str,
    },
    /// The fraction does not come out as a whole number of base units.
    #[error("`{text}` is not a whole number of {base}")]
    NotWhole {
        /// The text as given.
        text: String,
        /// The base unit, in the plural: `bytes`, `nanoseconds`.
        base: &'static str,
    },
    /// The value does not fit in 64 bits.
    #[error("`{text}` is larger than {} {base}", u64::MAX)]
    TooLarge {
        /// The text as given.
        text: String,
        /// The base unit, in the plural.
        base: &'static str,
    },
}

/// The accepted spellings of one quantity.
pub(crate) struct Quantity {
    /// Spellings, compared without regard to ASCII case.
    pub(crate) units: &'static [Unit],
    /// The list of units for an error message.
    pub(crate) known: &'static str,
    /// The base unit, in the plural, for an error message.
    pub(crate) base: &'static str,
    /// True if a number without unit counts base units; zero never needs a unit.
    pub(crate) bare: bool,
}

/// Reads `NUMBER[.FRACTION][ ][UNIT]` exactly.
///
/// # Errors
/// See [`QuantityError`]; the number is never rounded or clamped.
pub(crate) fn parse_quantity(source: &str, quantity: &Quantity) -> Result<u64, QuantityError> {
    let text = source.trim();
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let (number, unit) = split_number(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.contains('.') {
        return Err(QuantityError::NotANumber { text: text.to_owned() });
    }
    let multiplier = find_multiplier(text, number, unit, quantity)?;
    scale(whole, fraction, multiplier).map_err(|problem| problem.with_text(text, quantity.base))
}

/// Splits `1.5 GiB` into `1.5` and `GiB`.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn find_multiplier(
    text: &str,
    number: &str,
    unit: &str,
    quantity: &Quantity,
) -> Result<u64, QuantityError> {
    if unit.is_empty() {
        let is_zero = number.bytes().all(|byte| byte == b'0' || byte == b'.');
        return if quantity.bare || is_zero {
            Ok(1)
        } else {
            Err(QuantityError::MissingUnit { text: text.to_owned(), known: quantity.known })
        };
    }
    quantity
        .units
        .iter()
        .find(|(spelling, _)| spelling.eq_ignore_ascii_case(unit))
        .map(|(_, multiplier)| *multiplier)
        .ok_or_else(|| QuantityError::UnknownUnit { unit: unit.to_owned(), known: quantity.known })
}

/// The two ways in which an exact multiplication can fail, before the text is attached.
enum ScaleProblem {
    NotWhole,
    TooLarge,
}

impl ScaleProblem {
    fn with_text(self, text: &str, base: &'static str) -> QuantityError {
        let text = text.to_owned();
        match self {
            ScaleProblem::NotWhole => QuantityError::NotWhole { text, base },
            ScaleProblem::TooLarge => QuantityError::TooLarge { text, base },
        }
    }
}

/// `whole.fraction × multiplier`, exactly.
///
/// 20 digits of fraction are enough for anything that [`canonical`] or a person writes, and keep
/// `fraction × multiplier` below 10^20 × 2^50 ≈ 1.1 × 10^35, which fits in 128 bits.
fn scale(whole: &str, fraction: &str, multiplier: u64) -> Result<u64, ScaleProblem> {
    let whole: u64 = whole.parse().map_err(|_| ScaleProblem::TooLarge)?;
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 20 {
        return Err(ScaleProblem::NotWhole);
    }
    let numerator: u128 = match fraction {
        "" => 0,
        digits => digits.parse().map_err(|_| ScaleProblem::NotWhole)?,
    };
    let denominator = 10_u128.pow(fraction.len() as u32);
    let scaled = numerator * u128::from(multiplier);
    if !scaled.is_multiple_of(denominator) {
        return Err(ScaleProblem::NotWhole);
    }
    let total = u128::from(whole) * u128::from(multiplier) + scaled / denominator;
    u64::try_from(total).map_err(|_| ScaleProblem::TooLarge)
}

/// The shortest exact form: the unit that leaves the smallest whole number, the earlier one of
/// `units` on a tie. 1536 is `1536` and 2048 is `2K`;
/// 30 000 000 is `30MB`, because 29296.875 K is not whole.
pub(crate) fn canonical(value: u64, units: &[Unit]) -> (u64, &'static str) {
    let mut best = (value, "");
    if value == 0 {
        return best;
    }
    for &(name, multiplier) in units {
        if value.is_multiple_of(multiplier) && value / multiplier < best.0 {
            best = (value / multiplier, name);
        }
    }
    best
}

/// Prints a value for people with at most two decimals in the largest unit that it reaches:
/// `1.5 GiB`, `4 KiB`, `100 us`. `units` are in descending order and end with the base unit.
pub(crate) fn fmt_human(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    units: &[Unit],
    suffix: &str,
) -> fmt::Result {
    let (name, multiplier) = units
        .iter()
        .find(|(_, multiplier)| value >= *multiplier)
        .or(units.last())
        .copied()
        .unwrap_or(("", 1));
    let hundredths =
        (u128::from(value) * 100 + u128::from(multiplier) / 2) / u128::from(multiplier);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match rest {
        0 => write!(f, "{whole} {name}{suffix}"),
        rest if rest % 10 == 0 => write!(f, "{whole}.{} {name}{suffix}", rest / 10),
        rest => write!(f, "{whole}.{rest:02} {name}{suffix}"),
    }
}

/// Reads a quantity from a string or, where `from_integer` allows it, from a whole number of base
/// units.
pub(crate) struct QuantityVisitor<T> {
    /// The expected text, for an error message.
    pub(crate) expecting: &'static str,
    /// The conversion of a whole number of base units; `None` if a bare number is refused.
    pub(crate) from_integer: Option<fn(u64) -> T>,
}

impl<T> de::Visitor<'_> for QuantityVisitor<T>
where
    T: std::str::FromStr<Err = QuantityError>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse()
            .map_err(|error| E::custom(format_args!("`{text}` is not {}: {error}", self.expecting)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        match self.from_integer {
            Some(from_integer) => Ok(from_integer(value)),
            None => Err(E::invalid_type(de::Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
        }
    }
}
