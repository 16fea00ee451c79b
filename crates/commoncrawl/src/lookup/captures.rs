//! Finds the captures of a page, of everything below it, or of a domain: searches `cluster.idx`, then reads the blocks
//! that may contain them.

use std::collections::VecDeque;

use fetchwell_archive::cdxj::{CdxRecord, IndexFilter, sift};
use fetchwell_archive::cluster_idx::ClusterEntry;
use fetchwell_archive::gzip::inflate_member;
use fetchwell_engine::web::Answer;
use fetchwell_policy::url::WebUrl;
use tracing::warn;

use super::CrawlReader;
use super::pattern::Keys;
use super::plan::{self, AnswerError, Lookup, LookupError};
use super::search::Search;
use crate::archive::byte_range::{ByteRange, MAX_BLOCK_BYTES};

#[derive(Clone, Default)]
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

/// A lookup in progress.
#[derive(Clone)]
pub(super) struct Captures {
    indexes: WebUrl,
    keys: Keys,
    search: Search,
    blocks: VecDeque<ClusterEntry>,
    limit: usize,
    /// The result so far.
    pub(super) found: CapturesFound,
}

impl Captures {
    /// `indexes` is the URL of the crawl's index, with a trailing slash.
    pub(super) fn new(indexes: WebUrl, keys: Keys, limit: usize) -> Captures {
        Captures {
            search: Search::new(keys.clone()),
            indexes,
            keys,
            blocks: VecDeque::new(),
            limit,
            found: CapturesFound::default(),
        }
    }

    fn take_index(&mut self, answer: &Answer) -> Result<(), AnswerError> {
        let Some(range) = self.search.wanted() else { return Ok(()) };
        let (bytes, file_bytes) = range.of_up_to_end(answer).map_err(AnswerError::Index)?;
        self.blocks.extend(self.search.take(bytes, file_bytes));
        Ok(())
    }

    fn take_block(&mut self, block: &ClusterEntry, answer: &Answer) -> Result<(), AnswerError> {
        let member = ByteRange::of_block(block).of(answer)?;
        let lines = inflate_member(member, MAX_BLOCK_BYTES)?;
        sift(&lines, &IndexFilter::default(), |line| {
            if !self.keys.contain(line.surt) {
                return;
            }
            if self.found.captures.len() >= self.limit {
                self.found.has_more = true;
                return;
            }
            self.found.captures.push(line.into());
        });
        Ok(())
    }
}

impl Lookup for Captures {
    type Found = CapturesFound;

    fn wanted(&self) -> Option<(WebUrl, ByteRange)> {
        if self.found.has_more {
            return None;
        }
        let (file, range) = match self.blocks.front() {
            Some(block) => (block.cdx_file.as_str(), ByteRange::of_block(block)),
            None => ("cluster.idx", self.search.wanted()?),
        };
        Some((self.indexes.join(file).ok()?, range))
    }

    fn take(&mut self, answer: &Answer) -> Result<(), AnswerError> {
        let Some(block) = self.blocks.pop_front() else { return self.take_index(answer) };
        if let Err(fault) = self.take_block(&block, answer) {
            self.found.unread += 1;
            warn!("cannot read the block \"{block}\": {fault}");
        }
        Ok(())
    }

    fn found(&self) -> CapturesFound {
        self.found.clone()
    }
}
