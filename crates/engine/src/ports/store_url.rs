//! Store URLs.

use std::fmt;
use std::path::{Path, PathBuf};

/// The URL of a store, by backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite:PATH`: embedded, in one file.
    Sqlite(PathBuf),
    /// `postgres://…`
    Postgres(SecretUrl),
    /// `redis://…`
    Redis(SecretUrl),
}

/// Gives another macro the stores on servers: each with its variant of `StoreUrl`, and the constant, the name and the
/// product of its Cargo feature. This is a macro because only a crate that has a feature can ask whether it is on.
#[macro_export]
macro_rules! for_server_stores {
    ($then:ident) => {
        $then! {
            Postgres: POSTGRES, "postgres", "PostgreSQL";
            Redis: REDIS, "redis", "Redis";
        }
    };
}

impl StoreUrl {
    /// How to write one, for error messages.
    pub const FORMS: &str = r#""sqlite:PATH", "postgres://HOST/DATABASE" or "redis://HOST""#;

    /// The store that a text names; `None` if it is not of a known kind.
    pub fn parse(text: &str) -> Option<StoreUrl> {
        if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Some(StoreUrl::Sqlite(PathBuf::from(path)));
        }
        let (scheme, _) = text.split_once("://").filter(|(_, address)| !address.is_empty())?;
        match scheme {
            "postgres" | "postgresql" => Some(StoreUrl::Postgres(SecretUrl::new(text))),
            "redis" | "rediss" => Some(StoreUrl::Redis(SecretUrl::new(text))),
            _ => None,
        }
    }

    /// The file of an embedded store; `None` for a server.
    pub fn file(&self) -> Option<&Path> {
        match self {
            StoreUrl::Sqlite(path) => Some(path),
            StoreUrl::Postgres(_) | StoreUrl::Redis(_) => None,
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Sqlite(path) => write!(out, "sqlite:{}", path.display()),
            StoreUrl::Postgres(url) | StoreUrl::Redis(url) => write!(out, "{url}"),
        }
    }
}

/// A URL that may contain a password. `Display` and `Debug` print `***` in its place.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// Wraps a URL that may contain a password.
    pub fn new(url: &str) -> SecretUrl {
        SecretUrl(url.to_owned())
    }

    /// The URL with its password, for connecting.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretUrl {
    /// Errs on the side of hiding too much: a password may contain an unescaped `/`, `?` or `#`, so the user info
    /// extends to the last `@`, and the whole query is hidden.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", &self.0));
        write!(out, "{scheme}://")?;
        let host_on = match rest.rsplit_once('@') {
            Some((user_info, host_on)) => {
                let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
                write!(out, "{user}{}@", if password.is_empty() { "" } else { ":***" })?;
                host_on
            }
            None => rest,
        };
        match host_on.split_once('?') {
            Some((address, _)) => write!(out, "{address}?***"),
            None => write!(out, "{host_on}"),
        }
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}
