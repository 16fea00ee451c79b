//! Callers and tokens as JSON, for the API and the command line.

use fetchwell_engine::ports::inbox::{CallerRecord, TokenRecord};
use fetchwell_policy::rfc3339::rfc3339;
use serde::Serialize;
use utoipa::ToSchema;

/// All callers.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Callers)]
pub struct CallersView {
    /// The callers, ordered by name. Revoked ones are included.
    pub callers: Vec<CallerView>,
}

/// A caller and its tokens.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Caller)]
pub struct CallerView {
    /// The name of the caller.
    #[schema(example = "catalogue", pattern = "^[a-z0-9_-]{1,32}$")]
    pub name: String,
    /// `caller`, `viewer` or `operator`.
    pub role: &'static str,
    /// When it was added, or added again after it was revoked.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was revoked; null if it was not.
    #[schema(required, format = DateTime)]
    pub revoked_at: Option<String>,
    /// Its tokens, ordered by name. The tokens themselves are not stored, only their hashes.
    pub tokens: Vec<TokenView>,
}

/// A token of a caller, without the token itself.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenView {
    /// The name of the token; the first token of a caller is `default`.
    #[schema(example = "ci", pattern = "^[a-z0-9_-]{1,32}$")]
    pub name: String,
    /// When it was added.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it expires; null if it is valid until it is revoked.
    #[schema(required, format = DateTime)]
    pub expires_at: Option<String>,
    /// When it was last used, to the minute; null if it never was.
    #[schema(required, format = DateTime)]
    pub last_used_at: Option<String>,
}

/// A new caller, with its secrets, which are shown only once.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = NewCaller)]
pub struct NewCallerView {
    /// The name of the caller.
    pub name: String,
    /// `caller`, `viewer` or `operator`.
    pub role: &'static str,
    /// The name of its first token.
    pub token_name: &'static str,
    /// Its first token.
    #[schema(example = "fw_…")]
    pub token: String,
    /// The secret with which its webhooks are signed.
    #[schema(example = "whsec_…")]
    pub webhook_secret: String,
}

/// A new token, which is shown only once.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = NewToken)]
pub struct NewTokenView {
    /// The caller it belongs to.
    pub caller: String,
    /// Its name.
    pub name: String,
    /// The token itself.
    #[schema(example = "fw_…")]
    pub token: String,
    /// When it was added.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it expires; null if it is valid until it is revoked.
    #[schema(required, format = DateTime)]
    pub expires_at: Option<String>,
}

/// A new webhook secret, which is shown only once.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = NewWebhookSecret)]
pub struct NewSecretView {
    /// The caller whose webhooks are signed with it.
    pub caller: String,
    /// The secret itself.
    #[schema(example = "whsec_…")]
    pub webhook_secret: String,
    /// Until when deliveries are also signed with the earlier secret; null if that one is void.
    #[schema(required, format = DateTime)]
    pub previous_until: Option<String>,
}

impl From<CallerRecord> for CallerView {
    fn from(record: CallerRecord) -> CallerView {
        let CallerRecord { caller, created_at, revoked_at } = record;
        CallerView {
            name: caller.name,
            role: caller.role.as_str(),
            created_at: rfc3339(created_at),
            revoked_at: revoked_at.map(rfc3339),
            tokens: Vec::new(),
        }
    }
}

impl From<TokenRecord> for TokenView {
    fn from(record: TokenRecord) -> TokenView {
        let TokenRecord { name, created_at, expires_at, last_used_at, .. } = record;
        TokenView {
            name,
            created_at: rfc3339(created_at),
            expires_at: expires_at.map(rfc3339),
            last_used_at: last_used_at.map(rfc3339),
        }
    }
}
