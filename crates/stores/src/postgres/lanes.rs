//! Lanes: on whose behalf jobs are done, and whose turn it is.

use std::collections::{BTreeSet, HashMap};

use fetchwell_engine::ports::job::Lane;
use fetchwell_policy::time::Time;

use super::count;
use super::moves::{Moves, QueueId};

/// The id of a lane in the database.
pub(super) type LaneId = i64;
/// The lane of jobs without a group and a party.
pub(super) const NO_LANE: LaneId = 0;

/// The number of lanes that one take considers; the others get their turn at the next take.
const MAX_LANES_PER_TAKE: usize = 1_024;
/// How often to look up lanes: an unused lane may be deleted between two attempts.
const LANE_TRIES: usize = 3;

/// A lane with waiting jobs.
pub(super) struct BusyLane {
    pub(super) id: LaneId,
    pub(super) lane: Lane,
    /// When its first job may be handed out.
    pub(super) opens_at: Time,
}

/// Steps from lane to lane through the index, so the cost does not depend on the number of waiting jobs.
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

impl Moves<'_> {
    /// The ids of lanes, creating those that are missing. The rows stay locked until the commit, when their jobs become
    /// visible, so that they are not deleted before.
    pub(super) async fn lane_ids(
        &mut self,
        queue: QueueId,
        mut lanes: BTreeSet<Lane>,
    ) -> sqlx::Result<HashMap<Lane, LaneId>> {
        lanes.remove(&Lane::default());
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        let groups: Vec<String> = lanes.iter().map(|lane| name(&lane.group)).collect();
        let parties: Vec<String> = lanes.iter().map(|lane| name(&lane.party)).collect();
        let mut found: HashMap<Lane, LaneId> = HashMap::new();
        for attempt in 0..LANE_TRIES {
            if found.len() == lanes.len() {
                break;
            }
            if attempt > 0 {
                let query = sqlx::query(
                    "INSERT INTO fetchwell_lane (queue, grp, party)
                     SELECT $1, grp, party FROM unnest($2::TEXT[], $3::TEXT[]) WITH ORDINALITY
                         AS new (grp, party, place) ORDER BY place
                     ON CONFLICT DO NOTHING",
                );
                let query = query.bind(queue).bind(&groups).bind(&parties);
                self.tx.execute(query).await?;
            }
            let query = sqlx::query(
                "SELECT id, grp, party FROM fetchwell_lane AS lane
                 JOIN unnest($2::TEXT[], $3::TEXT[]) AS wanted (grp, party) USING (grp, party)
                 WHERE queue = $1 FOR KEY SHARE OF lane",
            );
            let rows = self.tx.fetch_as(query.bind(queue).bind(&groups).bind(&parties)).await?;
            found.extend(rows.into_iter().map(|(id, group, party)| (lane_of(group, party), id)));
        }
        Ok(found)
    }

    /// The lanes with waiting jobs, starting at `turn` and wrapping around.
    pub(super) async fn busy_lanes(&mut self, turn: LaneId) -> sqlx::Result<Vec<BusyLane>> {
        let mut lanes = Vec::new();
        for (from, to) in [(turn, LaneId::MAX), (LaneId::MIN, turn)] {
            let left = MAX_LANES_PER_TAKE - lanes.len();
            if left == 0 || to <= 0 {
                break;
            }
            let query = sqlx::query(BUSY_LANES).bind(self.queue.id).bind(from).bind(to);
            for (id, group, party, opens_at) in self.tx.fetch_as(query.bind(count(left))).await? {
                let opens_at = Time::from_micros(opens_at);
                lanes.push(BusyLane { id, lane: lane_of(group, party), opens_at });
            }
        }
        Ok(lanes)
    }

    /// The lane to start with at the next take: the second of these, or the first that was not considered.
    pub(super) fn next_turn(lanes: &[BusyLane]) -> LaneId {
        let last = lanes.get(MAX_LANES_PER_TAKE - 1).or(lanes.first());
        last.map_or(0, |lane| lane.id + 1)
    }

    /// Looks up a lane that was not considered: only overdue jobs come from such lanes.
    pub(super) async fn lane_named(&mut self, id: LaneId) -> sqlx::Result<Lane> {
        let query = sqlx::query("SELECT grp, party FROM fetchwell_lane WHERE id = $1").bind(id);
        let (group, party) = self.tx.fetch_as(query).await?.pop().unwrap_or_default();
        Ok(lane_of(group, party))
    }
}

impl BusyLane {
    /// Whether its group is resting.
    pub(super) fn rests(&self, resting: &[String]) -> bool {
        self.lane.group.as_ref().is_some_and(|group| resting.contains(group))
    }
}

pub(super) fn lane_of(group: String, party: String) -> Lane {
    let named = |name: String| (!name.is_empty()).then_some(name);
    Lane { group: named(group), party: named(party) }
}
