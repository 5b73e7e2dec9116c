//! `braid lab` as its users meet it: the real binary, the real tools, modelled members.
//!
//! ```text
//!   presets   every preset at a small scale, its reports read back
//!   endings   interrupted, killed, tools that are missing, crash, hang, print garbage;
//!             a device that goes, a full disk, two runs at once
//!   reports   list, show, compare
//! ```
//!
//! The presets take some ten minutes together, so here each is cut to a few of its subjects and
//! one repetition; with `$BRAID_LAB_SMOKE=all` nothing is cut but amounts and times. Reports and
//! pages then stay in the folder that cargo has for tests.

#[path = "../common/mod.rs"]
mod common;
mod endings;
mod presets;
mod reports;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Output, Scratch, Tool};

/// How long a small campaign may take on a busy machine; it ends what hangs.
const LIMIT: Duration = Duration::from_secs(540);

/// Whether nothing is cut.
fn all() -> bool {
    std::env::var_os("BRAID_LAB_SMOKE").is_some()
}

/// `braid lab` in a folder of its own, with sources and mounts of its own too.
struct Lab {
    scratch: Scratch,
}

impl Lab {
    fn new() -> Self {
        Self { scratch: Scratch::new() }
    }

    fn results(&self) -> PathBuf {
        self.scratch.join("results")
    }

    fn tool(&self, words: &[&str]) -> Tool {
        let tool = self.scratch.braid().arg("lab").args(words).folder(self.scratch.path());
        tool.limit(LIMIT)
    }

    fn run(&self, words: &[&str]) -> Output {
        self.tool(words).run()
    }

    /// A campaign file in the folder.
    fn campaign(&self, text: &str) -> String {
        let path = self.scratch.join("campaign.toml");
        common::with_files_open(|| std::fs::write(&path, text)).expect("a campaign can be written");
        path.display().to_string()
    }
}

fn read(path: &Path) -> String {
    common::with_files_open(|| std::fs::read_to_string(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Trials in a report by what became of them: ok and all.
fn progress(results: &Path) -> (u64, u64) {
    let report: serde_json::Value =
        serde_json::from_str(&read(&results.join("report.json"))).expect("a report is JSON");
    let number = |key: &str| report["progress"][key].as_u64().expect("the progress");
    (number("measured"), number("planned"))
}
