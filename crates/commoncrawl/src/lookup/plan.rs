//! Runs one lookup through the engine's flow: several ranges, one after the other.

use std::sync::Arc;

use fetchwell_archive::gzip::InflateFault;
use fetchwell_engine::finish::SinkThenSettle;
use fetchwell_engine::memory::MemoryQueue;
use fetchwell_engine::pipeline::{self, Door, RunEnd};
use fetchwell_engine::ports::finish::Settlement;
use fetchwell_engine::ports::job::{Job, NewJob};
use fetchwell_engine::ports::plan::{Moment, Plan, Step};
use fetchwell_engine::web::{Answer, Outcome};
use fetchwell_policy::outcome::FetchOutcome;
use fetchwell_policy::retry::{History, Next, RetryRule};
use fetchwell_policy::url::WebUrl;
use parking_lot::Mutex;
use thiserror::Error;

use super::CrawlReader;
use crate::archive::RangeFault;
use crate::archive::byte_range::{ByteRange, REFUSED_BY_ARCHIVE};
use crate::error::CommonCrawlError;

/// A series of requests, each of which may depend on the responses before it.
pub(super) trait Lookup: Clone + Send + Sync + 'static {
    type Found: Clone + Send + Sync + 'static;

    /// The file and range to request next; `None` when done.
    fn wanted(&self) -> Option<(WebUrl, ByteRange)>;

    /// Handles the response, which may not be the requested range. An error ends the lookup.
    fn take(&mut self, answer: &Answer) -> Result<(), AnswerError>;

    fn found(&self) -> Self::Found;
}

/// Why a lookup failed.
#[derive(Debug, Error)]
pub enum LookupError {
    /// Refused by the address guard, or the disk cannot be read.
    #[error("refused: {0}")]
    Refused(String),
    /// The archive could not be reached, or did not have the file.
    #[error("{happened}: {file}")]
    NotFetched { happened: FetchOutcome, file: String },
    #[error(transparent)]
    BadAnswer(#[from] AnswerError),
    /// The engine gave it up, for this reason.
    #[error("{0}")]
    GivenUp(String),
    /// The lookup was stopped before it was complete.
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Other(#[from] CommonCrawlError),
}

/// Why an answer of the archive cannot be used.
#[derive(Clone, Debug, Error)]
pub enum AnswerError {
    #[error("cannot read cluster.idx: {0}")]
    Index(#[source] RangeFault),
    #[error(transparent)]
    Range(#[from] RangeFault),
    #[error(transparent)]
    Inflate(#[from] InflateFault),
    #[error("the index does not say where the record is")]
    NoPlace,
}

pub(super) async fn run<E: Lookup>(
    reader: CrawlReader<'_>,
    lookup: E,
) -> Result<E::Found, LookupError> {
    let CrawlReader { archive, runtime, stop, .. } = reader;
    let queue = MemoryQueue::private(runtime.clock.clone(), true);
    queue.enqueue(vec![NewJob::now(Job::new(archive.root.to_string(), Vec::new()))]);
    let instance = Arc::new(queue.instance());
    let ends: Arc<Mutex<Vec<End<E::Found>>>> = Arc::default();
    let root = archive.root.clone();
    let progress = Arc::new(Mutex::new(lookup));
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(move |lease| {
            let lookup = progress.lock().clone();
            let progress = progress.clone();
            let root = root.clone();
            Box::new(LookupPlan { lookup, progress, root, history: lease.history })
        }),
        finish: Arc::new(SinkThenSettle { sink: ends.clone(), source: instance }),
        give_up_record: Arc::new(|_, _, reason| vec![End::GivenUp(reason.to_owned())]),
    };
    let ended = pipeline::run(door, runtime, stop).await.map_err(CommonCrawlError::from)?;
    let end = ends.lock().pop();
    match (end, ended) {
        (Some(End::Found(found)), _) => Ok(found),
        (Some(End::Refused(why)), _) => Err(LookupError::Refused(why)),
        (Some(End::NotFetched { happened, file }), _) => {
            Err(LookupError::NotFetched { happened, file })
        }
        (Some(End::BadAnswer(error)), _) => Err(error.into()),
        (Some(End::GivenUp(reason)), _) | (None, RunEnd::Halted(reason)) => {
            Err(LookupError::GivenUp(reason))
        }
        (None, _) => Err(LookupError::Stopped),
    }
}

#[derive(Clone)]
enum End<F> {
    Found(F),
    /// Refused by the address guard, or the folder cannot be read.
    Refused(String),
    NotFetched {
        happened: FetchOutcome,
        file: String,
    },
    BadAnswer(AnswerError),
    GivenUp(String),
}

struct LookupPlan<E> {
    lookup: E,
    /// State for the next attempt.
    progress: Arc<Mutex<E>>,
    /// The URL of the archive's files. For a folder it is made up, so it must not be shown.
    root: WebUrl,
    /// The failures of the current request.
    history: History,
}

impl<E: Lookup> Plan<End<E::Found>> for LookupPlan<E> {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<End<E::Found>> {
        if let Some(outcome) = last
            && let Some(end) = self.take(&outcome, moment)
        {
            return end;
        }
        match self.lookup.wanted() {
            Some((url, range)) => Step::Fetch(vec![range.request(url)]),
            None => finish(End::Found(self.lookup.found())),
        }
    }
}

impl<E: Lookup> LookupPlan<E> {
    /// Handles an outcome; returns a step unless the next request follows immediately.
    fn take(&mut self, outcome: &Outcome, moment: Moment) -> Option<Step<End<E::Found>>> {
        let again = match (&outcome.happened, &outcome.answer) {
            (FetchOutcome::Answered(403), _) => {
                return Some(Step::Halt(REFUSED_BY_ARCHIVE.to_owned()));
            }
            (FetchOutcome::Refused(why), _) => return Some(finish(End::Refused(why.clone()))),
            (FetchOutcome::Answered(200..=299), Some(answer)) => {
                let (_, range) = self.lookup.wanted()?;
                let Some(again) = range.after_short(answer, self.history, moment) else {
                    self.history = History::default();
                    return self
                        .lookup
                        .take(answer)
                        .err()
                        .map(|error| finish(End::BadAnswer(error)));
                };
                again
            }
            _ => match moment.next(&RetryRule::ARCHIVE, self.history, outcome) {
                Next::Again { at, history } => Settlement::retry(at, history),
                Next::Finish => {
                    let happened = outcome.happened.clone();
                    return Some(finish(End::NotFetched { happened, file: self.file() }));
                }
            },
        };
        *self.progress.lock() = self.lookup.clone();
        Some(Step::Finish(Vec::new(), again))
    }

    /// The current file, by its name in the archive.
    fn file(&self) -> String {
        let url = self.lookup.wanted().map(|(url, _)| url.to_string()).unwrap_or_default();
        url.strip_prefix(self.root.as_str()).unwrap_or(&url).to_owned()
    }
}

fn finish<F>(end: End<F>) -> Step<End<F>> {
    Step::Finish(vec![end], Settlement::Done)
}
