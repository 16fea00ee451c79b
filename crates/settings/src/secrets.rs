//! Settings that are secrets.

use std::fmt;

use zeroize::Zeroizing;

use super::fault::Wrong;
use super::kinds::Parsed;

/// This many random characters cannot be guessed.
const LEAST_CHARS: usize = 32;

/// A secret; it is printed as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// The secret itself, for comparisons.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// A secret that cannot be guessed. Errors do not quote it.
pub(super) const LONG_SECRET: Parsed<SecretText> = Parsed {
    read: |text| {
        let text = text.trim();
        if text.len() < LEAST_CHARS || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Wrong::new(
                "is too short, or has spaces or characters that are not ASCII",
                format!(
                    "write {LEAST_CHARS} random characters or more, such as the output of `openssl \
                     rand -hex 32`"
                ),
            ));
        }
        Ok(SecretText(Zeroizing::new(text.to_owned())))
    },
    show: |_| "***".into(),
};
