//! The test programs that cargo built, and the tests in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// One test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The package's name: `braid-sim`.
    pub package: String,
    /// The target's name: `redundant`.
    pub target: String,
    /// The file that cargo built.
    pub executable: PathBuf,
    /// The package's folder, in which cargo runs its tests.
    pub folder: PathBuf,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The index of its program.
    pub program: usize,
    /// Its path in the program: `parity::life::a_life`.
    pub name: String,
    /// Package, target and name, separated by spaces: what groups, limits and filters are compared with.
    pub id: String,
}

#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Returns the test programs in what `cargo test --no-run --message-format=json` printed.
///
/// # Errors
/// A line is not JSON, or an artifact lacks a field.
pub fn parse_messages(text: &str) -> Result<Vec<Program>, String> {
    let mut programs = Vec::new();
    for line in text.lines().filter(|line| line.contains("\"compiler-artifact\"")) {
        let artifact: Artifact = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Some(executable) = artifact.executable.filter(|_| artifact.profile.test) else {
            continue;
        };
        let folder = artifact.manifest_path.parent().unwrap_or(Path::new("/")).to_owned();
        let target = artifact.target.name;
        let package = package_name(&artifact.package_id).to_owned();
        programs.push(Program { package, target, executable, folder });
    }
    Ok(programs)
}

/// `path+file:///src/crates/sim#braid-sim@0.1.0` names the package; `path+file:///src/crates/braid#0.1.0`
/// leaves the name out, because it is that of the folder.
fn package_name(id: &str) -> &str {
    let (url, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _version)) => name,
        None => url.rsplit('/').next().unwrap_or(url),
    }
}

/// Asks each program for its tests. Tests marked `#[ignore]` are left out: cargo does not run them either.
///
/// # Errors
/// A program cannot be started, or fails to list.
pub fn list_tests(programs: &[Program]) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let ask = |more: &[&str]| {
            let mut command = Command::new(&program.executable);
            command.args(["--list", "--format", "terse"]).args(more).current_dir(&program.folder);
            let output = command.output().map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            output.status.success().then_some(text).ok_or_else(|| output.status.to_string())
        };
        let lists = ask(&[]).and_then(|all| Ok((all, ask(&["--ignored"])?)));
        let (all, ignored) =
            lists.map_err(|why| format!("{} --list: {why}", program.executable.display()))?;
        let names = |text: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect()
        };
        let ignored = names(&ignored);
        for name in names(&all).into_iter().filter(|name| !ignored.contains(name)) {
            let id = format!("{} {} {name}", program.package, program.target);
            tests.push(Test { program: index, name, id });
        }
    }
    Ok(tests)
}

impl Test {
    /// The command that runs this test alone, with what it prints. It shares the build of all tests: that of
    /// `cargo test --package` has other features, and begins with the dependencies.
    pub fn again(&self) -> String {
        format!("make only TEST='{}'", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"path+file:///src/crates/sim#braid-sim@0.1.0","manifest_path":"/src/crates/sim/Cargo.toml","target":{"kind":["test"],"name":"whole"},"profile":{"test":true},"executable":"/t/whole-1"}
{"reason":"compiler-artifact","package_id":"path+file:///src/crates/braid#0.1.0","manifest_path":"/src/crates/braid/Cargo.toml","target":{"kind":["bin"],"name":"braid"},"profile":{"test":false},"executable":"/t/braid"}
{"reason":"compiler-artifact","package_id":"registry+https://r/index#serde@1.0.0","manifest_path":"/r/serde/Cargo.toml","target":{"kind":["lib"],"name":"serde"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///src/crates/braid#0.1.0","manifest_path":"/src/crates/braid/Cargo.toml","target":{"kind":["bin"],"name":"braid"},"profile":{"test":true},"executable":"/t/braid-2"}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn only_test_programs_are_taken_and_their_packages_named() {
        let programs = parse_messages(MESSAGES).expect("messages of cargo");
        let names: Vec<_> =
            programs.iter().map(|one| (one.package.as_str(), one.target.as_str())).collect();
        assert_eq!(names, [("braid-sim", "whole"), ("braid", "braid")]);
        assert_eq!(programs[0].folder, Path::new("/src/crates/sim"));
    }

    /// The Makefile has test programs of the program `braid` alone, and some manifests say `test = false`.
    #[test]
    fn sources_without_a_test_program_have_no_tests() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let crates = std::fs::read_dir(root.join("crates")).expect("the workspace's crates");
        let mut without = vec![root.join("bench/src/bin")];
        for package in crates.map(|entry| entry.expect("a crate's folder").path()) {
            let manifest = std::fs::read_to_string(package.join("Cargo.toml")).expect("a manifest");
            let manifest: toml::Table = manifest.parse().expect("a manifest is TOML");
            let lib = manifest.get("lib").and_then(|lib| lib.get("test"));
            if lib.and_then(toml::Value::as_bool) == Some(false) {
                without.push(package.join("src"));
            } else if !package.ends_with("braid") {
                without.extend([package.join("src/main.rs"), package.join("src/bin")]);
            }
        }
        let mut seen = 0;
        while let Some(path) = without.pop() {
            if let Ok(entries) = std::fs::read_dir(&path) {
                without.extend(entries.map(|entry| entry.expect("a file").path()));
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                seen += 1;
                assert!(!text.contains("#[test]"), "no test program has {}", path.display());
            }
        }
        assert!(seen > 40, "{seen} files");
    }

    #[test]
    fn an_artifact_without_its_fields_is_an_error() {
        assert!(parse_messages(r#"{"reason":"compiler-artifact","package_id":"x"}"#).is_err());
    }
}
