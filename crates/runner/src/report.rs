//! The report of a run, and the times that are kept for the next run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::program::Test;
use crate::run::Outcome;

/// The stored facts about a run: `target/test-times.json`.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Times {
    /// Seconds from the first test's start to the last one's end, of the last run of all tests.
    pub wall: f64,
    /// Processor seconds of all tests of that run and of all that they started.
    pub processor: f64,
    /// Wall and processor seconds of each test, by its id.
    pub tests: BTreeMap<String, [f64; 2]>,
}

impl Times {
    /// Wall seconds by id, for the plan of the next run.
    pub fn wall_seconds(&self) -> BTreeMap<String, f64> {
        self.tests.iter().map(|(id, both)| (id.clone(), both[0])).collect()
    }

    /// Renders the `most` tests that took longest, by wall time and by processor time.
    pub fn render(&self, most: usize) -> String {
        let mut text = format!(
            "{} tests in {:.0} s, {:.0} s of processor time: {:.2} processors in use\n",
            self.tests.len(),
            self.wall,
            self.processor,
            self.processor / self.wall.max(1e-3)
        );
        for (column, title) in ["wall", "processor"].into_iter().enumerate() {
            let mut rows: Vec<_> = self.tests.iter().collect();
            rows.sort_by(|a, b| b.1[column].total_cmp(&a.1[column]));
            let _ = writeln!(text, "\nby {title} time\n     wall  processor  test");
            for (id, [wall, processor]) in rows.into_iter().take(most) {
                let _ = writeln!(text, "{wall:7.1} s  {processor:7.1} s  {id}");
            }
        }
        text
    }
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Summary {
    passed: usize,
    /// The id of each failed test, why it failed, and the command that runs it again.
    failed: Vec<(String, String, String)>,
    /// Reasons for which something was skipped, and the tests that said them.
    skipped: BTreeMap<String, Vec<String>>,
    /// The facts that are stored for the next run.
    pub times: Times,
}

/// Lines of a test's output by which it says that it skipped something.
fn skips(output: &str) -> impl Iterator<Item = &str> {
    // libtest begins the line with the test's name.
    let said =
        |line: &'_ str| line.find("skipped").filter(|at| *at == 0 || line[..*at].ends_with("... "));
    output.lines().filter_map(move |line| {
        Some(line[said(line)?..].trim_start_matches("skipped").trim_start_matches([':', ',', ' ']))
    })
}

impl Summary {
    /// Takes an outcome in.
    pub fn add(&mut self, test: &Test, outcome: &Outcome) {
        self.times.tests.insert(test.id.clone(), [outcome.wall, outcome.processor]);
        for why in skips(&outcome.output) {
            let tests = self.skipped.entry(why.to_owned()).or_default();
            if tests.last() != Some(&test.id) {
                tests.push(test.id.clone());
            }
        }
        match &outcome.failure {
            None => self.passed += 1,
            Some(why) => {
                self.failed.push((test.id.clone(), why.clone(), test.again()));
            }
        }
    }

    /// True if every test passed.
    pub fn is_good(&self) -> bool {
        self.failed.is_empty()
    }

    /// Renders skips, failures, times and the closing line.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (why, tests) in &self.skipped {
            let others = match tests.len() {
                1 => String::new(),
                many => format!(" and {} more", many - 1),
            };
            let _ = writeln!(text, "skipped: {why} ({}{others})", tests[0]);
        }
        for (id, why, again) in &self.failed {
            let _ = writeln!(text, "FAILED: {id}: {why}\n    {again}");
        }
        let Times { wall, processor, .. } = self.times;
        let rate = processor / wall.max(1e-3);
        let _ = writeln!(
            text,
            "{wall:.0} s, {processor:.0} s of processor time: {rate:.2} processors in use (`make slow-tests`)"
        );
        let _ = writeln!(text, "{} passed, {} failed", self.passed, self.failed.len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(failure: Option<&str>, output: &str) -> Outcome {
        let failure = failure.map(str::to_owned);
        Outcome { test: 0, failure, output: output.to_owned(), wall: 2.0, processor: 3.0 }
    }

    #[test]
    fn a_failure_is_named_with_its_command_and_skips_with_their_reason() {
        let test =
            |name: &str| Test { program: 0, name: name.to_owned(), id: format!("p t {name}") };
        let mut summary = Summary::default();
        summary.add(&test("a"), &outcome(None, "test a ... skipped: no fio\nok\n"));
        summary.add(&test("b"), &outcome(None, "skipped: no fio\nskipped: no fio\n"));
        assert!(summary.is_good());
        summary.add(&test("c"), &outcome(Some("it failed"), "it skipped nothing\n"));
        assert!(!summary.is_good());
        summary.times.wall = 4.0;
        summary.times.processor = 6.0;
        assert_eq!(
            summary.render(),
            "skipped: no fio (p t a and 1 more)\n\
             FAILED: p t c: it failed\n    make only TEST='p t c'\n\
             4 s, 6 s of processor time: 1.50 processors in use (`make slow-tests`)\n\
             2 passed, 1 failed\n"
        );
    }

    #[test]
    fn slow_tests_are_listed_by_both_times() {
        let tests =
            BTreeMap::from([("waits".to_owned(), [9.0, 0.1]), ("works".to_owned(), [3.0, 5.0])]);
        let text = Times { wall: 10.0, processor: 12.0, tests }.render(1);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(" s  ")).collect();
        assert_eq!(lines, ["    9.0 s      0.1 s  waits", "    3.0 s      5.0 s  works"]);
    }
}
