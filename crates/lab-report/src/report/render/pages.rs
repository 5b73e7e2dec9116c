//! The report as documents, made of templates: a page without script, font, picture or style from
//! elsewhere, that can be mailed, printed, archived, and read in ten years; and GitHub-flavoured
//! Markdown, whose charts are links to the SVG files beside it.

use std::collections::BTreeMap;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Error, Output, State, Value, context, escape_formatter};

use super::chart::{Palette, render_svg};
use super::text::{printable, printable_lines, sign};
use crate::report::model::{Report, Tone, TrustReason};
use braid_lab::LabError;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const MARKDOWN: &str = include_str!("page.md");
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
    let palette = Palette::of(report);
    let charts = report.charts().map(|chart| (chart.id.as_str(), render_svg(chart, &palette)));
    let doubts: Vec<&TrustReason> = report.trust.doubts().take(MOST_DOUBTS).collect();
    let page = render(
        "page.html",
        context! {
            report,
            doubts,
            charts => charts.collect::<BTreeMap<&str, String>>(),
            style => STYLE,
            trust => report.trust.sentence(),
            folded_from => FOLDED_FROM,
            version => env!("CARGO_PKG_VERSION"),
        },
    )?;
    // Control statements of the template leave lines of blanks behind.
    let lines = page.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

/// The report without its details. Charts are looked for in `charts/` beside the file.
///
/// # Errors
///
/// When the template does not fit the data, which is a mistake in this program.
pub fn render_markdown(report: &Report) -> Result<String, LabError> {
    let signs = [Tone::Better, Tone::Worse, Tone::Same, Tone::Suspect, Tone::Invalid];
    let signs: BTreeMap<Tone, &str> = signs.map(|tone| (tone, sign(tone))).into();
    render("page.md", context! { report, signs, trust => report.trust.sentence() })
}

fn render(name: &str, data: Value) -> Result<String, LabError> {
    let rendered = || engine()?.get_template(name)?.render(data);
    rendered().map_err(|error| LabError::Serialise { what: "the page", reason: error.to_string() })
}

fn engine() -> Result<Environment<'static>, Error> {
    let mut engine = Environment::new();
    engine.set_trim_blocks(true);
    engine.set_auto_escape_callback(|name| match name.ends_with(".md") {
        true => AutoEscape::Custom("markdown"),
        false => AutoEscape::Html,
    });
    engine.set_formatter(write);
    engine.add_filter("says", says);
    engine.add_filter("lines", |text: &str| {
        let lines = text.trim().lines().map(markdown).collect::<Vec<_>>();
        Value::from_safe_string(lines.join("<br>"))
    });
    engine.add_template("page.html", PAGE)?;
    engine.add_template("page.md", MARKDOWN)?;
    Ok(engine)
}

/// Every text that a template writes passes here. A browser makes a blank of a new line but where the
/// style keeps it.
fn write(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    let text = value.as_str().filter(|_| !value.is_safe() && value.kind() == ValueKind::String);
    match (text, state.auto_escape()) {
        (Some(text), AutoEscape::Custom(_)) => Ok(out.write_str(&markdown(text))?),
        (None, AutoEscape::Custom(_)) => Ok(out.write_str(&value.to_string())?),
        (Some(text), _) => escape_formatter(out, state, &Value::from(printable_lines(text))),
        (None, _) => escape_formatter(out, state, value),
    }
}

/// The meaning of a colour in words, for readers that do not see it; empty if the text suffices.
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

/// One line in which nothing is markup: every character that could be is escaped, in the way that
/// also holds inside a table. What is markup only at the start of a line, or before a word, is
/// left alone elsewhere, so that the text can be read as it is too.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let text = printable(text);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        // Of addresses and of names of emoji.
        let before_word = chars.peek().is_some_and(|next| !next.is_whitespace());
        match c {
            // Entities, because a backslash does not stop mentions and HTML.
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' => out.extend(['\\', c]),
            ':' if before_word => out.push_str("\\:"),
            '-' | '+' | '=' if out.is_empty() => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}
