//! The tool `explain`: whether a URL may be fetched, when, and why.

use rmcp::model::JsonObject;

use super::advice;
use super::answer::{Answer, untrusted};
use super::arguments::{self, ExplainArguments};
use super::fetch::bad;
use super::server::Call;
use crate::problem::{Problem, ProblemKind};

pub(super) async fn call(call: &Call<'_>, given: Option<JsonObject>) -> Result<Answer, Problem> {
    let read = arguments::read(given).and_then(ExplainArguments::checked);
    let ExplainArguments { url } = match read {
        Ok(arguments) => arguments,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    call.note("mcp_explain", &url).await?;
    match call.api.on.lookups.explain(&url).await {
        Ok(explanation) => {
            let json = serde_json::to_string_pretty(&explanation)
                .map_err(|_| Problem::new(ProblemKind::INTERNAL))?;
            // The rule and the URL are untrusted content.
            Ok(Answer::success(format!(
                "{}`allowed` is the verdict of robots.txt. `refused_because` says why the URL is not fetched, or not \
                 yet. `next_slot_in_seconds` is the time until the next request to the site may be sent.\n",
                untrusted(&json)?
            )))
        }
        Err(failure) => Ok(Answer::error(advice::about_lookup(&failure))),
    }
}
