//! The analysis as JSON (medians, intervals, comparisons) and the samples as CSV (one line each).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::analysis::{Analysis, Row};
use crate::error::LabError;
use crate::stats::{Estimate, IntervalKind, Ratio, Verdict};
use crate::store::StoredTrial;
use crate::tool::Sample;

/// Version of the JSON's form. It rises when a field changes its meaning or goes.
const OUTPUT_VERSION: u32 = 1;

/// The analysis as JSON: values in the units that each metric names, ratios in percent.
///
/// # Errors
///
/// When a value cannot be written as JSON.
pub fn render_json(analysis: &Analysis) -> Result<String, LabError> {
    let groups: Vec<Value> = analysis
        .groups
        .iter()
        .map(|group| {
            let work = &group.workload;
            json!({
                "workload": work.label(),
                "tool": work.tool,
                "pattern": work.pattern,
                "op": work.op,
                "block_size_bytes": work.block_size.0,
                "iodepth": work.iodepth,
                "processes": work.processes,
                "subjects": group.rows.iter().map(row_of).collect::<Vec<_>>(),
            })
        })
        .collect();
    let value = json!({
        "output_version": OUTPUT_VERSION,
        "campaign": analysis.campaign,
        "environment": analysis.environment,
        "started_unix_s": analysis.started_unix_s.map(|(first, _)| first),
        "trials_ok": analysis.progress.0,
        "trials_planned": analysis.progress.1,
        "notes": analysis.sharing.iter()
            .map(|(subject, note)| json!({ "subject": subject, "note": note }))
            .collect::<Vec<_>>(),
        "caveats": analysis.caveats,
        "workloads": groups,
    });
    serde_json::to_string_pretty(&value)
        .map_err(|error| LabError::Serialise { what: "the report", reason: error.to_string() })
}

fn row_of(row: &Row) -> Value {
    let metrics: serde_json::Map<String, Value> = row
        .estimates
        .iter()
        .map(|(metric, estimate)| {
            let mut value = estimate_of(estimate);
            value["unit"] = json!(metric.unit());
            (metric.name().to_owned(), value)
        })
        .collect();
    json!({
        "subject": row.subject,
        "baseline": row.baseline,
        "repetitions": row.throughputs.len(),
        "metrics": metrics,
        "throughput_of_baseline_percent": row.ratio.as_ref().map(ratio_of),
        "latency_p99_of_baseline_percent": row.latency_ratio.as_ref().map(ratio_of),
    })
}

fn estimate_of(estimate: &Estimate) -> Value {
    let kind = match estimate.kind {
        IntervalKind::Range(_) => "range",
        IntervalKind::Bootstrap95 => "bootstrap_95",
    };
    json!({
        "median": estimate.median,
        "low": estimate.low,
        "high": estimate.high,
        "interval": kind,
    })
}

fn ratio_of(ratio: &Ratio) -> Value {
    let mut value = estimate_of(&ratio.percent);
    value["verdict"] = json!(match ratio.verdict() {
        Verdict::Above => "above",
        Verdict::Below => "below",
        Verdict::NotDistinguishable => "not_distinguishable",
    });
    value
}

/// Every sample of every trial that went well, as CSV (RFC 4180) with a header.
pub fn render_csv(trials: &[(StoredTrial, Vec<Sample>)]) -> String {
    let mut text = String::from(
        "trial,repetition,subject,workload,region_bytes,started_unix_s,metric,value,unit\r\n",
    );
    for (trial, samples) in trials {
        for sample in samples {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{},{},{},{},{},{},{},{},{}\r\n",
                trial.number,
                trial.repetition,
                quote(&trial.subject),
                quote(&trial.workload),
                trial.region_bytes,
                trial.started_unix_s,
                sample.metric.name(),
                sample.value,
                sample.metric.unit()
            );
        }
    }
    text
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        assert_eq!(quote("plain"), "plain");
        assert_eq!(quote("random read 4K, depth 32"), "\"random read 4K, depth 32\"");
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
    }
}
