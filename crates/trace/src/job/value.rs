//! A part of a line of a job file, and what it may be.

use super::{Direction, Distribution, Extent};
use crate::SyntaxError;
use crate::words::decimal;

/// A part of a line, without the blanks around it.
pub(super) struct Value<'a> {
    pub(super) text: &'a str,
    pub(super) line: u64,
    /// In bytes, from 1 on.
    pub(super) column: usize,
    whole: &'a str,
}

/// Engines that keep one request under way, and those that keep as many as they are told.
const ONE_BY_ONE: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
const SEVERAL: [&str; 6] = ["libaio", "io_uring", "posixaio", "nbd", "windowsaio", "sg"];

const NS_OF: [(&str, u64); 12] = [
    ("", 1_000_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("us", 1000),
    ("usec", 1000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    // What fio reads, too.
    ("min", 60_000_000_000),
    ("hour", 3_600_000_000_000),
];

impl<'a> Value<'a> {
    /// The bytes of a line from `start` up to `end`, both at borders of characters.
    pub(super) fn new(line: u64, whole: &'a str, start: usize, end: usize) -> Value<'a> {
        let part = &whole[start..end];
        let column = start + (part.len() - part.trim_start().len()) + 1;
        Value { text: part.trim(), line, column, whole }
    }

    /// The text before the first `=`, and the text after it.
    pub(super) fn split(&self) -> (Value<'a>, Value<'a>) {
        let len = self.whole.len();
        let equals = self.whole.find('=').unwrap_or(len);
        let behind = (equals + 1).min(len);
        (
            Value::new(self.line, self.whole, 0, equals),
            Value::new(self.line, self.whole, behind, len),
        )
    }

    pub(super) fn error(&self, expected: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.line, self.column, self.text.as_bytes(), expected)
    }

    /// True if a key has no value.
    pub(super) fn is_absent(&self) -> bool {
        !self.whole.contains('=')
    }

    pub(super) fn flag(&self) -> Result<bool, SyntaxError> {
        match self.text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err(self.error("0 or 1")),
        }
    }

    pub(super) fn count(&self, least: u32) -> Result<u32, SyntaxError> {
        let count = decimal(self.text.as_bytes()).and_then(|count| u32::try_from(count).ok());
        let count = count.filter(|count| *count >= least);
        count.ok_or_else(|| self.error(format!("a number from {least} to 4294967295")))
    }

    pub(super) fn percent(&self) -> Result<u8, SyntaxError> {
        let percent = decimal(self.text.as_bytes()).filter(|percent| *percent <= 100);
        let percent = percent.and_then(|percent| u8::try_from(percent).ok());
        percent.ok_or_else(|| self.error("a number from 0 to 100"))
    }

    /// Bytes, at least 1.
    pub(super) fn size(&self) -> Result<u64, SyntaxError> {
        let size = bytes(self.text).filter(|size| *size > 0);
        size.ok_or_else(|| self.error("one size of at least 1 byte, such as 64k"))
    }

    pub(super) fn bytes(&self) -> Result<u64, SyntaxError> {
        bytes(self.text).ok_or_else(|| self.error("a number of bytes, such as 64k"))
    }

    pub(super) fn extent(&self) -> Result<Extent, SyntaxError> {
        let Some(percent) = self.text.strip_suffix('%') else {
            return self.size().map(Extent::Bytes);
        };
        let percent = decimal(percent.as_bytes()).filter(|percent| (1..=100).contains(percent));
        let percent = percent.and_then(|percent| u8::try_from(percent).ok());
        percent.map(Extent::Percent).ok_or_else(|| self.error("a share from 1% to 100%"))
    }

    pub(super) fn time_ns(&self) -> Result<u64, SyntaxError> {
        let (number, unit) = number_and_unit(self.text);
        let ns = NS_OF.iter().find(|(name, _)| unit == *name).map(|(_, ns)| *ns);
        let time = decimal(number.as_bytes()).zip(ns).and_then(|(time, ns)| time.checked_mul(ns));
        time.ok_or_else(|| self.error("a time, such as 30s, 500ms or 2m"))
    }

    pub(super) fn pattern(&self) -> Result<(bool, Direction), SyntaxError> {
        Ok(match self.text {
            "read" => (false, Direction::Read),
            "write" => (false, Direction::Write),
            "rw" | "readwrite" => (false, Direction::Mixed),
            "randread" => (true, Direction::Read),
            "randwrite" => (true, Direction::Write),
            "randrw" => (true, Direction::Mixed),
            _ => return Err(self.error("read, write, rw, randread, randwrite or randrw")),
        })
    }

    pub(super) fn distribution(&self) -> Result<Distribution, SyntaxError> {
        if self.text == "random" {
            return Ok(Distribution::Uniform);
        }
        let theta = self.text.strip_prefix("zipf:").and_then(|theta| theta.parse::<f64>().ok());
        match theta.filter(|theta| theta.is_finite() && *theta > 0.0 && *theta != 1.0) {
            Some(theta) => Ok(Distribution::Zipf { theta }),
            None => Err(self.error("random, or zipf:THETA with a THETA above 0 that is not 1")),
        }
    }

    /// True if it keeps several requests in flight, and its name.
    pub(super) fn engine(&self) -> Result<(bool, String), SyntaxError> {
        let several = SEVERAL.contains(&self.text);
        if several || ONE_BY_ONE.contains(&self.text) {
            return Ok((several, self.text.to_owned()));
        }
        let known = [ONE_BY_ONE, SEVERAL].concat().join(", ");
        Err(self.error(format!("an engine that is known: {known}")))
    }
}

/// A number and what follows it, in small letters.
fn number_and_unit(text: &str) -> (&str, String) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (&text[..digits], text[digits..].to_ascii_lowercase())
}

/// As fio reads it: `k` and `kb` are 1024, `ki` and `kib` 1000, for every letter.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text);
    let unit = unit.strip_suffix('b').unwrap_or(&unit);
    let (letter, base) = match unit.strip_suffix('i') {
        Some(letter) => (letter, 1000u64),
        None => (unit, 1024),
    };
    let power = match letter {
        "" if base == 1024 => 0,
        "" => return None,
        _ => {
            1 + u32::try_from(["k", "m", "g", "t", "p"].iter().position(|one| *one == letter)?)
                .ok()?
        }
    };
    decimal(number.as_bytes())?.checked_mul(base.checked_pow(power)?)
}
