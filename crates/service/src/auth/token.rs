//! Bearer tokens: 256 random bits. Only a hash is stored.

use std::fmt;

use fetchwell_engine::ports::inbox::TokenHash;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::random::{RandomError, random_text};

/// Every token begins with this, so that people and secret scanners recognize it.
const PREFIX: &str = "fw_";

/// The length of the random part, in Base64.
const RANDOM_CHARS: usize = 43;

/// A token. It cannot be printed by accident, and its memory is cleared on drop.
#[derive(Clone)]
pub struct ApiToken(Zeroizing<String>);

impl ApiToken {
    pub fn generate() -> Result<ApiToken, RandomError> {
        let text = format!("{PREFIX}{}", random_text()?);
        Ok(ApiToken(Zeroizing::new(text)))
    }

    /// The token in an `Authorization` header, if it has the right format.
    pub(crate) fn of_header(value: &str) -> Option<ApiToken> {
        let (scheme, text) = value.split_once(' ')?;
        let random = text.trim_start_matches(' ').strip_prefix(PREFIX)?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_token = random.len() == RANDOM_CHARS && random.bytes().all(allowed);
        (scheme.eq_ignore_ascii_case("bearer") && is_token)
            .then(|| ApiToken(Zeroizing::new(format!("{PREFIX}{random}"))))
    }

    /// The hash that the store keeps.
    pub fn hash(&self) -> TokenHash {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The token itself, to show it once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_are_read_back() {
        let one = ApiToken::generate().unwrap();
        let other = ApiToken::generate().unwrap();
        assert_ne!(one.reveal(), other.reveal());
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let read = ApiToken::of_header(&format!("{scheme} {}", one.reveal())).unwrap();
            assert_eq!(read.hash(), one.hash());
        }
        assert_eq!(format!("{one:?}"), "Token(hidden)");
    }

    #[test]
    fn what_is_no_token_is_not_taken_for_one() {
        let token = ApiToken::generate().unwrap();
        let text = token.reveal();
        for wrong in [
            String::new(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            text.to_owned(),
            format!("Basic {text}"),
            format!("Bearer {text}x"),
            format!("Bearer {}", &text[..text.len() - 1]),
            format!("Bearer {}", text.replace("fw_", "fx_")),
            format!("Bearer {text} {text}"),
            format!("Bearer fw_{}", "ä".repeat(21) + "x"),
        ] {
            assert!(ApiToken::of_header(&wrong).is_none(), "{wrong}");
        }
    }
}
