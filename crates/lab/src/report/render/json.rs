//! The report as JSON: the model as it is, with the version of its form.

use serde::Serialize;

use crate::error::LabError;
use crate::report::model::Report;

/// Version of the JSON's form; it rises when a field changes its meaning or goes. Version 1 was
/// the analysis itself; version 2
/// had `null` where a chart has no value, which is now the reason, and plain numbers in heat maps.
const OUTPUT_VERSION: u32 = 3;

#[derive(Serialize)]
struct Document<'a> {
    output_version: u32,
    #[serde(flatten)]
    report: &'a Report,
}

/// The whole report as JSON, indented.
///
/// # Errors
///
/// When a value cannot be written as JSON, which is a mistake in this program.
pub fn render_json(report: &Report) -> Result<String, LabError> {
    serde_json::to_string_pretty(&Document { output_version: OUTPUT_VERSION, report })
        .map_err(|error| LabError::Serialise { what: "the report", reason: error.to_string() })
}
