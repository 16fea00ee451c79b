//! Captures of what is looked for: the search in `cluster.idx`, then the blocks it leads to. Pure.

use std::collections::VecDeque;

use fetchwell_archive::cdxj::{CdxRecord, Filter, sift};
use fetchwell_archive::cluster_idx::ClusterEntry;
use fetchwell_archive::gzip::inflate_member;
use fetchwell_engine::web::Answer;
use fetchwell_policy::url::WebUrl;
use tracing::warn;

use super::errand::AnswerError;
use super::pattern::Keys;
use super::search::Search;
use crate::archive::byte_range::ByteRange;

/// A block of about 3,000 lines has about 1 MiB; what is far larger is no block.
const MAX_BLOCK_BYTES: usize = 16 << 20;

/// A lookup under way.
#[derive(Clone)]
pub(super) struct Captures {
    indexes: WebUrl,
    keys: Keys,
    search: Search,
    blocks: VecDeque<ClusterEntry>,
    limit: usize,
    /// What was found, in the order of the index.
    pub(super) found: Vec<CdxRecord>,
    /// Whether there is more than the limit.
    pub(super) has_more: bool,
    pub(super) unread: u64,
}

impl Captures {
    /// `indexes` is the folder of the crawl's index, with a slash at its end.
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

    /// What is to be asked for next; none: that was all.
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

    /// Takes the answer to [`Captures::wanted`]. An error means that nothing can be found.
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
        sift(&lines, &Filter::default(), |line| {
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
