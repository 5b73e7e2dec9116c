//! Samples, one a row, as other programs want them: every condition in a column of its own.

use std::io::{self, Write};

/// One measured value with the conditions under which it was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TidyRow {
    /// Conditions, name and value, such as ("subject", "stripe"), ("processes", "4"). Rows may
    /// differ in theirs: a condition that a row does not have is an empty field.
    pub dimensions: Vec<(String, String)>,
    /// What was measured, such as "latency_p99".
    pub metric: String,
    /// The value, in `unit`.
    pub value: f64,
    /// The unit, such as "ns".
    pub unit: String,
    /// Number of the trial in the plan.
    pub trial: u32,
    /// Which repetition of its cell, from 1.
    pub repetition: u32,
    /// Whether it can be believed: "ok", "suspect", "invalid", or "unsettled".
    pub verdict: String,
}

/// The columns that every row has, after its conditions.
pub(super) const FIXED: [&str; 6] = ["metric", "value", "unit", "trial", "repetition", "verdict"];

/// The names of all conditions, in order of first appearance.
pub(super) fn dimension_names(rows: &[TidyRow]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        // Nearly all rows have the same conditions in the same order as those before.
        let known = row.dimensions.len() <= names.len()
            && row.dimensions.iter().zip(&names).all(|((name, _), known)| name == known);
        if known {
            continue;
        }
        for (name, _) in &row.dimensions {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names
}

impl TidyRow {
    /// The value of a condition, with a hint at which place it may stand; empty if the row does
    /// not have it.
    pub(super) fn dimension(&self, name: &str, hint: usize) -> &str {
        let at_hint = self.dimensions.get(hint).filter(|(there, _)| there == name);
        at_hint
            .or_else(|| self.dimensions.iter().find(|(there, _)| there == name))
            .map_or("", |(_, value)| value)
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
        write_field(out, name)?;
        out.write_all(b",")?;
    }
    write!(out, "{}\r\n", FIXED.join(","))?;
    for row in rows {
        for (place, name) in names.iter().enumerate() {
            write_field(out, row.dimension(name, place))?;
            out.write_all(b",")?;
        }
        write_field(out, &row.metric)?;
        // Rust writes the shortest digits that give the same value back.
        if row.value.is_finite() {
            write!(out, ",{},", row.value)?;
        } else {
            out.write_all(b",,")?;
        }
        write_field(out, &row.unit)?;
        write!(out, ",{},{},", row.trial, row.repetition)?;
        write_field(out, &row.verdict)?;
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

fn write_field(out: &mut impl Write, field: &str) -> io::Result<()> {
    if field.contains([',', '"', '\r', '\n']) {
        write!(out, "\"{}\"", field.replace('"', "\"\""))
    } else {
        out.write_all(field.as_bytes())
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
