//! Callers, their tokens and their webhook secrets, as operators manage them: for the API, the dashboard and commands.

mod views;

use std::sync::Arc;
use std::time::Duration;

use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::inbox::{
    AuditEntry, Caller, FIRST_TOKEN, Inbox, KeyRotated, MAX_TOKENS, NewToken, TokenAdded,
    WebhookKey,
};
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::units::readable_duration;
use sha2::{Digest, Sha256};

use crate::audit::AuditLog;
use crate::auth::{ApiToken, RandomError, TOKEN_CACHE};

pub use views::{CallerView, CallersView, NewCallerView, NewSecretView, NewTokenView, TokenView};

/// The overlap of a rotation, unless another one is asked for.
pub const DEFAULT_OVERLAP: Duration = Duration::from_secs(24 * 3_600);

/// The longest overlap of a rotation.
pub const MAX_OVERLAP: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The longest time for which a token is valid, unless it is valid until it is revoked.
pub const MAX_EXPIRY: Duration = Duration::from_secs(3_650 * 24 * 3_600);

/// What a name of a caller or a token must be.
pub const NAME_RULE: &str = "must have 1 to 32 characters from a-z, 0-9, _ and -";

/// Whether this is a valid name for a caller or a token.
pub fn is_name(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=32).contains(&name.len()) && name.bytes().all(allowed)
}

/// Writes the webhook secret that is derived from a key, as its caller gets it.
pub type ShowSecret = Arc<dyn Fn(&WebhookKey) -> String + Send + Sync>;

/// An operator who manages callers, and from where.
#[derive(Clone, Debug)]
pub struct Manager {
    pub name: String,
    pub from: String,
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CallersError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Random(#[from] RandomError),
    #[error("the caller {0} already exists; to give it another token, add one to it")]
    CallerExists(String),
    #[error("there is no caller {0}, or it was revoked")]
    NoCaller(String),
    #[error("the caller {caller} has a token {name}; use another name, or revoke that token first")]
    TokenExists { caller: String, name: String },
    #[error("the caller {0} has {MAX_TOKENS} tokens; revoke one of them first")]
    TooManyTokens(String),
    #[error("the caller {caller} has no token {name}")]
    NoToken { caller: String, name: String },
    #[error(
        "the earlier secret is valid until {0}; rotate again after that, or without an overlap, which ends it at once"
    )]
    RotationUnderWay(String),
}

/// Manages the callers of a store. Every change is committed together with its entry in the audit log, so a new token
/// or secret exists only if it can be shown, and an entry says what happened.
pub struct CallerService {
    inbox: Arc<dyn Inbox>,
    audit: AuditLog,
    show_secret: ShowSecret,
}

impl CallerService {
    pub fn new(inbox: Arc<dyn Inbox>, audit: AuditLog, show_secret: ShowSecret) -> CallerService {
        CallerService { inbox, audit, show_secret }
    }

    /// All callers with their tokens.
    pub async fn list(&self) -> Result<Vec<CallerView>, StoreError> {
        let callers = self.inbox.callers().await?;
        let tokens = self.inbox.tokens(None).await?;
        let mut views: Vec<CallerView> = callers.into_iter().map(CallerView::from).collect();
        for token in tokens {
            // Both lists are ordered by the name of the caller.
            let place = views.binary_search_by(|view| view.name.cmp(&token.caller));
            if let Some(view) = place.ok().and_then(|place| views.get_mut(place)) {
                view.tokens.push(TokenView::from(token));
            }
        }
        Ok(views)
    }

    /// Adds a caller with its first token.
    pub async fn add(&self, by: &Manager, caller: &Caller) -> Result<NewCallerView, CallersError> {
        let token = ApiToken::generate()?;
        let hash = token.hash();
        let role = caller.role.as_str();
        let entry = self.entry(by, "add_caller", format!("{} with the role {role}", caller.name));
        if !self.inbox.add_caller(caller, &hash, &entry).await? {
            return Err(CallersError::CallerExists(caller.name.clone()));
        }
        Ok(NewCallerView {
            name: caller.name.clone(),
            role,
            token_name: FIRST_TOKEN,
            token: token.reveal().to_owned(),
            webhook_secret: (self.show_secret)(&hash),
        })
    }

