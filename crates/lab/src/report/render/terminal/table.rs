//! Tables in the terminal: one after the other where one would be too wide, cut where it would be
//! too long.
//!
//! ```text
//! subject   workload   a            subject   workload   b
//! ───────────────────────           ───────────────────────     the columns that say which row
//! single    read       1.0          single    read       2.0    it is stand in each
//! ```

use std::collections::BTreeSet;

use comfy_table::{Attribute, Cell as Shown, CellAlignment, Color};

use super::{LONGEST, MOST_ROWS, Out};
use crate::report::model::{Cell, Column, Row, Table, Tone};
use crate::report::render::markdown::sign;
use crate::report::render::text::{printable, shorten, wrap};

/// What stands between two columns.
const GAP: usize = 3;
/// Letters of a line of a heading, where its column is no wider.
const HEADING: usize = 18;
/// Letters to which the texts that say which row it is are cut at most.
const SHORTEST: usize = 8;

impl Out<'_> {
    pub(super) fn table(&mut self, table: &Table) {
        if table.columns.is_empty() || table.rows.is_empty() {
            return;
        }
        self.line("");
        if !table.title.is_empty() {
            self.sentence("", &table.title);
        }
        let names = naming_columns(table);
        let (rows, left_out) = first_rows(table);
        let cut = Cut { rows, columns: &table.columns };
        for (place, part) in cut.parts(names, self.width).into_iter().enumerate() {
            if place > 0 {
                self.line("");
            }
            let text = self.lay_out(&part);
            self.line(&text);
        }
        if left_out > 0 {
            self.left_out(left_out, "row");
        }
        if !table.note.is_empty() {
            self.sentence("", &table.note);
        }
    }

    fn lay_out(&self, part: &Part<'_>) -> String {
        let mut grid = self.grid();
        grid.set_header(part.columns.iter().map(|(_, heading)| heading));
        for (index, (column, _)) in part.columns.iter().enumerate() {
            if let Some(shown) = grid.column_mut(index).filter(|_| column.numeric) {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (total, cells) in &part.rows {
            grid.add_row(cells.iter().map(|(cell, text)| {
                let shown = look(Shown::new(text), cell.tone);
                if *total { shown.add_attribute(Attribute::Bold) } else { shown }
            }));
        }
        grid.trim_fmt()
    }
}

/// How many of the first columns say which row it is: as few as make all rows differ, and at least
/// one; no numbers but the first.
fn naming_columns(table: &Table) -> usize {
    let words = 1 + table.columns.iter().skip(1).take_while(|column| !column.numeric).count();
    let differ = |count: &usize| {
        let mut names: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|row| row.cells.iter().take(*count).map(|cell| cell.text.as_str()).collect())
            .collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1])
    };
    (1..words).find(differ).unwrap_or(words)
}

/// The first rows, and of the others those that sum up; how many are left out.
fn first_rows(table: &Table) -> (Vec<&Row>, usize) {
    let rows = table.rows.iter().enumerate();
    let kept: Vec<&Row> =
        rows.filter(|(place, row)| *place < MOST_ROWS || row.total).map(|(_, row)| row).collect();
    let left_out = table.rows.len() - kept.len();
    (kept, left_out)
}

/// What is shown of a table.
struct Cut<'t> {
    columns: &'t [Column],
    rows: Vec<&'t Row>,
}

