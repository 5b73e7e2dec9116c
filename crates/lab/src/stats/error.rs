//! Why a statistic was refused.

/// Input that has no answer. Each says what was refused, why, and what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Nothing to compute from.
    #[error("{what}: there are no values; measure at least one repetition first")]
    Empty {
        /// What was to be computed, such as "spread".
        what: &'static str,
    },
    /// NaN or infinite.
    #[error(
        "{what}: value {position} is {value}, not a finite number; look for the trial that \
         recorded it and leave that trial out"
    )]
    NotFinite {
        /// What was to be computed.
        what: &'static str,
        /// Which value, counted from 1.
        position: usize,
        /// The value.
        value: f64,
    },
    /// Outside what the method is defined for.
    #[error("{what}: value {position} is {value}, and only {allowed} can be used here")]
    OutOfRange {
        /// What was to be computed.
        what: &'static str,
        /// Which value, counted from 1.
        position: usize,
        /// The value.
        value: f64,
        /// The values that are allowed, in words.
        allowed: &'static str,
    },
    /// A level or fraction outside its range.
    #[error("{what}: {value} is refused; give a number {allowed}")]
    BadParameter {
        /// The parameter's name.
        what: &'static str,
        /// What was given.
        value: f64,
        /// The range, in words.
        allowed: &'static str,
    },
    /// All values are 0 where something is divided by their average.
    #[error("{what}: every value is 0, so nothing can be expressed as a part of the average")]
    AllZero {
        /// What was to be computed.
        what: &'static str,
    },
    /// No repetition in which both sides have a value.
    #[error(
        "{what}: no repetition was measured on both sides; run the missing trials and render \
         the report again"
    )]
    NoPairs {
        /// What was to be computed.
        what: &'static str,
    },
    /// A table whose rows do not fit its columns, or a column that does not exist.
    #[error("{what}: row or column {position} does not fit: there are {columns} columns")]
    BadShape {
        /// What was to be computed.
        what: &'static str,
        /// Which row or column, counted from 1.
        position: usize,
        /// Number of columns.
        columns: usize,
    },
    /// Fewer than two subjects to choose a winner from.
    #[error("a winner needs at least two subjects, and there are {have}; add a subject")]
    TooFewSubjects {
        /// How many there are.
        have: usize,
    },
    /// More requests than 64 bits count.
    #[error("the histogram would hold more than 2^64 - 1 requests; do not merge these runs")]
    TooManyRequests,
}
