//! The options of a message, which are the payload of its job.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::document::{DocumentOptions, ExtractedDocument};

/// The request headers that a caller may set. None of them carries credentials or changes where the request goes.
pub const ALLOWED_HEADERS: [&str; 5] =
    ["accept", "accept-language", "if-modified-since", "if-none-match", "referer"];

/// The options of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Request headers by name, from [`ALLOWED_HEADERS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Whether to extract the article, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extract: bool,
    /// Whether to list the links of the page, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub links: bool,
    /// The document to extract from the page. It includes the article.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<DocumentOptions>,
}

impl Options {
    /// Encodes the options as the payload of a job.
    pub fn to_payload(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The headers for the request, without any that is not allowed.
    pub fn request_headers(&self) -> Vec<(&'static str, String)> {
        let allowed = |name: &str| ALLOWED_HEADERS.into_iter().find(|known| *known == name);
        self.headers
            .iter()
            .filter_map(|(name, value)| Some((allowed(name)?, value.clone())))
            .collect()
    }
}

/// A hash that is equal for messages of one caller with the same URL and the same options (as a payload), so that they
/// can share a result. It differs between callers, so that no caller receives what another one fetched.
pub fn kind(caller: &str, url: &str, options: &[u8]) -> [u8; 16] {
    let mut hash = Sha256::new();
    // Neither caller names nor URLs contain line breaks, so the separator is unambiguous.
    for part in [caller.as_bytes(), b"\n", url.trim_ascii().as_bytes(), b"\n", options] {
        hash.update(part);
    }
    let mut kind = [0; 16];
    kind.copy_from_slice(&hash.finalize()[..16]);
    kind
}

/// The data that [`Options::extract`], [`Options::links`] and [`Options::document`] add to a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// The article, if it was requested.
    #[serde(flatten)]
    pub article: Option<ExtractedArticle>,
    /// The absolute URLs of the links, if they were requested. For a sitemap, these are the URLs that it lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<String>>,
    /// Whether the links come from a sitemap index, and so lead to other sitemaps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sitemap_index: bool,
    /// The rest of the document, if it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<ExtractedDocument>,
}

/// The article of a page and its metadata.
///
/// Results of earlier versions have only `title`, `text` and `markdown`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedArticle {
    /// The title of the article.
    pub title: String,
    /// The text of the article.
    pub text: String,
    /// The article as Markdown.
    pub markdown: String,
    /// The authors, separated by commas.
    #[serde(default)]
    pub author: Option<String>,
    /// The authors, one name per element.
    #[serde(default)]
    pub authors: Vec<String>,
    /// When it was published: RFC 3339, or a date.
    #[serde(default)]
    pub published: Option<String>,
    /// The name of the site.
    #[serde(default)]
    pub site_name: Option<String>,
    /// The summary that the page has for search engines.
    #[serde(default)]
    pub description: Option<String>,
    /// The absolute URL that the page declares as canonical.
    #[serde(default)]
    pub canonical_url: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_header(name: &str) -> Options {
        Options { headers: vec![(name.to_owned(), "x".to_owned())], ..Options::default() }
    }

    #[test]
    fn only_allowed_headers_are_sent() {
        assert_eq!(with_header("accept").request_headers(), [("accept", "x".to_owned())]);
        assert_eq!(with_header("cookie").request_headers(), []);
    }

    #[test]
    fn results_are_shared_by_those_who_ask_for_the_same() {
        let plain = Options::default().to_payload();
        let extracted = Options { extract: true, ..Options::default() }.to_payload();
        let linked = Options { links: true, ..Options::default() }.to_payload();
        let kinds = [
            kind("me", "http://a.test/", &plain),
            kind("you", "http://a.test/", &plain),
            kind("me", "http://a.test/2", &plain),
            kind("me", "http://a.test/", &extracted),
            kind("me", "http://a.test/", &linked),
            kind("me", "http://a.test/", &with_header("accept").to_payload()),
        ];
        let different: std::collections::HashSet<_> = kinds.iter().collect();
        assert_eq!(different.len(), kinds.len());
        assert_eq!(kinds[0], kind("me", "http://a.test/", &plain));
    }

    /// A message that an earlier version stored has the same payload now, so that it can share its result.
    #[test]
    fn the_payload_names_only_what_was_asked_for() {
        let payload = |options: Options| String::from_utf8(options.to_payload()).unwrap();
        assert_eq!(payload(Options::default()), "{}");
        assert_eq!(payload(Options { extract: true, ..Options::default() }), r#"{"extract":true}"#);
    }

    #[test]
    fn results_of_earlier_versions_and_links_alone_are_read() {
        let read = |json: &str| serde_json::from_str::<Extracted>(json).unwrap();
        let earlier = read(r#"{"title":"A","text":"B","markdown":"C"}"#);
        let article = earlier.article.clone().unwrap();
        assert_eq!((article.title.as_str(), article.author, article.authors), ("A", None, vec![]));
        assert_eq!(earlier.links, None);
        let links = Some(vec!["http://a.test/".to_owned()]);
        assert_eq!(
            read(r#"{"links":["http://a.test/"]}"#),
            Extracted { links: links.clone(), ..Extracted::default() }
        );
        for written in [Extracted { links, ..earlier }, Extracted::default()] {
            assert_eq!(read(&serde_json::to_string(&written).unwrap()), written);
        }
    }
}
