//! How pages are printed.

use clap::ValueEnum;

/// What `fetch` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The page's text as Markdown.
    Markdown,
    /// The page's text.
    Text,
    /// The page's source, as UTF-8.
    Html,
    /// One JSON object per line.
    Json,
    /// A WARC archive of the requests and responses; needs --output FILE.warc.gz.
    Warc,
}
