//! What is handed out: by the rooms that are due, so that the cost does not grow with the number of jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fetchwell_policy::retry::History;
use fetchwell_policy::time::Time;
use fetchwell_policy::url::Site;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::moment::Moment;
use super::moves::{DELAYED, LaneId, Moves, QueueId, lane_of};
use super::reading::url_of;
use super::share::share_out;
use crate::ports::{Demand, Job, Lane, Lease, LeaseId};

/// The most lanes that one take looks at: the others have their turn at the next one.
const MAX_LANES_PER_TAKE: usize = 1_024;
/// The most rooms of a lane that one take looks at.
const MAX_ROOMS_PER_LANE: usize = 4_096;
/// When a take found too little, the next look is so much wider.
const WIDER: usize = 4;

/// A lane with something waiting.
pub(super) struct BusyLane {
    pub(super) id: LaneId,
    lane: Lane,
    /// When something of it may go.
    pub(super) opens_at: Time,
}

/// From one lane to the next by the index: what waits in a lane is not counted.
const BUSY_LANES: &str = "
    WITH RECURSIVE busy (id, place) AS (
        SELECT (SELECT lane FROM fetchwell_room WHERE queue = $1 AND lane >= $2 AND lane < $3
                ORDER BY lane LIMIT 1), 1
        UNION ALL
        SELECT (SELECT lane FROM fetchwell_room WHERE queue = $1 AND lane > busy.id AND lane < $3
                ORDER BY lane LIMIT 1), place + 1
        FROM busy WHERE busy.id IS NOT NULL AND place < $4
    )
    SELECT busy.id, coalesce(grp, ''), coalesce(party, ''),
        (SELECT opens_at FROM fetchwell_room WHERE queue = $1 AND lane = busy.id
         ORDER BY opens_at LIMIT 1)
    FROM busy LEFT JOIN fetchwell_lane AS lane ON lane.id = busy.id
    WHERE busy.id IS NOT NULL ORDER BY busy.id";

/// The first jobs of the first rooms of these lanes. Rooms that another holds are left out.
/// The benchmark shows its plan.
pub const DUE: &str = "
    SELECT wanted.place, room.site, room.lane, job.id
    FROM unnest($2::BIGINT[]) WITH ORDINALITY AS wanted (lane, place)
    CROSS JOIN LATERAL (
        SELECT site, lane, opens_at FROM fetchwell_room AS open
        WHERE open.queue = $1 AND open.lane = wanted.lane AND open.opens_at <= $3
        ORDER BY open.opens_at, open.site LIMIT $4 FOR UPDATE SKIP LOCKED) AS room
    LEFT JOIN LATERAL (
        SELECT id, due FROM fetchwell_job AS waiting
        WHERE waiting.queue = $1 AND waiting.site = room.site AND waiting.lane = room.lane
            AND waiting.state < 2 AND waiting.due <= $3
        ORDER BY waiting.due, waiting.id LIMIT $5) AS job ON TRUE
    ORDER BY wanted.place, room.opens_at, room.site, job.due, job.id";

/// Nobody waits for these any more: they go, however long their sites are closed.
const OVERDUE: &str = "
    SELECT late.id, room.site, room.lane
    FROM (SELECT id, site, lane, deadline FROM fetchwell_job
          WHERE queue = $1 AND state < 2 AND deadline <= $2 ORDER BY deadline LIMIT $3) AS late
    JOIN fetchwell_room AS room
        ON room.queue = $1 AND room.site = late.site AND room.lane = late.lane
    ORDER BY late.deadline FOR UPDATE OF room SKIP LOCKED";

/// A job that another looks at just now, to follow it, is left out: it goes the next time.
/// The benchmark shows its plan.
pub const CLAIM: &str = "
    WITH free AS (
        SELECT id, state FROM fetchwell_job WHERE id = ANY($1) AND state < 2
        FOR UPDATE SKIP LOCKED
    )
    UPDATE fetchwell_job AS job SET state = 2, epoch = $2, started = FALSE
    FROM free WHERE job.id = free.id
    RETURNING job.id, free.state, url, odd_url, site, lane, payload, deadline, url_failures,
        site_failures, paced, first_site_failure, interruptions, accepted_at";

