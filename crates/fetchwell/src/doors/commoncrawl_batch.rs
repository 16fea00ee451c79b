//! `fetchwell commoncrawl batch`: blocks of the index become batches of captured pages.

use fetchwell_archive::cdxj::{self, Filter};
use fetchwell_archive::cluster_idx::{self, ClusterEntry};
use fetchwell_archive::gzip::inflate_member;
use fetchwell_engine::ports::{Job, Lane, Lease, Moment, Plan, Settlement, Step};
use fetchwell_engine::web::{Outcome, Request};
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::{Attempt, History, Next, RetryRule};
use fetchwell_policy::url::{UrlFault, WebUrl};
use serde::{Deserialize, Serialize};

use super::foregone::{by_payload, dead};
use super::notation::sha256_hex;
use super::one_page::End;
use super::ranged::{ByteRange, REFUSED_BY_ARCHIVE};

/// A block of about 3,000 lines has about 1 MiB; what is far larger is no block.
const MAX_BLOCK_BYTES: usize = 64 * 1024 * 1024;

/// What a job of this door carries besides the address of its CDX file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IndexBlock {
    /// The line of `cluster.idx` that says where the block is.
    pub cluster_line: String,
}

/// Which pages are wanted, and how many make a batch.
#[derive(Clone, Debug)]
pub struct Batching {
    /// What must be so of a page.
    pub filter: Filter,
    /// Pages in a batch.
    pub batch_size: usize,
}

/// What comes out of this door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchRecord {
    /// A batch for the queue.
    Batch(Batch),
    /// A line that can't be read: counted, logged, skipped.
    Malformed {
        /// Which line of which block.
        place: String,
        /// What is wrong with it.
        fault: String,
    },
}

/// A message of the queue `batches`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The AMQP `message_id`: the SHA-256 of the body, so that a repeated batch has the same.
    pub id: String,
    /// A JSON array of [`CdxRecord`](fetchwell_archive::cdxj::CdxRecord)s.
    pub body: Vec<u8>,
}

/// The job of a line of `cluster.idx`; `indexes` is the folder of the crawl's CDX files, with a
/// slash at its end.
pub fn job(indexes: &WebUrl, cluster_line: &str) -> Result<Job, UrlFault> {
    let file = cluster_idx::parse_line(cluster_line).map(|entry| entry.cdx_file);
    // A line that makes no sense ends by its plan, like all that can't be read.
    let url = indexes.join(&file.unwrap_or_default())?;
    let block = IndexBlock { cluster_line: cluster_line.to_owned() };
    let payload = serde_json::to_vec(&block).unwrap_or_default();
    Ok(Job {
        site: Some(url.site()),
        url: url.to_string(),
        lane: Lane::default(),
        payload,
        deadline: None,
    })
}

/// Makes the plan of a block.
pub fn plan(batching: &Batching, lease: &Lease) -> Box<dyn Plan<BatchRecord>> {
    by_payload(lease, |block: IndexBlock| {
        let entry = match cluster_idx::parse_line(&block.cluster_line) {
            Ok(entry) => entry,
            Err(fault) => return dead(format!("the line of cluster.idx can't be read: {fault}")),
        };
        let url = match WebUrl::parse(&lease.job.url) {
            Ok(url) => url,
            Err(fault) => return dead(format!("the CDX file's URL can't be used: {fault}")),
        };
        let (batching, history) = (batching.clone(), lease.history);
        Box::new(BlockPlan { entry, url, batching, history })
    })
}

struct BlockPlan {
    entry: ClusterEntry,
    url: WebUrl,
    batching: Batching,
    history: History,
}

impl Plan<BatchRecord> for BlockPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<BatchRecord> {
        let Some(outcome) = last else { return Step::Fetch(vec![self.request()]) };
        if outcome.happened == Happened::Answered(403) {
            return Step::Halt(REFUSED_BY_ARCHIVE.to_owned());
        }
        let (records, settlement) = match (&outcome.happened, &outcome.answer) {
            (Happened::Answered(206), Some(answer)) => match self.range().of(answer) {
                Ok(member) => self.read(member),
                Err(fault) => given_up(fault.to_string()),
            },
            _ => self.after_failure(&outcome, moment),
        };
        Step::Finish(records, settlement)
    }
}

impl BlockPlan {
    fn range(&self) -> ByteRange {
        ByteRange { offset: self.entry.offset, length: self.entry.length }
    }

    fn request(&self) -> Request {
        self.range().request(self.url.clone())
    }

    fn after_failure(&self, outcome: &Outcome, moment: Moment) -> End<BatchRecord> {
        let attempt = Attempt {
            happened: &outcome.happened,
            retry_after: outcome.retry_after,
            site_last_served: outcome.why.site_last_served,
        };
        match RetryRule::ARCHIVE.next(&attempt, self.history, moment.now, moment.chance) {
            Next::Again { at, history } => (Vec::new(), Settlement::retry(at, history)),
            Next::Finish => given_up(outcome.happened.to_string()),
        }
    }

    fn read(&self, member: &[u8]) -> End<BatchRecord> {
        let block = match inflate_member(member, MAX_BLOCK_BYTES) {
            Ok(block) => block,
            Err(fault) => return given_up(fault.to_string()),
        };
        let selection = cdxj::batches(&block, &self.batching.filter, self.batching.batch_size);
        let (file, offset) = (&self.entry.cdx_file, self.entry.offset);
        let malformed = selection.malformed.iter().map(|line| BatchRecord::Malformed {
            place: format!("{file} at {offset}, line {}", line.number),
            fault: line.fault.to_string(),
        });
        let batches = selection.batches.into_iter().map(|body| {
            let id = sha256_hex(&body);
            BatchRecord::Batch(Batch { id, body })
        });
        (malformed.chain(batches).collect(), Settlement::Done)
    }
}

fn given_up(reason: String) -> End<BatchRecord> {
    (Vec::new(), Settlement::Dead { reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doors::samples::{end_of, lease};

    fn end(status: u16, failures: u32) -> Settlement {
        let indexes = WebUrl::parse("http://archive.test/indexes/").unwrap();
        let line = "com,example)/ 20240712000102\tcdx-00000.gz\t0\t9\t1";
        let mut block = lease("", "");
        block.job = job(&indexes, line).unwrap();
        block.history.url_failures = failures;
        let batching = Batching { filter: Filter::default(), batch_size: 50 };
        end_of(plan(&batching, &block), Happened::Answered(status)).1
    }

    #[test]
    fn what_the_range_comes_to_decides_about_the_block() {
        for status in [429, 500, 503] {
            assert!(matches!(end(status, 0), Settlement::Retry { .. }), "{status}");
        }
        // The 206 has no Content-Range, and the 200 is the whole file.
        for (status, failures) in [(200, 0), (206, 0), (404, 0), (500, 2)] {
            assert!(matches!(end(status, failures), Settlement::Dead { .. }), "{status}");
        }
    }
}
