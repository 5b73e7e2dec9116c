//! Mid-ranks: equal values share the mean of the ranks they take up.

/// Twice the mid-rank of each value, in the order given (twice, so that it is a whole number):
/// 10, 20, 20, 30 have the ranks 1, 2.5, 2.5, 4 and so 2, 5, 5, 8. The values are not NaN.
pub(super) fn doubled_ranks(values: &[f64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut start = 0;
    // Compared with ==, so that 0.0 and -0.0, which total_cmp puts side by side, are a tie.
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let end = start + group.len();
        // Ranks start + 1 ..= end; the first and the last add up to twice the mean.
        for &index in group {
            ranks[index] = (start + 1 + end) as u64;
        }
        start = end;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_ranks() {
        assert_eq!(doubled_ranks(&[30.0, 10.0, 20.0, 20.0]), [8, 2, 5, 5]);
        assert_eq!(doubled_ranks(&[7.0; 3]), [4, 4, 4]);
        assert_eq!(doubled_ranks(&[0.0, -0.0, 1.0]), [3, 3, 6]);
        assert!(doubled_ranks(&[]).is_empty());
    }
}
