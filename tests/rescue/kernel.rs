//! Cases that are made anew by the real kernel, with file systems on them, and judged by it: `mkbroken`, beside klab.
//!
//! Only with `$BRAID_INTEROP`, as `make interop` sets it: each case boots two guests. `all` takes every recipe, other
//! words those whose names contain one of them; `$BRAID_RESCUE_SEED` draws other cases than seed 1.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Output, Scratch, Tool};

/// Recipes whose superblocks say enough: `open` must give every byte that can be had.
const RECIPES: [&str; 12] = [
    "events-differ",
    "two-dropped-apart",
    "two-dropped-apart-bitmap",
    "zeroed-superblock-one",
    "holes-one",
    "holes-many",
    "clone-beside",
    "partition-images",
    "mkfs-on-one-member",
    "raid10-near-degraded",
    "raid10-far-degraded",
    "raid10-offset-degraded",
];

/// Recipes whose superblocks are lost or wrong: what `solve` decides must be right.
const LOST: [&str; 14] = [
    "zeroed-superblocks-all",
    "wipefs-all",
    "gpt-over-members",
    "recreated-wrong-order",
    "recreated-other-chunk",
    "recreated-other-offset",
    "recreated-other-metadata",
    "all-spares",
    "reshape-interrupted-grow",
    "reshape-interrupted-5to6",
    "reshape-interrupted-chunk",
    "raid0-one-cut",
    "linear-one-missing",
    "raid10-far-degraded",
];

/// A case is some 200 MiB, and its guests may be emulated.
const LIMIT: Duration = Duration::from_secs(900);

/// `mkbroken`, or why it cannot be used.
pub(crate) fn mkbroken() -> Result<PathBuf, String> {
    if std::env::var_os("BRAID_INTEROP").is_none() {
        return Err("each case boots two guests; `make interop` has this test".to_owned());
    }
    let klab = std::env::var_os("KLAB").filter(|path| !path.is_empty());
    let klab = klab.map(PathBuf::from).ok_or("there is no klab by $KLAB")?;
    let path = klab.with_file_name("mkbroken");
    if path.is_file() { Ok(path) } else { Err(format!("{} is not there", path.display())) }
}

pub(crate) fn is_wanted(recipe: &str) -> bool {
    let wanted = std::env::var("BRAID_INTEROP").unwrap_or_default();
    wanted == "all" || wanted.split(',').any(|part| recipe.contains(part))
}

/// `mkbroken` with these words, in the folder of a case.
pub(crate) fn run(mkbroken: &Path, folder: &Path, words: &[&str]) -> Output {
    let engine = std::env::var("KLAB_ENGINE").unwrap_or_default();
    let tool = Tool::new(mkbroken).args(words).folder(folder).limit(LIMIT);
    match words[0] != "untouched" && !engine.is_empty() {
        true => tool.args(["--engine", &engine]).run(),
        false => tool.run(),
    }
}

#[test]
fn what_the_kernel_broke_is_copied_and_judged_by_it() {
    let mkbroken = match mkbroken() {
        Ok(mkbroken) => mkbroken,
        Err(why) => return println!("skipped: {why}"),
    };
    let seed = std::env::var("BRAID_RESCUE_SEED").unwrap_or_else(|_| "1".to_owned());
    for recipe in RECIPES.into_iter().filter(|recipe| is_wanted(recipe)) {
        let (scratch, manifest) = made(&mkbroken, recipe, &seed, &["--size-mib", "24"]);
        rescue(&scratch, &mkbroken, &manifest, recipe);
        run(&mkbroken, scratch.path(), &["untouched", "."]).ok();
    }
}

