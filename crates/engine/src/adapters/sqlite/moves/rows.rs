//! Messages that share nothing go in many rows a statement: that costs a third less than one by one.

use std::sync::LazyLock;

use fetchwell_policy::time::Time;
use rusqlite::ToSql;

use super::{LaneId, Moves, QUEUED};
use crate::inbox::NewMessage;
use crate::ports::Lane;

/// Rows in one statement.
const ROWS: usize = 32;

/// For so many rows: the first values are the same for all.
static INSERT_MANY: LazyLock<String> = LazyLock::new(|| insert(ROWS));
static INSERT_ONE: LazyLock<String> = LazyLock::new(|| insert(1));

fn insert(rows: usize) -> String {
    const COMMON: usize = 4;
    const OWN: usize = 9;
    let row = |row: usize| {
        let own: Vec<String> =
            (0..OWN).map(|place| format!("?{}", COMMON + 1 + row * OWN + place)).collect();
        format!("(?1, ?2, ?3, ?3, ?4, {})", own.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!(
        "INSERT INTO job (queue, state, due, accepted_at, created_at, key, url, site, lane, payload,
             deadline, correlation_id, callback_url, kind)
         VALUES {}",
        rows.join(", ")
    )
}

/// A message and whose it is, with what its row needs besides.
struct Row<'a> {
    new: &'a NewMessage,
    lane: LaneId,
    deadline_us: i64,
}

impl Moves<'_> {
    /// Puts messages in, each with its caller, that share no results with others.
    pub(in crate::adapters::sqlite) fn accept_plain(
        &mut self,
        messages: &[(&NewMessage, &str)],
        wall: Time,
    ) -> rusqlite::Result<()> {
        let mut rows = Vec::with_capacity(messages.len());
        for (new, caller) in messages {
            let lane =
                Lane { group: Some(new.retailer.clone()), party: Some((*caller).to_owned()) };
            let lane = self.lane_id(&lane)?;
            rows.push(Row { new, lane, deadline_us: (self.now + new.deadline_in).as_micros() });
        }
        let (many, rest) = rows.as_chunks::<ROWS>();
        for rows in many {
            self.insert(&INSERT_MANY, rows, wall)?;
        }
        for row in rest {
            self.insert(&INSERT_ONE, std::slice::from_ref(row), wall)?;
        }
        for Row { new, lane, .. } in rows {
            self.change.accepted += 1;
            *self.messages.entry(lane).or_default() += 1;
            self.count_waiting(self.now);
            self.open_room(new.site.as_str(), lane, self.now)?;
        }
        Ok(())
    }

    fn insert(&self, sql: &str, rows: &[Row<'_>], wall: Time) -> rusqlite::Result<()> {
        let (now_us, wall_us) = (self.now.as_micros(), wall.as_micros());
        let sites: Vec<&str> = rows.iter().map(|row| row.new.site.as_str()).collect();
        let mut values: Vec<&dyn ToSql> = vec![&self.queue, &QUEUED, &now_us, &wall_us];
        for (Row { new, lane, deadline_us }, site) in rows.iter().zip(&sites) {
            values.extend([
                &new.id.0 as &dyn ToSql,
                &new.url,
                site,
                lane,
                &new.options,
                deadline_us,
                &new.correlation_id,
                &new.callback_url,
                &new.kind,
            ]);
        }
        self.tx.prepare_cached(sql)?.execute(values.as_slice())?;
        Ok(())
    }
}
