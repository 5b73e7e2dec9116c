//! Panics: with a reason in words, or none.
//!
//! Textual: a method of another type that is called `unwrap` counts, and a panic behind a macro or an
//! index does not.

use std::collections::BTreeMap;

use crate::Rule;
use crate::ratchet::{held, ratchet};
use crate::source::{Source, shipped_files};

const WORDLESS: Rule = Rule {
    name: "a panic gives its reason in words",
    why: "a panic ends the process that serves a volume. A reader of the line has to see why it \
          cannot happen, and a reader of the log what was broken; `unwrap()` tells neither.",
    comply: "return an error; or say in three words or more what holds: \
             `.expect(\"a candidate is one of the members\")`.",
};

const UNREACHABLE: Rule = Rule {
    name: "no `unreachable!`",
    why: "a case that cannot be is a case that the type should not have: the next change makes it \
          reachable, and the compiler says nothing.",
    comply: "narrow the type before the match, or let the function take what the one case holds.",
};

/// The calls that need a reason, and whether the reason is the first argument.
const CALLS: [&str; 4] = [".expect(", "unreachable!(", "panic!(", "todo!("];

/// Places of panics without a reason of three words.
pub(crate) fn wordless(file: &Source) -> Vec<usize> {
    let mut places: Vec<usize> = file.code.match_indices(".unwrap()").map(|(at, _)| at).collect();
    for call in CALLS {
        for (at, _) in file.code.match_indices(call) {
            let from = at + call.len();
            let rest = file.text[from..].trim_start();
            // Whatever is no literal, as a name of a constant, is read as words.
            let words = match rest.strip_prefix('"').map(|rest| rest.split('"').next()) {
                Some(Some(reason)) => reason.split_whitespace().count(),
                _ if rest.starts_with(')') => 0,
                _ => 3,
            };
            if words < 3 {
                places.push(at);
            }
        }
    }
    places.sort_unstable();
    places
}

pub(crate) fn unreachable(file: &Source) -> Vec<usize> {
    file.code.match_indices("unreachable!(").map(|(at, _)| at).collect()
}

/// Findings of a package whose count is not the allowed one, with the places.
pub(crate) fn counted<'a>(
    files: impl IntoIterator<Item = &'a Source>,
    places: impl Fn(&Source) -> Vec<usize>,
    allowed: &BTreeMap<String, usize>,
    what: &str,
) -> Vec<String> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let found = places(file).into_iter().map(|at| file.place(at));
        all.entry(file.package.clone()).or_default().extend(found);
    }
    let counts = all.iter().map(|(package, places)| (package.clone(), places.len())).collect();
    let tell = |finding: String| {
        let package = finding.split(':').next().unwrap_or_default();
        let places = all.get(package).map(|places| places.join(", ")).unwrap_or_default();
        format!("{finding}: {places}")
    };
    held(&counts, allowed, 0, what).into_iter().map(tell).collect()
}

/// Returns the number of places in each package that is shipped.
pub(crate) fn counts(places: impl Fn(&Source) -> Vec<usize>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for file in shipped_files() {
        *counts.entry(file.package.clone()).or_default() += places(file).len();
    }
    counts
}

#[test]
fn panics_have_a_reason() {
    WORDLESS.hold(&counted(shipped_files(), wordless, &ratchet().wordless, "panics without words"));
}

#[test]
fn nothing_is_unreachable() {
    UNREACHABLE.hold(&counted(
        shipped_files(),
        unreachable,
        &ratchet().unreachable,
        "`unreachable!`",
    ));
}

#[test]
fn a_panic_without_words_is_found() {
    let of = |text: &str| Source::new("p", "a.rs", text);
    for text in ["x.unwrap();", "x.expect(\"a member\");", "unreachable!()", "x\n.expect(\n  \"\")"]
    {
        assert_eq!(wordless(&of(text)).len(), 1, "{text}");
    }
    for text in ["x.unwrap_or(1);", "x.expect(\"one of the members\");", "// x.unwrap()", "f(WHY)"]
    {
        assert_eq!(wordless(&of(text)).len(), 0, "{text}");
    }
    let text = "a => unreachable!(\"said before, in words\")";
    assert_eq!((wordless(&of(text)).len(), unreachable(&of(text)).len()), (0, 1));
    let findings = counted(&[of("\nx.unwrap()")], wordless, &BTreeMap::new(), "panics");
    assert_eq!(findings, ["p: 1 panics, 0 allowed: a.rs:2"]);
}
