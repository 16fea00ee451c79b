//! A block of the index: reads one range of a CDX file and selects its pages.

use bytes::Bytes;
use fetchwell_archive::cdxj::{CdxLine, IndexFilter, MalformedLine, Sieve, Sifted};
use fetchwell_archive::cluster_idx::{self, ClusterEntry, IndexLine};
use fetchwell_archive::gzip::{InflateFault, inflate_pieces, stated_size};
use fetchwell_engine::pipeline::GiveUp;
use fetchwell_engine::plan::immediate::{ImmediatePlan, decode_payload};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, Lane, Lease};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Outcome};
use fetchwell_policy::outcome::{AnswerFault, FetchOutcome};
use fetchwell_policy::retry::{History, Next, RetryRule};
use fetchwell_policy::url::{UrlFault, WebUrl};
use serde::{Deserialize, Serialize};

use crate::archive::byte_range::{ByteRange, MAX_BLOCK_BYTES, REFUSED_BY_ARCHIVE};

/// The payload of a job: a line of `cluster.idx`. The job's URL is that of the CDX file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexBlock {
    /// The number of the line in this run, from 0. Results are published in this order.
    pub number: u64,
    /// The offset of the line in `cluster.idx`.
    pub starts_at: u64,
    /// The offset of its end in `cluster.idx`.
    pub ends_at: u64,
    /// The line, or why it is invalid.
    pub line: Result<String, String>,
}

/// Which pages are selected, and whether they are sorted.
#[derive(Clone, Debug)]
pub struct Batching {
    pub filter: IndexFilter,
    /// Whether the pages of several blocks are sorted by WARC file before they are cut into batches.
    pub by_file: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEnd {
    pub block: IndexBlock,
    pub what: BlockYield,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockYield {
    Read {
        /// The selected pages.
        pages: Pages,
        /// Counts of its lines.
        sifted: Sifted,
        /// Its length as received.
        wire_bytes: u64,
    },
    /// The line of `cluster.idx` does not name a block.
    NoBlock(String),
    Unread {
        /// The kind of error, as a metric label.
        kind: &'static str,
        reason: String,
    },
}

/// Selected pages, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pages {
    /// In index order.
    InOrder(PageList),
    /// With their positions in the archive, to be sorted by them.
    Placed(Vec<PlacedPage>),
}

impl Pages {
    /// The approximate size in memory.
    pub(super) fn bytes(&self) -> u64 {
        let bytes: usize = match self {
            Pages::InOrder(pages) => pages.json.len(),
            Pages::Placed(pages) => {
                let bytes =
                    |page: &PlacedPage| size_of::<PlacedPage>() + page.file.len() + page.json.len();
                pages.iter().map(bytes).sum()
            }
        };
        bytes as u64
    }
}

/// Elements of batches, concatenated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageList {
    json: Bytes,
    /// The end of each element.
    ends: Vec<usize>,
}

impl PageList {
    /// Iterates over the elements, each as JSON.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.json[start..*end])
    }
}

/// A page and its position in the archive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedPage {
    pub file: String,
    pub offset: u64,
    pub json: Vec<u8>,
}

/// The job of a line of `cluster.idx`. `indexes` is the URL of the crawl's CDX files, with a trailing slash.
pub fn job(indexes: &WebUrl, number: u64, line: &IndexLine) -> Result<Job, UrlFault> {
    let file = line.entry.as_ref().map_or("", |entry| &entry.cdx_file);
    let url = indexes.join(file)?;
    let block = IndexBlock {
        number,
        starts_at: line.offset,
        ends_at: line.end,
        line: line.entry.as_ref().map(ClusterEntry::to_string).map_err(ToString::to_string),
    };
    let payload = serde_json::to_vec(&block).unwrap_or_default();
    Ok(Job {
        site: Some(url.site()),
        url: url.to_string(),
        lane: Lane::default(),
        payload,
        deadline: None,
    })
}

pub fn plan(batching: &Batching, lease: &Lease) -> Box<dyn Plan<BlockEnd>> {
    decode_payload(lease, |block: IndexBlock| {
        let line = block.line.clone();
        let entry = line.and_then(|line| cluster_idx::parse_line(&line).map_err(|f| f.to_string()));
        let url = WebUrl::parse(&lease.job.url).map_err(|fault| fault.to_string());
        match (entry, url) {
            (Ok(entry), Ok(url)) => {
                let batching = batching.clone();
                let range = ByteRange::of_block(&entry);
                Box::new(BlockPlan { block, url, range, batching, history: lease.history })
            }
            (Err(fault), _) | (_, Err(fault)) => Box::new(ImmediatePlan(move |_: Moment| {
                let what = BlockYield::NoBlock(fault.clone());
                (vec![BlockEnd { block: block.clone(), what }], Settlement::Done)
            })),
        }
    })
}

