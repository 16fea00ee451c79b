//! Responses of the API.

use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use serde::Serialize;
use tracing::error;

use crate::problem::{Problem, ProblemKind};

/// A response with a JSON body.
pub(super) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(fault) => {
            error!("could not encode a response as JSON: {fault}");
            Problem::new(ProblemKind::INTERNAL).into_response()
        }
    }
}
