//! Constants of profiles: numbers with a source, each of which is asked for once.

use std::collections::BTreeMap;
use std::fmt;

/// A constant and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name, which ends with its unit.
    pub name: String,
    /// Its value, in that unit; rates are bytes per second.
    pub value: f64,
    /// A data sheet, a standard, a file of the kernel, a row of a published measurement, or a fit.
    pub source: String,
}

/// Why a text is no profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// It is no TOML: what the parser said, with the place.
    Toml(String),
    /// `kind` is none that there is.
    Kind(String),
    /// A constant is not there.
    Missing(&'static str),
    /// A constant that the kind does not have.
    Unknown(String),
    /// It is not `[number, "source"]`.
    Form(String),
    /// It is not what the key wants: `kind` and `label` a text, `capacity` a whole number.
    Key(String),
    /// It is out of its range.
    Range {
        /// Which constant.
        name: &'static str,
        /// The value.
        value: String,
        /// The required property.
        must: &'static str,
    },
    /// It cannot be beside another.
    Contradiction {
        /// Which constant.
        name: &'static str,
        /// With what, and why.
        why: String,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml(why) => write!(f, "no TOML: {}", why.trim_end()),
            Self::Kind(found) => write!(
                f,
                "kind is {found:?}; it is one of plain, usb-flash, disk, ram, remote, usb-bus, channel, host"
            ),
            Self::Missing(name) => write!(f, "{name} is missing"),
            Self::Unknown(name) => write!(f, "{name} is no constant of this kind"),
            Self::Form(name) => {
                write!(f, "{name} must be [number, \"source\"]: a value and where it comes from")
            }
            Self::Key(name) => {
                write!(
                    f,
                    "{name}: kind and label are texts, bus is the name of one, capacity is a whole number of bytes, constant a table"
                )
            }
            Self::Range { name, value, must } => write!(f, "{name} is {value}; it must be {must}"),
            Self::Contradiction { name, why } => write!(f, "{name} contradicts: {why}"),
        }
    }
}

impl std::error::Error for ProfileError {}

/// The constants of a text, each of which is asked for once.
pub(crate) struct Constants<'a> {
    left: BTreeMap<&'a str, f64>,
}

impl<'a> Constants<'a> {
    pub(crate) fn of(constants: &'a [Constant]) -> Constants<'a> {
        Constants { left: constants.iter().map(|one| (one.name.as_str(), one.value)).collect() }
    }
}

impl Constants<'_> {
    fn take(&mut self, name: &'static str) -> Result<f64, ProfileError> {
        self.left.remove(name).ok_or(ProfileError::Missing(name))
    }

    /// A number above zero.
    pub(crate) fn positive(&mut self, name: &'static str) -> Result<f64, ProfileError> {
        let value = self.take(name)?;
        if value > 0.0 && value <= MOST {
            return Ok(value);
        }
        let must = "above zero and at most 10^15";
        Err(ProfileError::Range { name, value: value.to_string(), must })
    }

    /// A number that is not negative.
    pub(crate) fn at_least_zero(&mut self, name: &'static str) -> Result<f64, ProfileError> {
        let value = self.take(name)?;
        if (0.0..=MOST).contains(&value) {
            return Ok(value);
        }
        let must = "from zero to 10^15";
        Err(ProfileError::Range { name, value: value.to_string(), must })
    }

    /// All that were not asked for yet.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = (&str, f64)> {
        std::mem::take(&mut self.left).into_iter()
    }

    pub(crate) fn contradiction(&self, name: &'static str, why: String) -> ProfileError {
        ProfileError::Contradiction { name, why }
    }
}

/// Beyond this no constant makes sense, and integers would be lost.
const MOST: f64 = 1e15;

impl Constant {
    pub(crate) fn parse(name: &str, value: &toml::Value) -> Result<Constant, ProfileError> {
        let form = || ProfileError::Form(name.to_owned());
        let [value, source] = value.as_array().map(Vec::as_slice).ok_or_else(form)? else {
            return Err(form());
        };
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let source = source.as_str().filter(|text| !text.trim().is_empty()).ok_or_else(form)?;
        let value = number.filter(|number| number.is_finite()).ok_or_else(form)?;
        Ok(Constant { name: name.to_owned(), value, source: source.to_owned() })
    }
}
