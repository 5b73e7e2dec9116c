//! Models without a mechanism, which a model has to beat.

use crate::study::{Array, Asked, NotModelled, Predictor, Row, Study, Subject, Unit};
use crate::values::mean;

/// A model without a mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullModel {
    /// An array is the average of its members' figures.
    Average,
    /// Striping divides the time by the members, and multiplies the rate; all else is as one device.
    Striping,
}

impl NullModel {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Average, Self::Striping];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Average => "average",
            Self::Striping => "striping",
        }
    }

    /// In a sentence without its full stop.
    pub fn says(self) -> &'static str {
        match self {
            Self::Average => "an array is its average member",
            Self::Striping => {
                "striping is as many times faster as there are members, all else is one member"
            }
        }
    }
}

impl Predictor for NullModel {
    fn predict(&self, study: &Study, condition: &Asked) -> Result<f64, NotModelled> {
        let one = |device: &str| figure(study, condition, device);
        match study.subject(&condition.subject) {
            Some(Subject::Device(device)) => one(&device.name),
            Some(Subject::Array(array)) => {
                let average = mean(array.members.iter().map(|member| one(member)))?;
                let faster = match self {
                    Self::Striping if array.level == "raid0" => members(array, condition),
                    Self::Average | Self::Striping => 1.0,
                };
                Ok(match condition.unit {
                    Unit::Seconds => average / faster,
                    Unit::BytesPerSecond | Unit::PerSecond => average * faster,
                })
            }
            None => Err(NotModelled(format!("{} is not in the file", condition.subject))),
        }
    }
}

fn members(array: &Array, condition: &Asked) -> f64 {
    condition.params.number("members").unwrap_or(array.members.len() as f64)
}

/// The device's figure by the same tool: its own, or that of the row with the most equal parameters.
fn figure(study: &Study, condition: &Asked, device: &str) -> Result<f64, NotModelled> {
    let is_alike = |row: &&Row| {
        let asked = &row.asked;
        asked.subject == device && asked.tool == condition.tool && asked.unit == condition.unit
    };
    let equal = |row: &Row| {
        let params = condition.params.iter();
        params.filter(|(name, value)| row.asked.params.get(name) == Some(value)).count()
    };
    // Of several the first.
    let rows = study.rows.iter().rev().filter(is_alike);
    let nearest = rows.max_by_key(|row| (row.asked.id == condition.id, equal(row)));
    nearest
        .map(|row| row.published)
        .ok_or_else(|| NotModelled(format!("no figure of {device} by {}", condition.tool)))
}
