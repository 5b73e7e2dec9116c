//! What volumes did, as a table: pure.

use braid_stack::ByteSize;

use super::rows::{Figures, Volume};

/// Columns of a name.
const NAME: usize = 35;

/// The whole table.
pub(super) fn text(volumes: &[Volume]) -> String {
    let heads = ["r/s", "w/s", "read/s", "write/s", "mean", "p99", "queue", "errors"];
    let head = line("volume, members", "state", &heads.map(ToOwned::to_owned));
    let rows = volumes.iter().flat_map(rows_of);
    let lines: Vec<String> = std::iter::once(head).chain(rows).collect();
    lines.join("\n") + "\n\n"
}

/// As much of it as there are columns and rows for.
pub(super) fn lines(volumes: &[Volume], (columns, rows): (usize, usize)) -> Vec<String> {
    let text = text(volumes);
    let all: Vec<&str> = text.trim_end().lines().collect();
    let cut = |line: &&str| line.chars().take(columns).collect::<String>();
    let shown = if all.len() > rows { rows.saturating_sub(1) } else { all.len() };
    let mut lines: Vec<String> = all.iter().take(shown).map(cut).collect();
    if shown < all.len() {
        let more = format!("… and {} lines more", all.len() - shown);
        lines.push(more.chars().take(columns).collect());
    }
    lines
}

fn rows_of(volume: &Volume) -> Vec<String> {
    let mut rows = vec![row(&volume.name, &volume.state, &volume.figures)];
    for member in &volume.members {
        rows.push(row(&format!("  {}", member.name), &member.state, &member.figures));
    }
    rows.extend(volume.notes.iter().map(|note| format!("    {note}")));
    rows
}

fn row(name: &str, state: &str, figures: &Figures) -> String {
    let queue = figures.in_flight.map_or(String::new(), |count| count.to_string());
    let mean = figures.mean_us.map_or(String::new(), time);
    let p99 = figures.p99_us.map_or(String::new(), |us| format!("<{}", time(us as f64)));
    let cells = [
        format!("{:.0}", figures.reads),
        format!("{:.0}", figures.writes),
        bytes(figures.read_bytes),
        bytes(figures.written_bytes),
        mean,
        p99,
        queue,
        figures.errors.to_string(),
    ];
    line(&shortened(name), state, &cells)
}

/// A line of the table, its head or a row.
fn line(name: &str, state: &str, cells: &[String; 8]) -> String {
    let [reads, writes, read, written, mean, p99, queue, errors] = cells;
    format!(
        "{name:<NAME$} {state:<12} {reads:>7} {writes:>7} {read:>9} {written:>9} {mean:>8} {p99:>9} \
         {queue:>5} {errors:>6}"
    )
}

/// Its end says more than its beginning, which is a folder.
fn shortened(name: &str) -> String {
    let len = name.chars().count();
    match len.checked_sub(NAME) {
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
}
