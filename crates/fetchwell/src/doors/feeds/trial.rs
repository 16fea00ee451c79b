//! `feeds test`: reads a feed once and tells what would be added. Nothing is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use fetchwell_engine::memory::MemoryQueue;
use fetchwell_engine::pipeline::{self, Door};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::finish::{Sink, SinkThenSettle};
use fetchwell_engine::ports::job::NewJob;
use fetchwell_feed::Feed;
use fetchwell_policy::url::WebUrl;
use fetchwell_settings::Settings;
use fetchwell_telemetry::metrics::DoorName;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::error;

use super::gate;
use super::links::sort;
use super::plan::{Errand, Found, Reading, Validators, job, obituary, plan};
use super::print;
use super::round::LEASE_TTL;
use crate::console::exit::Exit;
use crate::console::signals::stop_on_signal;
use crate::wiring::Parts;

/// Does what was typed.
pub(super) async fn run(settings: &Settings, url: &str, as_json: bool) -> Result<Exit, Exit> {
    WebUrl::parse(url).map_err(|fault| Exit::Usage(format!("{url}: {fault}")))?;
    let trial = Trial { settings, parts: Parts::open(settings).await?, stop: stop_on_signal() };
    let errand = Errand::Feed(Validators::default());
    match trial.send([url.to_owned()], &errand).await?.pop() {
        Some(Found::Feed { reading: Reading::Read { feed, moved_to, .. }, .. }) => {
            let resolved = trial.resolve(url, &feed).await?;
            let text = print::trial(url, &feed, moved_to.as_ref(), &resolved, as_json);
            crate::console::output::print(text.as_bytes())
        }
        Some(Found::Feed { reading, .. }) => Ok(refusal(url, &reading)),
        Some(Found::Link { .. }) | None => Ok(Exit::SomeFailed),
    }
}

fn refusal(url: &str, reading: &Reading) -> Exit {
    match reading {
        Reading::Disallowed => {
            error!("{url} is not read: robots.txt disallows it");
            Exit::Refused
        }
        Reading::Gone => {
            error!("{url} is gone: the server answered 410");
            Exit::SomeFailed
        }
        Reading::Failed { problem, .. } | Reading::NotReached { why: problem } => {
            error!("cannot read {url}: {problem}");
            Exit::SomeFailed
        }
        Reading::Read { .. } | Reading::Unchanged => Exit::Ok,
    }
}

/// The parts of the flow, for a few errands.
struct Trial<'a> {
    settings: &'a Settings,
    parts: Parts,
    stop: CancellationToken,
}

impl Trial<'_> {
    /// Where those of its links lead that must be asked.
    async fn resolve(&self, url: &str, feed: &Feed) -> Result<BTreeMap<String, String>, Exit> {
        let errand = Errand::Link { feed: url.to_owned(), home: feed.home.clone() };
        let found = self.send(sort(feed, &BTreeMap::new()).asked, &errand).await?;
        let pair = |found| match found {
            Found::Link { link, page: Some(page), .. } => Some((link, page.to_string())),
            Found::Link { .. } | Found::Feed { .. } => None,
        };
        Ok(found.into_iter().filter_map(pair).collect())
    }

    /// Runs errands by the one flow, and collects what comes of them.
    async fn send(
        &self,
        urls: impl IntoIterator<Item = String>,
        errand: &Errand,
    ) -> Result<Vec<Found>, Exit> {
        let clock = &self.parts.clock;
        let values = &self.settings.values;
        let deadline = clock.now() + values.feeds_max_wait;
        let max_redirects = values.http_max_redirects;
        let queue = MemoryQueue::new(clock.clone(), LEASE_TTL, true);
        let jobs: Vec<NewJob> = urls.into_iter().map(|url| job(&url, errand, deadline)).collect();
        queue.enqueue(jobs);
        let instance = Arc::new(queue.instance());
        let found = Collected::default();
        let door = Door {
            source: instance.clone(),
            planner: Arc::new(move |lease| plan(lease, max_redirects)),
            finish: Arc::new(SinkThenSettle { sink: found.clone(), source: instance }),
            obituary: Arc::new(obituary),
        };
        let gate = gate(self.settings, &self.parts);
        let plant = self.parts.plant(self.settings, gate, DoorName::Errand, Arc::new(|_| {}));
        pipeline::run(door, plant, self.stop.clone()).await?;
        let found = std::mem::take(&mut *found.0.lock());
        Ok(found)
    }
}

/// All that was found, in memory.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<Found>>>);

#[async_trait]
impl Sink<Found> for Collected {
    async fn write(&self, records: &[&Found]) -> Result<(), StoreError> {
        let mut all = self.0.lock();
        all.extend(records.iter().copied().cloned());
        Ok(())
    }
}