#[test]
fn what_is_decided_of_lost_arrays_is_right() {
    let mkbroken = match mkbroken() {
        Ok(mkbroken) => mkbroken,
        Err(why) => return println!("skipped: {why}"),
    };
    let seed = std::env::var("BRAID_RESCUE_SEED").unwrap_or_else(|_| "1".to_owned());
    let mut decided = 0;
    let recipes: Vec<&str> = LOST.into_iter().filter(|recipe| is_wanted(recipe)).collect();
    for recipe in &recipes {
        let (scratch, manifest) = made(&mkbroken, recipe, &seed, &[]);
        let is_decided = solved(&scratch, &mkbroken, &manifest, recipe);
        println!("{recipe}: {}", if is_decided { "right" } else { "not decided" });
        decided += usize::from(is_decided);
        run(&mkbroken, scratch.path(), &["untouched", "."]).ok();
    }
    println!("decided: {decided} of {}", recipes.len());
}

/// Makes a case: the folder, and the truth about it.
fn made(mkbroken: &Path, recipe: &str, seed: &str, more: &[&str]) -> (Scratch, Value) {
    let scratch = Scratch::new();
    let words = [&["make", recipe, "--seed", seed, "--out", "."], more].concat();
    run(mkbroken, scratch.path(), &words).ok();
    let manifest = std::fs::read(scratch.join("manifest.json")).expect("a manifest");
    let manifest = serde_json::from_slice(&manifest).expect("a manifest");
    (scratch, manifest)
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Solves the array of a case, whose superblocks do not count. If the answer is decided, copies and judges its content.
fn solved(scratch: &Scratch, mkbroken: &Path, manifest: &Value, recipe: &str) -> bool {
    scan(scratch, manifest);
    let solved = scratch.run(&["rescue", "solve", "home", "--json"]);
    let answer: Value = serde_json::from_str(&solved.out).expect("JSON");
    if answer["answer"] == "undecided" {
        return false;
    }
    let copy = ["rescue", "copy", "home", "--hypothesis", "1", "--to", "data.raw"];
    let copied = scratch.run(&copy);
    assert!(matches!(copied.status.code(), Some(0 | 4)), "{recipe}: {copied}");
    let judged = run(mkbroken, scratch.path(), &["check", ".", "data.raw"]);
    assert!(judged.status.success(), "{recipe}: {judged}\n{solved}");
    true
}

/// Scans the images of a case, with their maps.
fn scan(scratch: &Scratch, manifest: &Value) {
    let mut words = vec!["rescue".to_owned(), "scan".to_owned(), "home".to_owned()];
    for image in list(&manifest["images"]) {
        let file = image["file"].as_str().expect("a file").to_owned();
        if let Some(map) = image["map"].as_str() {
            words.extend(["--map".to_owned(), format!("{file}={map}")]);
        }
        words.push(file);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    scratch.run(&words).ok();
}

/// Scans the images of a case, and copies and judges each of its volumes.
fn rescue(scratch: &Scratch, mkbroken: &Path, manifest: &Value, recipe: &str) {
    scan(scratch, manifest);
    for volume in list(&manifest["volumes"]) {
        let (name, array) = (&volume["name"], &volume["segments"][0][0]);
        let name = name.as_str().expect("a name");
        let uuid = list(&manifest["arrays"]).into_iter().find(|one| one["name"] == *array);
        let uuid = uuid.expect("the array of the volume")["uuid"].to_string();
        let digits: Vec<char> = uuid.chars().filter(char::is_ascii_hexdigit).collect();
        let words: Vec<String> = digits.chunks(8).map(|word| word.iter().collect()).collect();
        let (uuid, image) = (words.join(":"), format!("{name}.raw"));
        let open = scratch.run(&["rescue", "open", "home", "--array", &uuid]);
        assert!(open.out.contains("At its start: "), "{recipe}: {open}");
        let copy = ["rescue", "copy", "home", "--array", &uuid, "--to", &image];
        let copied = scratch.run(&copy);
        assert!(matches!(copied.status.code(), Some(0 | 4)), "{recipe}: {copied}");
        let judged = run(mkbroken, scratch.path(), &["check", ".", &image, "--volume", name]);
        assert!(judged.status.success(), "{recipe}, {name}: {judged}\n{copied}");
    }
}
