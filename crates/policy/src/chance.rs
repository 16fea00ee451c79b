//! Random numbers from a seed, so that every run can be replayed.

/// SplitMix64: tiny, fast and good enough for jitter. Do not use it for secrets.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator that returns the same numbers for the same seed.
    pub fn seeded(seed: u64) -> Chance {
        Chance(seed)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let mut one = Chance::seeded(7);
        let mut other = Chance::seeded(7);
        assert!((0..100).all(|_| one.next_u64() == other.next_u64()));
    }

    #[test]
    fn unit_stays_in_range_and_spreads() {
        let mut chance = Chance::seeded(1);
        let numbers: Vec<f64> = (0..10_000).map(|_| chance.unit()).collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)));
        let mean = numbers.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
    }
}
