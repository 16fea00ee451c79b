//! What doors go by, as the settings say it.

use fetchwell_doors::feeds::FeedRules;
use fetchwell_settings::Values;

/// How feeds are read.
pub(crate) fn feed_rules(values: &Values) -> FeedRules {
    FeedRules { max_wait: values.feeds_max_wait, max_redirects: values.http_max_redirects }
}
