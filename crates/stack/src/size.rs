//! Sizes, rates and latencies as text: `512K`, `30MB/s`, `1.5ms`.
//!
//! Invariants:
//! - `K`, `M`, `G`, `T`, `P` and `KiB` … `PiB` are powers of 1024; `KB` … `PB` are powers of 1000.
//!   Case does not matter.
//! - `Display` is canonical and exact, and parses back to the same value. `{:#}` is for people: it
//!   rounds to two decimals and names its unit.
//!
//! Deliberately absent: bits (`Mbit/s`), negative values, rounding on input.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantity::{Quantity, QuantityVisitor, Unit, canonical, fmt_human, parse_quantity};

pub use crate::quantity::QuantityError;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const PIB: u64 = 1 << 50;

/// Every spelling of a number of bytes.
const BYTE_UNITS: &[Unit] = &[
    ("B", 1),
    ("K", KIB),
    ("M", MIB),
    ("G", GIB),
    ("T", TIB),
    ("P", PIB),
    ("KiB", KIB),
    ("MiB", MIB),
    ("GiB", GIB),
    ("TiB", TIB),
    ("PiB", PIB),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

/// The units from which `Display` chooses; binary units come first, so that they win a tie. `1KB` beside `1K`
/// would be misread, so decimal units begin at `MB`.
const CANONICAL_BYTE_UNITS: &[Unit] = &[
    ("K", KIB),
    ("M", MIB),
    ("G", GIB),
    ("T", TIB),
    ("P", PIB),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];

const HUMAN_BYTE_UNITS: &[Unit] =
    &[("PiB", PIB), ("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)];

const BYTES: Quantity = Quantity {
    units: BYTE_UNITS,
    known: "K, M, G, T, P (1024), KiB … PiB (1024) or KB … PB (1000)",
    base: "bytes",
    bare: true,
};

const LATENCY_UNITS: &[Unit] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

const CANONICAL_LATENCY_UNITS: &[Unit] =
    &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

const LATENCIES: Quantity =
    Quantity { units: LATENCY_UNITS, known: "ns, us, ms or s", base: "nanoseconds", bare: false };

/// A number of bytes, 0 to 2^64 − 1.
///
/// ```
/// use braid_stack::ByteSize;
///
/// let size: ByteSize = "1.5G".parse().unwrap();
/// assert_eq!(size, ByteSize(1_610_612_736));
/// assert_eq!(size.to_string(), "1536M");       // canonical, parses back
/// assert_eq!(format!("{size:#}"), "1.5 GiB");  // for people
/// assert_eq!("64KB".parse(), Ok(ByteSize(64_000)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(
    /// The number of bytes.
    pub u64,
);

impl ByteSize {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// `n` × 1024 bytes. Panics on overflow, so it is meant for constants.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n.checked_mul(KIB).expect("the size fits in 64 bits"))
    }

    /// `n` × 1024² bytes. Panics on overflow, so it is meant for constants.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n.checked_mul(MIB).expect("the size fits in 64 bits"))
    }

    /// `n` × 1024³ bytes. Panics on overflow, so it is meant for constants.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n.checked_mul(GIB).expect("the size fits in 64 bits"))
    }
}

impl FromStr for ByteSize {
    type Err = QuantityError;

    /// Reads `4096`, `64K`, `64KiB`, `64KB`, `1.5G`; a bare number is bytes.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse_quantity(text, &BYTES).map(Self)
    }
}

impl fmt::Display for ByteSize {
    /// `{}` is canonical (`64K`, `1536M`, `4097`), `{:#}` is for people (`1.5 GiB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return fmt_human(f, self.0, HUMAN_BYTE_UNITS, "");
        }
        let (number, unit) = canonical(self.0, CANONICAL_BYTE_UNITS);
        f.pad(&format!("{number}{unit}"))
    }
}

/// A data rate in bytes a second, 0 to 2^64 − 1.
///
/// ```
/// use braid_stack::Rate;
///
/// assert_eq!("30M/s".parse(), Ok(Rate(31_457_280)));
/// assert_eq!("30MB/s".parse(), Ok(Rate(30_000_000)));
/// assert_eq!(Rate(30_000_000).to_string(), "30MB/s");
/// assert_eq!(format!("{:#}", Rate(30_000_000)), "28.61 MiB/s");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(
    /// Bytes a second.
    pub u64,
);

