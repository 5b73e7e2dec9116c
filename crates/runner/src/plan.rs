//! Which test is started next: pure.
//!
//! ```text
//!                  what ran longest last time first
//!   waiting  ──────────────────────────────────────────▶  started, if
//!                                                           its group has room,
//!                                                           nothing that runs must be alone,
//!                                                           the processors have time left
//! ```
//!
//! A test that waits (for a timer, a disk, a client) uses no processor, so others are started beside it until
//! the processors are busy: their number follows from what the tests do, not from a setting. Fewer tests than
//! processors are always topped up, so a loaded machine still makes progress.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Contents of `tests/run.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Seconds after which a test is ended, if its group has no limit of its own.
    pub limit_seconds: u64,
    /// Tests that run together at any time.
    pub at_most: usize,
    /// Groups of tests that need more than a processor.
    #[serde(default, rename = "group")]
    pub groups: Vec<Group>,
}

/// Tests that share something that is scarce.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name in messages.
    pub name: String,
    /// Beginnings of the tests' ids.
    pub tests: Vec<String>,
    /// Tests of the group that run at one time; no limit if absent.
    pub at_most: Option<usize>,
    /// True if nothing runs beside a test of this group.
    #[serde(default)]
    pub alone: bool,
    /// True if its tests begin before others, because they take longest.
    #[serde(default)]
    pub first: bool,
    /// Seconds after which a test of this group is ended.
    pub limit_seconds: Option<u64>,
    /// Why the group exists. It is required, and read by people only.
    pub why: String,
}

impl Rules {
    /// Parses the rules.
    ///
    /// # Errors
    /// The text is not TOML of this form, a group says no reason, or nothing could ever run.
    pub fn parse(text: &str) -> Result<Rules, String> {
        let rules: Rules = toml::from_str(text).map_err(|error| error.to_string())?;
        if let Some(group) = rules.groups.iter().find(|group| group.why.trim().is_empty()) {
            return Err(format!("the group {:?} gives no reason", group.name));
        }
        let zero = rules.groups.iter().any(|group| group.at_most == Some(0));
        if rules.at_most == 0 || zero {
            return Err("at_most is 0: nothing could run".to_owned());
        }
        Ok(rules)
    }

    /// The group of a test: the first whose list has a beginning of `id`.
    pub fn group_of(&self, id: &str) -> Option<usize> {
        let has = |group: &Group| group.tests.iter().any(|start| id.starts_with(start.as_str()));
        self.groups.iter().position(has)
    }

    /// Entries that match none of `ids`.
    pub fn unused<'a>(&'a self, ids: &[&str]) -> Vec<&'a str> {
        let entries = self.groups.iter().flat_map(|group| &group.tests);
        entries
            .map(String::as_str)
            .filter(|start| !ids.iter().any(|id| id.starts_with(start)))
            .collect()
    }
}

