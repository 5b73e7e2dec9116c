//! All volumes at a glance: a line for each, the worst first, with its problems and passes below it.
//!
//! ```text
//! VOLUME  STATE     SIZE      AT               STACK
//! home    degraded  3.64 TiB  /dev/braid/home  md(/dev/sda, /dev/sdb, /dev/sdc)
//!         critical  raid5: 1 of 3 members not in sync (/dev/sdb: taken out by order)
//!             next  `braid member remove home /dev/sdb`, then `braid member add home DEVICE`
//! fast    online    128 GiB   /dev/braid/fast  cache(size=8G, …)
//! ```

use std::cmp::Reverse;

use braid_shell::shown;
use braid_stack::ByteSize;

use super::array::job_line;
use braid_service::control::{ExportStatus, Severity, Status};
use braid_service::failure::Failure;

/// A volume's name, and its status or the reason why there is none.
type Answered<'a> = (&'a str, Result<&'a Status, &'a Failure>);

const HEADER: [&str; 5] = ["VOLUME", "STATE", "SIZE", "AT", "STACK"];

/// A volume's line, and what is below it: a word and a text each.
struct Row {
    cells: [String; 5],
    notes: Vec<(&'static str, String)>,
}

/// Returns the table. Volumes that are equally bad stand in the order of their names; a stack is cut where lines of
/// `columns` end.
pub(super) fn overview<'a>(
    answers: impl Iterator<Item = Answered<'a>>,
    columns: Option<usize>,
) -> String {
    let mut answers: Vec<Answered<'_>> = answers.collect();
    answers.sort_by_key(|(name, answer)| {
        (Reverse(answer.map_or(Severity::Critical, Status::severity)), *name)
    });
    let rows: Vec<Row> = answers.iter().map(|(name, answer)| row(name, *answer)).collect();
    let header = HEADER.map(str::to_owned);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| &row.cells[column]).chain([&header[column]]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; 4] = std::array::from_fn(width);
    let line = |cells: &[String; 5]| {
        let [name, state, size, at, stack] = cells;
        let [a, b, c, d] = widths;
        let left = columns.map(|all| all.saturating_sub(a + b + c + d + 8).max(16));
        let stack = cut(stack, left);
        format!("{name:<a$}  {state:<b$}  {size:<c$}  {at:<d$}  {stack}\n")
    };
    let mut text = line(&header);
    for row in &rows {
        text.push_str(&line(&row.cells));
        for (word, note) in &row.notes {
            let indent = (widths[0] + 2 + 8).max(10);
            text.push_str(&format!("{word:>indent$}  {note}\n"));
        }
    }
    text
}

/// The first `most` characters of a text.
fn cut(text: &str, most: Option<usize>) -> String {
    match most {
        Some(most) if text.chars().count() > most => {
            text.chars().take(most - 1).chain(['…']).collect()
        }
        _ => text.to_owned(),
    }
}

fn row(name: &str, answer: Result<&Status, &Failure>) -> Row {
    let cell = |text: &str| shown(text).into_owned();
    match answer {
        Ok(status) => Row {
            cells: [
                cell(name),
                cell(&state(status)),
                format!("{:#}", ByteSize(status.device.size_bytes)),
                cell(at(status)),
                cell(&status.stack),
            ],
            notes: notes(status),
        },
        Err(failure) => {
            let mut notes = vec![("critical", cell(&failure.why))];
            notes.extend(
                failure.next.iter().flat_map(|next| next.lines()).map(|next| ("next", cell(next))),
            );
            let none = || "-".to_owned();
            Row { cells: [cell(name), "unanswered".to_owned(), none(), none(), none()], notes }
        }
    }
}

/// The state, and whether clients can write.
fn state(status: &Status) -> String {
    match (status.device.locked, status.device.read_only) {
        (true, _) => format!("{}, locked", status.state),
        (false, true) => format!("{}, read-only", status.state),
        (false, false) => status.state.clone(),
    }
}

/// The name by which clients reach the volume: the link to its block device, the device, or the first URI.
fn at(status: &Status) -> &str {
    let export = status.device_export().or(status.exports.first());
    export.map_or("-", ExportStatus::name)
}

fn notes(status: &Status) -> Vec<(&'static str, String)> {
    // The state stands in the line.
    let state = format!("{}: ", status.state);
    let mut notes = Vec::new();
    for problem in status.problems() {
        let what = problem.what.strip_prefix(&state).unwrap_or(&problem.what);
        notes.push((problem.severity.word(), shown(what).into_owned()));
        notes.extend(problem.next.map(|next| ("next", shown(&next).into_owned())));
    }
    for job in status.arrays.iter().filter_map(|array| array.job.as_ref()) {
        notes.push(("pass", job_line(job)));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str, state: &str, why: Option<&str>, stack: &str) -> Status {
        let status = serde_json::json!({
            "output_version": 1, "name": name, "state": state, "why": why, "next": "`x`", "stack": stack,
            "device": {
                "size_bytes": 1 << 30, "logical_block_bytes": 512, "physical_block_bytes": 512,
                "optimal_io_bytes": 512, "read_only": false, "volatile": false,
            },
            "members": [], "arrays": [], "warnings": [], "pid": 1,
            "uptime_seconds": 1, "io": "threads", "shards": 1, "cpu_ns": 0,
        });
        serde_json::from_value(status).expect("a status")
    }

    #[test]
    fn the_worst_is_first_and_each_volume_has_a_line() {
        let fast = status("fast", "online", None, "raid0(/dev/sdd, /dev/sde, /dev/sdf)");
        let home = status("home", "degraded", Some("/dev/sdb failed"), "raid1(/dev/sda, /dev/sdb)");
        let silent = Failure::failed("asleep: no answer").next("braid down asleep --force");
        let answers = [("fast", Ok(&fast)), ("home", Ok(&home)), ("asleep", Err(&silent))];
        let expected = "\
VOLUME  STATE       SIZE   AT  STACK
asleep  unanswered  -      -   -
        critical  asleep: no answer
            next  braid down asleep --force
home    degraded    1 GiB  -   raid1(/dev/sda, /dev/sdb)
        critical  /dev/sdb failed
            next  `x`
fast    online      1 GiB  -   raid0(/dev/sdd, /dev/sde, /d…
";
        assert_eq!(overview(answers.into_iter(), Some(60)), expected);
        assert!(overview(answers.into_iter(), None).ends_with("/dev/sdf)\n"));
    }
}
