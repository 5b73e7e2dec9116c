//! A folder that is this test's own, with members, sockets and configurations in it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::pattern::fill;
use super::tool::{Output, Tool, with_files_open};
use super::volume::{UpVolume, Volume};

/// A folder that goes with this value.
///
/// Volumes made from it borrow it, so that they end before their members are removed.
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        // The path of a Unix socket has at most 107 bytes: $TMPDIR may be too long for it.
        let folder = tempfile::Builder::new()
            .prefix("bt")
            .tempdir_in("/tmp")
            .expect("a folder can be made in /tmp");
        Scratch { folder }
    }

    /// The folder, in which commands run: members are named `a.img`.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn config_file(&self, name: &str) -> PathBuf {
        self.join("config").join(format!("{name}.toml"))
    }

    pub(crate) fn run_folder(&self) -> PathBuf {
        self.join("run")
    }

    /// Makes a file of `size` bytes without any allocated.
    pub(crate) fn sparse(&self, name: &str, size: u64) -> PathBuf {
        let path = self.join(name);
        let make = || File::create(&path)?.set_len(size);
        with_files_open(make).expect("a member can be made");
        path
    }

    /// Makes a file of `size` bytes of [`fill`]'s pattern.
    pub(crate) fn file(&self, name: &str, size: u64, seed: u64) -> PathBuf {
        let path = self.sparse(name, size);
        let mut bytes = vec![0; (1 << 20).min(size as usize)];
        let mut offset = 0;
        while offset < size {
            let count = (size - offset).min(bytes.len() as u64) as usize;
            fill(&mut bytes[..count], seed, offset);
            self.patch(name, offset, &bytes[..count]);
            offset += count as u64;
        }
        path
    }

    /// Writes into a member behind braid's back.
    pub(crate) fn patch(&self, name: &str, offset: u64, bytes: &[u8]) {
        let path = self.join(name);
        let write = || File::options().write(true).open(path)?.write_all_at(bytes, offset);
        with_files_open(write).expect("a member can be written");
    }

    /// Makes a member shorter or longer behind braid's back.
    pub(crate) fn resize(&self, name: &str, size: u64) {
        let path = self.join(name);
        let resize = || File::options().write(true).open(path)?.set_len(size);
        with_files_open(resize).expect("a member can be resized");
    }

    /// The states in the output of `examine` for a member: its own, and the array's.
    pub(crate) fn states(&self, member: &str) -> (String, String) {
        let text = self.run(&["examine", member]).ok().out;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
            let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
            line.trim_start_matches([' ', ':']).to_owned()
        };
        let array = field("Array State").split_whitespace().next().unwrap_or_default().to_owned();
        (field("State :"), array)
    }

    /// The content of a member.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let path = self.join(name);
        with_files_open(|| std::fs::read(path)).expect("a member can be read")
    }

    /// `braid`, in this folder.
    pub(crate) fn braid(&self) -> Tool {
        Tool::new(env!("CARGO_BIN_EXE_braid"))
            .env("BRAID_RUN_DIR", self.run_folder())
            .env("BRAID_CONFIG_DIR", self.join("config"))
            .env("BRAID_STATE_DIR", self.join("state"))
            .env("BRAID_DEV_DIR", self.join("dev"))
            .env("NO_COLOR", "1")
            .folder(self.path())
    }

    /// `braid` with these arguments, run to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.braid().args(args).run()
    }

    /// Serves a stack in the foreground.
    #[track_caller]
    pub(crate) fn serve(&self, stack: &str, options: &[&str]) -> Volume<'_> {
        self.try_serve(stack, options).unwrap_or_else(|output| panic!("{output}"))
    }

    /// Serves a stack in the foreground, if that can be.
    #[track_caller]
    pub(crate) fn try_serve(&self, stack: &str, options: &[&str]) -> Result<Volume<'_>, Output> {
        Volume::start(self, stack, options)
    }

    /// Brings a volume up in the background; `options` has its name.
    #[track_caller]
    pub(crate) fn up(&self, target: &str, options: &[&str]) -> UpVolume<'_> {
        UpVolume::start(self, target, options).unwrap_or_else(|output| panic!("{output}"))
    }
}

impl Drop for Scratch {
    /// Ends what no guard has ended: a volume whose test failed before it had one.
    fn drop(&mut self) {
        let entries = std::fs::read_dir(self.run_folder()).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "sock") {
                let name = path.file_stem().unwrap_or_default();
                let down = self.braid().arg("down").arg(name).arg("--force");
                // A panic inside a panic would end all tests.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| down.run()));
            }
        }
    }
}
