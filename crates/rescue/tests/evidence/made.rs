//! Images that the tools of file systems make.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use braid_seed::Rng;

pub(crate) const MIB: u64 = 1 << 20;

/// The way in which an image gets its files.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Filled {
    /// The kernel writes them; root is needed.
    Mounted,
    /// There are none.
    Not,
}

/// Returns the bytes of an image of `size` bytes in which `words` made a file system and files were written, or `None`, with a
/// line that says why, if this machine cannot make one.
pub(crate) fn mkfs(size: u64, words: &[&str], filled: Filled) -> Option<Vec<u8>> {
    let scratch = tempfile::tempdir().expect("a temporary folder can be made");
    let image = scratch.path().join("image");
    let file = fs::File::create(&image).expect("an image can be made");
    file.set_len(size).expect("an image has any size");
    if Command::new(words[0]).arg("--version").output().is_err() {
        println!("skipped: {} is not installed (scripts/setup.sh test)", words[0]);
        return None;
    }
    run(Command::new(words[0]).args(&words[1..]).arg(&image));
    if filled == Filled::Mounted {
        fill(&Mounted::new(&image, &scratch.path().join("mounted"))?.0);
    }
    Some(fs::read(&image).expect("an image can be read"))
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program was found before");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A mounted image, which is unmounted when it is dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn new(image: &Path, point: &Path) -> Option<Mounted> {
        fs::create_dir(point).expect("a folder can be made");
        let mount = Command::new("mount").args(["-o", "loop"]).arg(image).arg(point).output();
        let output = mount.expect("mount is there");
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            println!("skipped: the image cannot be mounted: {}", why.trim());
            return None;
        }
        Some(Mounted(point.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(Command::new("umount").arg(&self.0));
    }
}

/// Writes folders with small files and a few large ones in several transactions, and removes some.
fn fill(root: &Path) {
    let mut rng = Rng::new(1);
    for folder in 0..20 {
        let folder = root.join(format!("folder {folder}"));
        fs::create_dir(&folder).expect("a folder can be made");
        for file in 0..100 {
            let path = folder.join(format!("a file with a longer name {file}"));
            fs::write(&path, vec![b'x'; file * 50]).expect("there is room");
            // As archives and copies have it.
            let age = Duration::from_secs(rng.below(1 << 28));
            let opened = fs::File::options().write(true).open(&path).expect("it is there");
            opened.set_modified(SystemTime::now() - age).expect("a time can be set");
            if file % 7 == 3 {
                fs::remove_file(&path).expect("it is there");
            }
        }
        let large = fs::File::create(folder.join("large")).expect("a file can be made");
        large.set_len(1 << 30).expect("it is sparse");
        for piece in 0..50_u64 {
            std::os::unix::fs::FileExt::write_all_at(&large, b"piece", piece * 10_000)
                .expect("there is room");
        }
        large.sync_all().expect("it is durable");
    }
}
