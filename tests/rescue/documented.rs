//! The cases of `docs/rescue.md` that the kernel's golden arrays are: their commands print what stands there.
//!
//! `…` stands for anything in a line, and alone in a line for any lines. A command without output is not run.

use crate::Case;
use crate::broken::{CHUNK, map};
use crate::common::{MIB, Scratch, Tool};
use crate::solved::{NAMES, recreated};

const DOCUMENT: &str = include_str!("../../docs/rescue.md");
/// The folder of the members in the document.
const FOLDER: &str = "/srv";

/// The commands of a section, each with the lines that follow.
fn commands(heading: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let section = DOCUMENT.lines().skip_while(|line| *line != heading).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in section {
        match (line.strip_prefix("    $ "), line.strip_prefix("    ")) {
            (Some(command), _) => found.push((command, Vec::new())),
            (None, Some(output)) => {
                if let Some((_, lines)) = found.last_mut() {
                    lines.push(output);
                }
            }
            (None, None) => {}
        }
    }
    found.retain(|(_, lines)| !lines.is_empty());
    found
}

/// True if the parts of `expected` between `…` stand in `line`, in order.
fn is_like(line: &str, expected: &str, folder: &str) -> bool {
    let expected = expected.trim().replace(FOLDER, folder);
    let mut rest = line.trim();
    let parts: Vec<&str> = expected.split('…').collect();
    let is_there = parts.iter().enumerate().all(|(index, part)| match rest.find(part) {
        Some(at) if index > 0 || at == 0 => {
            rest = &rest[at + part.len()..];
            true
        }
        _ => false,
    });
    is_there && (rest.is_empty() || parts.len() > 1 && expected.ends_with('…'))
}

/// Runs the commands of a section, and compares what they print.
fn run(scratch: &Scratch, heading: &str) -> usize {
    let folder = scratch.path().display().to_string();
    let commands = commands(heading);
    for (command, expected) in &commands {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let output = scratch.braid().args(words).env("TZ", "UTC").run();
        let mut lines = output.out.lines();
        for one in expected.iter().filter(|one| one.trim() != "…") {
            let is_there = lines.any(|line| is_like(line, one, &folder));
            assert!(is_there, "{heading}: {one:?} is not in\n{output}");
        }
    }
    commands.len()
}

/// The array of the document: its members have the names that they have there.
fn case() -> Case {
    let mut case = Case::of(braid_golden::broken("raid5-4-two-dropped-bitmap"));
    let names = ["a.img", "b.img", "c.img", "d.img"];
    for (name, to) in case.names.iter().zip(names) {
        std::fs::rename(case.scratch.join(name), case.scratch.join(to)).expect("another name");
    }
    case.names = names.map(str::to_owned).to_vec();
    case
}

#[test]
fn two_members_that_left_at_different_times_are_read_as_documented() {
    let case = case();
    assert_eq!(run(&case.scratch, "## Two members left, at different times"), 3);
    case.untouched();
}

#[test]
fn bad_sectors_are_read_as_documented() {
    let case = case();
    // Two blocks of member 2: one that others have, and one in what was written after member 3 had left.
    let holes = [(MIB + CHUNK, 4096), (MIB + 6 * CHUNK + 4096, 4096)];
    let map = map(case.golden.members[2].bytes, &holes);
    std::fs::write(case.scratch.join("c.map"), map).expect("a map");
    assert_eq!(run(&case.scratch, "## Disks with bad sectors"), 2);
    case.untouched();
}

#[test]
fn an_array_that_was_created_anew_in_the_wrong_order_is_read_as_documented() {
    let scratch = Scratch::new();
    let manifest = recreated(&scratch, NAMES);
    let before: Vec<Vec<u8>> = NAMES.iter().map(|name| scratch.read(name)).collect();
    assert_eq!(run(&scratch, "## Created anew in the wrong order"), 4);
    let mut out = scratch.read("home-data.img");
    out.truncate(
        usize::try_from(manifest["content_bytes"].as_u64().expect("a length")).expect("small"),
    );
    std::fs::write(scratch.join("content.img"), out).expect("the content");
    let sum = Tool::new("sha256sum").arg(scratch.join("content.img")).run().ok().out;
    assert!(sum.starts_with(manifest["content_sha256"].as_str().expect("a sum")), "{sum}");
    for (name, before) in NAMES.iter().zip(&before) {
        assert!(scratch.read(name) == *before, "{name} was written");
    }
}
