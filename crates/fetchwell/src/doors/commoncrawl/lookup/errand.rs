//! One errand to the archive and back, by the one flow: several ranges, one after the other.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use fetchwell_engine::adapters::NewJob;
use fetchwell_engine::adapters::memory::MemoryQueue;
use fetchwell_engine::pipeline::{self, Door, Ended};
use fetchwell_engine::ports::{
    Job, Lane, Moment, Plan, Settlement, Sink, SinkThenSettle, Step, StoreFault,
};
use fetchwell_engine::web::{Answer, Outcome, Request};
use fetchwell_policy::outcome::Happened;
use fetchwell_policy::retry::{Attempt, History, Next, RetryRule};
use fetchwell_policy::url::WebUrl;
use tracing::error;

use crate::cli::Exit;
use crate::doors::commoncrawl::archive::Archive;
use crate::doors::commoncrawl::byte_range::REFUSED_BY_ARCHIVE;
use crate::measures::DoorName;
use crate::settings::Settings;
use crate::signals::stop_on_signal;

/// Nobody else works on a queue in memory.
const LEASE_TTL: Duration = Duration::from_secs(3_600);

/// What is asked for, answer by answer.
pub(super) trait Errand: Clone + Send + Sync + 'static {
    /// What comes of it.
    type Found: Clone + Send + Sync + 'static;

    /// The next request; none: it is done.
    fn request(&self) -> Option<Request>;

    /// Takes an answer; one whose status is no success is for the errand to judge.
    fn take(&mut self, answer: &Answer) -> Result<(), String>;

    /// What came of it.
    fn found(&self) -> Self::Found;
}

/// Runs an errand to its end; what comes of it, or how the program ends.
pub(super) async fn run<E: Errand>(
    settings: &Settings,
    archive: &Archive,
    errand: E,
) -> Result<E::Found, Exit> {
    let queue = MemoryQueue::new(archive.parts.clock.clone(), LEASE_TTL, true);
    queue.enqueue(vec![NewJob::now(job(archive))]);
    let instance = Arc::new(queue.instance());
    let kept: Kept<E::Found> = Arc::default();
    let root = archive.root.clone();
    let door = Door {
        source: instance.clone(),
        planner: Arc::new(move |_| {
            let errand = errand.clone();
            let root = root.clone();
            Box::new(ErrandPlan { errand, root, history: History::default() })
        }),
        finish: Arc::new(SinkThenSettle { sink: Keep(kept.clone()), source: instance }),
        obituary: Arc::new(|_, reason| vec![End::Failed(reason.to_owned())]),
    };
    let patience = settings.values.fetch_give_up_after;
    let plant = archive.plant(settings, Some(patience), DoorName::Errand);
    let ended = pipeline::run(door, plant, stop_on_signal()).await?;
    let end = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (end, ended) {
        (Some(End::Found(found)), _) => Ok(found),
        (Some(End::Refused(why)), _) => {
            error!("{}: refused: {why}", settings.values.commoncrawl_base);
            Err(Exit::Refused)
        }
        (Some(End::Failed(reason)), _) | (None, Ended::Halted(reason)) => {
            error!("{}: {reason}", settings.values.commoncrawl_base);
            Err(Exit::SomeFailed)
        }
        (None, _) => Err(Exit::Ok),
    }
}

fn job(archive: &Archive) -> Job {
    Job {
        url: archive.root.to_string(),
        site: Some(archive.root.site()),
        lane: Lane::default(),
        payload: Vec::new(),
        deadline: None,
    }
}

/// How an errand ended.
#[derive(Clone)]
enum End<F> {
    Found(F),
    /// The address guard, or the folder.
    Refused(String),
    Failed(String),
}

struct ErrandPlan<E> {
    errand: E,
    /// Where the archive's files are. For a folder it is made up, and not for people to see.
    root: WebUrl,
    /// What the request under way has been through.
    history: History,
}

impl<E: Errand> Plan<End<E::Found>> for ErrandPlan<E> {
    fn step(&mut self, last: Option<Outcome>, moment: Moment) -> Step<End<E::Found>> {
        if let Some(outcome) = last {
            match self.take(&outcome, moment) {
                Ok(()) => {}
                Err(Stop::Halt) => return Step::Halt(REFUSED_BY_ARCHIVE.to_owned()),
                Err(Stop::End(end)) => return Step::Finish(vec![end], Settlement::Done),
            }
        }
        match self.errand.request() {
            Some(request) => Step::Fetch(vec![request]),
            None => Step::Finish(vec![End::Found(self.errand.found())], Settlement::Done),
        }
    }
}

enum Stop<F> {
    Halt,
    End(End<F>),
}

impl<E: Errand> ErrandPlan<E> {
    fn take(&mut self, outcome: &Outcome, moment: Moment) -> Result<(), Stop<E::Found>> {
        match (&outcome.happened, &outcome.answer) {
            (Happened::Answered(403), _) => return Err(Stop::Halt),
            (Happened::Answered(200..=299), Some(answer)) => {
                self.history = History::default();
                return self.errand.take(answer).map_err(|why| Stop::End(End::Failed(why)));
            }
            (Happened::Refused(why), _) => return Err(Stop::End(End::Refused(why.clone()))),
            _ => {}
        }
        let attempt = Attempt {
            happened: &outcome.happened,
            retry_after: outcome.retry_after,
            site_last_served: outcome.why.site_last_served,
        };
        // The same request goes again: the gate sees to it that the archive has had its rest by then.
        match RetryRule::ARCHIVE.next(&attempt, self.history, moment.now, moment.chance) {
            Next::Again { history, .. } => self.history = history,
            Next::Finish => {
                let url = self.errand.request().map(|request| request.url);
                let url = url.as_ref().map_or("", WebUrl::as_str);
                let file = url.strip_prefix(self.root.as_str()).unwrap_or(url);
                let reason = format!("{}: {file}", outcome.happened);
                return Err(Stop::End(End::Failed(reason)));
            }
        }
        Ok(())
    }
}

type Kept<F> = Arc<Mutex<Option<End<F>>>>;

struct Keep<F>(Kept<F>);

#[async_trait]
impl<F: Clone + Send + Sync> Sink<End<F>> for Keep<F> {
    async fn write(&self, ends: &[&End<F>]) -> Result<(), StoreFault> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = ends.last() {
            *kept = Some((*end).clone());
        }
        Ok(())
    }
}
