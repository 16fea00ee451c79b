//! Sitemaps as files: some are compressed, and some are none.

use std::borrow::Cow;

use fetchwell_archive::gzip::{InflateFault, inflate_member};
use fetchwell_feed::sitemap::{MAX_SITEMAP_BYTES, NoSitemap};
use fetchwell_policy::outcome::FetchOutcome;
use thiserror::Error;

pub(crate) const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// The content may be this many times as large as the gzip file. The most repetitive sitemaps stay below 50.
const MAX_INFLATION: usize = 128;

/// How many times the content of a sitemap is in memory: its buffer (twice while it grows), the text decoded from it,
/// the set of URLs already seen, and the list of URLs.
const COPIES_OF_CONTENT: usize = 5;

/// Why a sitemap was not read.
#[derive(Debug, Error)]
pub(crate) enum SitemapError {
    #[error("{0}")]
    NotFetched(FetchOutcome),
    #[error(transparent)]
    Inflate(#[from] InflateFault),
    #[error(transparent)]
    NoSitemap(#[from] NoSitemap),
    /// The engine gave it up, for this reason.
    #[error("{0}")]
    GivenUp(String),
}

/// The content of a sitemap, inflated if it is a gzip file.
pub(crate) fn inflated(body: &[u8]) -> Result<Cow<'_, [u8]>, InflateFault> {
    if !body.starts_with(GZIP_MAGIC) {
        return Ok(Cow::Borrowed(body));
    }
    Ok(Cow::Owned(inflate_member(body, max_content_bytes(body))?))
}

/// The maximum size of the content of a sitemap.
pub(crate) fn max_content_bytes(body: &[u8]) -> usize {
    match body.starts_with(GZIP_MAGIC) {
        true => body.len().saturating_mul(MAX_INFLATION).min(MAX_SITEMAP_BYTES),
        false => body.len(),
    }
}

/// The memory needed to read a sitemap.
pub(crate) fn working_bytes(body: &[u8]) -> usize {
    max_content_bytes(body).saturating_mul(COPIES_OF_CONTENT)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(content).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn no_content_is_larger_than_expected() {
        let urls: String = (0..5_000).map(|n| format!("<loc>http://a.test/{n}</loc>")).collect();
        let body = gzip(urls.as_bytes());
        assert_eq!(inflated(&body).unwrap(), urls.as_bytes());
        assert!(urls.len() <= max_content_bytes(&body));
        assert_eq!(inflated(b"<urlset>").unwrap(), &b"<urlset>"[..]);
        assert_eq!(max_content_bytes(b"<urlset>"), 8);
        let bomb = gzip(&vec![b' '; 3 << 20]);
        assert!(matches!(inflated(&bomb), Err(InflateFault::TooLarge { .. })));
        assert_eq!(max_content_bytes(&[GZIP_MAGIC, &[0; 1 << 20]].concat()), MAX_SITEMAP_BYTES);
    }
}
