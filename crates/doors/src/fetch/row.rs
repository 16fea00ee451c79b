//! One result, and how it is printed.

use std::path::Path;
use std::time::Duration;

use fetchwell_engine::pipeline::{GiveUp, INTERNAL};
use fetchwell_engine::plan::one_page::Weighed;
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::web::Why;
use fetchwell_extract::{Article, decode, extract_within, is_html, is_text, links_within};
use fetchwell_policy::digest::sha256_hex;
use fetchwell_policy::outcome::{Blame, FetchOutcome};
use fetchwell_policy::rfc3339::rfc3339;
use fetchwell_policy::time::Time;
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use super::capture::{Archived, warcinfo};
use super::format::OutputFormat;
use super::json_text;
use super::plan::FetchRules;
use super::printed::{markdown_page, text_page, under_url};

/// The outcome of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowOutcome {
    Fetched,
    SkippedByRobots,
    /// The page asks not to be indexed. Only `crawl` obeys that.
    Noindex,
    /// It redirects to a page whose content another row has. Only `crawl` compares rows.
    Redirected,
    UrlFailure,
    SiteFailure,
    RateLimited,
    Refused,
    /// An internal error. Not a final result: a resumed run removes the row and retries.
    #[default]
    Internal,
}

impl RowOutcome {
    /// All outcomes, in the order of a summary.
    pub const ALL: [RowOutcome; 9] = [
        RowOutcome::Fetched,
        RowOutcome::SkippedByRobots,
        RowOutcome::Noindex,
        RowOutcome::Redirected,
        RowOutcome::UrlFailure,
        RowOutcome::SiteFailure,
        RowOutcome::RateLimited,
        RowOutcome::Refused,
        RowOutcome::Internal,
    ];

    /// Whether the fetch failed. Skipped and refused URLs did not fail: they were not to be fetched or kept.
    pub fn is_failure(self) -> bool {
        match self {
            RowOutcome::Fetched
            | RowOutcome::SkippedByRobots
            | RowOutcome::Noindex
            | RowOutcome::Redirected
            | RowOutcome::Refused => false,
            RowOutcome::UrlFailure
            | RowOutcome::SiteFailure
            | RowOutcome::RateLimited
            | RowOutcome::Internal => true,
        }
    }

    /// Whether a rule did not allow the fetch: robots.txt or the address guard.
    pub fn is_refusal(self) -> bool {
        matches!(self, RowOutcome::SkippedByRobots | RowOutcome::Refused)
    }

    /// The words that follow the number in a summary.
    pub fn in_words(self) -> &'static str {
        match self {
            RowOutcome::Fetched => "fetched",
            RowOutcome::SkippedByRobots => "skipped by robots.txt",
            RowOutcome::Noindex => "not kept (noindex)",
            RowOutcome::Redirected => "redirected to other rows",
            RowOutcome::UrlFailure => "failed",
            RowOutcome::SiteFailure => "given up (site failure)",
            RowOutcome::RateLimited => "rate limited",
            RowOutcome::Refused => "refused",
            RowOutcome::Internal => "given up (internal error)",
        }
    }
}

/// One line of JSON, with the fields of the contract.
#[derive(Debug, Default, Serialize)]
pub struct FetchRow {
    pub url: String,
    final_url: Option<String>,
    pub outcome: RowOutcome,
    status: Option<u16>,
    content_type: Option<String>,
    content_length: Option<usize>,
    content_hash: Option<String>,
    fetched_at: String,
    attempts: u32,
    waited_ms: u64,
    elapsed_ms: u64,
    title: Option<String>,
    /// `as_json` inserts it.
    #[serde(serialize_with = "as_null")]
    text: Option<String>,
    /// `as_json` inserts it.
    #[serde(serialize_with = "as_null")]
    markdown: Option<String>,
    image: Option<String>,
    lang: Option<String>,
    author: Option<String>,
    authors: Vec<String>,
    published: Option<String>,
    site_name: Option<String>,
    description: Option<String>,
    canonical_url: Option<String>,
    /// `None` unless [`FetchRules::links`] asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<Vec<String>>,
    /// `None` unless it is a row of a crawl.
    #[serde(flatten)]
    pub(crate) crawl: Option<CrawlFields>,
    pub reason: Option<String>,
    why: Option<RowWhy>,
    /// The page as UTF-8; only for HTML output.
    #[serde(skip)]
    html: Option<String>,
    /// The exchanges as WARC records; empty for other formats.
    #[serde(skip)]
    pub(crate) archived: Archived,
}

