//! Metadata are read through an open member; paths are looked at where no member is open.
//!
//! Textual: a function of another name that opens a path is not found.

use crate::Rule;
use crate::source::{Source, shipped_files};

const RULE: Rule = Rule {
    name: "a volume reads metadata through its members",
    why: "a path is a member's label: another file may lie there by the time that it is opened a second time, \
          and an array would be assembled of one file and written to another.",
    comply: "`Metadata::of` an `Image::of` the open member. A file that looks at paths of which no member is \
             open says so in `MAY_LOOK`.",
};

/// Calls that open a path to read metadata.
const LOOKS: [&str; 2] = ["Metadata::look(", "Metadata::array_at("];

/// The crate whose program has members open.
const VOLUME: &str = "crates/service/src/";

/// Files of it that may look at a path, and why no member is open.
const MAY_LOOK: [(&str, &str); 7] = [
    ("metadata/look.rs", "the one place that opens"),
    ("membership.rs", "devices at the paths of a record, before a start"),
    ("volume/admission.rs", "whether a member may be opened for writing"),
    ("volume/asking.rs", "the array of a device that is to be added"),
    ("volume/members.rs", "a device that came back, before it is taken in"),
    ("volume/newcomer.rs", "whether a device may be opened for writing"),
    ("volume/watcher.rs", "devices that may be former members"),
];

fn judge(files: &[&Source]) -> Vec<String> {
    let (mut findings, mut looking) = (Vec::new(), Vec::new());
    for file in files {
        let Some(name) = file.path.strip_prefix(VOLUME) else { continue };
        let calls = LOOKS.iter().flat_map(|look| file.code.match_indices(look));
        let places: Vec<String> =
            calls.map(|(at, look)| format!("{}: {look}…)", file.place(at))).collect();
        match MAY_LOOK.iter().any(|(allowed, _)| *allowed == name) {
            true if places.is_empty() => {}
            true => looking.push(name),
            false => findings.extend(places),
        }
    }
    let idle = MAY_LOOK.iter().filter(|(name, _)| !looking.contains(name));
    findings.extend(idle.map(|(name, _)| format!("{name} is in `MAY_LOOK`, and does not look")));
    findings
}

#[test]
fn metadata_are_read_through_members() {
    RULE.hold(&judge(&shipped_files().collect::<Vec<_>>()));
}

#[test]
fn a_look_at_a_path_is_found() {
    let source = |path: &str| {
        let text = "fn f() { Metadata::look(path); }\n";
        Source::new("service", &format!("crates/service/src/{path}"), text)
    };
    let mut all: Vec<Source> = MAY_LOOK.iter().map(|(name, _)| source(name)).collect();
    let found = |all: &[Source]| judge(&all.iter().collect::<Vec<_>>());
    assert_eq!(found(&all), [""; 0]);
    all.push(source("volume/md.rs"));
    assert!(found(&all)[0].contains("volume/md.rs"), "{:?}", found(&all));
    all.truncate(MAY_LOOK.len() - 1);
    assert!(found(&all)[0].contains("does not look"), "{:?}", found(&all));
}
