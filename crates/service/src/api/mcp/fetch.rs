//! The tool `fetch`: reads pages as Markdown.

use std::time::Duration;

use fetchwell_engine::ports::inbox::FetchResult;
use fetchwell_engine::ports::inbox::details::FetchDetails;
use fetchwell_engine::ports::inbox::options::Extracted;
use fetchwell_policy::units::quantity;
use futures::future::join_all;
use rmcp::model::JsonObject;

use super::advice;
use super::answer::{Answer, Excerpt, short, untrusted};
use super::arguments::{self, FetchArguments, Part};
use super::server::{CALL_TIME, Call};
use super::tools::FETCH;
use crate::api::fields::FetchRequest;
use crate::api::pages::PageResult;
use crate::problem::Problem;

/// Between the pages of one answer.
const RULE: &str = "\n---\n\n";

pub(super) async fn call(call: &Call<'_>, given: Option<JsonObject>) -> Result<Answer, Problem> {
    let read: Result<FetchArguments, _> = arguments::read(given);
    let arguments = match read {
        Ok(arguments) => arguments,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    let pages = match arguments.pages() {
        Ok(pages) => pages,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    let part = match arguments.part(pages.len()) {
        Ok(part) => part,
        Err(reason) => return Ok(Answer::error(bad(&reason))),
    };
    // The request itself has already been charged as one.
    call.api.charge_more(&call.identity.caller, pages.len().saturating_sub(1));
    let max_age = arguments.max_age();
    let read = pages.iter().map(|url| page(call, url, max_age, part));
    let answers = join_all(read).await;
    let is_error = answers.iter().all(|answer| answer.is_error);
    let texts: Vec<String> = answers.into_iter().map(|answer| answer.text).collect();
    Ok(Answer { text: texts.join(RULE), is_error })
}

pub(super) fn bad(reason: &str) -> String {
    format!("The arguments are invalid: {}. Correct them and call the tool again.", short(reason))
}

/// A page, or why there is none.
async fn page(call: &Call<'_>, url: &str, max_age: Option<Duration>, part: Part) -> Answer {
    let answer = async {
        let message = call.api.message_to_read(url)?;
        let message = FetchRequest { max_age, ..message };
        let page = call.api.read_page(call.identity, message, CALL_TIME).await?;
        shown(call, url, page, part)
    };
    answer.await.unwrap_or_else(|problem| Answer::error(advice::about_page(url, &problem)))
}

fn shown(call: &Call<'_>, url: &str, page: PageResult, part: Part) -> Result<Answer, Problem> {
    let PageResult { outbox, age, mut share } = page;
    let result = &outbox.result;
    if !result.is_success() {
        return Err(Problem::no_page(outbox));
    }
    let Some((title, markdown)) = text_of(result) else { return Err(Problem::no_page(outbox)) };
    let excerpt = Excerpt::of(&markdown, part);
    let mut text = format!("URL: {}\n", short(url));
    // A page that came with the request of another message, or that another message has just stored, has an age, too.
    match age.or(result.cached_age) {
        Some(age) => text.push_str(&format!(
            "From the cache: fetched {} ago; max_age 0 fetches it again.\n",
            quantity(age.as_secs(), "second", "seconds")
        )),
        None => text.push_str("Fetched just now.\n"),
    }
    let mut content = String::new();
    if part.start == 0 {
        // A site chooses where it redirects to, as it chooses its titles.
        let moved = details_of(result).map(|details| details.final_url);
        let moved = moved.filter(|final_url| final_url != url && !final_url.is_empty());
        content.extend(moved.map(|final_url| format!("Redirected to: {}\n", short(&final_url))));
        content.extend(title.map(|title| format!("Title: {}\n", short(&title))));
        if !content.is_empty() {
            content.push('\n');
        }
    }
    content.push_str(excerpt.text);
    if content.is_empty() {
        text.push_str("The page has no text.\n");
    } else {
        text.push_str(&untrusted(&content)?);
    }
    text.extend(excerpt.place(&format!("{FETCH} with url {url}")));
    // Counted twice: the text, and the JSON of the response.
    share.shrink_to(2 * text.len() as u64);
    call.hold(share);
    Ok(Answer::success(text))
}

fn details_of(result: &FetchResult) -> Option<FetchDetails> {
    serde_json::from_str(result.details.as_deref()?).ok()
}

/// The title and the Markdown of a page; `None` if it is not text.
fn text_of(result: &FetchResult) -> Option<(Option<String>, String)> {
    let extracted: Option<Extracted> =
        result.extracted.as_deref().and_then(|json| serde_json::from_str(json).ok());
    match extracted.and_then(|extracted| extracted.article) {
        Some(article) => {
            let title = Some(article.title).filter(|title| !title.is_empty());
            Some((title, article.markdown))
        }
        // Markdown and other text that is not HTML has no article.
        None => Some((None, result.content.clone()?)),
    }
}
