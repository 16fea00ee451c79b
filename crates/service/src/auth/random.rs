//! Random text for secrets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

/// The operating system did not provide random bytes.
#[derive(Debug, thiserror::Error)]
#[error("could not get random bytes from the operating system")]
pub struct RandomError(#[from] getrandom::Error);

/// 256 random bits in Base64, for URLs, headers and cookies.
pub(crate) fn random_text() -> Result<String, RandomError> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes.as_slice()))
}
