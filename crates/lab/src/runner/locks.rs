//! Two runs never measure one device at once: each takes a lock named by the device.
//!
//! Deliberately absent: locks of programs other than the laboratory. The server opens its members
//! exclusively, and the trust rules notice another writer.

use std::path::{Path, PathBuf};

use crate::campaign::Campaign;
use crate::error::LabError;
use crate::safety::paths_of;
use crate::store::RunLock;

/// Takes the locks of every device that a campaign touches.
///
/// # Errors
///
/// [`LabError::Busy`] with the first device that another run has.
pub(super) fn lock_devices(campaign: &Campaign) -> Result<Vec<RunLock>, LabError> {
    let folder = lock_folder();
    let mut paths: Vec<PathBuf> =
        campaign.expand().iter().flat_map(|subject| paths_of(&subject.source)).collect();
    // One order for all, so that two runs cannot wait for each other; and nobody waits anyway.
    paths.sort();
    paths.dedup();
    paths
        .iter()
        .map(|path| RunLock::take(&folder.join(lock_name(path)), &path.display().to_string()))
        .collect()
}

fn lock_folder() -> PathBuf {
    let system = Path::new("/run/lock");
    if system.is_dir() { system.to_owned() } else { std::env::temp_dir() }
}

/// A name for a path: readable, and different for different paths.
fn lock_name(path: &Path) -> String {
    let text = path.display().to_string();
    let readable: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let tail: String =
        readable.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
    let hash = crate::rng::mix(&text.bytes().map(u64::from).collect::<Vec<_>>());
    format!("braid-lab-{tail}-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_where_paths_do() {
        let (one, other) = (lock_name(Path::new("/a/b-c")), lock_name(Path::new("/a-b/c")));
        assert_ne!(one, other);
        assert!(one.starts_with("braid-lab--a-b-c-"));
    }
}
