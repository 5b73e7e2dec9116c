//! The page in Chromium, used by clicks and by keys: see `clicks.py`. Screenshots stay in `web-screenshots/` of
//! the target directory's `tmp`.
//!
//! Needs Debian's chromium, chromium-driver and python3-selenium; without them it is skipped.

use std::path::Path;

use crate::common::{MIB, Scratch, Tool, skip_without};
use crate::server::{Web, with_home, with_results};

#[test]
fn a_member_is_taken_out_and_in_again_by_clicks() {
    skip_without!("chromium", "chromedriver");
    let scratch = Scratch::new();
    with_home(&scratch);
    for name in ["d.img", "e.img", "f.img", "g.img"] {
        scratch.sparse(name, 8 * MIB);
    }
    scratch
        .run(&["create", "media", "--level", "raid5", "c.img", "d.img", "e.img", "--assume-clean"])
        .ok();
    // It is brought up by a click later, and is to be no device of this machine then.
    scratch.run(&["up", "media", "--attach", "none", "--remember"]).ok();
    scratch.run(&["down", "media"]).ok();
    scratch.run(&["up", "cache(size=4M, ram(16M))", "--name", "scratch", "--attach", "none"]).ok();
    let lab = scratch.join("lab");
    std::fs::create_dir_all(lab.join("<b>one")).unwrap();
    let report = "<!doctype html><title>r</title><h1 id=h>As it was measured</h1><script>document.title='ran'</script>";
    std::fs::write(lab.join("<b>one/report.html"), report).unwrap();
    with_results(&scratch, &lab.join("two"));
    let web = Web::start(&scratch, &["--lab", lab.to_str().unwrap()]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/web/clicks.py");
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("web-screenshots");
    std::fs::create_dir_all(&screenshots).unwrap();
    let output = Tool::new("/usr/bin/python3")
        .arg("-B")
        .arg(&script)
        .args([web.printed.as_str(), env!("CARGO_BIN_EXE_braid")])
        .args([scratch.path(), &screenshots])
        .env("BRAID_RUN_DIR", scratch.run_folder())
        .env("BRAID_CONFIG_DIR", scratch.join("config"))
        .env("BRAID_STATE_DIR", scratch.join("state"))
        .limit(std::time::Duration::from_secs(300))
        .run();
    if output.code() == 77 {
        println!("skipped: {}", output.err.trim());
        return;
    }
    let output = output.ok();
    println!("{}", output.out);
    assert!(output.out.trim().ends_with("all of it"), "{output}");
}
