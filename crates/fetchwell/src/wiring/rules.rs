//! The rules of the doors, from the settings.

use fetchwell_doors::articles::{ArticleRules, LinkRules};
use fetchwell_doors::feeds::FeedRules;
use fetchwell_doors::pages::{PageDoorRules, PageRules};
use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_engine::web::Timeouts;
use fetchwell_policy::retry::{Backoff, RetryRule};
use fetchwell_settings::Values;

pub(crate) fn read_limits(values: &Values) -> ReadLimits {
    let max_text_bytes = usize::try_from(values.extract_max_text).unwrap_or(usize::MAX);
    ReadLimits { max_text_bytes, max_time: values.extract_max_time }
}

pub(crate) fn article_rules(values: &Values) -> ArticleRules {
    let link = LinkRules {
        timeouts: Timeouts { connect: None, request: Some(values.articles_request_timeout) },
        max_redirects: values.http_max_redirects,
        reading: read_limits(values),
    };
    ArticleRules { link, max_wait: values.articles_max_wait }
}

pub(crate) fn feed_rules(values: &Values) -> FeedRules {
    FeedRules { max_wait: values.feeds_max_wait, max_redirects: values.http_max_redirects }
}

/// The rules for fetching pages, and how long pages and events are kept.
pub(crate) fn page_rules(values: &Values) -> PageDoorRules {
    let base = values.pages_retry_backoff_base;
    let retry = RetryRule {
        server_error_attempts: values.pages_max_retries,
        soft_refusal_attempts: values.pages_max_retries,
        backoff: Backoff { base, ..RetryRule::PAGES.backoff },
        site_backoff: Backoff { base, ..RetryRule::PAGES.site_backoff },
        ..RetryRule::PAGES
    };
    PageDoorRules {
        page: PageRules { retry, max_redirects: values.http_max_redirects },
        cache_ttl: values.pages_cache_ttl,
        event_retention: values.pages_event_retention,
    }
}
