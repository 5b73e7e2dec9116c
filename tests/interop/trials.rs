//! What was tried with each array, and the table of it.
//!
//! One array that fails does not hide how the others fare: each is an attempt of its own, and the
//! test fails at its end with all that failed. With `$BRAID_INTEROP_TABLE` set, the table of what
//! held is written into that file, between its two marks.

use std::collections::BTreeSet;
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
        record(format!(
            "| {} | {} | {} | {array} | {result} |",
            self.direction, engine.kernel, engine.mdadm
        ));
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

/// Adds a row, and writes the table as it is now.
fn record(row: String) {
    static ROWS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let Some(path) = std::env::var_os("BRAID_INTEROP_TABLE") else { return };
    let mut rows = ROWS.lock().expect("nobody panics with it");
    rows.insert(row);
    let text = std::fs::read_to_string(&path).expect("the document can be read");
    let (before, rest) = text.split_once(BEGIN).expect("the document has a place for the table");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let text = format!("{before}{BEGIN}{HEAD}{}\n{END}{after}", rows.join("\n"));
    std::fs::write(&path, text).expect("the document can be written");
}
