//! Sitemaps as files: some are compressed, and some are none.

use std::borrow::Cow;

use fetchwell_archive::gzip::{InflateFault, inflate_member};
use fetchwell_feed::sitemap::{MAX_SITEMAP_BYTES, NoSitemap};
use fetchwell_policy::outcome::FetchOutcome;
use thiserror::Error;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Deflate compresses by this factor at most.
const MAX_DEFLATE_RATIO: usize = 1_032;

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
    Ok(Cow::Owned(inflate_member(body, MAX_SITEMAP_BYTES)?))
}

/// The maximum size of the content of a sitemap.
pub(crate) fn max_content_bytes(body: &[u8]) -> usize {
    match body.starts_with(GZIP_MAGIC) {
        true => body.len().saturating_mul(MAX_DEFLATE_RATIO).min(MAX_SITEMAP_BYTES),
        false => body.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn no_content_is_larger_than_expected() {
        for content in [vec![b' '; 3 << 20], b"<urlset></urlset>".to_vec()] {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(&content).unwrap();
            let body = gzip.finish().unwrap();
            let inflated = inflated(&body).unwrap();
            assert_eq!(inflated, content);
            assert!(inflated.len() <= max_content_bytes(&body));
        }
        assert_eq!(max_content_bytes(&[GZIP_MAGIC, &[0; 1 << 20]].concat()), MAX_SITEMAP_BYTES);
        assert_eq!(max_content_bytes(b"<urlset>"), 8);
    }
}
