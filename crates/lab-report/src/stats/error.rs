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
    /// More requests than 64 bits count.
    #[error("the histogram would hold more than 2^64 - 1 requests; do not merge these runs")]
    TooManyRequests,
}
