//! The plan of a link: fetch its page and read the article.

use fetchwell_engine::pipeline::GiveUp;
use fetchwell_engine::plan::immediate::{ImmediatePlan, decode_payload};
use fetchwell_engine::plan::one_page::{OnePage, PlanEnd};
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan};
use fetchwell_engine::web::{Answer, Timeouts};
use fetchwell_policy::digest::{sha256_hex, unix_seconds};
use fetchwell_policy::outcome::{Blame, FetchOutcome};
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use serde::{Deserialize, Serialize};
use tracing::error;

use super::record::{ArticleRecord, CanonicalArticle, FailCode, FailedArticle, uid};
use crate::read_limits::ReadLimits;

/// A page with fewer characters fails with `FAIL_BAD_HTML`.
const MIN_HTML_CHARS: usize = 200;
/// If more than one in this many characters is a replacement character, the page is not text, whatever its content
/// type.
const UNREADABLE_ONE_IN: usize = 10;

/// The payload of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArticleLink {
    /// Every category that lists the link, sorted by name. The first one becomes the article's `category`.
    pub categories: Vec<String>,
}

/// The rules for one link.
#[derive(Clone, Copy, Debug)]
pub struct LinkRules {
    pub timeouts: Timeouts,
    pub max_redirects: u32,
    /// The limits for reading the page.
    pub reading: ReadLimits,
}

pub fn plan(lease: &Lease, rules: LinkRules) -> Box<dyn Plan<ArticleRecord>> {
    decode_payload(lease, |link: ArticleLink| {
        let queued = lease.job.url.clone();
        match WebUrl::parse(&queued) {
            Ok(url) => {
                let page =
                    OnePage::new(lease, url, RetryRule::ARTICLES, move |fetch_end, moment| {
                        conclude(&queued, &link, &fetch_end, rules.reading, moment)
                    });
                let working_bytes = move |body: &[u8]| rules.reading.working_bytes(body.len());
                let page = page.with_timeouts(rules.timeouts).with_working_bytes(working_bytes);
                Box::new(page.with_max_redirects(rules.max_redirects))
            }
            Err(fault) => Box::new(ImmediatePlan(move |moment: Moment| {
                let happened = FetchOutcome::Refused(fault.to_string());
                failed(&queued, &link, FailCode::Refused, &happened, moment)
            })),
        }
    })
}

/// What is kept of a link that was given up. An internal error leaves nothing: the link counts as not attempted.
pub fn give_up_record(
    lease: &Lease,
    cause: GiveUp,
    reason: &str,
    wall: Time,
) -> Vec<ArticleRecord> {
    let url = lease.job.url.as_str();
    if cause == GiveUp::Internal {
        error!(url, reason, "[canon] ⚠️ Internal error → left unattempted");
        return Vec::new();
    }
    let too_large = |link: ArticleLink| {
        let failure = failure(url, &link, FailCode::BadHtml, wall);
        ArticleRecord::Failed { failure, what: reason.to_owned(), is_of_site: false }
    };
    serde_json::from_slice(&lease.job.payload).ok().map(too_large).into_iter().collect()
}

fn conclude(
    queued: &str,
    link: &ArticleLink,
    fetch_end: &FetchEnd,
    reading: ReadLimits,
    moment: Moment,
) -> PlanEnd<ArticleRecord> {
    let FetchEnd { final_url, happened, answer, .. } = fetch_end;
    let read = match (happened, answer) {
        (FetchOutcome::Answered(200..=299), Some(answer)) => {
            read(queued, link, final_url, answer, reading, moment)
        }
        _ => Err(Unread::Happened(happened.clone())),
    };
    match read {
        Ok(article) => {
            let article = Box::new(article);
            let categories = link.categories.clone();
            (vec![ArticleRecord::Stored { article, categories }], Settlement::Done)
        }
        Err(Unread::Page(code)) => failed(queued, link, code, happened, moment),
        Err(Unread::Happened(happened)) => {
            failed(queued, link, FailCode::of(&happened), &happened, moment)
        }
    }
}

/// Why a link yielded no article.
enum Unread {
    /// The page was fetched, but is not an article.
    Page(FailCode),
    Happened(FetchOutcome),
}

