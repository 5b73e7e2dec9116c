//! `model(PROFILE, size=…, bus=…, …)`: a member that behaves like a modelled device, in wall time.
//!
//! A profile is a name, or a file's path: what has a `/` in it or ends in `.toml` is a path.
//!
//! Deliberately absent: the profiles themselves. Whether a name or a file is one is checked where they are.

use std::fmt;
use std::path::Path;

use super::Level;
use super::args::Args;
use crate::error::Fault;
use crate::expr::{Word, fmt_word};
use crate::problem::Problem;
use crate::size::{ByteSize, Latency, Rate};

/// A member that behaves like a modelled device, in wall time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The name of the profile, such as `usb-flash`: letters, digits, `.`, `_`, `-`, `:`. Or the path of a
    /// file that is one, as written: it has a `/` or ends in `.toml`, and no NUL.
    pub profile: String,
    /// Bytes: a multiple of 512, not zero.
    pub size: ByteSize,
    /// The bus that it shares with other models of the same bus, such as `usb2:0`; spelt as a
    /// profile's name.
    pub bus: Option<String>,
    /// The values that replace constants of the profile.
    pub overrides: ModelOverrides,
}

/// Values that replace constants of a profile; `None` keeps the profile's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelOverrides {
    /// Rate of long sequential reads; not zero.
    pub read: Option<Rate>,
    /// Rate of long sequential writes; not zero.
    pub write: Option<Rate>,
    /// Time from request to first byte.
    pub latency: Option<Latency>,
    /// Rate of the bus; not zero.
    pub bus_rate: Option<Rate>,
}

impl Model {
    /// The path of the profile's file; none if it is one of braid's own, by name.
    #[must_use]
    pub fn profile_file(&self) -> Option<&Path> {
        is_path(&self.profile).then(|| Path::new(&self.profile))
    }
}

/// True if a profile is a file's path.
fn is_path(profile: &str) -> bool {
    profile.contains('/') || profile.ends_with(".toml")
}

impl Level for Model {
    const NAME: &'static str = "model";
    const USAGE: &'static str = "model(PROFILE|FILE.toml, size=SIZE, bus=NAME, read=RATE, write=RATE, latency=TIME, bus_rate=RATE)";
    const PARAMETERS: &'static [&'static str] =
        &["size", "bus", "read", "write", "latency", "bus_rate"];

    fn check(args: &Args<'_>) -> Result<Self, Fault> {
        let profile = check_profile(args.only("profile", "a profile: a name, or a file's path")?)?;
        let bus = args.word("bus")?.map(|word| check_name("bus", word)).transpose()?;
        Ok(Self {
            profile,
            size: args.required_size("size", "a size")?,
            bus,
            overrides: ModelOverrides {
                read: args.rate("read")?,
                write: args.rate("write")?,
                latency: args.quantity("latency")?,
                bus_rate: args.rate("bus_rate")?,
            },
        })
    }
}

fn check_profile(word: &Word) -> Result<String, Fault> {
    match is_path(&word.text) {
        true if word.text.contains('\0') => Err(Fault::new(Problem::ImpossiblePath, word.span)),
        true => Ok(word.text.clone()),
        false => check_name("profile", word),
    }
}

fn check_name(what: &'static str, word: &Word) -> Result<String, Fault> {
    let is_name = !word.text.is_empty()
        && word.text.chars().all(|c| c.is_ascii_alphanumeric() || "._-:".contains(c));
    if !is_name {
        return Err(Fault::new(Problem::BadName { what, text: word.text.clone() }, word.span));
    }
    Ok(word.text.clone())
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("model(")?;
        fmt_word(f, &self.profile)?;
        write!(f, ", size={}", self.size)?;
        if let Some(bus) = &self.bus {
            f.write_str(", bus=")?;
            fmt_word(f, bus)?;
        }
        let ModelOverrides { read, write, latency, bus_rate } = self.overrides;
        if let Some(read) = read {
            write!(f, ", read={read}")?;
        }
        if let Some(write) = write {
            write!(f, ", write={write}")?;
        }
        if let Some(latency) = latency {
            write!(f, ", latency={latency}")?;
        }
        if let Some(bus_rate) = bus_rate {
            write!(f, ", bus_rate={bus_rate}")?;
        }
        f.write_str(")")
    }
}
