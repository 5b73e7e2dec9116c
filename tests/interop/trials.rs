//! The attempts with each array, and their table.
//!
//! A failure of one array does not hide the results of the others: each is an attempt of its own, and the test
//! fails at its end with all failures. If `$BRAID_INTEROP_TABLE` is set, the table of the successes is written
//! into that file, between its two marks.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::lab::Engine;

/// The attempts of one test.
pub(crate) struct Trials {
    direction: &'static str,
    failures: Vec<String>,
}

impl Trials {
    pub(crate) fn new(direction: &'static str) -> Trials {
        Trials { direction, failures: Vec::new() }
    }

    /// Does `work`; nothing comes of it when it panics, and the test will fail.
    pub(crate) fn attempt<T>(&mut self, id: &str, work: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => Some(done),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.into()));
                self.failures.push(format!("{id}: {}", text.unwrap_or_default()));
                None
            }
        }
    }

    /// Puts into the table that this array fared well.
    pub(crate) fn held(&self, engine: &Engine, array: &str, result: &str) {
        let (direction, kernel, mdadm) = (self.direction, &engine.kernel, &engine.mdadm);
        record(
            direction,
            kernel,
            &format!("| {direction} | {kernel} | {mdadm} | {array} | {result} |"),
        );
    }

    /// Fails if anything has.
    #[track_caller]
    pub(crate) fn finish(self) {
        let Trials { direction, failures } = self;
        assert!(
            failures.is_empty(),
            "{direction}: {} failed\n\n{}",
            failures.len(),
            failures.join("\n\n")
        );
    }
}

const BEGIN: &str = "<!-- table: begin -->\n";
const END: &str = "<!-- table: end -->\n";
const HEAD: &str = "| direction | kernel | mdadm | array | result |\n|---|---|---|---|---|\n";

/// Adds a row to the table. The first one of a direction and a kernel replaces those of runs before: what was not
/// tried again keeps its rows. Each test is a process of its own, and they run beside each other.
fn record(direction: &str, kernel: &str, row: &str) {
    static BEGUN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let Some(path) = std::env::var_os("BRAID_INTEROP_TABLE") else { return };
    let of_these = format!("| {direction} | {kernel} | ");
    let is_first = BEGUN.lock().expect("no panic while it is held").insert(of_these.clone());
    let mut file =
        File::options().read(true).write(true).open(path).expect("the document is there");
    file.lock().expect("the document can be locked");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("the document can be read");
    let (before, rest) = text.split_once(BEGIN).expect("the document has a place for the table");
    let (table, after) = rest.split_once(END).expect("the table has an end");
    let goes = |row: &str| HEAD.contains(row) || is_first && row.starts_with(&of_these);
    let mut rows: BTreeSet<&str> = table.lines().filter(|row| !goes(row)).collect();
    rows.insert(row);
    let rows = Vec::from_iter(rows).join("\n");
    let text = format!("{before}{BEGIN}{HEAD}{rows}\n{END}{after}");
    file.rewind().expect("the document has a start");
    file.write_all(text.as_bytes()).expect("the document can be written");
    file.set_len(text.len() as u64).expect("the document has a length");
}
