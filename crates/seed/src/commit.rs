//! Seeds of a commit: each commit is tested with seeds that no other had, and its run can be repeated.

use std::process::Command;

/// Returns the commit of the source tree around the working folder: `BRAID_COMMIT` if it is set, else what git
/// says. Without git (an archive of the source) it is the version.
pub fn commit() -> String {
    if let Ok(commit) = std::env::var("BRAID_COMMIT") {
        return commit;
    }
    let git = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let text = git.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| env!("CARGO_PKG_VERSION").into())
}

/// Returns the first seed of a commit, at least 2^63: no list of seeds by hand reaches that far.
pub fn first_of_commit(commit: &str) -> u64 {
    // FNV-1a.
    let hash = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    commit.bytes().fold(0xcbf2_9ce4_8422_2325, hash) | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_have_seeds_of_their_own() {
        assert_ne!(first_of_commit("a"), first_of_commit("b"));
        assert!(first_of_commit("") >= 1 << 63);
    }
}
