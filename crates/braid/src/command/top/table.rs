//! Table of the activity of volumes. Pure.

use braid_stack::ByteSize;

use super::rows::{Figures, Volume};

/// Columns of a name where there is no screen, and at least.
const NAME: usize = 35;
const LEAST_NAME: usize = 14;
const STATE: usize = 12;

/// The other columns: their heads, as wide as they are, and which of them go where there is no room; the last ones
/// are cut off then.
const HEADS: [(&str, usize); 8] = [
    ("r/s", 7),
    ("w/s", 7),
    ("read/s", 9),
    ("write/s", 9),
    ("mean", 8),
    ("p99", 9),
    ("queue", 5),
    ("errors", 6),
];
const GOES: [usize; 2] = [4, 6];

/// Width of the names, and the shown columns.
struct Layout {
    name: usize,
    has: [bool; 8],
}

impl Layout {
    /// On a screen of so many columns, for names of up to `longest`.
    fn of(columns: usize, longest: usize) -> Layout {
        let mut has = [true; 8];
        let rest = |has: &[bool; 8]| {
            let widths = HEADS.iter().zip(has).filter(|(_, has)| **has);
            1 + STATE + widths.map(|((_, width), _)| 1 + width).sum::<usize>()
        };
        for goes in GOES {
            if rest(&has) + LEAST_NAME > columns {
                has[goes] = false;
            }
        }
        let name = columns.saturating_sub(rest(&has)).min(longest).max(LEAST_NAME);
        Layout { name, has }
    }

    fn table(&self, volumes: &[Volume]) -> Vec<String> {
        let heads = HEADS.map(|(head, _)| head.to_owned());
        let names = if self.name < NAME { "volume" } else { "volume, members" };
        let head = self.line(names, "state", &heads);
        std::iter::once(head).chain(volumes.iter().flat_map(|one| self.rows_of(one))).collect()
    }

    fn rows_of(&self, volume: &Volume) -> Vec<String> {
        let mut rows = vec![self.row(&volume.name, &volume.state, &volume.figures)];
        for member in &volume.members {
            rows.push(self.row(&format!("  {}", member.name), &member.state, &member.figures));
        }
        rows.extend(volume.notes.iter().map(|note| format!("    {note}")));
        rows
    }

    fn row(&self, name: &str, state: &str, figures: &Figures) -> String {
        let cells = [
            format!("{:.0}", figures.reads),
            format!("{:.0}", figures.writes),
            bytes(figures.read_bytes),
            bytes(figures.written_bytes),
            figures.mean_us.map_or(String::new(), time),
            figures.p99_us.map_or(String::new(), |us| format!("<{}", time(us as f64))),
            figures.in_flight.map_or(String::new(), |count| count.to_string()),
            figures.errors.to_string(),
        ];
        self.line(&shortened(name, self.name), state, &cells)
    }

    /// A line of the table, its head or a row.
    fn line(&self, name: &str, state: &str, cells: &[String; 8]) -> String {
        let mut line = format!("{name:<width$} {state:<STATE$}", width = self.name);
        for ((cell, (_, width)), _) in cells.iter().zip(HEADS).zip(self.has).filter(|(_, has)| *has)
        {
            line.push_str(&format!(" {cell:>width$}"));
        }
        line
    }
}

/// The whole table.
pub(super) fn text(volumes: &[Volume]) -> String {
    Layout { name: NAME, has: [true; 8] }.table(volumes).join("\n") + "\n\n"
}

/// As much of it as there are columns and rows for.
pub(super) fn lines(volumes: &[Volume], (columns, rows): (usize, usize)) -> Vec<String> {
    let members =
        volumes.iter().flat_map(|one| &one.members).map(|one| one.name.chars().count() + 2);
    let names = volumes.iter().map(|one| one.name.chars().count()).chain(members);
    let all = Layout::of(columns, names.max().unwrap_or(0)).table(volumes);
    let cut = |line: &String| line.chars().take(columns).collect::<String>();
    let shown = if all.len() > rows { rows.saturating_sub(1) } else { all.len() };
    let mut lines: Vec<String> = all.iter().take(shown).map(cut).collect();
    if shown < all.len() {
        let more = format!("… and {} lines more", all.len() - shown);
        lines.push(more.chars().take(columns).collect());
    }
    lines
}

