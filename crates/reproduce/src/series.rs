//! The published series: for each a file of figures, and beside it a function for each of its claims.

mod adata_4x_raid0;
mod cruzer_6x_raid0;
mod raid_levels_2hdd;
mod rally2_raid0;
mod rapiddisk;

use std::sync::LazyLock;

use crate::claim::Check;
use crate::read::parse;
use crate::study::Study;

/// A published series.
struct Series {
    /// The file's name.
    file: &'static str,
    text: &'static str,
    /// By the claims' ids.
    claims: &'static [(&'static str, Check)],
}

const ALL: [Series; 9] = [
    raid_levels_2hdd::SERIES,
    rally2_raid0::SERIES,
    adata_4x_raid0::SERIES,
    cruzer_6x_raid0::SERIES,
    rapiddisk::SERIES,
    held_out("md-wiki-2disks.toml", include_str!("series/md-wiki-2disks.toml")),
    held_out("raid0-3x200gb.toml", include_str!("series/raid0-3x200gb.toml")),
    held_out("hdparm-raid1-raid5.toml", include_str!("series/hdparm-raid1-raid5.toml")),
    held_out("verbatim-2x-raid0.toml", include_str!("series/verbatim-2x-raid0.toml")),
];

/// A series whose figures were read after the models were made: it has no claims.
const fn held_out(file: &'static str, text: &'static str) -> Series {
    Series { file, text, claims: &[] }
}

/// Returns the names and the texts of the series' files.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|series| (series.file, series.text))
}

/// Returns the studies of the series.
///
/// # Panics
///
/// If one of the files is not as it was committed: a test reads them all.
pub fn built_in() -> Vec<Study> {
    let study =
        |(name, text)| parse(name, text).unwrap_or_else(|error| panic!("a built-in file: {error}"));
    texts().map(study).collect()
}

/// Returns the function of a claim by the text of its predicate, whatever file the text stands in; `None` for a text
/// that no claim of the series has.
pub fn check(predicate: &str) -> Option<Check> {
    static KNOWN: LazyLock<Vec<(String, Check)>> = LazyLock::new(known);
    KNOWN.iter().find(|(text, _)| text == predicate).map(|(_, check)| *check)
}

fn known() -> Vec<(String, Check)> {
    let of_one = |(series, study): (&Series, Study)| {
        let check = |id: &str| series.claims.iter().find(|(known, _)| *known == id);
        let of_claim = |(text, id): (String, String)| check(&id).map(|(_, check)| (text, *check));
        let claims = study.claims.into_iter().map(|claim| (claim.predicate, claim.id));
        claims.filter_map(of_claim).collect::<Vec<_>>()
    };
    ALL.iter().zip(built_in()).flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each claim of a series has a function, and each function a claim, in the file's order.
    #[test]
    fn every_claim_has_its_function() {
        for (series, study) in ALL.iter().zip(built_in()) {
            let functions: Vec<&str> = series.claims.iter().map(|(id, _)| *id).collect();
            let claims: Vec<&str> = study.claims.iter().map(|claim| &*claim.id).collect();
            assert_eq!(functions, claims, "{}", series.file);
            assert!(study.claims.iter().all(|claim| check(&claim.predicate).is_some()));
        }
        assert_eq!(known().len(), 40);
        assert!(check("True").is_none());
    }
}
