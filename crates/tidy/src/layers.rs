//! Which crate may use which.

use std::collections::BTreeSet;

use crate::Rule;
use crate::source::{FOR_TESTS, packages, root};

const RULE: Rule = Rule {
    name: "crates use those below them, as the table says",
    why: "the exports know no arrays, the laboratory knows no engine, formats and geometries do no I/O: \
          that is true because the arrow is not there (ARCHITECTURE.md, \"Crates\" and \"What is absent\").",
    comply: "leave the arrow out, or change LAYERS in crates/tidy/src/layers.rs and the table of \
             ARCHITECTURE.md in one commit that says why. An arrow without a use leaves the table.",
};

/// A crate and what its `[dependencies]` may name, all of it from rows above. Dev-dependencies are free:
/// tests run on a simulator and compare with golden arrays. A row may stand before its crate does.
const LAYERS: &[(&str, &[&str])] = &[
    ("canary", &[]),
    ("files", &[]),
    ("holes", &[]),
    ("level", &[]),
    ("mem", &[]),
    ("model", &[]),
    ("nbd", &[]),
    ("parity", &[]),
    ("seed", &[]),
    ("shell", &[]),
    ("status", &[]),
    ("sys", &[]),
    ("trace", &[]),
    ("control", &["level", "shell", "status"]),
    ("metrics", &["control", "shell", "status"]),
    ("block", &["mem"]),
    ("md", &["canary", "level"]),
    ("array", &["block", "level"]),
    ("web", &["control", "shell"]),
    ("fit", &["model", "seed"]),
    ("stack", &["level"]),
    ("md-text", &["level", "md", "shell", "stack"]),
    ("engine", &["array", "block", "canary", "level", "md", "mem", "parity", "status"]),
    ("cache", &["block", "canary", "engine", "level", "mem", "status"]),
    ("predict", &["array", "block", "cache", "level", "model", "seed", "trace"]),
    ("uring", &["block", "canary", "engine", "mem"]),
    ("tls", &["mem", "uring"]),
    ("wiring", &["array", "block", "cache", "engine", "md"]),
    ("device", &["block", "canary", "engine", "mem", "model", "status", "sys", "uring"]),
    ("probe", &["shell", "stack"]),
    ("rbd", &["block", "engine", "mem", "uring"]),
    ("remote", &["block", "engine", "mem", "nbd", "tls", "uring"]),
    (
        "member",
        &[
            "block", "device", "engine", "mem", "model", "nbd", "probe", "rbd", "remote", "stack",
            "uring",
        ],
    ),
    (
        "rescue",
        &["array", "files", "holes", "level", "md", "parity", "probe", "seed", "shell", "stack"],
    ),
    ("monitor", &["control", "probe", "shell", "stack"]),
    ("export-nbd", &["block", "canary", "engine", "mem", "nbd", "status", "tls", "uring"]),
    ("export-vhost", &["block", "canary", "engine", "mem", "status", "uring"]),
    ("export-fuse", &["block", "canary", "engine", "mem", "probe", "status", "sys", "uring"]),
    ("export-ublk", &["block", "engine", "mem", "status", "uring"]),
    ("lab", &["level", "model", "nbd", "probe", "seed", "shell", "stack", "trace"]),
    ("lab-report", &["lab", "shell", "stack"]),
    (
        "service",
        &[
            "array",
            "block",
            "cache",
            "canary",
            "control",
            "device",
            "engine",
            "export-fuse",
            "export-nbd",
            "export-ublk",
            "export-vhost",
            "holes",
            "level",
            "md",
            "md-text",
            "mem",
            "member",
            "metrics",
            "nbd",
            "probe",
            "shell",
            "stack",
            "sys",
            "tls",
            "trace",
            "uring",
            "wiring",
        ],
    ),
    (
        "braid",
        &[
            "block",
            "cache",
            "control",
            "engine",
            "export-fuse",
            "files",
            "fit",
            "holes",
            "lab",
            "lab-report",
            "level",
            "md",
            "md-text",
            "mem",
            "member",
            "metrics",
            "model",
            "monitor",
            "predict",
            "probe",
            "rescue",
            "service",
            "shell",
            "stack",
            "sys",
            "trace",
            "uring",
            "web",
        ],
    ),
    // For tests and measurements: no row above names one of these.
    ("golden", &[]),
    ("mutate", &["seed"]),
    ("runner", &[]),
    ("reproduce", &["array", "level", "model", "predict", "shell"]),
    (
        "sim",
        &[
            "array",
            "block",
            "cache",
            "device",
            "engine",
            "export-nbd",
            "level",
            "md",
            "mem",
            "model",
            "nbd",
            "remote",
            "seed",
            "wiring",
        ],
    ),
    (
        "bench",
        &[
            "array",
            "block",
            "cache",
            "device",
            "engine",
            "export-nbd",
            "lab",
            "lab-report",
            "level",
            "md",
            "mem",
            "model",
            "nbd",
            "parity",
            "seed",
            "uring",
        ],
    ),
    ("tidy", &[]),
];

