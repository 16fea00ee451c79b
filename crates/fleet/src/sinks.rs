//! Where results go: the rows of `fetch`, the page cache and the event log of `pages`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use fetchwell_doors::fetch::{FetchRow, RowOutcome};
use fetchwell_engine::ports::error::StoreError;
use fetchwell_engine::ports::event_log::{EventLog, LogEvent, Published, judge_by_size};
use fetchwell_engine::ports::finish::{Finish, Finished, Settled, Sink};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::page_cache::PageCache;

use crate::checks::jobs::Ending;
use crate::network::{Link, Store};
use crate::queue::{QueueServer, RemoteInstance};
use crate::scenario::Plant;
use crate::sim::Sim;

/// How often `fetch` tries a URL whose site fails while it serves others…
const ATTEMPTS_FOR_ITS_SITE: u64 = 20;
/// …and one that is answered with a 429.
const ATTEMPTS_AFTER_A_429: u64 = 5;

/// The sink of `fetch` in the same store as its queue: rows and settlements are one transaction.
pub(crate) struct RowsWithSettlement {
    pub(crate) instance: Arc<RemoteInstance>,
    pub(crate) server: Arc<QueueServer>,
}

#[async_trait]
impl Finish<FetchRow> for RowsWithSettlement {
    async fn finish(&self, batch: &[Finished<FetchRow>]) -> Result<Vec<Settled>, StoreError> {
        self.instance.check_that_it_holds(batch.iter().map(|finished| finished.lease.id));
        for row in batch.iter().flat_map(|finished| &finished.records) {
            check_row(self.instance.sim(), row);
        }
        let rows: Vec<(LeaseId, usize)> =
            batch.iter().map(|finished| (finished.lease.id, finished.records.len())).collect();
        let ends = batch.iter().map(|finished| {
            let settlement = finished.settlement.clone();
            (finished.lease.clone(), Ending { settlement, has_details: false })
        });
        let server = self.server.clone();
        if self.instance.sim().has_plant(Plant::StaleRows) {
            let mut checks = server.checks.lock();
            for finished in batch.iter().filter(|finished| !finished.records.is_empty()) {
                checks.on_record(finished.lease.id);
            }
        }
        // By index: one batch may settle two leases of one job, if no answer came for the first of them.
        let also = move |index: usize| {
            let mut checks = server.checks.lock();
            let (id, count) = rows.get(index).copied().unwrap_or_default();
            for _ in 0..count {
                checks.on_record(id);
            }
        };
        self.instance.settle_and(ends.collect(), also).await
    }
}

/// The sink of `fetch` outside the store of its queue: rows are written first, at least once.
pub(crate) struct Rows {
    pub(crate) link: Arc<Link>,
    pub(crate) server: Arc<QueueServer>,
}

#[async_trait]
impl Sink<FetchRow> for Rows {
    async fn write(&self, records: &[&FetchRow]) -> Result<(), StoreError> {
        for row in records {
            check_row(&self.link.sim, row);
        }
        let urls: Vec<String> = records.iter().map(|row| row.url.clone()).collect();
        let server = self.server.clone();
        let is_lost = self.link.sim.has_plant(Plant::LostRows);
        let written = self.link.call(Store::Queues, "rows", move || {
            if is_lost {
                return Ok(());
            }
            server.delivered.lock().extend(urls);
            Ok(())
        });
        written.await
    }
}

/// No URL is given up on before it has had as many attempts as `fetch` promises.
fn check_row(sim: &Sim, row: &FetchRow) {
    let promised = match row.outcome {
        RowOutcome::SiteFailure => ATTEMPTS_FOR_ITS_SITE,
        RowOutcome::RateLimited => ATTEMPTS_AFTER_A_429,
        _ => return,
    };
    let fields = serde_json::to_value(row).unwrap_or_default();
    let attempts = fields.get("attempts").and_then(serde_json::Value::as_u64).unwrap_or_default();
    if attempts < promised {
        let FetchRow { url, outcome, .. } = row;
        sim.fail("rows", &format!("{url} ended as {outcome:?} after {attempts} attempts"));
    }
}

/// The servers of the page cache and the event log.
#[derive(Default)]
pub(crate) struct PageServers {
    cached: parking_lot::Mutex<BTreeSet<String>>,
}

pub(crate) struct RemoteCache {
    pub(crate) link: Arc<Link>,
    pub(crate) servers: Arc<PageServers>,
}

#[async_trait]
impl PageCache for RemoteCache {
    async fn put(&self, key: &str, _: Bytes, _: Duration) -> Result<(), StoreError> {
        let key = key.to_owned();
        let servers = self.servers.clone();
        let is_lost = self.link.sim.has_plant(Plant::LostPages);
        let put = self.link.call(Store::Queues, "a page", move || {
            if is_lost {
                return Ok(());
            }
            servers.cached.lock().insert(key);
            Ok(())
        });
        put.await
    }

    /// The fleet only asks whether a page is there.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.servers.cached.lock().contains(key).then(Bytes::new))
    }

    async fn sweep(&self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

pub(crate) struct RemoteLog {
    pub(crate) link: Arc<Link>,
    pub(crate) servers: Arc<PageServers>,
    pub(crate) server: Arc<QueueServer>,
}

#[async_trait]
impl EventLog for RemoteLog {
    async fn publish(&self, events: &[LogEvent]) -> Result<Vec<Published>, StoreError> {
        let events = events.to_vec();
        let link = self.link.clone();
        let servers = self.servers.clone();
        let server = self.server.clone();
        let published = self.link.call(Store::Queues, "events", move || {
            for event in &events {
                let url = field(&event.value, "url");
                let is_cached = servers.cached.lock().contains(field(&event.value, "cache_key"));
                if !is_cached {
                    link.sim.fail("pages", &format!("{url} has an event, but is not in the cache"));
                }
                server.delivered.lock().insert(url.to_owned());
            }
            Ok(events.iter().map(judge_by_size).collect())
        });
        published.await
    }
}

/// The text of a field of an event. None of the fleet's URLs and keys needs escapes in JSON.
fn field<'a>(json: &'a str, name: &str) -> &'a str {
    let after = json.split_once(&format!("\"{name}\":\"")).map_or("", |(_, after)| after);
    after.split_once('"').map_or("", |(value, _)| value)
}
