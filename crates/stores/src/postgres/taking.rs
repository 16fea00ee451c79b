//! Hands out jobs, by the rooms that are due, so that the cost does not grow with the number of jobs.

use std::collections::{BTreeSet, HashSet};

use fetchwell_engine::ports::job::{Lease, LeaseId};
use fetchwell_engine::ports::source::Demand;
use fetchwell_policy::time::Time;

use super::count;
use super::database::column;
use super::lanes::{BusyLane, LaneId};
use super::moves::Moves;
use super::share::share_out;
use crate::shared::job_state::sql;

/// The maximum number of rooms of a lane that one take considers.
const MAX_ROOMS_PER_LANE: usize = 4_096;
/// If a look finds too few jobs, the next one considers this many times as many.
const WIDER: usize = 4;

/// The first jobs of the first rooms of these lanes. Skips rooms that others have locked. Public for the benchmark,
/// which shows its plan.
pub const DUE: &str = sql!(
    "
    SELECT wanted.place, room.site, room.lane, job.id
    FROM unnest($2::BIGINT[]) WITH ORDINALITY AS wanted (lane, place)
    CROSS JOIN LATERAL (
        SELECT site, lane, opens_at FROM fetchwell_room AS open
        WHERE open.queue = $1 AND open.lane = wanted.lane AND open.opens_at <= $3
        ORDER BY open.opens_at, open.site LIMIT $4 FOR UPDATE SKIP LOCKED) AS room
    LEFT JOIN LATERAL (
        SELECT id, due FROM fetchwell_job AS waiting
        WHERE waiting.queue = $1 AND waiting.site = room.site AND waiting.lane = room.lane
            AND waiting.state < {leased} AND waiting.due <= $3
        ORDER BY waiting.due, waiting.id LIMIT $5) AS job ON TRUE
    ORDER BY wanted.place, room.opens_at, room.site, job.due, job.id"
);

/// Jobs whose deadline has passed are handed out even if their sites are closed.
const OVERDUE: &str = sql!(
    "
    SELECT late.id, room.site, room.lane
    FROM (SELECT id, site, lane, deadline FROM fetchwell_job
          WHERE queue = $1 AND state < {leased} AND deadline <= $2
          ORDER BY deadline LIMIT $3) AS late
    CROSS JOIN LATERAL (
        SELECT site, lane FROM fetchwell_room AS its
        WHERE its.queue = $1 AND its.site = late.site AND its.lane = late.lane
        FOR UPDATE SKIP LOCKED) AS room
    ORDER BY late.deadline, late.id"
);

/// Jobs that could be handed out.
struct Found {
    /// By lane, in the order in which to hand them out.
    jobs: Vec<Vec<LeaseId>>,
    /// The number of rooms found per lane.
    rooms: Vec<usize>,
}

/// The jobs to hand out, in order, and their rooms, which are locked.
#[derive(Default)]
struct Chosen {
    jobs: Vec<LeaseId>,
    overdue: HashSet<LeaseId>,
    rooms: BTreeSet<(String, LaneId)>,
}

