//! What the code had against the rules when they came; see `ratchet.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

const FILE: &str = "crates/tidy/ratchet.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Ratchet {
    /// Lines of files beyond the limit.
    pub(crate) lines: BTreeMap<String, usize>,
    /// Panics without a reason in words, for each package.
    pub(crate) wordless: BTreeMap<String, usize>,
    /// `unreachable!`, for each package.
    pub(crate) unreachable: BTreeMap<String, usize>,
    /// `as` to an integer of 32 bits or fewer, for each package.
    pub(crate) narrow: BTreeMap<String, usize>,
    /// Files of a package that use one another in a circle.
    pub(crate) circles: BTreeMap<String, Vec<Vec<String>>>,
    /// Places that have what should stand once.
    pub(crate) twice: BTreeMap<String, Vec<String>>,
}

pub(crate) fn ratchet() -> Ratchet {
    let path = super::source::root().join(FILE);
    let text = std::fs::read_to_string(path).expect("the list of what is allowed still");
    toml::from_str(&text).unwrap_or_else(|error| panic!("{FILE}: {error}"))
}

/// Findings where a count is not what is allowed: above, or so far below that `slack` does not cover it.
pub(crate) fn held(
    found: &BTreeMap<String, usize>,
    allowed: &BTreeMap<String, usize>,
    slack: usize,
    what: &str,
) -> Vec<String> {
    let mut findings = Vec::new();
    let mut names: Vec<&String> = found.keys().chain(allowed.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let count = found.get(name).copied().unwrap_or(0);
        let most = allowed.get(name).copied().unwrap_or(0);
        if count > most {
            findings.push(format!("{name}: {count} {what}, {most} allowed"));
        } else if count + slack < most || (count == 0 && allowed.contains_key(name)) {
            findings.push(format!(
                "{name}: {count} {what}, fewer than the {most} allowed: lower (or remove) it in {FILE}"
            ));
        }
    }
    findings
}

#[test]
fn a_count_holds_in_both_directions() {
    let count = |number| BTreeMap::from([("p".to_owned(), number)]);
    assert_eq!(held(&count(2), &count(2), 0, "things"), [""; 0]);
    assert!(held(&count(3), &count(2), 0, "things")[0].contains("3 things, 2 allowed"));
    assert!(held(&count(3), &BTreeMap::new(), 0, "things")[0].contains("0 allowed"));
    assert!(held(&count(1), &count(2), 0, "things")[0].contains("lower (or remove)"));
    assert_eq!(held(&count(480), &count(500), 25, "lines"), [""; 0]);
    assert_eq!(held(&BTreeMap::new(), &count(10), 25, "lines").len(), 1);
}
