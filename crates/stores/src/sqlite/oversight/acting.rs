//! Actions of operators. Each depends on the state of a message in the same transaction.

use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::oversight::{Action, ActionResult};
use fetchwell_policy::time::Time;
use rusqlite::{Connection, OptionalExtension};

use crate::shared::intervening::{Standing, Verdict, cancelled, new_name};
use crate::sqlite::moves::{MessageEnding, Moves};

/// The queues, and the time.
pub(super) struct Moment {
    pub(super) messages: i64,
    pub(super) deliveries: i64,
    pub(super) now: Time,
    pub(super) wall: Time,
}

/// Acts on each message. Returns what was done, and the callers that have a new result.
pub(super) fn act_on(
    tx: &Connection,
    act: Action,
    ids: &[MessageId],
    as_of: Option<Time>,
    at: &Moment,
) -> rusqlite::Result<(Vec<ActionResult>, Vec<String>)> {
    let mut moves = Moves::new(tx, at.messages, at.now);
    let mut ending = MessageEnding::new(Moves::new(tx, at.deliveries, at.now), at.wall);
    let mut deeds = Vec::with_capacity(ids.len());
    for id in ids {
        let Some((job, standing)) = standing_of(tx, at.messages, *id)? else {
            deeds.push(ActionResult::Unknown);
            continue;
        };
        deeds.push(match standing.verdict(act, as_of) {
            Verdict::LeaveAlone(deed) => deed,
            Verdict::Renew => {
                let new = new_name(*id, at.now, at.wall);
                moves.renew(job, new, at.wall)?;
                ActionResult::Renewed(new)
            }
            Verdict::Hasten => {
                moves.hasten(job)?;
                ActionResult::Hastened
            }
            Verdict::Cancel => {
                moves.cancel(job, &cancelled(standing.attempts), &mut ending)?;
                ActionResult::Cancelled
            }
        });
    }
    moves.enter()?;
    ending.deliveries.enter()?;
    Ok((deeds, ending.callers))
}

fn standing_of(
    tx: &Connection,
    queue: i64,
    id: MessageId,
) -> rusqlite::Result<Option<(LeaseId, Standing)>> {
    tx.prepare_cached(
        "SELECT id, state, follows IS NOT NULL, accepted_at, ended_at, retried_as,
             url_failures + site_failures + paced
         FROM job WHERE queue = ?1 AND key = ?2",
    )?
    .query_row((queue, id.0), |row| {
        let standing = Standing {
            state: row.get(1)?,
            follows: row.get(2)?,
            accepted_at: Time::from_micros(row.get(3)?),
            ended_at: row.get::<_, Option<i64>>(4)?.map(Time::from_micros),
            retried_as: row.get::<_, Option<[u8; 16]>>(5)?.map(MessageId),
            attempts: row.get(6)?,
        };
        Ok((row.get(0)?, standing))
    })
    .optional()
}
