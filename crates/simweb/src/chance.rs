/// Reproducible random numbers from a seed: the SplitMix64 generator.
pub(crate) struct SimRng {
    state: u64,
}

impl SimRng {
    pub(crate) fn new(seed: u64) -> SimRng {
        SimRng { state: seed }
    }

    /// A generator seeded by a text (hashed with FNV-1a): equal texts give equal numbers.
    pub(crate) fn of_text(text: &str) -> SimRng {
        SimRng::new(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 up to, but not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::SimRng;

    #[test]
    fn gives_the_published_sequence_of_its_algorithm() {
        let mut chance = SimRng::new(1_234_567);
        let drawn = [chance.next(), chance.next(), chance.next()];
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn stays_within_its_bounds() {
        let mut chance = SimRng::new(7);
        for _ in 0..1_000 {
            assert!(chance.below(3) < 3);
            assert!((0.0..1.0).contains(&chance.unit()));
        }
    }
}
