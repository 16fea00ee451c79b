//! Hashes and Unix times, formatted for output.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::time::Time;

/// SHA-256 in lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-1 in lower-case hex.
pub fn sha1_hex(bytes: &[u8]) -> String {
    hex(&Sha1::digest(bytes))
}

/// Whole seconds since the Unix epoch.
pub fn unix_seconds(time: Time) -> i64 {
    time.as_micros().div_euclid(1_000_000)
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_seconds_are_written_as_the_contract_has_them() {
        assert_eq!(sha1_hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert!(sha256_hex(b"abc").starts_with("ba7816bf8f01cfea"));
        assert_eq!(hex(&[0x00, 0x0F, 0xF0, 0xFF]), "000ff0ff");
        assert_eq!(unix_seconds(Time::from_micros(1_999_999)), 1);
    }
}
