//! The report for the terminal, on one screen: the question, the answer, a table of one row a subject,
//! what to doubt in at most three lines, and where the rest is.
//!
//! ```text
//! quick: Which layout is fastest?
//! 48 of 48 trials · 2026-11-23 10:12 UTC · bench, Linux 6.1
//!
//! Take stripe: 1.90 times single in sequential reads (1.88 to 1.93).
//!
//! subject   sequential reads      random reads
//! ────────────────────────────────────────────
//! single           22.1 MiB/s            640 1/s
//! stripe    ▲ 1.90 1.88 to 1.93   ≈ 1.01 0.98 to 1.04
//!
//! ⚠ the tool used 1.00 of the 1 core that its processes can use (3 numbers)
//! everything: results/report.html
//! ```
//!
//! Invariants: nothing is wider than the terminal: sentences and cells are broken at spaces, and a table
//! that is too wide even so becomes several, one under the other ([`table`]); what is left out is said,
//! and where it is.

mod table;

use comfy_table::{ContentArrangement, LineStyle, Table as Grid, TableStyle};

use super::markdown::{numbers, sign};
use super::text::{printable, shorten, wrap};
use crate::report::model::{Block, Report, Tone, TrustBox, TrustReason};

/// A line under the header and none between rows.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
/// Longest text of a cell.
const LONGEST: usize = 60;
/// Characters of a line, where the terminal does not say how many it has or has more: longer
/// lines are not read well.
const WIDEST: usize = 120;
/// A terminal narrower than this gets lines of this length all the same.
const NARROWEST: usize = 60;
/// Rows of a table that are shown of more.
const MOST_ROWS: usize = 20;
/// Lines of a table, so that all of the answer is on one screen, if as many rows are shown as these.
const MOST_LINES: usize = 26;
const FEWEST_ROWS: usize = 3;
/// Lines of doubt.
const MOST_DOUBTS: usize = 3;

/// The report as text, as wide as the terminal; with terminal colours if `colour`. It ends with where
/// all of it is: `whole`, a file or a command.
pub fn render_terminal(report: &Report, colour: bool, whole: &str) -> String {
    // `None` where the output is no terminal.
    let width = Grid::new().width().map_or(WIDEST, usize::from);
    render_within(report, colour, width.clamp(NARROWEST, WIDEST), whole)
}

/// The same in lines of `width` characters.
fn render_within(report: &Report, colour: bool, width: usize, whole: &str) -> String {
    let mut out = Out { text: String::new(), colour, width, whole };
    match report.question.as_str() {
        "" => out.bold(&report.title),
        question => out.bold(&format!("{}: {question}", report.title)),
    }
    out.sentence("", &report.subtitle);
    out.line("");
    for (place, sentence) in report.answer.iter().enumerate() {
        match place {
            0 => out.bold(sentence),
            _ => out.sentence("", sentence),
        }
    }
    out.table(&report.table);
    out.doubts(&report.trust);
    // A comparison of two runs has its lists here; a report's sections are in the files.
    for block in report.sections.iter().filter(|s| s.id == NOT_COMPARED).flat_map(|s| &s.blocks) {
        if let Block::Table(table) = block {
            out.table(table);
        }
    }
    out.sentence("", &format!("everything: {whole}"));
    out.text
}

/// The section that a terminal shows.
const NOT_COMPARED: &str = "not-compared";

struct Out<'a> {
    text: String,
    colour: bool,
    width: usize,
    whole: &'a str,
}

