//! Tokens, and the request limits of callers.

mod allowance;
mod known_tokens;
mod random;
mod token;
mod token_uses;

pub(crate) use allowance::Allowances;
pub(crate) use known_tokens::KnownTokens;
pub use known_tokens::TOKEN_CACHE;
pub use random::RandomError;
pub(crate) use random::random_text;
pub use token::ApiToken;
pub(crate) use token_uses::TokenUses;
