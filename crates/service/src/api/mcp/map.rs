//! The tool `map`: the pages of a site.

use rmcp::model::JsonObject;

use super::advice;
use super::answer::{Answer, bounded, short, untrusted};
use super::arguments::{self, MapArguments};
use super::fetch::bad;
use super::server::{CALL_TIME, Call};
use super::tools::FETCH;
use crate::api::site_map::MappedLink;
use crate::problem::Problem;

/// A longer link is left out: a truncated URL would not work.
const MAX_LINK_BYTES: usize = 2_048;

pub(super) async fn call(call: &Call<'_>, given: Option<JsonObject>) -> Result<Answer, Problem> {
    let read = arguments::read(given).and_then(MapArguments::checked);
    let arguments = match read {
        Ok(arguments) => arguments,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    let url = arguments.url.clone();
    match call.api.map_site(call.identity, arguments.request(CALL_TIME)).await {
        Ok(links) => shown(&url, &links).map(Answer::success),
        Err(problem) => Ok(Answer::error(advice::about_page(&url, &problem))),
    }
}

fn shown(url: &str, links: &[MappedLink]) -> Result<String, Problem> {
    let url = short(url);
    let readable = links.iter().filter(|link| link.url.len() <= MAX_LINK_BYTES);
    let (list, count) = bounded(readable.map(line));
    if count == 0 {
        return Ok(format!(
            "No links were found for {url}. To read the page itself, call {FETCH}.\n"
        ));
    }
    Ok(format!(
        "{count} links on the site of {url}:\n{}To read one of them, call {FETCH} with its URL. To find others, use \
         search or a larger limit.\n",
        untrusted(&list)?
    ))
}

fn line(link: &MappedLink) -> String {
    match &link.title {
        Some(title) => format!("- {} ({})", link.url, short(title)),
        None => format!("- {}", link.url),
    }
}
