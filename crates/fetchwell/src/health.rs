//! `fetchwell health`: whether a service is ready, for containers that have no other way to ask.

use std::time::Duration;

use fetchwell_engine::web::Request;
use fetchwell_policy::url::WebUrl;

use crate::cli::{Exit, Running};
use crate::operator_client::OperatorClient;

/// Whoever asks for health waits no longer than this by default, Docker and Kubernetes included.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks this address; any answer with 2xx is good health.
pub(crate) fn run(url: &str) -> Running<'_> {
    Box::pin(run_inner(url))
}

async fn run_inner(url: &str) -> Result<Exit, Exit> {
    let url = WebUrl::parse(url).map_err(|fault| {
        Exit::Usage(format!(
            "{url} can't be asked: {fault}; write a whole URL, such as http://127.0.0.1:8080/readyz"
        ))
    })?;
    let client = OperatorClient::new(PATIENCE)?;
    match client.ask(&Request::ungoverned(url.clone())).await {
        Ok(_) => Ok(Exit::Ok),
        Err(why) => Err(Exit::Unreachable(format!("{} {why}", url.as_str()))),
    }
}
