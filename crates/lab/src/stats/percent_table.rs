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
/// `baselines` are the columns whose mean is 100 %.
///
/// # Errors
///
/// When a row's length or a baseline's number does not fit the columns, no baseline is named, a
/// value is below 0 or not finite, or a row's baseline is 0.
pub fn percent_table(
    columns: &[String],
    rows: &[(String, Vec<Option<f64>>)],
    baselines: &[usize],
) -> Result<PercentTable, StatsError> {
    check_shape(columns.len(), rows, baselines)?;
    let rows: Vec<PercentRow> = rows
        .iter()
        .map(|(name, values)| row_of(name, values, baselines))
        .collect::<Result<_, _>>()?;
    let summaries = (0..columns.len()).map(|column| summarise(&rows, column)).collect();
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
    let cells = values.iter().map(|value| Some(cell((*value)?, baseline?))).collect();
    Ok(PercentRow { name: name.to_owned(), baseline, cells })
}

fn cell(value: f64, baseline: f64) -> PercentCell {
    PercentCell { value, percent: value / baseline * 100.0 }
}

fn summarise(rows: &[PercentRow], column: usize) -> Option<ColumnSummary> {
    let both: Vec<(PercentCell, f64)> =
        rows.iter().filter_map(|row| Some((row.cells[column]?, row.baseline?))).collect();
    if both.is_empty() {
        return None;
    }
    let baseline_total: f64 = both.iter().map(|(_, baseline)| baseline).sum();
    let total: f64 = both.iter().map(|(cell, _)| cell.value).sum();
    let percents: f64 = both.iter().map(|(cell, _)| cell.percent).sum();
    Some(ColumnSummary {
        rows: both.len(),
        total: cell(total, baseline_total),
        baseline_total,
        mean_percent: percents / both.len() as f64,
    })
}
