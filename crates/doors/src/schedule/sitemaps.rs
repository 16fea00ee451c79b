//! Fetches sitemaps: an ordinary door, on a queue in memory.
//!
//! A crash loses nothing. The pages of a sitemap are queued and recorded in one transaction, and an entry is recorded
//! when all its sitemaps are finished. An entry that is not recorded is done again, and pages that were queued are not
//! queued twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::clock::Clock;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::memory::MemoryQueue;
use fetchwell_engine::pipeline::Door;
use fetchwell_engine::plan::immediate::{dead, decode_payload};
use fetchwell_engine::plan::one_page::{OnePage, Weighed};
use fetchwell_engine::plan::redirect_chain::FetchEnd;
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Settlement, Sink};
use fetchwell_engine::ports::job::{Job, Lease, NewJob};
use fetchwell_engine::ports::plan::Plan;
use fetchwell_engine::ports::rounds::{MAX_URLS_PER_ROUND, Put, Round, Rounds};
use fetchwell_feed::sitemap::{self, Sitemap};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::time::Time;
use fetchwell_policy::units::quantity;
use fetchwell_policy::url::{Site, WebUrl};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::entry::part_id;
use crate::sitemap_file::{SitemapError, inflated, working_bytes};

/// How deep sitemap indexes may be nested.
const MAX_NESTING: u32 = 2;
/// Sitemaps fetched per entry and round.
const MAX_SITEMAPS: usize = 50_000;

/// The payload of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SitemapJob {
    entry: String,
    due: Time,
    nesting: u32,
}

/// The result of fetching a sitemap.
pub(crate) struct SitemapRecord {
    sitemap_job: SitemapJob,
    url: String,
    what: Result<Sitemap, SitemapError>,
}

impl Weighed for SitemapRecord {
    fn weight(&self) -> usize {
        let listed = self.what.as_ref().map(|sitemap| sitemap.urls.as_slice()).unwrap_or_default();
        listed.iter().map(|url| url.len() + size_of::<String>()).sum()
    }
}

/// An entry whose sitemaps are being fetched.
struct UnderWay {
    due: Time,
    /// Sitemaps that are not finished.
    open: HashSet<String>,
    /// All sitemaps so far: an index may list one twice, or itself.
    seen: HashSet<String>,
    /// Whether all pages found are queued.
    is_all_put: bool,
}

/// An entry whose sitemaps are all finished.
pub(super) struct Ended {
    pub(super) round: Round,
    /// Whether all pages found are queued; otherwise the round is still to be done.
    pub(super) is_all_put: bool,
}

/// The sitemaps in progress.
pub(super) struct Sitemaps {
    queue: MemoryQueue,
    rounds: Arc<dyn Rounds>,
    max_waiting: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    under_way: HashMap<String, UnderWay>,
    failed: usize,
}

impl Sitemaps {
    /// `run_once`: the door ends with the last sitemap.
    pub(super) fn new(
        rounds: Arc<dyn Rounds>,
        clock: Clock,
        run_once: bool,
        max_waiting: u64,
    ) -> Arc<Sitemaps> {
        let queue = MemoryQueue::private(clock, run_once);
        Arc::new(Sitemaps { queue, rounds, max_waiting, state: Mutex::default() })
    }

    pub(super) fn door(self: &Arc<Sitemaps>) -> Door<SitemapRecord> {
        let instance = Arc::new(self.queue.instance());
        Door {
            source: instance.clone(),
            planner: Arc::new(plan),
            finish: Arc::new(SinkThenSettle { sink: self.clone(), source: instance }),
            give_up_record: Arc::new(|lease, _, reason| {
                give_up_record(lease, reason).into_iter().collect()
            }),
        }
    }

    /// Starts a round, unless the entry is in progress.
    pub(super) fn begin(&self, round: Round, url: &str) {
        let mut state = self.state.lock();
        if state.under_way.contains_key(&round.entry) {
            return;
        }
        let Round { entry, due } = round;
        let open = HashSet::from([url.to_owned()]);
        let under_way = UnderWay { due, seen: open.clone(), open, is_all_put: true };
        state.under_way.insert(entry.clone(), under_way);
        self.queue.enqueue(vec![job(url, &SitemapJob { entry, due, nesting: 0 })]);
    }

