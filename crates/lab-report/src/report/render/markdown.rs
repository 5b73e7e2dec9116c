//! The report as GitHub-flavoured Markdown. Charts are links to the SVG files beside it.

use super::text::printable;
use crate::report::model::{Block, Cell, Chart, Report, Table, Tone, TrustBox};

/// The whole report. Charts are looked for in `charts/` beside the file.
pub fn render_markdown(report: &Report) -> String {
    let mut out = Out(format!("# {}\n", line(&report.title)));
    out.paragraph(&line(&report.question));
    out.paragraph(&emphasis(&report.subtitle));
    for (place, sentence) in report.answer.iter().enumerate() {
        match place {
            0 => out.paragraph(&format!("**{}**", line(sentence))),
            _ => out.paragraph(&line(sentence)),
        }
    }
    if let Some(picture) = &report.picture {
        render_chart(&mut out, picture);
    }
    render_table(&mut out, &report.table, "##");
    render_trust(&mut out, &report.trust);
    for section in &report.sections {
        out.paragraph(&format!("## {}", line(&section.title)));
        out.paragraph(&line(&section.lead));
        for block in &section.blocks {
            match block {
                Block::Table(table) => render_table(&mut out, table, "###"),
                Block::Chart(chart) => render_chart(&mut out, chart),
            }
        }
    }
    render_table(&mut out, &report.subjects, "##");
    if !report.environment.is_empty() {
        out.paragraph("## Where it was measured");
        let mut rows = String::from("| | |\n|:--|:--|");
        for (name, value) in &report.environment {
            rows += &format!("\n| {} | {} |", line(name), line(value));
        }
        out.paragraph(&rows);
    }
    render_table(&mut out, &report.commands, "##");
    if !report.again.is_empty() {
        out.paragraph("## Again");
        out.paragraph(&fenced(&report.again));
    }
    out.0
}

/// Paragraphs with an empty line between them.
struct Out(String);

impl Out {
    fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            self.0.push('\n');
            self.0.push_str(text);
            self.0.push('\n');
        }
    }
}

fn render_trust(out: &mut Out, trust: &TrustBox) {
    if trust.reasons.is_empty() && trust.ok == 0 {
        return;
    }
    out.paragraph("## What to doubt");
    out.paragraph(&format!(
        "{} numbers nothing speaks against, {} suspect, {} invalid, {} not measured.",
        trust.ok, trust.suspect, trust.invalid, trust.missing
    ));
    for reason in &trust.reasons {
        out.paragraph(&format!(
            "- {}{}{}{}{}",
            sign(reason.tone),
            match reason.rule.as_str() {
                "" => String::new(),
                rule => format!("**{}**: ", line(rule)),
            },
            line(&reason.why),
            if reason.action.is_empty() { "" } else { " → " },
            line(&reason.action)
        ));
        if !reason.cells.is_empty() {
            let cells: Vec<String> = reason.cells.iter().map(|cell| line(cell)).collect();
            out.paragraph(&format!(
                "  <details><summary>{}</summary>{}</details>",
                numbers(cells.len()),
                cells.join("; ")
            ));
        }
    }
}

/// How many numbers a reason concerns.
pub(super) fn numbers(count: usize) -> String {
    match count {
        1 => "1 number".to_owned(),
        many => format!("{many} numbers"),
    }
}

fn render_table(out: &mut Out, table: &Table, level: &str) {
    if table.columns.is_empty() {
        return;
    }
    if !table.title.is_empty() {
        out.paragraph(&format!("{level} {}", line(&table.title)));
    }
    out.paragraph(&line(&table.note));
    let heads = table.columns.iter().map(|column| line(&column.heading));
    let rules = table.columns.iter().map(|column| if column.numeric { "--:" } else { ":--" });
    let mut rows = vec![row_of(heads), format!("|{}|", rules.collect::<Vec<_>>().join("|"))];
    for row in &table.rows {
        rows.push(row_of(row.cells.iter().map(|cell| {
            let text = cell_text(cell);
            if row.total && !text.is_empty() { format!("**{text}**") } else { text }
        })));
    }
    out.paragraph(&rows.join("\n"));
}

fn row_of(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn cell_text(cell: &Cell) -> String {
    let text = format!("{}{}", sign(cell.tone), lines(&cell.text));
    match cell.detail.as_str() {
        "" => text,
        detail => format!("{text} <sub>{}</sub>", lines(detail)),
    }
}

/// The lines of a text in a cell, which is one line of the file.
fn lines(text: &str) -> String {
    text.trim().lines().map(line).collect::<Vec<_>>().join("<br>")
}

/// What the colour says where there is none.
pub(super) fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Baseline | Tone::Missing => "",
        Tone::Better => "▲ ",
        Tone::Worse => "▼ ",
        Tone::Same => "≈ ",
        Tone::Suspect => "⚠ ",
        Tone::Invalid => "✕ ",
    }
}

fn render_chart(out: &mut Out, chart: &Chart) {
    out.paragraph(&format!("![{}](charts/{}.svg)", line(&chart.title), chart.id));
    out.paragraph(&emphasis(&chart.note));
}

fn emphasis(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("*{}*", line(text)),
    }
}

/// One line in which nothing is markup: every character that could be is escaped, in the way that
/// also holds inside a table. What is markup only at the start of a line, or before a word, is
/// left alone elsewhere, so that the text can be read as it is too.
fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let text = printable(text);
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let is_first = out.is_empty();
        // Of addresses and of names of emoji.
        let before_word = chars.peek().is_some_and(|next| !next.is_whitespace());
        match c {
            // Entities, because a backslash does not stop mentions and HTML.
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            ':' if before_word => out.push_str("\\:"),
            '-' | '+' | '=' if is_first => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Command lines in a block whose fence is longer than any in them.
fn fenced(lines: &[String]) -> String {
    let mut longest = 0;
    for line in lines {
        let runs = line.split(|c| c != '`').map(str::len);
        longest = longest.max(runs.max().unwrap_or(0));
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let text: Vec<_> = lines.iter().map(|line| printable(line)).collect();
    format!("{fence}sh\n{}\n{fence}", text.join("\n"))
}
