//! Seeds that once failed: a list that grows, and that every run of CI goes through.
//!
//! ```text
//!   # seed  commit  what
//!   20313   1a2b3c4 life 4: when it is up refused: …
//! ```

use std::fs::{OpenOptions, read_to_string};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The path of the list, in this source tree.
pub fn list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/seeds/failed.txt")
}

/// The seeds of the list at `path`.
///
/// # Errors
/// It cannot be read, or a line does not begin with a number.
pub fn kept(path: &Path) -> io::Result<Vec<u64>> {
    let text = read_to_string(path)?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(seed_of).collect()
}

fn seed_of(line: &str) -> io::Result<u64> {
    let first = line.split_whitespace().next().unwrap_or_default();
    let bad = |_| io::Error::other(format!("a line that does not begin with a seed: {line:?}"));
    first.parse().map_err(bad)
}

/// Adds `seed`, which fails with `what` at `commit`.
///
/// # Errors
/// The list cannot be written.
pub fn keep(path: &Path, seed: u64, commit: &str, what: &str) -> io::Result<()> {
    let what = what.lines().next().unwrap_or_default();
    let what: String = what.chars().take(120).collect();
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{seed} {commit} {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("failed.txt");
        keep(&path, 7, "abc", "one\nand more").unwrap();
        keep(&path, 9, "abc", "two").unwrap();
        assert_eq!(kept(&path).unwrap(), [7, 9]);
        std::fs::write(&path, "# a remark\n\nseven abc\n").unwrap();
        assert!(kept(&path).unwrap_err().to_string().contains("seven"));
    }

    #[test]
    fn the_list_in_the_tree_can_be_read() {
        assert!(kept(&list()).is_ok(), "the list in the tree");
    }
}
