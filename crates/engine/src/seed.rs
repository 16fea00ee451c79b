//! The seed of random numbers.

/// A seed for jitter, which must differ between processes.
pub fn random_seed() -> u64 {
    getrandom::u64().unwrap_or(0)
}