/// The crates of this workspace that a manifest's dependencies (or its build's) name.
fn used(manifest: &str) -> BTreeSet<String> {
    let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
    let tables =
        ["dependencies", "build-dependencies"].into_iter().filter_map(|key| manifest.get(key));
    let names = tables.filter_map(|table| table.as_table()).flat_map(|table| table.keys());
    names.filter_map(|name| Some(name.strip_prefix("braid-")?.to_owned())).collect()
}

fn judge(crates: &[(String, BTreeSet<String>)], layers: &[(&str, &[&str])]) -> Vec<String> {
    let mut findings = Vec::new();
    let is_there = |name: &str| crates.iter().any(|(other, _)| other == name);
    for (name, used) in crates {
        let Some(row) = layers.iter().position(|(row, _)| row == name) else {
            findings.push(format!("{name} is not in the table"));
            continue;
        };
        let allowed = layers[row].1;
        for wrong in used.iter().filter(|one| !allowed.contains(&one.as_str())) {
            findings.push(format!("{name} uses {wrong}, which its row does not name"));
        }
        // What only tests and measurements use may do without an arrow of its row.
        let is_idle = |one: &&&str| !used.contains(**one) && is_there(one);
        if !FOR_TESTS.contains(&name.as_str()) {
            let idle = allowed.iter().filter(is_idle);
            findings.extend(idle.map(|idle| format!("{name} may use {idle} and does not")));
        }
        let below: Vec<&str> = layers[..row].iter().map(|(name, _)| *name).collect();
        for up in allowed.iter().filter(|one| !below.contains(one)) {
            findings.push(format!("{name} may use {up}, whose row does not stand above"));
        }
    }
    findings
}

#[test]
fn crates_use_those_below() {
    let of = |(name, folder): (String, String)| {
        let path = root().join(folder).join("Cargo.toml");
        (name, used(&std::fs::read_to_string(path).expect("a manifest")))
    };
    RULE.hold(&judge(&packages().into_iter().map(of).collect::<Vec<_>>(), LAYERS));
}

#[test]
fn a_wrong_arrow_is_found() {
    let crates = |name: &str, manifest| {
        [("mem".to_owned(), BTreeSet::new()), (name.to_owned(), used(manifest))]
    };
    let table: &[(&str, &[&str])] = &[("mem", &[]), ("block", &["mem", "later"]), ("up", &["top"])];
    let judge = |name, manifest| judge(&crates(name, manifest), table);
    let fine = "[dependencies]\nbraid-mem.workspace = true\nserde = \"1\"\n[dev-dependencies]\nbraid-up = \"1\"";
    assert_eq!(judge("block", fine), ["block may use later, whose row does not stand above"]);
    let wrong = judge("block", "[build-dependencies]\nbraid-sim = { path = \"\" }");
    assert!(
        wrong[0].contains("block uses sim") && wrong[1].contains("may use mem and does not"),
        "{wrong:?}"
    );
    assert_eq!(judge("new", ""), ["new is not in the table"]);
    assert_eq!(judge("up", ""), ["up may use top, whose row does not stand above"]);
}
