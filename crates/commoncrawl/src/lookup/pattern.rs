//! Search patterns: a URL, everything below one, or a domain, as a range of index keys.

use fetchwell_policy::surt::surt;
use fetchwell_policy::url::WebUrl;

use crate::error::CommonCrawlError;

/// A range of index keys: from `lower` up to but not including `upper`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub(super) lower: String,
    pub(super) upper: String,
    /// A key matches if it equals `is` or starts with one of `begins`.
    is: Option<String>,
    begins: Vec<String>,
}

impl Keys {
    /// The keys of a pattern: a URL, everything below one (`example.com/docs/*`), or a domain (`*.example.com`).
    pub fn of(pattern: &str) -> Result<Keys, CommonCrawlError> {
        let pattern = pattern.trim();
        if let Some(domain) = pattern.strip_prefix("*.") {
            let domain = domain.trim_end_matches('*').trim_end_matches('/');
            let key = key(domain, pattern)?;
            let host = key.split(')').next().unwrap_or_default();
            return Ok(Keys::beginning(&[format!("{host})"), format!("{host},")]));
        }
        match pattern.strip_suffix('*') {
            None => Ok(Keys::exactly(key(pattern, pattern)?)),
            Some(whole) => {
                let key = key(whole, pattern)?;
                // Keys have no trailing slash, except for the root: /docs/* means /docs and everything below it.
                if whole.ends_with('/') && !key.ends_with('/') {
                    let below = Keys::beginning(&[format!("{key}/")]);
                    return Ok(Keys { lower: key.clone(), is: Some(key), ..below });
                }
                Ok(Keys::beginning(&[key]))
            }
        }
    }

    fn exactly(key: String) -> Keys {
        let upper = format!("{key}\0");
        Keys { lower: key.clone(), upper, is: Some(key), begins: Vec::new() }
    }

    /// `begins` must be sorted.
    fn beginning(begins: &[String]) -> Keys {
        let lower = begins.first().cloned().unwrap_or_default();
        let upper = begins.last().map(|last| behind_all(last)).unwrap_or_default();
        Keys { lower, upper, is: None, begins: begins.to_vec() }
    }

    /// Whether a key matches.
    pub(super) fn contain(&self, key: &str) -> bool {
        self.is.as_deref() == Some(key) || self.begins.iter().any(|begin| key.starts_with(begin))
    }
}

/// The key of a URL. The scheme may be omitted.
fn key(text: &str, pattern: &str) -> Result<String, CommonCrawlError> {
    let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = WebUrl::parse(&url)
        .map_err(|source| CommonCrawlError::Pattern { pattern: pattern.to_owned(), source })?;
    Ok(surt(&url))
}

/// The first string that sorts after all strings with this prefix.
fn behind_all(begin: &str) -> String {
    let mut text = begin.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = char::from_u32(u32::from(last) + 1) {
            text.push(next);
            return text;
        }
    }
    char::MAX.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_stretch_of_keys() {
        for (pattern, wanted, others) in [
            (
                "example.com",
                &["com,example)/"][..],
                &["com,example)/a", "com,example,www)/", "com,examplex)/"][..],
            ),
            ("https://www.Example.com/A?b=1", &["com,example)/a?b=1"], &["com,example)/a"]),
            (
                "example.com/*",
                &["com,example)/", "com,example)/a", "com,example)/z?q"],
                &["com,example,sub)/"],
            ),
            (
                "example.com/docs/*",
                &["com,example)/docs", "com,example)/docs/a"],
                &["com,example)/docsx", "com,example)/docs-x", "com,example)/"],
            ),
            (
                "example.com/docs*",
                &["com,example)/docs", "com,example)/docsx"],
                &["com,example)/doc"],
            ),
            (
                "*.example.com",
                &["com,example)/", "com,example)/~x", "com,example,a)/", "com,example,z,y)/b"],
                &["com,examplex)/", "com,exampl)/", "com,example-x)/", "com)/"],
            ),
            ("*.com/*", &["com)/", "com,a)/"], &["org)/"]),
        ] {
            let keys = Keys::of(pattern).unwrap();
            for key in wanted {
                assert!(keys.contain(key), "{pattern}: {key}");
                assert!(
                    keys.lower.as_str() <= *key && *key < keys.upper.as_str(),
                    "{pattern}: {key}"
                );
            }
            for key in others {
                assert!(!keys.contain(key), "{pattern}: {key}");
            }
        }
    }

    #[test]
    fn what_is_no_url_is_said() {
        for pattern in ["", "*", "*.", "http://", "ftp://x/", "a b"] {
            assert!(
                Keys::of(pattern).is_err_and(|error| error.to_string().contains("*.example.com")),
                "{pattern}"
            );
        }
    }
}