impl Rate {
    /// The number of bytes a second.
    #[must_use]
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }
}

impl FromStr for Rate {
    type Err = QuantityError;

    /// Reads a size followed by `/s`; without `/s` it is refused, because it would be a size.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        match text.strip_suffix("/s") {
            Some(size) => parse_quantity(size, &BYTES).map(Self),
            None => Err(QuantityError::MissingUnit {
                text: text.to_owned(),
                known: "`/s`, as in 30M/s or 30MB/s",
            }),
        }
    }
}

impl fmt::Display for Rate {
    /// `{}` is canonical (`30M/s`), `{:#}` is for people (`1.5 GiB/s`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return fmt_human(f, self.0, HUMAN_BYTE_UNITS, "/s");
        }
        let (number, unit) = canonical(self.0, CANONICAL_BYTE_UNITS);
        f.pad(&format!("{number}{unit}/s"))
    }
}

/// A span of time in whole nanoseconds, 0 to 2^64 − 1 (some 584 years).
///
/// ```
/// use braid_stack::Latency;
///
/// let latency: Latency = "1.5ms".parse().unwrap();
/// assert_eq!(latency, Latency(1_500_000));
/// assert_eq!(latency.to_string(), "1500us");
/// assert_eq!(format!("{latency:#}"), "1.5 ms");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Latency(
    /// Nanoseconds.
    pub u64,
);

impl Latency {
    /// The number of nanoseconds.
    #[must_use]
    pub const fn nanoseconds(self) -> u64 {
        self.0
    }

    /// The same span as the standard library's type.
    #[must_use]
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl FromStr for Latency {
    type Err = QuantityError;

    /// Reads `250ns`, `100us`, `100µs`, `1.5ms`, `2s`, `0`; any other number needs a unit.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse_quantity(text, &LATENCIES).map(Self)
    }
}

impl fmt::Display for Latency {
    /// `{}` is canonical (`1500us`), `{:#}` is for people (`1.5 ms`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return fmt_human(f, self.0, CANONICAL_LATENCY_UNITS, "");
        }
        // A whole number of nanoseconds always has a unit, so start from the unit, not from none.
        let (number, unit) = match canonical(self.0, CANONICAL_LATENCY_UNITS) {
            (0, _) => (0, "s"),
            (number, "") => (number, "ns"),
            exact => exact,
        };
        f.pad(&format!("{number}{unit}"))
    }
}

/// Serialises as the canonical string; reads a string or, with `integer`, whole base units.
macro_rules! serde_as_text {
    ($type:ident, $expecting:literal, $from_integer:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor {
                    expecting: $expecting,
                    from_integer: $from_integer,
                })
            }
        }
    };
}

