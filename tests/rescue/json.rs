//! The fields that `docs/rescue-json.md` names are there.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Case;

const DOCUMENT: &str = include_str!("../../docs/rescue-json.md");

/// The fields of a command's section: names in backticks in the rows of its table, without the path before them.
fn documented(command: &str) -> BTreeSet<String> {
    let section = DOCUMENT.split("\n## ").find(|section| section.starts_with(command));
    let rows = section.expect("a section").lines().filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let field = |name: &str| {
        let last = name.trim_end_matches("[]").rsplit('.').next().expect("a name");
        last.to_owned()
    };
    // Values are not fields.
    let values = ["decided", "reshaping", "undecided", "null"];
    names.filter(|name| !values.contains(name)).map(field).collect()
}

/// The fields of a value, at any depth.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            found.insert(name.clone());
            fields(value, found);
        }),
        Value::Array(list) => list.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[test]
fn the_fields_that_are_documented_are_printed() {
    let case = Case::of(braid_golden::broken("raid5-4-two-dropped"));
    case.scan(&[]).ok();
    let run = |words: &[&str]| case.scratch.run(&[&["rescue"], words].concat()).json();
    // Of the fields of a list that is empty here nothing can be said.
    let absent = |command: &str| -> &[&str] {
        match command {
            "scan" => &["label", "name", "uuid", "offset_bytes"],
            "open" => &["hypothesis", "geometry", "not_read"],
            "solve" => &[
                "structure",
                "size_bytes",
                "blocks",
                "geometry",
                "score",
                "missing",
                "stack",
                "doubts",
                "is_verified",
            ],
            _ => &[],
        }
    };
    for (command, words) in [
        ("scan", &["scan", "home", "--json"][..]),
        ("open", &["open", "home", "--json"]),
        ("solve", &["solve", "home", "--json"]),
        ("commit", &["commit", "home", "--json", "--verified"]),
    ] {
        let value = run(words);
        let mut found = BTreeSet::new();
        fields(&value, &mut found);
        assert!(found.contains("output_version"), "{command}: {value}");
        let documented = documented(command);
        assert!(documented.len() > 3, "{command}: {documented:?}");
        let is_missing =
            |name: &&String| !found.contains(*name) && !absent(command).contains(&name.as_str());
        let missing: Vec<&String> = documented.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{command}: {missing:?} of {value}");
    }
    case.untouched();
}
