//! Tokens, and how much those who have one may ask for.

mod allowance;
mod known_tokens;
mod token;

pub(crate) use allowance::Allowances;
pub(crate) use known_tokens::{KnownTokens, TOKEN_CACHE};
pub(crate) use token::Token;
