//! The README's campaign, the first that its reader runs, and its advice.

use std::path::Path;

use super::{Lab, Pressure, read};
use crate::common::{Scratch, Tool, skip_without};

/// The first command of the README that begins so, in words by the rules of a shell, and the lines below it.
fn example(begin: &str) -> (Vec<String>, String) {
    let readme = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    let lines = readme.lines().skip_while(|line| !line.trim_start().starts_with(begin));
    let mut lines = lines.map(str::trim_start);
    let mut text = String::new();
    for line in lines.by_ref() {
        text += line.trim_start_matches("$ ").trim_end_matches('\\');
        if !line.ends_with('\\') {
            break;
        }
    }
    let words = Tool::new("sh").args(["-c", &format!("printf '%s\\n' {text}")]).run().ok().out;
    let below: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    (words.lines().map(str::to_owned).collect(), below.join(" "))
}

#[test]
fn its_advice_is_what_is_printed() {
    let (words, below) = example("$ braid advise ");
    let scratch = Scratch::new();
    let output = scratch.braid().args(&words[1..]).run().ok();
    let printed = output.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!below.is_empty() && printed.contains(&below), "{output}");
}

/// Rules that doubt numbers of a machine that has other things to do.
const OF_BUSY_MACHINES: [&str; 3] = ["unsteady-repetitions", "not-steady", "too-short"];

/// A first example with numbers that braid's own rules doubt would teach that doubts are normal.
#[test]
fn its_numbers_are_not_doubted() {
    skip_without!("fio");
    let lab = Lab::new();
    let (words, _) = example("$ braid lab run ");
    assert_eq!(words[..3], ["braid", "lab", "run"]);
    let words: Vec<_> = words[2..].iter().map(String::as_str).collect();
    let pressure = Pressure::begin();
    let output = lab.run(&words).ok();
    let busy = pressure.of_busy_machine();
    let report: serde_json::Value =
        serde_json::from_str(&read(&lab.results().join("report.json"))).expect("JSON");
    let cells = report["cells"].as_array().expect("cells");
    let doubted: Vec<_> = cells.iter().filter(|one| one["standing"] != "ok").collect();
    let findings = doubted.iter().flat_map(|one| one["findings"].as_array().expect("findings"));
    let mut doubting = findings.filter(|one| one["standing"] != "ok");
    let is_of_machine = |one: &serde_json::Value| {
        one["rule"].as_str().is_some_and(|rule| OF_BUSY_MACHINES.contains(&rule))
    };
    let is_told_apart = output.out.contains("\nTake pair: ");
    let is_doubted = !is_told_apart || !doubted.is_empty();
    if let Some(busy) = busy.filter(|_| is_doubted && doubting.all(is_of_machine)) {
        println!("skipped: rightly doubted, {busy}");
        return;
    }
    assert!(!cells.is_empty() && doubted.is_empty(), "{output}");
    // That models are models is a remark.
    let doubts = report["doubts"].as_array().expect("doubts");
    assert!(doubts.iter().all(|one| one["rule"] == "modelled"), "{output}");
    let marks = output.out.lines().filter(|line| line.starts_with("- ")).count();
    assert_eq!((doubts.len(), marks), (1, 1), "{output}");
    assert!(is_told_apart, "{output}");
    lab.assert_nothing_is_left(&lab.results());
}
