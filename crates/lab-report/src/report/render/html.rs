//! The report as one page: a file without script, font, picture or style from elsewhere, that can
//! be mailed, printed, archived, and read in ten years.

use std::collections::BTreeMap;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Value, context, escape_formatter};
use serde::Serialize;

use super::chart::{Frame, Palette, render_svg};
use super::text::printable_lines;
use crate::report::model::{Report, Tone, TrustReason};
use braid_lab::LabError;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
/// A table of results with so many rows is folded.
const FOLDED_FROM: usize = 60;
/// Doubts above the picture.
const MOST_DOUBTS: usize = 3;

/// The whole page.
///
/// # Errors
///
/// When the template does not fit the data, which is a mistake in this program.
pub fn render_html(report: &Report) -> Result<String, LabError> {
    render(report)
        .map_err(|error| LabError::Serialise { what: "the page", reason: error.to_string() })
}

fn render(report: &Report) -> Result<String, minijinja::Error> {
    let palette = Palette::of(report);
    let mut charts: BTreeMap<&str, String> = BTreeMap::new();
    for chart in report.charts() {
        charts.insert(&chart.id, render_svg(chart, &palette, Frame::Inline));
    }
    let trust = &report.trust;
    let numbers = trust.ok + trust.suspect + trust.invalid + trust.missing;
    let is_told = |one: &&TrustReason| one.tone != Tone::Missing || one.rule == "failed";
    let doubts: Vec<&TrustReason> =
        report.trust.reasons.iter().filter(is_told).take(MOST_DOUBTS).collect();
    let mut page = engine()?.get_template("page")?.render(context! {
        report,
        charts,
        style => STYLE,
        numbers,
        parts => trust_parts(report),
        folded_from => FOLDED_FROM,
        doubts => doubts,
        version => env!("CARGO_PKG_VERSION"),
    })?;
    // Control statements of the template leave lines of blanks behind.
    page = page.lines().filter(|line| !line.trim().is_empty()).fold(
        String::with_capacity(page.len()),
        |mut kept, line| {
            kept.push_str(line);
            kept.push('\n');
            kept
        },
    );
    Ok(page)
}

fn engine() -> Result<Environment<'static>, minijinja::Error> {
    let mut engine = Environment::new();
    engine.set_auto_escape_callback(|_| AutoEscape::Html);
    // Every text that the template writes passes here. A browser makes a blank of a new line but
    // where the style keeps it.
    engine.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() && value.kind() == ValueKind::String => {
            escape_formatter(out, state, &Value::from(printable_lines(text)))
        }
        _ => escape_formatter(out, state, value),
    });
    engine.add_filter("says", says);
    engine
        .add_filter("strength", |strength: f64| format!("{:.0}", strength.clamp(0.0, 1.0) * 100.0));
    engine.add_template("page", TEMPLATE)?;
    Ok(engine)
}

/// What a colour means, for those who do not see it; nothing where the text is all.
fn says(tone: &str) -> &'static str {
    match tone {
        "better" => "better than the baseline",
        "worse" => "worse than the baseline",
        "same" => "not distinguishable from the baseline",
        "suspect" => "suspect",
        "invalid" => "invalid",
        _ => "",
    }
}

/// A part of the bar over the trust box.
#[derive(Serialize)]
struct TrustPart {
    tone: Tone,
    count: usize,
    label: &'static str,
}

fn trust_parts(report: &Report) -> Vec<TrustPart> {
    let trust = &report.trust;
    vec![
        TrustPart { tone: Tone::Better, count: trust.ok, label: "nothing against them" },
        TrustPart { tone: Tone::Suspect, count: trust.suspect, label: "suspect" },
        TrustPart { tone: Tone::Invalid, count: trust.invalid, label: "invalid" },
        TrustPart { tone: Tone::Missing, count: trust.missing, label: "not measured" },
    ]
}
