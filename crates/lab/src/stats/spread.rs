//! How far repetitions lie apart, and which of them stand out.

use super::check::{check_finite, sorted};
use super::error::StatsError;
use super::estimate::median_of_sorted;

/// Modified z-score beyond which a value is called an outlier (Iglewicz and Hoaglin, *How to
/// Detect and Handle Outliers*, 1993, who recommend 3.5).
const OUTLIER_BEYOND: f64 = 3.5;
/// Median absolute deviation of a normal distribution in standard deviations: Φ⁻¹(3/4).
const MAD_OF_NORMAL: f64 = 0.674_489_750_196_081_7;
/// Mean absolute deviation of a normal distribution in standard deviations: √(2/π).
const MEAN_DEVIATION_OF_NORMAL: f64 = 0.797_884_560_802_865_4;

/// How far some values lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The median absolute deviation from the median, in the values' unit, not scaled to a
    /// standard deviation.
    pub median_absolute_deviation: f64,
    /// The same as a part of the median's magnitude; `None` when the median is 0.
    pub relative_deviation: Option<f64>,
    /// The mean, for the coefficient of variation only.
    pub mean: f64,
    /// The sample's standard deviation (n − 1); `None` of one value.
    pub standard_deviation: Option<f64>,
    /// Standard deviation as a part of the mean's magnitude; `None` of one value or of a mean
    /// of 0.
    pub coefficient_of_variation: Option<f64>,
}

/// A value that stands out. It is named, and it stays in every other statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlier {
    /// Its place in the values given, from 0.
    pub index: usize,
    /// The value.
    pub value: f64,
    /// Its distance from the median in robust standard deviations, with sign.
    pub modified_z: f64,
}

/// The spread of some values.
///
/// # Errors
///
/// Of nothing and of anything not finite.
pub fn spread(values: &[f64]) -> Result<Spread, StatsError> {
    let what = "spread";
    check_finite(what, values)?;
    let (median, deviation) = median_and_deviation(what, values)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    // Two passes: Σ(x − mean)² does not cancel as Σx² − n·mean² does.
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let standard_deviation = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
    Ok(Spread {
        median_absolute_deviation: deviation,
        relative_deviation: part_of(deviation, median),
        mean,
        standard_deviation,
        coefficient_of_variation: standard_deviation.and_then(|sd| part_of(sd, mean)),
    })
}

/// `None` where the division has no finite answer.
fn part_of(value: f64, whole: f64) -> Option<f64> {
    Some(value / whole.abs()).filter(|part| part.is_finite())
}

fn median_and_deviation(what: &'static str, values: &[f64]) -> Result<(f64, f64), StatsError> {
    let empty = StatsError::Empty { what };
    let median = median_of_sorted(&sorted(what, values)?).ok_or(empty.clone())?;
    let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    // A sum of two values of 1e100 is still far from overflow, so the distances are not refused.
    let mut distances_sorted = distances;
    distances_sorted.sort_by(f64::total_cmp);
    Ok((median, median_of_sorted(&distances_sorted).ok_or(empty)?))
}

/// The values that stand out, in the order given: modified z-score beyond 3.5.
///
/// z = 0.6745 · (x − median) / MAD. The median absolute deviation is chosen over Tukey's fences
/// because it stands up to nearly half of the repetitions being disturbed, the quartiles only to
/// a quarter: of 7 repetitions, 2 disturbed ones already move a quartile and so hide each other.
/// When more than half of the values are equal MAD is 0, and the mean absolute deviation takes its
/// place: z = 0.7979 · (x − median) / mean deviation. Of fewer than five
/// values with one apart none is named either way for such samples: its z is 0.7979 · n at most.
///
/// # Errors
///
/// Of nothing and of anything not finite.
pub fn outliers(values: &[f64]) -> Result<Vec<Outlier>, StatsError> {
    let (median, deviation) = median_and_deviation("outliers", values)?;
    let unit = if deviation > 0.0 {
        deviation / MAD_OF_NORMAL
    } else {
        let distances = values.iter().map(|value| (value - median).abs());
        distances.sum::<f64>() / values.len() as f64 / MEAN_DEVIATION_OF_NORMAL
    };
    let score = |value: f64| Some((value - median) / unit).filter(|z| z.is_finite());
    Ok(values
        .iter()
        .enumerate()
        .filter_map(|(index, &value)| {
            let modified_z = score(value)?;
            let apart = modified_z.abs() > OUTLIER_BEYOND;
            apart.then_some(Outlier { index, value, modified_z })
        })
        .collect())
}
