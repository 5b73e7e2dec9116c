//! The contents of a file of published measurements, after it was checked (by `read`).
//!
//! Invariants of every [`Study`]: ids are unique; a subject is a device or an array of the study; members
//! are its devices; a published value is finite, above 0 and inside of its range. Kinds of devices, tools and metrics are open vocabularies: what a predictor does not know it
//! says.

use braid_model::Profile;

use crate::params::Params;

/// A published series of measurements.
#[derive(Debug, Clone)]
pub struct Study {
    /// The file's name without its ending.
    pub name: String,
    /// The title of the publication.
    pub title: String,
    /// Facts about hosts and software.
    pub facts: Params,
    /// Single devices.
    pub devices: Vec<Device>,
    /// Arrays, caches: what is made of devices.
    pub arrays: Vec<Array>,
    /// The published figures, in the file's order.
    pub rows: Vec<Row>,
    /// Conditions without a published figure, which claims ask for.
    pub probes: Vec<Probe>,
    /// Sentences about the figures.
    pub claims: Vec<Claim>,
    /// Names of rows, probes and claims of a kind that is not judged, with the reason.
    pub passed_over: Vec<(String, String)>,
}

/// A single device.
#[derive(Debug, Clone)]
pub struct Device {
    /// By which rows and arrays name it.
    pub name: String,
    /// `usb-flash`, `hdd`, `ram`, `bus`, …
    pub kind: String,
    /// No device: it stands for the mean of those that are.
    pub is_derived: bool,
    /// The file's own profile of it; `None` for a device that has one of braid's profiles, or none.
    pub profile: Option<Profile>,
    /// All that the file says of it, `kind` included.
    pub facts: Params,
}

/// An array or a cache: it is made of devices.
#[derive(Debug, Clone)]
pub struct Array {
    /// By which rows name it.
    pub name: String,
    /// The first word of its level: `raid0`, `raid1`, `linear`, `cache`, …
    pub level: String,
    /// Names of devices, in order; one of which there are several stands several times.
    pub members: Vec<String>,
    /// All that the file says of it, but members.
    pub facts: Params,
}

/// A published figure and its conditions.
#[derive(Debug, Clone)]
pub struct Row {
    /// The conditions of the figure.
    pub asked: Asked,
    /// The figure, in [`Asked::unit`].
    pub published: f64,
    /// The lower end of what the print may mean.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The use that may be made of it.
    pub role: Role,
    /// True if the row is kept from the models: it set no constant, and was not in view when they were made.
    pub held_out: bool,
}

/// Conditions without a published figure.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The conditions.
    pub asked: Asked,
}

/// The conditions of a row or a probe, which a model is asked about.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Unique in the study. A name, not a condition: a model does not decide by it.
    pub id: String,
    /// A device or an array of the study.
    pub subject: String,
    /// The program that measured: `dd-read`, `fio`, `bonnie-total`, …
    pub tool: String,
    /// With which parameters.
    pub params: Params,
    /// The number that was taken down: `mb_per_s`, `seconds`, …
    pub metric: String,
    /// The unit of the value.
    pub unit: Unit,
}

/// The units of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// B/s
    BytesPerSecond,
    /// s
    Seconds,
    /// 1/s
    PerSecond,
}

/// The use that may be made of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A single device: constants may come from it.
    Calibration(CalibUse),
    /// A model is judged on it; nothing may be fitted to it.
    Prediction,
    /// Advertised, or beside the point.
    Context,
}

/// The use of a row of calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalibUse {
    /// An input of the model.
    Input,
    /// Better kept to test the model of the device.
    Check,
    /// It contradicts itself.
    Avoid,
}

/// A sentence about the figures.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Unique in the study.
    pub id: String,
    /// In words.
    pub statement: String,
    /// As an expression of Python over values: a text, which is not evaluated.
    pub predicate: String,
    /// The source of its bounds.
    pub threshold: String,
}

/// The subject of a measurement.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A single device.
    Device(&'a Device),
    /// An array or a cache: it is made of devices.
    Array(&'a Array),
}

impl Study {
    /// The device of this name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The array of this name.
    pub fn array(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// The device or the array of this name.
    pub fn subject(&self, name: &str) -> Option<Subject<'_>> {
        let array = || self.array(name).map(Subject::Array);
        self.device(name).map(Subject::Device).or_else(array)
    }

    /// The row of this id.
    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.asked.id == id)
    }

    /// Returns the conditions of the row or the probe of this id.
    pub fn asked(&self, id: &str) -> Option<&Asked> {
        let probe = || self.probes.iter().map(|probe| &probe.asked).find(|asked| asked.id == id);
        self.row(id).map(|row| &row.asked).or_else(probe)
    }

    /// The rows that constants may come from.
    pub fn calibration(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| matches!(row.role, Role::Calibration(_)))
    }
}

impl Unit {
    /// As files write it.
    pub fn text(self) -> &'static str {
        match self {
            Self::BytesPerSecond => "B/s",
            Self::Seconds => "s",
            Self::PerSecond => "1/s",
        }
    }

    /// Reads the text that files have.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::BytesPerSecond, Self::Seconds, Self::PerSecond];
        all.into_iter().find(|unit| unit.text() == text)
    }

    /// In which a metric is normalised: bytes of any multiple, times, and else counts per second.
    pub fn of_metric(metric: &str) -> Option<Self> {
        match metric {
            "s" | "seconds" | "ms" | "milliseconds" | "us" | "microseconds" => Some(Self::Seconds),
            "iops" => Some(Self::PerSecond),
            metric => match metric.strip_suffix("_per_s")? {
                "b" | "bytes" | "kb" | "kib" | "mb" | "mib" | "gb" | "gib" => {
                    Some(Self::BytesPerSecond)
                }
                _ => Some(Self::PerSecond),
            },
        }
    }
}

impl Role {
    /// As files write it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Calibration(_) => "calibration",
            Self::Prediction => "prediction",
            Self::Context => "context",
        }
    }
}

/// A model of published conditions.
pub trait Predictor {
    /// Returns the value in the unit that is asked for, above 0 and finite. The subject is a device or an array of the
    /// study, never one that is derived.
    ///
    /// `study` has no rows to be predicted: what a model is judged on it does not see.
    ///
    /// # Errors
    ///
    /// Why there is no value.
    fn predict(&self, study: &Study, asked: &Asked) -> Result<f64, NotModelled>;
}

/// Why a model has no value for a condition: a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotModelled(pub String);