/// When the rooms that gave something may give again. It sees what was claimed, and what came in before
/// the rooms were ours.
const CLOSE_AFTER: &str = "
    WITH next AS (
        SELECT site, lane, (
            SELECT due FROM fetchwell_job AS waiting
            WHERE waiting.queue = $1 AND waiting.site = visited.site
                AND waiting.lane = visited.lane AND waiting.state < 2
            ORDER BY waiting.due, waiting.id LIMIT 1) AS due
        FROM unnest($2::TEXT[], $3::BIGINT[]) AS visited (site, lane)
    ), emptied AS (
        DELETE FROM fetchwell_room AS room USING next
        WHERE room.queue = $1 AND room.site = next.site AND room.lane = next.lane
            AND next.due IS NULL
    )
    UPDATE fetchwell_room AS room SET due = next.due FROM next
    WHERE room.queue = $1 AND room.site = next.site AND room.lane = next.lane
        AND room.due <> next.due";

/// The last word on a site holds, for every lane: a closing can be taken back by an earlier one.
const CLOSE: &str = "
    WITH closing AS (
        SELECT room.site, room.lane, until
        FROM unnest($2::TEXT[], $3::BIGINT[]) AS closed (site, until)
        JOIN fetchwell_room AS room ON room.queue = $1 AND room.site = closed.site
        ORDER BY room.site, room.lane FOR UPDATE OF room
    )
    UPDATE fetchwell_room AS room SET closed_until = until FROM closing
    WHERE room.queue = $1 AND room.site = closing.site AND room.lane = closing.lane
        AND room.closed_until <> until";

/// What could be handed out.
#[derive(Default)]
struct Found {
    /// By lane, in the order in which it should go.
    jobs: Vec<Vec<LeaseId>>,
    /// How many rooms each lane has shown.
    rooms: Vec<usize>,
}

/// What is handed out, in order, and the rooms it is from, which are ours.
#[derive(Default)]
struct Chosen {
    jobs: Vec<LeaseId>,
    overdue: HashSet<LeaseId>,
    rooms: BTreeSet<(String, LaneId)>,
}

impl Moves {
    /// Notes which sites are closed.
    pub(super) async fn close_rooms(
        &mut self,
        queue: QueueId,
        demand: &Demand,
    ) -> sqlx::Result<()> {
        let closed: BTreeMap<&str, i64> = demand
            .closed
            .iter()
            .map(|(site, until)| (site.as_str(), self.moment.to_store(*until).as_micros()))
            .collect();
        if closed.is_empty() {
            return Ok(());
        }
        let (sites, until): (Vec<&str>, Vec<i64>) = closed.into_iter().unzip();
        self.tx.execute(sqlx::query(CLOSE).bind(queue).bind(sites).bind(until)).await?;
        Ok(())
    }

    /// When the first deadline of what waits passes.
    pub(super) async fn first_deadline(&mut self, queue: QueueId) -> sqlx::Result<Option<Time>> {
        let query = sqlx::query(
            "SELECT deadline FROM fetchwell_job
             WHERE queue = $1 AND state < 2 AND deadline IS NOT NULL ORDER BY deadline LIMIT 1",
        );
        let rows = self.tx.fetch(query.bind(queue)).await?;
        rows.first().map(|row| Ok(Time::from_micros(row.try_get(0)?))).transpose()
    }

    /// The lane to begin with after these: the second of them, or the first that was not looked at.
    pub(super) fn next_turn(lanes: &[BusyLane]) -> LaneId {
        let last = lanes.get(MAX_LANES_PER_TAKE - 1).or(lanes.first());
        last.map_or(0, |lane| lane.id + 1)
    }

    /// The lanes with something waiting, from `turn` on and around.
    pub(super) async fn busy_lanes(
        &mut self,
        queue: QueueId,
        turn: LaneId,
    ) -> sqlx::Result<Vec<BusyLane>> {
        let mut lanes = Vec::new();
        for (from, to) in [(turn, LaneId::MAX), (LaneId::MIN, turn)] {
            let left = MAX_LANES_PER_TAKE - lanes.len();
            if left == 0 || to <= 0 {
                break;
            }
            let query = sqlx::query(BUSY_LANES).bind(queue).bind(from).bind(to).bind(count(left));
            for row in self.tx.fetch(query).await? {
                let lane = lane_of(row.try_get(1)?, row.try_get(2)?);
                let opens_at = Time::from_micros(row.try_get(3)?);
                lanes.push(BusyLane { id: row.try_get(0)?, lane, opens_at });
            }
        }
        Ok(lanes)
    }