/// A table that fits, with the texts of its cells.
struct Part<'t> {
    columns: Vec<(&'t Column, String)>,
    rows: Vec<(bool, Vec<(&'t Cell, String)>)>,
}

impl<'t> Cut<'t> {
    /// Tables of at most `width` characters, as few as there can be in this order, each with the
    /// first `names` columns.
    fn parts(&self, names: usize, width: usize) -> Vec<Part<'t>> {
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|column| self.width_of(column, LONGEST)).collect();
        let groups = self.groups(names);
        let width_of_group = |group: &[usize]| group.iter().map(|column| widths[*column]).sum();
        let widest: usize = groups.iter().map(|group| width_of_group(group)).max().unwrap_or(0);
        // The line under the heads ends one letter before the last gap does.
        let width = width + 1;
        let (longest, named) = self.shorten_names(names, width.saturating_sub(widest));
        let mut parts: Vec<Vec<usize>> = vec![(0..names).collect()];
        let mut used = named;
        for group in groups {
            let wanted: usize = width_of_group(&group);
            match parts.last_mut() {
                Some(part) if part.len() == names || used + wanted <= width => {
                    part.extend(group);
                    used += wanted;
                }
                _ => {
                    parts.push((0..names).chain(group).collect());
                    used = named + wanted;
                }
            }
        }
        parts.into_iter().map(|columns| self.part(&columns, names, longest)).collect()
    }

    /// Columns that stay together: a value and its percent, which share the name before their units.
    fn groups(&self, names: usize) -> Vec<Vec<usize>> {
        let stem = |column: usize| {
            let heading = &self.columns[column].heading;
            heading.rsplit_once(" [").map_or(heading.as_str(), |(name, _)| name)
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for column in names..self.columns.len() {
            match groups.last_mut() {
                Some(group) if stem(group[0]) == stem(column) => group.push(column),
                _ => groups.push(vec![column]),
            }
        }
        groups
    }

    /// How long the texts of the first columns may be, so that these have room, and how wide they
    /// are then.
    fn shorten_names(&self, names: usize, room: usize) -> (usize, usize) {
        let wide = |longest: usize| (0..names).map(|column| self.width_of(column, longest)).sum();
        let different = |longest: usize| -> usize {
            let text = |cell| shown_text(cell, longest);
            let texts = self.rows.iter().map(|row| row.cells.iter().take(names).map(text));
            texts.map(Iterator::collect).collect::<BTreeSet<Vec<String>>>().len()
        };
        let all = different(LONGEST);
        let fits = |longest: &usize| wide(*longest) <= room && different(*longest) == all;
        // A line that is too long is read, a name that others have as well is not.
        let longest = (SHORTEST..=LONGEST).rev().find(fits).unwrap_or(LONGEST);
        (longest, wide(longest))
    }

    fn width_of(&self, column: usize, longest: usize) -> usize {
        let lines = self.heading(column);
        let heading = lines.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        self.widest_text(column, longest).max(heading) + GAP
    }

    fn widest_text(&self, column: usize, longest: usize) -> usize {
        let texts = self.rows.iter().map(|row| shown_text(&row.cells[column], longest));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    }

    /// What stands over a column, in lines that make it no wider than its texts do.
    fn heading(&self, column: usize) -> String {
        let width = self.widest_text(column, LONGEST).max(HEADING);
        wrap(&printable(&self.columns[column].heading), width, 0).join("\n")
    }

    fn part(&self, columns: &[usize], names: usize, longest: usize) -> Part<'t> {
        let text = |column: usize, cell: &Cell| {
            shown_text(cell, if column < names { longest } else { LONGEST })
        };
        let cells = |row: &'t Row| {
            let shown = columns.iter().map(|column| &row.cells[*column]);
            shown.zip(columns).map(|(cell, column)| (cell, text(*column, cell))).collect()
        };
        Part {
            columns: columns
                .iter()
                .map(|column| (&self.columns[*column], self.heading(*column)))
                .collect(),
            rows: self.rows.iter().map(|row| (row.total, cells(row))).collect(),
        }
    }
}

/// A cell's text with what stands smaller under it elsewhere, each of at most so many letters.
fn shown_text(cell: &Cell, longest: usize) -> String {
    let mut text = format!("{}{}", sign(cell.tone), printable(&shorten(&cell.text, longest)));
    if !cell.detail.is_empty() {
        text += &format!(" {}", printable(&shorten(&cell.detail, longest)));
    }
    text
}

