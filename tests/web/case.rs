//! A case of `braid rescue` on the page, which reads its folder: over the interface, and in Chromium (`case.py`).

use std::path::Path;

use serde_json::json;

use crate::common::{MIB, Scratch, Tool, skip_without};
use crate::server::Web;

const NAMES: [&str; 4] = ["a.img", "b.img", "c.img", "d.img"];

/// A case with an ext4 on a raid5, one member of which was damaged, after `verify`.
fn verified(scratch: &Scratch) {
    let root = scratch.join("root");
    std::fs::create_dir_all(&root).expect("a folder");
    for number in 0..40 {
        let name = format!("root/{number}.bin");
        scratch.file(&name, 300_000, number);
        Tool::new("gzip").arg(scratch.join(&name)).run().ok();
    }
    scratch.sparse("data.img", 48 * MIB);
    let words = ["-q", "-F", "-b", "4096", "-O", "^has_journal", "-d"];
    Tool::new("mkfs.ext4").args(words).arg(&root).arg(scratch.join("data.img")).run().ok();
    NAMES.iter().for_each(|name| drop(scratch.sparse(name, 24 * MIB)));
    let words = ["create", "home", "--level", "raid5", "--chunk", "64K"];
    scratch.run(&[&words[..], &NAMES[..]].concat()).ok();
    let volume = scratch.serve(&format!("md({})", NAMES.join(", ")), &[]);
    Tool::new("nbdcopy").arg("--flush").arg(scratch.join("data.img")).arg(volume.uri()).run().ok();
    drop(volume);
    for at in (5 * MIB..6 * MIB).step_by(64 << 10) {
        scratch.patch("c.img", at + 4096, &[0xa5; 512]);
    }
    scratch.run(&[&["rescue", "scan", "home"][..], &NAMES[..]].concat()).ok();
    scratch.run(&["rescue", "verify", "home"]);
}

#[test]
fn a_case_is_shown_as_its_folder_has_it() {
    skip_without!("mkfs.ext4", "e2fsck", "nbdcopy", "unshare");
    let scratch = Scratch::new();
    verified(&scratch);
    let web = Web::start(&scratch, &["--case", "home", "--case", "none.rescue"]);
    assert_eq!(web.get("/api/v1").ok()["cases"], true);
    let answer = web.get("/api/v1/cases").ok();
    let (home, none) = (&answer["cases"][0], &answer["cases"][1]);
    assert_eq!(home["name"], "home");
    assert_eq!(home["members"].as_array().map(Vec::len), Some(4), "{home}");
    assert_eq!(home["verified"][0]["verdict"], "doubtful", "{home}");
    assert_eq!(home["problems"], json!([]));
    assert_eq!(none["members"], json!(null));
    let problem = none["problems"][0].as_str().expect("a problem");
    assert!(problem.contains("there is no case in"), "{problem}");

    if ["chromium", "chromedriver"].iter().any(|one| crate::common::find_program(one).is_none()) {
        return println!("skipped in part: chromium and chromium-driver show the page");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/web/case.py");
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-screenshots");
    std::fs::create_dir_all(&screenshots).expect("a folder");
    let limit = std::time::Duration::from_secs(300);
    let words = [web.printed.as_str(), screenshots.to_str().expect("UTF-8")];
    let output =
        Tool::new("/usr/bin/python3").arg("-B").arg(&script).args(words).limit(limit).run();
    if output.code() == 77 {
        return println!("skipped in part: {}", output.err.trim());
    }
    assert!(output.out.trim().ends_with("all of it"), "{output}");
}
