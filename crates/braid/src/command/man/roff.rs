//! A document of docs/ as a manual page of section 7: Markdown to man(7) and tbl(1). Pure.
//!
//! It knows what those documents use: headings, paragraphs, lists, code, tables; bold, italic, code, links.
//! All else comes out as it is written. Deliberately absent: Markdown in general.

use std::fmt::Write as _;

/// The page `NAME(7)` of a document, whose first line is its title; `source` is the program and version.
pub(super) fn page(name: &str, markdown: &str, source: &str) -> String {
    let (title, body) = markdown.split_once('\n').unwrap_or((markdown, ""));
    let title = title.trim_start_matches(['#', ' ']);
    // The first line says that there are tables.
    let mut page =
        format!("'\\\" t\n.TH {} 7 \"\" \"{source}\"\n.ad l\n.nh\n", name.to_uppercase());
    let _ = writeln!(page, ".SH NAME\n{name} \\- {}\n.SH DESCRIPTION", inline(title));
    let mut writer = Writer { page, state: State::Between, heading: Vec::new() };
    let mut lines = body.lines().peekable();
    while let Some(line) = lines.next() {
        let is_heading_of_table = lines.peek().is_some_and(|next| next.starts_with("|--"));
        writer.line(line, is_heading_of_table);
    }
    writer.go_to(State::Between);
    writer.page
}

/// Columns that a table may have on a terminal of 80.
const WIDEST: usize = 3;

/// State after the previous lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing.
    Between,
    Paragraph,
    Item,
    /// By indentation.
    Code,
    /// Between two fences.
    Fenced,
    Table,
    /// Rows of a table that is too wide for boxes, each as a paragraph.
    Rows,
    /// An HTML comment, which is not shown.
    Comment,
}

struct Writer {
    page: String,
    state: State,
    /// Heading of the table.
    heading: Vec<String>,
}

impl Writer {
    fn put(&mut self, line: &str) {
        self.page.push_str(line);
        self.page.push('\n');
    }

    /// Ends what was begun, and begins something else.
    fn go_to(&mut self, next: State) {
        match self.state {
            State::Code | State::Fenced => self.put(".fi\n.RE"),
            State::Table => self.put(".TE\n.sp"),
            _ => {}
        }
        if matches!(next, State::Code | State::Fenced) {
            self.put(".PP\n.RS 4\n.nf");
        }
        self.state = next;
    }

    fn line(&mut self, line: &str, is_heading_of_table: bool) {
        let fence = line.trim_start().starts_with("```");
        match self.state {
            State::Comment => {
                if line.contains("-->") {
                    self.state = State::Between;
                }
            }
            State::Fenced if fence => self.go_to(State::Between),
            State::Fenced => self.put(&verbatim(line)),
            _ if fence => self.go_to(State::Fenced),
            State::Code if line.is_empty() => self.put(""),
            State::Code if line.starts_with("    ") => self.put(&verbatim(&line[4..])),
            _ if line.trim().is_empty() => self.go_to(State::Between),
            _ if line.starts_with("<!--") => {
                let next = if line.contains("-->") { State::Between } else { State::Comment };
                self.go_to(next);
            }
            State::Between if line.starts_with("    ") => {
                self.go_to(State::Code);
                self.put(&verbatim(&line[4..]));
            }
            _ if line.starts_with('|') => self.row(line, is_heading_of_table),
            _ => self.text(line),
        }
    }