    pub(super) fn is_under_way(&self, entry: &str) -> bool {
        self.state.lock().under_way.contains_key(entry)
    }

    /// The entries whose last sitemap is finished. They stay in progress until `let_go`.
    pub(super) fn ended(&self) -> Vec<Ended> {
        let state = self.state.lock();
        let ended = state.under_way.iter().filter(|(_, under_way)| under_way.open.is_empty());
        ended
            .map(|(entry, UnderWay { due, is_all_put, .. })| Ended {
                round: Round { entry: entry.clone(), due: *due },
                is_all_put: *is_all_put,
            })
            .collect()
    }

    pub(super) fn let_go(&self, entry: &str) {
        self.state.lock().under_way.remove(entry);
    }

    pub(super) fn failed(&self) -> usize {
        self.state.lock().failed
    }

    /// Queues the pages of a sitemap. Idempotent.
    async fn put(&self, found: &SitemapRecord) -> Result<Option<Put>, StoreError> {
        let (Ok(sitemap), Ok(url)) = (&found.what, WebUrl::parse(&found.url)) else {
            return Ok(None);
        };
        if sitemap.is_index {
            return Ok(None);
        }
        let SitemapJob { entry, due, .. } = &found.sitemap_job;
        let round = Round { entry: part_id(entry, &url), due: *due };
        let put = self.rounds.put(&round, &sitemap.urls, self.max_waiting).await?;
        Ok(Some(put))
    }

    /// Records the result of a sitemap and queues the sitemaps that it lists. Idempotent.
    fn note(&self, found: &SitemapRecord, put: Option<Put>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some(under_way) = state.under_way.get_mut(&found.sitemap_job.entry) else { return };
        if !under_way.open.remove(&found.url) {
            return;
        }
        let url = &found.url;
        match (&found.what, put) {
            (Err(reason), _) => {
                state.failed += 1;
                warn!("cannot read the sitemap {url}, trying again at its next interval: {reason}");
            }
            (Ok(sitemap), Some(Put::TooDeep { waiting })) => {
                under_way.is_all_put = false;
                let pages = quantity(sitemap.urls.len(), "page", "pages");
                let waiting = quantity(waiting, "URL", "URLs");
                warn!("not adding {pages} of {url} to the list, which has {waiting}");
            }
            (Ok(sitemap), Some(put)) => tell(url, sitemap, put),
            (Ok(index), None) => self.follow(under_way, found, index),
        }
    }

    fn follow(&self, under_way: &mut UnderWay, found: &SitemapRecord, index: &Sitemap) {
        let url = &found.url;
        let nesting = found.sitemap_job.nesting + 1;
        if nesting > MAX_NESTING {
            return warn!(
                "{url} is nested too deeply (an index in an index in an index): its sitemaps are \
                 skipped"
            );
        }
        let sitemap_job = SitemapJob { nesting, ..found.sitemap_job.clone() };
        let mut jobs = Vec::new();
        for sitemap in &index.urls {
            if under_way.seen.len() < MAX_SITEMAPS && under_way.seen.insert(sitemap.clone()) {
                under_way.open.insert(sitemap.clone());
                jobs.push(job(sitemap, &sitemap_job));
            }
        }
        info!("{url} lists {}", quantity(jobs.len(), "sitemap", "sitemaps"));
        self.queue.enqueue(jobs);
    }
}

fn tell(url: &str, sitemap: &Sitemap, put: Put) {
    let pages = quantity(sitemap.urls.len(), "page", "pages");
    match put {
        Put::Done => info!("put {pages} of {url} on the list"),
        Put::Before | Put::TooDeep { .. } => info!("{pages} of {url} already added"),
    }
    let Sitemap { elsewhere, unusable, left_out, .. } = sitemap;
    if elsewhere + unusable + left_out > 0 {
        warn!(
            "skipped in {url}: {elsewhere} on other sites, {unusable} invalid URLs, {left_out} \
             over the limit"
        );
    }
}

