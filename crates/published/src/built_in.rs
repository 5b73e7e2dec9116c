//! The files that the program has in itself.

use crate::read::parse;
use crate::study::Study;

macro_rules! files {
    ($($name:literal)*) => {
        /// Names and texts, byte for byte those of `testdata/published`.
        pub const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../testdata/published/", $name)))),*];
    };
}

files! {
    "raid-levels-2hdd.toml"
    "rally2-raid0.toml"
    "adata-4x-raid0.toml"
    "cruzer-6x-raid0.toml"
    "rapiddisk.toml"
}

/// The studies of [`FILES`].
///
/// # Panics
///
/// If one of them is not as it was committed: a test reads them all.
pub fn built_in() -> Vec<Study> {
    let study = |(name, text): &(&str, &str)| {
        parse(name, text).unwrap_or_else(|error| panic!("a built-in file: {error}"))
    };
    FILES.iter().map(study).collect()
}
