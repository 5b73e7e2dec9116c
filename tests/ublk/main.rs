//! A volume as a device of the ublk driver, and of the kernel's NBD client, in a guest: this machine's kernel may have
//! neither.
//!
//! ```text
//!   host                               guest: Linux 6.12, / of the host, read-only
//!   braid, braid-volume ──/share──▶    guest.sh, nbd.sh: up, file systems, kill -9, up, scrub, down
//! ```
//!
//! Without klab, or without an engine that has the driver, the test says so and is skipped.

#[path = "../common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Scratch, Tool};

/// Engines with such drivers. The guest sees the programs of this machine, which an emulated one takes minutes to start.
const ENGINES: [&str; 2] = ["uml612", "qemu"];
/// Time limit of the script in the guest, in seconds.
const LIMIT: u64 = 900;

/// klab, and a prepared engine with `driver`; or why there is none.
fn engine(driver: &str) -> Result<(PathBuf, &'static str), String> {
    let klab = match std::env::var_os("KLAB").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => {
            common::find_program("klab").ok_or("there is no klab, neither by $KLAB nor in $PATH")?
        }
    };
    if !klab.is_file() {
        return Err(format!("{} is no file", klab.display()));
    }
    let info = Tool::new(&klab).arg("info").run().out;
    let has_driver = |engine: &&&str| {
        let mut lines = info.lines().skip_while(|line| !line.starts_with(**engine));
        lines.by_ref().take(2).any(|line| line.split([' ', ',']).any(|word| word == driver))
    };
    let found = ENGINES.iter().find(has_driver).copied();
    found
        .map(|engine| (klab, engine))
        .ok_or_else(|| format!("no kernel of {ENGINES:?} is prepared"))
}

#[test]
fn a_device_serves_outlives_its_server_and_goes() {
    run("ublk_drv", "guest.sh");
}

#[test]
fn a_device_of_the_nbd_client_serves_and_goes() {
    run("nbd", "nbd.sh");
}

/// Runs `script` in a guest that has `driver`.
fn run(driver: &str, script: &str) {
    let (klab, engine) = match engine(driver) {
        Ok(found) => found,
        Err(why) => return println!("skipped: {why}"),
    };
    let scratch = Scratch::new();
    let program = Path::new(env!("CARGO_BIN_EXE_braid"));
    for name in ["braid", "braid-volume"] {
        std::fs::copy(program.with_file_name(name), scratch.join(name)).expect("a program");
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    std::fs::copy(tests.join("changing.py"), scratch.join("changing.py")).expect("a program");
    let script = tests.join("ublk").join(script);
    let output = Tool::new(&klab)
        .args([
            "run",
            "--engine",
            engine,
            "--timeout",
            &LIMIT.to_string(),
            "--root",
            "/",
            "--share",
        ])
        .arg(scratch.path())
        .arg("--script")
        .arg(&script)
        .limit(Duration::from_secs(LIMIT + 60))
        .run();
    assert!(output.out.lines().any(|line| line == "passed"), "{output}");
}
