//! The tokens of callers, and the keys from which their webhook secrets are derived.

use std::time::Duration;

use fetchwell_policy::time::Time;

use super::TokenHash;

/// The maximum number of tokens of a caller.
pub const MAX_TOKENS: usize = 20;

/// The name of a caller's first token.
pub const FIRST_TOKEN: &str = "default";

/// Another token for a caller.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name, unique among the tokens of the caller.
    pub name: String,
    /// Its hash.
    pub hash: TokenHash,
    /// How long it is valid; `None` until it is revoked.
    pub expires_in: Option<Duration>,
}

/// A token that was not revoked. It may have expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// The caller it belongs to.
    pub caller: String,
    /// Its name.
    pub name: String,
    /// When it was added.
    pub created_at: Time,
    /// When it expires.
    pub expires_at: Option<Time>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Time>,
}

/// The result of adding a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenAdded {
    /// It is valid now.
    Added(TokenRecord),
    /// There is no such caller, or it was revoked.
    NoCaller,
    /// The caller has a token with this name.
    NameTaken,
    /// The caller has [`MAX_TOKENS`] tokens.
    TooMany,
}

/// 32 bytes from which a webhook secret is derived. For a caller whose secret was never rotated, it is the hash of its
/// first token.
pub type WebhookKey = [u8; 32];

/// The keys with which deliveries to a caller are signed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookKeys {
    /// The current key.
    pub current: WebhookKey,
    /// The key before the last rotation, while receivers may still use it.
    pub previous: Option<WebhookKey>,
}

/// The result of rotating a webhook secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRotated {
    /// The new key is in use, and the one before it until this time.
    Rotated {
        /// `None` if the key before it is no longer used.
        previous_until: Option<Time>,
    },
    /// There is no such caller, or it was revoked.
    NoCaller,
    /// The overlap of an earlier rotation lasts until this time. With another one, receivers that still use the oldest
    /// secret would fail.
    UnderWay(Time),
}
