//! The seam to the models: what is asked of them, and what they answer.

use crate::params::Params;
use crate::study::{Asked, Study, Unit};

/// What a row or a probe asks of a model.
#[derive(Debug, Clone, Copy)]
pub struct Condition<'a> {
    /// Which one it is. A name, not a condition: a model does not decide by it.
    pub id: &'a str,
    /// A device or an array of the study, never one that is derived.
    pub subject: &'a str,
    /// What measures.
    pub tool: &'a str,
    /// With which parameters.
    pub params: &'a Params,
    /// What is taken down of it.
    pub metric: &'a str,
    /// The unit of the answer.
    pub unit: Unit,
}

impl<'a> Condition<'a> {
    /// The same for another subject.
    pub(crate) fn on(self, subject: &'a str) -> Self {
        Self { subject, ..self }
    }
}

impl Asked {
    /// What is asked of a model.
    pub fn condition(&self) -> Condition<'_> {
        let Self { id, subject, tool, params, metric, unit } = self;
        Condition { id, subject, tool, params, metric, unit: *unit }
    }
}

/// What a model says of published conditions.
pub trait Predictor {
    /// The value in the condition's unit, above 0 and finite.
    ///
    /// `study` has no rows to be predicted: what a model is judged on it does not see.
    ///
    /// # Errors
    ///
    /// Why there is no value.
    fn predict(&self, study: &Study, condition: &Condition<'_>) -> Result<f64, NotModelled>;
}

/// Why a model has no value for a condition: a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotModelled(pub String);
