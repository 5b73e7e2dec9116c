//! Lives in which memory is spent.

use crate::Rng;
use crate::scenario::{Act, Life, What};

/// Memory is spent from the start, or later, for a while or beyond the life's end; and a scrub, which takes some.
pub(crate) fn little(rng: &mut Rng, life: &mut Life) {
    // The first lets each pool lend one buffer at a time.
    const LIMITS: [usize; 6] = [0, 0, 8 << 10, 32 << 10, 128 << 10, 1 << 20];
    let long_ns = [2_000_000, 20_000_000, 600_000_000][rng.index(3)];
    for number in 0..rng.within(1..=5) {
        let at_ns = if number == 0 { 0 } else { rng.below(long_ns) };
        let limit = rng.percent(90).then(|| LIMITS[rng.index(LIMITS.len())]);
        life.acts.push(Act { at_ns, what: What::Memory { limit } });
    }
    if rng.percent(50) {
        let what = if rng.percent(50) { What::Check } else { What::Repair };
        life.acts.push(Act { at_ns: rng.below(long_ns), what });
    }
    life.acts.sort_by_key(|act| act.at_ns);
}
