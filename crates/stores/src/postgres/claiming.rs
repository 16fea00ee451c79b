//! Turns waiting jobs into leases.

use std::collections::HashMap;

use fetchwell_engine::ports::job::{Job, Lane, Lease, LeaseId};
use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::lanes::{BusyLane, LaneId};
use super::moves::Moves;
use super::reading::url_of;
use crate::shared::job_state::sql;
use crate::shared::moment::ServerTime;

/// Skips a job that another transaction has locked in order to follow it; the next take gets it. Public for the
/// benchmark, which shows its plan.
pub const CLAIM: &str = sql!(
    "
    WITH free AS (
        SELECT id, state FROM fetchwell_job WHERE id = ANY($1) AND state < {leased}
        FOR UPDATE SKIP LOCKED
    )
    UPDATE fetchwell_job AS job SET state = {leased}, epoch = $2, started = FALSE
    FROM free WHERE job.id = free.id
    RETURNING job.id, free.state, url, odd_url, site, lane, payload, deadline, url_failures,
        site_failures, paced, first_site_failure, interruptions, accepted_at"
);

impl Moves<'_> {
    /// Leases those of these jobs that are not leased already.
    pub(super) async fn claim(
        &mut self,
        epoch: i64,
        jobs: &[LeaseId],
        lanes: &[BusyLane],
    ) -> sqlx::Result<Vec<Lease>> {
        let rows = self.tx.fetch(sqlx::query(CLAIM).bind(jobs).bind(epoch)).await?;
        let mut names: HashMap<LaneId, Lane> =
            lanes.iter().map(|busy| (busy.id, busy.lane.clone())).collect();
        let mut leases = HashMap::new();
        for row in &rows {
            let lane: LaneId = row.try_get("lane")?;
            if lane != 0 && !names.contains_key(&lane) {
                names.insert(lane, self.lane_named(lane).await?);
            }
            let lane = names.get(&lane).cloned().unwrap_or_default();
            let lease = lease_of(row, lane, self.moment)?;
            leases.insert(lease.id, lease);
            self.no_longer_waits(row.try_get("state")?);
            self.change().in_flight += 1;
        }
        Ok(jobs.iter().filter_map(|id| leases.remove(id)).collect())
    }
}

fn lease_of(row: &PgRow, lane: Lane, moment: ServerTime) -> sqlx::Result<Lease> {
    let time = |column| -> sqlx::Result<Option<Time>> {
        let micros: Option<i64> = row.try_get(column)?;
        Ok(micros.map(|micros| moment.to_local(Time::from_micros(micros))))
    };
    let number = |column| -> sqlx::Result<u32> {
        Ok(u32::try_from(row.try_get::<i64, _>(column)?).unwrap_or(u32::MAX))
    };
    Ok(Lease {
        id: row.try_get("id")?,
        job: Job {
            url: url_of(row)?,
            site: Site::parse(row.try_get("site")?).ok(),
            lane,
            deadline: time("deadline")?,
            payload: row.try_get("payload")?,
        },
        history: History {
            url_failures: number("url_failures")?,
            site_failures: number("site_failures")?,
            paced: number("paced")?,
            first_site_failure: time("first_site_failure")?,
        },
        interruptions: number("interruptions")?,
        accepted_at: time("accepted_at")?.unwrap_or_default(),
    })
}
