//! The Debian package of the program that is tested.

use std::path::{Path, PathBuf};

use super::scratch::Scratch;
use super::tool::Tool;

/// The root of the sources.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the sources")
}

/// The package of the program `binary`, with another version than the program says.
pub(crate) fn package(scratch: &Scratch, binary: &Path, version: &str) -> PathBuf {
    let licences = scratch.join("licences");
    std::fs::write(&licences, "as scripts/licences.sh lists them\n").expect("a file");
    let output = Tool::new(sources().join("scripts/deb.sh"))
        .env("BINARY", binary)
        .env("OUT", scratch.join("out"))
        .env("VERSION", version)
        .env("COMPRESSION", "none")
        .env("LICENCES", &licences)
        .run()
        .ok();
    output.out.trim().into()
}
