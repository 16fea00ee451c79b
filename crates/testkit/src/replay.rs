//! Settings of random and long runs, from the environment.

use std::env;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;

/// The seed of this run: `FETCHWELL_TEST_SEED`, else a new one. It is printed, so that a failure
/// can be replayed.
#[expect(clippy::print_stderr, reason = "the test command shows it when the test fails")]
pub fn seed() -> u64 {
    let seed = count_or("FETCHWELL_TEST_SEED", RandomState::new().hash_one(""));
    eprintln!("replay with FETCHWELL_TEST_SEED={seed}");
    seed
}

/// The number in an environment variable, or `short` if it is not set.
pub fn count_or<N: FromStr<Err: Display>>(name: &str, short: N) -> N {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")),
        Err(_) => short,
    }
}

/// Whether this is the long run of `scripts/soak`, on an otherwise idle machine.
pub fn is_soak() -> bool {
    env::var_os("FETCHWELL_TEST_SOAK").is_some()
}
