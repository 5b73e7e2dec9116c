//! Divides a memory budget among several caches. Pure.
//!
//! The curve of a cache has points for some sizes. Each cache starts with its smallest size.
//! Repeatedly, the affordable step that saves the most waiting time per byte is taken. A step may
//! span several points, so that a cliff behind a flat part is found.

/// A size that a cache may have, and what it then has its clients wait for: any unit, the same for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) bytes: u64,
    pub(super) wait: f64,
}

/// The choice of each cache, as an index, so that all together are at most `budget` bytes; none if even the
/// smallest are more. Of each cache there is one choice at least, and a larger one comes later.
pub(super) fn share(caches: &[Vec<Choice>], budget: u64) -> Option<Vec<usize>> {
    let mut chosen = vec![0; caches.len()];
    let smallest: u64 = caches.iter().map(|choices| choices[0].bytes).sum();
    let mut left = budget.checked_sub(smallest)?;
    while let Some(step) = best_step(caches, &chosen, left) {
        left -= caches[step.cache][step.to].bytes - caches[step.cache][chosen[step.cache]].bytes;
        chosen[step.cache] = step.to;
    }
    Some(chosen)
}

struct Step {
    cache: usize,
    to: usize,
    /// Saved waiting time per byte.
    saves: f64,
}

fn best_step(caches: &[Vec<Choice>], chosen: &[usize], left: u64) -> Option<Step> {
    let mut best: Option<Step> = None;
    for (cache, choices) in caches.iter().enumerate() {
        let now = choices[chosen[cache]];
        for (to, choice) in choices.iter().enumerate().skip(chosen[cache] + 1) {
            let more = choice.bytes - now.bytes;
            let saves = (now.wait - choice.wait) / more as f64;
            let is_better = best.as_ref().is_none_or(|best| saves > best.saves);
            if more <= left && saves > 0.0 && is_better {
                best = Some(Step { cache, to, saves });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn choices(of: &[(u64, f64)]) -> Vec<Choice> {
        of.iter().map(|&(bytes, wait)| Choice { bytes, wait }).collect()
    }

    #[test]
    fn memory_goes_where_it_saves_most() {
        let steady = choices(&[(1, 90.0), (2, 80.0), (4, 70.0)]);
        let cliff = choices(&[(1, 100.0), (2, 100.0), (4, 0.0)]);
        assert_eq!(share(&[steady.clone(), cliff.clone()], 2), Some(vec![0, 0]));
        assert_eq!(
            share(&[steady.clone(), cliff.clone()], 4),
            Some(vec![1, 0]),
            "no room to cross it"
        );
        assert_eq!(
            share(&[steady.clone(), cliff.clone()], 5),
            Some(vec![0, 2]),
            "over the flat part"
        );
        assert_eq!(share(&[steady.clone(), cliff.clone()], 6), Some(vec![1, 2]));
        assert_eq!(share(&[steady.clone(), cliff.clone()], 100), Some(vec![2, 2]));
        assert_eq!(share(&[steady, cliff], 1), None);
        assert_eq!(share(&[], 1), Some(vec![]));
    }

    proptest! {
        /// Within the budget, and no single step is left that would save something.
        #[test]
        fn a_share_is_within_its_budget(
            caches in prop::collection::vec(prop::collection::vec((1_u64..50, 0_u32..100), 1..5), 1..5),
            budget in 1_u64..400,
        ) {
            let of = |points: Vec<(u64, u32)>| {
                let mut bytes = 0;
                let point = |(more, wait): (u64, u32)| {
                    bytes += more;
                    Choice { bytes, wait: wait.into() }
                };
                points.into_iter().map(point).collect::<Vec<_>>()
            };
            let caches: Vec<Vec<Choice>> = caches.into_iter().map(of).collect();
            let smallest: u64 = caches.iter().map(|choices| choices[0].bytes).sum();
            let shared = share(&caches, budget);
            prop_assert_eq!(shared.is_none(), smallest > budget);
            let Some(shared) = shared else { return Ok(()) };
            let taken = |shared: &[usize]| -> u64 {
                caches.iter().zip(shared).map(|(choices, at)| choices[*at].bytes).sum()
            };
            prop_assert!(taken(&shared) <= budget);
            for (cache, choices) in caches.iter().enumerate() {
                for to in shared[cache] + 1..choices.len() {
                    let mut other = shared.clone();
                    other[cache] = to;
                    let saves = choices[to].wait < choices[shared[cache]].wait;
                    prop_assert!(!saves || taken(&other) > budget);
                }
            }
        }
    }
}
