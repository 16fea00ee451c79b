//! From a finished plan to a settled lease.

use std::time::Duration;

use fetchwell_policy::url::Site;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::intake::guarded;
use super::scheduler::{Input, Scheduler};
use super::{Event, GiveUp, SettledLease};
use crate::budget::Share;
use crate::ports::error::{StoreError, StoreErrorKind};
use crate::ports::finish::{Finished, Settled, Settlement};
use crate::ports::job::Lease;
use crate::store_health::StoreCall;
use crate::web::Phases;

impl<R: Send + Sync + 'static> Scheduler<R> {
    /// Hands finished leases to the sink, one batch at a time; the next batch collects meanwhile.
    pub(super) fn finish_what_is_done(&mut self) {
        if !self.may_store() {
            return;
        }
        let most = self.runtime.limits.max_finish_batch;
        let Some(batch) = self.outbox.begin(self.now(), most) else { return };
        let finish = self.door.finish.clone();
        self.spawn(async move {
            let started = Instant::now();
            let settled = finish.finish(&batch).await;
            Input::Finished(batch, settled, started.elapsed())
        });
    }

    /// Whether results may be stored now. A result whose answer was lost waits for the jobs that are being taken: one of
    /// them may be its own, handed out again.
    pub(super) fn may_store(&self) -> bool {
        let may_come_again = self.outbox.has_unanswered() && self.supply.is_taking();
        self.upkeep.holds_lease() && !may_come_again
    }

    pub(super) fn on_finished(
        &mut self,
        batch: Vec<Finished<R>>,
        settled: Result<Vec<Settled>, StoreError>,
        sink: Duration,
    ) {
        let settled = match settled {
            Ok(settled) => {
                self.outbox.stored(batch.len());
                self.runtime.gate.health.worked(StoreCall::Finish);
                settled
            }
            Err(fault) if fault.kind() == StoreErrorKind::TooLarge => {
                return self.on_too_large(batch, &fault);
            }
            Err(fault) if !fault.is_transient() => return self.on_not_storable(batch, &fault),
            Err(fault) => {
                // The results are kept and stored later. No more leases are taken until that works.
                self.store_failed(StoreCall::Finish, &fault);
                let stored = self.outbox.put_back_unanswered(batch, self.store_retry_at());
                for finished in stored {
                    self.on_settled(finished, Settled::Confirmed, sink);
                }
                return;
            }
        };
        for (finished, settled) in batch.into_iter().zip(settled) {
            self.on_settled(finished, settled, sink);
        }
    }

    /// Something in the batch is too large for the store. Finishing each result alone shows which. A result that is
    /// too large is given up: its record is replaced by the give-up record, or by none if even that is too large.
    fn on_too_large(&mut self, mut batch: Vec<Finished<R>>, fault: &StoreError) {
        if let [finished] = batch.as_mut_slice() {
            let is_dead = matches!(finished.settlement, Settlement::Dead { .. });
            let is_handed_back = matches!(finished.settlement, Settlement::HandBack { .. });
            if is_handed_back || (is_dead && finished.records.is_empty()) {
                return self.on_not_storable(batch, fault);
            }
            drop_records(finished);
            if !is_dead {
                let reason = fault.detail();
                warn!(url = finished.lease.job.url, reason, "the result is too large to be stored");
                let record =
                    || (self.door.give_up_record)(&finished.lease, GiveUp::TooLarge, &reason);
                finished.records = guarded(record).unwrap_or_default();
                finished.settlement = Settlement::Dead { reason };
            }
        }
        self.emit(Event::StoreFailed(fault.clone()));
        self.outbox.put_back_singly(batch, self.now());
    }

    /// The store rejects these results permanently. Their leases are handed back, so that the URLs are fetched again
    /// later. If handing back fails, too, the leases are left for another instance to rescue.
    fn on_not_storable(&mut self, mut batch: Vec<Finished<R>>, fault: &StoreError) {
        self.store_failed(StoreCall::Finish, fault);
        let at = self.now();
        let goes_back =
            |finished: &Finished<R>| matches!(finished.settlement, Settlement::HandBack { .. });
        if batch.iter().all(goes_back) {
            self.outbox.refuse();
        }
        for finished in &mut batch {
            finished.settlement = Settlement::HandBack { at };
            drop_records(finished);
        }
        self.outbox.put_back(batch, at);
    }

    /// Settles the earlier result of this job if its answer was lost; see [`Outbox::on_handed_out`].
    ///
    /// [`Outbox::on_handed_out`]: super::outbox::Outbox::on_handed_out
    pub(super) fn on_handed_out(&mut self, lease: &Lease) {
        if let Some(finished) = self.outbox.on_handed_out(lease.id) {
            self.on_settled(finished, Settled::Confirmed, Duration::ZERO);
        }
    }

    fn on_settled(&mut self, finished: Finished<R>, settled: Settled, sink: Duration) {
        self.outbox.settled(&finished);
        let Finished { lease, settlement, phases, .. } = finished;
        if settled == Settled::Stale {
            warn!(
                url = lease.job.url,
                "a result came too late and was discarded: another instance has the URL"
            );
            return self.emit(Event::Stale);
        }
        if !matches!(settlement, Settlement::HandBack { .. }) {
            self.interruptions.forget(&lease);
        }
        let phases = Phases { sink, ..phases };
        let site = lease.job.site.as_ref().map(Site::as_str);
        let attempt = lease.attempt();
        debug!(
            target: "fetchwell::settled",
            lease = lease.id, url = lease.job.url, site, attempt, ?settlement, ?phases
        );
        if let Settlement::Retry { at, .. } | Settlement::HandBack { at } = &settlement {
            self.supply.has_more_at(*at);
        }
        if let Some(site) = &lease.job.site {
            self.supply.settled(site);
        }
        let age = self.now().since(lease.accepted_at);
        let ended_at = self.runtime.clock.wall();
        let told = SettledLease { lease, settlement, phases, age, ended_at };
        self.emit(Event::Settled(Box::new(told)));
        if self.held.is_empty() {
            self.supply.take_by(self.now()); // Perhaps that was the last one.
        }
    }
}

/// Drops the records and their memory share. `is_page` still works, because it looks at the phases.
fn drop_records<R>(finished: &mut Finished<R>) {
    finished.records = Vec::new();
    finished.share = Share::none();
}
