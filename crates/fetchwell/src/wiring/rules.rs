//! What doors go by, as the settings say it.

use fetchwell_doors::articles::{ArticleRules, LinkRules};
use fetchwell_doors::feeds::FeedRules;
use fetchwell_doors::read_limits::ReadLimits;
use fetchwell_engine::web::Timeouts;
use fetchwell_settings::Values;

/// What reading a page may cost.
pub(crate) fn read_limits(values: &Values) -> ReadLimits {
    let max_text_bytes = usize::try_from(values.extract_max_text).unwrap_or(usize::MAX);
    ReadLimits { max_text_bytes, max_time: values.extract_max_time }
}

/// How links are fetched.
pub(crate) fn article_rules(values: &Values) -> ArticleRules {
    let link = LinkRules {
        timeouts: Timeouts { connect: None, request: Some(values.articles_request_timeout) },
        max_redirects: values.http_max_redirects,
        reading: read_limits(values),
    };
    ArticleRules { link, max_wait: values.articles_max_wait }
}

/// How feeds are read.
pub(crate) fn feed_rules(values: &Values) -> FeedRules {
    FeedRules { max_wait: values.feeds_max_wait, max_redirects: values.http_max_redirects }
}
