//! Lengths of time in a configuration, in whole seconds, and points in time for people.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// Seconds, written `30s`, `5m`, `2h`, `1d`; `0` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub(crate) u64);

const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl Span {
    fn parse(text: &str) -> Option<Span> {
        if text.trim() == "0" {
            return Some(Span(0));
        }
        let (number, worth) = UNITS
            .iter()
            .find_map(|(unit, worth)| Some((text.trim().strip_suffix(*unit)?, *worth)))?;
        // `parse` takes a sign, which has no meaning here.
        let number = number.trim_end();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = is_number.then(|| number.parse().ok())??;
        number.checked_mul(worth).map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits =
            UNITS.iter().find(|(_, worth)| self.0 >= *worth && self.0.is_multiple_of(*worth));
        match fits {
            Some((unit, worth)) => write!(f, "{}{unit}", self.0 / worth),
            None => write!(f, "0"),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let text = String::deserialize(deserializer)?;
        Span::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "{text:?} is no length of time: a whole number with s, m, h or d is wanted, such as \"10m\""
            ))
        })
    }
}

/// Seconds since 1970 as `2026-11-26T00:10:00Z`.
pub(crate) fn time(at: u64) -> String {
    let stamp = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
    stamp.map_or_else(|| format!("{at} s after 1970"), |stamp| stamp.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_and_printed() {
        for (text, seconds) in [("5s", 5), ("2m", 120), ("24h", 86_400), ("1d", 86_400), ("0", 0)] {
            assert_eq!(Span::parse(text), Some(Span(seconds)), "{text}");
            assert_eq!(Span::parse(&Span(seconds).to_string()), Some(Span(seconds)));
        }
        for text in ["", "5", "s", "-1s", "+1s", "1.5m", "1w", "m5", "99999999999999999999d"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert!(time(u64::MAX).contains("after 1970"));
    }
}