/// The placeholder that `as_json` replaces with the texts. The fields `text` and `markdown` must stay adjacent. The
/// placeholder cannot occur inside a JSON string, because quotes are escaped there.
const TEXTS_PLACEHOLDER: &str = r#""text":null,"markdown":null"#;

fn as_null<S: Serializer>(_: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_none()
}

/// The fields that only rows of a crawl have.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CrawlFields {
    pub(crate) depth: u32,
    pub(crate) parent: Option<String>,
    pub(crate) links_found: usize,
}

/// What the gate based its decision on.
#[derive(Debug, Serialize)]
struct RowWhy {
    robots: Option<String>,
    interval_seconds: f64,
    interval_source: &'static str,
    breaker: &'static str,
}

impl FetchRow {
    /// The row of a URL that was not requested.
    pub(crate) fn refused(url: &str, reason: &str, rules: &FetchRules, now: Time) -> FetchRow {
        FetchRow {
            url: url.to_owned(),
            outcome: RowOutcome::Refused,
            fetched_at: rfc3339(now),
            links: rules.links.then(Vec::new),
            reason: Some(reason.to_owned()),
            ..FetchRow::default()
        }
    }

    /// The row of a URL that redirects to a page whose content another row has.
    pub(crate) fn redirected(
        url: &str,
        fetch_end: &FetchEnd,
        status: u16,
        rules: &FetchRules,
        now: Time,
    ) -> FetchRow {
        FetchRow {
            outcome: RowOutcome::Redirected,
            status: Some(status),
            content_type: None,
            content_length: None,
            content_hash: None,
            reason: Some("another row has the page that it redirects to".to_owned()),
            ..FetchRow::without_content(url, fetch_end, rules, now)
        }
    }

    /// A URL that the engine gave up.
    pub(crate) fn given_up(
        lease: &Lease,
        cause: GiveUp,
        error: &str,
        rules: &FetchRules,
        now: Time,
    ) -> FetchRow {
        let failures = lease.history.failures();
        let (outcome, attempts, reason) = match cause {
            GiveUp::Internal => (RowOutcome::Internal, failures, format!("{INTERNAL}: {error}")),
            GiveUp::TooLarge => {
                (RowOutcome::UrlFailure, failures.saturating_add(1), error.to_owned())
            }
        };
        FetchRow { outcome, attempts, ..FetchRow::refused(&lease.job.url, &reason, rules, now) }
    }

    /// The row of a URL that was fetched or failed.
    pub(crate) fn arrived(
        url: &str,
        fetch_end: &FetchEnd,
        rules: &FetchRules,
        now: Time,
    ) -> FetchRow {
        let mut row = FetchRow::without_content(url, fetch_end, rules, now);
        // The exchanges hold the page itself.
        if let Some(answer) = &fetch_end.answer
            && row.outcome == RowOutcome::Fetched
            && rules.format != OutputFormat::Warc
        {
            row.read(&answer.body, fetch_end.final_url.as_str(), rules);
        }
        row
    }

    /// The same without the content of the page.
    pub(crate) fn without_content(
        url: &str,
        fetch_end: &FetchEnd,
        rules: &FetchRules,
        now: Time,
    ) -> FetchRow {
        let FetchEnd { final_url, happened, answer, attempts, why, phases, .. } = fetch_end;
        let status = happened.status().or(answer.as_ref().map(|answer| answer.status));
        let mut row = FetchRow {
            final_url: Some(final_url.as_str().to_owned()),
            outcome: outcome_of(happened, status),
            status,
            attempts: *attempts,
            waited_ms: ms(phases.robots + phases.slot),
            elapsed_ms: ms(phases.connect + phases.first_byte + phases.body),
            why: Some(row_why(why, happened)),
            ..FetchRow::refused(url, "", rules, now)
        };
        row.reason = (row.outcome != RowOutcome::Fetched).then(|| happened.to_string());
        if let Some(answer) = answer {
            row.content_type = answer.header("content-type").map(str::to_owned);
            row.content_length = Some(answer.body.len());
            row.content_hash = Some(sha256_hex(&answer.body));
        }
        row
    }

