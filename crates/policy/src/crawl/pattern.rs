//! Patterns that include or exclude URLs.

use std::str::FromStr;

use crate::url::WebUrl;
use crate::wildcard;

/// The maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 2_048;

/// A pattern such as `/blog/*` or `https://*.example.com/*`, in which `*` stands for any text.
///
/// A pattern that contains `://` is compared with the whole URL, any other with the path and query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlPattern {
    text: String,
    is_whole_url: bool,
}

/// Why a text is not a valid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// It cannot match anything, because every path begins with a slash.
    #[error(
        "begin it with / or *, as in /blog/*, or write a whole URL, as in https://example.com/blog/*"
    )]
    NoPath,
    /// It is too long.
    #[error("it has more than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
}

impl FromStr for UrlPattern {
    type Err = PatternFault;

    fn from_str(text: &str) -> Result<UrlPattern, PatternFault> {
        let is_whole_url = text.contains("://");
        if !is_whole_url && !text.starts_with(['/', '*']) {
            return Err(PatternFault::NoPath);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternFault::TooLong);
        }
        Ok(UrlPattern { text: text.to_owned(), is_whole_url })
    }
}

impl UrlPattern {
    /// Whether a URL matches.
    pub fn matches(&self, url: &WebUrl) -> bool {
        let text = if self.is_whole_url { url.as_str() } else { url.path_and_query() };
        wildcard::matches(&self.text, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_urls() {
        for (pattern, url, expected) in [
            ("/blog/*", "http://a.test/blog/1?x", true),
            ("/blog/*", "http://a.test/blog", false),
            ("/blog/*", "http://a.test/x/blog/1", false),
            ("*/print", "http://a.test/x/print", true),
            ("*/print", "http://a.test/x/print?y", false),
            ("/a*b*c", "http://a.test/a-b-b-c", true),
            ("/a*b*c", "http://a.test/a-c-b", false),
            ("/aa*aa", "http://a.test/aaa", false),
            ("/x", "http://a.test/x", true),
            ("*", "http://a.test/", true),
            ("*?*", "http://a.test/x", false),
            ("https://*.a.test/*", "https://b.a.test/x", true),
            ("https://*.a.test/*", "http://b.a.test/x", false),
        ] {
            let parsed: UrlPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(&WebUrl::parse(url).unwrap()), expected, "{pattern} {url}");
        }
        assert_eq!("blog/*".parse::<UrlPattern>(), Err(PatternFault::NoPath));
        let long = format!("/{}", "x".repeat(MAX_PATTERN_BYTES));
        assert_eq!(long.parse::<UrlPattern>(), Err(PatternFault::TooLong));
    }
}