    fn text(&mut self, line: &str) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        let number = line.trim_start().split_once(". ").filter(|(number, _)| {
            !number.is_empty() && number.len() < 3 && number.bytes().all(|one| one.is_ascii_digit())
        });
        if level > 0 && heading.starts_with(' ') {
            self.go_to(State::Between);
            let macro_ = if level <= 2 { ".SH" } else { ".SS" };
            // A heading may have spaces, and what stands in quotes.
            let text = inline(heading.trim()).replace('"', "\\(dq");
            self.put(&format!("{macro_} \"{text}\""));
        } else if let Some(item) = line.trim_start().strip_prefix("* ") {
            self.go_to(State::Item);
            self.put(".IP \\(bu 2");
            self.put(&inline(item));
        } else if let Some((number, item)) = number {
            self.go_to(State::Item);
            self.put(&format!(".IP {number}. 4"));
            self.put(&inline(item));
        } else {
            if !matches!(self.state, State::Paragraph | State::Item) {
                self.go_to(State::Paragraph);
                self.put(".PP");
            }
            self.put(&inline(line.trim()));
        }
    }

    /// A line of a table: its heading, what separates that, or a row.
    fn row(&mut self, line: &str, is_heading: bool) {
        let cells = cells(line);
        if is_heading {
            let format = |of: &str| vec![of; cells.len()].join(" ");
            let begin = format!(".TS\nallbox;\n{}\n{}.", format("lbx"), format("lx"));
            let is_wide = cells.len() > WIDEST;
            self.go_to(if is_wide { State::Rows } else { State::Table });
            self.heading = cells;
            if is_wide {
                return;
            }
            self.put(&begin);
            return self.put(&boxes(&self.heading, self.heading.len()));
        }
        match self.state {
            _ if line.starts_with("|--") => {}
            State::Table => self.put(&boxes(&cells, self.heading.len())),
            State::Rows => {
                let named = self.heading.iter().zip(&cells).skip(1);
                let facts: Vec<String> = named
                    .filter(|(_, cell)| !cell.is_empty())
                    .map(|(heading, cell)| inline(&format!("*{heading}*: {cell}")))
                    .collect();
                let first = cells.first().map(|cell| inline(cell)).unwrap_or_default();
                self.put(&format!(".TP\n{first}\n{}", facts.join("\n.br\n")));
            }
            _ => {}
        }
    }
}

/// A row of as many boxes as the heading has: of another number tbl stops.
fn boxes(cells: &[String], columns: usize) -> String {
    let texts = cells.iter().map(String::as_str).chain(std::iter::repeat(""));
    let block = |cell: &str| format!("T{{\n{}\nT}}", inline(cell));
    texts.take(columns).map(block).collect::<Vec<String>>().join("\t")
}

/// Splits a row into its cells; bars may be escaped.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let line = line.strip_suffix('|').unwrap_or(line).replace("\\|", "\u{0}");
    // Of other marks that are escaped there is this one.
    line.split('|').map(|cell| cell.trim().replace('\u{0}', "|").replace("\\_", "_")).collect()
}

/// Text as it is: a line of code.
fn verbatim(line: &str) -> String {
    protected(escaped(&line.replace('\t', "    ")))
}

