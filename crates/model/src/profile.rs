//! The constants of devices, buses and hosts: from TOML to checked values.
//!
//! ```toml
//! kind = "usb-flash"
//! label = "OCZ Rally2 2GB"
//!
//! [constant]
//! command_us = [690, "where it comes from: data sheet, standard, kernel source, or a published row"]
//! ```
//!
//! Invariants: every constant has a source; no constant is missing, unknown, out of its range, or in
//! contradiction to another: the error names it. Deliberately absent: files; the caller has the text.

use crate::bus::BusProfile;
use crate::constants::{Constant, Constants, ProfileError};
use crate::disk::Disk;
use crate::flash::Flash;
use crate::host::Host;
use crate::plain::{Plain, Ram};
use crate::remote::Remote;

/// A device, a bus or a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The name for readers.
    pub label: String,
    /// Bytes of the device, if they are known.
    pub capacity: Option<u64>,
    /// The name of its bus, among the profiles that come with braid, if it names one.
    pub bus: Option<String>,
    /// The kind of device, with its constants.
    pub kind: Kind,
    /// Every constant as it was given, by name.
    pub constants: Vec<Constant>,
}

/// The kind of a profile.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A rate and a latency.
    Plain(Plain),
    /// A USB stick.
    Flash(Flash),
    /// A hard disk.
    Disk(Disk),
    /// Memory.
    Ram(Ram),
    /// A member on another machine.
    Remote(Remote),
    /// A bus that devices share.
    Bus(BusProfile),
    /// A computer: its page cache, its calls.
    Host(Host),
}

