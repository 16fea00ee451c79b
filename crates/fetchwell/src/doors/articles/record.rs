//! What an article, or the lack of one, looks like in Redis.

use fetchwell_policy::outcome::{AnswerFault, Happened};
use serde::Serialize;

/// What comes out of this door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArticleRecord {
    /// An article.
    Stored(Box<CanonicalArticle>),
    /// A link that gave none.
    Failed {
        /// What is kept about it.
        failure: FailedArticle,
        /// Whether it joins `rss:canonical_attempted`: otherwise the next run tries again.
        attempted: bool,
    },
}

/// The hash `rss:article_canonical:{uid}` of an article. Lengths are in characters; what a page
/// does not say is an empty string.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename = "success")]
#[expect(missing_docs, reason = "the fields are the contract's, by name")]
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

/// The same hash of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename = "failure")]
#[expect(missing_docs, reason = "the fields are the contract's, by name")]
pub struct FailedArticle {
    pub uid: String,
    pub url: String,
    pub category: String,
    pub fetched_ts: i64,
    pub reason: FailCode,
}

/// Why a link gave no article. `FAIL_PARSE` is missing: no input makes extraction fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum FailCode {
    /// Too short, not HTML, or a body that can't be read.
    #[serde(rename = "FAIL_BAD_HTML")]
    BadHtml,
    /// A status that is no success, or redirects that lead nowhere.
    #[serde(rename = "FAIL_HTTP")]
    Http,
    /// No answer.
    #[serde(rename = "FAIL_TIMEOUT")]
    Timeout,
    /// A page without text.
    #[serde(rename = "FAIL_EMPTY")]
    Empty,
    /// robots.txt disallows it.
    #[serde(rename = "FAIL_ROBOTS")]
    Robots,
    /// The address guard refused.
    #[serde(rename = "FAIL_REFUSED")]
    Refused,
}

impl FailCode {
    /// The articles' column of the contract's table.
    pub(super) fn of(happened: &Happened) -> FailCode {
        match happened {
            Happened::RobotsDisallow => FailCode::Robots,
            Happened::Refused(_) => FailCode::Refused,
            Happened::Answered(_) => FailCode::Http,
            Happened::BadAnswer(fault) => match fault {
                AnswerFault::NotHttp
                | AnswerFault::TooManyRedirects
                | AnswerFault::BadRedirect
                | AnswerFault::HeadersTooLarge => FailCode::Http,
                AnswerFault::TooLarge | AnswerFault::Bomb | AnswerFault::BadEncoding => {
                    FailCode::BadHtml
                }
            },
            Happened::Network(_)
            | Happened::TimedOut(_)
            | Happened::SiteStayedDown { .. }
            | Happened::DeadlinePassed
            | Happened::OurFault(_) => FailCode::Timeout,
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
            (Happened::RobotsDisallow, "FAIL_ROBOTS"),
            (Happened::Network(NetworkFault::Dns(NameFault::NoSuchName)), "FAIL_TIMEOUT"),
            (Happened::TimedOut(Phase::Total), "FAIL_TIMEOUT"),
            (Happened::Answered(503), "FAIL_HTTP"),
            (Happened::Answered(429), "FAIL_HTTP"),
            (Happened::Answered(500), "FAIL_HTTP"),
            (Happened::Answered(404), "FAIL_HTTP"),
            (Happened::BadAnswer(AnswerFault::TooManyRedirects), "FAIL_HTTP"),
            (Happened::BadAnswer(AnswerFault::TooLarge), "FAIL_BAD_HTML"),
            (Happened::Refused(String::new()), "FAIL_REFUSED"),
        ] {
            let code = serde_json::to_value(FailCode::of(&happened)).unwrap();
            assert_eq!(code, expected, "{happened:?}");
        }
    }
}
