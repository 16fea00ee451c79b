//! Standard Webhooks: the signature of a delivery and the secret for it.
//!
//! A caller's secret is derived from a stored key: the hash of its first token, or random bytes after a rotation.
//! Someone who reads the store could sign deliveries, but cannot recover a token.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fetchwell_engine::ports::inbox::{WebhookKey, WebhookKeys};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Mixed into the secret besides the key, so that it serves no other purpose.
const PURPOSE: &[u8] = b"fetchwell webhook secret";

/// Signs deliveries to one caller. It has no `Debug`, so that it cannot be printed by accident.
#[derive(Clone)]
pub struct WebhookSecret(Zeroizing<[u8; 32]>);

impl WebhookSecret {
    /// The secret that is derived from this key.
    pub fn of(key: &WebhookKey) -> WebhookSecret {
        WebhookSecret(Zeroizing::new(hmac_sha256(key, PURPOSE)))
    }

    /// The form shown to the caller, once: `whsec_` and Base64.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0.as_slice()))
    }

    /// The `webhook-signature` of `id.timestamp.body`.
    pub fn sign(&self, content: &str) -> String {
        signature(self.0.as_slice(), content)
    }
}

/// The secrets of one caller: the current one, and the one before it while a rotation lasts.
#[derive(Clone)]
pub struct WebhookSecrets {
    current: WebhookSecret,
    previous: Option<WebhookSecret>,
}

impl WebhookSecrets {
    /// The secrets that are derived from these keys.
    pub fn of(keys: &WebhookKeys) -> WebhookSecrets {
        let previous = keys.previous.as_ref().map(WebhookSecret::of);
        WebhookSecrets { current: WebhookSecret::of(&keys.current), previous }
    }

    /// The `webhook-signature` of `id.timestamp.body`: one signature per secret, separated by spaces. A receiver
    /// accepts a delivery if one of them is right.
    pub fn sign(&self, content: &str) -> String {
        let current = self.current.sign(content);
        match &self.previous {
            Some(previous) => format!("{current} {}", previous.sign(content)),
            None => current,
        }
    }
}

fn signature(key: &[u8], content: &str) -> String {
    format!("v1,{}", STANDARD.encode(hmac_sha256(key, content.as_bytes())))
}

fn hmac_sha256(key: &[u8], content: &[u8]) -> [u8; 32] {
    // HMAC accepts a key of any length, but the type still returns a `Result`.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(content);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(
            hex(hmac_sha256(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert!(
            hex(hmac_sha256(&[0x0b; 20], b"Hi There")).starts_with("b0344c61d8db38535ca8afceaf")
        );
    }

    /// The example of the Standard Webhooks specification.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let content = r#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signature(&key, content), expected);
    }

    #[test]
    fn during_a_rotation_both_secrets_sign() {
        let old = WebhookSecret::of(&[1; 32]);
        let new = WebhookSecret::of(&[2; 32]);
        let keys = WebhookKeys { current: [2; 32], previous: Some([1; 32]) };
        let both = format!("{} {}", new.sign("a.1.{}"), old.sign("a.1.{}"));
        assert_eq!(WebhookSecrets::of(&keys).sign("a.1.{}"), both);
        let after = WebhookKeys { previous: None, ..keys };
        assert_eq!(WebhookSecrets::of(&after).sign("a.1.{}"), new.sign("a.1.{}"));
    }

    #[test]
    fn a_secret_is_the_tokens_own() {
        let one = WebhookSecret::of(&[1; 32]);
        let other = WebhookSecret::of(&[2; 32]);
        assert!(one.reveal().starts_with("whsec_") && one.reveal() != other.reveal());
        let key = STANDARD.decode(&one.reveal()["whsec_".len()..]).unwrap();
        assert_eq!(one.sign("a.1.{}"), signature(&key, "a.1.{}"));
    }
}
