//! How evenly processes that ran at the same time were served.

use super::check::check_not_negative;
use super::error::StatsError;

/// How evenly something was shared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fairness {
    /// Jain's index, (Σx)² / (n · Σx²): 1 when all got the same, 1/n when one got everything
    /// (Jain, Chiu and Hawe, DEC-TR-301, 1984).
    pub jain: f64,
    /// Smallest share / largest share, 0 to 1.
    pub min_to_max: f64,
    /// Which got least, from 0; the first of equals.
    pub least: usize,
    /// Which got most, from 0; the first of equals.
    pub most: usize,
}

/// The fairness of shares such as each process's throughput.
///
/// # Errors
///
/// Of nothing, of shares below 0 or not finite, and when all are 0.
pub fn fairness(shares: &[f64]) -> Result<Fairness, StatsError> {
    let what = "fairness";
    check_not_negative(what, shares)?;
    let (mut least, mut most) = (0, 0);
    for (index, share) in shares.iter().enumerate() {
        if *share < shares[least] {
            least = index;
        }
        if *share > shares[most] {
            most = index;
        }
    }
    let largest = shares[most];
    if largest == 0.0 {
        return Err(StatsError::AllZero { what });
    }
    // As parts of the largest, so that no square overflows or vanishes.
    let parts = || shares.iter().map(|share| share / largest);
    let (sum, squares): (f64, f64) = (parts().sum(), parts().map(|part| part * part).sum());
    Ok(Fairness {
        jain: (sum * sum / (shares.len() as f64 * squares)).min(1.0),
        min_to_max: shares[least] / largest,
        least,
        most,
    })
}
