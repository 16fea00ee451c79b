//! What is queued, and what is held of it.

use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use sha2::{Digest, Sha256};

/// Something to be fetched, as a door queued it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The exact string that was queued.
    pub url: String,
    /// The site that its first request goes to; `None` when the URL makes no sense.
    pub site: Option<Site>,
    /// In whose name it is done.
    pub lane: Lane,
    /// After this it is not worth having: its requests are answered with "its deadline passed". Until
    /// then it waits, and then it is handed out however long its site is closed.
    pub deadline: Option<Time>,
    /// The door's own data.
    pub payload: Vec<u8>,
}

/// In whose name a job is done. Lanes take turns, so that none holds up another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// A group (a retailer) that has a pace of its own, besides that of each site.
    pub group: Option<String>,
    /// Whoever asked for it (a caller).
    pub party: Option<String>,
}

/// Names a lease within its source.
pub type LeaseId = i64;

/// A job that is ours until it is settled, or until this instance is taken for dead.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Its name.
    pub id: LeaseId,
    /// What to do.
    pub job: Job,
    /// What it has been through.
    pub history: History,
    /// How often a process died while it was being fetched.
    pub interruptions: u32,
    /// When it was accepted.
    pub accepted_at: Time,
}

impl Lease {
    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.history.failures().saturating_add(self.interruptions).saturating_add(1)
    }
}

/// A job to be put into a queue.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What to do.
    pub job: Job,
    /// Of two jobs with the same key only the first goes in, as long as that is there: until it is
    /// done or skipped.
    pub key: Option<[u8; 16]>,
    /// Not before this.
    pub due: Option<Time>,
}

impl NewJob {
    /// A job that may go at once, whatever else is queued.
    pub fn now(job: Job) -> NewJob {
        NewJob { job, key: None, due: None }
    }
}

/// Tells equal URLs: 14 bytes of a SHA-256, so that two different ones never meet. Before them stand
/// two that the URLs of a site have in common: side by side in an index, a long list touches few pages.
pub fn job_key(site: Option<&Site>, url: &str) -> [u8; 16] {
    let common = Sha256::digest(site.map_or("", Site::as_str).as_bytes());
    let own = Sha256::digest(url.as_bytes());
    let mut key = [0; 16];
    key[..2].copy_from_slice(&common[..2]);
    key[2..].copy_from_slice(&own[..14]);
    key
}