impl Out<'_> {
    fn line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// A text after a sign, its further lines under its first word; nothing of an empty one.
    fn sentence(&mut self, sign: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        for line in wrap(&format!("{sign}{}", printable(text)), self.width, sign.chars().count()) {
            self.line(&line);
        }
    }

    /// That something was left out, and where it is.
    fn left_out(&mut self, count: usize, what: &str) {
        let plural = if count == 1 { "" } else { "s" };
        self.sentence("… ", &format!("{count} more {what}{plural}: {}", self.whole));
    }

    fn bold(&mut self, text: &str) {
        for line in wrap(&printable(text), self.width, 0) {
            match self.colour && !line.is_empty() {
                true => self.line(&format!("\x1b[1m{line}\x1b[0m")),
                false => self.line(&line),
            }
        }
    }

    /// The gravest reasons in three lines together, what is impossible left to the files.
    fn doubts(&mut self, trust: &TrustBox) {
        let told = |tone: Tone, rule: &str| tone != Tone::Missing || rule == "failed";
        let reasons: Vec<_> =
            trust.reasons.iter().filter(|one| told(one.tone, &one.rule)).collect();
        self.line("");
        // Lines for those that do not fit into one of their own.
        let mut spare = MOST_DOUBTS.saturating_sub(reasons.len());
        for reason in reasons.iter().take(MOST_DOUBTS) {
            let lines = self.doubt(reason, 1 + spare);
            spare -= lines.len().saturating_sub(1).min(spare);
            lines.iter().for_each(|line| self.line(line));
        }
        match reasons.len().saturating_sub(MOST_DOUBTS) {
            0 => {}
            more => self.left_out(more, "doubt"),
        }
    }

    /// A reason in so many lines, its last words left out where there are more, and whom it concerns.
    fn doubt(&self, reason: &TrustReason, most: usize) -> Vec<String> {
        let concerned = match reason.cells.as_slice() {
            [] => String::new(),
            [only] => format!(" ({})", shorten(only, self.width / 3)),
            cells => format!(" ({})", numbers(cells.len())),
        };
        let sign = if sign(reason.tone).is_empty() { "- " } else { sign(reason.tone) };
        let mut words: Vec<&str> = reason.why.split_whitespace().collect();
        let mut rest = "";
        loop {
            let text =
                printable(&format!("{sign}{}{rest}{concerned}", words.join(" "))).into_owned();
            let lines = wrap(&text, self.width, sign.chars().count());
            if lines.len() <= most || words.pop().is_none() {
                return lines;
            }
            rest = " …";
        }
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new();
        // Cells that are too wide for the lines are broken at spaces.
        grid.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        if self.colour {
            grid.enforce_styling();
        } else {
            grid.force_no_tty();
        }
        grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_lines_of_doubt_at_most() {
        let reason = |n: usize| TrustReason {
            tone: Tone::Suspect,
            rule: "rule".to_owned(),
            why: format!("reason {n} of them"),
            action: String::new(),
            cells: vec!["a".to_owned(), "b".to_owned()],
        };
        let doubts = |count| {
            let trust =
                TrustBox { reasons: (0..count).map(reason).collect(), ..TrustBox::default() };
            let mut out =
                Out { text: String::new(), colour: false, width: 80, whole: "report.html" };
            out.doubts(&trust);
            out.text
        };
        let many = doubts(5);
        assert!(many.contains("⚠ reason 2 of them (2 numbers)"), "{many}");
        assert!(!many.contains("reason 3"), "{many}");
        assert!(many.ends_with("… 2 more doubts: report.html\n"), "{many}");
        assert!(!doubts(3).contains('…'));
    }

    #[test]
    fn a_doubt_takes_the_lines_that_others_leave() {
        let reason = |words: usize| TrustReason {
            tone: Tone::Suspect,
            rule: "rule".to_owned(),
            why: vec!["word"; words].join(" "),
            action: String::new(),
            cells: vec!["a".to_owned(), "b".to_owned()],
        };
        let doubts = |reasons: Vec<TrustReason>| {
            let mut out = Out { text: String::new(), colour: false, width: 60, whole: "page" };
            out.doubts(&TrustBox { reasons, ..TrustBox::default() });
            out.text.trim().lines().map(str::to_owned).collect::<Vec<String>>()
        };
        let alone = doubts(vec![reason(100)]);
        assert_eq!(alone.len(), 3, "{alone:?}");
        assert!(alone[2].ends_with("word … (2 numbers)"), "{alone:?}");
        let three = doubts(vec![reason(100), reason(2), reason(100)]);
        assert_eq!(three.len(), 3, "{three:?}");
        assert_eq!(three[1], "⚠ word word (2 numbers)");
        let two = doubts(vec![reason(15), reason(100)]);
        assert!(two.len() == 3 && two[1] == "  word word word word (2 numbers)", "{two:?}");
    }

    #[test]
    fn what_is_impossible_is_left_to_the_files() {
        let reason = |rule: &str| TrustReason {
            tone: Tone::Missing,
            rule: rule.to_owned(),
            why: format!("that was {rule}"),
            action: String::new(),
            cells: vec!["a: x".to_owned()],
        };
        let reasons = vec![reason("failed"), reason("impossible")];
        let report = Report {
            title: "a campaign".to_owned(),
            trust: TrustBox { reasons, ..TrustBox::default() },
            ..Report::default()
        };
        let text = render_within(&report, false, 80, "report.html");
        assert!(text.contains("that was failed (a: x)"), "{text}");
        assert!(!text.contains("impossible"), "{text}");
        assert!(text.ends_with("everything: report.html\n"), "{text}");
    }
}
