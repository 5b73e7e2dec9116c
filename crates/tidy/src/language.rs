//! Wording of documentation, comments and messages.
//!
//! It counts words: a sentence that means a person by one of them counts, and other riddles are not seen. Text
//! between backticks does not count, nor do names. Literals count in production code, from three words on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::Rule;
use crate::ratchet::{held, ratchet};
use crate::source::{Source, packages, read, root};

/// Number of lines that may be mended before the entry has to follow.
const SLACK: usize = 10;

const RULE: Rule = Rule {
    name: "texts name the subject, and things are no persons",
    why: "an engineer reads a line once, and searches for the word of the textbook. \"What of it whoever waits \
          for has\" is a riddle in both respects.",
    comply: "begin documentation with a verb (\"Returns\", \"Writes\") or a noun (\"Bytes that\"), not with What, \
             How, Whether, Of, Who, That or Where; name the member, the caller, the request instead of who, \
             whoever, nobody or somebody; leave out \"all the same\". \
             `BRAID_RATCHET=lower make only TEST=braid-tidy` lowers the counts in crates/tidy/ratchet.toml \
             after texts were mended; it raises none.",
};

const OPENINGS: [&str; 8] = ["What", "How", "Whether", "Of", "Who", "Whoever", "That", "Where"];
const PERSONS: [&str; 4] = ["who", "whoever", "nobody", "somebody"];
const PHRASE: [&str; 3] = ["all", "the", "same"];

/// A path and the number of a line.
type Place = (String, usize);

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the rows of a text, from 0, that have a forbidden word; twice if they have two.
fn rows(text: &str) -> Vec<usize> {
    let (mut rows, mut is_fenced, mut last) = (Vec::new(), false, [""; 3]);
    for (row, line) in text.lines().enumerate() {
        let is_fence = line.contains("```");
        is_fenced ^= is_fence;
        if is_fenced || is_fence {
            continue;
        }
        for word in line.split('`').step_by(2).flat_map(words) {
            let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
            last = [last[1], last[2], word];
            let is_phrase = last.iter().zip(PHRASE).all(|(word, other)| is(word, other));
            if is_phrase || PERSONS.iter().any(|person| is(word, person)) {
                rows.push(row);
            }
        }
    }
    rows
}

/// Returns the places in a file of Rust; those in literals if it is production code.
fn places(file: &Source, is_production: bool) -> Vec<Place> {
    let mut found = Vec::new();
    let mut add = |at: usize, text: &str| {
        let rows = rows(text);
        if !rows.is_empty() {
            let line = file.line(at);
            found.extend(rows.iter().map(|row| (file.path.clone(), line + row)));
        }
    };
    // Lines of documentation that follow one another are one text.
    let mut end = 0;
    let mut openings = Vec::new();
    for comment in &file.comments {
        let text = &file.text[comment.clone()];
        add(comment.start, text);
        let is_first = file.text[end..comment.start]
            .matches(|c: char| c == '\n' || !c.is_whitespace())
            .count()
            != 1;
        end = comment.end;
        let is_documentation =
            ["///", "//!", "/**", "/*!"].iter().any(|mark| text.starts_with(mark));
        let opening = text.trim_start_matches(['/', '!', '*', ' ']);
        if is_documentation
            && is_first
            && OPENINGS
                .iter()
                .any(|one| words(opening).next() == Some(one) && opening.starts_with(one))
        {
            openings.push((file.path.clone(), file.line(comment.start)));
        }
    }
    for literal in file.literals.iter().filter(|_| is_production) {
        let text = &file.text[literal.clone()];
        if words(text).nth(2).is_some() {
            add(literal.start, text);
        }
    }
    found.extend(openings);
    found.sort();
    found
}

/// Returns the places in every package, and in the pages of docs/.
fn all_places() -> BTreeMap<String, Vec<Place>> {
    let mut all: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    let beside = [("braid", "tests"), ("fuzz", "fuzz")]
        .map(|(name, folder)| (name.to_owned(), folder.to_owned()));
    for (name, folder) in packages().into_iter().chain(beside) {
        let files = read(&name, &folder);
        let found = files.iter().flat_map(|(file, is_production)| places(file, *is_production));
        all.entry(name).or_default().extend(found);
    }
    for entry in std::fs::read_dir(root().join("docs")).expect("the folder docs/") {
        let path = entry.expect("an entry of docs/").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(&path).expect("a page is text");
            let name = format!("docs/{}", path.file_name().unwrap_or_default().to_string_lossy());
            let found = rows(&text).into_iter().map(|row| (name.clone(), row + 1));
            all.entry("docs".to_owned()).or_default().extend(found);
        }
    }
    all
}

