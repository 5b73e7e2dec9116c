//! The table of a study: tests down, subjects across, each cell a time and its percent of the
//! average baseline; below it the sum of the times and the mean of the percents.
//!
//! ```text
//!              disk 1   disk 2   average      stripe           mirror
//! write           159      159     159.0      125   78.6       241  151.6
//! copy              4        5       4.5        5  111.1         5  111.1
//! sum             163      164     163.5      130   79.5       246  150.5   percent of the sums
//! mean percent                                      94.9             131.3
//! ```
//!
//! The two lower rows say different things: the sum is ruled by the longest test, the mean of
//! percents gives each test the same weight, so a test of 4 s that is 1 s slower moves it as much
//! as one of 400 s that is 100 s slower.
//!
//! Times that were printed in whole seconds are only known to half a second. With a resolution
//! the table also says what this leaves open: 5 s against 4.5 s is 111 %, and anything from 90 to
//! 138 %.

use super::check::{check_not_negative, check_positive};
use super::error::StatsError;

const WHAT: &str = "percent table";

/// One measured cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PercentCell {
    /// The value, such as seconds.
    pub value: f64,
    /// 100 · value / baseline.
    pub percent: f64,
    /// Smallest percent that the resolution leaves open; equals `percent` for exact values.
    pub least_percent: f64,
    /// Largest percent that the resolution leaves open; `None` when the baseline may have been 0,
    /// which leaves it without a limit.
    pub most_percent: Option<f64>,
}

/// One test.
#[derive(Debug, Clone, PartialEq)]
pub struct PercentRow {
    /// The test's name.
    pub name: String,
    /// Mean of the baseline columns; `None` when one of them was not measured, and then the row
    /// has no percents.
    pub baseline: Option<f64>,
    /// One for each column; `None` where nothing was measured or there is no baseline.
    pub cells: Vec<Option<PercentCell>>,
}

/// What stands below a column, over the rows in which it has a percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnSummary {
    /// How many rows that is. Less than all: not comparable with a full column.
    pub rows: usize,
    /// Sum of the column over these rows, and its percent of the baseline's sum over the same.
    pub total: PercentCell,
    /// Sum of the baseline over the same rows.
    pub baseline_total: f64,
    /// Mean of the percents.
    pub mean_percent: f64,
    /// Smallest mean that the resolution leaves open.
    pub least_mean_percent: f64,
    /// Largest mean that the resolution leaves open; `None` without a limit.
    pub most_mean_percent: Option<f64>,
}

/// The table.
#[derive(Debug, Clone, PartialEq)]
pub struct PercentTable {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Which of them are the baseline.
    pub baselines: Vec<usize>,
    /// One for each test.
    pub rows: Vec<PercentRow>,
    /// One for each column; `None` when it has no percent at all.
    pub summaries: Vec<Option<ColumnSummary>>,
}

/// Makes the table. `rows` hold one value for each column, `None` where nothing was measured.
/// `baselines` are the columns whose mean is 100 %. `resolution` is the step the values were
/// rounded to (1 for whole seconds), 0 for exact ones.
///
/// # Errors
///
/// When a row's length or a baseline's number does not fit the columns, no baseline is named, a
/// value is below 0 or not finite, a row's baseline is 0, or the resolution is below 0.
pub fn percent_table(
    columns: &[String],
    rows: &[(String, Vec<Option<f64>>)],
    baselines: &[usize],
    resolution: f64,
) -> Result<PercentTable, StatsError> {
    if !(0.0..=1e100).contains(&resolution) {
        let allowed = "from 0 (exact) upwards";
        return Err(StatsError::BadParameter { what: "resolution", value: resolution, allowed });
    }
    check_shape(columns.len(), rows, baselines)?;
    let half = resolution / 2.0;
    let rows: Vec<PercentRow> = rows
        .iter()
        .map(|(name, values)| row_of(name, values, baselines, half))
        .collect::<Result<_, _>>()?;
    let summaries = (0..columns.len()).map(|column| summarise(&rows, column, half)).collect();
    Ok(PercentTable { columns: columns.to_vec(), baselines: baselines.to_vec(), rows, summaries })
}

fn check_shape(
    columns: usize,
    rows: &[(String, Vec<Option<f64>>)],
    baselines: &[usize],
) -> Result<(), StatsError> {
    if baselines.is_empty() {
        return Err(StatsError::Empty { what: "baseline of the percent table" });
    }
    let wrong_baseline = baselines.iter().find(|baseline| **baseline >= columns).copied();
    let wrong_row = rows.iter().position(|(_, values)| values.len() != columns);
    match wrong_baseline.or(wrong_row) {
        Some(index) => Err(StatsError::BadShape { what: WHAT, position: index + 1, columns }),
        None => Ok(()),
    }
}

fn row_of(
    name: &str,
    values: &[Option<f64>],
    baselines: &[usize],
    half: f64,
) -> Result<PercentRow, StatsError> {
    let measured: Vec<f64> = values.iter().flatten().copied().collect();
    if !measured.is_empty() {
        check_not_negative(WHAT, &measured)?;
    }
    let of_baseline: Option<Vec<f64>> = baselines.iter().map(|index| values[*index]).collect();
    let baseline = of_baseline.map(|of| of.iter().sum::<f64>() / of.len() as f64);
    if let Some(baseline) = baseline {
        check_positive(WHAT, &[baseline])?;
    }
    let cells = values.iter().map(|value| Some(cell((*value)?, baseline?, half))).collect();
    Ok(PercentRow { name: name.to_owned(), baseline, cells })
}

/// `half` is how far the true value and the true baseline may lie from those given.
fn cell(value: f64, baseline: f64, half: f64) -> PercentCell {
    PercentCell {
        value,
        percent: value / baseline * 100.0,
        least_percent: (value - half).max(0.0) / (baseline + half) * 100.0,
        most_percent: Some((value + half) / (baseline - half) * 100.0)
            .filter(|percent| baseline > half && percent.is_finite()),
    }
}

fn summarise(rows: &[PercentRow], column: usize, half: f64) -> Option<ColumnSummary> {
    let both: Vec<(PercentCell, f64)> =
        rows.iter().filter_map(|row| Some((row.cells[column]?, row.baseline?))).collect();
    if both.is_empty() {
        return None;
    }
    let count = both.len() as f64;
    let baseline_total: f64 = both.iter().map(|(_, baseline)| baseline).sum();
    let total: f64 = both.iter().map(|(cell, _)| cell.value).sum();
    let mean = |of: fn(&PercentCell) -> Option<f64>| {
        let percents: Option<Vec<f64>> = both.iter().map(|(cell, _)| of(cell)).collect();
        percents.map(|percents| percents.iter().sum::<f64>() / count)
    };
    Some(ColumnSummary {
        rows: both.len(),
        // Each of the times may be off by half a step, and in the worst case all to one side.
        total: cell(total, baseline_total, half * count),
        baseline_total,
        mean_percent: mean(|cell| Some(cell.percent))?,
        least_mean_percent: mean(|cell| Some(cell.least_percent))?,
        most_mean_percent: mean(|cell| cell.most_percent),
    })
}
