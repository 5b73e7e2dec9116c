//! Published measurement series, and how well the device models explain them.
//!
//! ```text
//!  series/*.toml, any file ──read──▶ Study: devices, arrays, rows, probes, claims
//!                                      │ what is asked: Asked            ┌─────────────┐
//!                                      ├────────────────────────────────▶│  Predictor  │  Models, NullModel
//!                                      │       value, or why there is none └─────────────┘
//!  series/*.rs: a function each claim ─┴──▶ judge: scores of rows, claims ◀────┘
//!                                             └──▶ show, data: tables, JSON
//! ```
//!
//! A claim of a file is a text. Its function stands beside the figures that it is about, in `series/`; the text of
//! another claim is listed, not judged.
//!
//! Invariants: text in, values out; what a model is judged on it is not shown (see [`Predictor`]).
//!
//! Deliberately absent: an interpreter of claims; I/O, but in the program.

mod claim;
mod data;
pub mod fuzz;
mod judge;
mod models;
mod null;
mod off;
mod params;
mod read;
mod series;
mod show;
mod study;
mod values;

pub use claim::{Answer, Check, Compared, Figures, NoValue, all, any, is};
pub use data::json;
pub use judge::{
    Decision, Judged, JudgedClaim, JudgedRow, Judgement, Summary, judge, judge_by, score,
};
pub use models::{COPIES, Models};
pub use null::NullModel;
pub use off::evidence;
pub use params::{Param, Params};
pub use read::{ReadError, parse};
pub use series::{built_in, check, texts};
pub use show::{Table, answer, tables};
pub use study::{
    Array, Asked, CalibUse, Claim, Device, NotModelled, Predictor, Probe, Role, Row, Study,
    Subject, Unit,
};
