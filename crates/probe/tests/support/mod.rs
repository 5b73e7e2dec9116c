//! Shared code of the tests with real tools and devices: running, skipping with a message, cleaning up.

#![allow(dead_code)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A new sparse image file of `size` bytes.
pub(crate) fn image(directory: &Path, name: &str, size: u64) -> PathBuf {
    let path = directory.join(name);
    let file = File::create(&path).expect("the image can be made");
    file.set_len(size).expect("the image can be that large");
    path
}

/// Runs a program and returns its standard output; `Err` says why there is none.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        // Administrators' tools are in directories that a plain user's PATH may lack.
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Says that a part of a test does not run here, and why.
pub(crate) fn skip(what: &str, why: &str) {
    eprintln!("SKIP {what}: {why}");
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the test's paths are UTF-8")
}

/// A loop device; detached when dropped.
pub(crate) struct Loop {
    pub(crate) device: PathBuf,
}

impl Loop {
    /// Any free loop device on `file`, with its partitions, or why there is none.
    pub(crate) fn attach(file: &Path) -> Result<Self, String> {
        let device = run("losetup", &["--find", "--show", "--partscan", text(file)])?;
        Ok(Self { device: PathBuf::from(device.trim()) })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if let Err(error) = run("losetup", &["--detach", text(&self.device)]) {
            eprintln!("left behind: {error}");
        }
    }
}

/// A mount; unmounted when dropped.
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
}

impl Mount {
    pub(crate) fn new(device: &Path, at: &Path) -> Result<Self, String> {
        run("mount", &[text(device), text(at)])?;
        Ok(Self { at: at.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[text(&self.at)]) {
            eprintln!("left behind: {error}");
        }
    }
}

/// A process that is ended when dropped.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// A process named `sleep` that has `file` as its standard input.
    pub(crate) fn holding(file: File) -> Self {
        let child = Command::new("sleep").arg("600").stdin(file).spawn();
        Self(child.expect("sleep can be started"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let ended = self.0.kill().and_then(|()| self.0.wait());
        if let Err(error) = ended {
            eprintln!("left behind: {error}");
        }
    }
}
