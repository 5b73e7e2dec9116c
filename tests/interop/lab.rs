//! The laboratory: a program that boots a real kernel and runs a script in it.
//!
//! `klab run --engine E --share FOLDER --timeout S --script FILE` boots kernel E, in which FOLDER
//! is `/share`, runs the script there, and passes its output and exit status through.
//!
//! It is found by `$KLAB`, which the Makefile has a default for, else in `$PATH`.
//! An engine counts only after a kernel has booted in it: some machines stop one kind at once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::{Output, Tool};

/// Fastest first. `$KLAB_ENGINE` names one that is tried before them.
const ENGINES: [&str; 4] = ["uml612", "uml", "qemu", "qemu61"];
/// The kernels that still have linear: it was removed in Linux 6.8.
const WITH_LINEAR: [&str; 2] = ["uml", "qemu61"];
/// The time in which a guest must boot, and the time for each array, in seconds: emulated processors are slow,
/// and the limit ends guests that hang.
const BOOT_LIMIT: u64 = 180;
const ARRAY_LIMIT: u64 = 40;

/// A kernel that boots here.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    klab: PathBuf,
    name: &'static str,
    /// `6.12.117`, without what the distribution adds.
    pub(crate) kernel: String,
    /// `4.2`.
    pub(crate) mdadm: String,
}

impl Engine {
    /// One with every level but perhaps linear, or why there is none.
    pub(crate) fn any() -> Result<&'static Engine, &'static str> {
        static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();
        ENGINE.get_or_init(|| first_of(&ENGINES)).as_ref().map_err(String::as_str)
    }

    /// One with linear, or why there is none.
    pub(crate) fn with_linear() -> Result<&'static Engine, &'static str> {
        static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();
        match Engine::any() {
            Ok(engine) if WITH_LINEAR.contains(&engine.name) => Ok(engine),
            _ => ENGINE.get_or_init(|| first_of(&WITH_LINEAR)).as_ref().map_err(String::as_str),
        }
    }

    /// True if its processors are emulated.
    pub(crate) fn is_emulated(&self) -> bool {
        self.name.starts_with("qemu")
    }

    /// Runs the script `share/NAME`, which is about so many `arrays`, with `share` as `/share`.
    pub(crate) fn run(&self, share: &Path, name: &str, arrays: usize) -> Output {
        let limit = BOOT_LIMIT + ARRAY_LIMIT * arrays as u64;
        let script = share.join(name);
        Tool::new(&self.klab)
            .args(["run", "--engine", self.name, "--timeout", &limit.to_string(), "--share"])
            .arg(share)
            .arg("--script")
            .arg(script)
            .limit(std::time::Duration::from_secs(limit + 60))
            .run()
    }
}

fn find() -> Result<PathBuf, String> {
    match std::env::var_os("KLAB").filter(|path| !path.is_empty()).map(PathBuf::from) {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(format!("$KLAB is {}, which is no file", path.display())),
        None => crate::common::find_program("klab")
            .ok_or_else(|| "there is no klab, neither by $KLAB nor in $PATH".into()),
    }
}

/// The first engine of these that is prepared and boots.
fn first_of(engines: &[&'static str]) -> Result<Engine, String> {
    let klab = find()?;
    let info = Tool::new(&klab).arg("info").run().out;
    let is_prepared = |engine: &&&str| {
        let line = info.lines().find(|line| line.split_whitespace().next() == Some(engine));
        line.is_some_and(|line| line.contains("kernel"))
    };
    let chosen = std::env::var("KLAB_ENGINE").unwrap_or_default();
    let mut prepared: Vec<&&str> = engines.iter().filter(is_prepared).collect();
    prepared.sort_by_key(|engine| **engine != chosen);
    if prepared.is_empty() {
        return Err(format!("no kernel of {} is prepared: `klab prepare`", engines.join(", ")));
    }
    let mut failures = Vec::new();
    for engine in prepared {
        match boot(&klab, engine) {
            Ok(engine) => return Ok(engine),
            Err(why) => failures.push(format!("{engine} does not boot: {why}")),
        }
    }
    Err(failures.join("; "))
}

/// Boots it to see whether it does, and what is in it.
fn boot(klab: &Path, engine: &'static str) -> Result<Engine, String> {
    let script = "uname -r; mdadm --version 2>&1";
    let output = Tool::new(klab)
        .args(["run", "--engine", engine, "--timeout", "120", "--", script])
        .limit(std::time::Duration::from_secs(180))
        .run();
    let mut lines = output.out.lines();
    match (lines.next(), lines.next()) {
        (Some(release), Some(mdadm)) if output.status.success() => Ok(Engine {
            klab: klab.to_owned(),
            name: engine,
            kernel: release.split(['-', '+']).next().unwrap_or(release).to_owned(),
            mdadm: mdadm
                .split_whitespace()
                .find_map(|word| word.strip_prefix('v'))
                .unwrap_or("?")
                .to_owned(),
        }),
        _ => Err(output.err.lines().last().unwrap_or("it says nothing").to_owned()),
    }
}