impl Moves<'_> {
    /// The earliest deadline of a waiting job.
    pub(super) async fn first_deadline(&mut self) -> sqlx::Result<Option<Time>> {
        let query = sqlx::query(sql!(
            "SELECT deadline FROM fetchwell_job
             WHERE queue = $1 AND state < {leased} AND deadline IS NOT NULL
             ORDER BY deadline LIMIT 1"
        ));
        let deadline = self.tx.fetch_as(query.bind(self.queue.id)).await?.pop();
        Ok(deadline.map(|(deadline,)| Time::from_micros(deadline)))
    }

    /// Hands out jobs that are due: lanes share equally, and each site gives up to its limit.
    pub(super) async fn lease(
        &mut self,
        epoch: i64,
        demand: &Demand,
        lanes: &[BusyLane],
        has_overdue: bool,
    ) -> sqlx::Result<Vec<Lease>> {
        let mut chosen = Chosen::default();
        if has_overdue {
            self.choose_overdue(demand.most, &mut chosen).await?;
        }
        let due: Vec<&BusyLane> = lanes.iter().filter(|lane| lane.opens_at <= self.now()).collect();
        self.choose_due(demand, &due, &mut chosen).await?;
        if chosen.rooms.is_empty()
            && demand.closed.is_empty()
            && let Some(lane) = due.first()
        {
            self.wait_for_a_room(lane.id).await?;
            self.choose_due(demand, &due, &mut chosen).await?;
        }
        if chosen.rooms.is_empty() {
            return Ok(Vec::new());
        }
        let leases = self.claim(epoch, &chosen.jobs, lanes).await?;
        self.close_after(chosen.rooms).await?;
        Ok(leases)
    }

    async fn choose_overdue(&mut self, most: usize, chosen: &mut Chosen) -> sqlx::Result<()> {
        let query = sqlx::query(OVERDUE).bind(self.queue.id).bind(self.now().as_micros());
        for (job, site, lane) in self.tx.fetch_as(query.bind(count(most))).await? {
            chosen.jobs.push(job);
            chosen.overdue.insert(job);
            chosen.rooms.insert((site, lane));
        }
        Ok(())
    }

    /// Considers few rooms first, and more if they gave too little, because they stay locked until the commit.
    async fn choose_due(
        &mut self,
        demand: &Demand,
        lanes: &[&BusyLane],
        chosen: &mut Chosen,
    ) -> sqlx::Result<()> {
        let most = demand.most - chosen.jobs.len();
        let mut lanes_seen = lanes.len().min(most);
        if lanes_seen == 0 {
            return Ok(());
        }
        let share = most.div_ceil(lanes_seen);
        let mut rooms_seen = share.div_ceil(demand.most_per_site.max(1));
        loop {
            let window = &lanes[..lanes_seen];
            let found = self.look(demand, window, rooms_seen, chosen).await?;
            let most_of = |lane: &BusyLane| match (&lane.lane.group, demand.most_per_group) {
                (Some(_), most @ 1..) => most,
                _ => usize::MAX,
            };
            let caps = window.iter().map(|lane| most_of(lane));
            let available: Vec<usize> = found
                .jobs
                .iter()
                .zip(caps.clone())
                .map(|(jobs, cap)| jobs.len().min(cap))
                .collect();
            let given = share_out(&available, most);
            let is_short = given.iter().sum::<usize>() < most;
            let has_more = lanes_seen < lanes.len()
                || available
                    .iter()
                    .zip(caps)
                    .zip(&found.rooms)
                    .any(|((had, cap), rooms)| *had < cap && *rooms >= rooms_seen);
            if is_short && has_more && rooms_seen < MAX_ROOMS_PER_LANE {
                lanes_seen = (lanes_seen * WIDER).min(lanes.len());
                rooms_seen = (rooms_seen * WIDER).min(MAX_ROOMS_PER_LANE);
                continue;
            }
            for (jobs, given) in found.jobs.into_iter().zip(given) {
                chosen.jobs.extend(jobs.into_iter().take(given));
            }
            return Ok(());
        }
    }

    async fn look(
        &mut self,
        demand: &Demand,
        lanes: &[&BusyLane],
        rooms: usize,
        chosen: &mut Chosen,
    ) -> sqlx::Result<Found> {
        let query = sqlx::query(DUE)
            .bind(self.queue.id)
            .bind(column(lanes, |lane| lane.id))
            .bind(self.now().as_micros())
            .bind(count(rooms))
            .bind(count(demand.most_per_site.min(demand.most)));
        let mut found = Found { jobs: vec![Vec::new(); lanes.len()], rooms: vec![0; lanes.len()] };
        let mut last_room: Option<(String, LaneId)> = None;
        let rows: Vec<(i64, String, LaneId, Option<LeaseId>)> = self.tx.fetch_as(query).await?;
        for (place, site, lane, job) in rows {
            let place = usize::try_from(place).unwrap_or(0) - 1;
            let room = (site, lane);
            if last_room.as_ref() != Some(&room) {
                found.rooms[place] += 1;
                chosen.rooms.insert(room.clone());
                last_room = Some(room);
            }
            found.jobs[place].extend(job.filter(|job| !chosen.overdue.contains(job)));
        }
        Ok(found)
    }
}
