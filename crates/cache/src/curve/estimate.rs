//! From what was counted of a sample to the ratio of all: the regression estimator (Cochran, "Sampling
//! Techniques", 3rd ed., 7.1), over groups of blocks.
//!
//! A sample has the blocks that are used most or has them not, so how many reads it sees is off by far more
//! than how many misses it sees: what is used most always hits. So misses are held against the reads that
//! the sample should have seen, of which all that were are known. Where misses follow reads (a loop that is
//! longer than the cache) the opposite is right, and where the truth lies between is in the counts:
//!
//! ```text
//!   misses / expected  −  slope · (reads / expected − 1)        slope: of misses on reads, over the groups
//! ```
//!
//! With a slope of 0 that is SHARDS' own correction, with a slope of 1 the plain ratio of a loop.

/// Into how many groups of blocks a sample is cut, by their hash.
pub(super) const GROUPS: usize = 16;

/// A count of each group.
pub(super) type Groups = [u32; GROUPS];

/// The group of a block with this hash.
#[inline]
pub(super) fn group_of(hash: u64) -> usize {
    (hash % GROUPS as u64) as usize
}

/// The share of all reads that miss, from 0 to 1, and its standard error: of a sample whose groups have
/// seen so many `reads` and `misses`, and should have seen `expected` reads altogether.
pub(super) fn ratio(reads: &Groups, misses: &Groups, expected: f64) -> (f64, f64) {
    let sum = |counts: &Groups| counts.iter().map(|count| f64::from(*count)).sum::<f64>();
    let (all_reads, all_misses) = (sum(reads), sum(misses));
    if all_reads == 0.0 || expected <= 0.0 {
        return (1.0, 1.0);
    }
    let groups = GROUPS as f64;
    let (mean_reads, mean_misses) = (all_reads / groups, all_misses / groups);
    let apart = |index: usize| {
        (f64::from(reads[index]) - mean_reads, f64::from(misses[index]) - mean_misses)
    };
    let (mut both, mut square) = (0.0, 0.0);
    for (read, missed) in (0..GROUPS).map(apart) {
        both += read * missed;
        square += read * read;
    }
    // All groups alike say nothing of the slope, and leave nothing to correct.
    let slope = if square > 0.0 { (both / square).clamp(0.0, 1.0) } else { 1.0 };
    let left = (0..GROUPS).map(apart).map(|(read, missed)| (missed - slope * read).powi(2));
    let error = (left.sum::<f64>() * groups / (groups - 2.0)).sqrt() / expected;
    let ratio = all_misses / expected - slope * (all_reads / expected - 1.0);
    (ratio.clamp(0.0, 1.0), error.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_blocks_are_corrected_for_and_loops_are_not() {
        let mut reads = [10; GROUPS];
        let misses = [5; GROUPS];
        // A block that always hits is in the sample, which should have seen 160 reads.
        reads[3] += 1000;
        let (of_all, error) = ratio(&reads, &misses, 160.0);
        assert!((of_all - 0.5).abs() < 1e-9 && error < 1e-9, "{of_all} ± {error}");
        // Whatever is read misses; there are fewer blocks of the loop in the sample than expected.
        let reads: Groups = std::array::from_fn(|index| 10 + index as u32);
        let (of_all, error) = ratio(&reads, &reads, 400.0);
        assert!((of_all - 1.0).abs() < 1e-9 && error < 1e-9, "{of_all} ± {error}");
        // Nothing was seen.
        assert_eq!(ratio(&[0; GROUPS], &[0; GROUPS], 0.0), (1.0, 1.0));
    }
}
