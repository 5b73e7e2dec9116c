//! Estimates a ratio from counts of a sample: the regression estimator (Cochran, "Sampling Techniques", 3rd ed., 7.1)
//! over groups of blocks.
//!
//! A sample contains the most-used blocks or misses them, so its number of reads varies far more
//! than its number of misses, because these blocks always hit. The misses are therefore divided by
//! the number of reads that the sample should have had, which is known. If misses are proportional
//! to reads (a loop that is longer than the cache), the opposite is right. The counts of the groups
//! tell where between the two the truth lies:
//!
//! ```text
//!   misses / expected  −  slope · (reads / expected − 1)        slope: of misses on reads, over the groups
//! ```
//!
//! A slope of 0 is the correction of SHARDS; a slope of 1 is the plain ratio of a loop.

/// Number of groups of blocks in a sample, by their hash.
pub(super) const GROUPS: usize = 16;

/// A count per group.
pub(super) type Groups = [u32; GROUPS];

/// Returns the group of a hash.
#[inline]
pub(super) fn group_of(hash: u64) -> usize {
    (hash % GROUPS as u64) as usize
}

/// Returns the share of all reads that miss, 0 to 1, and its standard error. The groups of the
/// sample have `reads` and `misses`, and should have had `expected` reads in all.
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
    // Equal groups give no slope, and need no correction.
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
        // A block that always hits is in the sample, which should have had 160 reads.
        reads[3] += 1000;
        let (of_all, error) = ratio(&reads, &misses, 160.0);
        assert!((of_all - 0.5).abs() < 1e-9 && error < 1e-9, "{of_all} ± {error}");
        // All reads miss; the sample has fewer blocks of the loop than expected.
        let reads: Groups = std::array::from_fn(|index| 10 + index as u32);
        let (of_all, error) = ratio(&reads, &reads, 400.0);
        assert!((of_all - 1.0).abs() < 1e-9 && error < 1e-9, "{of_all} ± {error}");
        // No reads.
        assert_eq!(ratio(&[0; GROUPS], &[0; GROUPS], 0.0), (1.0, 1.0));
    }
}
