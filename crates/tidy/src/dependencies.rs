//! Licences, sources and doubled versions of what is built, by `deny.toml`.
//!
//! `cargo deny` has the same file, and knows more: advisories, and the texts of licences. It takes minutes
//! to build, so this holds what `cargo metadata` and `cargo tree` tell wherever the workspace is built.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde::Deserialize;

use crate::Rule;
use crate::source::root;

const RULE: Rule = Rule {
    name: "dependencies have a known licence, come from crates.io, and once each",
    why: "braid is given on under MIT or Apache-2.0, so whatever is linked has to allow that; another \
          source can change under a version; a second version is built, loaded and audited twice.",
    comply: "take another crate, or another version of it. If it has to be, add the licence or the version \
             to deny.toml, with the reason; versions that are there no longer leave it.",
};

/// Packages in the lock file, those of the workspace and of other targets among them.
const MOST_PACKAGES: usize = 280;

const FEW: Rule = Rule {
    name: "the lock file has at most 280 packages",
    why: "each one is fetched, licensed and audited, and its authors can change what braid does.",
    comply: "switch off features that are not used; take a package that brings fewer others; write what is \
             small and exact, and neither cryptography nor a parser of what others send.",
};

#[derive(Deserialize)]
struct Deny {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    version: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None`: of this workspace.
    source: Option<String>,
}

/// Returns true if a licence expression can be met by what is allowed. It is read as alternatives that are joined
/// by `AND`, as all are that were met; of one that nests deeper this asks for too much, never too little.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ").replace(" or ", " OR ");
    let is_allowed =
        |name: &str| allowed.iter().any(|one| one == name.trim_matches([' ', '(', ')']));
    expression.split(" AND ").all(|part| part.split(" OR ").any(is_allowed))
}

fn judge(metadata: &Metadata, deny: &Deny) -> Vec<String> {
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for Package { name, version, license, source } in &metadata.packages {
        let Some(source) = source else { continue };
        versions.entry(name).or_default().insert(format!("{name}@{version}"));
        if !license.as_ref().is_some_and(|license| is_met(license, &deny.licenses.allow)) {
            findings.push(format!("{name} {version}: its licence is {license:?}"));
        }
        let registry = source.trim_start_matches("registry+");
        if registry == source || !deny.sources.allow_registry.iter().any(|one| one == registry) {
            findings.push(format!("{name} {version}: it comes from {source}"));
        }
    }
    let skipped: BTreeSet<String> =
        deny.bans.skip.iter().map(|skip| skip.version.clone()).collect();
    for all in versions.values() {
        let counted: Vec<&String> = all.difference(&skipped).collect();
        if counted.len() > 1 {
            findings.push(format!("two versions or more: {counted:?}"));
        }
    }
    for Skip { version, reason } in &deny.bans.skip {
        let name = version.split('@').next().unwrap_or_default();
        let is_needed =
            versions.get(name).is_some_and(|all| all.len() > 1 && all.contains(version));
        if !is_needed || reason.is_empty() {
            findings
                .push(format!("deny.toml skips {version}, which is not needed or has no reason"));
        }
    }
    findings
}

fn deny() -> Deny {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    toml::from_str(&text).unwrap_or_else(|error| panic!("deny.toml: {error}"))
}

fn cargo(arguments: &[&str]) -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let output =
        cargo.args(arguments).current_dir(root()).output().expect("cargo started this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints text")
}

#[test]
fn dependencies_are_as_deny_toml_says() {
    let deny = deny();
    // What a manifest could ask for is in the metadata; what is asked for, with features, is in the tree.
    let mut tree =
        vec!["tree", "--locked", "--workspace", "--all-features", "--prefix=none", "--format={p}"];
    tree.extend(deny.graph.targets.iter().flat_map(|target| ["--target", target]));
    let tree = cargo(&tree);
    let built: BTreeSet<&str> =
        tree.lines().map(|line| line.split(" (").next().unwrap_or(line)).collect();
    let metadata = cargo(&["metadata", "--format-version=1", "--locked"]);
    let mut metadata: Metadata = serde_json::from_str(&metadata).expect("cargo's format 1");
    metadata
        .packages
        .retain(|one| built.contains(format!("{} v{}", one.name, one.version).as_str()));
    assert!(metadata.packages.len() > 100, "cargo tree and cargo metadata name packages otherwise");
    RULE.hold(&judge(&metadata, &deny));
}

#[test]
fn packages_are_few() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    FEW.hold(&if count > MOST_PACKAGES { vec![format!("{count} packages")] } else { Vec::new() });
}

#[test]
fn a_wrong_dependency_is_found() {
    let of = |name: &str, version: &str, license: &str, source: &str| Package {
        name: name.to_owned(),
        version: version.to_owned(),
        license: (!license.is_empty()).then(|| license.to_owned()),
        source: (!source.is_empty()).then(|| source.to_owned()),
    };
    let index = "registry+https://github.com/rust-lang/crates.io-index";
    let deny: Deny = toml::from_str(
        "graph.targets = []\nlicenses.allow = ['MIT']\n\
         sources.allow-registry = ['https://github.com/rust-lang/crates.io-index']\n\
         bans.skip = [{ crate = 'twice@1.0.0', reason = 'x' }, { crate = 'gone@1.0.0', reason = 'x' }]",
    )
    .expect("rules");
    let packages = vec![
        of("braid", "0.1.0", "", ""),
        of("fine", "1.0.0", "MIT", index),
        of("twice", "1.0.0", "MIT", index),
        of("twice", "2.0.0", "MIT", index),
        of("gpl", "1.0.0", "GPL-3.0", index),
        of("none", "1.0.0", "", index),
        of("fork", "1.0.0", "MIT", "git+https://example.org/fork"),
        of("doubled", "1.0.0", "MIT", index),
        of("doubled", "2.0.0", "MIT", index),
    ];
    let findings = judge(&Metadata { packages }, &deny);
    let expected = [
        "gpl 1.0.0: its",
        "none 1.0.0: its",
        "fork 1.0.0: it comes",
        "two versions or more: [\"doubled",
        "deny.toml skips gone@1.0.0",
    ];
    assert_eq!(findings.len(), expected.len(), "{findings:?}");
    assert!(
        expected.iter().zip(&findings).all(|(start, text)| text.starts_with(start)),
        "{findings:?}"
    );
}

#[test]
fn expressions_of_licences_are_read() {
    let allowed = ["MIT", "Unicode-3.0"].map(str::to_owned);
    for met in ["MIT/Apache-2.0", "GPL-3.0 or MIT", "(MIT OR Zlib) AND Unicode-3.0"] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for not in ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT WITH x", "(MIT AND GPL-3.0) OR Zlib"] {
        assert!(!is_met(not, &allowed), "{not}");
    }
}
