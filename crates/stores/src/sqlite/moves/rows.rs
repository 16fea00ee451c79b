//! Inserts messages. Those that share no results go in many rows per statement, a third cheaper than one by one.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use fetchwell_engine::ports::inbox::NewMessage;
use fetchwell_engine::ports::job::{Lane, LeaseId};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;
use rusqlite::ToSql;

use super::{LaneId, Moves};
use crate::shared::job_state::JobState;
use crate::sqlite::message_row::{self, COLUMNS};

/// Rows per statement.
const ROWS: usize = 32;

/// The INSERT statement for `ROWS` rows. The first parameters are common to all rows.
static INSERT_MANY: LazyLock<String> = LazyLock::new(|| insert(ROWS));
static INSERT_ONE: LazyLock<String> = LazyLock::new(|| insert(1));

/// The number of parameters that are common to all rows, and of those of each row.
const COMMON: usize = 8;
const OWN: usize = 6 + message_row::COLUMN_COUNT;

fn insert(rows: usize) -> String {
    let row = |row: usize| {
        let own: Vec<String> =
            (0..OWN).map(|place| format!("?{}", COMMON + 1 + row * OWN + place)).collect();
        format!("(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, {})", own.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    // `OR FAIL`, because the transaction is rolled back anyway: SQLite need not be able to undo the statement alone.
    format!(
        "INSERT OR FAIL INTO job (queue, state, due, accepted_at, created_at, follows, shares, batch, key,
             url, site, lane, payload, deadline, {COLUMNS})
         VALUES {}",
        rows.join(", ")
    )
}

/// A message to insert, with its caller and its batch.
#[derive(Clone, Copy)]
pub(in crate::sqlite) struct NewRow<'a> {
    pub(in crate::sqlite) new: &'a NewMessage,
    pub(in crate::sqlite) caller: &'a str,
    pub(in crate::sqlite) batch: Option<[u8; 16]>,
}

/// A message with the lane and deadline of its row.
pub(super) struct Row<'a> {
    pub(super) new: &'a NewMessage,
    pub(super) lane: LaneId,
    pub(super) deadline: Time,
}

/// How the messages of one statement begin.
pub(super) struct Beginning {
    pub(super) state: JobState,
    pub(super) due: Time,
    /// The message whose result will be theirs, too.
    pub(super) follows: Option<LeaseId>,
    /// Whether they share results with others of their kind.
    pub(super) shares: bool,
    /// The batch that they are in.
    pub(super) batch: Option<[u8; 16]>,
}

impl Moves<'_> {
    /// Inserts messages that share no results with others. Those of a batch should come one after the other.
    pub(in crate::sqlite) fn accept_plain(
        &mut self,
        messages: &[NewRow<'_>],
        wall: Time,
    ) -> rusqlite::Result<()> {
        let mut lanes: HashMap<(&str, &str), LaneId> = HashMap::new();
        let mut rooms: HashSet<(&str, LaneId)> = HashSet::new();
        for of_batch in messages.chunk_by(|one, other| one.batch == other.batch) {
            let mut rows = Vec::with_capacity(of_batch.len());
            for NewRow { new, caller, .. } in of_batch {
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
            let at_once = Beginning {
                state: JobState::Queued,
                due: self.now,
                follows: None,
                shares: false,
                batch: of_batch.first().and_then(|row| row.batch),
            };
            let (many, rest) = rows.as_chunks::<ROWS>();
            for rows in many.iter().map(<[_; ROWS]>::as_slice).chain(rest.chunks(1)) {
                // One statement assigns consecutive ids.
                let mut id = self.insert(rows, &at_once, wall)?;
                for row in rows.iter().rev() {
                    self.expires(id, row.deadline);
                    self.change.accepted += 1;
                    self.change.queued += 1;
                    id -= 1;
                }
            }
        }
        for (site, lane) in rooms {
            self.open_room(site, lane, self.now)?;
        }
        Ok(())
    }

    /// Inserts [`ROWS`] rows, or one. Returns the id of the last.
    pub(super) fn insert(
        &self,
        rows: &[Row<'_>],
        beginning: &Beginning,
        wall: Time,
    ) -> rusqlite::Result<LeaseId> {
        let sql = if rows.len() == ROWS { &INSERT_MANY } else { &INSERT_ONE };
        let due_us = beginning.due.as_micros();
        let now_us = self.now.as_micros();
        let wall_us = wall.as_micros();
        let own: Vec<(&str, &[u8], i64)> = rows
            .iter()
            .map(|row| (row.new.site.as_str(), &row.new.options[..], row.deadline.as_micros()))
            .collect();
        let mut values: Vec<&dyn ToSql> = Vec::with_capacity(COMMON + rows.len() * OWN);
        values.extend([
            &self.queue as &dyn ToSql,
            &beginning.state,
            &due_us,
            &now_us,
            &wall_us,
            &beginning.follows,
            &beginning.shares,
            &beginning.batch,
        ]);
        for (Row { new, lane, .. }, (site, options, deadline_us)) in rows.iter().zip(&own) {
            values.extend([&new.id.0 as &dyn ToSql, &new.url, site, lane, options, deadline_us]);
            values.extend(message_row::values(new));
        }
        self.tx.run(sql, values.as_slice())?;
        Ok(self.tx.last_insert_rowid())
    }
}
