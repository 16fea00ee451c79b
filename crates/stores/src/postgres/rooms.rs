//! Rooms: a site and a lane with waiting jobs, and when these may be handed out.

use std::collections::{BTreeMap, BTreeSet};

use fetchwell_engine::ports::source::Demand;
use fetchwell_policy::time::Time;

use super::database::column;
use super::lanes::LaneId;
use super::moves::{Moves, QueueId};
use crate::shared::job_state::sql;

/// A queue, a site and a lane.
pub(super) type RoomName = (QueueId, String, LaneId);
/// Rooms per INSERT statement.
const MAX_ROOMS_PER_STATEMENT: usize = 8_192;

/// The latest closing of a site applies to all lanes; it may also be earlier than the previous one, to take it back.
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

/// Sets when rooms that were taken from are due again. Sees the claimed jobs, and those that were inserted before the
/// rooms were locked.
const CLOSE_AFTER: &str = sql!(
    "
    WITH next AS (
        SELECT site, lane, (
            SELECT due FROM fetchwell_job AS waiting
            WHERE waiting.queue = $1 AND waiting.site = visited.site
                AND waiting.lane = visited.lane AND waiting.state < {leased}
            ORDER BY waiting.due, waiting.id LIMIT 1) AS due
        FROM unnest($2::TEXT[], $3::BIGINT[]) AS visited (site, lane)
    ), emptied AS (
        DELETE FROM fetchwell_room AS room USING next
        WHERE room.queue = $1 AND room.site = next.site AND room.lane = next.lane
            AND next.due IS NULL
    )
    UPDATE fetchwell_room AS room SET due = next.due FROM next
    WHERE room.queue = $1 AND room.site = next.site AND room.lane = next.lane
        AND room.due <> next.due"
);

impl Moves<'_> {
    /// Makes each room open when its first job is due, unless its site is closed, which holds for all lanes.
    pub(super) async fn open_rooms(
        &mut self,
        opened: BTreeMap<RoomName, Time>,
    ) -> sqlx::Result<()> {
        let opened: Vec<_> = opened.into_iter().collect();
        for some in opened.chunks(MAX_ROOMS_PER_STATEMENT) {
            self.open_some(some).await?;
        }
        Ok(())
    }

    async fn open_some(&mut self, rooms: &[(RoomName, Time)]) -> sqlx::Result<()> {
        let query = sqlx::query(
            "INSERT INTO fetchwell_room AS room (queue, site, lane, due, closed_until)
             SELECT new.queue, new.site, new.lane, new.due, closed.until
             FROM unnest($1::INTEGER[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[]) WITH ORDINALITY
                 AS new (queue, site, lane, due, place)
             CROSS JOIN LATERAL (
                 SELECT coalesce(max(closed_until), 0) AS until FROM fetchwell_room AS other
                 WHERE other.queue = new.queue AND other.site = new.site) AS closed
             ORDER BY place
             ON CONFLICT (queue, site, lane) DO UPDATE SET due = excluded.due
                 WHERE excluded.due < room.due",
        );
        let query = query
            .bind(column(rooms, |((queue, ..), _)| *queue))
            .bind(column(rooms, |((_, site, _), _)| site.as_str()))
            .bind(column(rooms, |((.., lane), _)| *lane))
            .bind(column(rooms, |(_, due)| due.as_micros()));
        self.tx.execute(query).await?;
        Ok(())
    }

    /// Records which sites are closed.
    pub(super) async fn close_rooms(&mut self, demand: &Demand) -> sqlx::Result<()> {
        let closed: BTreeMap<&str, i64> = demand
            .closed
            .iter()
            .map(|(site, until)| (site.as_str(), self.moment.to_store(*until).as_micros()))
            .collect();
        if closed.is_empty() {
            return Ok(());
        }
        let (sites, until): (Vec<&str>, Vec<i64>) = closed.into_iter().unzip();
        self.tx.execute(sqlx::query(CLOSE).bind(self.queue.id).bind(sites).bind(until)).await?;
        Ok(())
    }

    /// Called if others have locked everything that is due. With many concurrent inserts that may not end, so this
    /// waits for one lock, holding none that another waiting transaction could need.
    pub(super) async fn wait_for_a_room(&mut self, lane: LaneId) -> sqlx::Result<()> {
        let query = sqlx::query(
            "SELECT 1 FROM fetchwell_room WHERE queue = $1 AND lane = $2 AND opens_at <= $3
             ORDER BY opens_at, site LIMIT 1 FOR UPDATE",
        );
        let query = query.bind(self.queue.id).bind(lane).bind(self.now().as_micros());
        self.tx.execute(query).await?;
        Ok(())
    }

    /// Sets when rooms that we have locked are due again.
    pub(super) async fn close_after(
        &mut self,
        rooms: BTreeSet<(String, LaneId)>,
    ) -> sqlx::Result<()> {
        let (sites, lanes): (Vec<String>, Vec<LaneId>) = rooms.into_iter().unzip();
        let query = sqlx::query(CLOSE_AFTER).bind(self.queue.id).bind(sites).bind(lanes);
        self.tx.execute(query).await?;
        Ok(())
    }
}