/// Escapes characters with a meaning in roff.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A line that is no request, whatever it begins with.
fn protected(line: String) -> String {
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

/// Text with what is bold, italic, code, and links in it.
fn inline(text: &str) -> String {
    breakable(&fonts(text))
}

/// Boxes of tables are narrow: long words may be broken behind what joins their parts.
fn breakable(text: &str) -> String {
    let word = |word: &str| {
        let parts = word.split_inclusive(['/', '_', ':', ',', '{', '|', '.', '=', '-']);
        if word.len() > LONG { parts.collect::<Vec<_>>().join("\\:") } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Bytes of a word that fit into every box.
const LONG: usize = 16;

fn fonts(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['*', '`', '[', '!']) {
        let (before, from) = rest.split_at(at);
        out.push_str(&escaped(before));
        let marked =
            [("**", "\\fB"), ("`", "\\fB"), ("*", "\\fI")].into_iter().find_map(|(mark, font)| {
                let (inner, after) = from.strip_prefix(mark)?.split_once(mark)?;
                let is_text = !inner.is_empty() && !inner.starts_with(' ') && !inner.ends_with(' ');
                is_text.then_some((mark, font, inner, after))
            });
        if let Some((mark, font, inner, after)) = marked {
            let inner = if mark == "`" { escaped(inner) } else { fonts(inner) };
            let _ = write!(out, "{font}{inner}\\fR");
            rest = after;
        } else if let Some((label, target, after)) = link(from.trim_start_matches('!')) {
            out.push_str(
                &match target.split('#').next().and_then(|file| file.strip_suffix(".md")) {
                    Some(page) if !page.contains('/') => {
                        format!("{} (\\fBbraid\\-{}\\fR(7))", fonts(label), escaped(page))
                    }
                    _ if target.contains("://") => {
                        format!("{} ({})", fonts(label), escaped(target))
                    }
                    _ => fonts(label),
                },
            );
            rest = after;
        } else {
            let first = from.chars().next().map_or(0, char::len_utf8);
            out.push_str(&escaped(&from[..first]));
            rest = &from[first..];
        }
    }
    out.push_str(&escaped(rest));
    protected(out)
}

/// `[label](target)` at the start of a text: both, and what follows.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, after) = text.strip_prefix('[')?.split_once("](")?;
    let (target, after) = after.split_once(')')?;
    (!label.contains(']')).then_some((label, target, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_page() {
        let markdown = "# RAM disks\n\nOf *some* **memory**,\n.as `a-b` is; see [arrays](arrays.md#x).\n\n    braid up \\x\n\n    .more\n\n\
                        ## A \"part\"\n* one\n  and more\n* two\n1. first\n\n| a | b |\n|---|---|\n| `x` | y \\| z |\n| short |\n\n\
                        | a | b | c | d |\n|--|--|--|--|\n| x | | 2 | `3` |\n\n<!-- begin\nhidden -->\n```\n* code\n```\nEnd: 2 * 3 [sic] it's.\n";
        let expected = "'\\\" t\n.TH BRAID-RAM 7 \"\" \"braid 1\"\n.ad l\n.nh\n.SH NAME\nbraid-ram \\- RAM disks\n.SH DESCRIPTION\n\
            .PP\nOf \\fIsome\\fR \\fBmemory\\fR,\n\\&.as \\fBa\\-b\\fR is; see arrays (\\fBbraid\\-\\:arrays\\fR(7)).\n\
            .PP\n.RS 4\n.nf\nbraid up \\ex\n\n\\&.more\n\n.fi\n.RE\n\
            .SH \"A \\(dqpart\\(dq\"\n.IP \\(bu 2\none\nand more\n.IP \\(bu 2\ntwo\n.IP 1. 4\nfirst\n\
            .TS\nallbox;\nlbx lbx\nlx lx.\nT{\na\nT}\tT{\nb\nT}\nT{\n\\fBx\\fR\nT}\tT{\ny | z\nT}\nT{\nshort\nT}\tT{\n\nT}\n.TE\n.sp\n.TP\nx\n\\fIc\\fR: 2\n.br\n\\fId\\fR: \\fB3\\fR\n\
            .PP\n.RS 4\n.nf\n* code\n.fi\n.RE\n.PP\nEnd: 2 * 3 [sic] it's.\n";
        assert_eq!(page("braid-ram", markdown, "braid 1"), expected);
    }

    #[test]
    fn long_words_of_tables_may_be_broken() {
        assert_eq!(
            breakable("and/or crates/sim/tests/kernel.rs::x"),
            "and/or crates/\\:sim/\\:tests/\\:kernel.\\:rs:\\::\\:x"
        );
        assert_eq!(cells("| a\\_b | c \\| d |"), ["a_b", "c | d"]);
    }

    #[test]
    fn every_document_is_a_page_without_markup_and_with_its_tables_ended() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let mut pages = 0;
        for entry in std::fs::read_dir(docs).unwrap().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = page("braid-x", &std::fs::read_to_string(&path).unwrap(), "braid");
            let count = |of: &str| text.lines().filter(|line| *line == of).count();
            for (begin, end) in [(".TS", ".TE"), (".nf", ".fi"), (".RS 4", ".RE")] {
                assert_eq!(count(begin), count(end), "{begin} in {}", path.display());
            }
            assert!(text.lines().all(|line| !line.starts_with("|--") && !line.starts_with("## ")));
            pages += 1;
        }
        assert!(pages > 10, "{pages}");
    }
}