fn job(url: &str, sitemap_job: &SitemapJob) -> NewJob {
    let payload = serde_json::to_vec(sitemap_job).unwrap_or_default();
    NewJob::now(Job::new(url.to_owned(), payload))
}

fn plan(lease: &Lease) -> Box<dyn Plan<SitemapRecord>> {
    decode_payload(lease, |sitemap_job: SitemapJob| {
        let url = match WebUrl::parse(&lease.job.url) {
            Ok(url) => url,
            Err(fault) => return dead(fault.to_string()),
        };
        let queued = lease.job.url.clone();
        let own_site = url.site();
        let page = OnePage::new(lease, url, RetryRule::PAGES, move |fetch_end, _| {
            let sites = [own_site.clone(), fetch_end.final_url.site()];
            let what = listed(&fetch_end, &sites);
            (
                vec![SitemapRecord { sitemap_job: sitemap_job.clone(), url: queued.clone(), what }],
                Settlement::Done,
            )
        });
        Box::new(page.with_working_bytes(working_bytes))
    })
}

fn listed(fetch_end: &FetchEnd, sites: &[Site]) -> Result<Sitemap, SitemapError> {
    match (&fetch_end.happened, &fetch_end.answer) {
        (FetchOutcome::Answered(200..=299), Some(answer)) => {
            read(&answer.body, answer.header("content-type"), sites)
        }
        (happened, _) => Err(SitemapError::NotFetched(happened.clone())),
    }
}

/// Reads a sitemap, inflating it first if it is a gzip file.
fn read(body: &[u8], content_type: Option<&str>, sites: &[Site]) -> Result<Sitemap, SitemapError> {
    Ok(sitemap::read(&inflated(body)?, content_type, sites, MAX_URLS_PER_ROUND)?)
}

/// A sitemap that was given up without its plan has come to an end, too: for every cause it could not be read.
fn give_up_record(lease: &Lease, reason: &str) -> Option<SitemapRecord> {
    let sitemap_job = serde_json::from_slice(&lease.job.payload).ok()?;
    let what = Err(SitemapError::GivenUp(reason.to_owned()));
    Some(SitemapRecord { sitemap_job, url: lease.job.url.clone(), what })
}

/// Stores the records and queues the listed sitemaps. Leases are settled only afterwards; otherwise the queue might
/// look empty and end the flow.
#[async_trait]
impl Sink<SitemapRecord> for Sitemaps {
    async fn write(&self, records: &[&SitemapRecord]) -> Result<(), StoreError> {
        for found in records {
            let put = self.put(found).await?;
            self.note(found, put);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use fetchwell_archive::gzip::InflateFault;
    use fetchwell_feed::sitemap::MAX_SITEMAP_BYTES;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(content).unwrap();
        gzip.finish().unwrap()
    }

    fn at_a_test(body: &[u8]) -> Result<Sitemap, SitemapError> {
        read(body, Some("application/xml"), &[Site::parse("a.test").unwrap()])
    }

    #[test]
    fn a_compressed_one_is_read_and_a_broken_one_is_none() {
        let body = gzip(b"<urlset><loc>http://a.test/</loc></urlset>");
        assert_eq!(at_a_test(&body).unwrap().urls, ["http://a.test/"]);
        assert!(at_a_test(&body[..body.len() / 2]).is_err());
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = gzip(&vec![b' '; MAX_SITEMAP_BYTES + 1]);
        let refused = at_a_test(&bomb).unwrap_err();
        let is_too_large = matches!(refused, SitemapError::Inflate(InflateFault::TooLarge { .. }));
        assert!(is_too_large, "{refused}");
    }

    #[test]
    fn no_sitemap_lists_more_than_a_round_may_have() {
        let places: String =
            (0..MAX_URLS_PER_ROUND + 7).map(|n| format!("<loc>http://a.test/{n}</loc>")).collect();
        let sitemap = at_a_test(format!("<urlset>{places}</urlset>").as_bytes()).unwrap();
        assert_eq!((sitemap.urls.len(), sitemap.left_out), (MAX_URLS_PER_ROUND, 7));
    }
}