fn count(all: &BTreeMap<String, Vec<Place>>) -> BTreeMap<String, usize> {
    all.iter().map(|(name, places)| (name.clone(), places.len())).collect()
}

/// Returns the number of forbidden words for each package, and for docs/.
pub(crate) fn counts() -> BTreeMap<String, usize> {
    count(&all_places())
}

/// Returns the lines that a difference without context adds.
fn added(difference: &str) -> BTreeSet<Place> {
    let (mut lines, mut path) = (BTreeSet::new(), "");
    for line in difference.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            path = name;
        } else if line.starts_with("@@ ")
            && let Some(range) = line.split(' ').nth(2).and_then(|word| word.strip_prefix('+'))
        {
            let (first, number) = range.split_once(',').unwrap_or((range, "1"));
            let (first, number) = (first.parse().unwrap_or(0), number.parse().unwrap_or(0));
            lines.extend((first..first + number).map(|line: usize| (path.to_owned(), line)));
        }
    }
    lines
}

/// Returns the lines that came after the last change of the ratchet; none where git does not tell.
fn newest() -> BTreeSet<Place> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output();
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default()
    };
    let base = git(&["log", "-1", "--format=%H", "--", crate::ratchet::FILE]);
    let mut lines =
        added(&git(&["diff", "--unified=0", "--no-color", "--no-ext-diff", base.trim()]));
    for path in git(&["ls-files", "--others", "--exclude-standard"]).lines() {
        lines.extend((1..10_000).map(|line| (path.to_owned(), line)));
    }
    lines
}

fn judge(
    all: &BTreeMap<String, Vec<Place>>,
    allowed: &BTreeMap<String, usize>,
    newest: impl FnOnce() -> BTreeSet<Place>,
) -> Vec<String> {
    let mut findings = held(&count(all), allowed, SLACK, "forbidden words");
    let newest = if findings.is_empty() { BTreeSet::new() } else { newest() };
    for finding in &mut findings {
        let places = all.get(finding.split(':').next().unwrap_or_default());
        let places = || places.into_iter().flatten();
        let new: Vec<&Place> = places().filter(|place| newest.contains(place)).collect();
        let shown = if new.is_empty() { places().collect() } else { new };
        let shown: Vec<String> =
            shown.iter().take(20).map(|(path, line)| format!("\n      {path}:{line}")).collect();
        finding.push_str(&shown.concat());
    }
    findings
}

#[test]
fn texts_name_their_subject() {
    RULE.hold(&judge(&all_places(), &ratchet().language, newest));
}

#[test]
fn forbidden_words_are_found() {
    let lines = |text: &str, is_production| -> Vec<usize> {
        let found = places(&Source::new("p", "a.rs", text), is_production);
        found.into_iter().map(|(_, line)| line).collect()
    };
    let text = "/// What is there.\n/// How it is told, by nobody.\nfn who() {}\n\n/// Of things.\n\n/// Whatever.\nfn f() {}";
    assert_eq!(lines(text, true), [1, 2, 5]);
    // Plain comments; messages of three words; neither code nor names.
    let text = "// What is there, who,\n//   somebody; all the\n// same\nfn f() { g(\"a Who told\", \"who\") } /* `who` */";
    assert_eq!(lines(text, true), [1, 2, 3, 4]);
    assert_eq!(lines(text, false), [1, 2, 3]);
    assert_eq!(lines("#[cfg(test)]\nfn f() {\n  // who\n  g(\"one who told\") }", true), [3]);
    assert_eq!(rows("Who\n```\nwho\n```\nwhole `who` whoever, nobody"), [0, 4, 4]);
}

#[test]
fn a_failure_names_the_newest_lines() {
    let difference = "--- a/x.rs\n+++ b/x.rs\n@@ -1 +1,2 @@ fn\n+a\n+b\n@@ -4,2 +7,0 @@\n--- /dev/null\n+++ b/y.rs\n@@ -0,0 +5 @@";
    let place = |path: &str, line| (path.to_owned(), line);
    let new = added(difference);
    assert_eq!(new, BTreeSet::from([place("x.rs", 1), place("x.rs", 2), place("y.rs", 5)]));
    let all = BTreeMap::from([("p".to_owned(), vec![place("x.rs", 2), place("x.rs", 3)])]);
    let told = |most, new| judge(&all, &BTreeMap::from([("p".to_owned(), most)]), || new);
    assert_eq!(told(2, new.clone()), [""; 0]);
    assert_eq!(told(1, new), ["p: 2 forbidden words, 1 allowed\n      x.rs:2"]);
    assert!(told(1, BTreeSet::new())[0].ends_with("x.rs:2\n      x.rs:3"));
}
