//! Lanes: in whose name jobs are done, and whose turn it is.

use std::collections::{BTreeSet, HashMap};

use fetchwell_engine::ports::job::Lane;
use fetchwell_policy::time::Time;
use sqlx::Row;

use super::count;
use super::moves::{Moves, QueueId};

/// Names a lane in the database.
pub(super) type LaneId = i64;
/// Nobody's.
pub(super) const NO_LANE: LaneId = 0;

/// The most lanes that one take looks at: the others have their turn at the next one.
const MAX_LANES_PER_TAKE: usize = 1_024;
/// How often lanes are looked up: between two of them, an unused one may have been taken out.
const LANE_TRIES: usize = 3;

/// A lane with something waiting.
pub(super) struct BusyLane {
    pub(super) id: LaneId,
    pub(super) lane: Lane,
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

impl Moves {
    /// The lanes' names in the database; new ones are made. Those that are looked up here stay until the
    /// commit: then their jobs are there to see.
    pub(super) async fn lane_ids(
        &mut self,
        queue: QueueId,
        mut lanes: BTreeSet<Lane>,
    ) -> sqlx::Result<HashMap<Lane, LaneId>> {
        lanes.remove(&Lane::default());
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        let groups: Vec<String> = lanes.iter().map(|lane| name(&lane.group)).collect();
        let parties: Vec<String> = lanes.iter().map(|lane| name(&lane.party)).collect();
        let mut found = HashMap::new();
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
            let rows = self.tx.fetch(query.bind(queue).bind(&groups).bind(&parties)).await?;
            for row in rows {
                found.insert(lane_of(row.try_get(1)?, row.try_get(2)?), row.try_get(0)?);
            }
        }
        Ok(found)
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

    /// The lane to begin with after these: the second of them, or the first that was not looked at.
    pub(super) fn next_turn(lanes: &[BusyLane]) -> LaneId {
        let last = lanes.get(MAX_LANES_PER_TAKE - 1).or(lanes.first());
        last.map_or(0, |lane| lane.id + 1)
    }

    /// A lane that was not looked at: only what is overdue comes from there.
    pub(super) async fn lane_named(&mut self, id: LaneId) -> sqlx::Result<Lane> {
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

/// A lane by its names.
pub(super) fn lane_of(group: String, party: String) -> Lane {
    let named = |name: String| (!name.is_empty()).then_some(name);
    Lane { group: named(group), party: named(party) }
}
