//! Inserts messages that share no results, many rows per statement: that costs a third less than one by one.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use fetchwell_engine::ports::inbox::NewMessage;
use fetchwell_engine::ports::job::Lane;
use fetchwell_policy::time::Time;
use rusqlite::ToSql;

use super::{LaneId, Moves};
use crate::shared::job_state::JobState;
use crate::sqlite::message_row;

/// Rows per statement.
const ROWS: usize = 32;

/// The INSERT statement for `ROWS` rows. The first parameters are common to all rows.
static INSERT_MANY: LazyLock<String> = LazyLock::new(|| insert(ROWS));
static INSERT_ONE: LazyLock<String> = LazyLock::new(|| insert(1));

/// The number of parameters that are common to all rows, and of those of each row.
const COMMON: usize = 4;
const OWN: usize = 6 + message_row::COLUMNS.len();

fn insert(rows: usize) -> String {
    let row = |row: usize| {
        let own: Vec<String> =
            (0..OWN).map(|place| format!("?{}", COMMON + 1 + row * OWN + place)).collect();
        format!("(?1, ?2, ?3, ?3, ?4, {})", own.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let columns = message_row::COLUMN_LIST.as_str();
    // `OR FAIL`, because the transaction is rolled back anyway: SQLite need not be able to undo the statement alone.
    format!(
        "INSERT OR FAIL INTO job (queue, state, due, accepted_at, created_at, key, url, site, lane, payload,
             deadline, {columns})
         VALUES {}",
        rows.join(", ")
    )
}

/// A message with the lane and deadline of its row.
struct Row<'a> {
    new: &'a NewMessage,
    lane: LaneId,
    deadline: Time,
}

impl Moves<'_> {
    /// Inserts messages, each with its caller, that share no results with others.
    pub(in crate::sqlite) fn accept_plain(
        &mut self,
        messages: &[(&NewMessage, &str)],
        wall: Time,
    ) -> rusqlite::Result<()> {
        let mut lanes: HashMap<(&str, &str), LaneId> = HashMap::new();
        let mut rooms: HashSet<(&str, LaneId)> = HashSet::new();
        let mut rows = Vec::with_capacity(messages.len());
        for (new, caller) in messages {
            let lane = match lanes.entry((&new.retailer, caller)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(self.lane_id(&Lane {
                    group: Some(new.retailer.clone()),
                    party: Some((*caller).to_owned()),
                })?),
            };
            *self.messages.entry(lane).or_default() += 1;
            rooms.insert((new.site.as_str(), lane));
            rows.push(Row { new, lane, deadline: self.now + new.deadline_in });
        }
        let (many, rest) = rows.as_chunks::<ROWS>();
        for rows in many {
            self.insert(&INSERT_MANY, rows, wall)?;
        }
        for row in rest {
            self.insert(&INSERT_ONE, std::slice::from_ref(row), wall)?;
        }
        for (site, lane) in rooms {
            self.open_room(site, lane, self.now)?;
        }
        Ok(())
    }

    fn insert(&mut self, sql: &str, rows: &[Row<'_>], wall: Time) -> rusqlite::Result<()> {
        let now_us = self.now.as_micros();
        let wall_us = wall.as_micros();
        let own: Vec<(&str, i64)> =
            rows.iter().map(|row| (row.new.site.as_str(), row.deadline.as_micros())).collect();
        let mut values: Vec<&dyn ToSql> = Vec::with_capacity(COMMON + rows.len() * OWN);
        values.extend([&self.queue as &dyn ToSql, &JobState::Queued, &now_us, &wall_us]);
        for (Row { new, lane, .. }, (site, deadline_us)) in rows.iter().zip(&own) {
            values.extend([
                &new.id.0 as &dyn ToSql,
                &new.url,
                site,
                lane,
                &new.options,
                deadline_us,
            ]);
            values.extend(message_row::values(new));
        }
        self.tx.prepare_cached(sql)?.execute(values.as_slice())?;
        // One statement assigns consecutive ids.
        let mut id = self.tx.last_insert_rowid();
        for row in rows.iter().rev() {
            self.expires(id, row.deadline);
            self.change.accepted += 1;
            self.count_waiting(self.now);
            id -= 1;
        }
        Ok(())
    }
}