/// Its end says more than its beginning, which is a folder.
fn shortened(name: &str, width: usize) -> String {
    let len = name.chars().count();
    match len.checked_sub(width) {
        None | Some(0) => name.to_owned(),
        Some(over) => {
            let indent = name.chars().take_while(|c| *c == ' ').count();
            let end: String = name.chars().skip(indent + over + 1).collect();
            format!("{}…{end}", " ".repeat(indent))
        }
    }
}

fn bytes(rate: f64) -> String {
    // Whole bytes are exact enough, and a float that is too large is the largest there is.
    let bytes = ByteSize(rate.round() as u64);
    format!("{bytes:#}")
}

/// A time in µs, in the unit that suits it.
pub(in crate::command) fn time(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Member;
    use super::*;

    fn volume() -> Volume {
        let figures = Figures {
            reads: 12.4,
            read_bytes: 2048.0,
            mean_us: Some(1500.0),
            p99_us: Some(4096),
            in_flight: Some(7),
            ..Figures::default()
        };
        let name = "/dev/disk/by-id/usb-A_Very_Long_Name_Of_A_Stick-0:0".to_owned();
        Volume {
            name: "v".to_owned(),
            state: "online".to_owned(),
            figures: Figures { errors: 3, ..Figures::default() },
            members: vec![Member { name, state: "in sync".to_owned(), figures }],
            notes: vec!["raid1: check 50.0 %".to_owned()],
        }
    }

    #[test]
    fn columns_stand_below_their_heads_and_a_long_name_keeps_its_end() {
        let text = text(&[volume()]);
        let lines: Vec<&str> = text.lines().collect();
        // Where `what` ends, in columns.
        let end = |line: &str, what: &str| {
            let end = line.find(what).map(|at| at + what.len());
            end.map(|end| line[..end].chars().count())
        };
        for (head, cell) in [
            (" r/s", " 12 "),
            (" read/s", "2 KiB"),
            ("mean", "1.5 ms"),
            ("p99", "<4.1 ms"),
            ("queue", " 7"),
        ] {
            assert_eq!(end(lines[0], head), end(lines[2], cell.trim_end()), "{head}\n{text}");
        }
        assert!(lines[2].starts_with("  …") && lines[2].contains("Stick-0:0 in sync"), "{text}");
        assert!(lines[1].ends_with('3') && lines[1].len() == lines[0].len(), "{text}");
    }

    #[test]
    fn nothing_is_drawn_beyond_the_edges() {
        for columns in 0..140 {
            for rows in 1..8 {
                let lines = lines(&[volume()], (columns, rows));
                assert!(lines.len() <= rows, "{lines:?}");
                assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
            }
        }
        assert_eq!(lines(&[volume()], (99, 3))[2], "… and 2 lines more");
    }

    #[test]
    fn a_narrow_screen_has_what_matters_and_a_wide_one_whole_names() {
        let narrow = lines(&[volume()], (80, 24));
        for head in ["read/s", "write/s", "p99", "errors"] {
            assert!(narrow[0].contains(head), "{head}: {narrow:?}");
        }
        assert!(narrow[2].contains("<4.1 ms") && narrow[1].ends_with('3'), "{narrow:?}");
        let wide = lines(&[volume()], (200, 50));
        assert!(wide[2].contains("usb-A_Very_Long_Name_Of_A_Stick-0:0 "), "{wide:?}");
        assert!(wide[0].contains("mean") && wide[0].contains("queue"), "{wide:?}");
    }
}
