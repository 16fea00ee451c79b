//! How a result came about: where the page was found, when, and what the server said about it.

use std::collections::BTreeMap;

use fetchwell_policy::time::Time;
use http::HeaderMap;
use serde::{Deserialize, Serialize};

/// The response headers that a result keeps. None of them is a secret of the site or of the connection, and each says
/// something about the page or about when to ask for it again.
pub const KEPT_HEADERS: [&str; 16] = [
    "age",
    "cache-control",
    "content-disposition",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "server",
    "vary",
    "x-robots-tag",
];

/// A header that is longer is left out, because half of a value could mean something else.
const MAX_HEADER_BYTES: usize = 4 << 10;

/// How a result came about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchDetails {
    /// The URL of the last request, after redirects.
    pub final_url: String,
    /// The redirects that led there, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redirects: Vec<Redirect>,
    /// When the last request ended, by the wall clock; `None` if none was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_at: Option<Time>,
    /// The headers of the response by name, from [`KEPT_HEADERS`]; `None` if there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The size of the body, if it was too large to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unkept_body_bytes: Option<u64>,
    /// The place of the page in its crawl, if a crawl found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crawl: Option<CrawlPlace>,
}

/// The place of a page in its crawl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlPlace {
    /// The ID of the crawl.
    pub id: String,
    /// The number of links from a start page to this page.
    pub depth: u32,
    /// The page or sitemap on which its URL was first found; `None` for a start page.
    pub parent: Option<String>,
    /// The number of links on the page, followed or not.
    pub links_found: u64,
}

/// A redirect that was followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The URL that redirected.
    pub url: String,
    /// The status code of its response.
    pub status: u16,
}

impl FetchDetails {
    /// Encodes the details as a result stores them.
    pub fn to_json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// Stored details without the place in a crawl, for a message that gets a copy of the page.
    pub fn without_crawl(json: String) -> String {
        // Most results are not pages of crawls.
        if !json.contains("\"crawl\":") {
            return json;
        }
        let details: Result<FetchDetails, _> = serde_json::from_str(&json);
        details.ok().and_then(|d| FetchDetails { crawl: None, ..d }.to_json()).unwrap_or(json)
    }

    /// A header of the response.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.as_ref()?.get(name).map(String::as_str)
    }
}

/// The headers of a response that a result keeps. The values of a header that was sent several times are joined with
/// commas, as RFC 9110 allows.
pub fn kept_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut kept = BTreeMap::new();
    for name in KEPT_HEADERS {
        let values: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let bytes: usize = values.iter().map(|value| value.len() + 2).sum();
        if !values.is_empty() && bytes <= MAX_HEADER_BYTES {
            kept.insert(name.to_owned(), values.join(", "));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_keeps_the_headers_of_the_list_and_no_others() {
        let mut headers = HeaderMap::new();
        let long = "x".repeat(MAX_HEADER_BYTES);
        for (name, value) in [
            ("etag", "\"v1\""),
            ("set-cookie", "session=secret"),
            ("vary", "Accept"),
            ("vary", "Cookie"),
            ("link", &long),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        let latin = http::HeaderValue::from_bytes(b"inline; filename=\xe4").unwrap();
        headers.append("content-disposition", latin);
        let kept = kept_headers(&headers);
        let kept: Vec<_> = kept.iter().map(|(name, value)| (&**name, &**value)).collect();
        let expected = [
            ("content-disposition", "inline; filename=\u{FFFD}"),
            ("etag", "\"v1\""),
            ("vary", "Accept, Cookie"),
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn details_are_read_as_they_were_written() {
        let details = FetchDetails {
            final_url: "http://a.test/2".to_owned(),
            redirects: vec![Redirect { url: "http://a.test/".to_owned(), status: 301 }],
            fetched_at: Some(Time::from_micros(1_700_000_000_000_001)),
            headers: Some(BTreeMap::from([("etag".to_owned(), "x".to_owned())])),
            unkept_body_bytes: Some(11),
            crawl: Some(CrawlPlace {
                id: "crawl_1".to_owned(),
                depth: 1,
                parent: Some("http://a.test/".to_owned()),
                links_found: 2,
            }),
        };
        let json = details.to_json().unwrap();
        let without = FetchDetails { crawl: None, ..details.clone() }.to_json().unwrap();
        assert_eq!(FetchDetails::without_crawl(json), without);
        assert_eq!(FetchDetails::without_crawl(without.clone()), without);
        for written in [details, FetchDetails::default()] {
            let json = written.to_json().unwrap();
            assert_eq!(serde_json::from_str::<FetchDetails>(&json).unwrap(), written);
        }
    }
}
