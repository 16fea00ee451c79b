//! Sitemaps as files: some are compressed, and some are none.

use std::borrow::Cow;

use fetchwell_archive::gzip::{InflateFault, inflate_member};
use fetchwell_feed::sitemap::{MAX_SITEMAP_BYTES, NoSitemap};
use fetchwell_policy::outcome::FetchOutcome;
use thiserror::Error;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

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