fn look(shown: Shown, tone: Tone) -> Shown {
    match tone {
        Tone::Plain => shown,
        Tone::Baseline | Tone::Same | Tone::Missing => shown.add_attribute(Attribute::Dim),
        Tone::Better => shown.fg(Color::Green).add_attribute(Attribute::Bold),
        Tone::Worse => shown.fg(Color::Red).add_attribute(Attribute::Bold),
        Tone::Suspect => shown.fg(Color::Yellow),
        Tone::Invalid => shown.fg(Color::Red).add_attribute(Attribute::CrossedOut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns with a unit are numbers; a cell is `text / detail`.
    fn table(columns: &[&str], rows: &[&[&str]]) -> Table {
        let column = |heading: &&str| Column {
            heading: (*heading).to_owned(),
            numeric: heading.contains('['),
        };
        let cell = |text: &&str| match text.split_once(" / ") {
            Some((text, detail)) => {
                Cell { text: text.to_owned(), detail: detail.to_owned(), ..Cell::default() }
            }
            None => Cell { text: (*text).to_owned(), ..Cell::default() },
        };
        let row = |cells: &&[&str]| Row { cells: cells.iter().map(cell).collect(), total: false };
        Table {
            columns: columns.iter().map(column).collect(),
            rows: rows.iter().map(row).collect(),
            ..Table::default()
        }
    }

    fn headings(table: &Table, width: usize) -> Vec<Vec<String>> {
        let cut = Cut { columns: &table.columns, rows: table.rows.iter().collect() };
        let heads = |part: Part<'_>| {
            assert!(part.rows.iter().all(|(_, cells)| cells.len() == part.columns.len()));
            part.columns.into_iter().map(|(_, heading)| heading).collect()
        };
        cut.parts(naming_columns(table), width).into_iter().map(heads).collect()
    }

    fn shown(table: &Table, width: usize) -> String {
        let mut out = Out { text: String::new(), colour: false, width, whole: "report.html" };
        out.table(table);
        out.text
    }

    #[test]
    fn wide_tables_are_several() {
        let wide = table(
            &["test", "a [s]", "a [%]", "b [s]", "b [%]"],
            &[&["write 1M", "1.00", "100", "2.00", "200"]],
        );
        assert_eq!(headings(&wide, 120), [["test", "a [s]", "a [%]", "b [s]", "b [%]"]]);
        // 11 for the first column and 8 for each other: a value and its percent stay together.
        assert_eq!(headings(&wide, 42), [["test", "a [s]", "a [%]", "b [s]", "b [%]"]]);
        assert_eq!(headings(&wide, 41), [["test", "a [s]", "a [%]"], ["test", "b [s]", "b [%]"]]);
        assert_eq!(headings(&wide, 1).len(), 2, "at least a group each");
        assert_eq!(headings(&table(&["alone"], &[]), 3), [["alone"]]);
    }

    #[test]
    fn each_of_several_says_which_row_it_is() {
        let rows: &[&[&str]] = &[
            &["single", "read", "throughput", "1.0 / 3 repetitions", "2.0 / 3 repetitions", "same"],
            &["single", "write", "throughput", "1.0", "2.0", "same / a number is doubtful"],
        ];
        let two = table(&["subject", "workload", "number", "a [s]", "b [s]", "verdict"], rows);
        let parts = headings(&two, 50);
        assert!(parts.len() > 1 && parts.iter().all(|part| part[..2] == ["subject", "workload"]));
        assert_eq!(parts.concat().iter().filter(|head| *head == "number").count(), 1);
        let text = shown(&two, 50);
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        assert!(text.contains("1.0 3 repetitions"), "{text}");
        assert!(text.contains("same a number is doubtful"), "{text}");
        // Two metrics of one workload: it takes the third to tell the rows apart.
        let rows: &[&[&str]] =
            &[&["single", "read", "throughput", "1.0"], &["single", "read", "time", "1.0"]];
        let three = table(&["subject", "workload", "number", "a [s]"], rows);
        assert_eq!(naming_columns(&three), 3);
        assert_eq!(naming_columns(&table(&["a", "b"], &[&["x", "1"], &["y", "1"]])), 1);
        assert_eq!(naming_columns(&table(&["a", "b [s]"], &[&["x", "1"], &["x", "2"]])), 1);
    }

    #[test]
    fn names_are_cut_before_a_line_is_too_long() {
        let long = "a workload with a name that goes on and on, until nothing else has room";
        let rows: &[&[&str]] = &[&["stripe", long, "95.2 / 94.1 to 97.3"], &["stripe", "b", "1"]];
        let text = shown(&table(&["subject", "workload", "a [MiB/s]"], rows), 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("a workload") && text.contains("95.2 94.1 to 97.3"), "{text}");
    }

    #[test]
    fn names_stay_different_and_headings_are_in_lines() {
        let rows: &[&[&str]] = &[&["bus 4K × 2, alternate", "1"], &["bus 4K × 3, alternate", "2"]];
        let head = "dd write 1M, 256M each, direct, fdatasync [MiB/s]";
        let text = shown(&table(&["subject", head], rows), 30);
        assert!(text.contains("4K × 2") && text.contains("4K × 3"), "{text}");
        assert!(text.contains("dd write 1M, 256M\n") && text.contains("[MiB/s]\n"), "{text}");
    }

    #[test]
    fn long_tables_end_with_where_the_rest_is() {
        let names: Vec<String> = (0..30).map(|row| format!("row {row}")).collect();
        let rows: Vec<Vec<&str>> = names.iter().map(|name| vec![name.as_str(), "1.0"]).collect();
        let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
        let mut long = table(&["test", "a [s]"], &rows);
        long.rows[29].total = true;
        let text = shown(&long, 60);
        assert!(text.contains("row 19") && !text.contains("row 20"), "{text}");
        assert!(text.contains("row 29"), "what sums up stays: {text}");
        assert!(text.contains("… 9 more rows: report.html"), "{text}");
        long.rows.truncate(20);
        assert!(!shown(&long, 60).contains("more row"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let heads: Vec<String> = (0..12).map(|n| format!("subject {n} [MiB/s]")).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let cells = vec!["1234"; 12];
        let text = shown(&table(&heads, &[&cells, &cells]), 60);
        assert!(text.lines().count() > 12);
        for line in text.lines() {
            assert!(line.chars().count() <= 60, "{line:?}");
        }
        assert!(heads.iter().all(|head| text.contains(head)), "{text}");
    }
}
