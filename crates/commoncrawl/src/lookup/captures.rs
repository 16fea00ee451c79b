//! Finds captures: searches `cluster.idx`, then reads the blocks that may contain them. Pure.

use std::collections::VecDeque;

use fetchwell_archive::cdxj::{CdxRecord, IndexFilter, sift};
use fetchwell_archive::cluster_idx::ClusterEntry;
use fetchwell_archive::gzip::inflate_member;
use fetchwell_engine::web::Answer;
use fetchwell_policy::url::WebUrl;
use tracing::warn;

use super::pattern::Keys;
use super::plan::AnswerError;
use super::search::Search;
use crate::archive::byte_range::ByteRange;

/// A block of about 3,000 lines has about 1 MiB; anything much larger is not a block.
const MAX_BLOCK_BYTES: usize = 16 << 20;

/// A lookup in progress.
#[derive(Clone)]
pub(super) struct Captures {
    indexes: WebUrl,
    keys: Keys,
    search: Search,
    blocks: VecDeque<ClusterEntry>,
    limit: usize,
    /// The captures found so far, in index order.
    pub(super) found: Vec<CdxRecord>,
    /// Whether there are more captures than the limit.
    pub(super) has_more: bool,
    pub(super) unread: u64,
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
            found: Vec::new(),
            has_more: false,
            unread: 0,
        }
    }

    /// The file and range to request next; `None` when done.
    pub(super) fn wanted(&self) -> Option<(WebUrl, ByteRange)> {
        if self.has_more {
            return None;
        }
        let (file, range) = match self.blocks.front() {
            Some(block) => (block.cdx_file.as_str(), range_of(block)),
            None => ("cluster.idx", self.search.wanted()?),
        };
        Some((self.indexes.join(file).ok()?, range))
    }

    /// Takes the response to [`Captures::wanted`]. An error ends the lookup.
    pub(super) fn take(&mut self, answer: &Answer) -> Result<(), AnswerError> {
        let Some(block) = self.blocks.pop_front() else { return self.take_index(answer) };
        if let Err(fault) = self.take_block(&block, answer) {
            self.unread += 1;
            warn!("cannot read the block \"{block}\": {fault}");
        }
        Ok(())
    }

    fn take_index(&mut self, answer: &Answer) -> Result<(), AnswerError> {
        let Some(range) = self.search.wanted() else { return Ok(()) };
        let (bytes, file_bytes) = range.of_up_to_end(answer).map_err(AnswerError::Index)?;
        self.blocks.extend(self.search.take(bytes, file_bytes));
        Ok(())
    }

    fn take_block(&mut self, block: &ClusterEntry, answer: &Answer) -> Result<(), AnswerError> {
        let member = range_of(block).of(answer)?;
        let lines = inflate_member(member, MAX_BLOCK_BYTES)?;
        sift(&lines, &IndexFilter::default(), |line| {
            if !self.keys.contain(line.surt) {
                return;
            }
            if self.found.len() >= self.limit {
                self.has_more = true;
                return;
            }
            let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            self.found.push(CdxRecord {
                surt_url: line.surt.to_owned(),
                timestamp: line.timestamp.to_owned(),
                metadata: line.metadata().into_iter().map(owned).collect(),
            });
        });
        Ok(())
    }
}

fn range_of(block: &ClusterEntry) -> ByteRange {
    ByteRange { offset: block.offset, length: block.length }
}
