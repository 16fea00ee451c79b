//! Feeds: what they list, whatever state they are in; which page a link means; lists of feeds; and sitemaps.
//!
//! Pure: no I/O, no clock. [`read`] makes a [`Feed`] of RSS 0.9 to 2.0, Atom 0.3 and 1.0 or JSON Feed, [`clean()`]
//! takes what tracks its readers out of a link, [`must_be_asked`] tells links that must be asked where they
//! lead, [`opml`] reads and writes lists of feeds, and [`sitemap`] reads sitemaps.
//!
//! Feeds come from outside, and many are broken. A fault costs the entry that it is in and no other; what
//! could not be read is said in [`Gaps`]. Reading takes linear time, never recurses, and has bounds:
//! [`MAX_FEED_BYTES`], [`MAX_ENTRIES`], [`MAX_FIELD_BYTES`] and [`MAX_DEPTH`].

mod clean;
mod date;
mod draft;
mod home;
mod json_feed;
pub mod opml;
mod page;
mod redirectors;
mod references;
pub mod sitemap;
mod tracking;
mod xml;
mod xml_feed;

use std::fmt;

use fetchwell_extract::decode;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use thiserror::Error;

pub use clean::clean;
pub use home::Home;
pub use redirectors::{leads_elsewhere, must_be_asked};

/// What is longer is read up to here, and said to end early.
pub const MAX_FEED_BYTES: usize = 16 * 1024 * 1024;

/// More entries are counted and left out. Feeds have tens; archives of whole blogs have thousands.
pub const MAX_ENTRIES: usize = 10_000;

/// The most that is kept of a title or a name, and the longest text that may be a link.
pub const MAX_FIELD_BYTES: usize = 8 * 1024;

/// Elements that lie deeper have no frame of their own: nothing that counts is that deep.
pub const MAX_DEPTH: usize = 256;

/// What a feed lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    /// How it is written.
    pub format: Format,
    /// What it calls itself; may be empty.
    pub title: String,
    /// Whose pages are its own.
    pub home: Home,
    /// Its entries that have a link, in its own order.
    pub entries: Vec<Entry>,
    /// What could not be read of it.
    pub gaps: Gaps,
}

/// How a feed is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RSS 0.91 to 2.0.
    Rss,
    /// RSS 0.9 and 1.0.
    Rdf,
    /// Atom 0.3 and 1.0.
    Atom,
    /// JSON Feed 1.0 and 1.1.
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Rss => "RSS",
            Format::Rdf => "RSS (RDF)",
            Format::Atom => "Atom",
            Format::Json => "JSON Feed",
        })
    }
}

/// Something that a feed lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its page, as the feed names it: [`clean()`] it before use.
    pub link: WebUrl,
    /// Its title as plain text; may be empty.
    pub title: String,
    /// When it was published, where the feed says so in a way that can be read.
    pub published: Option<Time>,
}

/// What could not be read of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// It ends before its end: what was whole is there.
    pub ends_early: bool,
    /// Entries without a link to a page.
    pub without_link: usize,
    /// Entries beyond [`MAX_ENTRIES`].
    pub left_out: usize,
}

/// What is missing, for people; empty when nothing is.
impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Vec::new();
        if self.ends_early {
            said.push("it is truncated, so only complete entries are used".to_owned());
        }
        if self.without_link > 0 {
            said.push(format!("{} entries have no link to a page", self.without_link));
        }
        if self.left_out > 0 {
            said.push(format!("{} entries over the limit are skipped", self.left_out));
        }
        f.write_str(&said.join("; "))
    }
}

/// Why something is no feed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoFeed {
    /// It is a page. These are the feeds that it names.
    #[error("it is a web page, not a feed; {}", named(.feeds))]
    Page {
        /// In the page's own order.
        feeds: Vec<WebUrl>,
    },
    /// It is something else.
    #[error("it is neither RSS nor Atom nor JSON Feed")]
    Else,
}

fn named(feeds: &[WebUrl]) -> String {
    match feeds {
        [] => "it links to no feeds either".to_owned(),
        feeds => {
            let feeds: Vec<&str> = feeds.iter().map(WebUrl::as_str).collect();
            format!("it links to these feeds: {}", feeds.join(", "))
        }
    }
}

/// Reads a feed that was found at `found_at`, by what its bytes are and not by what they are called. The
/// charset is that of the byte order mark, the header or the XML declaration.
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
