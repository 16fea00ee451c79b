//! Reads feeds, however broken, and sitemaps, reads and writes lists of feeds, and cleans links.
//!
//! Pure: no I/O, no clock. [`read`] turns RSS 0.9 to 2.0, Atom 0.3 and 1.0 or JSON Feed into a [`Feed`], [`clean()`]
//! removes tracking from a link, [`must_be_asked`] tells which links must be requested to find out where they lead,
//! [`opml`] reads and writes lists of feeds, and [`sitemap`] reads sitemaps.
//!
//! Feeds are untrusted input, and many are broken. An error costs only the entry that it is in; [`Gaps`] says what
//! could not be read. Reading takes linear time, never recurses, and is limited by [`MAX_FEED_BYTES`], [`MAX_ENTRIES`],
//! [`MAX_FIELD_BYTES`] and [`MAX_DEPTH`].

mod clean;
mod date;
mod draft;
mod feed;
mod home;
mod json_feed;
pub mod opml;
mod page;
mod redirectors;
mod references;
pub mod sitemap;
mod xml;
mod xml_feed;

use fetchwell_extract::decode;
use fetchwell_policy::url::WebUrl;

pub use clean::clean;
pub use date::read as read_date;
pub use feed::{Entry, Feed, FeedFormat, Gaps, MAX_DEPTH, MAX_ENTRIES, MAX_FIELD_BYTES, NoFeed};
pub use home::Home;
pub use redirectors::{leads_elsewhere, must_be_asked};

/// A longer feed is read up to here and reported as truncated.
pub const MAX_FEED_BYTES: usize = 16 * 1024 * 1024;

/// Reads a feed from `found_at`. The bytes decide the format, not the content type. The charset is found as in
/// [`fetchwell_extract::decode`].
pub fn read(body: &[u8], content_type: Option<&str>, found_at: &WebUrl) -> Result<Feed, NoFeed> {
    let within = body.get(..MAX_FEED_BYTES).unwrap_or(body);
    let text = decode(within, content_type).text;
    let mut feed = if text.trim_start().starts_with('{') {
        json_feed::read(&text, found_at).ok_or(NoFeed::Else)?
    } else {
        xml_feed::read(&text, found_at).ok_or_else(|| page::judge(&text, found_at))?
    };
    feed.gaps.ends_early |= within.len() < body.len();
    Ok(feed)
}
