//! The tool `find_in_archive`: captures of pages in a web archive.

use rmcp::model::JsonObject;

use super::advice;
use super::answer::{Answer, Excerpt, bounded, short, untrusted};
use super::arguments::{self, ArchiveArguments};
use super::fetch::bad;
use super::lookups::{ArchiveQuery, ArchivedPage, Captures};
use super::server::Call;
use super::tools::FIND_IN_ARCHIVE;
use crate::problem::Problem;

pub(super) async fn call(call: &Call<'_>, given: Option<JsonObject>) -> Result<Answer, Problem> {
    let read = arguments::read(given).and_then(ArchiveArguments::checked);
    let arguments = match read {
        Ok(arguments) => arguments,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    let query = ArchiveQuery { pattern: arguments.url.clone(), crawl: arguments.crawl.clone() };
    call.note("mcp_find_in_archive", &query.pattern).await?;
    if arguments.read {
        capture(call, &arguments, &query).await
    } else {
        list(call, &arguments, &query).await
    }
}

async fn list(
    call: &Call<'_>,
    arguments: &ArchiveArguments,
    query: &ArchiveQuery,
) -> Result<Answer, Problem> {
    let limit = match arguments.limit() {
        Ok(limit) => limit,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    let found = match call.api.on.lookups.captures(query, limit).await {
        Ok(found) => found,
        Err(failure) => return Ok(Answer::error(advice::about_lookup(&failure))),
    };
    let Captures { crawl, captures, has_more } = found;
    let pattern = short(&query.pattern);
    if captures.is_empty() {
        return Ok(Answer::success(format!(
            "The crawl {crawl} has no capture of {pattern}. Another crawl may have one; \
             https://index.commoncrawl.org/ lists them.\n"
        )));
    }
    let (list, count) = bounded(captures.iter().map(ToString::to_string));
    let mut text =
        format!("Captures of {pattern} in the crawl {crawl}, one JSON object per line:\n");
    text.push_str(&untrusted(&list)?);
    if has_more || count < captures.len() {
        text.push_str(&format!(
            "There are more than these {count}: use a larger limit or a more specific URL.\n"
        ));
    }
    text.push_str(&format!(
        "To read one of them, call {FIND_IN_ARCHIVE} with its url, its timestamp and read: true.\n"
    ));
    Ok(Answer::success(text))
}

async fn capture(
    call: &Call<'_>,
    arguments: &ArchiveArguments,
    query: &ArchiveQuery,
) -> Result<Answer, Problem> {
    let part = match arguments.part() {
        Ok(part) => part,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    let timestamp = arguments.timestamp.as_deref();
    let found = match call.api.on.lookups.captured_page(query, timestamp).await {
        Ok(found) => found,
        Err(failure) => return Ok(Answer::error(advice::about_lookup(&failure))),
    };
    let Some(ArchivedPage { url, timestamp, markdown }) = found else {
        return Ok(Answer::error(format!(
            "The archive has no such capture of {}. Call {FIND_IN_ARCHIVE} without read and timestamp to list its \
             captures.",
            short(&query.pattern)
        )));
    };
    let excerpt = Excerpt::of(&markdown, part);
    let mut text = format!("URL: {}\nCaptured at: {}\n", short(&url), short(&timestamp));
    text.push_str(&untrusted(excerpt.text)?);
    // Without its timestamp and `read`, the call would list captures, or read another one.
    text.extend(excerpt.place(&format!("{FIND_IN_ARCHIVE} with the same arguments")));
    Ok(Answer::success(text))
}
