//! Every bug that is planted in write-back is found.

mod worlds;

use braid_cache::canary::{Canary, plant};

/// As many seeds may go by before a canary counts as one that survived.
const BUDGET: u64 = 2000;

#[test]
fn every_canary_is_found() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut survived = Vec::new();
    for &canary in Canary::ALL {
        let found = (0..BUDGET).find_map(|seed| {
            plant(Some(canary));
            let with = worlds::lives(seed).and_then(|()| worlds::given_up(seed));
            plant(None);
            let without = || worlds::lives(seed).and_then(|()| worlds::given_up(seed));
            Some((seed, with.err()?)).filter(|_| without().is_ok())
        });
        match found {
            Some((seed, what)) => println!("{canary:?}: seed {seed}: {what}"),
            None => survived.push(canary),
        }
    }
    assert!(survived.is_empty(), "{survived:?}");
}
