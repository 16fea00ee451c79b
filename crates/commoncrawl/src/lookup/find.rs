//! Finds the captures of a page, of everything below it, or of a domain.

use fetchwell_archive::cdxj::CdxRecord;
use fetchwell_engine::web::Answer;
use fetchwell_policy::url::WebUrl;

use super::CrawlReader;
use super::captures::Captures;
use super::pattern::Keys;
use super::plan::{self, AnswerError, Lookup, LookupError};
use crate::archive::byte_range::ByteRange;

#[derive(Clone)]
pub struct CapturesFound {
    /// In index order.
    pub captures: Vec<CdxRecord>,
    /// Whether there are more captures than the limit.
    pub has_more: bool,
    /// The number of index blocks that could not be read.
    pub unread: u64,
}

impl CrawlReader<'_> {
    pub async fn find(self, keys: Keys, limit: usize) -> Result<CapturesFound, LookupError> {
        let indexes = self.archive.indexes(self.crawl)?;
        plan::run(self, Captures::new(indexes, keys, limit)).await
    }
}

impl Lookup for Captures {
    type Found = CapturesFound;

    fn wanted(&self) -> Option<(WebUrl, ByteRange)> {
        Captures::wanted(self)
    }

    fn take(&mut self, answer: &Answer) -> Result<(), AnswerError> {
        Captures::take(self, answer)
    }

    fn found(&self) -> CapturesFound {
        CapturesFound { captures: self.found.clone(), has_more: self.has_more, unread: self.unread }
    }
}
