//! Where chance begins.

/// Jitter must differ between processes; a clock would do, but this can't repeat.
pub fn random_seed() -> u64 {
    getrandom::u64().unwrap_or(0)
}