serde_as_text!(ByteSize, "a size such as 64K or 1.5G", Some(ByteSize));
serde_as_text!(Rate, "a rate such as 30M/s", Some(Rate));
// A bare number of nanoseconds would too easily be read as microseconds.
serde_as_text!(Latency, "a latency such as 100us or 1.5ms", None);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_parse() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64K", 65536),
            ("64k", 65536),
            ("64KiB", 65536),
            ("64KB", 64000),
            ("64kB", 64000),
            ("512B", 512),
            ("1M", 1 << 20),
            ("2G", 2 << 30),
            ("1T", 1 << 40),
            ("1P", 1 << 50),
            ("1.5G", 3 << 29),
            ("1.5 GiB", 3 << 29),
            ("0.5K", 512),
            ("1.0", 1),
            ("1.1KB", 1100),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn sizes_are_refused_with_a_reason() {
        let known = BYTES.known;
        for (text, reason) in [
            ("", "it is empty".to_owned()),
            ("  ", "it is empty".to_owned()),
            ("K", "`K` does not begin with a number".to_owned()),
            ("-1", "`-1` does not begin with a number".to_owned()),
            (".5K", "`.5K` does not begin with a number".to_owned()),
            ("1.K", "`1.K` does not begin with a number".to_owned()),
            ("1.2.3K", "`1.2.3K` does not begin with a number".to_owned()),
            ("64X", format!("`X` is not a unit here; use {known}")),
            ("64K/s", format!("`K/s` is not a unit here; use {known}")),
            ("1.5", "`1.5` is not a whole number of bytes".to_owned()),
            ("1.0001K", "`1.0001K` is not a whole number of bytes".to_owned()),
            ("16384P", "`16384P` is larger than 18446744073709551615 bytes".to_owned()),
            (
                "99999999999999999999999",
                "`99999999999999999999999` is larger than 18446744073709551615 bytes".to_owned(),
            ),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap_err().to_string(), reason, "{text}");
        }
    }

    #[test]
    fn sizes_print() {
        for (bytes, exact, human) in [
            (0, "0", "0 B"),
            (512, "512", "512 B"),
            (4096, "4K", "4 KiB"),
            (4097, "4097", "4 KiB"),
            (64000, "64000", "62.5 KiB"),
            (65536, "64K", "64 KiB"),
            (1_024_000, "1000K", "1000 KiB"),
            (3 << 29, "1536M", "1.5 GiB"),
            (1_000_000_000_000, "1TB", "931.32 GiB"),
            (u64::MAX, "18446744073709551615", "16384 PiB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), exact);
            assert_eq!(format!("{:#}", ByteSize(bytes)), human);
        }
        assert_eq!(format!("{:>6}|{:<6}|", ByteSize(4096), ByteSize(4096)), "    4K|4K    |");
    }

    #[test]
    fn rates_and_latencies() {
        assert_eq!("1G/s".parse(), Ok(Rate(1 << 30)));
        assert_eq!(Rate(1 << 30).to_string(), "1G/s");
        assert_eq!(
            "30M".parse::<Rate>().unwrap_err().to_string(),
            "`30M` has no unit; add `/s`, as in 30M/s or 30MB/s"
        );
        for (text, nanoseconds, exact, human) in [
            ("250ns", 250, "250ns", "250 ns"),
            ("100us", 100_000, "100us", "100 us"),
            ("100µs", 100_000, "100us", "100 us"),
            ("1.5ms", 1_500_000, "1500us", "1.5 ms"),
            ("2s", 2_000_000_000, "2s", "2 s"),
            ("0", 0, "0s", "0 ns"),
        ] {
            assert_eq!(text.parse(), Ok(Latency(nanoseconds)), "{text}");
            assert_eq!(Latency(nanoseconds).to_string(), exact);
            assert_eq!(format!("{:#}", Latency(nanoseconds)), human);
        }
        assert_eq!(
            "100".parse::<Latency>().unwrap_err().to_string(),
            "`100` has no unit; add ns, us, ms or s"
        );
    }

    #[test]
    fn serde_writes_text_and_reads_numbers_too() {
        assert_eq!(serde_json::to_string(&ByteSize(65536)).unwrap(), "\"64K\"");
        assert_eq!(serde_json::from_str::<ByteSize>("\"64K\"").unwrap(), ByteSize(65536));
        assert_eq!(serde_json::from_str::<ByteSize>("65536").unwrap(), ByteSize(65536));
        assert_eq!(serde_json::from_str::<Rate>("\"30M/s\"").unwrap(), Rate(30 << 20));
        assert_eq!(serde_json::from_str::<Latency>("\"2ms\"").unwrap(), Latency(2_000_000));
        assert!(serde_json::from_str::<ByteSize>("-1").is_err());
        assert!(serde_json::from_str::<Latency>("5").is_err());
    }

    proptest! {
        #[test]
        fn display_round_trips(value: u64, shift in 0_u32..64) {
            let value = value >> shift << (shift / 2);
            prop_assert_eq!(ByteSize(value).to_string().parse(), Ok(ByteSize(value)));
            prop_assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
            prop_assert_eq!(Latency(value).to_string().parse(), Ok(Latency(value)));
        }

        #[test]
        fn no_input_panics(text in "\\PC{0,24}|[0-9.]{0,50}[KMGTPiBus/ ]{0,4}") {
            let _ = text.parse::<ByteSize>();
            let _ = text.parse::<Rate>();
            let _ = text.parse::<Latency>();
        }
    }
}
