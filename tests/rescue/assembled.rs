//! Superblocks of `rescue commit` are judged by the real kernel: it assembles the members, reads what braid reads, and
//! finds that copies and parity agree. The undo gives back every byte.
//!
//! Only with `$BRAID_INTEROP`, as [`crate::kernel`] says.

use serde_json::{Value, json};

use crate::common::{Scratch, Tool};
use crate::recipes::{is_wanted, mkbroken, run};

const RECIPES: [&str; 5] = [
    "zeroed-superblocks-all",
    "recreated-wrong-order",
    "recreated-other-offset",
    "gpt-over-members",
    "all-spares",
];

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The expression of the array of a case, by what is known of how it was made.
fn truth(scratch: &Scratch, array: &Value) -> String {
    let (level, chunk) = (number(&array["level"]), number(&array["chunk_bytes"]));
    let mut members = list(&array["members"]);
    members.sort_by_key(|one| number(&one["role"]));
    let member = |one: &Value| {
        if one["state"] != "good" || one["file"].is_null() {
            return "missing".to_owned();
        }
        let offset = number(&one["data_offset_bytes"]);
        let length = match level {
            0 => (number(&one["member_bytes"]) - offset) / chunk * chunk,
            _ => number(&array["component_bytes"]),
        };
        let path = scratch.join(text(&one["file"]));
        let start = number(&one["partition_bytes"]) + offset;
        format!("file({}, offset={start}, length={length})", path.display())
    };
    let mut words = Vec::new();
    if level != 1 {
        words.push(format!("chunk={chunk}"));
    }
    if let Some(layout) = array["layout_name"].as_str() {
        words.push(format!("layout={layout}"));
    }
    words.extend(members.iter().map(member));
    format!("raid{level}({})", words.join(", "))
}

/// Opens the case by its content; where that does not decide, the truth is what it is read by.
fn solve(scratch: &Scratch, array: &Value) {
    let solved = scratch.run(&["rescue", "solve", "home"]);
    if solved.status.success() {
        return;
    }
    let one = json!({ "geometry": "as it was made", "score": 1, "missing": 0,
                      "stack": truth(scratch, array), "doubts": [] });
    let all = json!({ "is_decided": true, "ranked": [one] });
    std::fs::write(scratch.join("home.rescue/hypotheses.json"), all.to_string()).expect("written");
}

#[test]
fn the_kernel_assembles_what_was_committed() {
    let mkbroken = match mkbroken() {
        Ok(mkbroken) => mkbroken,
        Err(why) => return println!("skipped: {why}"),
    };
    let seed = std::env::var("BRAID_RESCUE_SEED").unwrap_or_else(|_| "1".to_owned());
    for recipe in RECIPES.into_iter().filter(|recipe| is_wanted(recipe)) {
        let scratch = Scratch::new();
        let words = ["make", recipe, "--seed", &seed, "--out", ".", "--size-mib", "24"];
        run(&mkbroken, scratch.path(), &words).ok();
        let manifest = std::fs::read(scratch.join("manifest.json")).expect("a manifest");
        let manifest: Value = serde_json::from_slice(&manifest).expect("a manifest");
        let images = list(&manifest["images"]);
        let images: Vec<&str> = images.iter().map(|one| text(&one["file"])).collect();
        scratch.run(&[&["rescue", "scan", "home"], &images[..]].concat()).ok();
        solve(&scratch, &manifest["arrays"][0]);
        let mut words =
            vec!["rescue", "commit", "home", "--hypothesis", "1", "--verified", "--write"];
        let is_table = recipe == "gpt-over-members";
        if is_table {
            words.extend(images.iter().flat_map(|image| ["--force", *image]));
        }
        let written = scratch.run(&words).ok();
        let found = scratch.run(&["rescue", "commit", "home", "--json"]).ok().json();
        let members = list(&found["commit"]["members"]);
        let members: Vec<&str> = members.iter().map(|one| text(&one["path"])).collect();
        let stack = format!("md({})", members.join(", "));
        let size = number(&manifest["volumes"][0]["bytes"]).to_string();
        let braid = env!("CARGO_BIN_EXE_braid");
        let cat = r#""$1" cat "$2" --length "$3" > data.raw && "$1" cat "$2" | sha256sum"#;
        let summed = Tool::new("sh").args(["-c", cat, "sh", braid, &stack, &size]);
        let summed = summed.folder(scratch.path()).run().ok();
        run(&mkbroken, scratch.path(), &["check", ".", "data.raw"]).ok();
        let mdcheck = mkbroken.with_file_name("mdcheck");
        let judged = run(&mdcheck, scratch.path(), &[&["--json"], &members[..]].concat()).json();
        assert_eq!(judged["degraded"], 0, "{recipe}: {judged}\n{written}");
        // The copy of the table at the ends of the disks makes copies and parity differ.
        if !is_table {
            let expected = summed.out.split(' ').next().expect("a sum");
            assert_eq!(judged["sha256"], expected, "{recipe}: {judged}");
            assert!(
                [json!(0), Value::Null].contains(&judged["mismatch_cnt"]),
                "{recipe}: {judged}"
            );
        }
        scratch.run(&["rescue", "commit", "home", "--undo"]).ok();
        run(&mkbroken, scratch.path(), &["untouched", "."]).ok();
    }
}
