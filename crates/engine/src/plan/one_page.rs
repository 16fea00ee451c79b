//! The plan of every door that fetches one page per lease: a redirect chain, and what its end means.

use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::WebUrl;

use crate::plan::redirect_chain::{FetchEnd, Patience, RedirectChain, Stage};
use crate::ports::finish::Settlement;
use crate::ports::inbox::{FetchResult, ResultBody};
use crate::ports::job::Lease;
use crate::ports::plan::{Moment, Plan, Step};
use crate::web::{Outcome, Timeouts};

/// The maximum number of redirects, unless a door sets another.
pub const DEFAULT_MAX_REDIRECTS: u32 = 5;

/// The records of a lease, and how it is settled.
pub type PlanEnd<R> = (Vec<R>, Settlement);

/// A record whose size in memory is known.
pub trait Weighed {
    /// Bytes of text, content and bodies; everything else is small.
    fn weight(&self) -> usize;
}

type WorkingBytes = Box<dyn Fn(&[u8]) -> usize + Send>;

/// Fetches one page; `conclude` decides what the end means for this door.
pub struct OnePage<F> {
    chain: RedirectChain,
    conclude: F,
    /// The memory that `conclude` needs besides a given body.
    working_bytes: WorkingBytes,
    /// The size of the resulting records.
    held_bytes: Option<usize>,
}

impl<F> OnePage<F> {
    /// Starts at `url`, with the history of the lease.
    pub fn new<R>(lease: &Lease, url: WebUrl, rule: RetryRule, conclude: F) -> OnePage<F>
    where
        F: FnMut(FetchEnd, Moment) -> PlanEnd<R>,
    {
        let chain = RedirectChain::new(url, rule, DEFAULT_MAX_REDIRECTS, lease.history);
        let working_bytes: WorkingBytes = Box::new(|body| decoding_bytes(body.len()));
        OnePage { chain, conclude, working_bytes, held_bytes: None }
    }

    /// Sets how much memory `conclude` needs for a given body, if it does more than decode it.
    pub fn with_working_bytes(
        mut self,
        working_bytes: impl Fn(&[u8]) -> usize + Send + 'static,
    ) -> OnePage<F> {
        self.working_bytes = Box::new(working_bytes);
        self
    }

    /// Sets headers, which are not carried to another origin.
    pub fn with_headers(mut self, headers: Vec<(&'static str, String)>) -> OnePage<F> {
        self.chain = self.chain.with_headers(headers);
        self
    }

    /// Limits how long to wait for a failing site.
    pub fn with_patience(mut self, patience: Patience) -> OnePage<F> {
        self.chain = self.chain.with_patience(patience);
        self
    }

    pub fn with_max_redirects(mut self, most: u32) -> OnePage<F> {
        self.chain = self.chain.with_max_redirects(most);
        self
    }

    pub fn with_timeouts(mut self, timeouts: Timeouts) -> OnePage<F> {
        self.chain = self.chain.with_timeouts(timeouts);
        self
    }
}

impl<R: Weighed, F: FnMut(FetchEnd, Moment) -> PlanEnd<R> + Send> Plan<R> for OnePage<F> {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<R> {
        let Some(outcome) = last else { return Step::Fetch(vec![self.chain.request()]) };
        match self.chain.step(outcome, moment) {
            Stage::Fetch(request) => Step::Fetch(vec![request]),
            Stage::Retry { at, history } => {
                Step::Finish(Vec::new(), Settlement::retry(at, history))
            }
            Stage::Over(fetch_end) => {
                let (records, settlement) = (self.conclude)(*fetch_end, moment);
                self.held_bytes = Some(records.iter().map(Weighed::weight).sum());
                Step::Finish(records, settlement)
            }
        }
    }

    fn working_bytes(&self, body: &[u8]) -> usize {
        (self.working_bytes)(body)
    }

    fn held_bytes(&self) -> Option<usize> {
        self.held_bytes
    }
}

impl Weighed for FetchResult {
    fn weight(&self) -> usize {
        let texts = [&self.content, &self.extracted, &self.error, &self.details];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        match &self.body {
            ResultBody::New(body) => texts.saturating_add(body.bytes.len()),
            _ => texts,
        }
    }
}

/// Decoding creates a copy of a page, which may have three bytes for each byte.
const BYTES_PER_BYTE_DECODED: usize = 3;

/// The memory that decoding a page of this size needs.
pub fn decoding_bytes(body_bytes: usize) -> usize {
    body_bytes.saturating_mul(BYTES_PER_BYTE_DECODED)
}
