//! Code that may stand only once in the whole repository, tests and measurements included.
//!
//! Textual: it looks for the marks that such code cannot do without. It does not recognize other code for the
//! same purpose, with other constants or words.

use std::collections::BTreeMap;

use crate::Rule;
use crate::ratchet::ratchet;
use crate::source::{packages, texts};

const RULE: Rule = Rule {
    name: "quoting, seeded numbers and resampling are written once each",
    why: "there were four functions that quoted for a shell, and three of them let a path that begins with \
          a dash through; there were five copies of one generator, with three ways of drawing below a bound.",
    comply: "braid_shell::shell_path for a path and shell_word for any other word of a command that is \
             printed; braid_seed::Rng for numbers from a seed; braid_bench::stats for intervals of ratios.",
};

/// The kind of code, its only place, and its marks: a file contains the code if it contains all marks of one
/// group.
const ONCE: [(&str, &str, &[&[&str]]); 3] = [
    ("quoting", "crates/shell/", &[&[r"replace('\'',"], &[r#"r"'\''""#]]),
    (
        "numbers",
        "crates/seed/",
        &[&["bf58476d1ce4e5b9"], &["<<13", ">>7", "<<17"], &["6364136223846793005"]],
    ),
    ("resampling", "bench/src/stats.rs", &[&["resample"], &["fnbootstrap"]]),
];

/// The places outside of its home that have one of [`ONCE`].
fn elsewhere(files: &[(String, String)], home: &str, marks: &[&[&str]]) -> Vec<String> {
    let has = |(_, text): &&(String, String)| {
        // Lines of comments may tell of it; numbers may be grouped.
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let text: String =
            lines.flat_map(|line| line.chars()).filter(|c| !" _".contains(*c)).collect();
        let text = text.to_lowercase();
        marks.iter().any(|group| group.iter().all(|mark| text.contains(mark)))
    };
    let outside = files.iter().filter(|(path, _)| !path.starts_with(home));
    outside.filter(has).map(|(path, _)| path.clone()).collect()
}

fn judge(files: &[(String, String)], allowed: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut findings = Vec::new();
    for (what, home, marks) in ONCE {
        let found = elsewhere(files, home, marks);
        let allowed = allowed.get(what).cloned().unwrap_or_default();
        let new = found.iter().filter(|path| !allowed.contains(path));
        findings.extend(new.map(|path| format!("{path} has {what} of its own, beside {home}")));
        let gone = allowed.iter().filter(|path| !found.contains(path));
        findings.extend(
            gone.map(|path| format!("{path} is in the ratchet for {what}: no longer needed")),
        );
    }
    findings
}

#[test]
fn nothing_is_written_twice() {
    let folders =
        packages().into_iter().filter(|(name, _)| name != "tidy").map(|(_, folder)| folder);
    let folders = folders.chain(["tests".to_owned(), "fuzz/fuzz_targets".to_owned()]);
    let all: Vec<_> = folders.flat_map(|folder| texts(&folder)).collect();
    RULE.hold(&judge(&all, &ratchet().twice));
}

#[test]
fn a_second_one_is_found() {
    let found =
        |text: &str| judge(&[("crates/p/src/a.rs".to_owned(), text.to_owned())], &BTreeMap::new());
    assert!(found(r#"format!("'{}'", word.replace('\'', r"'\''"))"#)[0].contains("quoting"));
    assert!(found("z = (z ^ z >> 30).wrapping_mul(0xBF58_476d_1ce4_e5b9);")[0].contains("numbers"));
    assert!(found("x ^= x << 13; x ^= x >> 7; x ^= x << 17;")[0].contains("numbers"));
    assert!(found("fn bootstrap(values: &[f64]) {}")[0].contains("resampling"));
    assert_eq!(
        found("// of bootstrap, RESAMPLES and 0xbf58_476d_1ce4_e5b9\nlet a = 1 << 13;"),
        [""; 0]
    );
    let allowed = BTreeMap::from([("numbers".to_owned(), vec!["gone.rs".to_owned()])]);
    assert!(judge(&[], &allowed)[0].contains("no longer needed"));
}
