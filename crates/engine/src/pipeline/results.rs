//! From a finished plan to a settled lease.

use std::time::Duration;

use fetchwell_policy::url::Site;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::conductor::{Conductor, Event};
use super::{News, SettledLease};
use crate::ports::error::StoreError;
use crate::ports::finish::{Finished, Settled, Settlement};
use crate::store_health::StoreCall;
use crate::web::Phases;

/// What the pages of one batch may hold of the byte budget, unless it is a single one.
const MOST_BATCH_BYTES: usize = 16 << 20;

impl<R: Send + Sync + 'static> Conductor<R> {
    /// Hands what is done to the sink, a batch at a time; the next batch gathers meanwhile.
    pub(super) fn finish_what_is_done(&mut self) {
        let now = self.now();
        if self.finishing
            || self.ready.is_empty()
            || now < self.finish_at
            || !self.holds_its_lease()
        {
            return;
        }
        self.finishing = true;
        let many = self.batch_size();
        let batch: Vec<Finished<R>> = self.ready.drain(..many).collect();
        let finish = self.door.finish.clone();
        self.spawn(async move {
            let started = Instant::now();
            let settled = finish.finish(&batch).await;
            Event::Finished(batch, settled, started.elapsed())
        });
    }

    /// How many go in the next batch: a sink may hold all of it a second time, in its own form.
    fn batch_size(&self) -> usize {
        let mut bytes = 0_usize;
        let fits = |finished: &&Finished<R>| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(finished.share.bytes());
            is_first || bytes <= MOST_BATCH_BYTES
        };
        self.ready.iter().take(self.plant.limits.max_finish_batch).take_while(fits).count()
    }

    pub(super) fn on_finished(
        &mut self,
        batch: Vec<Finished<R>>,
        settled: Result<Vec<Settled>, StoreError>,
        sink: Duration,
    ) {
        self.finishing = false;
        let settled = match settled {
            Ok(settled) => {
                self.store_worked(StoreCall::Finish);
                settled
            }
            Err(fault) => {
                // Nothing is fetched again for it, and nothing more is taken until it works.
                self.store_failed(StoreCall::Finish, &fault);
                self.finish_at = self.store_retry_at();
                self.ready.splice(0..0, batch);
                return;
            }
        };
        for (finished, settled) in batch.into_iter().zip(settled) {
            self.on_settled(finished, settled, sink);
        }
    }

    fn on_settled(&mut self, finished: Finished<R>, settled: Settled, sink: Duration) {
        self.unsettled_pages -= usize::from(finished.is_page());
        let Finished { lease, settlement, phases, .. } = finished;
        if settled == Settled::Stale {
            warn!(
                url = lease.job.url,
                "a result came too late and was refused: others have the URL"
            );
            return self.spread(News::Stale);
        }
        if !matches!(settlement, Settlement::HandBack { .. }) {
            self.interruptions.forget(&lease);
        }
        let phases = Phases { sink, ..phases };
        let (site, attempt) = (lease.job.site.as_ref().map(Site::as_str), lease.attempt());
        debug!(
            target: "fetchwell::settled",
            lease = lease.id, url = lease.job.url, site, attempt, ?settlement, ?phases
        );
        if let Settlement::Retry { at, .. }
        | Settlement::Recur { at, .. }
        | Settlement::HandBack { at } = &settlement
        {
            self.take_at = self.take_at.min(*at);
            self.exhausted = false;
        }
        if let Some(site) = &lease.job.site
            && let Some(until) = self.closing.remove(site)
        {
            self.closed.insert(site.clone(), until);
        }
        let age = self.now().since(lease.accepted_at);
        let ended_at = self.plant.clock.wall();
        let told = SettledLease { lease, settlement, phases, age, ended_at };
        self.spread(News::Settled(Box::new(told)));
        if self.leases_held == 0 {
            self.take_at = self.take_at.min(self.now()); // Perhaps that was the last one.
        }
    }
}
