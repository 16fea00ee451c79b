//! Jobs in a queue, and leases on them.

use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::{Site, WebUrl};
use sha2::{Digest, Sha256};

/// A URL to fetch, as a door queued it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The exact string that was queued.
    pub url: String,
    /// The site of its first request; `None` if the URL is invalid.
    pub site: Option<Site>,
    /// The lane that it waits in.
    pub lane: Lane,
    /// After this, its requests fail with "its deadline passed". It is then handed out even if its site is still
    /// closed.
    pub deadline: Option<Time>,
    /// Data that only the door interprets.
    pub payload: Vec<u8>,
}

impl Job {
    /// A job for this URL, in no particular lane and without a deadline.
    pub fn new(url: String, payload: Vec<u8>) -> Job {
        let site = WebUrl::parse(&url).ok().map(|url| url.site());
        Job { url, site, lane: Lane::default(), deadline: None, payload }
    }
}

/// On whose behalf a job is done. Lanes take turns, so that none holds up another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// A group (a retailer) with its own rate limit, in addition to that of each site.
    pub group: Option<String>,
    /// The caller that requested it.
    pub party: Option<String>,
}

/// Identifies a lease within its source.
pub type LeaseId = i64;

/// A job that this instance holds until it settles it, or until the instance is considered dead.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Its ID.
    pub id: LeaseId,
    /// The job.
    pub job: Job,
    /// Its failures so far.
    pub history: History,
    /// How often a process died while fetching it.
    pub interruptions: u32,
    /// When it was accepted.
    pub accepted_at: Time,
}

impl Lease {
    /// The number of this attempt, starting at 1.
    pub fn attempt(&self) -> u32 {
        self.history.failures().saturating_add(self.interruptions).saturating_add(1)
    }
}

/// A job to add to a queue.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The job.
    pub job: Job,
    /// The job is not added while another one with the same key exists, that is, until that one is done or skipped.
    pub key: Option<[u8; 16]>,
    /// The earliest time at which it may be taken.
    pub due: Option<Time>,
}

impl NewJob {
    /// A job that may be taken at once and has no key.
    pub fn now(job: Job) -> NewJob {
        NewJob { job, key: None, due: None }
    }

    /// A job that may be taken at once, with the key of its URL.
    pub fn keyed(job: Job) -> NewJob {
        let key = job_key(job.site.as_ref(), &job.url);
        NewJob { key: Some(key), ..NewJob::now(job) }
    }
}

/// The key of a URL: 14 bytes of its SHA-256, which makes collisions practically impossible, after 2 bytes that are the
/// same for all URLs of a site. This keeps the URLs of a site together in an index, so that adding a long list touches
/// few pages.
pub fn job_key(site: Option<&Site>, url: &str) -> [u8; 16] {
    let common = Sha256::digest(site.map_or("", Site::as_str).as_bytes());
    let own = Sha256::digest(url.as_bytes());
    let mut key = [0; 16];
    key[..2].copy_from_slice(&common[..2]);
    key[2..].copy_from_slice(&own[..14]);
    key
}
