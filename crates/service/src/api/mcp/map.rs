//! The tool `map`: the links of a page.

use std::time::Duration;

use fetchwell_engine::ports::inbox::options::Extracted;
use rmcp::model::JsonObject;

use super::advice;
use super::answer::{Answer, bounded, short, untrusted};
use super::arguments::{self, DEFAULT_MAX_AGE_SECONDS, MapArguments};
use super::fetch::bad;
use super::server::{CALL_TIME, Call};
use super::tools::FETCH;
use crate::api::fields::FetchRequest;
use crate::problem::Problem;

/// A longer link is left out: nobody can read it, and half of it leads nowhere.
const MAX_LINK_BYTES: usize = 2_048;

pub(super) async fn call(call: &Call<'_>, given: Option<JsonObject>) -> Result<Answer, Problem> {
    let read = arguments::read(given).and_then(MapArguments::checked);
    let arguments = match read {
        Ok(arguments) => arguments,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    match links(call, &arguments).await {
        Ok(links) => shown(&arguments.url, &links).map(Answer::success),
        Err(problem) => Ok(Answer::error(advice::about_page(&arguments.url, &problem))),
    }
}

async fn links(call: &Call<'_>, arguments: &MapArguments) -> Result<Vec<String>, Problem> {
    let message = call.api.message_to_read(&arguments.url)?;
    let max_age = Some(Duration::from_secs(DEFAULT_MAX_AGE_SECONDS));
    let message = FetchRequest { max_age, links: true, ..message };
    let page = call.api.read_page(call.identity, message, CALL_TIME).await?;
    if !page.outbox.result.is_success() {
        return Err(Problem::no_page(page.outbox));
    }
    let extracted = page.outbox.result.extracted.as_deref();
    let extracted: Option<Extracted> = extracted.and_then(|json| serde_json::from_str(json).ok());
    let links = extracted.and_then(|extracted| extracted.links).unwrap_or_default();
    let words = arguments.search.as_deref().unwrap_or_default().to_lowercase();
    let is_wanted = |link: &String| {
        let link_in_lower_case = link.to_lowercase();
        link.len() <= MAX_LINK_BYTES
            && words.split_whitespace().all(|word| link_in_lower_case.contains(word))
    };
    Ok(links.into_iter().filter(is_wanted).take(arguments.limit()).collect())
}

fn shown(url: &str, links: &[String]) -> Result<String, Problem> {
    let url = short(url);
    if links.is_empty() {
        return Ok(format!(
            "No links were found on {url}. To read the page itself, call {FETCH}.\n"
        ));
    }
    let (list, count) = bounded(links.iter().map(|link| format!("- {link}")));
    Ok(format!(
        "{count} links on {url}:\n{}To read one of them, call {FETCH} with its URL. To find others, use search, or a \
         larger limit.\n",
        untrusted(&list)?
    ))
}
