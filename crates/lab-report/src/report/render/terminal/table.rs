//! Tables in the terminal: cells broken at spaces where a table is too wide, several tables where that
//! is not enough, and fewer rows where it is too long.
//!
//! ```text
//! subject   workload   a            subject   workload   b
//! ───────────────────────           ───────────────────────     the columns that say which row
//! single    read       1.0          single    read       2.0    it is stand in each
//! ```

use comfy_table::{Attribute, Cell as Shown, CellAlignment, Color, ColumnConstraint, Width};

use super::{FEWEST_ROWS, LONGEST, MOST_LINES, MOST_ROWS, Out};
use crate::report::model::{Cell, Row, Table, Tone};
use crate::report::render::markdown::sign;
use crate::report::render::text::{printable, shorten};

/// What stands between two columns.
const GAP: usize = 3;
/// A word with more letters may be broken.
const LONGEST_WORD: usize = 30;
/// A blank at which no line is broken.
const FIRM: char = '\u{a0}';

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
        let mut most = MOST_ROWS;
        let (text, left_out) = loop {
            let kept = table.rows.iter().enumerate().filter(|(at, row)| *at < most || row.total);
            let rows: Vec<&Row> = kept.map(|(_, row)| row).collect();
            let parts = parts(table, &rows, names, self.width);
            let parts = parts.iter().map(|columns| self.lay_out(table, &rows, columns));
            let text = parts.collect::<Vec<_>>().join("\n\n");
            let lines = text.lines().count();
            if lines <= MOST_LINES || most <= FEWEST_ROWS {
                break (text, table.rows.len() - rows.len());
            }
            most = (most.min(rows.len()) * MOST_LINES / lines).max(FEWEST_ROWS);
        };
        text.lines().for_each(|line| self.line(line));
        if left_out > 0 {
            self.left_out(left_out, "row");
        }
        if !table.note.is_empty() {
            self.sentence("", &table.note);
        }
    }

    fn lay_out(&self, table: &Table, rows: &[&Row], columns: &[usize]) -> String {
        let mut grid = self.grid();
        grid.set_header(columns.iter().map(|column| heading(table, *column)));
        for row in rows {
            grid.add_row(columns.iter().map(|column| {
                let cell = &row.cells[*column];
                let shown = look(Shown::new(shown_text(cell)), cell.tone);
                if row.total { shown.add_attribute(Attribute::Bold) } else { shown }
            }));
        }
        for (place, column) in columns.iter().enumerate() {
            let Some(shown) = grid.column_mut(place) else { continue };
            if table.columns[*column].numeric {
                shown.set_cell_alignment(CellAlignment::Right);
            }
            // The constraint counts the blanks on both sides.
            let least = u16::try_from(least_width(table, rows, *column) + 2).unwrap_or(u16::MAX);
            shown.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
        grid.trim_fmt().replace(FIRM, " ")
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

/// The columns of tables that fit into `width`, as few as there can be in this order, each with the
/// first `names` columns.
fn parts(table: &Table, rows: &[&Row], names: usize, width: usize) -> Vec<Vec<usize>> {
    let wide = |column: usize| least_width(table, rows, column) + GAP;
    let named: usize = (0..names).map(wide).sum();
    let mut parts: Vec<Vec<usize>> = vec![(0..names).collect()];
    let mut used = named;
    for column in names..table.columns.len() {
        match parts.last_mut() {
            Some(part) if part.len() == names || used + wide(column) <= width => part.push(column),
            _ => {
                parts.push((0..names).chain([column]).collect());
                used = named;
            }
        }
        used += wide(column);
    }
    parts
}

/// Letters of the longest word of a column, which is not broken.
fn least_width(table: &Table, rows: &[&Row], column: usize) -> usize {
    let longest = |text: &str| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
    let cells = rows.iter().map(|row| longest(&shown_text(&row.cells[column])));
    cells.chain([longest(&heading(table, column))]).max().unwrap_or(0).min(LONGEST_WORD)
}

fn heading(table: &Table, column: usize) -> String {
    printable(&shorten(&table.columns[column].heading, LONGEST)).into_owned()
}

/// A cell's text with what stands smaller under it elsewhere; of a number each of the two stays whole.
fn shown_text(cell: &Cell) -> String {
    let part = |text: &str| match cell.number {
        Some(_) => printable(&shorten(text, LONGEST)).replace(' ', &FIRM.to_string()),
        None => printable(&shorten(text, LONGEST)).into_owned(),
    };
    let text = part(&format!("{}{}", sign(cell.tone), cell.text));
    match cell.detail.as_str() {
        "" => text,
        detail => format!("{text} {}", part(detail)),
    }
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
    use crate::report::model::Column;

    /// Columns with a unit are numbers; a cell is `text / detail`.
    fn table(columns: &[&str], rows: &[&[&str]]) -> Table {
        let column = |heading: &&str| Column {
            heading: (*heading).to_owned(),
            numeric: heading.contains('['),
        };
        let cell = |text: &&str| {
            let (text, detail) = text.split_once(" / ").unwrap_or((text, ""));
            Cell {
                text: text.to_owned(),
                detail: detail.to_owned(),
                number: text.parse().ok(),
                ..Cell::default()
            }
        };
        let row = |cells: &&[&str]| Row { cells: cells.iter().map(cell).collect(), total: false };
        Table {
            columns: columns.iter().map(column).collect(),
            rows: rows.iter().map(row).collect(),
            ..Table::default()
        }
    }

    fn columns(table: &Table, width: usize) -> Vec<Vec<usize>> {
        let rows: Vec<&Row> = table.rows.iter().collect();
        parts(table, &rows, naming_columns(table), width)
    }

    fn shown(table: &Table, width: usize) -> String {
        let mut out = Out { text: String::new(), colour: false, width, whole: "report.html" };
        out.table(table);
        for line in out.text.lines() {
            assert!(line.chars().count() <= width, "{line:?} of {}", out.text);
        }
        out.text
    }

    #[test]
    fn wide_tables_are_several() {
        let wide = table(
            &["test", "a [s]", "b [s]", "c [s]"],
            &[&["write", "1.00 / 0.98 to 1.05", "2.00", "3.00"]],
        );
        // 5 letters of a name, 12 of an interval and 4 of each other, and the gaps.
        assert_eq!(columns(&wide, 37), [[0, 1, 2, 3]]);
        assert_eq!(columns(&wide, 36), [vec![0, 1, 2], vec![0, 3]]);
        assert_eq!(columns(&wide, 1).len(), 3, "at least one each");
        assert_eq!(columns(&table(&["alone"], &[]), 3), [[0]]);
    }

    #[test]
    fn an_interval_is_under_its_value_before_it_is_broken() {
        let rows: &[&[&str]] = &[&["stripe", "1.59 / 1.53 to 1.66", "1.87 / 1.81 to 1.94"]];
        let two = table(&["subject", "sequential reads [x]", "random reads [x]"], rows);
        assert!(shown(&two, 80).contains("1.59 1.53 to 1.66"));
        let narrow = shown(&two, 42);
        assert!(narrow.contains("1.59 ") && !narrow.contains("1.59 1.53"), "{narrow}");
        assert!(narrow.contains("1.53 to 1.66") && narrow.contains("1.81 to 1.94"), "{narrow}");
    }

    #[test]
    fn each_of_several_says_which_row_it_is() {
        let rows: &[&[&str]] = &[
            &["single", "read", "throughput", "1.0 / 3 repetitions", "2.0 / 3 repetitions", "same"],
            &["single", "write", "throughput", "1.0", "2.0", "same / a number is doubtful"],
        ];
        let two = table(&["subject", "workload", "number", "a [s]", "b [s]", "verdict"], rows);
        let parts = columns(&two, 50);
        assert!(parts.len() > 1 && parts.iter().all(|part| part[..2] == [0, 1]), "{parts:?}");
        assert_eq!(parts.concat().iter().filter(|column| **column == 2).count(), 1);
        let text = shown(&two, 50);
        assert_eq!(text.matches("workload").count(), parts.len(), "{text}");
        // Two metrics of one workload: it takes the third to tell the rows apart.
        let rows: &[&[&str]] =
            &[&["single", "read", "throughput", "1.0"], &["single", "read", "time", "1.0"]];
        let three = table(&["subject", "workload", "number", "a [s]"], rows);
        assert_eq!(naming_columns(&three), 3);
        assert_eq!(naming_columns(&table(&["a", "b"], &[&["x", "1"], &["y", "1"]])), 1);
        assert_eq!(naming_columns(&table(&["a", "b [s]"], &[&["x", "1"], &["x", "2"]])), 1);
    }

    #[test]
    fn long_names_are_broken_before_a_line_is_too_long() {
        let long = "a workload with a name that goes on and on, until nothing else has room";
        let rows: &[&[&str]] = &[&["stripe", long, "95.2 / 94.1 to 97.3"], &["stripe", "b", "1"]];
        let text = shown(&table(&["subject", "workload", "a [MiB/s]"], rows), 60);
        assert!(text.contains("a workload") && text.contains("94.1 to 97.3"), "{text}");
    }

    #[test]
    fn headings_are_in_lines() {
        let rows: &[&[&str]] = &[&["bus 4K × 2, alternate", "1"], &["bus 4K × 3, alternate", "2"]];
        let head = "dd write 1M, 256M each, direct, fdatasync [MiB/s]";
        let text = shown(&table(&["subject", head], rows), 30);
        assert!(text.contains("× 2") && text.contains("× 3"), "{text}");
        assert!(text.contains("fdatasync") && text.contains("[MiB/s]"), "{text}");
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
    fn a_table_of_many_lines_has_fewer_rows() {
        let heads: Vec<String> = (0..12).map(|n| format!("subject {n} [MiB/s]")).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let names: Vec<String> = (0..20).map(|row| format!("row {row}")).collect();
        let row = |name: &'static str| [vec![name], vec!["1234"; 11]].concat();
        let rows: Vec<Vec<&str>> = names.iter().map(|name| row(name.clone().leak())).collect();
        let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
        let text = shown(&table(&heads, &rows), 60);
        assert!(text.lines().count() <= MOST_LINES + 2, "{text}");
        assert!(text.contains("row 2") && text.contains("more rows: report.html"), "{text}");
        // Every column is there.
        assert!((0..12).all(|n| text.contains(&n.to_string())), "{text}");
    }
}