    /// Hands out what is due: the lanes share alike, and each site gives as far as it may.
    pub(super) async fn lease(
        &mut self,
        queue: QueueId,
        epoch: i64,
        demand: &Demand,
        lanes: &[BusyLane],
        has_overdue: bool,
    ) -> sqlx::Result<Vec<Lease>> {
        let mut chosen = Chosen::default();
        if has_overdue {
            self.choose_overdue(queue, demand.most, &mut chosen).await?;
        }
        let due: Vec<&BusyLane> = lanes.iter().filter(|lane| lane.opens_at <= self.now()).collect();
        self.choose_due(queue, demand, &due, &mut chosen).await?;
        if let (true, true, Some(lane)) =
            (chosen.rooms.is_empty(), demand.closed.is_empty(), due.first())
        {
            self.wait_for_a_room(queue, lane.id).await?;
            self.choose_due(queue, demand, &due, &mut chosen).await?;
        }
        if chosen.rooms.is_empty() {
            return Ok(Vec::new());
        }
        let leases = self.claim(queue, epoch, &chosen.jobs, lanes).await?;
        let (sites, lanes): (Vec<String>, Vec<LaneId>) = chosen.rooms.into_iter().unzip();
        self.tx.execute(sqlx::query(CLOSE_AFTER).bind(queue).bind(sites).bind(lanes)).await?;
        Ok(leases)
    }

    async fn choose_overdue(
        &mut self,
        queue: QueueId,
        most: usize,
        chosen: &mut Chosen,
    ) -> sqlx::Result<()> {
        let query = sqlx::query(OVERDUE).bind(queue).bind(self.now().as_micros());
        for row in self.tx.fetch(query.bind(count(most))).await? {
            let job = row.try_get(0)?;
            chosen.jobs.push(job);
            chosen.overdue.insert(job);
            chosen.rooms.insert((row.try_get(1)?, row.try_get(2)?));
        }
        Ok(())
    }

    /// Looks at few rooms first, and at more if they gave too little: rooms that are looked at are kept
    /// from others until the commit.
    async fn choose_due(
        &mut self,
        queue: QueueId,
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
            let found = self.look(queue, demand, window, rooms_seen, chosen).await?;
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

    /// Others hold all that is due. Where many put something in, that may go on: so we stand in line once,
    /// holding nothing that another in the line could wait for.
    async fn wait_for_a_room(&mut self, queue: QueueId, lane: LaneId) -> sqlx::Result<()> {
        let query = sqlx::query(
            "SELECT 1 FROM fetchwell_room WHERE queue = $1 AND lane = $2 AND opens_at <= $3
             ORDER BY opens_at, site LIMIT 1 FOR UPDATE",
        );
        self.tx.execute(query.bind(queue).bind(lane).bind(self.now().as_micros())).await?;
        Ok(())
    }

    async fn look(
        &mut self,
        queue: QueueId,
        demand: &Demand,
        lanes: &[&BusyLane],
        rooms: usize,
        chosen: &mut Chosen,
    ) -> sqlx::Result<Found> {
        let query = sqlx::query(DUE)
            .bind(queue)
            .bind(lanes.iter().map(|lane| lane.id).collect::<Vec<_>>())
            .bind(self.now().as_micros())
            .bind(count(rooms))
            .bind(count(demand.most_per_site.min(demand.most)));
        let mut found = Found { jobs: vec![Vec::new(); lanes.len()], rooms: vec![0; lanes.len()] };
        let mut last_room: Option<(String, LaneId)> = None;
        for row in self.tx.fetch(query).await? {
            let place = usize::try_from(row.try_get::<i64, _>(0)?).unwrap_or(0) - 1;
            let room = (row.try_get(1)?, row.try_get(2)?);
            if last_room.as_ref() != Some(&room) {
                found.rooms[place] += 1;
                chosen.rooms.insert(room.clone());
                last_room = Some(room);
            }
            let job: Option<LeaseId> = row.try_get(3)?;
            found.jobs[place].extend(job.filter(|job| !chosen.overdue.contains(job)));
        }
        Ok(found)
    }

    async fn claim(
        &mut self,
        queue: QueueId,
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
            let change = self.change(queue);
            match row.try_get("state")? {
                DELAYED => change.delayed -= 1,
                _ => change.queued -= 1,
            }
            change.in_flight += 1;
        }
        Ok(jobs.iter().filter_map(|id| leases.remove(id)).collect())
    }

    /// A lane that was not looked at: only what is overdue comes from there.
    async fn lane_named(&mut self, id: LaneId) -> sqlx::Result<Lane> {
        let query = sqlx::query("SELECT grp, party FROM fetchwell_lane WHERE id = $1").bind(id);
        match self.tx.fetch(query).await?.first() {
            Some(row) => Ok(lane_of(row.try_get(0)?, row.try_get(1)?)),
            None => Ok(Lane::default()),
        }
    }
}

impl BusyLane {
    /// Whether its group rests.
    pub(super) fn rests(&self, resting: &[String]) -> bool {
        self.lane.group.as_ref().is_some_and(|group| resting.contains(group))
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn lease_of(row: &PgRow, lane: Lane, moment: Moment) -> sqlx::Result<Lease> {
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
