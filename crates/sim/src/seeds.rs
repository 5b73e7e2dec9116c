//! Running a test over seeds.
//!
//! `BRAID_SEED=n` runs one seed, `BRAID_SEEDS=n` that many instead of the test's own number.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `body` for each of the first `count` seeds, or for the one that `BRAID_SEED` names. On a
/// failure it prints the command that repeats it; `test` is the test's name as `cargo test`
/// takes it.
///
/// # Panics
/// If `body` does, or if the variables hold no numbers.
pub fn for_each_seed(test: &str, count: u64, body: impl Fn(u64)) {
    let seeds = match (from_environment("BRAID_SEED"), from_environment("BRAID_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count_wanted) => {
            let from = from_environment("BRAID_SEED_FROM").unwrap_or(0);
            from..from + count_wanted.unwrap_or(count)
        }
    };
    let keep_going = std::env::var_os("BRAID_KEEP_GOING").is_some();
    let mut failed = Vec::new();
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(seed))) {
            if keep_going {
                let what = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(|one| (*one).to_owned()))
                    .unwrap_or_default();
                let what: String = what.chars().take(300).collect();
                println!("FAILSEED {test} {seed}: {}", what.replace('\n', " "));
                failed.push(seed);
                continue;
            }
            eprintln!("to repeat: BRAID_SEED={seed} cargo test -p {} {test}", package());
            resume_unwind(panic);
        }
    }
    assert!(failed.is_empty(), "failed seeds of {test}: {failed:?}");
}

/// True if one seed was requested, and so all its details.
pub(crate) fn is_repeating() -> bool {
    std::env::var_os("BRAID_SEED").is_some()
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The package under test, which cargo tells the tests it runs.
fn package() -> String {
    std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "braid-sim".to_owned())
}