/// The record of a block that was given up because of an internal error.
pub fn give_up_record(lease: &Lease, cause: GiveUp, reason: &str) -> Vec<BlockEnd> {
    let block = serde_json::from_slice(&lease.job.payload).ok();
    let kind = match cause {
        GiveUp::Internal => "program",
        GiveUp::TooLarge => kind_of(&FetchOutcome::BadAnswer(AnswerFault::TooLarge)),
    };
    let end = |block| BlockEnd { block, what: unread(kind, &reason) };
    block.map(end).into_iter().collect()
}

struct BlockPlan {
    block: IndexBlock,
    url: WebUrl,
    range: ByteRange,
    batching: Batching,
    history: History,
}

impl Plan<BlockEnd> for BlockPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<BlockEnd> {
        let Some(outcome) = last else {
            return Step::Fetch(vec![self.range.request(self.url.clone())]);
        };
        let what = match (&outcome.happened, &outcome.answer) {
            (FetchOutcome::Answered(403), _) => return Step::Halt(REFUSED_BY_ARCHIVE.to_owned()),
            // The next block would be refused, too.
            (FetchOutcome::Refused(why), _) => return Step::Halt(why.clone()),
            (FetchOutcome::Answered(200..=299), Some(answer)) => {
                match self.range.after_short(answer, self.history, moment) {
                    Some(again) => return Step::Finish(Vec::new(), again),
                    None => self.read(answer),
                }
            }
            (happened, _) => match moment.next(&RetryRule::ARCHIVE, self.history, &outcome) {
                Next::Again { at, history } => {
                    return Step::Finish(Vec::new(), Settlement::retry(at, history));
                }
                Next::Finish => unread(kind_of(happened), happened),
            },
        };
        let end = BlockEnd { block: self.block.clone(), what };
        Step::Finish(vec![end], Settlement::Done)
    }
}

impl BlockPlan {
    fn read(&self, answer: &Answer) -> BlockYield {
        let member = match self.range.of(answer) {
            Ok(member) => member,
            Err(fault) => return unread("range", &fault),
        };
        let Batching { filter, by_file } = &self.batching;
        let sifted = if *by_file {
            let mut pages = Vec::new();
            sifted(member, filter, |line| pages.push(PlacedPage::of(line)))
                .map(|sifted| (Pages::Placed(pages), sifted))
        } else {
            let mut json = Vec::new();
            let mut ends = Vec::new();
            let take = |line: &CdxLine<'_>| {
                line.write_json(&mut json);
                ends.push(json.len());
            };
            sifted(member, filter, take).map(|sifted| {
                json.shrink_to_fit();
                (Pages::InOrder(PageList { json: json.into(), ends }), sifted)
            })
        };
        match sifted {
            Ok((pages, sifted)) => {
                BlockYield::Read { pages, sifted, wire_bytes: self.range.length }
            }
            Err(fault) => unread("gzip", &fault),
        }
    }
}

/// Passes the selected lines of a block to `take`. A large block is inflated piece by piece, so that it is not in
/// memory together with its pages.
fn sifted(
    member: &[u8],
    filter: &IndexFilter,
    mut take: impl FnMut(&CdxLine<'_>),
) -> Result<Sifted, InflateFault> {
    let mut sieve = Sieve::new(filter);
    inflate_pieces(member, most_bytes(member), |piece| sieve.pour(piece, &mut take))?;
    Ok(sieve.end(take))
}

impl PlacedPage {
    /// A page without a position sorts first; the worker reports what is wrong with it.
    fn of(line: &CdxLine<'_>) -> PlacedPage {
        let mut json = Vec::new();
        line.write_json(&mut json);
        json.shrink_to_fit();
        let file = line.get("filename").unwrap_or_default().to_owned();
        let offset = line.get("offset").and_then(|offset| offset.parse().ok()).unwrap_or(0);
        PlacedPage { file, offset, json }
    }
}

/// The largest size that a block may inflate to. A gzip member ends with its size, so one that exceeds it is corrupt.
pub(super) fn most_bytes(member: &[u8]) -> usize {
    stated_size(member).map_or(MAX_BLOCK_BYTES, |size| size.min(MAX_BLOCK_BYTES))
}

fn unread(kind: &'static str, reason: &impl ToString) -> BlockYield {
    BlockYield::Unread { kind, reason: reason.to_string() }
}

fn kind_of(happened: &FetchOutcome) -> &'static str {
    match happened {
        FetchOutcome::Answered(_) => "status",
        FetchOutcome::Network(_)
        | FetchOutcome::TimedOut(_)
        | FetchOutcome::SiteStayedDown { .. }
        | FetchOutcome::ProbesFailed { .. }
        | FetchOutcome::WaitTooLong { .. } => "network",
        FetchOutcome::BadAnswer(_) => "answer",
        _ => "program",
    }
}

