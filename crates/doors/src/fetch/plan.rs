//! The plan of a URL.

use fetchwell_engine::plan::one_page::{Weighed, decoding_bytes};
use fetchwell_engine::plan::redirect_chain::{FetchEnd, Patience, RedirectChain, Stage};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::Lease;
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Outcome, PREFER_MARKDOWN};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::RetryRule;
use fetchwell_policy::url::{UrlFault, WebUrl};

use super::capture::{Archived, Capture};
use super::format::OutputFormat;
use super::row::FetchRow;
use crate::read_limits::ReadLimits;

/// The rules for one URL.
#[derive(Clone, Copy, Debug)]
pub struct FetchRules {
    pub format: OutputFormat,
    /// Whether rows list the links of their pages.
    pub links: bool,
    /// The limits for reading a page.
    pub reading: ReadLimits,
    pub max_redirects: u32,
    /// How long to wait for a site.
    pub patience: Patience,
}

/// Fetches one page, and collects its exchanges for WARC output.
pub(crate) struct PageFetch {
    url: String,
    chain: Result<RedirectChain, UrlFault>,
    format: OutputFormat,
    captures: Vec<Capture>,
}

impl PageFetch {
    pub(crate) fn new(lease: &Lease, rules: &FetchRules) -> PageFetch {
        let url = lease.job.url.clone();
        let chain = WebUrl::parse(&url).map(|at| {
            let chain =
                RedirectChain::new(at, RetryRule::FETCH, rules.max_redirects, lease.history);
            let chain = chain.with_patience(rules.patience);
            match rules.format {
                OutputFormat::Markdown => {
                    chain.with_headers(vec![("accept", PREFER_MARKDOWN.to_owned())])
                }
                _ => chain,
            }
        });
        PageFetch { url, chain, format: rules.format, captures: Vec::new() }
    }

    /// Sets further headers, which are not carried to another origin.
    pub(crate) fn with_headers(mut self, headers: Vec<(&'static str, String)>) -> PageFetch {
        if !headers.is_empty() {
            self.chain = self.chain.map(|chain| chain.with_headers(headers));
        }
        self
    }

    /// The URL as it was queued.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The next step after the last outcome; an error if the URL is invalid.
    pub(crate) fn step(
        &mut self,
        last: Option<Outcome>,
        moment: Moment,
    ) -> Result<Stage, &UrlFault> {
        let chain = self.chain.as_mut().map_err(|fault| &*fault)?;
        let Some(outcome) = last else { return Ok(Stage::Fetch(chain.request())) };
        if self.format == OutputFormat::Warc {
            self.captures.extend(Capture::of(chain.at(), &outcome, moment.wall));
        }
        Ok(chain.step(outcome, moment))
    }

    /// The exchanges of this attempt up to the last redirect; empty for formats other than WARC.
    pub(crate) fn archived_redirects(&self) -> Archived {
        let redirects = self.captures.split_last().map_or(&[][..], |(_, redirects)| redirects);
        Archived::of(redirects)
    }

    /// The exchanges of this attempt; empty for formats other than WARC.
    pub(crate) fn archived(&mut self) -> Archived {
        Archived::of(&std::mem::take(&mut self.captures))
    }
}

/// Fetches one page and turns the outcome into a row.
pub(super) struct FetchPlan {
    page: PageFetch,
    rules: FetchRules,
    /// The size of the finished row.
    held_bytes: Option<usize>,
}

impl FetchPlan {
    pub(super) fn new(lease: &Lease, rules: FetchRules) -> FetchPlan {
        FetchPlan { page: PageFetch::new(lease, &rules), rules, held_bytes: None }
    }
}

impl Plan<FetchRow> for FetchPlan {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<FetchRow> {
        let stage = match self.page.step(last, moment) {
            Ok(stage) => stage,
            Err(fault) => {
                let reason = fault.to_string();
                let row = FetchRow::refused(self.page.url(), &reason, &self.rules, moment.wall);
                return Step::Finish(vec![row], Settlement::Done);
            }
        };
        match stage {
            Stage::Fetch(request) => Step::Fetch(vec![request]),
            Stage::Retry { at, history } => {
                Step::Finish(Vec::new(), Settlement::retry(at, history))
            }
            Stage::Over(fetch_end) => {
                let settlement = settlement(&fetch_end);
                let mut row =
                    FetchRow::arrived(self.page.url(), &fetch_end, &self.rules, moment.wall);
                row.archived = self.page.archived();
                self.held_bytes = Some(row.weight());
                Step::Finish(vec![row], settlement)
            }
        }
    }

    fn working_bytes(&self, body: &[u8]) -> usize {
        match self.rules.format {
            OutputFormat::Html | OutputFormat::Warc => decoding_bytes(body.len()),
            OutputFormat::Markdown | OutputFormat::Text | OutputFormat::Json => {
                self.rules.reading.working_bytes(body.len())
            }
        }
    }

    fn held_bytes(&self) -> Option<usize> {
        self.held_bytes
    }
}

/// Every URL gets a row, so none becomes a dead letter.
pub(crate) fn settlement(fetch_end: &FetchEnd) -> Settlement {
    match fetch_end.happened {
        FetchOutcome::RobotsDisallow => Settlement::Skipped,
        _ => Settlement::Done,
    }
}
