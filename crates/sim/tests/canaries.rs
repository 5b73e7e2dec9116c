//! Every bug that is planted is found within its budget, by seeds that change with the commit.

use braid_engine::canary::Canary;
use braid_seed::{commit, first_of_commit};
use braid_sim::campaign::keep_panics;
use braid_sim::canaries::{Found, hunt};

#[test]
fn every_canary_is_found() {
    keep_panics();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tell = |found: &Found| println!("{:?}: {:?}", found.canary, found.by);
    let found = hunt(Canary::ALL, first_of_commit(&commit()), threads, &tell);
    let survived: Vec<_> = found.iter().filter(|one| one.by.is_none()).collect();
    assert!(survived.is_empty(), "{survived:?}");
}

#[test]
fn every_canary_is_in_the_document_with_its_rule() {
    let text = include_str!("../../../docs/durability.md");
    let is_listed = |canary: &&Canary| text.contains(&format!("\n| `{}` |", canary.name()));
    let missing: Vec<_> = Canary::ALL.iter().filter(|canary| !is_listed(canary)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
