//! Claims as functions of values: what is compared, and what came of the comparison.
//!
//! ```text
//!  is(1.4).at_most(gain).at_most(1.75)      1.4 <= 1.83 <= 1.75: fails
//! ```

/// The value of a row or a probe by its id, or a value that follows from one (see `values`).
pub type Figures<'f> = &'f dyn Fn(&str) -> Result<f64, NoValue>;
/// The comparison that decides a claim, or the value that is missing.
pub type Answer = Result<Compared, NoValue>;
/// Decides a claim by its figures.
pub type Check = fn(Figures<'_>) -> Answer;

/// Why a claim is undecided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no value of {id}: {why}")]
pub struct NoValue {
    /// The row, the probe, or what was asked of it.
    pub id: String,
    /// Why there is no value.
    pub why: String,
}

/// A chain of comparisons, up to the first that fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// True if every comparison holds.
    pub holds: bool,
    /// The comparisons with their numbers, four digits each: `1.4 <= 1.832 <= 1.75`.
    pub text: String,
    last: f64,
}

/// Starts a chain of comparisons.
pub fn is(first: f64) -> Compared {
    Compared { holds: true, text: digits(first), last: first }
}

impl Compared {
    /// Requires that the last number is less than `other`.
    #[must_use]
    pub fn below(self, other: f64) -> Self {
        let holds = self.last < other;
        self.next(holds, "<", other)
    }

    /// Requires that the last number is `other` or less.
    #[must_use]
    pub fn at_most(self, other: f64) -> Self {
        let holds = self.last <= other;
        self.next(holds, "<=", other)
    }

    /// Requires that the last number is greater than `other`.
    #[must_use]
    pub fn above(self, other: f64) -> Self {
        let holds = self.last > other;
        self.next(holds, ">", other)
    }

    /// Requires that the last number is `other` or greater.
    #[must_use]
    pub fn at_least(self, other: f64) -> Self {
        let holds = self.last >= other;
        self.next(holds, ">=", other)
    }

    fn next(self, holds: bool, sign: &str, other: f64) -> Self {
        match self.holds {
            true => {
                Self { holds, text: format!("{} {sign} {}", self.text, digits(other)), last: other }
            }
            false => self,
        }
    }

    /// Names the case that was compared: `(n = 2)` behind the numbers.
    #[must_use]
    pub fn of(self, case: &str) -> Self {
        Self { text: format!("{} ({case})", self.text), ..self }
    }

    /// Requires `other` as well.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self.holds { other } else { self }
    }
}

/// Returns the first answer that does not hold, or else the last one.
pub fn all(answers: impl IntoIterator<Item = Answer>) -> Answer {
    up_to(false, answers)
}

/// Returns the first answer that holds, or else the last one.
pub fn any(answers: impl IntoIterator<Item = Answer>) -> Answer {
    up_to(true, answers)
}

fn up_to(wanted: bool, answers: impl IntoIterator<Item = Answer>) -> Answer {
    let mut last = Compared { holds: !wanted, text: String::new(), last: 0.0 };
    for answer in answers {
        last = answer?;
        if last.holds == wanted {
            break;
        }
    }
    Ok(last)
}

/// Four digits, which is enough to see by how much something fails.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (1e-4..1e6).contains(&size) => {
            let digits = (3.0 - size.log10().floor()).clamp(0.0, 8.0);
            let text = format!("{value:.*}", digits as usize);
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        _ => {
            let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
            format!("{rounded:e}")
        }
    }
}
