//! Draws by Zipf's law, as popularity is distributed.

use crate::Rng;

/// Draws numbers from 0 on, the n-th of them, from 1, with a probability like n to the power of -skew.
#[derive(Clone, Debug)]
pub struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    /// A distribution over `items` numbers.
    pub fn new(items: u64, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let sums = (1..=items).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        Zipf { sums: sums.collect() }
    }

    /// The next number.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let at = rng.below(1 << 53) as f64 / (1_u64 << 53) as f64 * all;
        self.sums.partition_point(|sum| *sum < at) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_comes_half_as_often_as_the_first() {
        let (zipf, mut rng) = (Zipf::new(100, 1.0), Rng::new(1));
        let mut counts = [0_u32; 100];
        for _ in 0..100_000 {
            counts[zipf.draw(&mut rng) as usize] += 1;
        }
        let ratio = f64::from(counts[1]) / f64::from(counts[0]);
        assert!((ratio - 0.5).abs() < 0.02, "{counts:?}");
    }
}