impl Kind {
    /// Returns the value of the profile's `kind`.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Plain(_) => "plain",
            Kind::Flash(_) => "usb-flash",
            Kind::Disk(_) => "disk",
            Kind::Ram(_) => "ram",
            Kind::Remote(_) => "remote",
            Kind::Bus(_) => "bus",
            Kind::Host(_) => "host",
        }
    }
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`] names the constant.
    pub fn parse(text: &str) -> Result<Profile, ProfileError> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| ProfileError::Toml(error.to_string()))?;
        let mut constants = Vec::new();
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("constant", toml::Value::Table(entries)) => {
                    for (name, value) in entries {
                        constants.push(Constant::parse(name, value)?);
                    }
                }
                ("bus", toml::Value::String(name)) if is_bus(name) => {}
                ("kind" | "label", toml::Value::String(_))
                | ("capacity", toml::Value::Integer(0..)) => {}
                ("kind" | "label" | "bus" | "capacity" | "constant", _) => {
                    return Err(ProfileError::Key(key.clone()));
                }
                _ => return Err(ProfileError::Unknown(key.clone())),
            }
        }
        let text_of = |key: &'static str| {
            table.get(key).and_then(toml::Value::as_str).ok_or(ProfileError::Missing(key))
        };
        let mut asked = Constants::of(&constants);
        let kind = match text_of("kind")? {
            "plain" => Kind::Plain(Plain::of(&mut asked)?),
            "usb-flash" => Kind::Flash(Flash::of(&mut asked)?),
            "disk" => Kind::Disk(Disk::of(&mut asked)?),
            "ram" => Kind::Ram(Ram::of(&mut asked)?),
            "remote" => Kind::Remote(Remote::of(&mut asked)?),
            "usb-bus" => Kind::Bus(BusProfile::usb(&mut asked)?),
            "channel" => Kind::Bus(BusProfile::channel(&mut asked)?),
            "host" => Kind::Host(Host::of(&mut asked)?),
            other => return Err(ProfileError::Kind(other.to_owned())),
        };
        if let Some((name, _)) = asked.rest().next() {
            return Err(ProfileError::Unknown(name.to_owned()));
        }
        let capacity = table.get("capacity").and_then(toml::Value::as_integer);
        Ok(Profile {
            label: text_of("label")?.to_owned(),
            capacity: capacity.and_then(|bytes| u64::try_from(bytes).ok()),
            bus: table.get("bus").and_then(toml::Value::as_str).map(str::to_owned),
            kind,
            constants,
        })
    }

    /// Rates of long sequential reads and writes with the largest command, one behind the other, in
    /// bytes per second, without a bus; `None` for what is no device.
    pub fn long_rates(&self) -> Option<(f64, f64)> {
        match &self.kind {
            Kind::Plain(plain) => Some((plain.read_rate as f64, plain.write_rate as f64)),
            Kind::Flash(flash) => Some((flash.long_rate(false), flash.long_rate(true))),
            Kind::Disk(disk) => Some((disk.outer_rate, disk.outer_rate)),
            Kind::Ram(ram) => Some((ram.read_rate as f64, ram.write_rate as f64)),
            Kind::Remote(far) => Some((far.read_rate as f64, far.write_rate as f64)),
            Kind::Bus(_) | Kind::Host(_) => None,
        }
    }

    /// The bus that it hangs on unless another is given: the one that it names; for a USB stick that of a controller of
    /// its time.
    pub fn usual_bus(&self) -> BusProfile {
        let name = match (&self.bus, &self.kind) {
            (Some(name), _) => name,
            (None, Kind::Plain(plain)) => return BusProfile::of_rate(plain.bus_rate),
            (None, Kind::Flash(_)) => "usb2-ich9",
            (None, _) => return BusProfile::default(),
        };
        match profile(name).map(|profile| profile.kind) {
            Some(Kind::Bus(bus)) => bus,
            other => panic!("{name} is a bus among the profiles here, not {other:?}"),
        }
    }

    /// Replaces rates in bytes per second and the latency in nanoseconds.
    ///
    /// # Errors
    /// What there is not of this kind.
    pub fn replace(
        &mut self,
        read_rate: Option<u64>,
        write_rate: Option<u64>,
        latency_ns: Option<u64>,
    ) -> Result<(), &'static str> {
        let (read, write, latency) = match &mut self.kind {
            Kind::Plain(one) => (&mut one.read_rate, &mut one.write_rate, &mut one.latency_ns),
            Kind::Flash(one) => (&mut one.read_rate, &mut one.write_rate, &mut one.command_ns),
            Kind::Ram(one) => (&mut one.read_rate, &mut one.write_rate, &mut one.call_ns),
            Kind::Remote(one) => (&mut one.read_rate, &mut one.write_rate, &mut one.round_trip_ns),
            _ if read_rate.or(write_rate).or(latency_ns).is_none() => return Ok(()),
            Kind::Disk(_) => {
                return Err("a disk has zones and a seek curve, no one rate or latency");
            }
            Kind::Bus(_) | Kind::Host(_) => {
                return Err("it is no device");
            }
        };
        *read = read_rate.unwrap_or(*read);
        *write = write_rate.unwrap_or(*write);
        *latency = latency_ns.unwrap_or(*latency);
        Ok(())
    }

    /// The value of the constant `name`.
    pub fn constant(&self, name: &str) -> Option<f64> {
        self.constants.iter().find(|one| one.name == name).map(|one| one.value)
    }
}

/// Returns true if a bus that comes with braid has this name.
fn is_bus(name: &str) -> bool {
    profile(name).is_some_and(|profile| matches!(profile.kind, Kind::Bus(_)))
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../profiles/", $name, ".toml")))),*]
    };
}

/// Every profile that comes with braid, by name: the files of `profiles/`.
const PROFILES: &[(&str, &str)] = built_in![
    "usb-flash",
    "rally2",
    "adata",
    "cruzer-titanium",
    "barracuda-500",
    "sata-7200",
    "ram",
    "remote-1gbit",
    "usb2-ich9",
    "pci-p3",
    "host-p3",
    "host-2007",
    "ide-1",
    "ide-2",
];

/// The profile called `name`.
pub fn profile(name: &str) -> Option<Profile> {
    let (_, text) = PROFILES.iter().find(|(known, _)| *known == name)?;
    Some(Profile::parse(text).expect("a test parses every profile that comes with braid"))
}

/// The names of all profiles.
pub fn profile_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

/// The names of those that are devices, which `model(NAME, …)` takes.
pub fn device_names() -> impl Iterator<Item = &'static str> {
    profile_names().filter(|name| profile(name).is_some_and(|one| one.long_rates().is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
kind = "plain"
label = "a stick"
capacity = 2048
[constant]
read_rate = [20e6, "made up"]
write_rate = [10_000_000, "made up"]
latency_us = [1.5, "made up"]
bus_rate = [0, "never the limit"]
"#;

    #[test]
    fn every_profile_that_comes_with_braid_is_one() {
        for (name, text) in PROFILES {
            Profile::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    #[test]
    fn a_profile_has_its_constants_and_their_sources() {
        let profile = Profile::parse(GOOD).unwrap();
        let plain =
            Plain { read_rate: 20_000_000, write_rate: 10_000_000, latency_ns: 1500, bus_rate: 0 };
        assert_eq!(profile.kind, Kind::Plain(plain));
        assert_eq!((profile.label.as_str(), profile.capacity), ("a stick", Some(2048)));
        assert_eq!(profile.constant("latency_us"), Some(1.5));
        assert_eq!(profile.constants[0].source, "never the limit", "by name");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let with = |from: &str, to: &str| {
            assert!(GOOD.contains(from), "{from}");
            Profile::parse(&GOOD.replace(from, to)).unwrap_err().to_string()
        };
        let said = [
            with("latency_us", "latency"),
            with("[20e6, \"made up\"]", "20e6"),
            with("[20e6, \"made up\"]", "[20e6, \" \"]"),
            with("20e6", "-20e6"),
            with("20e6", "nan"),
            with("bus_rate = [0, \"never the limit\"]", ""),
            with("bus_rate", "colour = [1, \"x\"]\nbus_rate"),
            with("plain", "floppy"),
            with("capacity = 2048", "capacity = -1"),
            with("label = \"a stick\"", ""),
            with("label", "weight = 3\nlabel"),
            with("[constant]", "[constant"),
        ];
        let expected = [
            "latency_us is missing",
            r#"read_rate must be [number, "source"]: a value and where it comes from"#,
            r#"read_rate must be [number, "source"]: a value and where it comes from"#,
            "read_rate is -20000000; it must be above zero and at most 10^15",
            r#"read_rate must be [number, "source"]: a value and where it comes from"#,
            "bus_rate is missing",
            "colour is no constant of this kind",
            r#"kind is "floppy"; it is one of plain, usb-flash, disk, ram, remote, usb-bus, channel, host"#,
            "capacity: kind and label are texts, bus is the name of one, capacity is a whole number of bytes, constant a table",
            "label is missing",
            "weight is no constant of this kind",
            "no TOML: TOML parse error at line 5, column 10",
            "  |",
            "5 | [constant",
            "  |          ^",
            "unclosed table, expected `]`",
        ];
        assert_eq!(said.join("\n").lines().map(str::trim_end).collect::<Vec<_>>(), expected);
    }
}
