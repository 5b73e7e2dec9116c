//! Medians, intervals of medians, and times as a sum of two parts.

/// A constant with an interval that covers it 19 times in 20, as far as repetitions tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// The start of the interval.
    pub low: f64,
    /// The end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The median of what repetitions gave, with the order statistics that hold it: ranks `n/2 ± 0.98 √n`.
    /// `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let sorted = sorted(values);
        let count = sorted.len() as f64;
        let aside = 0.98 * count.sqrt();
        let last = sorted.len().checked_sub(1)?;
        let low = (count / 2.0 - aside).floor().max(0.0) as usize;
        let high = ((count / 2.0 + aside).ceil() as usize).min(last);
        Some(Estimate { value: quantile(&sorted, 0.5), low: sorted[low], high: sorted[high] })
    }

    /// A value without uncertainty.
    pub fn sure(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// The same in another unit, where `f` rises or falls throughout.
    #[must_use]
    pub fn map(self, f: impl Fn(f64) -> f64) -> Estimate {
        let (one, other) = (f(self.low), f(self.high));
        Estimate { value: f(self.value), low: one.min(other), high: one.max(other) }
    }
}

/// In ascending order.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value below which a share `q` of `sorted` lies, between neighbours by their distance; 0 of nothing.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = q * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

/// The median; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// A time that was measured, and of how many of each of `N` parts it is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sum<const N: usize> {
    pub(crate) of: [f64; N],
    pub(crate) took: f64,
}

impl<const N: usize> Sum<N> {
    /// The share by which `parts` are off: predicted over measured, less 1.
    fn off(&self, parts: &[f64; N]) -> f64 {
        let predicted: f64 = self.of.iter().zip(parts).map(|(count, part)| count * part).sum();
        predicted / self.took - 1.0
    }
}

/// The cost of each part, at least 0, by least squares of relative errors, since the errors of clocks and
/// devices are shares. Of all choices of parts that are 0, the best one with positive other parts is taken.
pub(crate) fn parts<const N: usize>(sums: &[Sum<N>]) -> [f64; N] {
    let mut best = ([0.0; N], f64::INFINITY);
    for absent in 0..(1usize << N) {
        let kept: Vec<usize> = (0..N).filter(|part| absent >> part & 1 == 0).collect();
        let Some(found) = solved(sums, &kept) else { continue };
        if found.iter().any(|part| *part < 0.0) {
            continue;
        }
        let square = sums.iter().map(|sum| sum.off(&found).powi(2)).sum::<f64>();
        // What an absent part costs beyond rounding is a part that is there.
        if square < best.1 {
            best = (found, square);
        }
    }
    best.0
}

/// The least squares with only the parts `kept`; `None` where the times do not tell them apart.
fn solved<const N: usize>(sums: &[Sum<N>], kept: &[usize]) -> Option<[f64; N]> {
    let mut rows = vec![vec![0.0; kept.len() + 1]; kept.len()];
    for sum in sums {
        for (row, one) in rows.iter_mut().zip(kept) {
            let x = sum.of[*one] / sum.took;
            for (cell, other) in row.iter_mut().zip(kept) {
                *cell += x * sum.of[*other] / sum.took;
            }
            row[kept.len()] += x;
        }
    }
    let scale: Vec<f64> = (0..kept.len()).map(|at| rows[at][at]).collect();
    // The matrix is that of a sum of squares: no exchange of rows is needed.
    for at in 0..kept.len() {
        let pivot = rows[at].clone();
        if pivot[at] <= 1e-9 * scale[at] {
            return None;
        }
        for (index, row) in rows.iter_mut().enumerate() {
            let factor = if index == at { 0.0 } else { row[at] / pivot[at] };
            row.iter_mut().zip(&pivot).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    let mut found = [0.0; N];
    for (at, part) in kept.iter().enumerate() {
        found[*part] = rows[at][kept.len()] / rows[at][at];
    }
    Some(found)
}

/// The mean share by which the parts are off.
pub(crate) fn misfit<const N: usize>(sums: &[Sum<N>], parts: &[f64; N]) -> f64 {
    sums.iter().map(|sum| sum.off(parts).abs()).sum::<f64>() / sums.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_the_median_and_ignores_a_hiccup() {
        let values: Vec<f64> = (1..=25).map(f64::from).chain([1e9]).collect();
        let estimate = Estimate::of(&values).unwrap();
        assert_eq!((estimate.value, estimate.low, estimate.high), (13.5, 9.0, 19.0));
        assert_eq!(Estimate::of(&[]), None);
        let turned = estimate.map(|x| 1.0 / x);
        assert!(turned.low <= turned.value && turned.value <= turned.high);
    }

    #[test]
    fn the_parts_of_a_sum_are_found_and_never_negative() {
        let sums = |f: fn(f64) -> f64| -> Vec<Sum<3>> {
            (1..9).map(f64::from).map(|n| Sum { of: [1.0, n, n * n], took: f(n) }).collect()
        };
        let exact = sums(|n| 3.0 + 2.0 * n + 0.5 * n * n);
        let found = parts(&exact);
        assert!(found.iter().zip([3.0, 2.0, 0.5]).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        assert!(misfit(&exact, &found) < 1e-9);
        let without = parts(&sums(|n| 2.0 * n));
        assert!(without[0].abs() < 1e-6 && (without[1] - 2.0).abs() < 1e-6, "{without:?}");
        let below = parts(&sums(|n| 2.0 * n - 1.0));
        assert!(below.iter().all(|part| *part >= 0.0) && below[0] == 0.0, "{below:?}");
        // Times that do not tell parts apart give all to one of them.
        let same: Vec<Sum<2>> =
            (1..9).map(f64::from).map(|n| Sum { of: [n, n], took: n }).collect();
        assert_eq!(parts(&same).iter().sum::<f64>(), 1.0);
    }
}