    /// Adds a token to a caller.
    pub async fn add_token(
        &self,
        by: &Manager,
        caller: &str,
        name: &str,
        expires_in: Option<Duration>,
    ) -> Result<NewTokenView, CallersError> {
        let token = ApiToken::generate()?;
        let new = NewToken { name: name.to_owned(), hash: token.hash(), expires_in };
        let entry = self.entry(by, "add_token", format!("{name} of {caller}"));
        match self.inbox.add_token(caller, &new, &entry).await? {
            TokenAdded::Added(record) => Ok(NewTokenView {
                caller: caller.to_owned(),
                name: name.to_owned(),
                token: token.reveal().to_owned(),
                created_at: rfc3339(record.created_at),
                expires_at: record.expires_at.map(rfc3339),
            }),
            TokenAdded::NoCaller => Err(CallersError::NoCaller(caller.to_owned())),
            TokenAdded::NameTaken => {
                Err(CallersError::TokenExists { caller: caller.to_owned(), name: name.to_owned() })
            }
            TokenAdded::TooMany => Err(CallersError::TooManyTokens(caller.to_owned())),
        }
    }

    /// Revokes one token of a caller, and returns when no process accepts it any more.
    pub async fn revoke_token(
        &self,
        by: &Manager,
        caller: &str,
        name: &str,
    ) -> Result<(), CallersError> {
        let entry = self.entry(by, "revoke_token", format!("{name} of {caller}"));
        if !self.inbox.revoke_token(caller, name, &entry).await? {
            let caller = caller.to_owned();
            return Err(CallersError::NoToken { caller, name: name.to_owned() });
        }
        tokio::time::sleep(TOKEN_CACHE).await;
        Ok(())
    }

    /// Revokes all tokens of a caller, and returns when no process accepts them any more.
    pub async fn revoke(&self, by: &Manager, caller: &str) -> Result<(), CallersError> {
        let entry = self.entry(by, "revoke_caller", format!("all tokens of {caller}"));
        if !self.inbox.revoke_caller(caller, &entry).await? {
            return Err(CallersError::NoCaller(caller.to_owned()));
        }
        tokio::time::sleep(TOKEN_CACHE).await;
        Ok(())
    }

    /// Replaces the webhook secret of a caller. The one before it signs deliveries, too, for `overlap`.
    pub async fn rotate_secret(
        &self,
        by: &Manager,
        caller: &str,
        overlap: Duration,
    ) -> Result<NewSecretView, CallersError> {
        // A key as random as a token.
        let key: WebhookKey = Sha256::digest(ApiToken::generate()?.reveal()).into();
        let earlier = match overlap.is_zero() {
            true => "void".to_owned(),
            false => format!("valid for {}", readable_duration(overlap)),
        };
        let detail = format!("of {caller}; the earlier one is {earlier}");
        let entry = self.entry(by, "rotate_webhook_secret", detail);
        match self.inbox.rotate_webhook_key(caller, &key, overlap, &entry).await? {
            KeyRotated::Rotated { previous_until } => {
                let previous_until = previous_until.map(rfc3339);
                let webhook_secret = (self.show_secret)(&key);
                Ok(NewSecretView { caller: caller.to_owned(), webhook_secret, previous_until })
            }
            KeyRotated::NoCaller => Err(CallersError::NoCaller(caller.to_owned())),
            KeyRotated::UnderWay(until) => Err(CallersError::RotationUnderWay(rfc3339(until))),
        }
    }

    fn entry(&self, by: &Manager, action: &str, detail: String) -> AuditEntry {
        self.audit.entry(&by.name, action, detail, &by.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for (name, is_good) in
            [("a", true), ("ci-bot_2", true), ("", false), ("A", false), ("a b", false)]
        {
            assert_eq!(is_name(name), is_good, "{name}");
        }
        assert!(is_name(&"x".repeat(32)) && !is_name(&"x".repeat(33)));
    }
}
