//! `fetchwell articles`: links of categories become canonical articles, or failures with a code.

mod record;

use fetchwell_engine::journey::Arrival;
use fetchwell_engine::ports::{Lease, Moment, Plan, Settlement};
use fetchwell_engine::web::Answer;
use fetchwell_policy::outcome::{Blame, Happened};
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};

use super::foregone::{Foregone, by_payload};
use super::notation::{sha1_hex, sha256_hex, unix_seconds};
use super::one_page::{End, OnePage};

pub use record::{ArticleRecord, CanonicalArticle, FailCode, FailedArticle};

/// A page with fewer characters is no page.
const MIN_HTML_CHARS: usize = 200;
/// A failure of the site counts as an attempt at the link in this run only.
const RUNS_UNTIL_ATTEMPTED: u32 = 3;

/// What a job of this door carries besides its URL.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Link {
    /// The first category in which the link was found.
    pub category: String,
    /// Earlier runs that failed because of the site.
    pub runs_failed_by_site: u32,
}

/// The name of an article: the first 16 hex digits of the SHA-1 of its URL.
pub fn uid(url: &str) -> String {
    sha1_hex(url.as_bytes()).chars().take(16).collect()
}

/// Makes the plan of a link.
pub fn plan(lease: &Lease) -> Box<dyn Plan<ArticleRecord>> {
    by_payload(lease, |link: Link| {
        let queued = lease.job.url.clone();
        match WebUrl::parse(&queued) {
            Ok(url) => {
                Box::new(OnePage::new(lease, url, RetryRule::ARTICLES, move |arrival, moment| {
                    conclude(&queued, &link, &arrival, moment)
                }))
            }
            Err(fault) => Box::new(Foregone(move |moment| {
                let happened = Happened::Refused(fault.to_string());
                failed(&queued, &link, FailCode::Refused, &happened, moment)
            })),
        }
    })
}

fn conclude(queued: &str, link: &Link, arrival: &Arrival, moment: Moment) -> End<ArticleRecord> {
    let Arrival { final_url, happened, answer, .. } = arrival;
    let read = match (happened, answer) {
        (Happened::Answered(200..=299), Some(answer)) => {
            read(queued, link, final_url, answer, moment)
        }
        _ => Err(FailCode::of(happened)),
    };
    match read {
        Ok(article) => (vec![ArticleRecord::Stored(Box::new(article))], Settlement::Done),
        Err(code) => failed(queued, link, code, happened, moment),
    }
}

fn read(
    queued: &str,
    link: &Link,
    final_url: &WebUrl,
    answer: &Answer,
    moment: Moment,
) -> Result<CanonicalArticle, FailCode> {
    let content_type = answer.header("content-type");
    if !fetchwell_extract::is_html(content_type, &answer.body) {
        return Err(FailCode::BadHtml);
    }
    let html = fetchwell_extract::decode(&answer.body, content_type).text;
    let raw_len = html.chars().count();
    if raw_len < MIN_HTML_CHARS {
        return Err(FailCode::BadHtml);
    }
    let base_url = url::Url::parse(final_url.as_str()).map_err(|_| FailCode::Refused)?;
    let article = fetchwell_extract::extract(&html, &base_url);
    if article.text.is_empty() {
        return Err(FailCode::Empty);
    }
    Ok(CanonicalArticle {
        uid: uid(queued),
        url: queued.to_owned(),
        category: link.category.clone(),
        raw_len,
        text_len: article.text.chars().count(),
        content_hash: sha256_hex(article.text.as_bytes()),
        clean_text: article.text,
        abstract_text: article.abstract_text,
        image: article.image.unwrap_or_default(),
        fetched_ts: unix_seconds(moment.wall),
        title: article.title,
        markdown: article.markdown,
        lang: article.lang.unwrap_or_default(),
        published: article.published.unwrap_or_default(),
        author: article.author.unwrap_or_default(),
        site: final_url.site().to_string(),
        final_url: final_url.to_string(),
    })
}

fn failed(
    queued: &str,
    link: &Link,
    reason: FailCode,
    happened: &Happened,
    moment: Moment,
) -> End<ArticleRecord> {
    let failure = FailedArticle {
        uid: uid(queued),
        url: queued.to_owned(),
        category: link.category.clone(),
        fetched_ts: unix_seconds(moment.wall),
        reason,
    };
    let by_site = happened.blame() == Blame::Site;
    let attempted = !by_site || link.runs_failed_by_site + 1 >= RUNS_UNTIL_ATTEMPTED;
    let settlement =
        if reason == FailCode::Robots { Settlement::Skipped } else { Settlement::Done };
    (vec![ArticleRecord::Failed { failure, attempted }], settlement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::samples::{end_with, lease, outcome};

    fn reason(html: &str, happened: Happened, runs_failed_by_site: u32) -> (FailCode, bool) {
        let link = format!(r#"{{"category":"news","runs_failed_by_site":{runs_failed_by_site}}}"#);
        let plan = plan(&lease("http://a.test/", &link));
        let (records, _) = end_with(plan, outcome(happened, html));
        match &records[..] {
            [ArticleRecord::Failed { failure, attempted }] => (failure.reason, *attempted),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_text_is_checked() {
        let answered = || Happened::Answered(200);
        let silent = format!("<html><script>{}</script></html>", "x".repeat(300));
        assert_eq!(reason("<html><p>Short.</p></html>", answered(), 0), (FailCode::BadHtml, true));
        assert_eq!(reason(&"plain ".repeat(99), answered(), 0), (FailCode::BadHtml, true));
        assert_eq!(reason(&silent, answered(), 0), (FailCode::Empty, true));
    }

    #[test]
    fn a_failure_of_the_site_counts_after_three_runs() {
        for (runs, attempted) in [(0, false), (1, false), (2, true)] {
            let found = reason("", Happened::Answered(503), runs);
            assert_eq!(found, (FailCode::Http, attempted), "{runs}");
        }
        assert_eq!(reason("", Happened::Answered(404), 0), (FailCode::Http, true));
    }
}
