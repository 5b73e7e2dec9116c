//! The violations of the rules when the rules were introduced; see `ratchet.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::source::root;

pub(crate) const FILE: &str = "crates/tidy/ratchet.toml";

#[derive(Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Ratchet {
    /// Lines of files beyond the limit.
    pub(crate) lines: BTreeMap<String, usize>,
    /// Lines of code of functions beyond the limit, by path and name.
    pub(crate) functions: BTreeMap<String, usize>,
    /// Forbidden words, for each package and for the documents.
    pub(crate) language: BTreeMap<String, usize>,
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

impl Ratchet {
    /// Lowers every count to what was found, and leaves out those of nothing.
    fn lower(&mut self, found: Ratchet) {
        let lower = |allowed: &mut BTreeMap<String, usize>, found: BTreeMap<String, usize>| {
            allowed.retain(|name, most| {
                *most = found.get(name).copied().unwrap_or(0).min(*most);
                *most > 0
            });
        };
        lower(&mut self.lines, found.lines);
        lower(&mut self.functions, found.functions);
        lower(&mut self.language, found.language);
        lower(&mut self.wordless, found.wordless);
        lower(&mut self.unreachable, found.unreachable);
        lower(&mut self.narrow, found.narrow);
        self.circles = crate::circles::kept(&self.circles, found.circles);
    }
}

fn text() -> String {
    std::fs::read_to_string(root().join(FILE)).expect("the list of what is allowed still")
}

pub(crate) fn ratchet() -> Ratchet {
    toml::from_str(&text()).unwrap_or_else(|error| panic!("{FILE}: {error}"))
}

fn is_lowering() -> bool {
    std::env::var_os("BRAID_RATCHET").is_some_and(|value| value == "lower")
}

/// Findings where a count is not what is allowed: above, or so far below that `slack` does not cover it.
pub(crate) fn held(
    found: &BTreeMap<String, usize>,
    allowed: &BTreeMap<String, usize>,
    slack: usize,
    what: &str,
) -> Vec<String> {
    compare(found, allowed, slack, what, is_lowering())
}

fn compare(
    found: &BTreeMap<String, usize>,
    allowed: &BTreeMap<String, usize>,
    slack: usize,
    what: &str,
    is_lowering: bool,
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
        } else if !is_lowering
            && (count + slack < most || (count == 0 && allowed.contains_key(name)))
        {
            findings.push(format!(
                "{name}: {count} {what}, fewer than the {most} allowed: lower (or remove) it in {FILE}, or run \
                 `BRAID_RATCHET=lower make only TEST=braid-tidy`"
            ));
        }
    }
    findings
}

#[test]
fn a_count_holds_in_both_directions() {
    let count = |number| BTreeMap::from([("p".to_owned(), number)]);
    let held = |found: &_, allowed: &_, slack, what| compare(found, allowed, slack, what, false);
    assert_eq!(held(&count(2), &count(2), 0, "things"), [""; 0]);
    assert!(held(&count(3), &count(2), 0, "things")[0].contains("3 things, 2 allowed"));
    assert!(held(&count(3), &BTreeMap::new(), 0, "things")[0].contains("0 allowed"));
    assert!(held(&count(1), &count(2), 0, "things")[0].contains("lower (or remove)"));
    assert_eq!(held(&count(480), &count(500), 25, "lines"), [""; 0]);
    assert_eq!(held(&BTreeMap::new(), &count(10), 25, "lines").len(), 1);
    assert_eq!(compare(&count(1), &count(2), 0, "things", true), [""; 0]);
}

#[test]
fn counts_are_lowered_on_demand() {
    if !is_lowering() {
        return;
    }
    let files = crate::source::production_files();
    let found = Ratchet {
        lines: crate::lines::long_files(files),
        functions: crate::functions::long_functions(files),
        language: crate::language::counts(),
        wordless: crate::panics::counts(crate::panics::wordless),
        unreachable: crate::panics::counts(crate::panics::unreachable),
        narrow: crate::panics::counts(crate::casts::narrow),
        circles: crate::circles::circles(files),
        twice: BTreeMap::new(),
    };
    let mut ratchet = ratchet();
    ratchet.lower(found);
    let text = text();
    let header: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
    let lists = toml::to_string_pretty(&ratchet).expect("names and numbers");
    let new = format!("{}\n\n{lists}", header.join("\n"));
    let beside = root().join(FILE).with_extension("new");
    std::fs::write(&beside, new).expect("the ratchet can be written");
    std::fs::rename(beside, root().join(FILE)).expect("the ratchet can be replaced");
}

#[test]
fn lowering_raises_nothing() {
    let count = |names: &[(&str, usize)]| -> BTreeMap<String, usize> {
        names.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    let with = |lines| Ratchet { lines, ..Ratchet::default() };
    let mut allowed = with(count(&[("a", 5), ("b", 5), ("c", 5)]));
    allowed.lower(with(count(&[("a", 4), ("b", 6), ("d", 1)])));
    assert_eq!(allowed, with(count(&[("a", 4), ("b", 5)])));
}
