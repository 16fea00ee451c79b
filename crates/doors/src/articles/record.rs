//! Articles and failures as the store keeps them.

use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::ports::articles::{ArticleFailure, ArticleResult, Fields};
use fetchwell_policy::digest::sha1_hex;
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome};
use serde::Serialize;
use serde_json::Value;

/// The ID of an article: the first 16 hex digits of the SHA-1 of its URL.
pub fn uid(url: &str) -> String {
    sha1_hex(url.as_bytes()).chars().take(16).collect()
}

/// The result of fetching one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArticleRecord {
    Stored {
        article: Box<CanonicalArticle>,
        /// Every category that lists the link.
        categories: Vec<String>,
    },
    /// A link that yielded no article.
    Failed {
        failure: FailedArticle,
        /// What happened, for the log.
        what: String,
        /// The site failed, not the link: later runs try it again.
        is_of_site: bool,
    },
}

impl ArticleRecord {
    /// Converts to the form that the store keeps.
    pub(super) fn article_result(&self) -> ArticleResult {
        match self {
            ArticleRecord::Stored { article, categories } => ArticleResult {
                uid: article.uid.clone(),
                categories: categories.clone(),
                fetched_ts: article.fetched_ts,
                fields: fields(article),
                failure: None,
            },
            ArticleRecord::Failed { failure, is_of_site, .. } => ArticleResult {
                uid: failure.uid.clone(),
                categories: vec![failure.category.clone()],
                fetched_ts: failure.fetched_ts,
                fields: fields(failure),
                failure: Some(ArticleFailure {
                    code: failure.reason.as_str(),
                    is_of_site: *is_of_site,
                }),
            },
        }
    }
}

impl Weighed for ArticleRecord {
    fn weight(&self) -> usize {
        match self {
            ArticleRecord::Stored { article, .. } => {
                let CanonicalArticle { clean_text, markdown, abstract_text, title, .. } =
                    &**article;
                let short = [&article.image, &article.author, &article.published];
                let texts = [clean_text, markdown, abstract_text, title].into_iter().chain(short);
                texts.map(String::len).sum()
            }
            ArticleRecord::Failed { .. } => 0,
        }
    }
}

/// All fields by name. The store keeps every value as text.
fn fields(record: &impl Serialize) -> Fields {
    let Ok(Value::Object(fields)) = serde_json::to_value(record) else { return Fields::new() };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    fields.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// The hash `rss:article_canonical:{uid}` of an article. Lengths are in characters; a value that the page does not have
/// is an empty string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename = "success")]
#[expect(missing_docs, reason = "the contract defines the fields")]
pub struct CanonicalArticle {
    pub uid: String,
    pub url: String,
    pub category: String,
    pub raw_len: usize,
    pub text_len: usize,
    pub clean_text: String,
    #[serde(rename = "abstract")]
    pub abstract_text: String,
    pub image: String,
    pub fetched_ts: i64,
    pub title: String,
    pub markdown: String,
    pub lang: String,
    pub published: String,
    pub author: String,
    pub site: String,
    /// The SHA-256 of `clean_text`, in hex.
    pub content_hash: String,
    pub final_url: String,
}

/// The hash `rss:article_canonical:{uid}` of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename = "failure")]
#[expect(missing_docs, reason = "the contract defines the fields")]
pub struct FailedArticle {
    pub uid: String,
    pub url: String,
    pub category: String,
    pub fetched_ts: i64,
    pub reason: FailCode,
}

/// Why a link yielded no article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailCode {
    /// Too short, not HTML, a body that can't be unpacked, or more than the store can hold.
    BadHtml,
    /// A status other than 2xx, an invalid response, or a redirect that cannot be followed.
    Http,
    /// The site did not respond.
    Timeout,
    /// HTML by its content type, but not text; or extraction took too long.
    Parse,
    /// The page has no text.
    Empty,
    /// robots.txt disallows it.
    Robots,
    /// The address guard refused it, or the URL is invalid.
    Refused,
}

impl Serialize for FailCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FailCode {
    /// The code in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            FailCode::BadHtml => "FAIL_BAD_HTML",
            FailCode::Http => "FAIL_HTTP",
            FailCode::Timeout => "FAIL_TIMEOUT",
            FailCode::Parse => "FAIL_PARSE",
            FailCode::Empty => "FAIL_EMPTY",
            FailCode::Robots => "FAIL_ROBOTS",
            FailCode::Refused => "FAIL_REFUSED",
        }
    }

    /// Maps an outcome as the articles column of the contract's table does.
    pub(super) fn of(happened: &FetchOutcome) -> FailCode {
        match happened {
            FetchOutcome::RobotsDisallow => FailCode::Robots,
            FetchOutcome::Refused(_) => FailCode::Refused,
            FetchOutcome::Answered(_) => FailCode::Http,
            FetchOutcome::BadAnswer(fault) => match fault {
                AnswerFault::NotHttp
                | AnswerFault::TooManyRedirects
                | AnswerFault::BadRedirect
                | AnswerFault::HeadersTooLarge => FailCode::Http,
                AnswerFault::TooLarge
                | AnswerFault::Bomb
                | AnswerFault::TooManyFrames
                | AnswerFault::BadEncoding => FailCode::BadHtml,
                AnswerFault::TookTooLong => FailCode::Parse,
            },
            FetchOutcome::Network(_)
            | FetchOutcome::TimedOut(_)
            | FetchOutcome::SiteStayedDown { .. }
            | FetchOutcome::ProbesFailed { .. }
            | FetchOutcome::WaitTooLong { .. }
            | FetchOutcome::NoSuchHost
            | FetchOutcome::DeadlinePassed
            // The engine retries our own faults, so no plan sees them.
            | FetchOutcome::OurFault(_) => FailCode::Timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::{NameFault, NetworkFault, Phase};

    use super::*;

    #[test]
    fn the_contracts_column() {
        for (happened, expected) in [
            (FetchOutcome::RobotsDisallow, "FAIL_ROBOTS"),
            (FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName)), "FAIL_TIMEOUT"),
            (FetchOutcome::TimedOut(Phase::Total), "FAIL_TIMEOUT"),
            (FetchOutcome::Answered(503), "FAIL_HTTP"),
            (FetchOutcome::Answered(429), "FAIL_HTTP"),
            (FetchOutcome::Answered(500), "FAIL_HTTP"),
            (FetchOutcome::Answered(404), "FAIL_HTTP"),
            (FetchOutcome::BadAnswer(AnswerFault::TooManyRedirects), "FAIL_HTTP"),
            (FetchOutcome::BadAnswer(AnswerFault::TooLarge), "FAIL_BAD_HTML"),
            (FetchOutcome::BadAnswer(AnswerFault::TooManyFrames), "FAIL_BAD_HTML"),
            (FetchOutcome::BadAnswer(AnswerFault::TookTooLong), "FAIL_PARSE"),
            (FetchOutcome::Refused(String::new()), "FAIL_REFUSED"),
        ] {
            assert_eq!(FailCode::of(&happened).as_str(), expected, "{happened:?}");
        }
    }

    #[test]
    fn the_page_of_errors_lists_them() {
        let all = [
            FailCode::BadHtml,
            FailCode::Http,
            FailCode::Timeout,
            FailCode::Parse,
            FailCode::Empty,
            FailCode::Robots,
            FailCode::Refused,
        ];
        fetchwell_testkit::documented::lists_exactly(
            "Codes of articles",
            all.map(FailCode::as_str),
        );
    }
}