fn read(
    queued: &str,
    link: &ArticleLink,
    final_url: &WebUrl,
    answer: &Answer,
    reading: ReadLimits,
    moment: Moment,
) -> Result<CanonicalArticle, Unread> {
    let content_type = answer.header("content-type");
    if !fetchwell_extract::is_html(content_type, &answer.body) {
        return Err(Unread::Page(FailCode::BadHtml));
    }
    let html = fetchwell_extract::decode(&answer.body, content_type).text;
    let raw_len = html.chars().count();
    if raw_len < MIN_HTML_CHARS {
        return Err(Unread::Page(FailCode::BadHtml));
    }
    let unreadable = html.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    if unreadable > raw_len / UNREADABLE_ONE_IN {
        return Err(Unread::Page(FailCode::Parse));
    }
    let base_url =
        url::Url::parse(final_url.as_str()).map_err(|_| Unread::Page(FailCode::Refused))?;
    // Readers of the articles rely on it that `noscript` is never part of the text.
    let reading = ReadLimits { with_noscript: false, ..reading };
    let article = reading.article(&html, &base_url).map_err(Unread::Happened)?;
    if article.text.is_empty() {
        return Err(Unread::Page(FailCode::Empty));
    }
    Ok(CanonicalArticle {
        uid: uid(queued),
        url: queued.to_owned(),
        category: first_category(link),
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
    link: &ArticleLink,
    reason: FailCode,
    happened: &FetchOutcome,
    moment: Moment,
) -> PlanEnd<ArticleRecord> {
    let what = match reason {
        FailCode::BadHtml => "Bad HTML".to_owned(),
        FailCode::Parse if happened.status().is_some() => "Unreadable HTML".to_owned(),
        FailCode::Empty => "No text".to_owned(),
        _ => happened.to_string(),
    };
    let failure = failure(queued, link, reason, moment.wall);
    let is_of_site = matches!(happened.blame(), Blame::Site | Blame::Us);
    let settlement =
        if reason == FailCode::Robots { Settlement::Skipped } else { Settlement::Done };
    (vec![ArticleRecord::Failed { failure, what, is_of_site }], settlement)
}

fn failure(queued: &str, link: &ArticleLink, reason: FailCode, wall: Time) -> FailedArticle {
    FailedArticle {
        uid: uid(queued),
        url: queued.to_owned(),
        category: first_category(link),
        fetched_ts: unix_seconds(wall),
        reason,
    }
}

fn first_category(link: &ArticleLink) -> String {
    link.categories.first().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use fetchwell_policy::outcome::{AnswerFault, NetworkFault, Phase};
    use fetchwell_testkit::samples::{NOW, end_with, lease, outcome};

    use super::*;
    use crate::read_limits::READING;

    const RULES: LinkRules = LinkRules {
        timeouts: Timeouts { connect: None, request: None },
        max_redirects: 5,
        reading: READING,
    };
    const LINK: &str = r#"{"categories":["a","b"]}"#;

    fn end(url: &str, html: &str, happened: &FetchOutcome) -> ArticleRecord {
        let (mut records, settlement) =
            end_with(plan(&lease(url, LINK), RULES), outcome(happened.clone(), html));
        let skipped = *happened == FetchOutcome::RobotsDisallow;
        let expected = if skipped { Settlement::Skipped } else { Settlement::Done };
        assert_eq!((records.len(), settlement), (1, expected));
        records.remove(0)
    }

    fn reason(html: &str, happened: &FetchOutcome) -> (FailCode, bool) {
        match end("http://a.test/", html, happened) {
            ArticleRecord::Failed { failure, is_of_site, .. } => (failure.reason, is_of_site),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_text_is_checked() {
        let silent = format!("<html><script>{}</script></html>", "x".repeat(300));
        let noscript = format!("<html><noscript><p>{}</p></noscript>", "Some words. ".repeat(99));
        let noise = format!("<html><p>{}</p></html>", "ab\u{fffd}".repeat(300));
        let short = "<html><p>Short.</p></html>";
        let plain = "plain ".repeat(99);
        for (html, code) in [
            (short, FailCode::BadHtml),
            (&plain, FailCode::BadHtml),
            (&silent, FailCode::Empty),
            (&noscript, FailCode::Empty),
            (&noise, FailCode::Parse),
        ] {
            assert_eq!(reason(html, &FetchOutcome::Answered(200)), (code, false), "{html}");
        }
    }

    #[test]
    fn only_failures_of_the_site_are_forgiven() {
        let refused = FetchOutcome::Network(NetworkFault::ConnectRefused);
        for (happened, code, is_of_site) in [
            (FetchOutcome::Answered(503), FailCode::Http, true),
            (refused, FailCode::Timeout, true),
            (FetchOutcome::TimedOut(Phase::Total), FailCode::Timeout, true),
            (FetchOutcome::Answered(404), FailCode::Http, false),
            (FetchOutcome::Answered(500), FailCode::Http, false),
            (FetchOutcome::RobotsDisallow, FailCode::Robots, false),
            (FetchOutcome::Refused("private".to_owned()), FailCode::Refused, false),
        ] {
            assert_eq!(reason("", &happened), (code, is_of_site), "{happened:?}");
        }
    }

    #[test]
    fn an_article_has_every_field_as_text() {
        let prose = "Ä paragraph that is long enough to be one, and then some more of it. ";
        let html = format!(
            "<html><title>Title</title><article><p>{prose}</p>\
             <p>And here is quite another one, which says something else, and goes \
             on to say it at some length.</p><p>A third one ends it.</p>"
        );
        let record = end("http://a.test/x", &html, &FetchOutcome::Answered(200));
        let kept = record.article_result();
        assert_eq!((kept.uid.as_str(), kept.failure), ("ba4f26aaed82d54b", None));
        assert_eq!(
            (kept.categories, kept.fetched_ts),
            (vec!["a".to_owned(), "b".to_owned()], 1_700_000_000)
        );
        let field = |name: &str| kept.fields[name].as_str();
        assert_eq!((field("status"), field("category"), field("author")), ("success", "a", ""));
        assert_eq!(field("raw_len"), html.chars().count().to_string());
        assert_eq!(field("text_len"), field("clean_text").chars().count().to_string());
        assert_eq!(field("abstract"), prose.trim());
        assert_eq!(kept.fields.len(), 18);
    }

    #[test]
    fn a_page_that_takes_too_long_to_read_is_a_failure_with_that_reason() {
        let prose = "<p>A paragraph that is long enough to be one, and then some more of it.";
        let html = format!("<html>{}", prose.repeat(2_000));
        let reading = ReadLimits { max_time: std::time::Duration::ZERO, ..READING };
        let plan = plan(&lease("http://a.test/", LINK), LinkRules { reading, ..RULES });
        let (records, settlement) = end_with(plan, outcome(FetchOutcome::Answered(200), &html));
        assert_eq!(settlement, Settlement::Done);
        let [ArticleRecord::Failed { failure, what, is_of_site: false }] = records.as_slice()
        else {
            panic!("{records:?}")
        };
        assert_eq!(failure.reason, FailCode::Parse);
        assert!(what.contains("extract.max_time"), "{what}");
    }

    #[test]
    fn a_link_that_makes_no_sense_is_a_failure_and_one_that_makes_us_fail_is_none() {
        let ArticleRecord::Failed { failure, .. } = end("no url", "", &FetchOutcome::Answered(200))
        else {
            panic!("it is none")
        };
        assert_eq!(failure.reason, FailCode::Refused);
        let lease = lease("http://a.test/", LINK);
        assert_eq!(give_up_record(&lease, GiveUp::Internal, "it panicked", NOW), []);
    }

    #[test]
    fn an_article_too_large_for_the_store_fails_as_a_page_over_the_limit_does() {
        let records =
            give_up_record(&lease("http://a.test/", LINK), GiveUp::TooLarge, "a row of 2 GiB", NOW);
        let [ArticleRecord::Failed { failure, what, is_of_site: false }] = records.as_slice()
        else {
            panic!("{records:?}")
        };
        let over_the_limit = FetchOutcome::BadAnswer(AnswerFault::TooLarge);
        assert_eq!(failure.reason, reason("", &over_the_limit).0);
        assert_eq!((failure.category.as_str(), what.as_str()), ("a", "a row of 2 GiB"));
    }
}
