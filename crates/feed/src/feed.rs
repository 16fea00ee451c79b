//! A feed as it was read, and the limits on what is kept of it.

use std::fmt;

use fetchwell_policy::time::Time;
use fetchwell_policy::url::WebUrl;
use thiserror::Error;

use crate::home::Home;

/// Further entries are counted and left out. Most feeds have tens of entries; archives of whole blogs have thousands.
pub const MAX_ENTRIES: usize = 10_000;

/// Titles and names are cut to this length; a longer text is not a link.
pub const MAX_FIELD_BYTES: usize = 8 * 1024;

/// Elements nested deeper get no frame of their own: nothing that is read lies that deep.
pub const MAX_DEPTH: usize = 256;

/// The content of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    pub format: FeedFormat,
    /// Its own title; may be empty.
    pub title: String,
    /// The hosts of its own pages.
    pub home: Home,
    /// Its entries that have a link, in document order.
    pub entries: Vec<Entry>,
    pub gaps: Gaps,
}

impl Feed {
    /// A feed without entries.
    pub(crate) fn new(format: FeedFormat, found_at: &WebUrl) -> Feed {
        Feed {
            format,
            title: String::new(),
            home: Home::of(found_at),
            entries: Vec::new(),
            gaps: Gaps::default(),
        }
    }

    /// Adds an entry; `None` if it has no link.
    pub(crate) fn add(&mut self, entry: Option<Entry>) {
        match entry {
            None => self.gaps.without_link += 1,
            Some(_) if self.entries.len() == MAX_ENTRIES => self.gaps.left_out += 1,
            Some(entry) => self.entries.push(entry),
        }
    }
}

/// The format of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedFormat {
    /// RSS 0.91 to 2.0.
    Rss,
    /// RSS 0.9 and 1.0.
    Rdf,
    /// Atom 0.3 and 1.0.
    Atom,
    /// JSON Feed 1.0 and 1.1.
    Json,
}

impl fmt::Display for FeedFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FeedFormat::Rss => "RSS",
            FeedFormat::Rdf => "RSS (RDF)",
            FeedFormat::Atom => "Atom",
            FeedFormat::Json => "JSON Feed",
        })
    }
}

/// An entry of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The URL of its page, as in the feed: [`clean()`](crate::clean()) it before use.
    pub link: WebUrl,
    /// Its title as plain text; may be empty.
    pub title: String,
    /// When it was published, if the feed states it in a readable format.
    pub published: Option<Time>,
}

/// What could not be read of a feed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The document is truncated; the complete entries were read.
    pub ends_early: bool,
    /// Entries without a link to a page.
    pub without_link: usize,
    /// Entries beyond [`MAX_ENTRIES`].
    pub left_out: usize,
}

/// A summary for people; empty if there are no gaps.
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

/// Why a document is not a feed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoFeed {
    /// It is a web page, which links to these feeds.
    #[error("it is a web page, not a feed; {}", named(.feeds))]
    Page {
        /// In document order.
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