/// Tests that wait and tests that run.
#[derive(Debug)]
pub struct Plan<'a> {
    rules: &'a Rules,
    processors: usize,
    /// Tests by number, the next one last.
    waiting: Vec<usize>,
    /// The group of each test.
    groups: Vec<Option<usize>>,
    running: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// A plan for tests with these ids. `took` holds the seconds that each took last time, where they are known.
    pub fn new(
        rules: &'a Rules,
        ids: &[&str],
        took: &BTreeMap<String, f64>,
        processors: usize,
    ) -> Plan<'a> {
        let groups: Vec<Option<usize>> = ids.iter().map(|id| rules.group_of(id)).collect();
        let group = |test: usize| groups[test].map(|index| &rules.groups[index]);
        let key = |test: usize| {
            let seconds = took.get(ids[test]).copied().unwrap_or(0.0);
            let is = |flag: fn(&Group) -> bool| group(test).is_some_and(flag);
            (is(|group| group.alone), is(|group| group.first), (seconds * 1e3) as u64)
        };
        let mut waiting: Vec<usize> = (0..ids.len()).rev().collect();
        waiting.sort_by_key(|&test| key(test));
        Plan { rules, processors, waiting, groups, running: Vec::new() }
    }

    /// Takes the next test to start, if one may start while `busy` processors are in use.
    pub fn start_next(&mut self, busy: f64) -> Option<usize> {
        let alone = |test: &usize| self.group(*test).is_some_and(|group| group.alone);
        if self.running.len() >= self.rules.at_most || self.running.iter().any(alone) {
            return None;
        }
        // A quarter of a processor is noise: the runner, the kernel's threads.
        let has_time = busy + 0.25 < self.processors as f64;
        if self.running.len() >= self.processors && !has_time {
            return None;
        }
        let index = self.waiting.iter().rposition(|test| self.may_start(*test))?;
        let test = self.waiting.remove(index);
        self.running.push(test);
        Some(test)
    }

    fn may_start(&self, test: usize) -> bool {
        let Some(group) = self.group(test) else { return true };
        if group.alone && !self.running.is_empty() {
            return false;
        }
        let same =
            self.running.iter().filter(|one| self.groups[**one] == self.groups[test]).count();
        group.at_most.is_none_or(|most| same < most)
    }

    fn group(&self, test: usize) -> Option<&'a Group> {
        self.groups[test].map(|index| &self.rules.groups[index])
    }

    /// Seconds after which `test` is ended.
    pub fn limit_seconds(&self, test: usize) -> u64 {
        let own = self.group(test).and_then(|group| group.limit_seconds);
        own.unwrap_or(self.rules.limit_seconds)
    }

    /// A test ended.
    pub fn end(&mut self, test: usize) {
        self.running.retain(|one| *one != test);
    }

    /// Tests that have not been started.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        limit_seconds = 60
        at_most = 4
        [[group]]
        name = "wall"
        tests = ["p wall"]
        alone = true
        limit_seconds = 90
        why = "they measure time"
        [[group]]
        name = "kernel"
        tests = ["p kernel"]
        at_most = 1
        why = "kernels are large"
    "#;

    fn started(plan: &mut Plan<'_>, busy: f64) -> Vec<usize> {
        std::iter::from_fn(|| plan.start_next(busy)).collect()
    }

    #[test]
    fn idle_processors_are_filled_and_busy_ones_are_not() {
        let rules = Rules::parse(RULES).expect("rules");
        let ids = ["p a 1", "p a 2", "p a 3", "p a 4", "p a 5"];
        let mut plan = Plan::new(&rules, &ids, &BTreeMap::new(), 2);
        assert_eq!(started(&mut plan, 2.0), [0, 1], "as many as there are processors");
        assert_eq!(started(&mut plan, 1.5), [2, 3], "up to the most of all");
        plan.end(0);
        plan.end(2);
        plan.end(3);
        assert_eq!(started(&mut plan, 2.0), [4]);
        assert_eq!(plan.waiting(), 0);
    }

    #[test]
    fn groups_are_held() {
        let rules = Rules::parse(RULES).expect("rules");
        let ids = ["p kernel 1", "p kernel 2", "p a 1", "p wall 1", "p wall 2"];
        let mut plan = Plan::new(&rules, &ids, &BTreeMap::new(), 2);
        assert_eq!(plan.limit_seconds(3), 90);
        assert_eq!(plan.limit_seconds(0), 60);
        assert_eq!(started(&mut plan, 0.0), [3], "those that are alone come first");
        plan.end(3);
        assert_eq!(started(&mut plan, 0.0), [4]);
        plan.end(4);
        assert_eq!(started(&mut plan, 0.0), [0, 2]);
        plan.end(2);
        assert_eq!(started(&mut plan, 0.0), [0; 0]);
        plan.end(0);
        assert_eq!(started(&mut plan, 0.0), [1]);
    }

    #[test]
    fn what_took_longest_begins() {
        let rules = Rules::parse(RULES).expect("rules");
        let took = BTreeMap::from([("p a 2".to_owned(), 7.0), ("p a 3".to_owned(), 9.0)]);
        let mut plan = Plan::new(&rules, &["p a 1", "p a 2", "p a 3"], &took, 2);
        assert_eq!(started(&mut plan, 2.0), [2, 1]);
    }

    #[test]
    fn rules_without_a_reason_or_a_test_are_told() {
        let silent = RULES.replace("kernels are large", " ");
        assert!(Rules::parse(&silent).is_err());
        assert!(Rules::parse(&RULES.replace("at_most = 1", "at_most = 0")).is_err());
        let rules = Rules::parse(RULES).expect("rules");
        assert_eq!(rules.unused(&["p wall 1"]), ["p kernel"]);
    }
}