impl IndexBlock {
    /// The position of a line in the archive, for log messages.
    pub(super) fn place_of(&self, line: &MalformedLine) -> String {
        let block = self.line.as_ref().map_or("", String::as_str);
        let block = block.split('\t').collect::<Vec<_>>();
        let file = block.get(1).unwrap_or(&"?");
        let offset = block.get(2).unwrap_or(&"?");
        format!("{file} at {offset}, line {}", line.number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fetchwell_policy::outcome::NetworkFault;
    use fetchwell_testkit::samples::{MOMENT, end_of, end_with, lease, outcome};

    use super::*;

    impl<P: AsRef<[u8]>> FromIterator<P> for PageList {
        fn from_iter<I: IntoIterator<Item = P>>(pages: I) -> PageList {
            let mut json = Vec::new();
            let mut ends = Vec::new();
            for page in pages {
                json.extend_from_slice(page.as_ref());
                ends.push(json.len());
            }
            PageList { json: json.into(), ends }
        }
    }

    fn block(url_failures: u32) -> Box<dyn Plan<BlockEnd>> {
        block_after(History { url_failures, ..History::default() })
    }

    fn block_after(history: History) -> Box<dyn Plan<BlockEnd>> {
        let indexes = WebUrl::parse("http://archive.test/indexes/").unwrap();
        let line = b"com,example)/ 20240712000102\tcdx-00000.gz\t0\t9\t1\n";
        let line = cluster_idx::Lines::new(&line[..]).next().unwrap().unwrap();
        let mut block = lease("", "");
        block.job = job(&indexes, 7, &line).unwrap();
        block.history = history;
        let batching = Batching { filter: IndexFilter::default(), by_file: false };
        plan(&batching, &block)
    }

    fn kind(happened: FetchOutcome, failures: u32) -> Option<&'static str> {
        let (ends, settlement) = end_of(block(failures), happened);
        match (ends.first().map(|end| &end.what), settlement) {
            (Some(BlockYield::Unread { kind, .. }), Settlement::Done) => Some(kind),
            (None, Settlement::Retry { .. }) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_range_comes_to_decides_about_the_block() {
        for status in [429, 500, 503] {
            assert_eq!(kind(FetchOutcome::Answered(status), 0), None, "{status}");
        }
        // The 206 has no Content-Range, and the 200 is the whole file.
        for (status, failures, want) in
            [(200, 0, "range"), (206, 0, "range"), (404, 0, "status"), (500, 2, "status")]
        {
            assert_eq!(kind(FetchOutcome::Answered(status), failures), Some(want), "{status}");
        }
    }

    #[test]
    fn a_range_that_comes_short_is_asked_for_again() {
        let end_after = |failures| {
            let mut short = outcome(FetchOutcome::Answered(206), "12345");
            let answer = short.answer.as_mut().unwrap();
            answer.headers.insert("content-range", "bytes 0-4/99".parse().unwrap());
            end_with(block(failures), short)
        };
        let (ends, settlement) = end_after(0);
        assert!(
            ends.is_empty() && matches!(settlement, Settlement::Retry { .. }),
            "{settlement:?}"
        );
        let (ends, settlement) = end_after(2);
        assert_eq!(settlement, Settlement::Done);
        let BlockYield::Unread { kind: "range", reason } = &ends[0].what else {
            panic!("{ends:?}")
        };
        assert!(reason.contains("only 5 of 9 bytes"), "{reason}");
    }

    /// Batches are published in order, so all that follow wait for such a block.
    #[test]
    fn a_block_that_always_breaks_off_is_given_up_soon_while_the_archive_serves_others() {
        let first_site_failure = Some(MOMENT.now);
        let failed_often = History { site_failures: 19, first_site_failure, ..History::default() };
        let mut broken_off = outcome(FetchOutcome::Network(NetworkFault::Reset), "");
        broken_off.why.site_last_served = Some(MOMENT.now + Duration::from_secs(1));
        let (ends, settlement) = end_with(block_after(failed_often), broken_off);
        assert_eq!(settlement, Settlement::Done);
        assert!(matches!(ends[0].what, BlockYield::Unread { kind: "network", .. }), "{ends:?}");
    }

    #[test]
    fn an_archive_that_refuses_ends_the_run() {
        let mut plan = block(0);
        plan.step(None, MOMENT);
        let halt = plan.step(Some(outcome(FetchOutcome::Answered(403), "")), MOMENT);
        assert!(matches!(halt, Step::Halt(_)));
    }

    #[test]
    fn a_line_that_names_no_block_ends_without_a_request() {
        let indexes = WebUrl::parse("http://archive.test/indexes/").unwrap();
        let line = cluster_idx::Lines::new(&b"garbage\n"[..]).next().unwrap().unwrap();
        let mut garbage = lease("", "");
        garbage.job = job(&indexes, 7, &line).unwrap();
        let batching = Batching { filter: IndexFilter::default(), by_file: false };
        let Step::Finish(ends, Settlement::Done) = plan(&batching, &garbage).step(None, MOMENT)
        else {
            panic!("it goes on");
        };
        assert!(matches!(ends[0].what, BlockYield::NoBlock(_)));
        for (cause, kind) in [(GiveUp::Internal, "program"), (GiveUp::TooLarge, "answer")] {
            let given_up = give_up_record(&garbage, cause, "so it is").remove(0);
            assert_eq!(given_up.block, ends[0].block);
            assert_eq!(given_up.what, unread(kind, &"so it is"));
        }
    }
}