    /// The pace of the site, if the URL got as far as the gate.
    pub fn interval(&self) -> Option<Duration> {
        let seconds = self.why.as_ref()?.interval_seconds;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Fills in the fields that come from the page.
    fn read(&mut self, body: &[u8], final_url: &str, rules: &FetchRules) {
        let content_type = self.content_type.clone();
        let content_type = content_type.as_deref();
        if !is_text(content_type, body) {
            self.reason = Some("the page was fetched, but is not text".to_owned());
            return;
        }
        let text = decode(body, content_type).text;
        if rules.format == OutputFormat::Html {
            self.html = Some(text.into_owned());
            return;
        }
        match Url::parse(final_url) {
            Ok(found_at) if is_html(content_type, body) => {
                if let Err(happened) = self.read_html(&text, &found_at, rules) {
                    self.outcome = outcome_of(&happened, self.status);
                    self.reason = Some(happened.to_string());
                }
            }
            _ => {
                self.markdown = Some(text.clone().into_owned());
                self.text = Some(text.into_owned());
            }
        }
    }

    fn read_html(
        &mut self,
        html: &str,
        found_at: &Url,
        rules: &FetchRules,
    ) -> Result<(), FetchOutcome> {
        let (article, links) = rules.reading.read(|limits| {
            let article = extract_within(html, found_at, limits)?;
            let links = rules.links.then(|| links_within(html, found_at, limits)).transpose()?;
            Ok((article, links))
        })?;
        self.take_article(article);
        self.links = links.map(|links| links.into_iter().map(String::from).collect());
        Ok(())
    }

    fn take_article(&mut self, article: Article) {
        if article.is_cut {
            self.reason = Some(
                "the page has more text than extract.max_text: the rest is left out".to_owned(),
            );
        }
        self.title = (!article.title.is_empty()).then_some(article.title);
        self.text = Some(article.text);
        self.markdown = Some(article.markdown);
        self.image = article.image;
        self.lang = article.lang;
        self.author = article.author;
        self.authors = article.authors;
        self.published = article.published;
        self.site_name = article.site_name;
        self.description = article.description;
        self.canonical_url = article.canonical;
    }

    fn as_markdown(&self) -> Vec<u8> {
        markdown_page(self.title.as_deref(), self.markdown.as_deref().unwrap_or_default())
    }

    fn as_text(&self) -> Vec<u8> {
        text_page(self.text.as_deref().unwrap_or_default())
    }

    fn as_html(&self) -> Vec<u8> {
        text_page(self.html.as_deref().unwrap_or_default())
    }

    /// Serializing a row cannot fail.
    fn as_json(&self) -> Vec<u8> {
        let short = serde_json::to_string(self).unwrap_or_default();
        let Some((before, after)) = short.split_once(TEXTS_PLACEHOLDER) else {
            return short.into_bytes();
        };
        // Escapes rarely make a text more than an eighth longer.
        let mut json = Vec::with_capacity(short.len() + self.text_bytes() / 8 * 9);
        json.extend_from_slice(before.as_bytes());
        json.extend_from_slice(b"\"text\":");
        json_text::push(&mut json, self.text.as_deref());
        json.extend_from_slice(b",\"markdown\":");
        json_text::push(&mut json, self.markdown.as_deref());
        json.extend_from_slice(after.as_bytes());
        json
    }

    fn as_json_line(&self) -> Vec<u8> {
        let mut line = self.as_json();
        line.push(b'\n');
        line
    }

    /// The records of the exchanges, then the row: as the last record it shows that all are complete.
    fn as_warc(&self) -> Vec<u8> {
        self.archived.with_row(&self.url, &self.fetched_at, &self.as_json())
    }

    /// The total size of the page's texts and links, in bytes.
    fn text_bytes(&self) -> usize {
        let texts = [
            &self.title,
            &self.text,
            &self.markdown,
            &self.image,
            &self.author,
            &self.site_name,
            &self.description,
            &self.canonical_url,
            &self.html,
        ];
        let lists = self.authors.iter().chain(self.links.iter().flatten());
        texts.into_iter().flatten().chain(lists).map(String::len).sum()
    }
}

impl Weighed for FetchRow {
    fn weight(&self) -> usize {
        self.text_bytes() + self.archived.bytes()
    }
}

/// How rows are printed. With `several` URLs, a line with the URL precedes each page.
pub fn renderer(format: OutputFormat, several: bool) -> fn(&FetchRow) -> Vec<u8> {
    match (format, several) {
        (OutputFormat::Json, _) => FetchRow::as_json_line,
        (OutputFormat::Warc, _) => FetchRow::as_warc,
        (OutputFormat::Markdown, false) => FetchRow::as_markdown,
        (OutputFormat::Markdown, true) => {
            |row| under_url(OutputFormat::Markdown, &row.url, row.as_markdown())
        }
        (OutputFormat::Text, false) => FetchRow::as_text,
        (OutputFormat::Text, true) => |row| under_url(OutputFormat::Text, &row.url, row.as_text()),
        (OutputFormat::Html, false) => FetchRow::as_html,
        (OutputFormat::Html, true) => |row| under_url(OutputFormat::Html, &row.url, row.as_html()),
    }
}

/// The first bytes of an output file.
pub fn preamble(format: OutputFormat, path: &Path, user_agent: &str, now: Time) -> Vec<u8> {
    match format {
        OutputFormat::Warc => warcinfo(path, user_agent, now),
        _ => Vec::new(),
    }
}

fn outcome_of(happened: &FetchOutcome, status: Option<u16>) -> RowOutcome {
    match (happened, happened.blame()) {
        (FetchOutcome::RobotsDisallow, _) => RowOutcome::SkippedByRobots,
        // The server's 429 decides, even if its Retry-After is too long to wait for.
        (FetchOutcome::WaitTooLong { .. }, _) if status == Some(429) => RowOutcome::RateLimited,
        (_, Blame::Pace) => RowOutcome::RateLimited,
        (_, Blame::Site) => RowOutcome::SiteFailure,
        (_, Blame::Caller) => RowOutcome::Refused,
        (FetchOutcome::Answered(_), Blame::Nobody) => RowOutcome::Fetched,
        (_, Blame::Us) => RowOutcome::Internal,
        (_, Blame::Url | Blame::Nobody) => RowOutcome::UrlFailure,
    }
}

fn row_why(why: &Why, happened: &FetchOutcome) -> RowWhy {
    let down =
        matches!(happened, FetchOutcome::SiteStayedDown { .. } | FetchOutcome::ProbesFailed { .. });
    RowWhy {
        robots: why.robots.clone(),
        interval_seconds: why.interval.as_secs_f64(),
        interval_source: why.interval_source,
        breaker: if down { "open" } else { "closed" },
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use fetchwell_engine::plan::redirect_chain::Patience;
    use fetchwell_policy::outcome::{AnswerFault, NameFault, NetworkFault, Phase, WaitAskedBy};

    use super::*;
    use crate::read_limits::READING;

    fn rules() -> FetchRules {
        let patience = Patience { since: Time::EPOCH, lasts: Duration::ZERO };
        FetchRules {
            format: OutputFormat::Json,
            links: false,
            reading: READING,
            max_redirects: 0,
            patience,
        }
    }

    #[test]
    fn the_page_of_errors_lists_all_outcomes() {
        let happened = fetchwell_testkit::documented::everything_that_happens();
        let words = happened.iter().map(|one| {
            let word = serde_json::to_value(outcome_of(one, one.status())).unwrap();
            word.as_str().unwrap().to_owned()
        });
        fetchwell_testkit::documented::lists_exactly("Outcomes of fetch", words);
    }

    #[test]
    fn every_outcome_has_its_word() {
        use RowOutcome::*;
        for (happened, expected) in [
            (FetchOutcome::Answered(200), Fetched),
            (FetchOutcome::Answered(404), UrlFailure),
            (FetchOutcome::Answered(500), UrlFailure),
            (FetchOutcome::Answered(503), SiteFailure),
            (FetchOutcome::Answered(429), RateLimited),
            (FetchOutcome::RobotsDisallow, SkippedByRobots),
            (FetchOutcome::Refused("x".into()), Refused),
            (FetchOutcome::Network(NetworkFault::Dns(NameFault::NoSuchName)), SiteFailure),
            (FetchOutcome::TimedOut(Phase::Total), SiteFailure),
            (FetchOutcome::SiteStayedDown { since: Time::EPOCH, last_failure: None }, SiteFailure),
            (FetchOutcome::BadAnswer(AnswerFault::TooLarge), UrlFailure),
            (FetchOutcome::NoSuchHost, UrlFailure),
            (FetchOutcome::OurFault("x".into()), Internal),
            (wait_too_long(), SiteFailure),
        ] {
            assert_eq!(outcome_of(&happened, happened.status()), expected, "{happened:?}");
        }
    }

    #[test]
    fn a_row_too_large_to_be_stored_is_a_failure_of_its_url_and_a_panic_is_not() {
        let lease = fetchwell_testkit::samples::lease("http://x.test/", "");
        let given_up = |cause| FetchRow::given_up(&lease, cause, "so it is", &rules(), Time::EPOCH);
        let internal = given_up(GiveUp::Internal);
        assert_eq!((internal.outcome, internal.attempts), (RowOutcome::Internal, 0));
        assert_eq!(internal.reason.as_deref(), Some("internal: so it is"));
        let too_large = given_up(GiveUp::TooLarge);
        assert_eq!((too_large.outcome, too_large.attempts), (RowOutcome::UrlFailure, 1));
        assert_eq!(too_large.reason.as_deref(), Some("so it is"));
    }

    fn wait_too_long() -> FetchOutcome {
        FetchOutcome::WaitTooLong {
            asked_by: WaitAskedBy::RetryAfter,
            wait: Duration::from_secs(3_600),
            most: Duration::from_secs(600),
        }
    }

    #[test]
    fn a_429_with_a_long_retry_after_is_still_a_429() {
        assert_eq!(outcome_of(&wait_too_long(), Some(429)), RowOutcome::RateLimited);
        assert_eq!(outcome_of(&wait_too_long(), Some(503)), RowOutcome::SiteFailure);
    }

    #[test]
    fn the_line_above_a_page_stays_one_line_and_one_comment() {
        let row = FetchRow {
            text: Some("words".to_owned()),
            markdown: Some("words".to_owned()),
            ..FetchRow::refused("http://x.test/\u{1b}[2J\r--><script>", "", &rules(), Time::EPOCH)
        };
        let markdown = String::from_utf8(renderer(OutputFormat::Markdown, true)(&row)).unwrap();
        assert_eq!(markdown, "<!-- http://x.test/\\u{1b}[2J\\r--%3E<script%3E -->\nwords\n\n");
        let text = String::from_utf8(renderer(OutputFormat::Text, true)(&row)).unwrap();
        assert_eq!(text, "==> http://x.test/\\u{1b}[2J\\r--%3E<script%3E <==\nwords\n\n");
    }

    #[test]
    fn a_json_row_has_the_contracts_fields_in_its_order() {
        let line = |rules: &FetchRules| {
            let row = FetchRow::refused("http://x.test/", "why not", rules, Time::EPOCH);
            String::from_utf8(renderer(OutputFormat::Json, true)(&row)).unwrap()
        };
        let with_links = line(&FetchRules { links: true, ..rules() });
        assert!(with_links.contains(r#""canonical_url":null,"links":[],"reason""#), "{with_links}");
        let line = line(&rules());
        let fields = [
            "url",
            "final_url",
            "outcome",
            "status",
            "content_type",
            "content_length",
            "content_hash",
            "fetched_at",
            "attempts",
            "waited_ms",
            "elapsed_ms",
            "title",
            "text",
            "markdown",
            "image",
            "lang",
            "author",
            "authors",
            "published",
            "site_name",
            "description",
            "canonical_url",
            "reason",
            "why",
        ];
        let places: Vec<usize> =
            fields.iter().map(|field| line.find(&format!("\"{field}\":")).unwrap()).collect();
        assert!(places.is_sorted(), "{line}");
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value.as_object().unwrap().len(), fields.len());
        assert_eq!(value["fetched_at"], "1970-01-01T00:00:00Z");
    }
}
