//! Samples, one a row, as other programs want them: every condition in a column of its own.

use std::borrow::Cow;
use std::io::{self, Write};

/// One measured value with the conditions under which it was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TidyRow {
    /// Conditions, name and value, such as ("subject", "stripe"), ("processes", "4"). Rows may
    /// differ in theirs: a condition that a row does not have is an empty field.
    pub dimensions: Vec<(String, String)>,
    /// The measured metric, such as "latency_p99".
    pub metric: String,
    /// The value, in `unit`.
    pub value: f64,
    /// The unit, such as "ns".
    pub unit: String,
    /// Number of the trial in the plan.
    pub trial: u32,
    /// Which repetition of its cell, from 1.
    pub repetition: u32,
    /// The verdict: "ok", "suspect", "invalid", or "unsettled".
    pub verdict: String,
}

/// The columns that every row has, after its conditions.
pub(super) const FIXED: [&str; 6] = ["metric", "value", "unit", "trial", "repetition", "verdict"];

/// The names of all conditions, in order of first appearance.
pub(super) fn dimension_names(rows: &[TidyRow]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| &row.dimensions) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

impl TidyRow {
    /// The value of a condition; empty if the row does not have it.
    pub(super) fn dimension(&self, name: &str) -> &str {
        let mut dimensions = self.dimensions.iter();
        dimensions.find(|(there, _)| there == name).map_or("", |(_, value)| value)
    }
}

/// Writes the rows as CSV (RFC 4180) with a header. Texts are kept as they are, so a program that
/// takes fields for formulas must be told not to.
///
/// # Errors
///
/// When `out` cannot be written.
pub fn write_csv(rows: &[TidyRow], out: &mut impl Write) -> io::Result<()> {
    let names = dimension_names(rows);
    for name in &names {
        write!(out, "{},", field(name))?;
    }
    write!(out, "{}\r\n", FIXED.join(","))?;
    for row in rows {
        for name in &names {
            write!(out, "{},", field(row.dimension(name)))?;
        }
        // Rust writes the shortest digits that give the same value back.
        let value = if row.value.is_finite() { row.value.to_string() } else { String::new() };
        let (metric, unit, verdict) = (field(&row.metric), field(&row.unit), field(&row.verdict));
        write!(out, "{metric},{value},{unit},{},{},{verdict}\r\n", row.trial, row.repetition)?;
    }
    Ok(())
}

/// A text as a field, in quotes where it must be.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\r', '\n']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(dimensions: &[(&str, &str)], value: f64) -> TidyRow {
        TidyRow {
            dimensions: dimensions.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            metric: "iops".into(),
            value,
            unit: "1/s".into(),
            trial: 7,
            repetition: 2,
            verdict: "ok".into(),
        }
    }

    fn csv(rows: &[TidyRow]) -> String {
        let mut out = Vec::new();
        write_csv(rows, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let rows = [row(&[("subject", "a, \"b\"\r\nc"), ("op", "read")], 0.1)];
        assert_eq!(
            csv(&rows),
            "subject,op,metric,value,unit,trial,repetition,verdict\r\n\
             \"a, \"\"b\"\"\r\nc\",read,iops,0.1,1/s,7,2,ok\r\n"
        );
    }

    #[test]
    fn rows_may_differ_in_their_conditions() {
        let rows = [
            row(&[("a", "1"), ("b", "2")], 1.0),
            row(&[("b", "3")], f64::NAN),
            row(&[("c", "4"), ("a", "5")], 1e300),
        ];
        let text = csv(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "a,b,c,metric,value,unit,trial,repetition,verdict");
        assert_eq!(lines[1], "1,2,,iops,1,1/s,7,2,ok");
        assert_eq!(lines[2], ",3,,iops,,1/s,7,2,ok");
        assert!(lines[3].starts_with("5,,4,iops,1000000"), "{}", lines[3]);
    }

    #[test]
    fn no_rows_leave_the_header() {
        assert_eq!(csv(&[]), "metric,value,unit,trial,repetition,verdict\r\n");
    }
}
