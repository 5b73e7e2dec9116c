//! Published measurement series, and how well a model explains them.
//!
//! ```text
//!  file ──read──▶ Study: devices, arrays, rows, probes, claims
//!                   │ what is asked: Condition        ┌─────────────┐
//!                   ├────────────────────────────────▶│  Predictor  │  a model, or a null model
//!                   │                  value, or why  └─────────────┘
//!                   │                  there is none        │
//!                   └──▶ judge: scores of rows, claims ◀────┘
//! ```
//!
//! Invariants: text in, values out; what a model is judged on it is not shown (see [`Predictor`]).
//!
//! Deliberately absent: any model but the null models; I/O; anything that draws.

mod built_in;
pub mod fuzz;
mod judge;
mod null;
mod params;
pub mod predicate;
mod predictor;
mod read;
mod study;
mod values;

pub use built_in::{FILES, built_in};
pub use judge::{Decision, JudgedClaim, JudgedRow, Judgement, Summary, judge, score};
pub use null::NullModel;
pub use params::{Param, Params};
pub use predictor::{Condition, NotModelled, Predictor};
pub use read::{ReadError, parse};
pub use study::{Array, Asked, CalibUse, Claim, Device, Probe, Role, Row, Study, Subject, Unit};
