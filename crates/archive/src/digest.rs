//! SHA-1 in the format of WARC headers: `sha1:` and base 32.

use sha1::{Digest, Sha1};

const ALPHABET: [u8; 32] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The value of `WARC-Block-Digest` or `WARC-Payload-Digest` for these bytes.
pub(crate) fn labelled_sha1(bytes: &[u8]) -> String {
    format!("sha1:{}", base32(&sha1(bytes)))
}

pub(crate) fn sha1(bytes: &[u8]) -> [u8; 20] {
    Sha1::digest(bytes).into()
}

/// 20 bytes are exactly 32 digits of 5 bits, so there is no padding.
fn base32(bytes: &[u8; 20]) -> String {
    let five_bytes = |group: &[u8]| group.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    let digits = |bits: u64| {
        (0..8).rev().map(move |place| char::from(ALPHABET[(bits >> (5 * place) & 31) as usize]))
    };
    bytes.chunks(5).map(five_bytes).flat_map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_ones_that_others_write() {
        for (bytes, digest) in [
            ("", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
            ("abc", "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"),
        ] {
            assert_eq!(labelled_sha1(bytes.as_bytes()), digest);
        }
    }
}
