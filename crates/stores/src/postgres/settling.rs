//! Settles leases in a queue whose jobs are deleted when they are done.

use std::collections::HashSet;

use fetchwell_engine::ports::finish::{Settled, Settlement};
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use sqlx::Row;

use super::database::{column, writable};
use super::moves::Moves;
use crate::shared::job_state::sql;

/// A lease to be requeued.
struct Return<'a> {
    id: LeaseId,
    due: Time,
    /// `None` if it is handed back untouched.
    history: Option<History>,
    payload: Option<&'a [u8]>,
}

/// The longest reason that an index holds, in characters.
const MOST_REASON: usize = 400;

const PUT_BACK: &str = "
    UPDATE fetchwell_job AS job SET
        state = back.state, due = back.due, epoch = NULL, started = FALSE,
        url_failures = coalesce(back.url_failures, job.url_failures),
        site_failures = coalesce(back.site_failures, job.site_failures),
        paced = coalesce(back.paced, job.paced),
        first_site_failure = CASE WHEN back.url_failures IS NULL
            THEN job.first_site_failure ELSE back.first_site_failure END,
        payload = coalesce(back.payload, job.payload)
    FROM unnest($1::BIGINT[], $2::SMALLINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[],
            $7::BIGINT[], $8::BYTEA[])
        AS back (id, state, due, url_failures, site_failures, paced, first_site_failure, payload)
    WHERE job.id = back.id
    RETURNING site, lane, job.due";

impl Moves<'_> {
    /// Settles the leases that the epoch still holds.
    pub(super) async fn settle(
        &mut self,
        epoch: i64,
        batch: &[(LeaseId, &Settlement)],
    ) -> sqlx::Result<Vec<Settled>> {
        let ids = batch.iter().map(|(id, _)| *id).collect();
        let mut held = self.held(epoch, ids).await?;
        // A lease can be settled only once.
        let ours: Vec<bool> = batch.iter().map(|(id, _)| held.remove(id)).collect();
        let confirmed: Vec<_> =
            batch.iter().zip(&ours).filter(|(_, ours)| **ours).map(|(one, _)| *one).collect();
        self.forget(&confirmed).await?;
        self.bury(&confirmed).await?;
        self.put_back(&confirmed).await?;
        let settled = |ours| if ours { Settled::Confirmed } else { Settled::Stale };
        Ok(ours.into_iter().map(settled).collect())
    }

    /// Which of these jobs the epoch holds. Locks them until the commit.
    pub(super) async fn held(
        &mut self,
        epoch: i64,
        ids: Vec<LeaseId>,
    ) -> sqlx::Result<HashSet<LeaseId>> {
        let query = sqlx::query(sql!(
            "SELECT id FROM fetchwell_job WHERE id = ANY($1) AND state = {leased} AND epoch = $2
             ORDER BY id FOR UPDATE"
        ));
        let rows = self.tx.fetch(query.bind(ids).bind(epoch)).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    /// Deletes jobs that are done or skipped.
    async fn forget(&mut self, batch: &[(LeaseId, &Settlement)]) -> sqlx::Result<()> {
        let mut gone = Vec::new();
        for (id, settlement) in batch {
            match settlement {
                Settlement::Done => self.change().done += 1,
                Settlement::Skipped => self.change().skipped += 1,
                _ => continue,
            }
            self.change().in_flight -= 1;
            gone.push(*id);
        }
        if !gone.is_empty() {
            let query = sqlx::query("DELETE FROM fetchwell_job WHERE id = ANY($1)");
            self.tx.execute(query.bind(gone)).await?;
        }
        Ok(())
    }

    /// Keeps dead jobs with their reasons.
    pub(super) async fn bury(&mut self, batch: &[(LeaseId, &Settlement)]) -> sqlx::Result<()> {
        let dead = |(id, settlement): &(LeaseId, &Settlement)| match settlement {
            Settlement::Dead { reason } => {
                Some((*id, writable(&reason.chars().take(MOST_REASON).collect::<String>())))
            }
            _ => None,
        };
        let (ids, reasons): (Vec<LeaseId>, Vec<String>) = batch.iter().filter_map(dead).unzip();
        if ids.is_empty() {
            return Ok(());
        }
        self.change().in_flight -= ids.len() as i64;
        self.change().dead += ids.len() as i64;
        let query = sqlx::query(sql!(
            "UPDATE fetchwell_job AS job
             SET state = {dead}, epoch = NULL, reason = dead.reason, ended_at = $3
             FROM unnest($1::BIGINT[], $2::TEXT[]) AS dead (id, reason) WHERE job.id = dead.id"
        ));
        self.tx.execute(query.bind(ids).bind(reasons).bind(self.now().as_micros())).await?;
        Ok(())
    }

    /// Requeues jobs that are to be tried again.
    pub(super) async fn put_back(&mut self, batch: &[(LeaseId, &Settlement)]) -> sqlx::Result<()> {
        let returns: Vec<Return<'_>> =
            batch.iter().filter_map(|(id, settlement)| self.return_of(*id, settlement)).collect();
        if returns.is_empty() {
            return Ok(());
        }
        self.change().in_flight -= returns.len() as i64;
        let moment = self.moment;
        let count = |read: fn(&History) -> u32| -> Vec<Option<i64>> {
            column(&returns, |back| back.history.as_ref().map(read).map(i64::from))
        };
        let first_site_failure = |back: &Return<'_>| {
            let first = back.history.as_ref()?.first_site_failure?;
            Some(moment.to_store(first).as_micros())
        };
        let query = sqlx::query(PUT_BACK)
            .bind(column(&returns, |back| back.id))
            .bind(column(&returns, |back| self.waiting_state(back.due).number()))
            .bind(column(&returns, |back| back.due.as_micros()))
            .bind(count(|history| history.url_failures))
            .bind(count(|history| history.site_failures))
            .bind(count(|history| history.paced))
            .bind(column(&returns, first_site_failure))
            .bind(column(&returns, |back| back.payload));
        for (site, lane, due) in self.tx.fetch_as(query).await? {
            self.now_waits(site, lane, Time::from_micros(due));
        }
        Ok(())
    }

    fn return_of<'a>(&self, id: LeaseId, settlement: &'a Settlement) -> Option<Return<'a>> {
        let (at, history, payload) = match settlement {
            Settlement::Retry { at, history, payload } => (at, Some(*history), payload),
            Settlement::HandBack { at } => (at, None, &None),
            Settlement::Done | Settlement::Skipped | Settlement::Dead { .. } => return None,
        };
        let due = self.moment.to_store(*at);
        Some(Return { id, due, history, payload: payload.as_deref() })
    }
}
