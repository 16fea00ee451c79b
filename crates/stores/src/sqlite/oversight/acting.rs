//! Actions of operators. Each depends on the state of a message in the same transaction.

use fetchwell_engine::ports::inbox::MessageId;
use fetchwell_engine::ports::job::LeaseId;
use fetchwell_engine::ports::oversight::{Action, ActionResult};
use fetchwell_policy::time::Time;
use fetchwell_sqlite::statements::Statements;

use crate::shared::intervening::{Standing, Verdict, cancelled, new_name};
use crate::sqlite::moves::{MessageEnding, Moves};

/// Acts on each message. Returns what was done.
pub(super) fn act_on(
    moves: &mut Moves<'_>,
    ending: &mut MessageEnding<'_>,
    act: Action,
    ids: &[MessageId],
    as_of: Option<Time>,
) -> rusqlite::Result<Vec<ActionResult>> {
    let mut deeds = Vec::with_capacity(ids.len());
    for id in ids {
        let Some((job, standing)) = standing_of(moves, *id)? else {
            deeds.push(ActionResult::Unknown);
            continue;
        };
        deeds.push(match standing.verdict(act, as_of) {
            Verdict::LeaveAlone(deed) => deed,
            Verdict::Renew => {
                let new = new_name(*id, moves.now, ending.wall);
                moves.renew(job, new, ending.wall)?;
                ActionResult::Renewed(new)
            }
            Verdict::Hasten => {
                moves.hasten(job)?;
                ActionResult::Hastened
            }
            Verdict::Cancel => {
                moves.cancel(job, &cancelled(standing.attempts), ending)?;
                ActionResult::Cancelled
            }
        });
    }
    Ok(deeds)
}

fn standing_of(moves: &Moves<'_>, id: MessageId) -> rusqlite::Result<Option<(LeaseId, Standing)>> {
    let select = "SELECT id, state, follows IS NOT NULL, accepted_at, ended_at, retried_as,
             url_failures + site_failures + paced
         FROM job WHERE queue = ?1 AND key = ?2";
    moves.tx.find(select, (moves.queue, id.0), |row| {
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
}
