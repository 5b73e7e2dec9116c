//! Answers to orders, and to the question of what an order would do.

#![allow(missing_docs, reason = "fields of the JSON, which the documentation of each variant has")]

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The result of an order: a sentence, or why it was not carried out.
pub type Answer = Result<String, Failure>;

/// The result of an order that a volume carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// A sentence about the result.
    pub text: String,
    /// False if the state that the order asks for was there already.
    pub changed: bool,
}

/// The answer to an order as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OrderAnswer {
    /// `{"outcome": "refused", "code": …, "why": …, "next": …}`
    Not(Failure),
    /// `{"outcome": "done", "text": …, "changed": …}`
    Done {
        outcome: Done,
        text: String,
        /// Earlier versions do not say it.
        #[serde(default = "yes")]
        changed: bool,
    },
}

fn yes() -> bool {
    true
}

/// The outcome of an order that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    Done,
}

impl OrderAnswer {
    /// Returns the answer of a volume as JSON; `changed` is false if the order was not begun.
    pub fn new(answer: Answer, changed: bool) -> OrderAnswer {
        match answer {
            Ok(text) => OrderAnswer::Done { outcome: Done::Done, text, changed },
            Err(failure) => OrderAnswer::Not(failure),
        }
    }
}

impl From<OrderAnswer> for Result<Carried, Failure> {
    fn from(answer: OrderAnswer) -> Result<Carried, Failure> {
        match answer {
            OrderAnswer::Done { text, changed, .. } => Ok(Carried { text, changed }),
            OrderAnswer::Not(failure) => Err(failure),
        }
    }
}

/// The effect of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Sentences about the effect.
    pub does: String,
    /// Sentences about data that may be lost.
    pub loses: Option<String>,
}

impl Effect {
    /// Returns the effect of an order by which nothing is lost.
    pub(crate) fn of(does: impl Into<String>) -> Effect {
        Effect { does: does.into(), loses: None }
    }

    /// Adds what may be lost.
    pub(crate) fn loses(self, loses: impl Into<String>) -> Effect {
        Effect { loses: Some(loses.into()), ..self }
    }
}

/// The answer to the question of what an order would do: the volume runs the checks of the order, and stops
/// where it would begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Sentences about the effect, or about the state that is there already. Empty for an order that is refused.
    pub effect: String,
    /// Sentences about data that may be lost.
    pub loss: Option<String>,
    /// False if the state that the order asks for is there already, or if the order is refused.
    pub changes: bool,
    /// The answer that the order would get, if it is not carried out.
    pub refusal: Option<Failure>,
}

impl Plan {
    /// Returns the plan of an order that is carried out.
    pub fn possible(effect: Effect) -> Plan {
        Plan { effect: effect.does, loss: effect.loses, changes: true, refusal: None }
    }

    /// Returns the plan of an order with this answer, which came before anything was begun.
    pub fn answered(answer: Answer) -> Plan {
        let (effect, refusal) = match answer {
            Ok(text) => (text, None),
            Err(failure) => (String::new(), Some(failure)),
        };
        Plan { effect, loss: None, changes: false, refusal }
    }
}
