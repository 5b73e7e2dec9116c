//! The length of a file.

use std::collections::BTreeMap;

use crate::Rule;
use crate::ratchet::{held, ratchet};
use crate::source::{Source, production_files};

/// Lines of one file that are not for tests.
const MOST: usize = 450;

/// Lines that a file above the limit may lose before its entry has to follow.
const SLACK: usize = 25;

const RULE: Rule = Rule {
    name: "a file has at most 450 lines that are not for tests",
    why: "a file is read as one idea. The median is 160 lines; those beyond 450 held several ideas \
          at each look.",
    comply: "give a part that has a name of its own a file of its own. Do not move lines to get below \
             the limit: what is cut in the wrong place is a circle (see the rule on circles).",
};

pub(crate) fn long_files(files: &[Source]) -> BTreeMap<String, usize> {
    let long = files.iter().filter(|file| file.lines > MOST);
    long.map(|file| (file.path.clone(), file.lines)).collect()
}

#[test]
fn files_are_short() {
    RULE.hold(&held(&long_files(production_files()), &ratchet().lines, SLACK, "lines"));
}

#[test]
fn a_long_file_is_found_and_its_tests_do_not_count() {
    let text = |lines: usize| {
        format!("{}#[cfg(test)]\nmod tests {{\n\n\n}}\n", "fn f() {}\n".repeat(lines))
    };
    let files = [Source::new("p", "long.rs", &text(451)), Source::new("p", "short.rs", &text(450))];
    assert_eq!(long_files(&files), BTreeMap::from([("long.rs".to_owned(), 451)]));
}
