//! Reads a small JSON body into a struct.

use axum::extract::Request;
use serde::de::DeserializeOwned;

use super::{Api, body};
use crate::problem::{FieldError, Problem};

const MAX_BODY_BYTES: u64 = 64 << 10;

/// Reads the body of a request. The problem says which part of it is invalid.
pub(super) async fn read<T: DeserializeOwned>(api: &Api, request: Request) -> Result<T, Problem> {
    let (parts, body) = request.into_parts();
    let whole = body::read(&api.memory, &parts.headers, body, MAX_BODY_BYTES).await?;
    body::json(&whole.bytes)?; // Refuses duplicate keys.
    serde_json::from_slice(&whole.bytes)
        .map_err(|fault| Problem::invalid(vec![FieldError::at("", fault.to_string())]))
}
